// SPDX-License-Identifier: BSD-2-Clause
#include <catch2/catch.hpp>
#include <random>

#include "packet.hpp"
#include "support.hpp"

using namespace ordma::fabric;
using namespace ordma::fabric::test;

namespace {

std::uint32_t folded_sum(std::span<const std::uint8_t> bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += static_cast<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  }
  while (sum > 0xffff) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

// Both sums are 0xffff when the stored checksum is right.
bool ipv4_header_ok(const Frame& frame, std::size_t ip = 14) {
  return folded_sum(frame.bytes().subspan(ip, 20)) == 0xffff;
}

bool ipv6_udp_ok(const Frame& frame) {
  const auto bytes = frame.bytes();
  const std::uint32_t udp_bytes = static_cast<std::uint32_t>(bytes[18] << 8 | bytes[19]);
  const std::uint32_t sum = folded_sum(bytes.subspan(14 + 8, 32), udp_bytes + 17);
  return folded_sum(bytes.subspan(54, udp_bytes), sum) == 0xffff;
}

}  // namespace

TEST_CASE("CE goes only on ECN-capable packets and keeps checksums right", "[packet]") {
  for (const bool vlan : {false, true}) {
    for (std::uint8_t ecn = 0; ecn < 4; ++ecn) {
      const auto tc = static_cast<std::uint8_t>(0xb8 | ecn);
      RoceOptions options;
      options.traffic_class = tc;
      options.vlan = vlan;
      const std::size_t ip = vlan ? 18 : 14;
      Frame v4 = roce_frame(options);
      REQUIRE(ipv4_header_ok(v4, ip));
      CHECK(mark_congestion(v4) == (ecn == 1 || ecn == 2));
      CHECK(v4.bytes()[ip + 1] == (ecn == 0 ? 0xb8 : 0xbb));
      CHECK(ipv4_header_ok(v4, ip));
      options.ipv6 = true;
      options.flow_label = 0xabcde;
      Frame v6 = roce_frame(options);
      CHECK(mark_congestion(v6) == (ecn == 1 || ecn == 2));
      CHECK((v6.bytes()[ip + 1] >> 4) == (ecn == 0 ? 0x8 : 0xb));
      CHECK((v6.bytes()[ip + 1] & 0x0f) == 0x0a);
    }
  }
  Frame arp = raw_frame(1, 2, 60);
  CHECK_FALSE(mark_congestion(arp));
}

TEST_CASE("trimming keeps headers, lengths and checksums consistent", "[packet]") {
  RoceOptions options;
  options.traffic_class = 0x12;  // DSCP 4, ECT(0)
  options.payload = 1024;
  Frame v4 = roce_frame(options);
  REQUIRE(trim_packet(v4, 40, 12, std::nullopt));
  CHECK(v4.size() == 14 + 20 + 8 + 40);
  CHECK(v4.bytes()[15] == (12 << 2 | 2));
  CHECK((v4.bytes()[16] << 8 | v4.bytes()[17]) == 68);
  CHECK((v4.bytes()[38] << 8 | v4.bytes()[39]) == 48);
  CHECK(ipv4_header_ok(v4));
  CHECK_FALSE(trim_packet(v4, 40, 12, std::nullopt));  // nothing left to cut

  options.ipv6 = true;
  Frame v6 = roce_frame(options);
  REQUIRE(ipv6_udp_ok(v6));
  REQUIRE(trim_packet(v6, 36, 12, std::uint8_t{4}));
  CHECK(v6.size() == 14 + 40 + 8 + 36);
  CHECK(ipv6_udp_ok(v6));
  Frame other_class = roce_frame(options);
  CHECK_FALSE(trim_packet(other_class, 36, 12, std::uint8_t{8}));
  CHECK(other_class.size() == roce_frame(options).size());
}

TEST_CASE("only RoCEv2 packets are trimmed", "[packet]") {
  Frame other_port = roce_frame({});
  other_port.writable()[36] = 0x13;
  CHECK_FALSE(trim_packet(other_port, 12, 12, std::nullopt));
  Frame fragment = roce_frame({});
  fragment.writable()[20] = 0x20;  // more fragments
  CHECK_FALSE(trim_packet(fragment, 12, 12, std::nullopt));
}

TEST_CASE("a flow sticks to its path and entropy spreads over all paths", "[packet]") {
  for (const auto select : {PathSelect::kHash, PathSelect::kModulo}) {
    for (const bool ipv6 : {false, true}) {
      std::vector<int> load(8);
      for (std::uint16_t port = 0; port < 4096; ++port) {
        RoceOptions options;
        options.source_port = port;
        options.ipv6 = ipv6;
        options.psn = port;
        const std::uint32_t path = path_of(roce_frame(options).bytes(), select, 8);
        options.psn = 77;
        options.payload = 3;
        CHECK(path == path_of(roce_frame(options).bytes(), select, 8));
        ++load[path];
      }
      for (const int frames : load) {
        CHECK(frames > 400);
        CHECK(frames < 630);
      }
    }
  }
  RoceOptions options;
  options.ipv6 = true;
  std::vector<int> load(4);
  for (options.flow_label = 0; options.flow_label < 256; ++options.flow_label) {
    ++load[path_of(roce_frame(options).bytes(), PathSelect::kHash, 4)];
  }
  for (const int frames : load) {
    CHECK(frames > 30);
  }
}

TEST_CASE("modulo selection walks the paths with the source port", "[packet]") {
  RoceOptions options;
  for (std::uint16_t i = 0; i < 12; ++i) {
    options.source_port = static_cast<std::uint16_t>(0xc000 + i);
    CHECK(path_of(roce_frame(options).bytes(), PathSelect::kModulo, 4) == i % 4);
  }
}

TEST_CASE("no byte string makes the parser read outside the frame", "[packet]") {
  std::mt19937 random(20240611);
  const std::vector<std::vector<std::uint8_t>> starts = {
      {0x08, 0x00, 0x45}, {0x08, 0x00, 0x4f}, {0x86, 0xdd, 0x60}, {0x81, 0x00, 0x00, 0x01, 0x08,
      0x00, 0x45}, {0x88, 0xa8, 0x00, 0x01, 0x81, 0x00, 0x00, 0x01, 0x86, 0xdd, 0x60}};
  int with_udp = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint8_t> bytes(random() % 120);
    for (auto& byte : bytes) {
      byte = static_cast<std::uint8_t>(random());
    }
    const auto& start = starts[random() % starts.size()];
    for (std::size_t i = 0; i < start.size() && 12 + i < bytes.size(); ++i) {
      bytes[12 + i] = start[i];
    }
    // Half of them get a protocol, flags and lengths that lead deep into the parser.
    const std::size_t ip = 12 + (start[0] == 0x81 ? 6u : start[0] == 0x88 ? 10u : 2u);
    if (round % 2 == 0 && bytes.size() > ip + 10) {
      const std::size_t length = bytes.size() - ip + random() % 5 - 2;
      const bool ipv6 = bytes[ip] == 0x60;
      bytes[ip + (ipv6 ? 4u : 2u)] = 0;
      bytes[ip + (ipv6 ? 5u : 3u)] = static_cast<std::uint8_t>(ipv6 ? length - 40 : length);
      bytes[ip + 6] = ipv6 ? 17 : 0;
      bytes[ip + 7] = 0;
      bytes[ip + 9] = 17;
    }
    Frame frame = Frame::copy_of(bytes);
    const PacketLayout layout = parse_packet(frame.bytes());
    if (layout.udp_offset != 0) {
      ++with_udp;
      CHECK(layout.udp_offset + layout.udp_bytes <= frame.size());
      CHECK(layout.udp_bytes >= 8);
    }
    CHECK(path_of(frame.bytes(), PathSelect::kHash, 16) < 16);
    (void)mark_congestion(frame);
    (void)trim_packet(frame, 12, 12, std::nullopt);
    CHECK(frame.size() <= bytes.size());
  }
  CHECK(with_udp > 1000);
}
