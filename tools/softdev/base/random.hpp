// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/random.h>

#include <cstdint>
#include <functional>
#include <stdexcept>

namespace ordma::softdev {

using Random32 = std::function<std::uint32_t()>;

// Keys and numbers that no peer can foretell.
inline Random32 system_random() {
  return [] {
    std::uint32_t value = 0;
    if (::getrandom(&value, sizeof value, 0) != sizeof value) {
      throw std::runtime_error("getrandom gives no random numbers");
    }
    return value;
  };
}

// Repeatable (splitmix64): for runs that must be replayed from a seed.
inline Random32 seeded_random(std::uint64_t seed) {
  return [state = seed]() mutable {
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
  };
}

}  // namespace ordma::softdev
