// SPDX-License-Identifier: BSD-2-Clause
#include "receive.hpp"

#include "nic.hpp"

namespace ordma::twin {
namespace {

// Holds the request packets in flight of 64 senders at their limit.
inline constexpr std::size_t kQueueFrames = 16384;
inline constexpr std::uint16_t kPkeyMask = 0x7fff;  // without the membership bit

}  // namespace

Receiver::Receiver(Nic& nic) : nic_(nic), ring_(kQueueFrames) {}

void Receiver::reset() {
  for (Frame& frame : ring_) frame = Frame();
  head_ = count_ = 0;
}

void Receiver::enqueue(Frame frame) {
  if (count_ == ring_.size()) return nic_.count(hw::Counter::kDropOverrun);
  ring_[(head_ + count_) & (ring_.size() - 1)] = std::move(frame);
  ++count_;
}

unsigned Receiver::run(unsigned budget) {
  unsigned done = 0;
  while (done < budget && count_ != 0) {
    const Frame frame = std::move(ring_[head_]);
    head_ = (head_ + 1) & (ring_.size() - 1);
    --count_;
    handle(frame);
    ++done;
  }
  return done;
}

void Receiver::handle(const Frame& frame) {
  nic_.spend_wire(frame.size());
  const auto bytes = std::as_bytes(frame.bytes());
  Packet packet;
  switch (parse(bytes, packet)) {
    case Parsed::kRoce: return roce(packet);
    case Parsed::kOther: return nic_.eth.receive(bytes, packet);
    case Parsed::kBadIcrc: return nic_.count(hw::Counter::kRxIcrcEncapsulated);
    case Parsed::kMalformed: return nic_.count(hw::Counter::kDropMalformed);
  }
}

void Receiver::roce(const Packet& packet) {
  if (!nic_.is_local_mac(packet.dmac)) return nic_.count(hw::Counter::kDropAddress);
  if ((packet.pkey & kPkeyMask) != (hw::kDefaultPkey & kPkeyMask)) {
    return nic_.count(hw::Counter::kDropPkey);
  }
  if (packet.dest_qpn == hw::kMcastQpn) return nic_.datagrams.receive_multicast(packet);
  Qp* qp = nic_.qps.find(packet.dest_qpn);
  if (qp == nullptr || qp->type == hw::QpType::kEth) return nic_.count(hw::Counter::kDropNoQp);
  if (!qp->receives()) return nic_.count(hw::Counter::kDropState);
  if (qp->datagram()) return nic_.datagrams.receive(*qp, packet);
  connected(*qp, packet);
}

bool Receiver::address_ok(const Qp& qp, const Packet& packet) const {
  const GidEntry& own = nic_.gids[qp.attr.sgid_index];
  return own.valid && packet.sgid == qp.attr.dgid && packet.dgid == own.gid &&
         packet.vlan == own.vlan;
}

void Receiver::connected(Qp& qp, const Packet& packet) {
  if (!address_ok(qp, packet)) return nic_.count(hw::Counter::kDropAddress);
  const bool uc_opcode = packet.opcode >= raw_value(hw::RoceOp::kUcSendFirst) &&
                         packet.opcode <= raw_value(hw::RoceOp::kUcWriteOnlyImm);
  const bool uc = qp.type == hw::QpType::kUc;
  const bool rc_opcode = packet.opcode <= raw_value(hw::RoceOp::kRcSendOnlyInv);
  if (uc ? !uc_opcode : !rc_opcode) return nic_.count(hw::Counter::kDropOpcode);
  if (!uc) return reliable(qp, packet);
  const RequestOp op = request_op(packet.opcode);
  if (op.kind == RequestOp::Kind::kNone) return nic_.count(hw::Counter::kDropOpcode);
  nic_.count(hw::Counter::kRxPackets);
  nic_.responder.on_unreliable(qp, packet, op);
}

void Receiver::reliable(Qp& qp, const Packet& packet) {
  using enum hw::RoceOp;
  const auto opcode = static_cast<hw::RoceOp>(packet.opcode);
  const bool read = opcode >= kRcReadRspFirst && opcode <= kRcReadRspOnly;
  if (read || opcode == kRcAck || opcode == kRcAtomicAck) {
    if (qp.state != hw::QpState::kRts && qp.state != hw::QpState::kSqd) {
      return nic_.count(hw::Counter::kDropState);
    }
    nic_.count(hw::Counter::kRxPackets);
    if (read) return nic_.requester.on_read_response(qp, packet);
    if (opcode == kRcAck) return nic_.requester.on_ack(qp, packet);
    return nic_.requester.on_atomic_response(qp, packet);
  }
  const RequestOp op = request_op(packet.opcode);
  if (op.kind == RequestOp::Kind::kNone) return nic_.count(hw::Counter::kDropOpcode);
  nic_.count(hw::Counter::kRxPackets);
  nic_.responder.on_request(qp, packet, op);
}

}  // namespace ordma::twin
