// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fabric.hpp"

namespace ordma::fabric::test {

[[nodiscard]] MacAddress mac_of(std::uint8_t station);

struct RoceOptions {
  std::uint8_t from = 1;  // stations, see mac_of()
  std::uint8_t to = 2;
  bool ipv6 = false;
  bool vlan = false;
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
  std::uint16_t source_port = 0xc000;
  std::uint32_t psn = 0;
  std::size_t payload = 64;  // behind the 12-byte BTH, ICRC not included
};

// A RoCEv2 frame with right lengths, IPv4 header checksum and UDP checksum (IPv6); its ICRC is
// zero, since the fabric never looks at it.
[[nodiscard]] Frame roce_frame(const RoceOptions& options);
[[nodiscard]] std::uint32_t psn_of(std::span<const std::uint8_t> frame);

// Any frame of this many bytes between two stations, numbered in bytes 14..17.
[[nodiscard]] Frame raw_frame(std::uint8_t from, std::uint8_t to, std::size_t bytes,
                              std::uint32_t number = 0);
[[nodiscard]] std::uint32_t number_of(std::span<const std::uint8_t> frame);

[[nodiscard]] std::vector<std::uint8_t> from_hex(std::string_view hex);

// A configuration from its command line form; fails the test on an error.
[[nodiscard]] FabricConfig config(std::string_view settings);

struct Delivery {
  PortId port = kNoPort;
  std::uint64_t at_ns = 0;
  std::vector<std::uint8_t> bytes;
};

// A fabric whose ports 1..n have stations mac_of(1..n) and names "p1".."pn" and record what
// arrives.
class Net {
 public:
  explicit Net(std::string_view settings, std::size_t ports = 2, std::uint64_t seed = 1);

  void run_all();  // advances until nothing is in flight
  [[nodiscard]] std::vector<std::uint32_t> numbers() const;  // number_of() every delivery
  [[nodiscard]] std::uint64_t trace_hash() const;

  Fabric fabric;
  std::vector<PortId> port;  // port[1] is "p1"; port[0] is unused
  std::vector<Delivery> deliveries;
};

struct CommandResult {
  int status = -1;
  std::string output;
};
// Runs a shell command, stdout and stderr together.
[[nodiscard]] CommandResult run_command(const std::string& command);

// A private directory, removed at the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] std::string file(std::string_view name) const;

 private:
  std::string path_;
};

}  // namespace ordma::fabric::test
