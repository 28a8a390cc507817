// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fabric/frame.hpp"

namespace ordma::fabric {

// Where the headers of a frame lie, as a switch sees them. Everything named here is inside the
// frame; what is truncated or unknown stays at its "none" value.
struct PacketLayout {
  std::uint8_t ip_version = 0;  // 0 = no IP
  std::size_t ip_offset = 0;
  std::size_t udp_offset = 0;  // 0 = no UDP header, or a fragment
  std::size_t udp_bytes = 0;   // UDP header and payload that the lengths promise and the frame has
};

[[nodiscard]] PacketLayout parse_packet(std::span<const std::uint8_t> frame);

// Bytes before the layer-3 header (14, plus 4 for each of at most two VLAN tags).
[[nodiscard]] std::size_t link_header_bytes(std::span<const std::uint8_t> frame);

[[nodiscard]] std::optional<std::uint8_t> dscp_of(std::span<const std::uint8_t> frame,
                                                  const PacketLayout& layout);

// Sets CE on an ECN-capable packet that does not carry it yet; false when nothing was changed.
bool mark_congestion(Frame& frame);

// Cuts a RoCEv2 packet down to `keep_bytes` behind its UDP header and gives it `dscp`; lengths and
// checksums stay consistent. False when it is no RoCEv2 packet or there is nothing to cut.
bool trim_packet(Frame& frame, std::size_t keep_bytes, std::uint8_t dscp,
                 std::optional<std::uint8_t> only_dscp);

}  // namespace ordma::fabric
