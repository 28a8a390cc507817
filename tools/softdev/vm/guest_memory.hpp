// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/shared_memory.hpp"

namespace ordma::softdev {

// The memory of a guest: a file that QEMU made (memory-backend-file,share=on). Below 2 GiB a guest
// physical address is the offset in that file on every PC machine type; more is refused.
class GuestMemory {
 public:
  static constexpr std::uint64_t kBytesMax = std::uint64_t{2} << 30;

  explicit GuestMemory(std::string path) : path_(std::move(path)) {}

  // QEMU makes the file after it has connected: maps it when it is there. Empty on success.
  [[nodiscard]] std::string attach();
  void detach() { mapping_ = Mapping(); }
  [[nodiscard]] bool attached() const { return mapping_.size() != 0; }

  [[nodiscard]] bool read(std::uint64_t addr, std::span<std::byte> dst) const;
  // The last aligned word becomes visible last.
  [[nodiscard]] bool write(std::uint64_t addr, std::span<const std::byte> src);

 private:
  [[nodiscard]] bool holds(std::uint64_t addr, std::size_t bytes) const;

  std::string path_;
  Mapping mapping_;
};

}  // namespace ordma::softdev
