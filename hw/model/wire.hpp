// SPDX-License-Identifier: BSD-2-Clause
// Frames: building, parsing and the ICRC. Knows packet headers and nothing of the NIC's state.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "bits.hpp"
#include "engine/frame.hpp"

namespace ordma::twin {

using Gid = std::array<std::byte, 16>;

inline constexpr std::uint16_t kNoVlan = 0xffff;

// IPv4 addresses are ::ffff:a.b.c.d.
[[nodiscard]] bool is_v4_mapped(const Gid& gid);
[[nodiscard]] bool is_multicast(const Gid& gid);

struct Route {
  std::uint64_t smac = 0;
  std::uint64_t dmac = 0;
  Gid sgid{};
  Gid dgid{};
  bool ipv4 = false;
  std::uint16_t vlan = kNoVlan;
  std::uint8_t hop_limit = 0;
  std::uint8_t tclass = 0;
  std::uint8_t sl = 0;
  std::uint32_t flow_label = 0;
  std::uint16_t sport = 0;
};

// Everything up to and including the BTH that does not change from packet to packet.
struct HeaderTemplate {
  static constexpr std::size_t kMaxBytes =
      hw::eth::kBytes + 4 + hw::ipv6::kBytes + hw::udp::kBytes + hw::bth::kBytes;
  std::array<std::byte, kMaxBytes> bytes{};
  std::uint16_t size = 0;  // 0: not built
  std::uint16_t l3 = 0;
  std::uint16_t udp = 0;
  std::uint16_t bth = 0;
  bool ipv4 = false;
  std::uint32_t ip_sum = 0;  // of the IPv4 header with zero length and checksum
};
[[nodiscard]] HeaderTemplate make_template(const Route& route);

struct PacketSpec {
  hw::RoceOp opcode{};
  bool solicited = false;
  bool ack_req = false;
  std::uint32_t dest_qpn = 0;
  std::uint32_t psn = 0;
  std::size_t ext = 0;      // bytes of extension headers
  std::size_t payload = 0;  // without pad
};

// A frame under construction: the caller fills ext() and payload(), then seals it.
class PacketBuilder {
 public:
  PacketBuilder(const HeaderTemplate& headers, const PacketSpec& spec);
  [[nodiscard]] std::byte* ext() { return ext_; }
  [[nodiscard]] std::span<std::byte> payload() { return payload_; }
  // Computes the ICRC, then the UDP checksum over IPv6 (the ICRC is under it).
  [[nodiscard]] Frame seal();

 private:
  Frame frame_;
  std::byte* base_;
  std::byte* ext_;
  std::span<std::byte> payload_;
  const HeaderTemplate& headers_;
};

// CRC of everything the ICRC covers; `l3` starts at the IP header and ends before the ICRC.
[[nodiscard]] std::uint32_t icrc(bool ipv4, std::span<const std::byte> l3);

struct Packet {
  std::uint64_t smac = 0;
  std::uint64_t dmac = 0;
  std::uint16_t vlan = kNoVlan;
  bool ipv4 = false;
  bool solicited = false;
  bool ack_req = false;
  std::uint8_t tclass = 0;
  std::uint8_t opcode = 0;
  std::uint16_t pkey = 0;
  std::uint32_t dest_qpn = 0;
  std::uint32_t psn = 0;
  Gid sgid{};
  Gid dgid{};
  std::span<const std::byte> l3;    // IP header alone
  std::span<const std::byte> body;  // behind the BTH, without pad and ICRC
};

enum class Parsed : std::uint8_t { kRoce, kOther, kMalformed, kBadIcrc };
// kOther is everything that is not RoCEv2 and belongs to the network interface. Neither the IPv4
// header checksum nor the UDP checksum is looked at: the ICRC covers every field that RoCE uses
// and masks those that routers change.
[[nodiscard]] Parsed parse(std::span<const std::byte> frame, Packet& out);

}  // namespace ordma::twin
