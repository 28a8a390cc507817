// SPDX-License-Identifier: BSD-2-Clause
// The Verilated NIC behind the engine interface: drives the ports of ordma_nic like a board wrapper
// would, one clock cycle at a time, and stops clocking when the NIC has nothing to do.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/engine.hpp"

class VerilatedContext;
class VerilatedFstC;
class Vordma_nic;

namespace ordma::rtl {

class RtlEngine final : public Engine {
 public:
  RtlEngine(const EngineConfig& config, HostPort& host);
  ~RtlEngine() override;

  std::string_view name() const override { return "rtl"; }
  void register_write(std::uint32_t offset, std::uint64_t value) override;
  [[nodiscard]] std::uint64_t register_read(std::uint32_t offset) const override;
  void doorbell(std::uint32_t page, std::uint32_t offset, std::uint64_t word,
                std::uint8_t strobes) override;
  void packet_in(Frame frame) override;
  bool step(unsigned budget) override;
  [[nodiscard]] bool idle() const override;
  [[nodiscard]] std::uint64_t next_timer_ns() const override;
  void set_time(std::uint64_t now_ns) override;
  [[nodiscard]] std::uint64_t take_busy_ns() override;
  [[nodiscard]] std::vector<EngineCounter> internals() const override;

 private:
  struct Doorbell {
    std::uint16_t page;
    std::uint16_t offset;
    std::uint64_t word;
    std::uint8_t strobes;
  };
  struct Read {
    std::uint64_t due;  // cycle of the first beat
    std::uint64_t addr;
    std::uint16_t len;
    std::uint8_t tag;
  };

  void tick();
  void drive_doorbell();
  void drive_packet();
  void drive_read_response();
  void take_outputs();
  void take_write();
  void take_packet();
  void report_registers();
  [[nodiscard]] bool inputs_pending() const;

  HostPort& host_;
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vordma_nic> top_;
  std::unique_ptr<VerilatedFstC> waves_;

  std::deque<Doorbell> doorbells_;
  std::deque<Frame> frames_;
  std::size_t frame_at_ = 0;  // bytes of frames_.front() already taken
  std::uint32_t overruns_ = 0;
  std::deque<Read> reads_;
  std::array<std::byte, 4096> read_data_;
  std::size_t read_at_ = 0;
  bool read_active_ = false;
  bool read_ok_ = false;
  std::vector<std::byte> write_data_;
  std::vector<std::uint8_t> packet_data_;

  std::vector<std::uint8_t> pages_;  // open pages: bit 0 open, bit 1 token
  std::uint64_t status_ = 0;
  std::uint64_t reset_echo_ = 0;
  std::uint64_t now_ns_ = 0;
  std::uint64_t cycles_ = 0;
  std::uint64_t busy_ns_ = 0;
  std::uint64_t failed_writes_ = 0;
  std::uint64_t dropped_frames_ = 0;
};

}  // namespace ordma::rtl
