// SPDX-License-Identifier: BSD-2-Clause
// Scheduling: which QP sends next, and what keeps it from sending.
#include "requester.hpp"

#include <algorithm>

#include "nic.hpp"

namespace ordma::twin {
namespace {

// Packets that one QP sends before the next has its turn.
inline constexpr unsigned kQuantum = 32;
// Request packets in flight per QP. Small enough that a receiver's queue holds those of many QPs.
inline constexpr std::uint32_t kInFlight = 256;
// Half the PSN space: beyond it old and new cannot be told apart.
inline constexpr std::uint32_t kPsnWindow = 1u << (hw::kPsnBits - 1);

}  // namespace

void Requester::write_waiting(const Qp& qp, std::uint32_t count) {
  hw::log_entry::Bytes raw{};
  hw::set(raw, hw::log_entry::sq_index, qp.s.accepted);
  hw::set(raw, hw::log_entry::count, count);
  hw::set(raw, hw::log_entry::kind, raw_value(hw::LogKind::kWaitingWqe));
  const std::uint64_t slot = qp.s.log_accepted & qp.log_mask();
  if (!nic_.host.write(qp.log_addr + slot * hw::log_entry::kBytes, raw, WriteKind::kLog)) {
    nic_.fail(hw::Fatal::kDma);
  }
}

void Requester::accept(Qp& qp) {
  SendSide& s = qp.s;
  if (qp.state == hw::QpState::kRts || qp.state == hw::QpState::kSqd) {
    const bool logged = qp.type == hw::QpType::kRc;
    const auto depth = logged ? static_cast<std::uint32_t>(s.msgs.size()) : qp.sq.size();
    const std::uint32_t room = depth - seq_sub(s.log_accepted, s.log_acked);
    const std::uint32_t count = std::min(seq_sub(qp.sq.pi, s.accepted), room);
    if (count != 0) {
      const bool waits = s.log_accepted != s.log_sent || !may_send(qp);
      if (logged && waits) write_waiting(qp, count);
      s.accepted = seq_add(s.accepted, count);
      s.log_accepted = seq_add(s.log_accepted, count);
    }
  }
  kick(qp);
}

void Requester::unlink(Qp& qp) {
  ready_.remove(qp);
  waiting_.remove(qp);
  paused_.remove(qp);
  if (fetch_qp_ == &qp) fetch_qp_ = nullptr;
}

void Requester::abandon(Qp& qp) {
  SendSide& s = qp.s;
  s.tx.active = false;
  s.fault.active = false;
  s.frozen = false;
  s.late_nak = 0;
  s.rd_count = s.rd_issued = 0;
  s.log_acked = s.log_sent = s.tx_log = s.log_accepted;
  s.una = s.tx_psn = s.max_psn;
  waiting_.remove(qp);
  paused_.remove(qp);
}

void Requester::leave_sqe(Qp& qp) {
  qp.sticky = static_cast<std::uint8_t>(qp.sticky & ~kStickyError);
  accept(qp);
}

void Requester::start_drain(Qp& qp) {
  qp.s.draining = true;
  retired(qp);
}

unsigned Requester::run(unsigned budget) {
  unsigned sent = 0;
  // A QP is served at most once per round, so one that cannot send is not met again.
  for (std::size_t turns = ready_.size(); turns != 0 && sent < budget; --turns) {
    Qp* qp = ready_.pop();
    if (qp == nullptr) break;
    const unsigned quota = std::min(kQuantum, budget - sent);
    const unsigned used = serve(*qp, quota);
    sent += used;
    if (used >= quota) ready_.push(*qp);
  }
  return sent;
}

bool Requester::may_send(const Qp& qp) const {
  const SendSide& s = qp.s;
  if (s.frozen || s.fault.active || s.not_before > nic_.now) return false;
  if (qp.state == hw::QpState::kRts) return true;
  // SQD: what was begun is finished, and what was sent may be sent again.
  return qp.state == hw::QpState::kSqd && (s.tx.active || s.tx_log != s.log_sent);
}

unsigned Requester::serve(Qp& qp, unsigned quota) {
  if (qp.state == hw::QpState::kErr || qp.state == hw::QpState::kSqe) return flush(qp, quota);
  unsigned used = 0;
  fetch_qp_ = nullptr;
  while (used < quota && may_send(qp)) {
    if (qp.s.tx.active ? !gates(qp, qp.s.tx, false) : !next_message(qp, quota - used)) break;
    const unsigned n = send_packets(qp, quota - used);
    used += n;
    if (qp.s.tx.active && n == 0) break;
    if (n == 0) ++used;  // a NOP is work too
  }
  TxMsg& tx = qp.s.tx;
  if (tx.active && tx.wqe != tx.copy.data()) {
    // The fetch buffer is gone after this turn.
    std::copy_n(tx.wqe, qp.sq.stride(), tx.copy.data());
    tx.wqe = tx.copy.data();
  }
  return used;
}

const std::byte* Requester::wqe_at(Qp& qp, std::uint32_t index, unsigned ahead) {
  const std::size_t stride = qp.sq.stride();
  if (fetch_qp_ != &qp || seq_sub(index, fetch_.first) >= fetch_.count) {
    // One read takes what this turn can use, up to the end of the ring, of the page and of what
    // was accepted.
    const std::uint64_t offset = qp.sq.offset(index);
    std::uint32_t count = std::min(ahead, seq_sub(qp.s.accepted, index));
    count = std::min(count, qp.sq.size() - (index & (qp.sq.size() - 1)));
    const std::size_t in_page = fetch_.data.size() - offset % fetch_.data.size();
    count = std::max(1u, std::min(count, static_cast<std::uint32_t>(in_page / stride)));
    fetch_qp_ = nullptr;
    nic_.spend(Cost::kFetch);
    if (!nic_.memory.read_queue(qp.sq.buf, offset, std::span(fetch_.data).first(count * stride))) {
      return nullptr;
    }
    fetch_qp_ = &qp;
    fetch_.first = index;
    fetch_.count = count;
  }
  return fetch_.data.data() + seq_sub(index, fetch_.first) * stride;
}

// The READ at the cursor has been asked for, in part.
bool Requester::issued(const SendSide& s) {
  if (s.rd_issued == 0) return false;
  const auto mask = static_cast<std::uint32_t>(s.reads.size()) - 1;
  return s.reads[(s.rd_head + s.rd_issued - 1) & mask].log_index == s.tx_log;
}

bool Requester::gates(const Qp& qp, const TxMsg& tx, bool fence) const {
  const SendSide& s = qp.s;
  if (qp.type != hw::QpType::kRc) return true;
  // Reads before this message that are still due; the log is in order, so the oldest tells.
  if (fence && s.rd_count != 0 && s.reads[s.rd_head].log_index != s.tx_log) return false;
  const std::uint32_t in_flight = seq_sub(s.tx_psn, s.una);
  const std::uint32_t left = tx.first_psn + tx.psns - s.tx_psn;
  if (in_flight + (left & kSeqMask) > kPsnWindow) return false;
  const bool read = tx.opcode == hw::WqeOp::kRead || tx.opcode == hw::WqeOp::kCmpSwap ||
                    tx.opcode == hw::WqeOp::kFetchAdd;
  const auto most = std::min<std::uint32_t>(qp.attr.max_rd_atomic,
                                            static_cast<std::uint32_t>(s.reads.size()));
  if (read && issued(s)) {
    // The rest of a READ waits for the packet that was asked for alone.
    if (s.read_probe) return false;
  } else if (read && s.rd_issued >= most) {
    return false;
  }
  return in_flight - read_psns(qp) < kInFlight;
}

bool Requester::next_message(Qp& qp, unsigned quota) {
  SendSide& s = qp.s;
  const bool again = s.tx_log != s.log_sent;
  if (!again && s.log_sent == s.log_accepted) return false;
  const std::uint32_t index = again ? qp.msg(s.tx_log).sq_index
                                    : seq_sub(s.accepted, seq_sub(s.log_accepted, s.log_sent));
  const std::byte* wqe = wqe_at(qp, index, quota);
  if (wqe == nullptr) {
    fault(qp, s.tx_log, index, hw::WqeOp{}, hw::WcStatus::kLocQpOpErr);
    return false;
  }
  TxMsg& tx = s.tx;
  hw::WcStatus status = parse(qp, wqe, index, tx);
  if (again) {
    const SentMsg& msg = qp.msg(s.tx_log);
    // A WQE that was changed after posting fails its own QP instead of confusing the peer.
    if (!same_as_logged(tx, msg)) status = hw::WcStatus::kLocQpOpErr;
    tx.first_psn = msg.first_psn;
    tx.psns = msg.psns;
  } else {
    tx.first_psn = s.max_psn;
  }
  if (status != hw::WcStatus::kSuccess) {
    fault(qp, s.tx_log, index, tx.opcode, status);
    return false;
  }
  const auto head = std::span<const std::byte>(wqe, hw::wqe::kBytes);
  if (!gates(qp, tx, hw::get(head, hw::wqe::fence) != 0)) return false;
  tx.packet = seq_sub(s.tx_psn, tx.first_psn);
  tx.active = true;
  seek(tx, std::uint64_t{tx.packet} * qp.mtu());
  if (!again) log_sent(qp, tx);
  return true;
}

unsigned Requester::flush(Qp& qp, unsigned quota) {
  unsigned used = 0;
  SendSide& s = qp.s;
  while (used < quota && s.ci != qp.sq.pi) {
    nic_.count(hw::Counter::kReqCqeFlushError);
    nic_.cqs.push(*qp.scq, {.qpn = qp.qpn, .status = hw::WcStatus::kWrFlushErr,
                            .wqe_index = s.ci});
    s.ci = seq_add(s.ci, 1);
    ++used;
  }
  s.accepted = s.ci;
  s.log_accepted = s.log_sent = s.log_acked = s.tx_log;
  if (qp.state == hw::QpState::kErr) used += flush_receive(qp, quota - used);
  return used;
}

unsigned Requester::flush_receive(Qp& qp, unsigned quota) {
  unsigned used = 0;
  const auto push = [&](std::uint64_t wr_id, std::uint32_t index) {
    nic_.count(hw::Counter::kRespCqeFlushError);
    nic_.cqs.push(*qp.rcq, {.wr_id = wr_id, .qpn = qp.qpn, .opcode = hw::WcOp::kRecv,
                            .status = hw::WcStatus::kWrFlushErr, .wqe_index = index,
                            .is_recv = true});
    ++used;
  };
  RecvSide& r = qp.r;
  if (r.wqe.active && used < quota) {
    r.wqe.active = false;
    push(r.wqe.wr_id, r.wqe.index);
  }
  while (used < quota && r.ci != qp.rq.pi) {
    hw::rqe::Bytes raw{};
    // Unreadable memory flushes all the same, only its wr_id is unknown.
    const bool ok = nic_.memory.read_queue(qp.rq.buf, qp.rq.offset(r.ci), raw);
    push(ok ? hw::get(raw, hw::rqe::wr_id) : 0, r.ci);
    r.ci = seq_add(r.ci, 1);
  }
  if (qp.srq != nullptr && !r.wqe.active) {
    nic_.events.raise_async(qp, kStickyLast, hw::AsyncCode::kLastWqe);
  }
  return used;
}

void Requester::track(Qp& qp) {
  SendSide& s = qp.s;
  if (qp.type != hw::QpType::kRc || qp.wait_link.linked || s.una == s.max_psn) return;
  s.progress_time = std::max(nic_.now, s.not_before);
  waiting_.push(qp);
  if (qp.attr.silence != 0) {
    silence_due_ = std::min(silence_due_, s.progress_time + qp.attr.silence);
  }
}

}  // namespace ordma::twin
