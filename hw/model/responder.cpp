// SPDX-License-Identifier: BSD-2-Clause
#include "responder.hpp"

#include <algorithm>

#include "nic.hpp"

namespace ordma::twin {
namespace {

using Kind = RequestOp::Kind;
using Nak = hw::AethSyndrome;

constexpr std::uint8_t code(Nak nak) { return static_cast<std::uint8_t>(nak); }

}  // namespace

RequestOp request_op(std::uint8_t opcode) {
  using enum hw::RoceOp;
  constexpr std::size_t kReth = hw::reth::kBytes;
  constexpr std::size_t kImm = hw::immdt::kBytes;
  constexpr auto kUc = raw_value(kUcSendFirst) - raw_value(kRcSendFirst);
  const bool uc = opcode >= raw_value(kUcSendFirst) && opcode <= raw_value(kUcWriteOnlyImm);
  switch (static_cast<hw::RoceOp>(uc ? opcode - kUc : opcode)) {
    case kRcSendFirst: return {.kind = Kind::kSend, .first = true};
    case kRcSendMiddle: return {.kind = Kind::kSend};
    case kRcSendLast: return {.kind = Kind::kSend, .last = true};
    case kRcSendLastImm: return {.kind = Kind::kSend, .last = true, .imm = true, .ext = kImm};
    case kRcSendLastInv:
      return {.kind = Kind::kSend, .last = true, .inv = true, .ext = hw::ieth::kBytes};
    case kRcSendOnly: return {.kind = Kind::kSend, .first = true, .last = true};
    case kRcSendOnlyImm:
      return {.kind = Kind::kSend, .first = true, .last = true, .imm = true, .ext = kImm};
    case kRcSendOnlyInv:
      return {.kind = Kind::kSend, .first = true, .last = true, .inv = true,
              .ext = hw::ieth::kBytes};
    case kRcWriteFirst: return {.kind = Kind::kWrite, .first = true, .ext = kReth};
    case kRcWriteMiddle: return {.kind = Kind::kWrite};
    case kRcWriteLast: return {.kind = Kind::kWrite, .last = true};
    case kRcWriteLastImm: return {.kind = Kind::kWrite, .last = true, .imm = true, .ext = kImm};
    case kRcWriteOnly: return {.kind = Kind::kWrite, .first = true, .last = true, .ext = kReth};
    case kRcWriteOnlyImm:
      return {.kind = Kind::kWrite, .first = true, .last = true, .imm = true,
              .ext = kReth + kImm};
    case kRcReadReq: return {.kind = Kind::kRead, .first = true, .last = true, .ext = kReth};
    case kRcCmpSwap:
    case kRcFetchAdd:
      return {.kind = Kind::kAtomic, .first = true, .last = true, .ext = hw::atomiceth::kBytes};
    default: return {};
  }
}

void Responder::on_request(Qp& qp, const Packet& packet, const RequestOp& op) {
  RecvSide& r = qp.r;
  if (qp.state == hw::QpState::kRtr) {
    nic_.events.raise_async(qp, kStickyEst, hw::AsyncCode::kCommEst);
  }
  if (packet.body.size() < op.ext) return nic_.count(hw::Counter::kDropMalformed);
  const std::int32_t ahead = seq_diff(packet.psn, r.epsn);
  if (ahead > 0) return out_of_sequence(qp);
  if (ahead < 0) return duplicate(qp, packet, op);
  Step step = Step::kFailed;
  if (!well_formed(qp, packet, op)) {
    step = refuse(qp, packet, Nak::kNakInvReq);
  } else {
    switch (op.kind) {
      case Kind::kSend: step = place_send(qp, packet, op); break;
      case Kind::kWrite: step = place_write(qp, packet, op); break;
      case Kind::kRead: step = read_request(qp, packet); break;
      case Kind::kAtomic: step = atomic(qp, packet); break;
      case Kind::kNone: return;
    }
  }
  if (step == Step::kRnr) return rnr(qp);
  if (step == Step::kFailed) return;
  r.nak_sent = false;
  if (op.kind == Kind::kRead || op.kind == Kind::kAtomic) return;
  r.epsn = seq_add(r.epsn, 1);
  if (op.last) r.msn = seq_add(r.msn, 1);
  if (packet.ack_req) push_ack(qp, packet.psn, code(Nak::kAck));
}

// Order of opcodes within a message, and sizes of packets.
bool Responder::well_formed(const Qp& qp, const Packet& packet, const RequestOp& op) const {
  const RecvSide& r = qp.r;
  const InMsg mine = op.kind == Kind::kSend    ? InMsg::kSend
                     : op.kind == Kind::kWrite ? InMsg::kWrite
                                               : InMsg::kNone;
  if (r.in != (op.first ? InMsg::kNone : mine)) return false;
  const std::size_t payload = packet.body.size() - op.ext;
  if (op.kind == Kind::kRead || op.kind == Kind::kAtomic) return payload == 0;
  if (!op.last) return payload == qp.mtu();
  return payload <= qp.mtu() && (op.first || payload != 0);
}

void Responder::out_of_sequence(Qp& qp) {
  nic_.count(hw::Counter::kOutOfSequence);
  // One NAK per gap: whatever follows says the same.
  if (qp.r.nak_sent) return;
  qp.r.nak_sent = true;
  push_ack(qp, qp.r.epsn, code(Nak::kNakPsn));
}

void Responder::rnr(Qp& qp) {
  nic_.count(hw::Counter::kOutOfBuffer);
  // Packets behind this one are dropped without a NAK of their own until it comes again.
  qp.r.nak_sent = true;
  push_ack(qp, qp.r.epsn,
           static_cast<std::uint8_t>(code(Nak::kRnr) | (qp.attr.min_rnr_timer & 0x1f)));
}

Responder::Step Responder::refuse(Qp& qp, const Packet& packet, Nak why) {
  hw::AsyncCode async = hw::AsyncCode::kReqErr;
  hw::WcStatus status = hw::WcStatus::kRemInvReqErr;
  if (why == Nak::kNakAccess) {
    async = hw::AsyncCode::kAccessErr;
    status = hw::WcStatus::kLocAccessErr;
    nic_.count(hw::Counter::kRespRemoteAccessErrors);
  } else if (why == Nak::kNakOp) {
    async = hw::AsyncCode::kFatal;
    status = hw::WcStatus::kGeneralErr;
  }
  push_ack(qp, packet.psn, code(why), true);
  nic_.qps.enter_error(qp, true);
  nic_.events.raise_async(qp, kStickyFault, async);
  nic_.events.raise_qp(qp, kStickyError, hw::EventType::kQpError,
                       static_cast<std::uint8_t>(status));
  return Step::kFailed;
}

// The receive WQE itself is at fault and completes with `status`.
Responder::Step Responder::fail_receive(Qp& qp, const Packet& packet, hw::WcStatus status,
                                        Nak why) {
  RecvWqe& wqe = qp.r.wqe;
  nic_.count(hw::Counter::kRespCqeError);
  if (status == hw::WcStatus::kLocLenErr) nic_.count(hw::Counter::kRespLocalLengthError);
  if (wqe.active) {
    wqe.active = false;
    nic_.cqs.push(*qp.rcq, {.wr_id = wqe.wr_id, .qpn = qp.qpn, .opcode = hw::WcOp::kRecv,
                            .status = status, .wqe_index = wqe.index, .is_recv = true});
  }
  if (qp.type == hw::QpType::kRc) push_ack(qp, packet.psn, code(why), true);
  nic_.qps.enter_error(qp, true);
  nic_.events.raise_qp(qp, kStickyError, hw::EventType::kQpError,
                       static_cast<std::uint8_t>(status));
  return Step::kFailed;
}

void Responder::duplicate(Qp& qp, const Packet& packet, const RequestOp& op) {
  const RecvSide& r = qp.r;
  nic_.count(hw::Counter::kDuplicateRequest);
  if (op.kind == Kind::kRead) return duplicate_read(qp, packet);
  if (op.kind == Kind::kAtomic) return duplicate_atomic(qp, packet);
  // Acknowledge as far as possible, but not across a READ or atomic whose response the peer may
  // have lost: it would take that for an implied NAK.
  const bool read_between = r.has_read && seq_diff(r.read_psn, packet.psn) > 0;
  push_ack(qp, read_between ? packet.psn : seq_sub(r.epsn, 1), code(Nak::kAck));
}

void Responder::duplicate_read(Qp& qp, const Packet& packet) {
  RecvSide& r = qp.r;
  const std::byte* reth = packet.body.data();
  Response read{.kind = Response::Kind::kRead, .duplicate = true, .psn = packet.psn,
                .msn = r.msn, .va = peek<hw::reth::va>(reth),
                .rkey = static_cast<std::uint32_t>(peek<hw::reth::rkey>(reth)),
                .left = static_cast<std::uint32_t>(peek<hw::reth::dma_len>(reth))};
  if (read.left > 1u << hw::kMaxMsgLog) return;
  read.packets = read.left == 0 ? 1 : ((read.left - 1) >> qp.attr.mtu_log) + 1;
  if (seq_diff(seq_add(packet.psn, read.packets), r.epsn) > 0) return;
  // A late duplicate whose MR is gone must not kill a QP whose peer was content long ago.
  const Rights rights{qp.pd, access_bit(hw::Access::kRemoteRead), false};
  if (nic_.memory.check(read.rkey, rights, read.va, read.left) != Fault::kNone) return;
  const auto mask = static_cast<std::uint32_t>(r.queue.size()) - 1;
  for (std::uint32_t i = 0; i < r.q_count; ++i) {
    Response& item = r.queue[(r.q_head + i) & mask];
    const std::uint32_t start = seq_sub(item.psn, item.sent);
    if (item.kind != Response::Kind::kRead ||
        seq_sub(read.psn, start) >= item.sent + item.packets) {
      continue;
    }
    // That READ is being answered. The peer gave up on what it missed, so the answer starts again
    // there, unless that part is still to come.
    if (seq_sub(read.psn, start) < item.sent) {
      read.msn = item.msn;
      item = read;
    }
    return;
  }
  if (r.q_ops < qp.attr.max_dest_rd_atomic) (void)push(qp, read);
}

void Responder::duplicate_atomic(Qp& qp, const Packet& packet) {
  RecvSide& r = qp.r;
  const std::uint32_t entries = std::min(r.atomics, nic_.result_entries(qp));
  for (std::uint32_t i = 0; i < entries; ++i) {
    hw::atomic_result::Bytes raw;
    if (!nic_.host.read(result_slot(qp, i), raw)) return nic_.fail(hw::Fatal::kDma);
    if (hw::get(raw, hw::atomic_result::valid) == 0 ||
        hw::get(raw, hw::atomic_result::psn) != packet.psn) {
      continue;
    }
    if (r.q_ops >= qp.attr.max_dest_rd_atomic) return;
    (void)push(qp, {.kind = Response::Kind::kAtomic, .duplicate = true, .psn = packet.psn,
                    .msn = r.msn, .va = hw::get(raw, hw::atomic_result::value)});
    return;
  }
}

void Responder::on_unreliable(Qp& qp, const Packet& packet, const RequestOp& op) {
  RecvSide& r = qp.r;
  if (packet.body.size() < op.ext) return nic_.count(hw::Counter::kDropMalformed);
  if (packet.psn != r.epsn) {
    // What was begun is lost; its receive WQE serves the next message.
    nic_.count(hw::Counter::kOutOfSequence);
    r.in = InMsg::kNone;
  }
  if (op.first) r.in = InMsg::kNone;
  r.epsn = seq_add(packet.psn, 1);
  if (!well_formed(qp, packet, op)) {
    r.in = InMsg::kNone;
    return;
  }
  const Step step = op.kind == Kind::kSend ? place_send(qp, packet, op)
                                           : place_write(qp, packet, op);
  if (step == Step::kRnr) nic_.count(hw::Counter::kOutOfBuffer);
  if (step != Step::kDone) r.in = InMsg::kNone;
}

}  // namespace ordma::twin
