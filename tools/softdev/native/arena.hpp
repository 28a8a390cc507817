// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

namespace ordma::softdev {

// DMA memory of the soft-device itself (client 0): command and event rings, order logs, atomic
// rings, images, records. Private to this process; addresses start at kBase, so that 0 is never
// one. Only live allocations are accessible, so a stray DMA is refused and not absorbed.
class Arena {
 public:
  static constexpr std::uint64_t kBase = std::uint64_t{1} << 32;
  static constexpr std::size_t kGrain = 4096;

  // Reserves address space only; memory is used as it is touched.
  explicit Arena(std::size_t reserve_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Zeroed, page aligned. Nothing when full.
  [[nodiscard]] std::optional<std::uint64_t> allocate(std::size_t bytes);
  // `addr` is what allocate() returned; anything else is a bug of the caller.
  void free(std::uint64_t addr);
  // The bytes at [addr, addr + len), empty unless they lie in one live allocation.
  [[nodiscard]] std::span<std::byte> at(std::uint64_t addr, std::size_t len);
  [[nodiscard]] std::size_t used_bytes() const { return used_; }

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  // offset -> length

  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
  Ranges free_;
  Ranges live_;
  Ranges::const_iterator last_;  // of live_; DMA comes in runs to one object
};

}  // namespace ordma::softdev
