// SPDX-License-Identifier: BSD-2-Clause
#include "events.hpp"

#include "nic.hpp"

namespace ordma::twin {

void Events::start(std::uint64_t base, std::uint32_t log) {
  base_ = base;
  log_ = log;
  pi_ = 0;
}

void Events::raise(const EventSpec& spec) {
  hw::event::Bytes raw{};
  hw::set(raw, hw::event::type_, raw_value(spec.type));
  hw::set(raw, hw::event::code, spec.code);
  hw::set(raw, hw::event::number, spec.number);
  hw::set(raw, hw::event::psn, spec.psn);
  hw::set(raw, hw::event::log_index, spec.log_index);
  hw::set(raw, hw::event::time_, nic_.now);
  hw::set(raw, hw::event::phase, ((pi_ >> log_) & 1) == 0);
  const std::uint64_t slot = pi_ & ((1u << log_) - 1);
  if (!nic_.host.write(base_ + slot * hw::event::kBytes, raw, WriteKind::kEvent)) {
    nic_.fail(hw::Fatal::kDma);
    return;
  }
  pi_ = seq_add(pi_, 1);
  nic_.count(hw::Counter::kEvents);
  nic_.host.interrupt(spec.vector);
}

void Events::raise_qp(Qp& qp, Sticky bit, hw::EventType type, std::uint8_t code) {
  if (qp.sticky & bit) return;
  qp.sticky = static_cast<std::uint8_t>(qp.sticky | bit);
  raise({.type = type, .code = code, .number = qp.qpn, .psn = qp.s.una,
         .log_index = qp.s.log_acked});
}

}  // namespace ordma::twin
