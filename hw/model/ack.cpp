// SPDX-License-Identifier: BSD-2-Clause
// Acknowledgements, NAKs and READ responses. The NIC applies what is cumulative, then stops and
// reports; what to do about it is decided elsewhere.
#include <algorithm>
#include <cstring>

#include "nic.hpp"
#include "requester.hpp"

namespace ordma::twin {
namespace {

using Nak = hw::AethSyndrome;

inline constexpr std::uint8_t kKindMask = 0xe0;  // of an AETH syndrome: ACK, RNR, NAK
inline constexpr std::uint8_t kKindAck = 0x00;

}  // namespace

ReadOp* Requester::oldest_read(Qp& qp) {
  return qp.s.rd_count != 0 ? &qp.s.reads[qp.s.rd_head] : nullptr;
}

// PSNs between una and the cursor that belong to responses: they occupy no receive queue.
std::uint32_t Requester::read_psns(const Qp& qp) const {
  const SendSide& s = qp.s;
  const auto mask = static_cast<std::uint32_t>(s.reads.size()) - 1;
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < s.rd_issued; ++i) {
    const ReadOp& op = s.reads[(s.rd_head + i) & mask];
    sum += op.psns - op.received;
  }
  return sum;
}

// Everything below `up_to` has arrived there. True when that passes a READ or atomic without its
// response: an implied NAK.
bool Requester::acknowledge(Qp& qp, std::uint32_t up_to) {
  bool implied = false;
  if (const ReadOp* op = oldest_read(qp); op != nullptr) {
    const std::uint32_t limit = seq_add(op->first_psn, op->received);
    if (seq_diff(up_to, limit) > 0) {
      up_to = limit;
      implied = true;
    }
  }
  if (seq_diff(up_to, qp.s.una) > 0) advance(qp, up_to);
  return implied;
}

void Requester::advance(Qp& qp, std::uint32_t una) {
  SendSide& s = qp.s;
  s.una = una;
  s.progress_time = nic_.now;
  s.implied_muted = s.read_probe = false;
  s.late_psn = una;
  if (s.una == s.max_psn) waiting_.remove(qp);
  retire(qp);
  skip_forward(qp);
  if (!s.frozen) kick(qp);
}

// After a rewind an acknowledgement may overtake the cursor: what it covers need not be sent again.
void Requester::skip_forward(Qp& qp) {
  SendSide& s = qp.s;
  if (seq_diff(s.una, s.tx_psn) <= 0) return;
  s.tx.active = false;
  s.tx_psn = s.una;
  // Completion stops at the cursor, so let it run first and then follow.
  s.tx_log = s.log_sent;
  retire(qp);
  s.tx_log = s.log_acked;
  s.rd_issued = std::min(s.rd_issued, s.rd_count);
}

void Requester::on_ack(Qp& qp, const Packet& packet) {
  if (packet.body.size() < hw::aeth::kBytes) return nic_.count(hw::Counter::kDropMalformed);
  const auto syndrome = static_cast<std::uint8_t>(peek<hw::aeth::syndrome>(packet.body.data()));
  if ((syndrome & kKindMask) != kKindAck) return on_nak(qp, packet, syndrome);
  const SendSide& s = qp.s;
  const std::uint32_t up_to = seq_add(packet.psn, 1);
  // Old news, or an acknowledgement of what was never sent.
  if (seq_sub(up_to, s.una) > seq_sub(s.max_psn, s.una) || up_to == s.una) return;
  if (acknowledge(qp, up_to)) implied_nak(qp);
}

// After a rewind, responses and acknowledgements of the first attempt may still be on their way and
// look like new gaps: until there is progress, silence alone reports a second loss.
void Requester::implied_nak(Qp& qp) {
  if (qp.s.frozen || qp.s.implied_muted) return;
  nic_.count(hw::Counter::kImpliedNakSeqErr);
  freeze(qp, hw::EventType::kQpImpliedNak, 0);
}

void Requester::on_nak(Qp& qp, const Packet& packet, std::uint8_t syndrome) {
  SendSide& s = qp.s;
  // A NAK names the first PSN that was not taken.
  if (seq_sub(packet.psn, s.una) >= seq_sub(s.max_psn, s.una)) return;
  if (acknowledge(qp, packet.psn)) return implied_nak(qp);
  if ((syndrome & kKindMask) == raw_value(Nak::kRnr)) {
    nic_.count(hw::Counter::kRnrNakRetryErr);
    return freeze(qp, hw::EventType::kQpRnr, syndrome);
  }
  switch (static_cast<Nak>(syndrome)) {
    case Nak::kNakPsn: nic_.count(hw::Counter::kPacketSeqErr); break;
    case Nak::kNakInvReq: nic_.count(hw::Counter::kReqRemoteInvalidRequest); break;
    case Nak::kNakAccess: nic_.count(hw::Counter::kReqRemoteAccessErrors); break;
    default: break;
  }
  if (s.frozen && static_cast<Nak>(syndrome) != Nak::kNakPsn) {
    // The peer is in error and will not say so again.
    s.late_nak = syndrome;
    s.late_nak_psn = packet.psn;
    return;
  }
  freeze(qp, hw::EventType::kQpNak, syndrome);
}

// The READ or atomic that a response packet continues; nullptr when there is nothing to do.
ReadOp* Requester::match_read(Qp& qp, const Packet& packet, bool atomic) {
  const SendSide& s = qp.s;
  ReadOp* op = oldest_read(qp);
  const std::uint32_t span = seq_sub(s.max_psn, s.una);
  if (op == nullptr || seq_sub(packet.psn, s.una) >= span) return nullptr;
  // A response also acknowledges every request before it.
  const std::uint32_t next = seq_add(op->first_psn, op->received);
  const std::int32_t gap = seq_diff(packet.psn, next);
  if (gap < 0) return nullptr;
  const bool skipped = gap > 0;
  (void)acknowledge(qp, skipped ? next : packet.psn);
  if (skipped) {
    // A stream that falls back is the repeated one: its gaps are new. A probe asks for one packet,
    // in which there is no gap: what falls back then is a late or doubled packet of the first
    // attempt.
    if (!qp.s.read_probe && seq_diff(packet.psn, qp.s.late_psn) <= 0) {
      qp.s.implied_muted = false;
    }
    qp.s.late_psn = packet.psn;
    implied_nak(qp);
    return nullptr;
  }
  op = oldest_read(qp);
  if (op == nullptr || qp.state == hw::QpState::kErr) return nullptr;
  if (op->atomic != atomic) {
    bad_response(qp, *op, hw::WcStatus::kBadRespErr);
    return nullptr;
  }
  return op;
}

Fault Requester::scatter(const Qp& qp, ReadOp& op, std::span<const std::byte> src) {
  const Rights rights{qp.pd, access_bit(hw::Access::kLocalWrite), qp.kernel()};
  const auto at = static_cast<std::size_t>(&op - qp.s.reads.data()) * kSgeMax;
  while (!src.empty()) {
    if (op.cursor.sge >= op.num_sge) return Fault::kRange;
    const Sge& sge = qp.s.read_sges[at + op.cursor.sge];
    const std::size_t n = std::min<std::size_t>(sge.length - op.cursor.offset, src.size());
    const Fault fault =
        nic_.memory.write(sge.lkey, rights, sge.addr + op.cursor.offset, src.first(n));
    if (fault != Fault::kNone) return fault;
    src = src.subspan(n);
    op.cursor.offset += static_cast<std::uint32_t>(n);
    if (op.cursor.offset == sge.length) op.cursor = {op.cursor.sge + 1, 0};
  }
  return Fault::kNone;
}

// Fails the message like a local fault: everything before it has completed already.
void Requester::bad_response(Qp& qp, const ReadOp& op, hw::WcStatus status) {
  const SentMsg& msg = qp.msg(op.log_index);
  fault(qp, op.log_index, msg.sq_index, msg.opcode, status);
}

void Requester::finish_read(Qp& qp) {
  SendSide& s = qp.s;
  s.rd_head = (s.rd_head + 1) & (static_cast<std::uint32_t>(s.reads.size()) - 1);
  --s.rd_count;
  if (s.rd_issued != 0) --s.rd_issued;
}

void Requester::on_read_response(Qp& qp, const Packet& packet) {
  using enum hw::RoceOp;
  const auto opcode = static_cast<hw::RoceOp>(packet.opcode);
  const std::size_t ext = opcode == kRcReadRspMiddle ? 0 : hw::aeth::kBytes;
  if (packet.body.size() < ext) return nic_.count(hw::Counter::kDropMalformed);
  ReadOp* op = match_read(qp, packet, false);
  if (op == nullptr) return;
  const auto payload = packet.body.subspan(ext);
  const std::uint64_t done = std::uint64_t{op->received} << qp.attr.mtu_log;
  const std::uint64_t left = op->length - done;
  const bool last = op->received + 1 == op->psns;
  // The response to a repeated request starts afresh, so FIRST and ONLY may come in the middle.
  const bool framed = last ? opcode == kRcReadRspLast || opcode == kRcReadRspOnly
                           : opcode != kRcReadRspLast;
  if (!framed || payload.size() != (last ? left : qp.mtu())) {
    return bad_response(qp, *op, hw::WcStatus::kBadRespErr);
  }
  if (scatter(qp, *op, payload) != Fault::kNone) {
    return bad_response(qp, *op, hw::WcStatus::kLocProtErr);
  }
  nic_.count(hw::Counter::kRxBytes, payload.size());
  ++op->received;
  if (last) finish_read(qp);
  advance(qp, seq_add(packet.psn, 1));
}

void Requester::on_atomic_response(Qp& qp, const Packet& packet) {
  if (packet.body.size() != hw::aeth::kBytes + hw::atomicack::kBytes) {
    return nic_.count(hw::Counter::kDropMalformed);
  }
  ReadOp* op = match_read(qp, packet, true);
  if (op == nullptr) return;
  const std::uint64_t value =
      peek<hw::atomicack::value>(packet.body.data() + hw::aeth::kBytes);
  std::array<std::byte, 8> raw;
  hw::store_le64(raw, 0, value);
  if (scatter(qp, *op, raw) != Fault::kNone) {
    return bad_response(qp, *op, hw::WcStatus::kLocProtErr);
  }
  ++op->received;
  finish_read(qp);
  advance(qp, seq_add(packet.psn, 1));
}

}  // namespace ordma::twin
