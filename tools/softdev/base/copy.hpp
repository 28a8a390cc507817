// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ordma::softdev {

// Copies so that an observer who sees the last aligned 8-byte word sees everything before it: what
// is polled (a phase bit, a flag, the last word of a payload) must not show before what it
// announces.
inline void copy_last_word_last(std::byte* dst, std::span<const std::byte> src) {
  const auto end = reinterpret_cast<std::uintptr_t>(dst) + src.size();
  if (src.size() < 8 || end % 8 != 0) {
    std::memcpy(dst, src.data(), src.size());
    return;
  }
  const std::size_t head = src.size() - 8;
  std::memcpy(dst, src.data(), head);
  std::uint64_t last;
  std::memcpy(&last, src.data() + head, sizeof last);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(dst + head), last, __ATOMIC_RELEASE);
}

}  // namespace ordma::softdev
