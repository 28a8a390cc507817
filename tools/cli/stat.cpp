// SPDX-License-Identifier: BSD-2-Clause
#include "stat.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "client.hpp"
#include "network.hpp"
#include "paths.hpp"

namespace ordma::cli {

int run_stat(const std::string& net, bool all, bool as_json) {
  Client client(network_dir(net, false) / "socket");
  std::istringstream lines(client.counters());
  nlohmann::json out;
  std::string scope, name;
  std::uint64_t value = 0;
  if (!as_json) {
    fmt::print("{:<20} {:<32} {:>16}\n", "scope", "counter", "value");
  }
  while (lines >> scope >> name >> value) {
    if (as_json) {
      out[scope][name] = value;
    } else if (all || value != 0) {
      fmt::print("{:<20} {:<32} {:>16}\n", scope, name, value);
    }
  }
  if (as_json) {
    fmt::print("{}\n", out.dump(1));
  }
  return 0;
}

int run_ps() {
  const auto networks = running_networks();
  fmt::print("{:<16} {:<6} {:>4} {:>8}  {}\n", "network", "engine", "nics", "pid", "fabric");
  for (const auto& n : networks) {
    fmt::print("{:<16} {:<6} {:>4} {:>8}  {}\n", n.name, n.engine, n.nics, n.pid,
               n.fabric.empty() ? "-" : n.fabric);
  }
  return 0;
}

}  // namespace ordma::cli
