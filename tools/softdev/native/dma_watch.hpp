// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>

namespace ordma::softdev {

// Told what the native back end lets the NIC touch and when it stops being allowed. The NIC itself
// enforces this; a watch is how a test finds out that it does not. Addresses are DMA addresses.
class DmaWatch {
 public:
  virtual ~DmaWatch() = default;
  virtual void granted(std::uint64_t addr, std::uint64_t bytes) = 0;
  // After the command that quiesces the object has completed.
  virtual void revoked(std::uint64_t addr, std::uint64_t bytes) = 0;
  virtual void accessed(std::uint64_t addr, std::uint64_t bytes, bool write) = 0;
};

}  // namespace ordma::softdev
