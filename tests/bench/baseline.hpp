// SPDX-License-Identifier: BSD-2-Clause
// What one copy between two processes costs on this machine: the bound for a NIC made of software.
#pragma once

#include <vector>

#include "stats.hpp"

namespace ordma::bench {

struct CopyResult {
  std::vector<double> vm_readv;  // bytes per second: process_vm_readv from a forked child
  std::vector<double> shared;    // bytes per second: memcpy out of memory that the child wrote
  std::size_t block = 0, blocks = 0;
  bool verified = false;
};

CopyResult measure_copies(const Timing& timing);

}  // namespace ordma::bench
