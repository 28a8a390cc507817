// SPDX-License-Identifier: BSD-2-Clause
// All blocks of one NIC and what they share: time, counters, registers, the port.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "command.hpp"
#include "cq.hpp"
#include "datagram.hpp"
#include "doorbell.hpp"
#include "engine/engine.hpp"
#include "eth.hpp"
#include "events.hpp"
#include "memory.hpp"
#include "objects.hpp"
#include "qp.hpp"
#include "receive.hpp"
#include "requester.hpp"
#include "responder.hpp"
#include "srq.hpp"

namespace ordma::twin {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};
inline constexpr std::size_t kCounters = hw::kCounterTable.size();

// Registers that software writes. A reset clears them.
struct Registers {
  std::uint64_t reset_echo = 0;
  std::uint64_t cmd_base = 0, cmd_rsp = 0, rcmd_base = 0, eq_base = 0;
  std::uint64_t cmd_log = 0, rcmd_log = 0, eq_log = 0, eq_ci = 0;
  std::uint64_t link_ctrl = 0;
  std::uint64_t enable = 0;
};

// The stated cost model, in ns of device time. Bytes cost what the port's speed says.
namespace Cost {
inline constexpr std::uint64_t kPacket = 10;  // parse or build
inline constexpr std::uint64_t kFetch = 5;    // WQEs of one read
inline constexpr std::uint64_t kDma = 5;      // one payload transfer
}  // namespace Cost

struct InternalStats {
  std::uint64_t bad_rewinds = 0;
  std::uint64_t steps = 0;
  std::uint64_t frames_in = 0;
  std::uint64_t frames_out = 0;
};

// UDP source port of a flow whose owner named none: 0xc000..0xffff, stable for the pair of QPs.
[[nodiscard]] constexpr std::uint16_t derive_sport(std::uint32_t qpn, std::uint32_t dest) {
  const std::uint32_t mixed = (qpn * 0x9e3779b1u) ^ (dest * 0x85ebca77u);
  return static_cast<std::uint16_t>(0xc000u | (mixed >> 16 & 0x3fffu));
}

struct Nic {
  Nic(const EngineConfig& config_in, HostPort& host_in);

  void reset(std::uint64_t nonce);
  void set_enable(std::uint64_t value);
  void set_link(std::uint64_t value);
  // Stops everything until the next reset.
  void fail(hw::Fatal why);
  [[nodiscard]] bool fatal() const { return fatal_why != hw::Fatal::kNone; }
  [[nodiscard]] bool running() const { return ready && !fatal(); }
  [[nodiscard]] bool link_up() const { return (regs.link_ctrl & 1) != 0; }
  [[nodiscard]] std::uint64_t status() const;

  void count(hw::Counter c, std::uint64_t n = 1) { counters[raw_value(c)] += n; }
  void spend(std::uint64_t ns) { busy_ns += ns; }
  void spend_wire(std::uint64_t bytes) {
    busy_ns += Cost::kPacket + bytes * 8000 / config.port_speed_mbps;
  }
  [[nodiscard]] const EngineLimits& limits() const { return config.limits; }

  void transmit(Frame frame, std::uint64_t payload);  // RoCE
  void send_frame(Frame frame);
  // The port's own members of the group hear what this NIC sends; a switch never returns it.
  void loop_multicast(const Frame& frame);
  [[nodiscard]] bool is_local_mac(std::uint64_t mac) const;
  [[nodiscard]] bool is_local_gid(const Gid& gid, std::uint16_t vlan) const;
  // Entries of a QP's atomic result ring.
  [[nodiscard]] std::uint32_t result_entries(const Qp& qp) const;

  EngineConfig config;
  HostPort& host;
  Registers regs;
  bool ready = false;
  hw::Fatal fatal_why = hw::Fatal::kNone;
  std::uint64_t now = 0;
  std::uint64_t busy_ns = 0;
  std::array<std::uint64_t, kCounters> counters{};
  InternalStats stats;
  std::vector<GidEntry> gids;
  std::uint32_t gid_generation = 1;

  Memory memory;
  Events events;
  CompletionQueues cqs;
  SharedQueues srqs;
  ReceiveQueues receive;
  QpTable qps;
  Multicast mcast;
  Doorbells doorbells;
  Commands commands;
  Requester requester;
  Responder responder;
  Datagrams datagrams;
  Ethernet eth;
  Receiver receiver;
};

}  // namespace ordma::twin
