// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace ordma::fabric {

// splitmix64: expands a seed and mixes hash inputs.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t hash, std::string_view text) {
  for (const char c : text) {
    hash = mix64(hash ^ static_cast<std::uint8_t>(c));
  }
  // The length separates ("a", "bc") from ("ab", "c").
  return mix64(hash ^ (text.size() << 32));
}

// xoshiro256**, one instance per decision stream.
class Rng {
 public:
  constexpr explicit Rng(std::uint64_t seed = 0) {
    for (auto& word : state_) {
      word = mix64(seed);
      seed += 0x9e3779b97f4a7c15u;
    }
  }

  constexpr std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // True with this probability. Certain outcomes draw nothing.
  constexpr bool chance(double probability) {
    if (probability <= 0) {
      return false;
    }
    if (probability >= 1) {
      return true;
    }
    return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
  }

  // Uniform in 0..bound-1; bound > 0. Rejection keeps it exactly uniform.
  constexpr std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t reject_under = (0 - bound) % bound;
    std::uint64_t value = next();
    while (value < reject_under) {
      value = next();
    }
    return value % bound;
  }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace ordma::fabric
