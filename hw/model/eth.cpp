// SPDX-License-Identifier: BSD-2-Clause
#include "eth.hpp"

#include "nic.hpp"

namespace ordma::twin {
namespace {

inline constexpr std::uint64_t kBroadcast = 0xffffffffffff;
inline constexpr std::uint64_t kGroupBit = 1;  // of the first octet, which is the low byte

}  // namespace

void Ethernet::receive(std::span<const std::byte> frame, const Packet& packet) {
  const std::uint64_t to = packet.dmac;
  const bool group = (to & kGroupBit) != 0;
  // Multicast filtering proper is the stack's: the NIC passes groups when told to.
  const bool wanted = filter.promisc || to == kBroadcast ||
                      (group ? filter.allmulti : to == filter.mac);
  if (qp == nullptr || !qp->receives() || !wanted) return nic_.count(hw::Counter::kEthDrop);
  RecvWqe& wqe = qp->r.wqe;
  if (!wqe.active) {
    switch (nic_.receive.take(*qp)) {
      case TakeResult::kOk: break;
      case TakeResult::kNone: return nic_.count(hw::Counter::kEthDrop);
      case TakeResult::kBad: return fail(hw::WcStatus::kLocQpOpErr);
    }
  }
  // A frame that does not fit is dropped and leaves the buffer for the next one.
  if (frame.size() > wqe.capacity) return nic_.count(hw::Counter::kEthDrop);
  if (nic_.receive.scatter(*qp, wqe, frame) != Fault::kNone) {
    return fail(hw::WcStatus::kLocProtErr);
  }
  wqe.active = false;
  nic_.count(hw::Counter::kEthRx);
  nic_.cqs.push(*qp->rcq, {.wr_id = wqe.wr_id, .qpn = qp->qpn, .opcode = hw::WcOp::kRecv,
                           .wqe_index = wqe.index,
                           .byte_len = static_cast<std::uint32_t>(frame.size()),
                           .is_recv = true});
}

void Ethernet::fail(hw::WcStatus status) {
  RecvWqe& wqe = qp->r.wqe;
  nic_.count(hw::Counter::kRespCqeError);
  if (wqe.active) {
    wqe.active = false;
    nic_.cqs.push(*qp->rcq, {.wr_id = wqe.wr_id, .qpn = qp->qpn, .opcode = hw::WcOp::kRecv,
                             .status = status, .wqe_index = wqe.index, .is_recv = true});
  }
  nic_.qps.enter_error(*qp);
  nic_.events.raise_qp(*qp, kStickyError, hw::EventType::kQpError,
                       static_cast<std::uint8_t>(status));
}

}  // namespace ordma::twin
