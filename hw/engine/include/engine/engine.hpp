// SPDX-License-Identifier: BSD-2-Clause
// The seam between a NIC engine (the twin, the Verilated RTL) and what surrounds it. An engine
// knows neither attachments nor the fabric; attachments know no engine internals. Both sides speak
// only hw/spec/ordma.toml. Everything here runs on one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/frame.hpp"

namespace ordma {

// Why a write leaves the NIC. The order of HostPort::write and HostPort::interrupt calls is the
// order in which the host may observe them; the kind is for checkers, traces and the attachment's
// choice of store (a CQE, record, event or flag is polled: its last aligned word must become
// visible last, as one release store).
enum class WriteKind : std::uint8_t {
  kPayload, kCqe, kEvent, kRecord, kFlag, kResponse, kLog, kAtomicResult, kQuery
};

// The host as the engine sees it; implemented by an attachment. Calls are made from inside
// Engine::step() and the register/doorbell calls, never later.
class HostPort {
 public:
  virtual ~HostPort() = default;
  // Reads at DMA address `addr`. False: not accessible; dst is then undefined and the engine treats
  // it as a failed DMA (never as zeroes).
  [[nodiscard]] virtual bool read(std::uint64_t addr, std::span<std::byte> dst) = 0;
  // One write of the ordered egress. False: not accessible, nothing was written.
  [[nodiscard]] virtual bool write(std::uint64_t addr, std::span<const std::byte> src,
                                   WriteKind kind) = 0;
  // 64-bit atomics on host memory are read + write by the engine; the attachment gives no atomicity
  // against the CPU (IBV_ATOMIC_HCA).
  virtual void interrupt(unsigned vector) = 0;
  virtual void packet_out(Frame frame) = 0;
  // A status register changed (ro registers only). The attachment mirrors it into the register page.
  virtual void register_changed(std::uint32_t offset, std::uint64_t value) = 0;
  // A doorbell page was opened or closed: a polling attachment starts at slot 0, lap 1, with the
  // page's memory zeroed. Not a hardware signal.
  virtual void page_changed(std::uint32_t page, bool open, bool token) = 0;
};

struct EngineLimits {
  std::uint32_t max_qp = 4096;
  std::uint32_t max_cq = 4096;
  std::uint32_t max_srq = 1024;
  std::uint32_t max_mr = 65536;
  std::uint32_t max_page = 1024;
  std::uint32_t max_uctx = 512;
  std::uint32_t max_sge = 16;
  std::uint32_t max_inline = 448;
  std::uint32_t max_wr = 16384;
  std::uint32_t max_cqe = 1u << 20;
  std::uint32_t max_rd_atomic = 16;
  std::uint32_t max_gid = 64;
  std::uint32_t max_mcast = 256;
};

struct EngineConfig {
  std::uint64_t mac = 0;        // first octet in the low byte
  std::uint64_t guid = 0;       // non-zero
  std::uint32_t port_mtu = 4200;  // largest Ethernet payload: 4096 + RoCE headers fit
  std::uint32_t port_speed_mbps = 100000;
  std::uint64_t seed = 1;
  EngineLimits limits;
  std::string waves;  // RTL engine: FST file, "" none
};

struct EngineCounter {
  std::string name;
  std::uint64_t value;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string_view name() const = 0;  // "twin", "rtl"

  // Software wrote a register (rw registers; other offsets and ro registers are ignored).
  virtual void register_write(std::uint32_t offset, std::uint64_t value) = 0;
  [[nodiscard]] virtual std::uint64_t register_read(std::uint32_t offset) const = 0;

  // A doorbell word arrived. `strobes` has one bit per byte; anything but 0xff on an aligned offset
  // is malformed (counted). Never blocks: the doorbell stage always drains.
  virtual void doorbell(std::uint32_t page, std::uint32_t offset, std::uint64_t word,
                        std::uint8_t strobes = 0xff) = 0;

  // A frame arrived from the wire. The engine has a bounded queue; beyond it the frame is dropped
  // and counted (DROP_OVERRUN).
  virtual void packet_in(Frame frame) = 0;

  // Does a bounded amount of work (about `budget` packets or WQEs; RTL: clock cycles in batches).
  // Returns true when anything was done or remains to be done now.
  virtual bool step(unsigned budget) = 0;
  // Nothing to do until a doorbell, register write, packet or next_timer().
  [[nodiscard]] virtual bool idle() const = 0;
  // Device time of the earliest timer (silence sweep, not_before, idle page record), ~0 none.
  [[nodiscard]] virtual std::uint64_t next_timer_ns() const = 0;

  // Device time. The owner moves all engines of one soft-device together: now never goes back.
  // busy_ns() is what the engine's own cost model (twin: stated constants, RTL: cycles) has
  // accumulated since the last call; the owner advances the common clock by the largest.
  virtual void set_time(std::uint64_t now_ns) = 0;
  [[nodiscard]] virtual std::uint64_t take_busy_ns() = 0;

  // Engine internals for `ordma stat` beyond the contract's counters (cycles per block, ...).
  [[nodiscard]] virtual std::vector<EngineCounter> internals() const = 0;
};

// Factories; each lives in its engine's library.
std::unique_ptr<Engine> make_twin(const EngineConfig& config, HostPort& host);
std::unique_ptr<Engine> make_rtl(const EngineConfig& config, HostPort& host);

}  // namespace ordma
