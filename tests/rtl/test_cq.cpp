// SPDX-License-Identifier: BSD-2-Clause
// Completion queues: wrap, overflow, notification; and the order in which the host sees things.
#include <catch2/catch.hpp>

#include "pair.hpp"

namespace ordma::bench {
namespace {

void write_one(Pair& p, bool solicited = false) {
  p.qa->post({.op = hw::WqeOp::kWriteImm, .solicited = solicited, .sges = {{p.ra.iova, 64, p.ra.key}},
              .remote_addr = p.rb.iova, .rkey = p.rb.key});
  p.qa->ring_sq();
}

int fires(Host& h) {
  int n = 0;
  h.world.settle();
  while (const auto e = h.event()) n += e->type == hw::EventType::kCqFire;
  return n;
}

}  // namespace

TEST_CASE("a CQ wraps and uses every entry") {
  Pair p(make_rtl, {.cq_log = 2});
  for (unsigned i = 0; i < 50; ++i) {
    p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova, 64, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key});
    p.qa->ring_sq();
    if (i % 4 == 3) {
      p.world.settle();
      for (unsigned k = 0; k < 4; ++k) {
        const auto c = p.ca->poll();
        REQUIRE(c);
        CHECK(c->wqe_index == i - 3 + k);
      }
      CHECK_FALSE(p.ca->poll());
      p.ca->update_record();
    }
  }
}

TEST_CASE("CQ overflow is told once and takes the QP to ERR") {
  Pair p(make_rtl, {.cq_log = 2});
  for (unsigned i = 0; i < 6; ++i) {
    p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova, 64, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key});
  }
  p.qa->ring_sq();
  p.world.settle();
  int errors = 0;
  while (const auto e = p.a().event()) errors += e->type == hw::EventType::kCqError && e->number == 4;
  CHECK(errors == 1);
  CHECK(hw::get(p.qa->query(), hw::progress::state) == static_cast<unsigned>(hw::QpState::kErr));
  for (unsigned k = 0; k < 4; ++k) CHECK(p.ca->poll());
}

TEST_CASE("case_016/018: one event per arm; solicited arms wait for solicited or error CQEs") {
  Pair p(make_rtl);
  for (unsigned i = 0; i < 20; ++i) p.qb->post_recv(i, {{p.rb.iova, 64, p.rb.key}});
  p.qb->ring_rq();
  for (unsigned i = 0; i < 5; ++i) p.cb->arm(false);
  write_one(p);
  CHECK(fires(p.b()) == 1);
  CHECK(p.b().interrupts[3] == 1);
  write_one(p);
  CHECK(fires(p.b()) == 0);
  // Two are unseen: an arm with the old index fires at once, one with the new index does not.
  p.cb->arm(false);
  CHECK(fires(p.b()) == 1);
  while (p.cb->poll()) {
  }
  p.cb->arm(false);
  CHECK(fires(p.b()) == 0);
  write_one(p);
  CHECK(fires(p.b()) == 1);
  while (p.cb->poll()) {
  }
  p.cb->arm(true);
  for (unsigned i = 0; i < 3; ++i) write_one(p);
  CHECK(fires(p.b()) == 0);
  write_one(p, true);
  CHECK(fires(p.b()) == 1);
  // An unseen solicited CQE satisfies a new solicited arm at once.
  p.cb->arm(true);
  CHECK(fires(p.b()) == 1);
  while (p.cb->poll()) {
  }
  p.cb->arm(true);
  CHECK(fires(p.b()) == 0);
  CHECK(p.qb->modify(hw::QpState::kErr) == hw::CmdStatus::kOk);
  CHECK(fires(p.b()) == 1);
}

TEST_CASE("payload is in host memory before its CQE, the CQE before its event") {
  Pair p(make_rtl, {.mtu_log = 8});
  p.cb->arm(false);
  p.world.settle();
  p.qb->post_recv(1, {{p.rb.iova, 5000, p.rb.key}});
  p.qb->ring_rq();
  p.b().writes.clear();
  p.qa->post({.sges = {{p.ra.iova, 5000, p.ra.key}}});
  p.qa->ring_sq();
  p.world.settle();
  std::vector<WriteKind> kinds;
  for (const auto& [addr, kind] : p.b().writes) {
    if (kinds.empty() || kinds.back() != kind) kinds.push_back(kind);
  }
  CHECK(kinds == std::vector{WriteKind::kPayload, WriteKind::kCqe, WriteKind::kEvent});
}

TEST_CASE("a destroy answers when nothing touches the object any more") {
  Pair p(make_rtl);
  for (unsigned round = 0; round < 20; ++round) {
    const std::uint32_t key = 0x50000u + 100 + round;
    Region r = make_region(p.b(), {.key = key, .bytes = 16384});
    for (unsigned i = 0; i < 4; ++i) {
      p.qa->post({.op = hw::WqeOp::kWrite, .signaled = false, .sges = {{p.ra.iova, 16384, p.ra.key}}, .remote_addr = r.iova, .rkey = key});
    }
    p.qa->ring_sq();
    unsigned steps = round;
    p.world.run([&] { return steps-- == 0; }, 1000);
    REQUIRE(p.b().command(hw::CmdOp::kMrDestroy, key) == hw::CmdStatus::kOk);
    for (const auto page : r.pages) p.b().revoke(page, 4096);
    p.world.settle();
    std::optional<Event> nak;
    while (const auto e = p.a().event()) {
      if (e->type == hw::EventType::kQpNak) nak = e;
    }
    if (nak) break;
  }
  p.check_wire();
}

TEST_CASE("doorbells are checked") {
  Pair p(make_rtl);
  Host& a = p.a();
  const auto refused = [&] { return a.counter(hw::Counter::kDbRefused); };
  CHECK(a.command(hw::CmdOp::kPageOpen, 2, [](auto& c) { hw::set(c, hw::cmd_page::uctx, 2); }) == hw::CmdStatus::kOk);
  const auto before = refused();
  a.ring(2, hw::DbKind::kSq, p.qa->spec.qpn, 1);          // another owner's page
  a.ring(1, hw::DbKind::kSq, p.qa->spec.qpn ^ 0x4000, 1);  // no such QP
  a.ring(1, hw::DbKind::kSq, p.qa->spec.qpn, 65);         // beyond the ring
  a.ring(1, hw::DbKind::kCmd, 0, 1);                      // not the driver's page
  a.engine->doorbell(1, 0, hw::place(hw::db::kind, 1), 0x0f);
  a.engine->doorbell(1, 0, 0, 0xff);
  p.world.settle();
  CHECK(refused() == before + 6);
  int told = 0;
  while (const auto e = a.event()) told += e->type == hw::EventType::kPageError;
  CHECK(told == 2);
  p.world.settle();
  CHECK(p.world.frames == 0);
}

}  // namespace ordma::bench
