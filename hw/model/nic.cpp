// SPDX-License-Identifier: BSD-2-Clause
#include "nic.hpp"

#include <algorithm>
#include <bit>

namespace ordma::twin {
namespace {

// Register STATUS.
inline constexpr std::uint64_t kStatusReady = 1;
inline constexpr std::uint64_t kStatusFatal = 2;
inline constexpr std::uint64_t kStatusLink = 4;
inline constexpr unsigned kStatusReasonShift = 8;

EngineConfig sane(EngineConfig c) {
  constexpr std::uint32_t kQpMax = 1u << hw::kQpnIndexBits;
  c.limits.max_qp = std::clamp(c.limits.max_qp, hw::kGsiQpn + 1, kQpMax);
  c.limits.max_page = std::max(c.limits.max_page, hw::kDriverPage + 1);
  c.limits.max_uctx = std::max(c.limits.max_uctx, 1u);
  c.limits.max_sge = std::min<std::uint32_t>(c.limits.max_sge, kSgeMax);
  c.limits.max_inline =
      std::min<std::uint32_t>(c.limits.max_inline, kWqeMax - hw::kWqeUdDataOff);
  c.limits.max_rd_atomic = std::min(c.limits.max_rd_atomic, 128u);
  c.limits.max_gid = std::clamp(c.limits.max_gid, 1u, 256u);
  c.port_speed_mbps = std::max(c.port_speed_mbps, 1u);
  return c;
}

}  // namespace

Nic::Nic(const EngineConfig& config_in, HostPort& host_in)
    : config(sane(config_in)),
      host(host_in),
      gids(config.limits.max_gid),
      memory(host, config.limits.max_mr),
      events(*this),
      cqs(*this, config.limits.max_cq),
      srqs(*this, config.limits.max_srq),
      receive(*this),
      qps(*this, config.limits.max_qp),
      mcast(config.limits.max_mcast),
      doorbells(*this, config.limits.max_page),
      commands(*this),
      requester(*this),
      responder(*this),
      datagrams(*this),
      eth(*this),
      receiver(*this) {
  doorbells.reset();
}

std::uint64_t Nic::status() const {
  std::uint64_t v = 0;
  if (ready) v |= kStatusReady;
  if (fatal()) v |= kStatusFatal | raw_value(fatal_why) << kStatusReasonShift;
  if (link_up()) v |= kStatusLink;
  return v;
}

void Nic::reset(std::uint64_t nonce) {
  if (nonce == 0 || nonce == regs.reset_echo) return;
  ready = false;
  regs = {};
  fatal_why = hw::Fatal::kNone;
  // QPs first: they hold pointers to the rest.
  qps.reset();
  cqs.reset();
  srqs.reset();
  mcast.reset();
  eth.reset();
  memory.reset();
  doorbells.reset();
  receiver.reset();
  std::fill(gids.begin(), gids.end(), GidEntry{});
  ++gid_generation;
  counters.fill(0);
  stats = {};
  regs.reset_echo = nonce;
  host.register_changed(hw::reg::kStatus, status());
  host.register_changed(hw::reg::kResetEcho, nonce);
}

void Nic::set_enable(std::uint64_t value) {
  regs.enable = value & 1;
  const bool start = regs.enable != 0 && !ready;
  if (start && !fatal()) {
    if (!commands.start()) return fail(hw::Fatal::kCmd);
    ready = true;
  } else if (regs.enable == 0) {
    ready = false;
  }
  host.register_changed(hw::reg::kStatus, status());
}

void Nic::set_link(std::uint64_t value) {
  const bool before = link_up();
  regs.link_ctrl = value;
  if (link_up() == before) return;
  host.register_changed(hw::reg::kStatus, status());
  if (running()) events.port_changed();
}

void Nic::fail(hw::Fatal why) {
  if (fatal()) return;
  fatal_why = why;
  ready = false;
  host.register_changed(hw::reg::kStatus, status());
}

void Nic::transmit(Frame frame, std::uint64_t payload) {
  (void)payload;
  count(hw::Counter::kTxPackets);
  send_frame(std::move(frame));
}

void Nic::send_frame(Frame frame) {
  spend_wire(frame.size());
  if (!link_up()) return;
  ++stats.frames_out;
  host.packet_out(std::move(frame));
}

void Nic::loop_multicast(const Frame& frame) {
  Packet packet;
  if (parse(std::as_bytes(frame.bytes()), packet) == Parsed::kRoce && mcast.has(packet.dgid)) {
    receiver.enqueue(frame.share());
  }
}

bool Nic::is_local_mac(std::uint64_t mac) const {
  // The group bit is that of the first octet.
  if ((mac & 1) != 0 || mac == config.mac) return true;
  return std::any_of(gids.begin(), gids.end(),
                     [&](const GidEntry& g) { return g.valid && g.mac == mac; });
}

bool Nic::is_local_gid(const Gid& gid, std::uint16_t vlan) const {
  return std::any_of(gids.begin(), gids.end(), [&](const GidEntry& g) {
    return g.valid && g.gid == gid && g.vlan == vlan;
  });
}

std::uint32_t Nic::result_entries(const Qp& qp) const {
  return std::bit_ceil(std::max(1u, unsigned{qp.attr.max_dest_rd_atomic}));
}

}  // namespace ordma::twin
