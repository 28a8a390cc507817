// SPDX-License-Identifier: BSD-2-Clause
// Errors of either side: who completes with what, what moves to ERR, what is told, what is flushed.
#include <catch2/catch.hpp>

#include <cstring>

#include "pair.hpp"

namespace ordma::bench {
namespace {

std::optional<Event> wait_event(Host& h, hw::EventType type) {
  std::optional<Event> e;
  h.world.run([&] {
    while ((e = h.event())) {
      if (e->type == type) return true;
    }
    return false;
  }, 3000);
  return e;
}

void fail_qp(Pair& p, const Event& e, hw::WcStatus status) {
  p.a().recover(hw::CmdOp::kQpFail, p.qa->spec.qpn, [&](auto& c) {
    hw::set(c, hw::cmd_fail::psn, e.psn);
    hw::set(c, hw::cmd_fail::status, static_cast<std::uint64_t>(status));
    hw::set(c, hw::cmd_fail::vendor_err, e.code);
  });
}

}  // namespace

TEST_CASE("case_003: a bad rkey fails its WRITE, completes those before, flushes those behind") {
  Pair p(make_rtl);
  p.qb->post_recv(5, {{p.rb.iova, 64, p.rb.key}});
  p.qb->ring_rq();
  for (unsigned i = 0; i < 4; ++i) {
    p.qa->post({.op = hw::WqeOp::kWrite, .signaled = i != 0, .sges = {{p.ra.iova, 64, p.ra.key}},
                .remote_addr = p.rb.iova, .rkey = p.rb.key ^ (i == 1 ? 0x10000u : 0u)});
  }
  p.qa->ring_sq();
  const auto e = wait_event(p.a(), hw::EventType::kQpNak);
  REQUIRE(e);
  CHECK(e->code == static_cast<unsigned>(hw::AethSyndrome::kNakAccess));
  CHECK(e->number == p.qa->spec.qpn);
  CHECK(e->psn == ((Pair::kPsnA + 1) & 0xffffff));
  CHECK(e->log_index == 1);
  CHECK(hw::get(p.qa->query(), hw::progress::frozen) == 1);
  fail_qp(p, *e, hw::WcStatus::kRemAccessErr);
  const hw::WcStatus want[] = {hw::WcStatus::kRemAccessErr, hw::WcStatus::kWrFlushErr, hw::WcStatus::kWrFlushErr};
  for (unsigned i = 0; i < 3; ++i) {
    const auto c = p.ca->wait();
    REQUIRE(c);
    CHECK(c->status == want[i]);
    CHECK(c->wqe_index == i + 1);
  }
  CHECK(hw::get(p.qa->query(), hw::progress::state) == static_cast<unsigned>(hw::QpState::kErr));
  CHECK(hw::get(p.qb->query(), hw::progress::state) == static_cast<unsigned>(hw::QpState::kErr));
  const auto f = p.cb->wait();
  REQUIRE(f);
  CHECK(f->status == hw::WcStatus::kWrFlushErr);
  CHECK(f->wr_id == 5);
  const auto async = wait_event(p.b(), hw::EventType::kQpAsync);
  REQUIRE(async);
  if (async->code == static_cast<unsigned>(hw::AsyncCode::kCommEst)) {
    const auto next = wait_event(p.b(), hw::EventType::kQpAsync);
    REQUIRE(next);
    CHECK(next->code == static_cast<unsigned>(hw::AsyncCode::kAccessErr));
  } else {
    CHECK(async->code == static_cast<unsigned>(hw::AsyncCode::kAccessErr));
  }
  p.check_wire();
}

TEST_CASE("case_004: WRITEs that must not land leave no byte") {
  struct Case {
    const char* what;
    std::uint64_t off;
    std::uint32_t len;
    bool wrong_key;
  };
  const auto c = GENERATE(Case{"unknown key", 0, 16, true}, Case{"one past the end", 64 * 1024 - 15, 16, false},
                          Case{"wraps", 0 - std::uint64_t{0x7f0000000000} - 8, 16, false},
                          Case{"before the start", ~std::uint64_t{0}, 16, false});
  INFO(c.what);
  Pair p(make_rtl);
  const auto before = p.b().memory;
  p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova, c.len, p.ra.key}},
              .remote_addr = p.rb.iova + c.off, .rkey = c.wrong_key ? 0x77770006 : p.rb.key});
  p.qa->ring_sq();
  const auto e = wait_event(p.a(), hw::EventType::kQpNak);
  REQUIRE(e);
  CHECK(e->code == static_cast<unsigned>(hw::AethSyndrome::kNakAccess));
  for (const auto& [addr, kind] : p.b().writes) CHECK(kind != WriteKind::kPayload);
  p.check_wire();
}

TEST_CASE("case_005: receive too small") {
  Pair p(make_rtl, {.mtu_log = 10});
  const auto n = GENERATE(101u, 4096u);
  const std::uint32_t room = n == 101 ? 100 : 1500;
  p.qb->post_recv(9, {{p.rb.iova, room, p.rb.key}});
  p.qb->ring_rq();
  const auto canary = pattern(8192, 4);
  put(p.b(), p.rb, 0, canary);
  p.qa->post({.sges = {{p.ra.iova, n, p.ra.key}}});
  p.qa->ring_sq();
  const auto r = p.cb->wait();
  REQUIRE(r);
  CHECK(r->status == hw::WcStatus::kLocLenErr);
  CHECK(r->wr_id == 9);
  const auto e = wait_event(p.a(), hw::EventType::kQpNak);
  REQUIRE(e);
  CHECK(e->code == static_cast<unsigned>(hw::AethSyndrome::kNakInvReq));
  const auto after = get(p.b(), p.rb, room, 4096);
  CHECK(std::memcmp(after.data(), canary.data() + room, 4096) == 0);
  fail_qp(p, *e, hw::WcStatus::kRemInvReqErr);
  const auto s = p.ca->wait();
  REQUIRE(s);
  CHECK(s->status == hw::WcStatus::kRemInvReqErr);
  p.check_wire();
}

TEST_CASE("case_006: bad lkeys") {
  Pair p(make_rtl);
  SECTION("of a receive") {
    p.qb->post_recv(9, {{p.rb.iova, 100, p.rb.key + 0x10000}});
    p.qb->ring_rq();
    p.qa->post({.sges = {{p.ra.iova, 100, p.ra.key}}});
    p.qa->ring_sq();
    const auto r = p.cb->wait();
    REQUIRE(r);
    CHECK(r->status == hw::WcStatus::kLocProtErr);
    const auto e = wait_event(p.a(), hw::EventType::kQpNak);
    REQUIRE(e);
    CHECK(e->code == static_cast<unsigned>(hw::AethSyndrome::kNakOp));
  }
  SECTION("of the second SGE of a send: nothing on the wire") {
    p.qa->post({.sges = {{p.ra.iova, 5000, p.ra.key}, {p.ra.iova, 10, p.ra.key + 0x10000}}});
    p.qa->post({.sges = {{p.ra.iova, 10, p.ra.key}}});
    p.qa->ring_sq();
    const auto s = p.ca->wait();
    REQUIRE(s);
    CHECK(s->status == hw::WcStatus::kLocProtErr);
    CHECK(s->wqe_index == 0);
    const auto f = p.ca->wait();
    REQUIRE(f);
    CHECK(f->status == hw::WcStatus::kWrFlushErr);
    const auto e = wait_event(p.a(), hw::EventType::kQpError);
    REQUIRE(e);
    CHECK(e->code == static_cast<unsigned>(hw::WcStatus::kLocProtErr));
    CHECK(p.world.frames == 0);
  }
}

TEST_CASE("WQEs that are not valid fail with LOC_QP_OP_ERR after those before them") {
  Pair p(make_rtl);
  p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova, 64, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key});
  SECTION("length is not the sum") {
    p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova, 64, p.ra.key}}, .remote_addr = p.rb.iova,
                .rkey = p.rb.key, .length = 65});
  }
  SECTION("stale index") {
    p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova, 64, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key});
    hw::set(p.a().at(p.qa->sq + 256, 64), hw::wqe::index, 9);
  }
  SECTION("unknown operation") {
    p.qa->post({.op = static_cast<hw::WqeOp>(77), .sges = {{p.ra.iova, 64, p.ra.key}}});
  }
  p.qa->ring_sq();
  const auto s = p.ca->wait();
  REQUIRE(s);
  CHECK(s->status == hw::WcStatus::kSuccess);
  const auto f = p.ca->wait();
  REQUIRE(f);
  CHECK(f->status == hw::WcStatus::kLocQpOpErr);
  CHECK(f->wqe_index == 1);
}

TEST_CASE("case_001: flush is complete and in order, also of what is posted in ERR") {
  Pair p(make_rtl);
  p.world.filter = [](int, const Decoded&, Frame&) { return false; };
  for (unsigned i = 0; i < 16; ++i) {
    p.qa->post({.signaled = false, .sges = {{p.ra.iova, 8, p.ra.key}}});
    p.qa->post_recv(100 + i, {{p.ra.iova, 8, p.ra.key}});
  }
  p.qa->ring_sq();
  p.qa->ring_rq();
  p.world.settle();
  CHECK(p.qa->modify(hw::QpState::kErr) == hw::CmdStatus::kOk);
  p.world.settle();
  for (unsigned i = 0; i < 4; ++i) {
    p.qa->post({.signaled = false, .sges = {{p.ra.iova, 8, p.ra.key}}});
    p.qa->post_recv(116 + i, {{p.ra.iova, 8, p.ra.key}});
  }
  p.qa->ring_sq();
  p.qa->ring_rq();
  p.world.settle();
  unsigned sends = 0, recvs = 0;
  while (const auto c = p.ca->poll()) {
    CHECK(c->status == hw::WcStatus::kWrFlushErr);
    if (c->is_recv) {
      CHECK(c->wr_id == 100 + recvs++);
    } else {
      CHECK(c->wqe_index == sends++);
    }
  }
  CHECK(sends == 20);
  CHECK(recvs == 20);
}

TEST_CASE("case_004 in commands: what a table refuses") {
  World w(make_rtl);
  Host& h = *w.hosts[0];
  using S = hw::CmdStatus;
  CHECK(h.command(hw::CmdOp::kPageClose, 3) == S::kNoObject);
  CHECK(h.command(hw::CmdOp::kPageOpen, 64) == S::kBadParam);
  CHECK(h.command(hw::CmdOp::kPageOpen, 0) == S::kBadParam);
  CHECK(h.command(hw::CmdOp::kPageOpen, 3) == S::kOk);
  CHECK(h.pages[3]);
  CHECK(h.command(hw::CmdOp::kPageOpen, 3) == S::kExists);
  CHECK(h.command(hw::CmdOp::kPageClose, 3) == S::kOk);
  CHECK_FALSE(h.pages[3]);
  CHECK(h.command(hw::CmdOp::kMrDestroy, 0x10005) == S::kNoObject);
  CHECK(h.command(hw::CmdOp::kCqDestroy, 9) == S::kNoObject);
  CHECK(h.command(hw::CmdOp::kQpDestroy, 0x1111) == S::kNoObject);
  CHECK(h.command(hw::CmdOp::kQpQuery, 0x3fff) == S::kNoObject);
  CHECK(h.command(hw::CmdOp::kGidSet, 99) == S::kBadParam);
  CHECK(h.command(hw::CmdOp::kQpModify, 0x11, [](auto& c) { hw::set(c, hw::cmd_qp::image, 0x10); }) == S::kDma);
  const Region r = make_region(h, {.key = 0x20007, .bytes = 100});
  CHECK(h.command(hw::CmdOp::kMrDestroy, 0x30007) == S::kNoObject);
  CHECK(h.command(hw::CmdOp::kMrDestroy, r.key) == S::kOk);
  CHECK(h.command(hw::CmdOp::kMrDestroy, r.key) == S::kNoObject);
}

}  // namespace ordma::bench
