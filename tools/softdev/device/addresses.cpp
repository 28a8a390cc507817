// SPDX-License-Identifier: BSD-2-Clause
#include "device/addresses.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ordma::softdev {
namespace {

constexpr Gid kIpv4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::uint8_t low_byte(unsigned value) { return static_cast<std::uint8_t>(value & 0xff); }

}  // namespace

Mac nic_mac(unsigned index) {
  const unsigned number = index + 1;
  return {0x02, 'O', 'R', 'D', low_byte(number >> 8), low_byte(number)};
}

Gid nic_ipv4_gid(unsigned index) {
  // 250 hosts per /24, so that no NIC gets a network or broadcast address.
  Gid gid = kIpv4Prefix;
  gid[12] = 10;
  gid[13] = 86;
  gid[14] = low_byte(index / 250);
  gid[15] = low_byte(index % 250 + 1);
  return gid;
}

std::uint64_t mac_to_register(const Mac& mac) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < mac.size(); ++i) value |= std::uint64_t{mac[i]} << (8 * i);
  return value;
}

std::uint64_t guid_of(const Mac& mac) {
  const Gid gid = link_local_gid(mac);
  std::uint64_t guid = 0;
  for (std::size_t i = 8; i < 16; ++i) guid = guid << 8 | gid[i];
  return guid;
}

Gid link_local_gid(const Mac& mac) {
  Gid gid{};
  gid[0] = 0xfe;
  gid[1] = 0x80;
  gid[8] = mac[0] ^ 0x02;
  gid[9] = mac[1];
  gid[10] = mac[2];
  gid[11] = 0xff;
  gid[12] = 0xfe;
  gid[13] = mac[3];
  gid[14] = mac[4];
  gid[15] = mac[5];
  return gid;
}

bool is_ipv4_gid(const Gid& gid) {
  return std::equal(kIpv4Prefix.begin(), kIpv4Prefix.begin() + 12, gid.begin());
}

std::optional<Mac> parse_mac(std::string_view text) {
  Mac mac{};
  if (text.size() != 17) return std::nullopt;
  for (std::size_t i = 0; i < mac.size(); ++i) {
    const char* const at = text.data() + 3 * i;
    const auto result = std::from_chars(at, at + 2, mac[i], 16);
    if (result.ec != std::errc() || result.ptr != at + 2) return std::nullopt;
    if (i + 1 < mac.size() && at[2] != ':') return std::nullopt;
  }
  return mac;
}

std::optional<Gid> parse_gid(const std::string& text) {
  Gid gid{};
  if (::inet_pton(AF_INET6, text.c_str(), gid.data()) == 1) return gid;
  gid = kIpv4Prefix;
  if (::inet_pton(AF_INET, text.c_str(), gid.data() + 12) == 1) return gid;
  return std::nullopt;
}

std::string format_mac(const Mac& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3],
                     mac[4], mac[5]);
}

bool Neighbours::add(const Gid& gid, const Mac& mac) {
  if (table_.size() >= kMax && !table_.contains(gid)) return false;
  table_[gid] = mac;
  return true;
}

std::optional<Mac> Neighbours::resolve(const Gid& gid) const {
  if (is_ipv4_gid(gid) && (gid[12] & 0xf0) == 0xe0) {
    return Mac{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(gid[13] & 0x7f), gid[14], gid[15]};
  }
  if (gid[0] == 0xff) return Mac{0x33, 0x33, gid[12], gid[13], gid[14], gid[15]};
  if (const auto it = table_.find(gid); it != table_.end()) return it->second;
  // A link-local address made from a MAC names it (RFC 4291, appendix A).
  if (gid[0] == 0xfe && gid[1] == 0x80 && gid[11] == 0xff && gid[12] == 0xfe) {
    return Mac{
        static_cast<std::uint8_t>(gid[8] ^ 0x02), gid[9], gid[10], gid[13], gid[14], gid[15]};
  }
  return std::nullopt;
}

}  // namespace ordma::softdev
