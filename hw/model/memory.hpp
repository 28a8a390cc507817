// SPDX-License-Identifier: BSD-2-Clause
// Protection and translation: every access to a buffer goes through here, before it enters the
// ordered egress.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "objects.hpp"

namespace ordma::twin {

enum class Fault : std::uint8_t { kNone, kKey, kAccess, kRange, kDma };

struct Rights {
  std::uint32_t pd = 0;
  std::uint8_t need = 0;      // access bits
  bool local_dma = false;     // RESERVED_LKEY is valid
};
inline constexpr std::uint8_t kNoAccess = 0;
constexpr std::uint8_t access_bit(hw::Access a) { return static_cast<std::uint8_t>(a); }

class Memory {
 public:
  Memory(HostPort& host, std::uint32_t max_mr);
  void reset();

  [[nodiscard]] Fault check(std::uint32_t key, Rights rights, std::uint64_t va,
                            std::uint64_t bytes) const;
  // Check and transfer. An empty span touches nothing and checks nothing.
  [[nodiscard]] Fault read(std::uint32_t key, Rights rights, std::uint64_t va,
                           std::span<std::byte> dst);
  [[nodiscard]] Fault write(std::uint32_t key, Rights rights, std::uint64_t va,
                            std::span<const std::byte> src);

  [[nodiscard]] Mr* slot(std::uint32_t key);
  void create(Mr& slot, const Mr& mr);
  void destroy(Mr& slot);

  // DMA address of a byte of a ring; false when the page list cannot be read.
  [[nodiscard]] bool locate(QueueBuf& buf, std::uint64_t offset, std::uint64_t& dma);
  // Reads a piece of a ring that does not cross a page.
  [[nodiscard]] bool read_queue(QueueBuf& buf, std::uint64_t offset, std::span<std::byte> dst);

 private:
  struct TlbLine {
    std::uint32_t mr = ~0u;
    std::uint32_t generation = 0;
    std::uint64_t line = 0;
    std::array<std::uint64_t, 8> pages{};
  };
  [[nodiscard]] Fault find(std::uint32_t key, Rights rights, std::uint64_t va,
                           std::uint64_t bytes, const Mr*& mr) const;
  [[nodiscard]] bool list_line(hw::BufLevel level, std::uint64_t addr, std::uint64_t line,
                               std::uint64_t pages, std::array<std::uint64_t, 8>& out);
  [[nodiscard]] bool page_of(const Mr& mr, std::uint64_t number, std::uint64_t& page);
  // Calls move(dma, offset, bytes) for each contiguous piece of [va, va + bytes).
  template <class Move>
  [[nodiscard]] Fault pieces(const Mr& mr, std::uint64_t va, std::size_t bytes, Move&& move);

  HostPort& host_;
  std::vector<Mr> mrs_;
  std::vector<TlbLine> tlb_;
};

}  // namespace ordma::twin
