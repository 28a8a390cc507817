// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/engine.hpp"

namespace ordma::softdev {

// Doorbell pages that are plain memory: turns what posters store into doorbell calls of the engine.
// Index pages: each slot against a shadow, the latest value wins. Token pages: slots in order, a
// word counts when both halves show the lap that is due. scan() never writes to a page.
class DoorbellScanner {
 public:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kSlots = kPageBytes / 8;
  // Tokens of one page per scan: a poster that never stops must not hold the others up.
  static constexpr unsigned kTokensPerScan = 128;

  // `memory` is kPageBytes of 8-byte aligned memory that outlives the page; it is zeroed here.
  // Both may be called from inside scan(): a doorbell may make the engine run a command.
  void open(std::uint32_t page, std::byte* memory, bool token);
  void close(std::uint32_t page);
  // The slot's queue is gone: a next queue's first word must count as new, also when it is equal.
  void clear_slot(std::uint32_t page, std::size_t slot);
  // Delivers what is new. True when anything was.
  [[nodiscard]] bool scan(Engine& engine);
  [[nodiscard]] bool tokens_open() const { return token_pages_ != 0; }
  [[nodiscard]] std::uint64_t words() const { return words_; }

 private:
  struct Page {
    std::uint32_t number = 0;
    bool token = false;
    bool closed = false;
    std::byte* memory = nullptr;
    std::uint64_t taken = 0;  // token pages
    std::array<std::uint64_t, kSlots> shadow{};
  };
  bool scan_index(Page& page, Engine& engine);
  bool scan_tokens(Page& page, Engine& engine);
  void collect_driver_words(Page& page);
  void sweep();

  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> driver_words_;  // slot, word
  bool scanning_ = false;
  std::size_t token_pages_ = 0;
  std::uint64_t words_ = 0;
};

}  // namespace ordma::softdev
