// SPDX-License-Identifier: BSD-2-Clause
#include "packet.hpp"

#include <algorithm>

#include "fabric/fabric.hpp"
#include "rng.hpp"

namespace ordma::fabric {
namespace {

constexpr std::uint16_t kEtherIpv4 = 0x0800;
constexpr std::uint16_t kEtherIpv6 = 0x86dd;
constexpr std::uint16_t kEtherVlan = 0x8100;
constexpr std::uint16_t kEtherServiceVlan = 0x88a8;
constexpr std::size_t kVlanTagsMax = 2;
constexpr std::size_t kVlanTagBytes = 4;
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::size_t kUdpBytes = 8;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint16_t kRocePort = 4791;
constexpr std::uint8_t kEcnCe = 3;

using Bytes = std::span<const std::uint8_t>;

std::uint16_t load16(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

void store16(std::span<std::uint8_t> bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::uint8_t>(value >> 8);
  bytes[at + 1] = static_cast<std::uint8_t>(value);
}

std::uint64_t load48(Bytes bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    value = value << 8 | bytes[at + i];
  }
  return value;
}

std::uint32_t ones_sum(Bytes bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    sum += load16(bytes, i);
  }
  if (bytes.size() % 2 != 0) {
    sum += static_cast<std::uint32_t>(bytes.back()) << 8;
  }
  return sum;
}

std::uint16_t ones_complement(std::uint32_t sum) {
  while (sum > 0xffff) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(~sum);
}

// Replaces one 16-bit word of an IPv4 header and updates the checksum by difference, as a switch
// does: a header that came in wrong goes out wrong.
void replace_ipv4_word(std::span<std::uint8_t> frame, std::size_t ip, std::size_t at,
                       std::uint16_t value) {
  const std::uint16_t before = load16(frame, ip + at);
  const std::uint16_t checksum = load16(frame, ip + 10);
  const std::uint32_t sum = static_cast<std::uint16_t>(~checksum) +
                            static_cast<std::uint32_t>(static_cast<std::uint16_t>(~before)) + value;
  store16(frame, ip + at, value);
  store16(frame, ip + 10, ones_complement(sum));
}

std::uint8_t traffic_class(Bytes frame, const PacketLayout& layout) {
  const std::size_t ip = layout.ip_offset;
  if (layout.ip_version == 4) {
    return frame[ip + 1];
  }
  return static_cast<std::uint8_t>((frame[ip] & 0x0f) << 4 | frame[ip + 1] >> 4);
}

void set_traffic_class(std::span<std::uint8_t> frame, const PacketLayout& layout,
                       std::uint8_t value) {
  const std::size_t ip = layout.ip_offset;
  if (layout.ip_version == 4) {
    replace_ipv4_word(frame, ip, 0, static_cast<std::uint16_t>(frame[ip] << 8 | value));
    return;
  }
  frame[ip] = static_cast<std::uint8_t>((frame[ip] & 0xf0) | value >> 4);
  frame[ip + 1] = static_cast<std::uint8_t>((frame[ip + 1] & 0x0f) | value << 4);
}

void parse_ipv4(Bytes frame, PacketLayout& layout) {
  const std::size_t ip = layout.ip_offset;
  if (frame.size() < ip + kIpv4Bytes || frame[ip] >> 4 != 4) {
    return;
  }
  const std::size_t header = static_cast<std::size_t>(frame[ip] & 0x0f) * 4;
  const std::size_t total = load16(frame, ip + 2);
  if (header < kIpv4Bytes || total < header || frame.size() < ip + total) {
    return;
  }
  layout.ip_version = 4;
  const bool fragment = (load16(frame, ip + 6) & 0x3fff) != 0;
  if (frame[ip + 9] == kProtocolUdp && !fragment && total >= header + kUdpBytes) {
    layout.udp_offset = ip + header;
    layout.udp_bytes = total - header;
  }
}

void parse_ipv6(Bytes frame, PacketLayout& layout) {
  const std::size_t ip = layout.ip_offset;
  if (frame.size() < ip + kIpv6Bytes || frame[ip] >> 4 != 6) {
    return;
  }
  const std::size_t payload = load16(frame, ip + 4);
  if (frame.size() < ip + kIpv6Bytes + payload) {
    return;
  }
  layout.ip_version = 6;
  if (frame[ip + 6] == kProtocolUdp && payload >= kUdpBytes) {
    layout.udp_offset = ip + kIpv6Bytes;
    layout.udp_bytes = payload;
  }
}

std::uint16_t ipv6_udp_checksum(Bytes frame, const PacketLayout& layout, std::size_t udp_bytes) {
  std::uint32_t sum = ones_sum(frame.subspan(layout.ip_offset + 8, 32));
  sum += static_cast<std::uint32_t>(udp_bytes) + kProtocolUdp;
  sum = ones_sum(frame.subspan(layout.udp_offset, udp_bytes), sum);
  const std::uint16_t checksum = ones_complement(sum);
  return checksum == 0 ? 0xffff : checksum;  // zero means "none"
}

}  // namespace

std::size_t link_header_bytes(Bytes frame) {
  std::size_t at = Frame::kEthernetBytes;
  for (std::size_t tag = 0; tag < kVlanTagsMax && frame.size() >= at + kVlanTagBytes; ++tag) {
    const std::uint16_t type = load16(frame, at - 2);
    if (type != kEtherVlan && type != kEtherServiceVlan) {
      break;
    }
    at += kVlanTagBytes;
  }
  return at;
}

PacketLayout parse_packet(Bytes frame) {
  PacketLayout layout;
  if (frame.size() < Frame::kEthernetBytes) {
    return layout;
  }
  layout.ip_offset = link_header_bytes(frame);
  const std::uint16_t type = load16(frame, layout.ip_offset - 2);
  if (type == kEtherIpv4) {
    parse_ipv4(frame, layout);
  } else if (type == kEtherIpv6) {
    parse_ipv6(frame, layout);
  }
  return layout;
}

std::optional<std::uint8_t> dscp_of(Bytes frame, const PacketLayout& layout) {
  if (layout.ip_version == 0) {
    return std::nullopt;
  }
  return static_cast<std::uint8_t>(traffic_class(frame, layout) >> 2);
}

bool mark_congestion(Frame& frame) {
  const PacketLayout layout = parse_packet(frame.bytes());
  if (layout.ip_version == 0) {
    return false;
  }
  const std::uint8_t before = traffic_class(frame.bytes(), layout);
  const std::uint8_t ecn = before & kEcnCe;
  if (ecn == 0 || ecn == kEcnCe) {
    return false;
  }
  set_traffic_class(frame.writable(), layout, before | kEcnCe);
  return true;
}

bool trim_packet(Frame& frame, std::size_t keep_bytes, std::uint8_t dscp,
                 std::optional<std::uint8_t> only_dscp) {
  const PacketLayout layout = parse_packet(frame.bytes());
  if (layout.udp_offset == 0 || load16(frame.bytes(), layout.udp_offset + 2) != kRocePort ||
      layout.udp_bytes <= kUdpBytes + keep_bytes) {
    return false;
  }
  const std::uint8_t before = traffic_class(frame.bytes(), layout);
  if (only_dscp && before >> 2 != *only_dscp) {
    return false;
  }
  const std::size_t udp_bytes = kUdpBytes + keep_bytes;
  frame.truncate(layout.udp_offset + udp_bytes);
  const std::span<std::uint8_t> bytes = frame.writable();
  set_traffic_class(bytes, layout,
                    static_cast<std::uint8_t>(dscp << 2 | (before & kEcnCe)));
  store16(bytes, layout.udp_offset + 4, static_cast<std::uint16_t>(udp_bytes));
  const bool had_checksum = load16(bytes, layout.udp_offset + 6) != 0;
  store16(bytes, layout.udp_offset + 6, 0);
  if (layout.ip_version == 4) {
    const std::size_t total = layout.udp_offset - layout.ip_offset + udp_bytes;
    replace_ipv4_word(bytes, layout.ip_offset, 2, static_cast<std::uint16_t>(total));
  } else {
    store16(bytes, layout.ip_offset + 4, static_cast<std::uint16_t>(udp_bytes));
    if (had_checksum) {
      store16(bytes, layout.udp_offset + 6, ipv6_udp_checksum(bytes, layout, udp_bytes));
    }
  }
  return true;
}

std::uint32_t path_of(Bytes frame, PathSelect select, std::uint32_t k) {
  if (k <= 1 || frame.size() < Frame::kEthernetBytes) {
    return 0;
  }
  const PacketLayout layout = parse_packet(frame);
  std::uint64_t source_port = 0;
  std::uint64_t flow_label = 0;
  if (layout.udp_offset != 0) {
    source_port = load16(frame, layout.udp_offset);
  }
  if (layout.ip_version == 6) {
    flow_label = static_cast<std::uint64_t>(frame[layout.ip_offset + 1] & 0x0f) << 16 |
                 load16(frame, layout.ip_offset + 2);
  }
  if (select == PathSelect::kModulo) {
    return static_cast<std::uint32_t>((source_port + flow_label) % k);
  }
  std::uint64_t hash = mix64(load48(frame, 6));
  hash = mix64(hash ^ load48(frame, 0));
  hash = mix64(hash ^ (flow_label << 16 | source_port));
  return static_cast<std::uint32_t>(hash % k);
}

}  // namespace ordma::fabric
