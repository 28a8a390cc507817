// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/engine.hpp"

namespace ordma::softdev {

// The host side of one NIC: memory, doorbells, registers, interrupts. Knows neither the fabric nor
// how the engine works inside. All calls come from the one thread of the soft-device.
class Attachment {
 public:
  virtual ~Attachment() = default;

  // Once, before anything else. The engine outlives the attachment's use of it.
  virtual void bind(Engine& engine) = 0;
  // Takes everything down while all engines still run. Called once, after bind().
  virtual void shutdown() = 0;

  // What the engine does to the host (engine/engine.hpp, HostPort).
  [[nodiscard]] virtual bool read(std::uint64_t addr, std::span<std::byte> dst) = 0;
  [[nodiscard]] virtual bool write(std::uint64_t addr, std::span<const std::byte> src,
                                   WriteKind kind) = 0;
  virtual void interrupt(unsigned vector) = 0;
  virtual void register_changed(std::uint32_t offset, std::uint64_t value) = 0;
  virtual void page_changed(std::uint32_t page, bool open, bool token) = 0;

  // Hands new doorbell words and register writes to the engine. True when there were any.
  [[nodiscard]] virtual bool scan() = 0;
  // Driver work at device time `now_ns`: events, recovery, notifications that wait for room.
  // True when anything was done.
  [[nodiscard]] virtual bool service(std::uint64_t now_ns) = 0;
  // Device time at which service() has something to do without the engine; ~0 never.
  [[nodiscard]] virtual std::uint64_t next_timer_ns() const = 0;
  // Some poster rings without looking at ASLEEP.
  [[nodiscard]] virtual bool tokens_open() const = 0;
  virtual void publish_asleep(bool asleep) = 0;
  virtual void publish_clock(std::uint64_t now_ns) = 0;
  // Adds lines "scope name value".
  virtual void append_counters(std::string_view scope, std::string* text) = 0;
};

}  // namespace ordma::softdev
