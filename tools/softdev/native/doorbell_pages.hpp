// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "native/nic.hpp"

namespace ordma::softdev {

// The index doorbell pages of one user context and who has which slot.
class DoorbellPages {
 public:
  DoorbellPages(NativeNic& nic, std::uint32_t uctx) : nic_(nic), uctx_(uctx) {}
  ~DoorbellPages();
  DoorbellPages(const DoorbellPages&) = delete;
  DoorbellPages& operator=(const DoorbellPages&) = delete;

  // `count` (1 or 2) neighbouring slots, opening a page when none has room. 0 or errno.
  [[nodiscard]] int get(std::uint32_t count, DoorbellSlot* slot);
  void put(const DoorbellSlot& slot);
  // -1: not a page of this context.
  [[nodiscard]] int fd_of(std::uint32_t page) const;

 private:
  struct Page {
    ordma_db_page slots{};
    int fd = -1;
  };
  [[nodiscard]] int open_page();

  NativeNic& nic_;
  std::uint32_t uctx_;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace ordma::softdev
