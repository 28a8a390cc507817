// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "engine/engine.hpp"

namespace ordma::softdev::test {

// Records what an attachment hands over; does nothing by itself.
class FakeEngine final : public Engine {
 public:
  struct Doorbell {
    std::uint32_t page, offset;
    std::uint64_t word;
    bool operator==(const Doorbell&) const = default;
  };
  struct Write {
    std::uint32_t offset;
    std::uint64_t value;
    bool operator==(const Write&) const = default;
  };

  std::string_view name() const override { return "fake"; }
  void register_write(std::uint32_t offset, std::uint64_t value) override {
    writes.push_back({offset, value});
    registers[offset] = value;
  }
  std::uint64_t register_read(std::uint32_t offset) const override {
    const auto it = registers.find(offset);
    return it == registers.end() ? 0 : it->second;
  }
  void doorbell(std::uint32_t page, std::uint32_t offset, std::uint64_t word,
                std::uint8_t) override {
    doorbells.push_back({page, offset, word});
    rung.fetch_add(1, std::memory_order_release);
    if (on_doorbell) on_doorbell(doorbells.back());
  }
  void packet_in(Frame) override {}
  bool step(unsigned) override { return false; }
  bool idle() const override { return true; }
  std::uint64_t next_timer_ns() const override { return timer; }
  void set_time(std::uint64_t now_ns) override { now = now_ns; }
  std::uint64_t take_busy_ns() override { return 0; }
  std::vector<EngineCounter> internals() const override { return {}; }

  std::vector<Doorbell> doorbells;
  std::vector<Write> writes;
  std::map<std::uint32_t, std::uint64_t> registers;
  std::function<void(const Doorbell&)> on_doorbell;
  std::atomic<std::uint64_t> rung{0};  // doorbells, for another thread
  std::uint64_t timer = ~std::uint64_t{0};
  std::uint64_t now = 0;
};

}  // namespace ordma::softdev::test
