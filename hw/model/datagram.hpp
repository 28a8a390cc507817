// SPDX-License-Identifier: BSD-2-Clause
// UD and GSI receive, and multicast groups.
#pragma once

#include <cstdint>
#include <vector>

#include "objects.hpp"

namespace ordma::twin {

struct Nic;

class Multicast {
 public:
  explicit Multicast(std::uint32_t max) : max_(max) {}
  [[nodiscard]] hw::CmdStatus attach(const Gid& gid, Qp& qp);
  [[nodiscard]] hw::CmdStatus detach(const Gid& gid, const Qp& qp);
  void forget(const Qp& qp);
  void reset() { groups_.clear(); }
  [[nodiscard]] bool has(const Gid& gid) const;
  template <class Fn>
  void for_each(const Gid& gid, Fn&& fn) {
    for (const Member& m : groups_) {
      if (m.gid == gid) fn(*m.qp);
    }
  }

 private:
  struct Member {
    Gid gid{};
    Qp* qp = nullptr;
  };
  std::uint32_t max_;
  std::vector<Member> groups_;
};

class Datagrams {
 public:
  explicit Datagrams(Nic& nic) : nic_(nic) {}
  void receive(Qp& qp, const Packet& packet);
  void receive_multicast(const Packet& packet);

 private:
  void deliver(Qp& qp, const Packet& packet);
  void place(Qp& qp, const Packet& packet, std::size_t ext);
  void fail(Qp& qp, hw::WcStatus status);

  Nic& nic_;
};

}  // namespace ordma::twin
