// SPDX-License-Identifier: BSD-2-Clause
// Detect and stop; then do what the recovery ring says. No counter and no policy lives here.
#include <algorithm>

#include "nic.hpp"
#include "requester.hpp"

namespace ordma::twin {

void Requester::freeze(Qp& qp, hw::EventType type, std::uint8_t code) {
  SendSide& s = qp.s;
  if (s.frozen || qp.state == hw::QpState::kErr) return;
  s.frozen = true;
  s.frozen_by = type;
  ready_.remove(qp);
  waiting_.remove(qp);
  nic_.events.raise_qp(qp, kStickyRecovery, type, code);
}

void Requester::set_cursor(Qp& qp, std::uint32_t log_index, std::uint32_t psn) {
  SendSide& s = qp.s;
  s.tx.active = false;
  s.fault.active = false;
  s.tx_psn = psn;
  s.tx_log = log_index;
  const auto mask = static_cast<std::uint32_t>(s.reads.size()) - 1;
  s.rd_issued = 0;
  // READs before the cursor are still out; the one at the cursor and later ones are asked again.
  while (s.rd_issued < s.rd_count &&
         seq_diff(s.reads[(s.rd_head + s.rd_issued) & mask].log_index, log_index) < 0) {
    ++s.rd_issued;
  }
}

void Requester::rewind(Qp& qp, std::uint32_t log_index, std::uint32_t psn,
                       std::uint64_t not_before) {
  SendSide& s = qp.s;
  const bool sends = qp.state == hw::QpState::kRts || qp.state == hw::QpState::kSqd;
  if (qp.type != hw::QpType::kRc || !sends || !s.frozen) return;
  if (seq_diff(psn, s.una) < 0 || seq_diff(log_index, s.log_acked) < 0) {
    // Acknowledged since the CPU looked.
    psn = s.una;
    log_index = s.log_acked;
  }
  const bool nothing = log_index == s.log_sent && psn == s.max_psn;
  if (!nothing) {
    const SentMsg& msg = qp.msg(log_index);
    const bool inside = seq_diff(log_index, s.log_sent) < 0 &&
                        seq_sub(psn, msg.first_psn) < msg.psns &&
                        seq_diff(psn, s.max_psn) <= 0;
    if (!inside && !(psn == s.una && log_index == s.log_acked)) {
      ++nic_.stats.bad_rewinds;
      return;
    }
  }
  nic_.count(hw::Counter::kRewinds);
  set_cursor(qp, log_index, psn);
  s.frozen = false;
  s.implied_muted = true;
  s.read_probe = s.frozen_by == hw::EventType::kQpImpliedNak;
  s.late_psn = seq_diff(s.late_psn, s.una) < 0 ? s.una : s.late_psn;
  s.not_before = not_before;
  qp.sticky = static_cast<std::uint8_t>(qp.sticky & ~kStickyRecovery);
  if (s.late_nak != 0) {
    const std::uint8_t syndrome = s.late_nak;
    s.late_nak = 0;
    if (s.late_nak_psn == s.una) return freeze(qp, hw::EventType::kQpNak, syndrome);
  }
  if (not_before > nic_.now) {
    paused_.push(qp);
    pause_due_ = std::min(pause_due_, not_before);
  }
  track(qp);
  kick(qp);
}

void Requester::fail(Qp& qp, std::uint32_t psn, hw::WcStatus status, std::uint8_t vendor_err) {
  SendSide& s = qp.s;
  const bool sends = qp.state == hw::QpState::kRts || qp.state == hw::QpState::kSqd;
  if (qp.type != hw::QpType::kRc || !sends || !s.frozen) return;
  // Messages wholly below complete, but never one whose response is missing.
  s.tx_log = s.log_sent;
  s.tx.active = false;
  if (seq_sub(psn, s.una) <= seq_sub(s.max_psn, s.una)) {
    if (const ReadOp* op = oldest_read(qp); op != nullptr) {
      const std::uint32_t limit = seq_add(op->first_psn, op->received);
      if (seq_diff(psn, limit) > 0) psn = limit;
    }
    s.una = psn;
    s.fault.active = false;
    retire(qp);
  }
  // The message that holds psn, or the first that was never sent.
  if (s.ci != qp.sq.pi) {
    const bool sent = s.log_acked != s.log_sent;
    const hw::WqeOp opcode = sent ? qp.msg(s.log_acked).opcode : hw::WqeOp{};
    const std::uint32_t index = s.ci;
    s.ci = seq_add(s.ci, 1);
    error_cqe(qp, index, opcode, status, vendor_err);
  }
  qp.sticky = static_cast<std::uint8_t>(qp.sticky & ~kStickyRecovery);
  nic_.qps.enter_error(qp);
}

void Requester::set_silence(Qp& qp, std::uint64_t threshold) {
  qp.attr.silence = threshold;
  SendSide& s = qp.s;
  if (s.frozen && s.frozen_by == hw::EventType::kQpSilence) {
    // The CPU would rather wait: nothing is sent again, and the silence is watched from now on.
    s.frozen = false;
    qp.sticky = static_cast<std::uint8_t>(qp.sticky & ~kStickyRecovery);
    track(qp);
    kick(qp);
  }
  if (qp.wait_link.linked && threshold != 0) {
    silence_due_ = std::min(silence_due_, qp.s.progress_time + threshold);
  }
}

void Requester::sweep() {
  if (nic_.now >= pause_due_) {
    pause_due_ = kNever;
    Qp* next = nullptr;
    for (Qp* qp = paused_.front(); qp != nullptr; qp = next) {
      next = paused_.next(*qp);
      if (qp->s.not_before > nic_.now) {
        pause_due_ = std::min(pause_due_, qp->s.not_before);
        continue;
      }
      paused_.remove(*qp);
      kick(*qp);
    }
  }
  if (nic_.now < silence_due_) return;
  silence_due_ = kNever;
  Qp* next = nullptr;
  for (Qp* qp = waiting_.front(); qp != nullptr; qp = next) {
    next = waiting_.next(*qp);
    if (qp->attr.silence == 0) continue;
    const std::uint64_t due = qp->s.progress_time + qp->attr.silence;
    if (due > nic_.now) {
      silence_due_ = std::min(silence_due_, due);
      continue;
    }
    nic_.count(hw::Counter::kLocalAckTimeoutErr);
    freeze(*qp, hw::EventType::kQpSilence, 0);
  }
}

std::uint64_t Requester::next_timer() const { return std::min(silence_due_, pause_due_); }

}  // namespace ordma::twin
