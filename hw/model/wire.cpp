// SPDX-License-Identifier: BSD-2-Clause
#include "wire.hpp"

#include <isa-l/crc.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace ordma::twin {
namespace {

inline constexpr std::size_t kIcrcBytes = 4;
inline constexpr std::size_t kVlanTagBytes = 4;
inline constexpr std::uint8_t kProtocolUdp = 17;
inline constexpr std::uint64_t kDefaultHopLimit = 64;

template <hw::BigField F>
constexpr std::size_t byte_of = F.bitoff / 8;

std::uint64_t load_mac(const std::byte* p) {
  std::uint64_t v = 0;
  std::memcpy(&v, p, 6);
  return v;
}

void store_mac(std::byte* p, std::uint64_t mac) { std::memcpy(p, &mac, 6); }

Gid map_v4(const std::byte* address) {
  Gid gid{};
  gid[10] = gid[11] = std::byte{0xff};
  std::memcpy(&gid[12], address, 4);
  return gid;
}

// Ones-complement sum in memory order; folding at the end makes the word size irrelevant.
std::uint64_t sum16(std::span<const std::byte> data, std::uint64_t sum = 0) {
  const std::byte* p = data.data();
  std::size_t n = data.size();
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t w;
    std::memcpy(&w, p, 8);
    sum += w & 0xffffffffu;
    sum += w >> 32;
  }
  std::uint64_t w = 0;
  if (n != 0) std::memcpy(&w, p, n);
  return sum + (w & 0xffffffffu) + (w >> 32);
}

std::uint16_t fold16(std::uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

void store_checksum(std::byte* at, std::uint64_t sum, bool zero_is_none) {
  std::uint16_t value = static_cast<std::uint16_t>(~fold16(sum));
  if (value == 0 && zero_is_none) value = 0xffff;
  std::memcpy(at, &value, 2);
}

const std::uint32_t kIcrcSeed = [] {
  // The LRH of InfiniBand, masked, stands in front of every packet.
  std::array<unsigned char, 8> lrh;
  lrh.fill(0xff);
  return crc32_gzip_refl(0, lrh.data(), lrh.size());
}();

void put_l3(HeaderTemplate& t, const Route& r) {
  std::byte* ip = t.bytes.data() + t.l3;
  const std::uint64_t hops = r.hop_limit != 0 ? r.hop_limit : kDefaultHopLimit;
  if (r.ipv4) {
    namespace h = hw::ipv4;
    poke<h::version>(ip, 4);
    poke<h::ihl>(ip, h::kBytes / 4);
    poke<h::tos>(ip, r.tclass);
    poke<h::flags>(ip, 2);
    poke<h::ttl>(ip, hops);
    poke<h::protocol>(ip, kProtocolUdp);
    std::memcpy(ip + byte_of<h::src>, &r.sgid[12], 4);
    std::memcpy(ip + byte_of<h::dst>, &r.dgid[12], 4);
    t.ip_sum = fold16(sum16({ip, h::kBytes}));
  } else {
    namespace h = hw::ipv6;
    poke<h::version>(ip, 6);
    poke<h::tclass>(ip, r.tclass);
    poke<h::flow_label>(ip, r.flow_label);
    poke<h::next_header>(ip, kProtocolUdp);
    poke<h::hop_limit>(ip, hops);
    std::memcpy(ip + byte_of<h::src_hi>, r.sgid.data(), 16);
    std::memcpy(ip + byte_of<h::dst_hi>, r.dgid.data(), 16);
  }
}

}  // namespace

bool is_v4_mapped(const Gid& gid) {
  static const Gid kPrefix = map_v4(Gid{}.data());
  return std::memcmp(gid.data(), kPrefix.data(), 12) == 0;
}

bool is_multicast(const Gid& gid) {
  const auto head = std::to_integer<unsigned>(is_v4_mapped(gid) ? gid[12] : gid[0]);
  return is_v4_mapped(gid) ? (head & 0xf0) == 0xe0 : head == 0xff;
}

HeaderTemplate make_template(const Route& r) {
  HeaderTemplate t;
  std::byte* p = t.bytes.data();
  store_mac(p + byte_of<hw::eth::dst>, r.dmac);
  store_mac(p + byte_of<hw::eth::src>, r.smac);
  const auto type = raw_value(r.ipv4 ? hw::Ethertype::kIpv4 : hw::Ethertype::kIpv6);
  t.l3 = hw::eth::kBytes;
  if (r.vlan != kNoVlan) {
    poke<hw::eth::type_>(p, raw_value(hw::Ethertype::kVlan));
    const unsigned tci = (r.sl & 7u) << 13 | (r.vlan & 0xfffu);
    p[t.l3] = static_cast<std::byte>(tci >> 8);
    p[t.l3 + 1] = static_cast<std::byte>(tci);
    t.l3 += kVlanTagBytes;
    // The inner EtherType keeps its distance to the layer-3 header.
    poke<hw::eth::type_>(p + kVlanTagBytes, type);
  } else {
    poke<hw::eth::type_>(p, type);
  }
  t.ipv4 = r.ipv4;
  put_l3(t, r);
  t.udp = static_cast<std::uint16_t>(t.l3 + (r.ipv4 ? hw::ipv4::kBytes : hw::ipv6::kBytes));
  poke<hw::udp::sport>(p + t.udp, r.sport);
  poke<hw::udp::dport>(p + t.udp, hw::kRocePort);
  t.bth = static_cast<std::uint16_t>(t.udp + hw::udp::kBytes);
  poke<hw::bth::mig>(p + t.bth, 1);
  poke<hw::bth::pkey>(p + t.bth, hw::kDefaultPkey);
  t.size = static_cast<std::uint16_t>(t.bth + hw::bth::kBytes);
  return t;
}

PacketBuilder::PacketBuilder(const HeaderTemplate& h, const PacketSpec& s)
    : frame_(h.size + s.ext + ((s.payload + 3) & ~std::size_t{3}) + kIcrcBytes), headers_(h) {
  base_ = reinterpret_cast<std::byte*>(frame_.writable().data());
  const std::size_t total = frame_.size();
  std::memcpy(base_, h.bytes.data(), h.size);
  if (h.ipv4) {
    std::byte* ip = base_ + h.l3;
    const std::size_t length = total - h.l3;
    poke<hw::ipv4::length>(ip, length);
    std::uint16_t raw;
    std::memcpy(&raw, ip + byte_of<hw::ipv4::length>, 2);
    store_checksum(ip + byte_of<hw::ipv4::checksum>, std::uint64_t{h.ip_sum} + raw, false);
  } else {
    poke<hw::ipv6::length>(base_ + h.l3, total - h.udp);
  }
  poke<hw::udp::length>(base_ + h.udp, total - h.udp);
  std::byte* bth = base_ + h.bth;
  const std::size_t pad = (0 - s.payload) & 3;
  poke<hw::bth::opcode>(bth, raw_value(s.opcode));
  poke<hw::bth::se>(bth, s.solicited);
  poke<hw::bth::pad>(bth, pad);
  poke<hw::bth::dest_qpn>(bth, s.dest_qpn);
  poke<hw::bth::ack_req>(bth, s.ack_req);
  poke<hw::bth::psn>(bth, s.psn);
  ext_ = base_ + h.size;
  payload_ = {ext_ + s.ext, s.payload};
  std::memset(payload_.data() + s.payload, 0, pad);
}

Frame PacketBuilder::seal() {
  const std::size_t total = frame_.size();
  const std::uint32_t crc =
      icrc(headers_.ipv4, {base_ + headers_.l3, total - headers_.l3 - kIcrcBytes});
  for (unsigned i = 0; i < kIcrcBytes; ++i) {
    base_[total - kIcrcBytes + i] = static_cast<std::byte>(crc >> (8 * i));
  }
  if (!headers_.ipv4) {
    const std::byte* ip = base_ + headers_.l3;
    std::byte* udp = base_ + headers_.udp;
    // Pseudo header: addresses, length, protocol; network order is memory order here.
    std::array<std::byte, 8> tail{};
    std::memcpy(tail.data() + 2, udp + byte_of<hw::udp::length>, 2);
    tail[7] = std::byte{kProtocolUdp};
    std::uint64_t sum = sum16({ip + byte_of<hw::ipv6::src_hi>, 32}, sum16(tail));
    sum = sum16({udp, total - headers_.udp}, sum);
    store_checksum(udp + byte_of<hw::udp::checksum>, sum, true);
  }
  return std::move(frame_);
}

std::uint32_t icrc(bool ipv4, std::span<const std::byte> l3) {
  constexpr std::byte kOnes{0xff};
  // A short packet is copied whole: one run of the CRC costs less than two.
  std::array<std::byte, 192> head;
  const std::size_t ip_bytes = ipv4 ? hw::ipv4::kBytes : hw::ipv6::kBytes;
  const std::size_t headers = ip_bytes + hw::udp::kBytes + hw::bth::kBytes;
  const std::size_t n = l3.size() <= head.size() ? l3.size() : headers;
  hw::require(l3.size() >= headers);
  std::memcpy(head.data(), l3.data(), n);
  if (ipv4) {
    head[byte_of<hw::ipv4::tos>] = head[byte_of<hw::ipv4::ttl>] = kOnes;
    poke<hw::ipv4::checksum>(head.data(), ~0ull);
  } else {
    poke<hw::ipv6::tclass>(head.data(), ~0ull);
    poke<hw::ipv6::flow_label>(head.data(), ~0ull);
    head[byte_of<hw::ipv6::hop_limit>] = kOnes;
  }
  poke<hw::udp::checksum>(head.data() + ip_bytes, ~0ull);
  // FECN, BECN and the reserved bits beside them.
  head[ip_bytes + hw::udp::kBytes + byte_of<hw::bth::fecn>] = kOnes;
  const auto bytes = [](const std::byte* p) {
    return const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(p));
  };
  std::uint32_t crc = crc32_gzip_refl(kIcrcSeed, bytes(head.data()), n);
  if (l3.size() > n) crc = crc32_gzip_refl(crc, bytes(l3.data() + n), l3.size() - n);
  return crc;
}

namespace {

// Bounds of the IP packet inside the frame; Ethernet padding behind it is cut off.
struct L3 {
  std::size_t header = 0;
  std::size_t total = 0;
  bool udp = false;
  bool ok = false;
};

L3 parse_ipv4(std::span<const std::byte> p, Packet& out) {
  namespace h = hw::ipv4;
  L3 r;
  if (p.size() < h::kBytes || peek<h::version>(p.data()) != 4) return r;
  r.header = peek<h::ihl>(p.data()) * 4;
  r.total = peek<h::length>(p.data());
  const bool fragment = (peek<h::flags>(p.data()) & 1) != 0 || peek<h::frag_off>(p.data()) != 0;
  r.udp = peek<h::protocol>(p.data()) == kProtocolUdp && !fragment;
  r.ok = r.header >= h::kBytes && r.total >= r.header && r.total <= p.size();
  out.ipv4 = true;
  out.tclass = static_cast<std::uint8_t>(peek<h::tos>(p.data()));
  out.sgid = map_v4(p.data() + byte_of<h::src>);
  out.dgid = map_v4(p.data() + byte_of<h::dst>);
  return r;
}

L3 parse_ipv6(std::span<const std::byte> p, Packet& out) {
  namespace h = hw::ipv6;
  L3 r;
  if (p.size() < h::kBytes || peek<h::version>(p.data()) != 6) return r;
  r.header = h::kBytes;
  r.total = h::kBytes + peek<h::length>(p.data());
  r.udp = peek<h::next_header>(p.data()) == kProtocolUdp;
  r.ok = r.total <= p.size();
  out.ipv4 = false;
  out.tclass = static_cast<std::uint8_t>(peek<h::tclass>(p.data()));
  std::memcpy(out.sgid.data(), p.data() + byte_of<h::src_hi>, 16);
  std::memcpy(out.dgid.data(), p.data() + byte_of<h::dst_hi>, 16);
  return r;
}

Parsed parse_roce(std::span<const std::byte> ip, const L3& l3, Packet& out) {
  const std::byte* udp = ip.data() + l3.header;
  const std::size_t udp_bytes = l3.total - l3.header;
  constexpr std::size_t kLeast = hw::udp::kBytes + hw::bth::kBytes + kIcrcBytes;
  // IP options would move the BTH; no RoCE sender uses them.
  const bool options = out.ipv4 && l3.header != hw::ipv4::kBytes;
  if (options || udp_bytes < kLeast || peek<hw::udp::length>(udp) != udp_bytes) {
    return Parsed::kMalformed;
  }
  const std::byte* bth = udp + hw::udp::kBytes;
  const std::size_t behind = udp_bytes - kLeast;
  const std::size_t pad = peek<hw::bth::pad>(bth);
  if (peek<hw::bth::tver>(bth) != 0 || behind < pad) return Parsed::kMalformed;
  std::uint32_t stored = 0;
  for (unsigned i = 0; i < kIcrcBytes; ++i) {
    stored |= std::to_integer<std::uint32_t>(ip[l3.total - kIcrcBytes + i]) << (8 * i);
  }
  if (stored != icrc(out.ipv4, ip.first(l3.total - kIcrcBytes))) return Parsed::kBadIcrc;
  out.opcode = static_cast<std::uint8_t>(peek<hw::bth::opcode>(bth));
  out.solicited = peek<hw::bth::se>(bth) != 0;
  out.ack_req = peek<hw::bth::ack_req>(bth) != 0;
  out.pkey = static_cast<std::uint16_t>(peek<hw::bth::pkey>(bth));
  out.dest_qpn = static_cast<std::uint32_t>(peek<hw::bth::dest_qpn>(bth));
  out.psn = static_cast<std::uint32_t>(peek<hw::bth::psn>(bth));
  out.l3 = ip.first(l3.header);
  out.body = {bth + hw::bth::kBytes, behind - pad};
  return Parsed::kRoce;
}

}  // namespace

Parsed parse(std::span<const std::byte> frame, Packet& out) {
  if (frame.size() < hw::eth::kBytes) return Parsed::kMalformed;
  out.dmac = load_mac(frame.data() + byte_of<hw::eth::dst>);
  out.smac = load_mac(frame.data() + byte_of<hw::eth::src>);
  std::uint64_t type = peek<hw::eth::type_>(frame.data());
  std::size_t at = hw::eth::kBytes;
  out.vlan = kNoVlan;
  if (type == raw_value(hw::Ethertype::kVlan)) {
    if (frame.size() < at + kVlanTagBytes) return Parsed::kMalformed;
    const unsigned id = (std::to_integer<unsigned>(frame[at]) & 0xf) << 8 |
                        std::to_integer<unsigned>(frame[at + 1]);
    // VLAN 0 is a priority tag and no VLAN.
    if (id != 0) out.vlan = static_cast<std::uint16_t>(id);
    type = peek<hw::eth::type_>(frame.data() + kVlanTagBytes);
    at += kVlanTagBytes;
  }
  const auto ip = frame.subspan(at);
  L3 l3;
  if (type == raw_value(hw::Ethertype::kIpv4)) {
    l3 = parse_ipv4(ip, out);
  } else if (type == raw_value(hw::Ethertype::kIpv6)) {
    l3 = parse_ipv6(ip, out);
  }
  if (!l3.ok || !l3.udp || l3.total - l3.header < hw::udp::kBytes) return Parsed::kOther;
  if (peek<hw::udp::dport>(ip.data() + l3.header) != hw::kRocePort) return Parsed::kOther;
  return parse_roce(ip, l3, out);
}

}  // namespace ordma::twin
