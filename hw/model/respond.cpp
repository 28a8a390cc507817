// SPDX-License-Identifier: BSD-2-Clause
// The response queue of a QP: ACKs and READ responses leave in the order of their requests.
#include <algorithm>

#include "nic.hpp"
#include "responder.hpp"

namespace ordma::twin {
namespace {

using Roce = hw::RoceOp;
using Kind = Response::Kind;

inline constexpr unsigned kQuantum = 32;

}  // namespace

Response* Responder::tail(Qp& qp) {
  RecvSide& r = qp.r;
  if (r.q_count == 0) return nullptr;
  return &r.queue[(r.q_head + r.q_count - 1) & (r.queue.size() - 1)];
}

bool Responder::push(Qp& qp, const Response& response) {
  RecvSide& r = qp.r;
  if (r.q_count >= r.queue.size()) return false;
  r.queue[(r.q_head + r.q_count) & (r.queue.size() - 1)] = response;
  ++r.q_count;
  if (response.kind != Kind::kAck) ++r.q_ops;
  ready_.push(qp);
  return true;
}

// Neighbouring acknowledgements become one: the newer says what the older said.
void Responder::push_ack(Qp& qp, std::uint32_t psn, std::uint8_t syndrome, bool last) {
  Response ack{.kind = Kind::kAck, .syndrome = syndrome, .last = last, .psn = psn,
               .msn = qp.r.msn};
  Response* before = tail(qp);
  if (before != nullptr && before->kind == Kind::kAck) {
    // A duplicate's acknowledgement never replaces a newer one or a NAK.
    const bool newer = seq_diff(psn, before->psn) >= 0;
    if (newer || last) *before = ack;
    return;
  }
  (void)push(qp, ack);
}

// Room for one more READ or atomic among max_dest_rd_atomic. Duplicates give way: a peer that
// sends a new request has the responses that they would repeat.
bool Responder::make_room(Qp& qp) {
  RecvSide& r = qp.r;
  const std::uint32_t most = qp.attr.max_dest_rd_atomic;
  if (r.q_ops < most && r.q_count + 1 < r.queue.size()) return true;
  const auto mask = static_cast<std::uint32_t>(r.queue.size()) - 1;
  const std::uint32_t count = r.q_count;
  const std::uint32_t head = r.q_head;
  r.q_count = r.q_ops = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Response item = r.queue[(head + i) & mask];
    if (item.kind == Kind::kAck) {
      Response* before = tail(qp);
      if (before != nullptr && before->kind == Kind::kAck) {
        *before = item;
        continue;
      }
    } else if (item.duplicate) {
      continue;
    }
    (void)push(qp, item);
  }
  return r.q_ops < most && r.q_count + 1 < r.queue.size();
}

void Responder::pop(Qp& qp) {
  RecvSide& r = qp.r;
  const bool op = r.queue[r.q_head].kind != Kind::kAck;
  r.q_head = (r.q_head + 1) & static_cast<std::uint32_t>(r.queue.size() - 1);
  --r.q_count;
  if (op) --r.q_ops;
}

void Responder::discard(Qp& qp) {
  ready_.remove(qp);
  qp.r.q_head = qp.r.q_count = qp.r.q_ops = 0;
}

unsigned Responder::run(unsigned budget) {
  unsigned sent = 0;
  for (std::size_t turns = ready_.size(); turns != 0 && sent < budget; --turns) {
    Qp* qp = ready_.pop();
    if (qp == nullptr) break;
    sent += emit(*qp, std::min(kQuantum, budget - sent));
    if (qp->r.q_count != 0) ready_.push(*qp);
  }
  return sent;
}

unsigned Responder::emit(Qp& qp, unsigned quota) {
  const HeaderTemplate* headers = nic_.qps.headers(qp);
  if (headers == nullptr) {
    nic_.count(hw::Counter::kDropAddress);
    discard(qp);
    return 0;
  }
  unsigned sent = 0;
  while (sent < quota && qp.r.q_count != 0) {
    Response& response = qp.r.queue[qp.r.q_head];
    if (response.kind != Kind::kRead) {
      emit_short(qp, response, *headers);
      pop(qp);
    } else if (emit_read(qp, response, *headers) && response.packets == 0) {
      pop(qp);
    }
    ++sent;
  }
  return sent;
}

void Responder::emit_short(Qp& qp, const Response& response, const HeaderTemplate& headers) {
  const bool atomic = response.kind == Kind::kAtomic;
  PacketBuilder packet(headers,
                       {.opcode = atomic ? Roce::kRcAtomicAck : Roce::kRcAck,
                        .dest_qpn = qp.attr.dest_qpn, .psn = response.psn,
                        .ext = hw::aeth::kBytes + (atomic ? hw::atomicack::kBytes : 0)});
  poke<hw::aeth::syndrome>(packet.ext(), atomic ? hw::kNoCredit : response.syndrome);
  poke<hw::aeth::msn>(packet.ext(), response.msn);
  if (atomic) poke<hw::atomicack::value>(packet.ext() + hw::aeth::kBytes, response.va);
  nic_.transmit(packet.seal(), 0);
}

// One response packet; false when memory was not to be had and the QP failed.
bool Responder::emit_read(Qp& qp, Response& response, const HeaderTemplate& headers) {
  const bool last = response.packets == 1;
  const bool aeth = response.first || last;
  const std::size_t payload = last ? response.left : qp.mtu();
  const Roce opcode = response.first ? (last ? Roce::kRcReadRspOnly : Roce::kRcReadRspFirst)
                                     : (last ? Roce::kRcReadRspLast : Roce::kRcReadRspMiddle);
  PacketBuilder packet(headers, {.opcode = opcode, .dest_qpn = qp.attr.dest_qpn,
                                 .psn = response.psn, .ext = aeth ? hw::aeth::kBytes : 0,
                                 .payload = payload});
  if (aeth) {
    poke<hw::aeth::syndrome>(packet.ext(), hw::kNoCredit);
    poke<hw::aeth::msn>(packet.ext(), response.msn);
  }
  const Rights rights{qp.pd, access_bit(hw::Access::kRemoteRead), false};
  nic_.spend(Cost::kDma);
  const Fault fault = nic_.memory.read(response.rkey, rights, response.va, packet.payload());
  if (fault != Fault::kNone) {
    read_failed(qp, response, fault);
    return false;
  }
  nic_.transmit(packet.seal(), payload);
  nic_.count(hw::Counter::kTxBytes, payload);
  response.first = false;
  response.va += payload;
  response.left -= static_cast<std::uint32_t>(payload);
  response.psn = seq_add(response.psn, 1);
  ++response.sent;
  --response.packets;
  return true;
}

// The MR went away under a READ that had been accepted.
void Responder::read_failed(Qp& qp, const Response& response, Fault fault) {
  Packet at;
  at.psn = response.psn;
  const bool duplicate = response.duplicate;
  discard(qp);
  // A late duplicate must not kill a QP whose peer was content long ago.
  if (duplicate || qp.state == hw::QpState::kErr) return;
  (void)refuse(qp, at,
               fault == Fault::kDma ? hw::AethSyndrome::kNakOp : hw::AethSyndrome::kNakAccess);
}

}  // namespace ordma::twin
