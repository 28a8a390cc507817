// SPDX-License-Identifier: BSD-2-Clause
// Execution of in-sequence requests. Everything is checked before state changes, so a request that
// has to come again finds the QP as it was.
#include <algorithm>
#include <cstring>

#include "nic.hpp"
#include "responder.hpp"

namespace ordma::twin {
namespace {

using Nak = hw::AethSyndrome;

bool reliable(const Qp& qp) { return qp.type == hw::QpType::kRc; }

bool allows(const Qp& qp, hw::Access access) {
  return (qp.attr.access & access_bit(access)) != 0;
}

Nak nak_of(Fault fault) { return fault == Fault::kDma ? Nak::kNakOp : Nak::kNakAccess; }

}  // namespace

Responder::Step Responder::take_wqe(Qp& qp, const Packet& packet) {
  switch (nic_.receive.take(qp)) {
    case TakeResult::kOk: return Step::kDone;
    case TakeResult::kNone: return Step::kRnr;
    case TakeResult::kBad: break;
  }
  return fail_receive(qp, packet, hw::WcStatus::kLocQpOpErr, Nak::kNakOp);
}

Responder::Step Responder::place_send(Qp& qp, const Packet& packet, const RequestOp& op) {
  RecvSide& r = qp.r;
  if (op.first) {
    if (!r.wqe.active) {
      const Step step = take_wqe(qp, packet);
      if (step != Step::kDone) return step;
    }
    // UC may meet a WQE that an aborted message began to fill.
    r.wqe.filled = 0;
    r.wqe.cursor = {};
  }
  // Nothing that this NIC registers can be invalidated from afar.
  if (op.inv) return reliable(qp) ? refuse(qp, packet, Nak::kNakInvReq) : Step::kFailed;
  const auto payload = packet.body.subspan(op.ext);
  if (r.wqe.filled + payload.size() > r.wqe.capacity) {
    return fail_receive(qp, packet, hw::WcStatus::kLocLenErr, Nak::kNakInvReq);
  }
  if (nic_.receive.scatter(qp, r.wqe, payload) != Fault::kNone) {
    return fail_receive(qp, packet, hw::WcStatus::kLocProtErr, Nak::kNakOp);
  }
  nic_.count(hw::Counter::kRxBytes, payload.size());
  r.in = op.last ? InMsg::kNone : InMsg::kSend;
  if (op.last) {
    complete_receive(qp, packet, op, hw::WcOp::kRecv, static_cast<std::uint32_t>(r.wqe.filled));
  }
  return Step::kDone;
}

void Responder::complete_receive(Qp& qp, const Packet& packet, const RequestOp& op,
                                 hw::WcOp opcode, std::uint32_t bytes) {
  RecvWqe& wqe = qp.r.wqe;
  std::uint32_t imm = 0;
  if (op.imm) std::memcpy(&imm, packet.body.data() + op.ext - hw::immdt::kBytes, 4);
  wqe.active = false;
  nic_.cqs.push(*qp.rcq, {.wr_id = wqe.wr_id, .qpn = qp.qpn, .opcode = opcode,
                          .wqe_index = wqe.index, .byte_len = bytes, .imm = imm,
                          .is_recv = true, .has_imm = op.imm, .solicited = packet.solicited,
                          .sl = static_cast<std::uint8_t>(packet.tclass >> 5)});
}

// Checks what only the first packet can tell; the range is that of the whole message.
Responder::Step Responder::start_write(Qp& qp, const Packet& packet, const RequestOp& op,
                                       std::size_t payload) {
  RecvSide& r = qp.r;
  const std::byte* reth = packet.body.data();
  const std::uint64_t va = peek<hw::reth::va>(reth);
  const auto rkey = static_cast<std::uint32_t>(peek<hw::reth::rkey>(reth));
  const auto length = static_cast<std::uint32_t>(peek<hw::reth::dma_len>(reth));
  const auto reject = [&](Nak why) {
    return reliable(qp) ? refuse(qp, packet, why) : Step::kFailed;
  };
  const bool fits = op.last ? length == payload : length > payload;
  if (!fits || length > 1u << hw::kMaxMsgLog) return reject(Nak::kNakInvReq);
  const Rights rights{qp.pd, access_bit(hw::Access::kRemoteWrite), false};
  if (nic_.memory.check(rkey, rights, va, length) != Fault::kNone) {
    return reject(Nak::kNakAccess);
  }
  r.va = va;
  r.rkey = rkey;
  r.left = r.total = length;
  return Step::kDone;
}

Responder::Step Responder::place_write(Qp& qp, const Packet& packet, const RequestOp& op) {
  RecvSide& r = qp.r;
  const auto payload = packet.body.subspan(op.ext);
  const auto reject = [&](Nak why) {
    return reliable(qp) ? refuse(qp, packet, why) : Step::kFailed;
  };
  if (!allows(qp, hw::Access::kRemoteWrite)) return reject(Nak::kNakInvReq);
  if (op.first) {
    const Step step = start_write(qp, packet, op, payload.size());
    if (step != Step::kDone) return step;
    nic_.count(hw::Counter::kRxWriteRequests);
  }
  if (op.last ? r.left != payload.size() : r.left <= payload.size()) {
    return reject(Nak::kNakInvReq);
  }
  if (op.imm && !r.wqe.active) {
    const Step step = take_wqe(qp, packet);
    if (step != Step::kDone) return step;
  }
  const Rights rights{qp.pd, access_bit(hw::Access::kRemoteWrite), false};
  nic_.spend(Cost::kDma);
  const Fault fault = nic_.memory.write(r.rkey, rights, r.va, payload);
  if (fault != Fault::kNone) return reject(nak_of(fault));
  nic_.count(hw::Counter::kRxBytes, payload.size());
  r.va += payload.size();
  r.left -= static_cast<std::uint32_t>(payload.size());
  r.in = op.last ? InMsg::kNone : InMsg::kWrite;
  if (op.imm) complete_receive(qp, packet, op, hw::WcOp::kRecvRdmaWithImm, r.total);
  return Step::kDone;
}

Responder::Step Responder::read_request(Qp& qp, const Packet& packet) {
  RecvSide& r = qp.r;
  const std::byte* reth = packet.body.data();
  Response read{.kind = Response::Kind::kRead, .psn = packet.psn,
                .va = peek<hw::reth::va>(reth),
                .rkey = static_cast<std::uint32_t>(peek<hw::reth::rkey>(reth)),
                .left = static_cast<std::uint32_t>(peek<hw::reth::dma_len>(reth))};
  nic_.count(hw::Counter::kRxReadRequests);
  if (!allows(qp, hw::Access::kRemoteRead) || read.left > 1u << hw::kMaxMsgLog) {
    return refuse(qp, packet, Nak::kNakInvReq);
  }
  const Rights rights{qp.pd, access_bit(hw::Access::kRemoteRead), false};
  if (nic_.memory.check(read.rkey, rights, read.va, read.left) != Fault::kNone) {
    return refuse(qp, packet, Nak::kNakAccess);
  }
  if (!make_room(qp)) return refuse(qp, packet, Nak::kNakInvReq);
  read.packets = read.left == 0 ? 1 : ((read.left - 1) >> qp.attr.mtu_log) + 1;
  r.msn = seq_add(r.msn, 1);
  read.msn = r.msn;
  r.epsn = seq_add(r.epsn, read.packets);
  r.has_read = true;
  r.read_psn = seq_sub(r.epsn, 1);
  (void)push(qp, read);
  return Step::kDone;
}

std::uint64_t Responder::result_slot(const Qp& qp, std::uint32_t n) const {
  return qp.attr.atomic_addr +
         std::uint64_t{n & (nic_.result_entries(qp) - 1)} * hw::atomic_result::kBytes;
}

Responder::Step Responder::atomic(Qp& qp, const Packet& packet) {
  RecvSide& r = qp.r;
  const std::byte* eth = packet.body.data();
  const std::uint64_t va = peek<hw::atomiceth::va>(eth);
  const auto rkey = static_cast<std::uint32_t>(peek<hw::atomiceth::rkey>(eth));
  nic_.count(hw::Counter::kRxAtomicRequests);
  if (!allows(qp, hw::Access::kRemoteAtomic) || va % 8 != 0) {
    return refuse(qp, packet, Nak::kNakInvReq);
  }
  const Rights rights{qp.pd, access_bit(hw::Access::kRemoteAtomic), false};
  std::array<std::byte, 8> raw;
  Fault fault = nic_.memory.read(rkey, rights, va, raw);
  if (fault != Fault::kNone) return refuse(qp, packet, nak_of(fault));
  if (!make_room(qp)) return refuse(qp, packet, Nak::kNakInvReq);
  const std::uint64_t old = hw::load_le64(raw, 0);
  // Written before the response leaves: a duplicate request is answered from here.
  hw::atomic_result::Bytes entry{};
  hw::set(entry, hw::atomic_result::value, old);
  hw::set(entry, hw::atomic_result::psn, packet.psn);
  hw::set(entry, hw::atomic_result::valid, 1);
  if (!nic_.host.write(result_slot(qp, r.atomics), entry, WriteKind::kAtomicResult)) {
    nic_.fail(hw::Fatal::kDma);
    return Step::kFailed;
  }
  ++r.atomics;
  const std::uint64_t operand = peek<hw::atomiceth::swap_add>(eth);
  const bool swap = packet.opcode == raw_value(hw::RoceOp::kRcCmpSwap);
  if (!swap || old == peek<hw::atomiceth::compare>(eth)) {
    hw::store_le64(raw, 0, swap ? operand : old + operand);
    fault = nic_.memory.write(rkey, rights, va, raw);
    if (fault != Fault::kNone) return refuse(qp, packet, nak_of(fault));
  }
  r.msn = seq_add(r.msn, 1);
  r.has_read = true;
  r.read_psn = r.epsn;
  r.epsn = seq_add(r.epsn, 1);
  (void)push(qp, {.kind = Response::Kind::kAtomic, .psn = packet.psn, .msn = r.msn, .va = old});
  return Step::kDone;
}

}  // namespace ordma::twin
