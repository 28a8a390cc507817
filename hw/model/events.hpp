// SPDX-License-Identifier: BSD-2-Clause
// The event ring. It has no consumer index: every source is sticky, so the driver's sizing holds.
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
  void raise(const EventSpec& spec);
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
};

}  // namespace ordma::twin
