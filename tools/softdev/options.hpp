// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "device/addresses.hpp"
#include "fabric/config.hpp"

namespace ordma::softdev {

struct VmOption {
  unsigned nic = 0;
  std::string socket;
  std::string ram;
};

struct UplinkOption {
  std::string path;
  bool listen = true;
};

struct Options {
  static constexpr unsigned kNicsMax = 64;

  std::string socket;
  unsigned nics = 2;
  unsigned first = 0;  // number of the first NIC, for soft-devices that are joined by uplinks
  std::string engine = "twin";
  fabric::FabricConfig fabric;
  std::string pcap;
  std::uint64_t seed = 1;
  bool stay = false;
  std::uint64_t grace_ms = 1000;
  int ready_fd = -1;
  LogLevel log_level = LogLevel::kWarn;
  std::string log_file;
  std::string waves;
  std::vector<VmOption> vms;
  std::vector<UplinkOption> uplinks;
  std::vector<std::pair<Gid, Mac>> neighbours;
};

// Without a value the process is to end with *status; what there was to say has been printed.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv, int* status);

}  // namespace ordma::softdev
