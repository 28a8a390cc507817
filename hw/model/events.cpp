// SPDX-License-Identifier: BSD-2-Clause
#include "events.hpp"

#include <utility>

#include "nic.hpp"

namespace ordma::twin {

void Events::start(std::uint64_t base, std::uint32_t log) {
  base_ = base;
  log_ = log;
  pi_ = ci_ = 0;
  port_pending_ = port_changed_ = false;
}

std::uint32_t Events::raise(const EventSpec& spec) {
  hw::event::Bytes raw{};
  hw::set(raw, hw::event::type_, raw_value(spec.type));
  hw::set(raw, hw::event::code, spec.code);
  hw::set(raw, hw::event::number, spec.number);
  hw::set(raw, hw::event::psn, spec.psn);
  hw::set(raw, hw::event::log_index, spec.log_index);
  hw::set(raw, hw::event::time_, nic_.now);
  hw::set(raw, hw::event::phase, ((pi_ >> log_) & 1) == 0);
  const std::uint32_t index = pi_;
  const std::uint64_t slot = index & ((1u << log_) - 1);
  if (seq_sub(pi_, ci_) > (1u << log_) - 1) {
    // The driver sizes the ring to the sum of its sources, so this is a bug on one of the sides.
    nic_.fail(hw::Fatal::kInternal);
    return index;
  }
  if (!nic_.host.write(base_ + slot * hw::event::kBytes, raw, WriteKind::kEvent)) {
    nic_.fail(hw::Fatal::kDma);
    return index;
  }
  pi_ = seq_add(pi_, 1);
  nic_.count(hw::Counter::kEvents);
  nic_.host.interrupt(spec.vector);
  return index;
}

void Events::consumed(std::uint32_t ci) {
  ci &= kSeqMask;
  // A value that is not in the ring is no consumer's.
  if (seq_sub(pi_, ci) > seq_sub(pi_, ci_)) return;
  ci_ = ci;
  if (port_pending_ && passed(port_event_)) {
    port_pending_ = false;
    if (std::exchange(port_changed_, false)) port_changed();
  }
  nic_.cqs.release();
}

void Events::port_changed() {
  if (port_pending_) {
    port_changed_ = true;
    return;
  }
  port_pending_ = true;
  port_event_ = raise({.type = hw::EventType::kPort});
}

void Events::raise_qp(Qp& qp, Sticky bit, hw::EventType type, std::uint8_t code) {
  if (qp.sticky & bit) return;
  qp.sticky = static_cast<std::uint8_t>(qp.sticky | bit);
  raise({.type = type, .code = code, .number = qp.qpn, .psn = qp.s.una,
         .log_index = qp.s.log_acked});
}

}  // namespace ordma::twin
