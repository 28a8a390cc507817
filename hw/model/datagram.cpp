// SPDX-License-Identifier: BSD-2-Clause
#include "datagram.hpp"

#include <algorithm>
#include <cstring>

#include "nic.hpp"
#include "requester.hpp"

namespace ordma::twin {
namespace {

inline constexpr std::size_t kAvOffset = 16;

}  // namespace

hw::CmdStatus Multicast::attach(const Gid& gid, Qp& qp) {
  for (const Member& m : groups_) {
    if (m.gid == gid && m.qp == &qp) return hw::CmdStatus::kExists;
  }
  if (groups_.size() >= max_) return hw::CmdStatus::kNoResource;
  groups_.push_back({gid, &qp});
  return hw::CmdStatus::kOk;
}

hw::CmdStatus Multicast::detach(const Gid& gid, const Qp& qp) {
  const auto n = std::erase_if(groups_, [&](const Member& m) {
    return m.gid == gid && m.qp == &qp;
  });
  return n != 0 ? hw::CmdStatus::kOk : hw::CmdStatus::kNoObject;
}

void Multicast::forget(const Qp& qp) {
  std::erase_if(groups_, [&](const Member& m) { return m.qp == &qp; });
}

bool Multicast::has(const Gid& gid) const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [&](const Member& m) { return m.gid == gid; });
}

void Datagrams::receive(Qp& qp, const Packet& packet) {
  if (!nic_.is_local_gid(packet.dgid, packet.vlan)) {
    return nic_.count(hw::Counter::kDropAddress);
  }
  deliver(qp, packet);
}

void Datagrams::receive_multicast(const Packet& packet) {
  if (!is_multicast(packet.dgid)) return nic_.count(hw::Counter::kDropAddress);
  if (!nic_.mcast.has(packet.dgid)) return nic_.count(hw::Counter::kDropNoQp);
  nic_.mcast.for_each(packet.dgid, [&](Qp& qp) {
    if (qp.receives()) deliver(qp, packet);
  });
}

void Datagrams::deliver(Qp& qp, const Packet& packet) {
  const bool imm = packet.opcode == raw_value(hw::RoceOp::kUdSendOnlyImm);
  if (!imm && packet.opcode != raw_value(hw::RoceOp::kUdSendOnly)) {
    return nic_.count(hw::Counter::kDropOpcode);
  }
  const std::size_t ext = hw::deth::kBytes + (imm ? hw::immdt::kBytes : 0);
  if (packet.body.size() < ext) return nic_.count(hw::Counter::kDropMalformed);
  if (peek<hw::deth::qkey>(packet.body.data()) != qp.attr.qkey) {
    return nic_.count(hw::Counter::kDropQkey);
  }
  nic_.count(hw::Counter::kRxPackets);
  // An aborted placement left its WQE: it serves the next datagram.
  switch (qp.r.wqe.active ? TakeResult::kOk : nic_.receive.take(qp)) {
    case TakeResult::kOk: return place(qp, packet, ext);
    case TakeResult::kNone: return nic_.count(hw::Counter::kOutOfBuffer);
    case TakeResult::kBad: return fail(qp, hw::WcStatus::kLocQpOpErr);
  }
}

void Datagrams::place(Qp& qp, const Packet& packet, std::size_t ext) {
  RecvWqe& wqe = qp.r.wqe;
  const auto payload = packet.body.subspan(ext);
  if (hw::kGrhBytes + payload.size() > wqe.capacity) {
    return fail(qp, hw::WcStatus::kLocLenErr);
  }
  // The network header fills the GRH area from its end: an IPv4 header leaves the start untouched.
  // An IPv6 header stays as it came, since next header 17 is what tells RoCEv2 from v1.
  std::array<std::byte, hw::kGrhBytes> grh{};
  const std::size_t skip = hw::kGrhBytes - packet.l3.size();
  std::copy(packet.l3.begin(), packet.l3.end(), grh.begin() + static_cast<std::ptrdiff_t>(skip));
  for (std::size_t left = skip; left != 0 && wqe.cursor.sge < wqe.num_sge;) {
    const std::size_t n = std::min<std::size_t>(left, wqe.sges[wqe.cursor.sge].length);
    left -= n;
    if (n == wqe.sges[wqe.cursor.sge].length) {
      ++wqe.cursor.sge;
    } else {
      wqe.cursor.offset = static_cast<std::uint32_t>(n);
    }
  }
  if (nic_.receive.scatter(qp, wqe, std::span(grh).subspan(skip)) != Fault::kNone ||
      nic_.receive.scatter(qp, wqe, payload) != Fault::kNone) {
    return fail(qp, hw::WcStatus::kLocProtErr);
  }
  nic_.count(hw::Counter::kRxBytes, payload.size());
  const bool imm = ext > hw::deth::kBytes;
  std::uint32_t imm_data = 0;
  if (imm) std::memcpy(&imm_data, packet.body.data() + hw::deth::kBytes, 4);
  const bool gsi = qp.type == hw::QpType::kGsi;
  wqe.active = false;
  nic_.cqs.push(*qp.rcq,
                {.wr_id = wqe.wr_id, .qpn = qp.qpn, .opcode = hw::WcOp::kRecv,
                 .wqe_index = wqe.index,
                 .byte_len = static_cast<std::uint32_t>(hw::kGrhBytes + payload.size()),
                 .imm = imm_data,
                 .src_qpn = static_cast<std::uint32_t>(
                     peek<hw::deth::src_qpn>(packet.body.data())),
                 .is_recv = true, .has_imm = imm, .has_grh = true, .ipv4 = packet.ipv4,
                 .solicited = packet.solicited,
                 .sl = static_cast<std::uint8_t>(packet.tclass >> 5),
                 .smac = gsi ? packet.smac : 0,
                 .vlan = gsi ? packet.vlan : std::uint16_t{0}});
}

void Datagrams::fail(Qp& qp, hw::WcStatus status) {
  RecvWqe& wqe = qp.r.wqe;
  nic_.count(hw::Counter::kRespCqeError);
  if (status == hw::WcStatus::kLocLenErr) nic_.count(hw::Counter::kRespLocalLengthError);
  if (wqe.active) {
    wqe.active = false;
    nic_.cqs.push(*qp.rcq, {.wr_id = wqe.wr_id, .qpn = qp.qpn, .opcode = hw::WcOp::kRecv,
                            .status = status, .wqe_index = wqe.index, .is_recv = true});
  }
  nic_.qps.enter_error(qp);
  nic_.events.raise_qp(qp, kStickyError, hw::EventType::kQpError,
                       static_cast<std::uint8_t>(status));
}

const HeaderTemplate* Requester::datagram_headers(Qp& qp) {
  const auto av = std::span<const std::byte>(qp.s.tx.wqe + kAvOffset, hw::av::kBytes);
  // Consecutive messages mostly go to one peer.
  if (qp.headers.size != 0 && qp.headers_gid == nic_.gid_generation &&
      std::equal(av.begin(), av.end(), qp.last_av.begin())) {
    return &qp.headers;
  }
  const auto index = hw::get(av, hw::av::sgid_index);
  if (index >= nic_.gids.size() || !nic_.gids[index].valid) return nullptr;
  const GidEntry& source = nic_.gids[index];
  Route route{.smac = source.mac, .dmac = hw::get(av, hw::av::dmac), .sgid = source.gid,
              .ipv4 = source.ipv4, .vlan = source.vlan};
  const auto dgid = hw::raw(av, hw::av::dgid);
  std::copy(dgid.begin(), dgid.end(), route.dgid.begin());
  route.hop_limit = static_cast<std::uint8_t>(hw::get(av, hw::av::hop_limit));
  route.tclass = static_cast<std::uint8_t>(hw::get(av, hw::av::tclass));
  route.sl = static_cast<std::uint8_t>(hw::get(av, hw::av::sl));
  route.flow_label = static_cast<std::uint32_t>(hw::get(av, hw::av::flow_label));
  const auto dest = static_cast<std::uint32_t>(hw::get(av, hw::av::dest_qpn));
  const auto sport = static_cast<std::uint16_t>(hw::get(av, hw::av::sport));
  route.sport = sport != 0 ? sport : derive_sport(qp.qpn, dest);
  qp.headers = make_template(route);
  qp.headers_gid = nic_.gid_generation;
  std::copy(av.begin(), av.end(), qp.last_av.begin());
  return &qp.headers;
}

bool Requester::send_datagram(Qp& qp) {
  TxMsg& tx = qp.s.tx;
  const HeaderTemplate* headers = datagram_headers(qp);
  if (headers == nullptr) {
    fault(qp, qp.s.tx_log, tx.sq_index, tx.opcode, hw::WcStatus::kLocQpOpErr);
    return false;
  }
  const auto head = std::span<const std::byte>(tx.wqe, hw::wqe::kBytes);
  const auto av = std::span<const std::byte>(qp.last_av);
  const bool imm = tx.opcode == hw::WqeOp::kSendImm;
  const auto dest = static_cast<std::uint32_t>(hw::get(av, hw::av::dest_qpn));
  auto qkey = static_cast<std::uint32_t>(hw::get(av, hw::av::qkey));
  constexpr std::uint32_t kPrivileged = 1u << 31;
  if ((qkey & kPrivileged) != 0 && !qp.kernel()) qkey = qp.attr.qkey;
  PacketBuilder packet(*headers,
                       {.opcode = imm ? hw::RoceOp::kUdSendOnlyImm : hw::RoceOp::kUdSendOnly,
                        .solicited = tx.solicited, .dest_qpn = dest, .psn = qp.s.tx_psn,
                        .ext = hw::deth::kBytes + (imm ? hw::immdt::kBytes : 0),
                        .payload = tx.length});
  std::memset(packet.ext(), 0, hw::deth::kBytes);
  poke<hw::deth::qkey>(packet.ext(), qkey);
  poke<hw::deth::src_qpn>(packet.ext(), qp.qpn);
  if (imm) {
    const auto value = static_cast<std::uint32_t>(hw::get(head, hw::wqe::imm));
    std::memcpy(packet.ext() + hw::deth::kBytes, &value, 4);
  }
  if (gather(qp, tx, packet.payload()) != Fault::kNone) {
    fault(qp, qp.s.tx_log, tx.sq_index, tx.opcode, hw::WcStatus::kLocProtErr);
    return false;
  }
  Frame frame = packet.seal();
  if (dest == hw::kMcastQpn) nic_.loop_multicast(frame);
  nic_.transmit(std::move(frame), tx.length);
  packet_sent(qp, 1, tx.length);
  return true;
}

}  // namespace ordma::twin
