// SPDX-License-Identifier: BSD-2-Clause
#include "memory.hpp"

#include <algorithm>

namespace ordma::twin {
namespace {

inline constexpr std::size_t kTlbLines = 4096;
inline constexpr std::uint64_t kLineEntries = 8;
inline constexpr std::uint32_t kMkeyIndexMask = (1u << hw::kMkeyIndexBits) - 1;

}  // namespace

Memory::Memory(HostPort& host, std::uint32_t max_mr)
    : host_(host), mrs_(std::min(max_mr, kMkeyIndexMask + 1)), tlb_(kTlbLines) {}

void Memory::reset() {
  for (Mr& mr : mrs_) mr.valid = false;
  std::fill(tlb_.begin(), tlb_.end(), TlbLine{});
}

Mr* Memory::slot(std::uint32_t key) {
  const std::uint32_t index = key & kMkeyIndexMask;
  return index != 0 && index < mrs_.size() ? &mrs_[index] : nullptr;
}

void Memory::create(Mr& slot, const Mr& mr) {
  // A new generation makes TLB lines of the slot's previous life miss.
  const std::uint32_t generation = slot.generation + 1;
  slot = mr;
  slot.generation = generation;
  slot.valid = true;
}

void Memory::destroy(Mr& slot) {
  slot.valid = false;
  ++slot.generation;
}

Fault Memory::find(std::uint32_t key, Rights rights, std::uint64_t va, std::uint64_t bytes,
                   const Mr*& out) const {
  const std::uint32_t index = key & kMkeyIndexMask;
  if (index >= mrs_.size()) return Fault::kKey;
  const Mr& mr = mrs_[index];
  if (!mr.valid || mr.key != key || mr.pd != rights.pd) return Fault::kKey;
  if ((mr.access & rights.need) != rights.need) return Fault::kAccess;
  // Each comparison is safe for any va and length, up to the top of the address space.
  if (va < mr.iova || bytes > mr.length || va - mr.iova > mr.length - bytes) return Fault::kRange;
  out = &mr;
  return Fault::kNone;
}

Fault Memory::check(std::uint32_t key, Rights rights, std::uint64_t va,
                    std::uint64_t bytes) const {
  if (bytes == 0) return Fault::kNone;
  if (key == hw::kReservedLkey) {
    return !rights.local_dma ? Fault::kKey : bytes - 1 > ~va ? Fault::kRange : Fault::kNone;
  }
  const Mr* mr = nullptr;
  return find(key, rights, va, bytes, mr);
}

bool Memory::list_line(hw::BufLevel level, std::uint64_t addr, std::uint64_t line,
                       std::uint64_t pages, std::array<std::uint64_t, 8>& out) {
  std::uint64_t first = line * kLineEntries;
  const std::uint64_t count = std::min(kLineEntries, pages - first);
  if (level == hw::BufLevel::kTree) {
    std::array<std::byte, 8> leaf;
    if (!host_.read(addr + (first >> hw::kPblLeafLog) * 8, leaf)) return false;
    addr = hw::load_le64(leaf, 0);
    first &= hw::kPblLeafEntries - 1;
  }
  std::array<std::byte, kLineEntries * 8> raw{};
  if (!host_.read(addr + first * 8, std::span(raw).first(count * 8))) return false;
  for (std::size_t i = 0; i < kLineEntries; ++i) out[i] = hw::load_le64(raw, i * 8);
  return true;
}

bool Memory::page_of(const Mr& mr, std::uint64_t number, std::uint64_t& page) {
  const auto index = static_cast<std::uint32_t>(&mr - mrs_.data());
  const std::uint64_t line = number / kLineEntries;
  TlbLine& t = tlb_[(line ^ (std::uint64_t{index} * 0x9e3779b1u >> 8)) % kTlbLines];
  if (t.mr != index || t.generation != mr.generation || t.line != line) {
    const std::uint64_t last = (mr.first_off + (mr.length - 1)) >> mr.page_log;
    t.mr = ~0u;
    if (!list_line(mr.level, mr.addr, line, last + 1, t.pages)) return false;
    t.mr = index;
    t.generation = mr.generation;
    t.line = line;
  }
  page = t.pages[number % kLineEntries];
  return true;
}

template <class Move>
Fault Memory::pieces(const Mr& mr, std::uint64_t va, std::size_t bytes, Move&& move) {
  if (mr.level == hw::BufLevel::kDirect) {
    return move(mr.addr + (va - mr.iova), std::size_t{0}, bytes) ? Fault::kNone : Fault::kDma;
  }
  const std::uint64_t page_bytes = std::uint64_t{1} << mr.page_log;
  std::uint64_t at = mr.first_off + (va - mr.iova);
  std::size_t done = 0;
  std::uint64_t dma = 0;
  std::size_t run = 0;  // bytes gathered at dma and not yet moved: neighbours make one transfer
  while (done + run < bytes) {
    std::uint64_t page = 0;
    if (!page_of(mr, at >> mr.page_log, page)) return Fault::kDma;
    const std::uint64_t in_page = at & (page_bytes - 1);
    const std::size_t n =
        static_cast<std::size_t>(std::min<std::uint64_t>(page_bytes - in_page, bytes - done - run));
    if (run != 0 && dma + run != page + in_page) {
      if (!move(dma, done, run)) return Fault::kDma;
      done += run;
      run = 0;
    }
    if (run == 0) dma = page + in_page;
    run += n;
    at += n;
  }
  return move(dma, done, run) ? Fault::kNone : Fault::kDma;
}

Fault Memory::read(std::uint32_t key, Rights rights, std::uint64_t va, std::span<std::byte> dst) {
  if (dst.empty()) return Fault::kNone;
  if (key == hw::kReservedLkey) {
    if (!rights.local_dma) return Fault::kKey;
    return host_.read(va, dst) ? Fault::kNone : Fault::kDma;
  }
  const Mr* mr = nullptr;
  const Fault fault = find(key, rights, va, dst.size(), mr);
  if (fault != Fault::kNone) return fault;
  return pieces(*mr, va, dst.size(), [&](std::uint64_t dma, std::size_t at, std::size_t n) {
    return host_.read(dma, dst.subspan(at, n));
  });
}

Fault Memory::write(std::uint32_t key, Rights rights, std::uint64_t va,
                    std::span<const std::byte> src) {
  if (src.empty()) return Fault::kNone;
  if (key == hw::kReservedLkey) {
    if (!rights.local_dma) return Fault::kKey;
    return host_.write(va, src, WriteKind::kPayload) ? Fault::kNone : Fault::kDma;
  }
  const Mr* mr = nullptr;
  const Fault fault = find(key, rights, va, src.size(), mr);
  if (fault != Fault::kNone) return fault;
  return pieces(*mr, va, src.size(), [&](std::uint64_t dma, std::size_t at, std::size_t n) {
    return host_.write(dma, src.subspan(at, n), WriteKind::kPayload);
  });
}

bool Memory::locate(QueueBuf& buf, std::uint64_t offset, std::uint64_t& dma) {
  if (buf.level == hw::BufLevel::kDirect) {
    dma = buf.addr + offset;
    return true;
  }
  const std::uint64_t number = offset >> buf.page_log;
  const auto line = static_cast<std::uint32_t>(number / kLineEntries);
  if (buf.line != line) {
    buf.line = ~0u;
    if (!list_line(buf.level, buf.addr, line, buf.pages, buf.entries)) return false;
    buf.line = line;
  }
  dma = buf.entries[number % kLineEntries] + (offset & ((std::uint64_t{1} << buf.page_log) - 1));
  return true;
}

bool Memory::read_queue(QueueBuf& buf, std::uint64_t offset, std::span<std::byte> dst) {
  std::uint64_t dma = 0;
  return locate(buf, offset, dma) && host_.read(dma, dst);
}

}  // namespace ordma::twin
