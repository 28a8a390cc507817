// SPDX-License-Identifier: BSD-2-Clause
// Completion queues and events.
#include "link.hpp"

using namespace ordma;
using namespace ordma::bench;
using Status = hw::WcStatus;

namespace {

unsigned fires(const std::vector<Event>& events, std::uint32_t cqn) {
  unsigned n = 0;
  for (const Event& e : events) n += e.type == hw::EventType::kCqFire && e.number == cqn;
  return n;
}

struct Sends {
  explicit Sends(Link& l_in) : l(l_in), src(l.a.reg_mr(64)), in(l.b.reg_mr(64)) {}
  void send(bool solicited = false) {
    l.qb.recv(1, {{in.iova, 64, in.key}});
    Send s = l.message(src, 8);
    s.solicited = solicited;
    l.qa.send(s);
    l.run();
    (void)l.ca.drain();
  }
  Link& l;
  Mr src, in;
};

}  // namespace

TEST_CASE("case_016 arming again and again without polling loses nothing") {
  Link l;
  Sends s(l);
  for (unsigned round = 0; round < 300; ++round) {
    for (unsigned i = 0; i < 5; ++i) l.cb.arm();
    l.run();
    REQUIRE(fires(l.b.events(), l.cb.number) == 0);
    s.send();
    REQUIRE(fires(l.b.events(), l.cb.number) == 1);
    REQUIRE(l.cb.drain().size() == 1);
  }
}

TEST_CASE("case_017 an arm that comes after the CQE fires at once") {
  Link l;
  Sends s(l);
  s.send();
  CHECK(fires(l.b.events(), l.cb.number) == 0);
  l.cb.arm();
  CHECK(fires(l.b.events(), l.cb.number) == 1);
  // One event per arm.
  s.send();
  CHECK(fires(l.b.events(), l.cb.number) == 0);
  CHECK(l.cb.drain().size() == 2);
  l.cb.arm();
  CHECK(fires(l.b.events(), l.cb.number) == 0);
}

TEST_CASE("the same arm word delivered again is not a new arm") {
  Link l;
  Sends s(l);
  l.cb.arm();
  const std::uint64_t extra = hw::place(hw::db::arm_seq, l.cb.arm_seq);
  s.send();
  CHECK(fires(l.b.events(), l.cb.number) == 1);
  l.b.doorbell(1, hw::DbKind::kCqArm, l.cb.number, 0, extra);
  s.send();
  CHECK(fires(l.b.events(), l.cb.number) == 0);
}

TEST_CASE("case_018 solicited events") {
  Link l;
  Sends s(l);
  l.cb.arm(true);
  for (unsigned i = 0; i < 3; ++i) s.send();
  CHECK(fires(l.b.events(), l.cb.number) == 0);
  CHECK(l.cb.drain().size() == 3);
  s.send(true);
  CHECK(fires(l.b.events(), l.cb.number) == 1);
  const auto wcs = l.cb.drain();
  REQUIRE(wcs.size() == 1);
  CHECK(wcs[0].solicited);
  // An error CQE counts as solicited.
  l.cb.arm(true);
  l.qb.recv(1, {{s.in.iova, 4, s.in.key}});
  l.qa.send(l.message(s.src, 8));
  l.run();
  CHECK(fires(l.b.events(), l.cb.number) == 1);
}

TEST_CASE("arming solicited behind an unseen solicited CQE fires, behind plain ones it does not") {
  Link l;
  Sends s(l);
  s.send(true);
  s.send(false);
  l.cb.arm(true);
  CHECK(fires(l.b.events(), l.cb.number) == 1);
  CHECK(l.cb.drain().size() == 2);
  s.send(false);
  l.cb.arm(true);
  CHECK(fires(l.b.events(), l.cb.number) == 0);
}

TEST_CASE("an event carries the CQ's vector and the interrupt follows the event") {
  Pair p;
  Cq cq = p.b.create_cq(4, 1, 1, 9);
  cq.arm(false, true);
  CHECK(p.b.mem.interrupts[9] == 1);
  CHECK(fires(p.b.events(), cq.number) == 1);
}

TEST_CASE("case_021 a CQ holds exactly its size, one more overflows") {
  for (const unsigned log : {0u, 1u, 4u, 8u}) {
    INFO("log " << log);
    LinkOptions o;
    o.b.rq_log = 9;
    o.b.rq_stride_log = 5;
    Link l(o);
    Cq small = l.b.create_cq(log);
    small.auto_publish = false;
    QpOptions qo = o.b;
    qo.scq = qo.rcq = &small;
    Qp y = l.b.create_qp(qo);
    QpOptions xo = o.a;
    xo.scq = xo.rcq = &l.ca;
    Qp x = l.a.create_qp(xo);
    l.connect(x, y);
    const Mr src = l.a.reg_mr(64), in = l.b.reg_mr(64);
    const unsigned size = 1u << log;
    const auto one = [&](unsigned id) {
      y.recv(id, {{in.iova, 64, in.key}});
      x.send(l.message(src, 8));
      l.run();
      (void)l.ca.drain();
    };
    for (unsigned i = 0; i < size; ++i) one(i);
    const auto wcs = small.drain();
    REQUIRE(wcs.size() == size);
    for (unsigned i = 0; i < size; ++i) CHECK(wcs[i].wr_id == i);
    // The record says so, and the NIC reads it when its own value says full.
    small.publish();
    for (unsigned i = 0; i < size; ++i) one(100 + i);
    CHECK(small.drain().size() == size);
    CHECK_FALSE(has_event(l.b.events(), hw::EventType::kCqError));
    one(999);
    CHECK(has_event(l.b.events(), hw::EventType::kCqError));
    CHECK(l.b.counter(hw::Counter::kCqOverflows) == 1);
    CHECK(y.query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kErr));
    CHECK(l.qb.query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kRts));
    CHECK(small.drain().empty());
    REQUIRE(l.b.destroy_qp(y) == hw::CmdStatus::kOk);
    CHECK(l.b.command(hw::CmdOp::kCqDestroy, small.number) == hw::CmdStatus::kOk);
  }
}

TEST_CASE("an arm says what was seen, not what was consumed") {
  Link l;
  Sends s(l);
  l.cb.auto_publish = false;
  for (unsigned i = 0; i < 256; ++i) s.send();
  // The consumer looked at all of them, took none and arms for what comes after.
  l.cb.ci = 256;
  l.cb.arm();
  l.cb.ci = 0;
  CHECK(fires(l.b.events(), l.cb.number) == 0);
  s.send();
  CHECK(has_event(l.b.events(), hw::EventType::kCqError));
  CHECK(l.cb.drain().size() == 256);
}

TEST_CASE("a consumer record outside of the ring means full") {
  Link l;
  Sends s(l);
  l.cb.auto_publish = false;
  l.b.mem.store(l.cb.record, 0x800000);
  for (unsigned i = 0; i < 256; ++i) s.send();
  CHECK_FALSE(has_event(l.b.events(), hw::EventType::kCqError));
  s.send();
  CHECK(has_event(l.b.events(), hw::EventType::kCqError));
}

TEST_CASE("CQ resize starts again at index 0 and reports where the old ring ended") {
  Link l;
  Sends s(l);
  for (unsigned i = 0; i < 5; ++i) s.send();
  const Addr ring = l.b.mem.alloc(64 << 10), record = l.b.mem.alloc(8);
  std::uint64_t old_end = 0;
  const auto status = l.b.command(
      hw::CmdOp::kCqResize, l.cb.number,
      [&](std::span<std::byte> raw) {
        hw::set(raw, hw::cmd_cq::log, 10);
        hw::set(raw, hw::cmd_cq::addr, ring);
        hw::set(raw, hw::cmd_cq::record, record);
      },
      &old_end);
  REQUIRE(status == hw::CmdStatus::kOk);
  CHECK(old_end == 5);
  for (unsigned i = 0; i < 7; ++i) s.send();
  CHECK(l.cb.drain().size() == 5);
  Cq now = l.cb;
  now.ring = ring;
  now.record = record;
  now.log = 10;
  now.ci = 0;
  now.arm_seq = 9;
  CHECK(now.drain().size() == 7);
  now.arm(false, true);
  CHECK(fires(l.b.events(), l.cb.number) == 1);
  s.send();
  CHECK(now.drain().size() == 1);
}

TEST_CASE("unusable CQ memory fails the CQ and its QPs, not the device") {
  Link l;
  Sends s(l);
  l.b.mem.revoke(l.cb.ring, 64 << 8);
  s.send();
  CHECK(has_event(l.b.events(), hw::EventType::kCqError));
  CHECK(l.qb.query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kErr));
  CHECK(l.b.nic->register_read(hw::reg::kStatus) % 4 == 1);
}

TEST_CASE("CQ_FIRE waits while the event ring is more than half full, and is not lost") {
  Pair p;
  Cq cq = p.a.create_cq(4);
  // Fill more than half of the ring with events that nobody consumes.
  const unsigned ring = 1u << Node::kEventLog;
  for (unsigned i = 0; i < ring / 2 + 1; ++i) {
    REQUIRE(p.a.command(hw::CmdOp::kNop, 0, {}, nullptr, true) == hw::CmdStatus::kOk);
  }
  cq.arm(false, true);
  p.run();
  const auto before = p.a.mem.interrupts[1];
  CHECK(before == 0);
  const auto events = p.a.events();
  CHECK(fires(events, cq.number) == 0);
  CHECK(events.size() == ring / 2 + 1);
  p.run();
  CHECK(fires(p.a.events(), cq.number) == 1);
}

TEST_CASE("a user who arms as fast as he can does not overrun the event ring") {
  Link l;
  Sends s(l);
  s.send();
  for (unsigned i = 0; i < 5000; ++i) l.cb.arm();
  l.run();
  CHECK(l.b.nic->register_read(hw::reg::kStatus) % 4 == 1);
  unsigned n = 0;
  for (unsigned round = 0; round < 20; ++round) n += fires(l.b.events(), l.cb.number);
  CHECK(n > 0);
  CHECK(n <= (1u << Node::kEventLog) / 2 + 2);
}

TEST_CASE("link changes between two reads become one event") {
  Pair p;
  for (unsigned i = 0; i < 9; ++i) p.a.nic->register_write(hw::reg::kLinkCtrl, i & 1);
  auto events = p.a.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].type == hw::EventType::kPort);
  // Consuming it reports the change that came in between, once.
  CHECK(p.a.events().size() == 1);
  CHECK(p.a.events().empty());
}
