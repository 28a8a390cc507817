// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "client.hpp"
#include "options.hpp"

namespace ordma::cli {

// What is known of a running network; kept as JSON beside its socket.
struct NetworkInfo {
  std::string name;
  std::string engine;
  std::string fabric;
  std::string pcap;
  unsigned nics = 0;
  std::uint64_t seed = 0;
  int pid = 0;
};

struct Network {
  NetworkInfo info;
  std::filesystem::path dir;
  std::filesystem::path socket;
  std::filesystem::path sysfs;  // holds class/infiniband...
  bool started = false;         // by this call
  Client member;                // holds the network open
};

// Joins the running network of that name, or starts it. `stay`: it outlives its members (ordma up).
Network join_or_start(const NetOptions& options, bool stay);
std::vector<NetworkInfo> running_networks();
// Ends a network by its pid file; false when none runs.
bool stop_network(const std::string& name);

}  // namespace ordma::cli
