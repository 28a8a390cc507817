// SPDX-License-Identifier: BSD-2-Clause
#include "device/doorbell_scanner.hpp"

#include <algorithm>
#include <cstring>

#include "ordma_hw.hpp"

namespace ordma::softdev {
namespace {

static_assert(DoorbellScanner::kSlots == hw::kPageSlots);

const std::uint64_t* slot_of(const std::byte* memory, std::size_t slot) {
  return reinterpret_cast<const std::uint64_t*>(memory) + slot;
}

std::uint64_t load_relaxed(const std::byte* memory, std::size_t slot) {
  return __atomic_load_n(slot_of(memory, slot), __ATOMIC_RELAXED);
}

// What the poster stored before the word (WQEs, records) must be read after it.
std::uint64_t load_acquire(const std::byte* memory, std::size_t slot) {
  return __atomic_load_n(slot_of(memory, slot), __ATOMIC_ACQUIRE);
}

}  // namespace

void DoorbellScanner::open(std::uint32_t page, std::byte* memory, bool token) {
  close(page);
  std::memset(memory, 0, kPageBytes);
  Page& entry = *pages_.emplace_back(std::make_unique<Page>());
  entry.number = page;
  entry.token = token;
  entry.memory = memory;
  if (token) ++token_pages_;
}

void DoorbellScanner::close(std::uint32_t page) {
  for (const auto& entry : pages_) {
    if (entry->number != page || entry->closed) continue;
    entry->closed = true;
    if (entry->token) --token_pages_;
  }
  if (!scanning_) sweep();
}

void DoorbellScanner::clear_slot(std::uint32_t page, std::size_t slot) {
  for (const auto& entry : pages_) {
    if (entry->number != page || entry->closed || entry->token) continue;
    auto* const words = reinterpret_cast<std::uint64_t*>(entry->memory);
    __atomic_store_n(words + slot, std::uint64_t{0}, __ATOMIC_RELAXED);
    entry->shadow[slot] = 0;
  }
}

void DoorbellScanner::sweep() {
  std::erase_if(pages_, [](const auto& entry) { return entry->closed; });
}

// The driver's words are read first and delivered last: what a program rang before its driver
// issued a command (a reset, the reuse of a slot) is seen before that command, as on a bus.
bool DoorbellScanner::scan(Engine& engine) {
  bool found = false;
  scanning_ = true;
  driver_words_.clear();
  for (const auto& page : pages_) {
    if (page->number == hw::kDriverPage && !page->closed) collect_driver_words(*page);
  }
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    Page& page = *pages_[i];
    if (page.closed || page.number == hw::kDriverPage) continue;
    found |= page.token ? scan_tokens(page, engine) : scan_index(page, engine);
  }
  // The command rings have the first slots; the driver's own queues behind them come before.
  for (auto it = driver_words_.rbegin(); it != driver_words_.rend(); ++it) {
    found = true;
    engine.doorbell(hw::kDriverPage, it->first * 8, it->second);
  }
  scanning_ = false;
  if (found) sweep();
  return found;
}

void DoorbellScanner::collect_driver_words(Page& page) {
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const std::uint64_t word = load_acquire(page.memory, slot);
    if (word == page.shadow[slot]) continue;
    page.shadow[slot] = word;
    ++words_;
    if (word != 0) driver_words_.emplace_back(static_cast<std::uint32_t>(slot), word);
  }
}

bool DoorbellScanner::scan_index(Page& page, Engine& engine) {
  constexpr std::size_t kBlock = 8;
  bool found = false;
  for (std::size_t base = 0; base < kSlots; base += kBlock) {
    std::uint64_t changed = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      changed |= load_relaxed(page.memory, base + i) ^ page.shadow[base + i];
    }
    if (changed == 0) [[likely]] continue;
    for (std::size_t slot = base; slot < base + kBlock; ++slot) {
      const std::uint64_t word = load_acquire(page.memory, slot);
      if (word == page.shadow[slot]) continue;
      page.shadow[slot] = word;
      if (word == 0) continue;  // cleared for its next owner
      ++words_;
      found = true;
      engine.doorbell(page.number, static_cast<std::uint32_t>(slot * 8), word);
      if (page.closed) return true;
    }
  }
  return found;
}

bool DoorbellScanner::scan_tokens(Page& page, Engine& engine) {
  unsigned taken = 0;
  for (; taken < kTokensPerScan && !page.closed; ++taken) {
    const std::size_t slot = page.taken % kSlots;
    const std::uint64_t lap = (page.taken / kSlots) % 2 == 0 ? 1 : 0;
    const std::uint64_t word = load_acquire(page.memory, slot);
    if (hw::wget(word, hw::token::lap_lo) != lap || hw::wget(word, hw::token::lap_hi) != lap) {
      break;
    }
    ++page.taken;
    ++words_;
    engine.doorbell(page.number, static_cast<std::uint32_t>(slot * 8), word);
  }
  return taken != 0;
}

}  // namespace ordma::softdev
