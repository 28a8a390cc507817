// SPDX-License-Identifier: BSD-2-Clause
// The event ring. Every source is sticky, so the driver's sizing holds; CQ_FIRE, which users
// re-arm, waits in its CQ while the ring is more than half full.
#pragma once

#include <cstdint>

#include "objects.hpp"

namespace ordma::twin {

struct Nic;

struct EventSpec {
  hw::EventType type{};
  std::uint8_t code = 0;
  std::uint32_t number = 0;
  std::uint32_t psn = 0;
  std::uint32_t log_index = 0;
  unsigned vector = 0;
};

class Events {
 public:
  explicit Events(Nic& nic) : nic_(nic) {}
  void start(std::uint64_t base, std::uint32_t log);
  // Returns the ring index of the event.
  std::uint32_t raise(const EventSpec& spec);
  // Register EQ_CI.
  void consumed(std::uint32_t ci);
  [[nodiscard]] bool passed(std::uint32_t index) const { return seq_diff(ci_, index) > 0; }
  [[nodiscard]] bool crowded() const { return seq_sub(pi_, ci_) > (1u << log_) / 2; }
  // The link changed: reported now, or when the driver has seen the event before.
  void port_changed();
  // Raises unless the QP's sticky bit is set, and sets it.
  void raise_qp(Qp& qp, Sticky bit, hw::EventType type, std::uint8_t code);
  void raise_async(Qp& qp, Sticky bit, hw::AsyncCode code) {
    raise_qp(qp, bit, hw::EventType::kQpAsync, static_cast<std::uint8_t>(code));
  }

 private:
  Nic& nic_;
  std::uint64_t base_ = 0;
  std::uint32_t log_ = 0;
  std::uint32_t pi_ = 0;
  std::uint32_t ci_ = 0;
  bool port_pending_ = false;
  bool port_changed_ = false;
  std::uint32_t port_event_ = 0;
};

}  // namespace ordma::twin
