// SPDX-License-Identifier: BSD-2-Clause
// Arithmetic on 24-bit sequence numbers and ring indices, and packet-field access that the compiler
// folds into one load or store.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ordma_hw.hpp"

namespace ordma::twin {

static_assert(hw::kIndexBits == 24 && hw::kPsnBits == 24, "PSNs and indices share this arithmetic");
inline constexpr std::uint32_t kSeqMask = (1u << hw::kIndexBits) - 1;

constexpr std::uint32_t seq_add(std::uint32_t a, std::uint32_t b) { return (a + b) & kSeqMask; }
constexpr std::uint32_t seq_sub(std::uint32_t a, std::uint32_t b) { return (a - b) & kSeqMask; }
// Signed distance a - b, in -2^23 .. 2^23-1.
constexpr std::int32_t seq_diff(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>((a - b) << 8) >> 8;
}

template <class E>
constexpr std::uint64_t raw_value(E e) {
  return static_cast<std::uint64_t>(e);
}

// Fields of whole words: one swapped access.
template <hw::BigField F>
inline constexpr bool is_word = F.bitoff % 8 == 0 && (F.width == 16 || F.width == 32 ||
                                                      F.width == 64);
template <unsigned Width>
using Word = std::conditional_t<Width == 16, std::uint16_t,
                                std::conditional_t<Width == 32, std::uint32_t, std::uint64_t>>;
template <class T>
T big_endian(T v) {
  if constexpr (std::endian::native == std::endian::big) return v;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(v);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(v);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(v);
}

// hw::get and hw::set for fields known at compile time; `p` points at the header.
template <hw::BigField F>
std::uint64_t peek(const std::byte* p) {
  if constexpr (is_word<F>) {
    Word<F.width> v;
    std::memcpy(&v, p + F.bitoff / 8, sizeof v);
    return big_endian(v);
  }
  constexpr unsigned first = F.bitoff / 8;
  constexpr unsigned last = (F.bitoff + F.width - 1u) / 8;
  static_assert(last - first < 8);
  std::uint64_t v = 0;
  for (unsigned i = first; i <= last; ++i) v = (v << 8) | std::to_integer<std::uint64_t>(p[i]);
  return (v >> ((last + 1) * 8 - (F.bitoff + F.width))) & hw::mask(F.width);
}

// Fields that share a byte with others must be poked after them or into zeroed bytes: bits outside
// the field are kept.
template <hw::BigField F>
void poke(std::byte* p, std::uint64_t value) {
  if constexpr (is_word<F>) {
    const auto v = big_endian(static_cast<Word<F.width>>(value));
    std::memcpy(p + F.bitoff / 8, &v, sizeof v);
    return;
  }
  constexpr unsigned first = F.bitoff / 8;
  constexpr unsigned last = (F.bitoff + F.width - 1u) / 8;
  static_assert(last - first < 8);
  constexpr unsigned shift = (last + 1) * 8 - (F.bitoff + F.width);
  std::uint64_t v = (value & hw::mask(F.width)) << shift;
  if constexpr (F.bitoff % 8 != 0 || F.width % 8 != 0) {
    std::uint64_t old = 0;
    for (unsigned i = first; i <= last; ++i) {
      old = (old << 8) | std::to_integer<std::uint64_t>(p[i]);
    }
    v |= old & ~(hw::mask(F.width) << shift);
  }
  for (unsigned i = last + 1; i-- > first;) {
    p[i] = static_cast<std::byte>(v);
    v >>= 8;
  }
}

}  // namespace ordma::twin
