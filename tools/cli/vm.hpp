// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace ordma::cli {

struct VmOptions {
  unsigned guests = 1;
  unsigned smp = 1;
  unsigned timeout = 600;
  std::string kernel = "6.1";
};

// ordma vm: boots guests with the real ordma.ko on a soft-device of their own and runs one command
// in each.
int run_vm(const NetOptions& net, const VmOptions& vm, const std::vector<Command>& commands);

}  // namespace ordma::cli
