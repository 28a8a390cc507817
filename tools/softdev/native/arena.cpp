// SPDX-License-Identifier: BSD-2-Clause
#include "native/arena.hpp"

#include <sys/mman.h>

#include <cassert>
#include <new>

namespace ordma::softdev {

Arena::Arena(std::size_t reserve_bytes)
    : size_((reserve_bytes + kGrain - 1) / kGrain * kGrain), last_(live_.end()) {
  void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  free_.emplace(0, size_);
}

Arena::~Arena() { ::munmap(memory_, size_); }

std::optional<std::uint64_t> Arena::allocate(std::size_t bytes) {
  if (bytes == 0 || bytes > size_) return std::nullopt;
  const std::uint64_t need = (bytes + kGrain - 1) / kGrain * kGrain;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [offset, length] = *it;
    if (length < need) continue;
    free_.erase(it);
    if (length > need) free_.emplace(offset + need, length - need);
    live_.emplace(offset, need);
    last_ = live_.end();
    used_ += need;
    return kBase + offset;
  }
  return std::nullopt;
}

void Arena::free(std::uint64_t addr) {
  const auto it = live_.find(addr - kBase);
  assert(it != live_.end());
  std::uint64_t offset = it->first;
  std::uint64_t length = it->second;
  live_.erase(it);
  last_ = live_.end();
  used_ -= length;
  // Gives the pages back and makes the next owner see zeroes.
  ::madvise(memory_ + offset, length, MADV_DONTNEED);
  auto next = free_.upper_bound(offset);
  if (next != free_.begin()) {
    const auto prev = std::prev(next);
    if (prev->first + prev->second == offset) {
      offset = prev->first;
      length += prev->second;
      free_.erase(prev);
    }
  }
  if (next != free_.end() && offset + length == next->first) {
    length += next->second;
    free_.erase(next);
  }
  free_.emplace(offset, length);
}

std::span<std::byte> Arena::at(std::uint64_t addr, std::size_t len) {
  if (addr < kBase || len > size_) return {};
  const std::uint64_t offset = addr - kBase;
  const auto holds = [&](Ranges::const_iterator it) {
    return offset >= it->first && offset - it->first <= it->second &&
           len <= it->second - (offset - it->first);
  };
  if (last_ == live_.end() || !holds(last_)) {
    auto it = live_.upper_bound(offset);
    if (it == live_.begin()) return {};
    last_ = --it;
    if (!holds(last_)) return {};
  }
  return {memory_ + offset, len};
}

}  // namespace ordma::softdev
