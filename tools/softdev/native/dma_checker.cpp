// SPDX-License-Identifier: BSD-2-Clause
#include "native/dma_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ordma::softdev {

void DmaChecker::granted(std::uint64_t addr, std::uint64_t bytes) {
  grants_.emplace(addr, addr + bytes);
}

void DmaChecker::revoked(std::uint64_t addr, std::uint64_t bytes) {
  const auto [first, last] = grants_.equal_range(addr);
  const auto it = std::find_if(first, last, [&](const auto& grant) {
    return grant.second == addr + bytes;
  });
  if (it == last) {
    report(fmt::format("revoked {:#x}+{:#x} was never granted", addr, bytes));
    return;
  }
  grants_.erase(it);
}

bool DmaChecker::covered(std::uint64_t addr, std::uint64_t end) const {
  // In order of their begins; each may only carry the covered prefix on.
  for (const auto& [grant_begin, grant_end] : grants_) {
    if (grant_begin > addr) return false;
    if (grant_end <= addr) continue;
    addr = grant_end;
    if (addr >= end) return true;
  }
  return false;
}

void DmaChecker::accessed(std::uint64_t addr, std::uint64_t bytes, bool write) {
  ++accesses_;
  if (bytes == 0 || covered(addr, addr + bytes)) return;
  report(fmt::format("{} of {:#x}+{:#x} outside every granted range", write ? "write" : "read",
                     addr, bytes));
}

void DmaChecker::report(std::string text) {
  ++violations_;
  if (reports_.size() < kReportsMax) reports_.push_back(std::move(text));
}

}  // namespace ordma::softdev
