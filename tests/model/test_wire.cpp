// SPDX-License-Identifier: BSD-2-Clause
#include "link.hpp"
#include "wire.hpp"

using namespace ordma;
using namespace ordma::bench;
using namespace ordma::twin;

namespace {

Bytes from_hex(std::string_view hex) {
  Bytes out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<std::byte>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  }
  return out;
}

Bytes crc_bytes(std::uint32_t crc) {
  Bytes out;
  for (unsigned i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(crc >> (8 * i)));
  return out;
}

HeaderTemplate headers(bool ipv4, std::uint16_t vlan = kNoVlan) {
  Route r{.smac = 0x0600'0000'0002, .dmac = 0x0700'0000'0002};
  r.sgid = ipv4 ? v4_gid(10, 0, 0, 1) : v6_gid(1);
  r.dgid = ipv4 ? v4_gid(10, 0, 0, 2) : v6_gid(2);
  r.ipv4 = ipv4;
  r.vlan = vlan;
  r.tclass = 0x88;
  r.hop_limit = 17;
  r.flow_label = 0x12345;
  r.sport = 0xd00d;
  return make_template(r);
}

Frame build(const HeaderTemplate& h, std::size_t payload, std::size_t ext = 0) {
  PacketBuilder p(h, {.opcode = hw::RoceOp::kRcSendOnly, .solicited = true, .ack_req = true,
                      .dest_qpn = 0xabcdef, .psn = 0x123456, .ext = ext, .payload = payload});
  for (std::size_t i = 0; i < ext; ++i) p.ext()[i] = static_cast<std::byte>(0x40 + i);
  for (std::size_t i = 0; i < payload; ++i) p.payload()[i] = static_cast<std::byte>(i * 3 + 1);
  return p.seal();
}

std::span<const std::byte> bytes_of(const Frame& f) { return std::as_bytes(f.bytes()); }

}  // namespace

TEST_CASE("ICRC of a CNP that a hardware NIC sent") {
  auto ip = from_hex("45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff40000118"
                     "00000000");
  ip.resize(ip.size() + 16);
  CHECK(crc_bytes(icrc(true, ip)) == from_hex("82fd002a"));
}

TEST_CASE("ICRC of a UC SEND_ONLY that scapy computed") {
  const auto ip = from_hex("45010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ffff0000"
                           "00d300cf17104630818be28935d90e9a95505401be885e500000");
  CHECK(crc_bytes(icrc(true, ip)) == from_hex("78f353f3"));
}

TEST_CASE("case_069 a built packet parses back, IPv4, IPv6, VLAN, pad 0 to 3") {
  for (const bool ipv4 : {true, false}) {
    for (const std::uint16_t vlan : {kNoVlan, std::uint16_t{77}}) {
      for (std::size_t payload = 0; payload < 9; ++payload) {
        const Frame f = build(headers(ipv4, vlan), payload, 4);
        Packet p;
        REQUIRE(parse(bytes_of(f), p) == Parsed::kRoce);
        CHECK(p.ipv4 == ipv4);
        CHECK(p.vlan == vlan);
        CHECK(p.opcode == static_cast<std::uint8_t>(hw::RoceOp::kRcSendOnly));
        CHECK(p.solicited);
        CHECK(p.ack_req);
        CHECK(p.dest_qpn == 0xabcdef);
        CHECK(p.psn == 0x123456);
        CHECK(p.pkey == hw::kDefaultPkey);
        CHECK(p.tclass == 0x88);
        CHECK(p.smac == 0x0600'0000'0002);
        CHECK(p.dmac == 0x0700'0000'0002);
        CHECK(p.sgid == (ipv4 ? v4_gid(10, 0, 0, 1) : v6_gid(1)));
        CHECK(p.dgid == (ipv4 ? v4_gid(10, 0, 0, 2) : v6_gid(2)));
        REQUIRE(p.body.size() == 4 + payload);
        CHECK(p.body[0] == std::byte{0x40});
        if (payload != 0) CHECK(p.body[4] == std::byte{1});
      }
    }
  }
}

TEST_CASE("case_070 header bits that peers insist on") {
  const Frame f = build(headers(true), 6);
  const auto b = bytes_of(f);
  const auto ip = b.subspan(hw::eth::kBytes);
  CHECK(hw::get(ip, hw::ipv4::version) == 4);
  CHECK(hw::get(ip, hw::ipv4::ihl) == 5);
  CHECK(hw::get(ip, hw::ipv4::ttl) == 17);
  CHECK(hw::get(ip, hw::ipv4::tos) == 0x88);
  CHECK(hw::get(ip, hw::ipv4::flags) == 2);
  CHECK(hw::get(ip, hw::ipv4::length) == ip.size());
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < hw::ipv4::kBytes; i += 2) {
    sum += std::to_integer<unsigned>(ip[i]) << 8 | std::to_integer<unsigned>(ip[i + 1]);
  }
  CHECK((sum & 0xffff) + (sum >> 16) == 0xffff);
  const auto udp = ip.subspan(hw::ipv4::kBytes);
  CHECK(hw::get(udp, hw::udp::dport) == hw::kRocePort);
  CHECK(hw::get(udp, hw::udp::sport) == 0xd00d);
  CHECK(hw::get(udp, hw::udp::length) == udp.size());
  CHECK(hw::get(udp, hw::udp::checksum) == 0);
  const auto bth = udp.subspan(hw::udp::kBytes);
  CHECK(hw::get(bth, hw::bth::mig) == 1);
  CHECK(hw::get(bth, hw::bth::tver) == 0);
  CHECK(hw::get(bth, hw::bth::pad) == 2);
  CHECK(hw::get(bth, hw::bth::pkey) == 0xffff);
}

TEST_CASE("UDP checksum over IPv6 is right") {
  for (std::size_t payload = 0; payload < 40; ++payload) {
    const Frame f = build(headers(false), payload);
    const auto ip = bytes_of(f).subspan(hw::eth::kBytes);
    CHECK(hw::get(ip, hw::ipv6::length) == ip.size() - hw::ipv6::kBytes);
    CHECK(hw::get(ip, hw::ipv6::flow_label) == 0x12345);
    const auto word = [&](std::size_t at) {
      const auto low = at + 1 < ip.size() ? std::to_integer<unsigned>(ip[at + 1]) : 0u;
      return std::to_integer<unsigned>(ip[at]) << 8 | low;
    };
    std::uint64_t sum = 17 + (ip.size() - hw::ipv6::kBytes);
    for (std::size_t at = 8; at < ip.size(); at += 2) sum += word(at);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    CHECK(sum == 0xffff);
    CHECK(hw::get(ip.subspan(hw::ipv6::kBytes), hw::udp::checksum) != 0);
  }
}

TEST_CASE("case_068 a flipped bit is found unless routers may change it") {
  for (const bool ipv4 : {true, false}) {
    const Frame f = build(headers(ipv4), 21);
    const Bytes good(bytes_of(f).begin(), bytes_of(f).end());
    const std::size_t l3 = hw::eth::kBytes;
    const std::size_t udp = l3 + (ipv4 ? hw::ipv4::kBytes : hw::ipv6::kBytes);
    const std::size_t bth = udp + hw::udp::kBytes;
    for (std::size_t bit = l3 * 8; bit < good.size() * 8; ++bit) {
      Bytes bad = good;
      bad[bit / 8] ^= std::byte{0x80} >> (bit % 8);
      const std::size_t at = bit / 8 - (bit / 8 >= bth ? bth : bit / 8 >= udp ? udp : l3);
      const bool in_l3 = bit / 8 < udp;
      const bool in_udp = !in_l3 && bit / 8 < bth;
      const auto in = [&](hw::BigField field) {
        const std::size_t b = at * 8 + bit % 8;
        return b >= field.bitoff && b < std::size_t{field.bitoff} + field.width;
      };
      const bool masked =
          in_l3 ? (ipv4 ? in(hw::ipv4::tos) || in(hw::ipv4::ttl) || in(hw::ipv4::checksum)
                        : in(hw::ipv6::tclass) || in(hw::ipv6::flow_label) ||
                              in(hw::ipv6::hop_limit))
          : in_udp ? in(hw::udp::checksum)
                   : bit / 8 == bth + hw::bth::fecn.bitoff / 8;
      Packet p;
      const Parsed result = parse(bad, p);
      INFO("bit " << bit << " ipv4 " << ipv4);
      CHECK((result == Parsed::kRoce) == masked);
    }
  }
}

TEST_CASE("frames cut anywhere never parse as RoCE and never overrun") {
  for (const bool ipv4 : {true, false}) {
    for (const std::uint16_t vlan : {kNoVlan, std::uint16_t{5}}) {
      const Frame f = build(headers(ipv4, vlan), 10);
      for (std::size_t n = 0; n < f.size(); ++n) {
        const Bytes cut(bytes_of(f).begin(), bytes_of(f).begin() + static_cast<long>(n));
        Packet p;
        CHECK(parse(cut, p) != Parsed::kRoce);
      }
    }
  }
}

TEST_CASE("Ethernet padding behind the IP packet is ignored") {
  const Frame f = build(headers(true), 0);
  Bytes padded(bytes_of(f).begin(), bytes_of(f).end());
  padded.resize(padded.size() + 20, std::byte{0xee});
  Packet p;
  REQUIRE(parse(padded, p) == Parsed::kRoce);
  CHECK(p.body.empty());
}

TEST_CASE("a GID's family and multicast") {
  CHECK(is_v4_mapped(v4_gid(1, 2, 3, 4)));
  CHECK_FALSE(is_v4_mapped(v6_gid(1)));
  CHECK(is_multicast(v4_gid(239, 1, 1, 1)));
  CHECK_FALSE(is_multicast(v4_gid(10, 0, 0, 1)));
  auto g = v6_gid(1);
  CHECK_FALSE(is_multicast(g));
  g[0] = std::byte{0xff};
  CHECK(is_multicast(g));
}
