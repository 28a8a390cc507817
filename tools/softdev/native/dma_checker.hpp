// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "native/dma_watch.hpp"

namespace ordma::softdev {

// For tests: every access must lie in ranges that are granted at that moment. Grants of the same
// range are counted (two MRs over one buffer).
class DmaChecker final : public DmaWatch {
 public:
  static constexpr std::size_t kReportsMax = 16;

  void granted(std::uint64_t addr, std::uint64_t bytes) override;
  void revoked(std::uint64_t addr, std::uint64_t bytes) override;
  void accessed(std::uint64_t addr, std::uint64_t bytes, bool write) override;

  [[nodiscard]] std::uint64_t accesses() const { return accesses_; }
  [[nodiscard]] std::uint64_t violations() const { return violations_; }
  // The first few, one line each.
  [[nodiscard]] const std::vector<std::string>& reports() const { return reports_; }

 private:
  [[nodiscard]] bool covered(std::uint64_t addr, std::uint64_t end) const;
  void report(std::string text);

  std::multimap<std::uint64_t, std::uint64_t> grants_;  // begin -> end
  std::uint64_t accesses_ = 0;
  std::uint64_t violations_ = 0;
  std::vector<std::string> reports_;
};

}  // namespace ordma::softdev
