// SPDX-License-Identifier: BSD-2-Clause
// Unreliable QPs: UC, UD and the GSI QP.
#include <catch2/catch.hpp>

#include <cstring>

#include "pair.hpp"

namespace ordma::bench {
namespace {

PairSpec ud(bool ipv6 = false) {
  PairSpec s;
  s.ipv6 = ipv6;
  s.qp.type = hw::QpType::kUd;
  s.qp.qkey = 0x11223344;
  return s;
}

}  // namespace

TEST_CASE("UD: payload behind the network header, source QPN in the CQE") {
  const bool ipv6 = GENERATE(false, true);
  Pair p(make_rtl, ud(ipv6));
  unsigned n = 0;
  for (const std::uint32_t size : {0u, 1u, 63u, 100u, 2000u, 4096u}) {
    for (const bool inlined : {false, true}) {
      if (inlined && (size == 0 || size > 192)) continue;
      INFO("size " << size << " inline " << inlined);
      const auto data = pattern(size, ++n);
      put(p.a(), p.ra, 7, data);
      p.qb->post_recv(n, {{p.rb.iova, 30, p.rb.key}, {p.rb.iova + 30, 5000, p.rb.key}});
      p.qb->ring_rq();
      Send s{.op = hw::WqeOp::kSendImm, .inlined = inlined, .imm = 0x01020304, .av = Av{p.qb.get(), 0x11223344}};
      if (inlined) s.data = data;
      else if (size != 0) s.sges = {{p.ra.iova + 7, size, p.ra.key}};
      p.qa->post(s);
      p.qa->ring_sq();
      const auto c = p.ca->wait();
      REQUIRE(c);
      CHECK(c->status == hw::WcStatus::kSuccess);
      const auto r = p.cb->wait();
      REQUIRE(r);
      CHECK(r->status == hw::WcStatus::kSuccess);
      CHECK(r->byte_len == size + 40);
      CHECK(r->src_qpn == p.qa->spec.qpn);
      CHECK(r->has_grh);
      CHECK(r->ipv4 == !ipv6);
      CHECK(r->imm == 0x01020304);
      CHECK(get(p.b(), p.rb, 40, size) == data);
      const auto grh = get(p.b(), p.rb, 0, 40);
      if (ipv6) {
        CHECK(std::to_integer<int>(grh[0]) >> 4 == 6);
        CHECK(std::to_integer<int>(grh[6]) == 27);
        CHECK(std::to_integer<int>(grh[23]) == 1);
        CHECK(std::to_integer<int>(grh[39]) == 2);
      } else {
        CHECK(std::to_integer<int>(grh[20]) == 0x45);
        CHECK(std::to_integer<int>(grh[35]) == 1);
        CHECK(std::to_integer<int>(grh[39]) == 2);
      }
    }
  }
  p.check_wire();
}

TEST_CASE("UD: Q_Keys, missing receives, bad address vectors") {
  Pair p(make_rtl, ud());
  const auto send = [&](const Av& av, std::uint32_t size = 64) {
    p.qa->post({.sges = {{p.ra.iova, size, p.ra.key}}, .av = av});
    p.qa->ring_sq();
    const auto c = p.ca->wait();
    REQUIRE(c);
    return c->status;
  };
  CHECK(send({p.qb.get(), 0x11223344}) == hw::WcStatus::kSuccess);
  p.world.settle();
  CHECK(p.b().counter(hw::Counter::kOutOfBuffer) == 1);
  for (unsigned i = 0; i < 3; ++i) p.qb->post_recv(i, {{p.rb.iova, 5000, p.rb.key}});
  p.qb->ring_rq();
  CHECK(send({p.qb.get(), 0x999}) == hw::WcStatus::kSuccess);
  p.world.settle();
  CHECK(p.b().counter(hw::Counter::kDropQkey) == 1);
  CHECK_FALSE(p.cb->poll());
  // A user may not name a privileged Q_Key: the QP's own is sent instead.
  CHECK(send({p.qb.get(), 0x80010000}) == hw::WcStatus::kSuccess);
  CHECK(p.cb->wait());
  SECTION("more than the MTU") { CHECK(send({p.qb.get(), 0x11223344}, 4097) == hw::WcStatus::kLocLenErr); }
  SECTION("no such source address") { CHECK(send({p.qb.get(), 0x11223344, 5}) == hw::WcStatus::kLocQpOpErr); }
  // The send side alone is in error, and comes back.
  CHECK(hw::get(p.qa->query(), hw::progress::state) == static_cast<unsigned>(hw::QpState::kSqe));
  p.qa->post({.sges = {{p.ra.iova, 8, p.ra.key}}, .av = Av{p.qb.get(), 0x11223344}});
  p.qa->ring_sq();
  const auto f = p.ca->wait();
  REQUIRE(f);
  CHECK(f->status == hw::WcStatus::kWrFlushErr);
  CHECK(p.qa->modify(hw::QpState::kRts) == hw::CmdStatus::kOk);
  CHECK(send({p.qb.get(), 0x11223344}) == hw::WcStatus::kSuccess);
  CHECK(p.cb->wait());
  p.check_wire();
}

TEST_CASE("GSI: QPN 1, its well-known Q_Key, the source MAC") {
  PairSpec s = ud();
  s.qpn = hw::kGsiQpn;
  s.qp.type = hw::QpType::kGsi;
  s.qp.uctx = 0;
  s.qp.page = 0;
  Pair p(make_rtl, s);
  p.qb->post_recv(3, {{p.rb.iova, 500, p.rb.key}});
  p.qb->ring_rq();
  const auto data = pattern(256, 3);
  put(p.a(), p.ra, 0, data);
  p.qa->post({.sges = {{p.ra.iova, 256, p.ra.key}}, .av = Av{p.qb.get(), static_cast<std::uint32_t>(hw::kGsiQkey)}});
  p.qa->ring_sq();
  const auto r = p.cb->wait();
  REQUIRE(r);
  CHECK(r->byte_len == 296);
  CHECK(r->smac == (0x2ull | 1ull << 40));
  CHECK(get(p.b(), p.rb, 40, 256) == data);
  p.check_wire();
}

TEST_CASE("UC: whole messages or none; a gap costs its message only") {
  PairSpec s;
  s.mtu_log = 8;
  s.qp.type = hw::QpType::kUc;
  Pair p(make_rtl, s);
  const auto op = GENERATE(hw::WqeOp::kSend, hw::WqeOp::kWriteImm);
  for (unsigned i = 0; i < 8; ++i) p.qb->post_recv(i, {{p.rb.iova, 9000, p.rb.key}});
  p.qb->ring_rq();
  unsigned packet = 0;
  // 5000 bytes are 20 packets; the second message loses one in the middle.
  p.world.filter = [&](int, const Decoded&, Frame&) { return packet++ != 27; };
  for (unsigned i = 0; i < 3; ++i) {
    put(p.a(), p.ra, i * 5000, pattern(5000, i + 1));
    p.qa->post({.op = op, .sges = {{p.ra.iova + i * 5000, 5000, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key, .imm = i});
  }
  p.qa->ring_sq();
  for (unsigned i = 0; i < 3; ++i) {
    const auto c = p.ca->wait();
    REQUIRE(c);
    CHECK(c->status == hw::WcStatus::kSuccess);
    CHECK(c->wqe_index == i);
  }
  p.world.settle();
  unsigned got = 0;
  while (const auto r = p.cb->poll()) {
    CHECK(r->status == hw::WcStatus::kSuccess);
    CHECK(r->byte_len == 5000);
    CHECK(r->wr_id == got++);
  }
  CHECK(got == 2);
  CHECK(get(p.b(), p.rb, 0, 5000) == pattern(5000, 3));
  for (const auto& [from, d] : p.world.log) CHECK(from == 0);
  p.check_wire();
}

}  // namespace ordma::bench
