// SPDX-License-Identifier: BSD-2-Clause
// Two hosts with one connected RC QP each, and memory to send from and to.
#pragma once

#include <catch2/catch.hpp>

#include "bench.hpp"

namespace ordma::bench {

struct PairSpec {
  unsigned mtu_log = 12;
  hw::BufLevel level = hw::BufLevel::kDirect;
  std::uint64_t bytes = 64 * 1024;
  unsigned cq_log = 6;
  std::uint64_t silence = 0;
  bool ipv6 = false;
  bool vlan = false;
  unsigned rd_atomic = 16;
  std::uint32_t qpn = 0;  // both ends, 0: two of their own
  QpSpec qp{};
};

struct Pair {
  using Make = std::function<std::unique_ptr<Engine>(const EngineConfig&, HostPort&)>;
  explicit Pair(const Make& make, PairSpec s = {}) : world(make, s.ipv6, s.vlan) {
    for (int i = 0; i < 2; ++i) {
      Host& h = *world.hosts[static_cast<std::size_t>(i)];
      REQUIRE(h.command(hw::CmdOp::kPageOpen, 1, [](auto& c) { hw::set(c, hw::cmd_page::uctx, 1); }) == hw::CmdStatus::kOk);
      (i == 0 ? ca : cb) = std::make_unique<Cq>(h, 4u, s.cq_log, 1u, std::uint16_t{1}, s.level);
      Region& r = i == 0 ? ra : rb;
      const std::uint32_t key = i == 0 ? 0xabcd0005 : 0x12340006;
      r = make_region(h, {.key = key, .level = s.level, .bytes = s.bytes, .first_off = 100});
      QpSpec q = s.qp;
      q.qpn = i == 0 ? 0xa5c011 : 0x5a8022;
      q.mtu_log = s.mtu_log;
      if (s.qpn != 0) q.qpn = s.qpn;
      q.silence = s.silence;
      q.rd_atomic = s.rd_atomic;
      Cq& cq = i == 0 ? *ca : *cb;
      (i == 0 ? qa : qb) = std::make_unique<Qp>(h, q, cq, cq);
      REQUIRE((i == 0 ? qa : qb)->created == hw::CmdStatus::kOk);
    }
    // The PSN wraps early in every test.
    qa->connect(*qb, kPsnA, kPsnB);
    qb->connect(*qa, kPsnB, kPsnA);
  }
  static constexpr std::uint32_t kPsnA = 0xfffff0;
  static constexpr std::uint32_t kPsnB = 0x123456;

  Host& a() { return *world.hosts[0]; }
  Host& b() { return *world.hosts[1]; }

  void check_wire() {
    world.settle();
    CHECK(world.frames > 0);
    CHECK(world.bad_icrc == 0);
    CHECK(world.bad_checksum == 0);
    CHECK(world.not_roce == 0);
    CHECK(a().violations == std::vector<std::string>{});
    CHECK(b().violations == std::vector<std::string>{});
  }

  World world;
  std::unique_ptr<Cq> ca, cb;
  std::unique_ptr<Qp> qa, qb;
  Region ra, rb;
};

}  // namespace ordma::bench
