// SPDX-License-Identifier: BSD-2-Clause
#include "vm/vm_attachment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "base/log.hpp"

namespace ordma::softdev {
namespace {

constexpr std::size_t index_of(std::uint32_t offset) {
  std::size_t i = 0;
  while (i < hw::kRegs.size() && hw::kRegs[i].offset != offset) ++i;
  return i;
}
constexpr std::size_t kReset = index_of(hw::reg::kReset);
constexpr std::size_t kEnable = index_of(hw::reg::kEnable);
static_assert(kReset < hw::kRegs.size() && kEnable < hw::kRegs.size());

// Written by the owner of time and sleep, not by the engine.
bool published(std::uint32_t offset) {
  return offset == hw::reg::kAsleep || offset == hw::reg::kClock;
}

}  // namespace

VmAttachment::VmAttachment(EventLoop& loop, std::string name, const std::string& ram_path)
    : name_(std::move(name)),
      memory_(ram_path),
      server_(loop, kVectors,
              {.connected = [this] { start_afresh(); },
               .disconnected = [this] { guest_gone(); },
               .kicked = [this] { ++kicks_; }}) {}

VmAttachment::~VmAttachment() = default;

void VmAttachment::bind(Engine& engine) {
  engine_ = &engine;
  make_bar();
  start_afresh();
}

void VmAttachment::make_bar() {
  const auto pages = engine_->register_read(hw::reg::kMaxPage);
  // A BAR is a power of two.
  const std::size_t bytes = std::bit_ceil(page_offset(static_cast<std::uint32_t>(pages)));
  auto memory = SharedMemory::create("ordma-bar", bytes);
  if (!memory) throw std::runtime_error(name_ + ": no memory for a BAR");
  bar_ = std::move(*memory);
}

std::string VmAttachment::listen(const std::string& path) {
  return server_.listen(path, bar_.fd());
}

void VmAttachment::start_afresh() {
  std::memset(bar_.data(), 0, bar_.size());
  shadow_.fill(0);
  mirror_registers();
  scanner_.open(hw::kDriverPage, bar_.data() + page_offset(hw::kDriverPage), false);
}

void VmAttachment::mirror_registers() {
  for (const hw::RegInfo& reg : hw::kRegs) {
    if (!reg.writable && !published(reg.offset)) store(reg, engine_->register_read(reg.offset));
  }
}

void VmAttachment::shutdown() {
  engine_->register_write(hw::reg::kEnable, 0);
  memory_.detach();
}

void VmAttachment::guest_gone() {
  memory_.detach();
  engine_->register_write(hw::reg::kEnable, 0);
  // Any nonce that is not the last one.
  engine_->register_write(hw::reg::kReset, engine_->register_read(hw::reg::kResetEcho) + 2);
}

// ---------------------------------------------------------------------------------- host port

bool VmAttachment::read(std::uint64_t addr, std::span<std::byte> dst) {
  if (memory_.read(addr, dst)) return true;
  ++refused_dma_;
  log_debug("{}: read of {:#x}+{:#x} refused", name_, addr, dst.size());
  return false;
}

bool VmAttachment::write(std::uint64_t addr, std::span<const std::byte> src, WriteKind) {
  if (memory_.write(addr, src)) return true;
  ++refused_dma_;
  log_debug("{}: write of {:#x}+{:#x} refused", name_, addr, src.size());
  return false;
}

void VmAttachment::interrupt(unsigned vector) {
  ++interrupts_;
  server_.interrupt(vector);
}

void VmAttachment::register_changed(std::uint32_t offset, std::uint64_t value) {
  const std::size_t index = index_of(offset);
  if (index == hw::kRegs.size() || hw::kRegs[index].writable || published(offset)) return;
  store(hw::kRegs[index], value);
}

void VmAttachment::page_changed(std::uint32_t page, bool open, bool token) {
  if (page == hw::kDriverPage || page_offset(page + 1) > bar_.size()) return;
  if (open) {
    scanner_.open(page, bar_.data() + page_offset(page), token);
  } else {
    scanner_.close(page);
  }
}

// ---------------------------------------------------------------------------------- registers

std::uint64_t VmAttachment::load(const hw::RegInfo& reg) const {
  const std::byte* const at = bar_.data() + reg.offset;
  if (reg.width == 64) {
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE);
  }
  return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE);
}

void VmAttachment::store(const hw::RegInfo& reg, std::uint64_t value) {
  std::byte* const at = bar_.data() + reg.offset;
  if (reg.width == 64) {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(at), value, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(at), static_cast<std::uint32_t>(value),
                     __ATOMIC_RELEASE);
  }
}

// The driver waits for RESET_ECHO before it writes anything else. What an earlier driver left must
// not hide its writes: an equal value would be no change.
void VmAttachment::before_reset() {
  for (std::size_t i = 0; i < hw::kRegs.size(); ++i) {
    if (!hw::kRegs[i].writable || i == kReset) continue;
    store(hw::kRegs[i], 0);
    shadow_[i] = 0;
  }
  mirror_registers();
  scanner_.open(hw::kDriverPage, bar_.data() + page_offset(hw::kDriverPage), false);
}

bool VmAttachment::scan_registers() {
  bool found = false;
  const std::uint64_t nonce = load(hw::kRegs[kReset]);
  if (nonce != shadow_[kReset]) {
    before_reset();
    shadow_[kReset] = nonce;
    engine_->register_write(hw::reg::kReset, nonce);
    found = true;
  }
  // Read first, handed over last: whoever sees ENABLE = 1 sees the bases that were set before it.
  const std::uint64_t enable = load(hw::kRegs[kEnable]);
  for (std::size_t i = 0; i < hw::kRegs.size(); ++i) {
    if (!hw::kRegs[i].writable || i == kReset || i == kEnable) continue;
    const std::uint64_t value = load(hw::kRegs[i]);
    if (value == shadow_[i]) continue;
    shadow_[i] = value;
    engine_->register_write(hw::kRegs[i].offset, value);
    found = true;
  }
  if (enable != shadow_[kEnable]) {
    shadow_[kEnable] = enable;
    if (enable != 0 && !memory_.attached()) {
      if (const std::string error = memory_.attach(); !error.empty()) {
        log_error("{}: no guest memory: {}", name_, error);
      }
    }
    engine_->register_write(hw::reg::kEnable, enable);
    found = true;
  }
  return found;
}

bool VmAttachment::scan() {
  bool found = scan_registers();
  found |= scanner_.scan(*engine_);
  return found;
}

bool VmAttachment::service(std::uint64_t now_ns) {
  const bool probing = server_.connected() && shadow_[kEnable] == 0;
  if (!probing) {
    poll_at_ns_ = ~std::uint64_t{0};
  } else if (poll_at_ns_ == ~std::uint64_t{0} || poll_at_ns_ <= now_ns) {
    poll_at_ns_ = now_ns + kProbePollNs;
  }
  return false;
}

void VmAttachment::publish_asleep(bool asleep) {
  PublicPage(bar_.data() + hw::reg::kAsleep).set_asleep(asleep);
}

void VmAttachment::publish_clock(std::uint64_t now_ns) {
  PublicPage(bar_.data() + hw::reg::kAsleep).set_clock(now_ns);
}

void VmAttachment::append_counters(std::string_view scope, std::string* text) {
  const auto line = [&](std::string_view name, std::uint64_t value) {
    fmt::format_to(std::back_inserter(*text), "{} {} {}\n", scope, name, value);
  };
  line("vm_connected", server_.connected() ? 1 : 0);
  line("vm_interrupts", interrupts_);
  line("vm_kicks", kicks_);
  line("vm_refused_dma", refused_dma_);
  line("doorbell_words", scanner_.words());
}

}  // namespace ordma::softdev
