// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>

#include "ordma_hw.hpp"

namespace ordma::softdev {

// The registers that user contexts may read: ASLEEP and CLOCK. `memory` is the register page
// REG_ASLEEP lies at the start of.
class PublicPage {
 public:
  explicit PublicPage(std::byte* memory) : memory_(memory) {}

  // The caller fences: ASLEEP must be visible before the last look at the doorbells.
  void set_asleep(bool asleep) { store(hw::reg::kAsleep, asleep ? 1 : 0); }
  void set_clock(std::uint64_t now_ns) { store(hw::reg::kClock, now_ns); }
  [[nodiscard]] std::uint64_t clock() const {
    const std::byte* const at = memory_ + (hw::reg::kClock - hw::reg::kAsleep);
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE);
  }

 private:
  void store(std::uint32_t offset, std::uint64_t value) {
    auto* word = reinterpret_cast<std::uint64_t*>(memory_ + (offset - hw::reg::kAsleep));
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
  }
  std::byte* memory_;
};

}  // namespace ordma::softdev
