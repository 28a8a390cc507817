// SPDX-License-Identifier: BSD-2-Clause
#include "cq.hpp"

#include <algorithm>

#include "nic.hpp"

namespace ordma::twin {

void CompletionQueues::reset() {
  while (deferred_.pop() != nullptr) {
  }
  for (auto& cq : cqs_) cq.reset();
  failed_.clear();
}

bool CompletionQueues::full(Cq& cq) {
  if (seq_sub(cq.pi, cq.ci) < cq.size()) return false;
  // The record is host memory that a user writes: a value outside the ring means full.
  hw::cq_record::Bytes raw;
  if (!nic_.host.read(cq.record, raw)) return true;
  const auto ci = static_cast<std::uint32_t>(hw::get(raw, hw::cq_record::ci));
  if (seq_sub(cq.pi, ci) > cq.size()) return true;
  cq.ci = ci;
  return seq_sub(cq.pi, cq.ci) >= cq.size();
}

void CompletionQueues::fail(Cq& cq, bool overflow) {
  cq.error = true;
  if (overflow) nic_.count(hw::Counter::kCqOverflows);
  failed_.push_back(&cq);
  nic_.events.raise({.type = hw::EventType::kCqError, .number = cq.number});
}

bool CompletionQueues::unseen(const Cq& cq) {
  return cq.fire_now || seq_diff(cq.solicited_only ? cq.qualified : cq.pi, cq.seen) > 0;
}

void CompletionQueues::fire(Cq& cq) {
  if (nic_.events.crowded()) return deferred_.push(cq);
  cq.armed = false;
  nic_.events.raise(
      {.type = hw::EventType::kCqFire, .number = cq.number, .vector = cq.vector});
}

void CompletionQueues::push(Cq& cq, const Completion& c) {
  if (cq.error) return;
  if (full(cq)) return fail(cq, true);
  namespace h = hw::cqe;
  h::Bytes raw;
  const bool solicited = c.solicited && c.is_recv;
  hw::store_le64(raw, 0, c.wr_id);
  hw::store_le64(raw, 8,
                 hw::place(h::qpn, c.qpn) | hw::place(h::opcode, raw_value(c.opcode)) |
                     hw::place(h::wqe_index, c.wqe_index) |
                     hw::place(h::status, raw_value(c.status)) |
                     hw::place(h::vendor_err, c.vendor_err));
  hw::store_le64(raw, 16, hw::place(h::byte_len, c.byte_len) | hw::place(h::imm, c.imm));
  hw::store_le64(raw, 24,
                 hw::place(h::src_qpn, c.src_qpn) | hw::place(h::is_recv, c.is_recv) |
                     hw::place(h::has_imm, c.has_imm) | hw::place(h::has_grh, c.has_grh) |
                     hw::place(h::solicited, solicited) | hw::place(h::ipv4, c.ipv4) |
                     hw::place(h::sl, c.sl));
  hw::store_le64(raw, 32, nic_.now);
  hw::store_le64(raw, 40, hw::place(h::smac, c.smac) | hw::place(h::vlan, c.vlan));
  hw::store_le64(raw, 48, 0);
  hw::store_le64(raw, 56, hw::place(h::phase, ((cq.pi >> cq.log) & 1) == 0));
  static_assert(h::qpn.word == 1 && h::byte_len.word == 2 && h::src_qpn.word == 3 &&
                h::timestamp.word == 4 && h::smac.word == 5 && h::phase.word == 7);
  std::uint64_t dma = 0;
  const std::uint64_t offset = std::uint64_t{cq.pi & (cq.size() - 1)} * h::kBytes;
  if (!nic_.memory.locate(cq.ring, offset, dma) ||
      !nic_.host.write(dma, raw, WriteKind::kCqe)) {
    return fail(cq, false);
  }
  cq.pi = seq_add(cq.pi, 1);
  const bool qualifies = solicited || c.status != hw::WcStatus::kSuccess;
  if (qualifies) {
    cq.qualified = cq.pi;
  } else if (seq_sub(cq.pi, cq.qualified) > cq.size()) {
    // Keeps the distance inside what signed sequence arithmetic can tell.
    cq.qualified = seq_sub(cq.pi, cq.size());
  }
  if (cq.armed && (qualifies || !cq.solicited_only)) fire(cq);
}

void CompletionQueues::arm(Cq& cq, std::uint64_t word) {
  // The attachment may deliver a slot's value again; an arm word never repeats back to back.
  if (cq.last_arm == word) return;
  cq.last_arm = word;
  // What the caller has seen, it need not have consumed: fullness is told by the record alone.
  cq.seen = static_cast<std::uint32_t>(hw::wget(word, hw::db::index));
  cq.solicited_only = hw::wget(word, hw::db::solicited) != 0;
  cq.fire_now = hw::wget(word, hw::db::fire_now) != 0;
  cq.armed = true;
  if (unseen(cq)) fire(cq);
}

void CompletionQueues::release() {
  while (!deferred_.empty() && !nic_.events.crowded()) {
    Cq* cq = deferred_.pop();
    // It may have been armed anew in the meantime, with everything seen.
    if (cq->armed && unseen(*cq)) fire(*cq);
  }
}

void CompletionQueues::forget(Cq& cq) {
  std::erase(failed_, &cq);
  deferred_.remove(cq);
}

void CompletionQueues::settle() {
  while (!failed_.empty()) {
    const Cq* cq = failed_.back();
    failed_.pop_back();
    nic_.qps.for_each([&](Qp& qp) {
      const bool idle = qp.state == hw::QpState::kReset;
      if (!idle && (qp.scq == cq || qp.rcq == cq)) nic_.qps.enter_error(qp);
    });
  }
}

}  // namespace ordma::twin
