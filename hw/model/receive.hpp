// SPDX-License-Identifier: BSD-2-Clause
// Frames from the wire: the port's queue, checks, and the way to the QP.
#pragma once

#include <cstdint>
#include <vector>

#include "objects.hpp"

namespace ordma::twin {

struct Nic;

class Receiver {
 public:
  explicit Receiver(Nic& nic);
  void reset();
  void enqueue(Frame frame);
  // Handles up to `budget` frames; returns how many.
  unsigned run(unsigned budget);
  [[nodiscard]] bool busy() const { return count_ != 0; }

 private:
  void handle(const Frame& frame);
  void roce(const Packet& packet);
  void connected(Qp& qp, const Packet& packet);
  void reliable(Qp& qp, const Packet& packet);
  [[nodiscard]] bool address_ok(const Qp& qp, const Packet& packet) const;

  Nic& nic_;
  std::vector<Frame> ring_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace ordma::twin
