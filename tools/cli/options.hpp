// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ordma::cli {

// Exit status for failures of ours; anything else is the command's own.
inline constexpr int kExitOurs = 125;

// A failure with a sentence for the user, who is told what to do about it.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What describes a network; the same options on run, pair, up and vm.
struct NetOptions {
  std::string name = "default";
  unsigned nics = 2;
  std::string engine;  // "" = the default of this build
  std::string fabric;  // k=v,... or a file
  std::string pcap;
  std::uint64_t seed = 1;
  bool quiet = false;
  bool force_preload = false;  // do not try namespaces
};

using Command = std::vector<std::string>;

}  // namespace ordma::cli
