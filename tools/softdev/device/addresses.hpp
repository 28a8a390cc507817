// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/fabric.hpp"

namespace ordma::softdev {

using Gid = std::array<std::uint8_t, 16>;
using Mac = fabric::MacAddress;

// Addresses of NIC number `index` (0-based over the whole network): locally administered, the same
// in every run, so that captures and test expectations compare.
[[nodiscard]] Mac nic_mac(unsigned index);
[[nodiscard]] Gid nic_ipv4_gid(unsigned index);  // ::ffff:10.86.x.y
[[nodiscard]] std::uint64_t mac_to_register(const Mac& mac);  // first octet in the low byte
[[nodiscard]] std::uint64_t guid_of(const Mac& mac);          // EUI-64, host order
[[nodiscard]] Gid link_local_gid(const Mac& mac);
[[nodiscard]] bool is_ipv4_gid(const Gid& gid);

[[nodiscard]] std::optional<Mac> parse_mac(std::string_view text);
[[nodiscard]] std::optional<Gid> parse_gid(const std::string& text);  // IPv6 or IPv4
[[nodiscard]] std::string format_mac(const Mac& mac);

// What ARP and neighbour discovery are to a kernel: from a GID to a MAC.
class Neighbours {
 public:
  static constexpr std::size_t kMax = 4096;

  // Replaces an older entry. False when full.
  [[nodiscard]] bool add(const Gid& gid, const Mac& mac);
  [[nodiscard]] std::optional<Mac> resolve(const Gid& gid) const;

 private:
  std::map<Gid, Mac> table_;
};

}  // namespace ordma::softdev
