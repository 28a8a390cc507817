// SPDX-License-Identifier: BSD-2-Clause
// The raw Ethernet QP of the network interface: what it receives.
#pragma once

#include <cstdint>
#include <span>

#include "objects.hpp"

namespace ordma::twin {

struct Nic;

struct EthFilter {
  bool promisc = false;
  bool allmulti = false;
  std::uint64_t mac = 0;
};

class Ethernet {
 public:
  explicit Ethernet(Nic& nic) : nic_(nic) {}
  void reset() {
    qp = nullptr;
    filter = {};
  }
  void receive(std::span<const std::byte> frame, const Packet& packet);

  Qp* qp = nullptr;
  EthFilter filter;

 private:
  void fail(hw::WcStatus status);
  Nic& nic_;
};

}  // namespace ordma::twin
