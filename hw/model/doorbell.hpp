// SPDX-License-Identifier: BSD-2-Clause
// The doorbell stage: checks a word against the page it came from and the object it names, and
// always drains.
#pragma once

#include <cstdint>
#include <vector>

#include "objects.hpp"

namespace ordma::twin {

struct Nic;

class Doorbells {
 public:
  Doorbells(Nic& nic, std::uint32_t max_page);
  void reset();

  void take(std::uint32_t page, std::uint32_t offset, std::uint64_t word, std::uint8_t strobes);

  [[nodiscard]] Page* page(std::uint32_t number) {
    return number < pages_.size() ? &pages_[number] : nullptr;
  }
  void open(Page& page, std::uint16_t uctx, bool token, std::uint64_t record);
  void close(Page& page);

  // Writes the records of token pages that went idle.
  void sweep();
  [[nodiscard]] std::uint64_t next_timer() const;

 private:
  [[nodiscard]] hw::DbErr check(const Page& page, std::uint32_t offset, std::uint64_t word,
                                std::uint8_t strobes) const;
  [[nodiscard]] hw::DbErr ring(const Page& page, std::uint64_t word);
  [[nodiscard]] hw::DbErr ring_sq(const Page& page, std::uint32_t number, std::uint32_t index);
  [[nodiscard]] hw::DbErr ring_rq(const Page& page, std::uint32_t number, std::uint32_t index);
  [[nodiscard]] hw::DbErr ring_srq(const Page& page, std::uint32_t number, std::uint32_t index);
  [[nodiscard]] hw::DbErr ring_cq(const Page& page, std::uint32_t number, std::uint64_t word);
  void refuse(Page& page, std::uint64_t word, hw::DbErr why);
  void write_record(Page& page);

  Nic& nic_;
  std::vector<Page> pages_;
  List<Page, &Page::idle_link> unreported_;  // oldest word first
};

}  // namespace ordma::twin
