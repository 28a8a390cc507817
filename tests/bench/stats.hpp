// SPDX-License-Identifier: BSD-2-Clause
// What every measurement shares: repeats, medians, the data pattern.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ordma::bench {

using Clock = std::chrono::steady_clock;

inline double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

struct Timing {
  std::chrono::milliseconds slice{200};  // operations are counted in slices of this length
  unsigned repeats = 5;
  std::chrono::seconds watchdog{60};  // a batch that takes longer is a failure
};

// q in [0, 1], nearest rank; of nothing: 0.
inline double quantile(std::vector<double> v, double q) {
  if (v.empty()) {
    return 0;
  }
  const auto at = static_cast<std::size_t>(q * static_cast<double>(v.size() - 1) + 0.5);
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(at), v.end());
  return v[at];
}

inline double median(const std::vector<double>& v) { return quantile(v, 0.5); }

// Word i of slot `slot` in batch `batch`: any two of the three that differ give other data.
inline std::uint64_t pattern(std::uint64_t batch, std::uint64_t slot, std::uint64_t i) {
  std::uint64_t x = (batch << 40) ^ (slot << 24) ^ i;
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  return x ^ (x >> 29);
}

inline void fill(std::uint8_t* to, std::size_t bytes, std::uint64_t batch, std::uint64_t slot) {
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = pattern(batch, slot, i);
    std::memcpy(to + i, &word, std::min<std::size_t>(8, bytes - i));
  }
}

inline bool holds(const std::uint8_t* at, std::size_t bytes, std::uint64_t batch, std::uint64_t slot) {
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = pattern(batch, slot, i);
    if (std::memcmp(at + i, &word, std::min<std::size_t>(8, bytes - i)) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace ordma::bench
