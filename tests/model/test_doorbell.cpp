// SPDX-License-Identifier: BSD-2-Clause
#include "link.hpp"

using namespace ordma;
using namespace ordma::bench;

namespace {

struct Record {
  std::uint64_t consumed, errors, bad_word;
  hw::DbErr reason;
};

Record record(Node& n, std::uint32_t page) {
  const auto raw = n.mem.at(n.page_record(page), hw::page_record::kBytes);
  return {hw::get(raw, hw::page_record::consumed), hw::get(raw, hw::page_record::errors),
          hw::get(raw, hw::page_record::bad_word),
          static_cast<hw::DbErr>(hw::get(raw, hw::page_record::reason))};
}

std::uint64_t word(hw::DbKind kind, std::uint32_t number, std::uint32_t index, unsigned lap = 0) {
  return hw::place(hw::db::kind, static_cast<std::uint64_t>(kind)) |
         hw::place(hw::db::number, number) | hw::place(hw::db::index, index) |
         hw::place(hw::db::lap_lo, lap) | hw::place(hw::db::lap_hi, lap);
}

}  // namespace

TEST_CASE("words that a page must refuse, with the reason") {
  Link l;
  Engine& nic = *l.a.nic;
  REQUIRE(l.a.open_page(2, 2) == hw::CmdStatus::kOk);
  using enum hw::DbKind;
  struct Case {
    std::uint32_t page, offset;
    std::uint64_t word;
    std::uint8_t strobes;
    hw::DbErr reason;
  };
  Srq srq = l.a.create_srq(4);
  const std::uint32_t qpn = l.qa.qpn;
  const Case cases[] = {
      {1, 8, word(kSq, qpn, 1), 0x0f, hw::DbErr::kMalformed},
      {1, 4, word(kSq, qpn, 1), 0xff, hw::DbErr::kMalformed},
      {1, 4096, word(kSq, qpn, 1), 0xff, hw::DbErr::kMalformed},
      {1, 0, 0, 0xff, hw::DbErr::kMalformed},
      {1, 0, word(kSq, qpn, 1, 1), 0xff, hw::DbErr::kMalformed},
      {1, 0, word(kSq, qpn, 1) | hw::place(hw::db::lap_lo, 1), 0xff, hw::DbErr::kMalformed},
      {1, 0, word(kCmd, 0, 0), 0xff, hw::DbErr::kMalformed},
      {1, 0, word(kRcmd, 0, 0), 0xff, hw::DbErr::kMalformed},
      {1, 0, word(kToken, 0, 0), 0xff, hw::DbErr::kMalformed},
      {1, 0, word(static_cast<hw::DbKind>(15), 0, 0), 0xff, hw::DbErr::kMalformed},
      {2, 0, word(kSq, qpn, 1), 0xff, hw::DbErr::kNotOwner},
      {2, 0, word(kRq, qpn, 1), 0xff, hw::DbErr::kNotOwner},
      {2, 0, word(kCqArm, l.ca.number, 0), 0xff, hw::DbErr::kNotOwner},
      {2, 0, word(kSrq, srq.number, 1), 0xff, hw::DbErr::kNotOwner},
      {1, 0, word(kSq, qpn ^ 0x10000, 1), 0xff, hw::DbErr::kNoObject},
      {1, 0, word(kSq, 0, 1), 0xff, hw::DbErr::kNoObject},
      {1, 0, word(kSrq, 900, 1), 0xff, hw::DbErr::kNoObject},
      {1, 0, word(kCqArm, 0xffffff, 0), 0xff, hw::DbErr::kNoObject},
      {1, 0, word(kSq, qpn, 65), 0xff, hw::DbErr::kBadIndex},
      {1, 0, word(kSq, qpn, 0xffffff), 0xff, hw::DbErr::kBadIndex},
      {1, 0, word(kRq, qpn, 65), 0xff, hw::DbErr::kBadIndex},
      {1, 0, word(kSrq, srq.number, 17), 0xff, hw::DbErr::kBadIndex},
      {1, 0, word(kCqArm, l.ca.number, 1), 0xff, hw::DbErr::kBadIndex},
  };
  std::uint64_t errors[3] = {};
  for (const Case& c : cases) {
    INFO("word " << std::hex << c.word << " page " << c.page << " strobes " << +c.strobes);
    nic.doorbell(c.page, c.offset, c.word, c.strobes);
    const Record r = record(l.a, c.page);
    CHECK(r.errors == ++errors[c.page]);
    CHECK(r.bad_word == c.word);
    CHECK(r.reason == c.reason);
  }
  l.run();
  CHECK(l.a.counter(hw::Counter::kDbRefused) == std::size(cases));
  // One event per page until the driver has read it.
  const auto events = l.a.events();
  REQUIRE(events.size() == 2);
  CHECK(events[0].type == hw::EventType::kPageError);
  CHECK(events[0].number == 1);
  CHECK(events[1].number == 2);
  nic.doorbell(1, 0, 0, 0xff);
  CHECK(l.a.events().size() == 1);
  // A closed page, or one that does not exist, has no record.
  nic.doorbell(700, 0, word(kSq, qpn, 1), 0xff);
  nic.doorbell(1u << 30, 0, word(kSq, qpn, 1), 0xff);
  CHECK(l.qa.query(hw::progress::sq_pi) == 0);
}

TEST_CASE("states that take no words") {
  Pair p;
  Cq cq = p.a.create_cq(4);
  Qp qp = p.a.create_qp({.scq = &cq, .rcq = &cq});
  qp.connect(5, p.b.gid, p.b.mac);
  REQUIRE(qp.to(hw::QpState::kInit) == hw::CmdStatus::kOk);
  qp.post({});
  qp.ring();
  CHECK(record(p.a, 1).reason == hw::DbErr::kState);
  qp.post_recv(1, {});
  qp.ring_recv();
  CHECK(qp.query(hw::progress::rq_pi) == 1);
  REQUIRE(qp.to(hw::QpState::kRtr, true) == hw::CmdStatus::kOk);
  qp.ring();
  CHECK(record(p.a, 1).errors == 2);
}

TEST_CASE("a word in RESET moves producer and consumer, and posting goes on from there") {
  Link l;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64), in = l.a.reg_mr(64);
  for (unsigned i = 0; i < 5; ++i) l.qa.send(l.write(src, 8, dst));
  l.qa.recv(1, {{in.iova, 8, in.key}});
  l.run();
  CHECK(l.ca.drain().size() == 5);
  REQUIRE(l.qa.to(hw::QpState::kReset) == hw::CmdStatus::kOk);
  CHECK(l.qa.query(hw::progress::sq_pi) == 5);
  CHECK(l.qa.query(hw::progress::rq_ci) == 1);
  l.qa.sq_pi = l.qa.rq_pi = 0xfffffe;
  l.qa.ring();
  l.qa.ring_recv();
  CHECK(l.qa.query(hw::progress::sq_ci) == 0xfffffe);
  CHECK(l.qa.query(hw::progress::rq_ci) == 0xfffffe);
  REQUIRE(l.qb.to(hw::QpState::kReset) == hw::CmdStatus::kOk);
  l.connect(l.qa, l.qb);
  for (unsigned i = 0; i < 5; ++i) l.qa.send(l.write(src, 8, dst));
  l.run();
  const auto wcs = l.ca.drain();
  REQUIRE(wcs.size() == 5);
  for (unsigned i = 0; i < 5; ++i) {
    CHECK(wcs[i].status == hw::WcStatus::kSuccess);
    CHECK(wcs[i].wqe_index == ((0xfffe + i) & 0xffff));
  }
  CHECK(l.qa.query(hw::progress::sq_ci) == 3);
}

TEST_CASE("a repeated or older index changes nothing") {
  Link l;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  for (unsigned i = 0; i < 3; ++i) l.qa.post(l.write(src, 8, dst));
  l.qa.ring();
  l.qa.ring();
  l.qa.ring();
  l.run();
  CHECK(l.ca.drain().size() == 3);
  l.a.doorbell(1, hw::DbKind::kSq, l.qa.qpn, 2);
  l.run();
  CHECK(l.ca.drain().empty());
  CHECK(record(l.a, 1).reason == hw::DbErr::kBadIndex);
}

TEST_CASE("an index past the free slots is refused while WQEs are outstanding") {
  Link l;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64), in = l.b.reg_mr(64);
  l.filter = [](unsigned from, std::span<const std::byte>) {
    return Pair::Verdict{.drop = from == 1};
  };
  for (unsigned i = 0; i < 40; ++i) l.qa.post(l.write(src, 8, dst));
  l.qa.ring();
  l.run();
  l.a.doorbell(1, hw::DbKind::kSq, l.qa.qpn, 65);
  CHECK(record(l.a, 1).reason == hw::DbErr::kBadIndex);
  CHECK(l.qa.query(hw::progress::sq_pi) == 40);
  l.a.doorbell(1, hw::DbKind::kSq, l.qa.qpn, 64);
  CHECK(l.qa.query(hw::progress::sq_pi) == 64);
  for (unsigned i = 0; i < 40; ++i) l.qb.post_recv(i, {{in.iova, 64, in.key}});
  l.qb.ring_recv();
  l.b.doorbell(1, hw::DbKind::kRq, l.qb.qpn, 65);
  CHECK(l.qb.query(hw::progress::rq_pi) == 40);
}

TEST_CASE("token pages: laps equal each other, tokens name no context, credit is recorded") {
  Link l;
  REQUIRE(l.a.open_page(3, 1, true) == hw::CmdStatus::kOk);
  CHECK(l.a.mem.pages[3] == std::make_pair(true, true));
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  Engine& nic = *l.a.nic;
  // The SQ index may be rung on a token page, in either lap.
  l.qa.post(l.write(src, 8, dst));
  nic.doorbell(3, 0, word(hw::DbKind::kSq, l.qa.qpn, 1, 1), 0xff);
  l.run();
  CHECK(l.ca.drain().size() == 1);
  l.advance(10'000);
  CHECK(record(l.a, 3).consumed == 1);
  l.qa.post(l.write(src, 8, dst));
  nic.doorbell(3, 8, word(hw::DbKind::kSq, l.qa.qpn, 2, 0), 0xff);
  l.run();
  CHECK(l.ca.drain().size() == 1);
  nic.doorbell(3, 16, word(hw::DbKind::kToken, 0, 0, 1), 0xff);
  CHECK(record(l.a, 3).reason == hw::DbErr::kNoObject);
  CHECK(record(l.a, 3).errors == 1);
  CHECK(record(l.a, 3).consumed == 3);
  CHECK(l.a.counter(hw::Counter::kTokenRefused) == 1);
  nic.doorbell(3, 24, word(hw::DbKind::kRq, l.qa.qpn, 1, 1), 0xff);
  CHECK(record(l.a, 3).reason == hw::DbErr::kMalformed);
  // Every PAGE_CREDIT_BATCH words without waiting for idleness.
  for (unsigned i = 0; i < hw::kPageCreditBatch; ++i) {
    nic.doorbell(3, 32, word(hw::DbKind::kSq, l.qa.qpn, 2, 1), 0xff);
  }
  CHECK(record(l.a, 3).consumed == 4 + hw::kPageCreditBatch);
  REQUIRE(l.a.command(hw::CmdOp::kPageClose, 3) == hw::CmdStatus::kOk);
  CHECK_FALSE(l.a.mem.pages[3].first);
  l.advance(100'000);
}

TEST_CASE("a page that goes idle gets its record and no timer stays") {
  Link l;
  REQUIRE(l.a.open_page(3, 1, true) == hw::CmdStatus::kOk);
  for (unsigned i = 0; i < 5; ++i) {
    l.a.nic->doorbell(3, 0, word(hw::DbKind::kSq, l.qa.qpn, 0, 1), 0xff);
  }
  CHECK(record(l.a, 3).consumed == 0);
  CHECK(l.a.nic->next_timer_ns() != ~0ull);
  l.advance(20'000);
  CHECK(record(l.a, 3).consumed == 5);
  CHECK(l.a.nic->next_timer_ns() == ~0ull);
  CHECK(l.a.nic->idle());
}
