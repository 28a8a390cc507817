// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues, and UC, which shares the receive path.
#include "link.hpp"

using namespace ordma;
using namespace ordma::bench;
using Status = hw::WcStatus;

namespace {

struct Shared : Pair {
  explicit Shared(unsigned log = 6, hw::QpType type = hw::QpType::kRc)
      : ca(a.create_cq(8)), cb(b.create_cq(8)), srq(b.create_srq(log)) {
    QpOptions x{.type = type}, y{.type = type};
    x.scq = x.rcq = &ca;
    y.scq = y.rcq = &cb;
    y.srqn = srq.number;
    for (unsigned i = 0; i < 2; ++i) {
      qa[i] = a.create_qp(x);
      qb[i] = b.create_qp(y);
      connect(qa[i], qb[i]);
    }
    (void)b.events();
    src = a.reg_mr(8192);
    in = b.reg_mr(8192);
  }
  void post(unsigned n) {
    for (unsigned i = 0; i < n; ++i) srq.post(next_id++, {{in.iova, 8192, in.key}});
  }
  void send(unsigned qp, std::uint32_t bytes = 8) {
    qa[qp].send({.op = hw::WqeOp::kSend, .sges = {{src.iova, bytes, src.key}}});
    run();
    (void)ca.drain();
  }
  std::uint64_t record(hw::Field f) {
    return hw::get(b.mem.at(srq.record, hw::srq_record::kBytes), f);
  }
  Cq ca, cb;
  Srq srq;
  Qp qa[2], qb[2];
  Mr src, in;
  std::uint64_t next_id = 1000;
};

}  // namespace

TEST_CASE("an SRQ serves several QPs in order; the record frees slots before the CQE") {
  Shared s(2);
  s.b.mem.trace = true;
  for (unsigned i = 0; i < 40; ++i) {
    s.post(1);
    s.b.mem.writes.clear();
    s.send(i % 2, i * 100);
    const auto wcs = s.cb.drain();
    REQUIRE(wcs.size() == 1);
    CHECK(wcs[0].wr_id == 1000 + i);
    CHECK(wcs[0].qpn == s.qb[i % 2].qpn);
    CHECK(wcs[0].byte_len == i * 100);
    CHECK(s.record(hw::srq_record::consumed) == i + 1);
    CHECK(s.record(hw::srq_record::count) == i + 1);
    std::size_t record = 0, cqe = 0;
    for (std::size_t k = 0; k < s.b.mem.writes.size(); ++k) {
      if (s.b.mem.writes[k].kind == WriteKind::kRecord) record = k + 1;
      if (s.b.mem.writes[k].kind == WriteKind::kCqe) cqe = k + 1;
    }
    CHECK(record != 0);
    CHECK(record < cqe);
  }
}

TEST_CASE("case_008 WRITE with immediate from an SRQ, and RNR when it is empty") {
  Shared s;
  const Mr dst = s.b.reg_mr(64);
  s.qa[0].send({.op = hw::WqeOp::kWriteImm, .sges = {{s.src.iova, 8, s.src.key}}, .imm = 3,
                .remote_addr = dst.iova, .rkey = dst.key});
  s.run();
  const auto events = s.a.events();
  REQUIRE(has_event(events, hw::EventType::kQpRnr));
  s.post(1);
  s.a.rewind(s.qa[0].qpn, events.back().log_index, events.back().psn);
  s.run();
  const auto wcs = s.cb.drain();
  REQUIRE(wcs.size() == 1);
  CHECK(wcs[0].wr_id == 1000);
  CHECK(wcs[0].imm == 3);
}

TEST_CASE("case_076 the limit event comes once, when fewer are left, and re-arms by command") {
  Shared s(5);
  const auto limit = [&](unsigned n) {
    return s.b.command(hw::CmdOp::kSrqLimit, s.srq.number, [&](std::span<std::byte> raw) {
      hw::set(raw, hw::cmd_srq::limit, n);
    });
  };
  s.post(16);
  REQUIRE(limit(8) == hw::CmdStatus::kOk);
  for (unsigned i = 1; i <= 16; ++i) {
    s.send(0);
    INFO("consumed " << i);
    CHECK(has_event(s.b.events(), hw::EventType::kSrqLimit) == (i == 9));
  }
  s.post(10);
  CHECK(limit(33) == hw::CmdStatus::kBadParam);
  REQUIRE(limit(8) == hw::CmdStatus::kOk);
  CHECK_FALSE(has_event(s.b.events(), hw::EventType::kSrqLimit));
  for (unsigned i = 0; i < 3; ++i) s.send(0);
  CHECK(has_event(s.b.events(), hw::EventType::kSrqLimit));
  // Armed below the limit: there is nothing to wait for.
  REQUIRE(limit(20) == hw::CmdStatus::kOk);
  CHECK(has_event(s.b.events(), hw::EventType::kSrqLimit));
  REQUIRE(limit(0) == hw::CmdStatus::kOk);
  CHECK(s.cb.drain().size() == 19);
}

TEST_CASE("an SRQ's WQEs survive a QP's error; LAST_WQE says the QP takes no more") {
  Shared s;
  s.post(4);
  REQUIRE(s.qb[0].to(hw::QpState::kErr) == hw::CmdStatus::kOk);
  s.run();
  CHECK(has_event(s.b.events(), hw::EventType::kQpAsync, code_of(hw::AsyncCode::kLastWqe)));
  CHECK(s.cb.drain().empty());
  s.send(1);
  CHECK(s.cb.drain().at(0).wr_id == 1000);
}

TEST_CASE("an SRQ WQE that a message had begun to fill is flushed with its wr_id") {
  Shared s;
  s.post(2);
  // The message's second packet never comes.
  s.filter = [n = 0u](unsigned from, std::span<const std::byte>) mutable {
    return Pair::Verdict{.drop = from == 0 && n++ > 0};
  };
  s.send(0, 5000);
  CHECK(s.record(hw::srq_record::consumed) == 1);
  REQUIRE(s.qb[0].to(hw::QpState::kErr) == hw::CmdStatus::kOk);
  s.run();
  const auto wcs = s.cb.drain();
  REQUIRE(wcs.size() == 1);
  CHECK(wcs[0].wr_id == 1000);
  CHECK(wcs[0].status == Status::kWrFlushErr);
}

TEST_CASE("an SRQ that cannot be read reports itself and fails the QP that needed it") {
  Shared s;
  s.post(2);
  s.b.mem.revoke(s.srq.ring, 64);
  s.send(0);
  const auto events = s.b.events();
  CHECK(has_event(events, hw::EventType::kSrqError));
  CHECK(s.qb[0].query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kErr));
  CHECK(has_event(s.a.events(), hw::EventType::kQpNak, code_of(hw::AethSyndrome::kNakOp)));
}

TEST_CASE("buffers of an SRQ are those of its protection domain") {
  Pair p;
  Cq ca = p.a.create_cq(6), cb = p.b.create_cq(6);
  Srq srq = p.b.create_srq(4, 0, 99);
  Qp x = p.a.create_qp({.scq = &ca, .rcq = &ca});
  Qp y = p.b.create_qp({.scq = &cb, .rcq = &cb, .srqn = srq.number});
  p.connect(x, y);
  const Mr src = p.a.reg_mr(64), in = p.b.reg_mr(64, 15, 99), other = p.b.reg_mr(64);
  srq.post(1, {{in.iova, 64, in.key}});
  srq.post(2, {{other.iova, 64, other.key}});
  for (unsigned i = 0; i < 2; ++i) {
    x.send({.op = hw::WqeOp::kSend, .sges = {{src.iova, 8, src.key}}});
    p.run();
  }
  const auto wcs = cb.drain();
  REQUIRE(wcs.size() == 2);
  CHECK(wcs[0].status == Status::kSuccess);
  CHECK(wcs[1].status == Status::kLocProtErr);
}

namespace {

LinkOptions uc() {
  LinkOptions o;
  o.a.type = o.b.type = hw::QpType::kUc;
  return o;
}

}  // namespace

TEST_CASE("UC: SEND and WRITE arrive, complete when sent, and lost messages stay lost") {
  Link l(uc());
  const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192), in = l.b.reg_mr(8192);
  l.a.mem.fill(src.addr, 8192, 3);
  for (unsigned i = 0; i < 4; ++i) l.qb.post_recv(i, {{in.iova, 8192, in.key}});
  l.qb.ring_recv();
  l.capture = true;
  Send w = l.write(src, 5000, dst);
  w.op = hw::WqeOp::kWriteImm;
  w.imm = 7;
  l.qa.post(l.message(src, 3000));
  l.qa.post(w);
  l.qa.ring();
  l.run();
  CHECK(l.ca.drain().size() == 2);
  CHECK(l.sent[1].empty());
  auto got = l.cb.drain();
  REQUIRE(got.size() == 2);
  CHECK(got[0].byte_len == 3000);
  CHECK(got[1].imm == 7);
  CHECK(got[1].opcode == hw::WcOp::kRecvRdmaWithImm);
  CHECK(l.b.mem.filled(dst.addr, 5000, 3));
  // The middle of a message is lost: nothing completes, and the next message takes its WQE.
  l.filter = [n = 0u](unsigned from, std::span<const std::byte>) mutable {
    return Pair::Verdict{.drop = from == 0 && n++ == 1};
  };
  l.qa.send(l.message(src, 3000));
  l.run();
  CHECK(l.ca.drain().at(0).status == Status::kSuccess);
  CHECK(l.cb.drain().empty());
  l.qa.send(l.message(src, 1025));
  l.run();
  got = l.cb.drain();
  REQUIRE(got.size() == 1);
  CHECK(got[0].wr_id == 2);
  CHECK(got[0].byte_len == 1025);
  // No receive: dropped without a word.
  l.qa.send(l.message(src, 8));
  l.qa.send(l.message(src, 8));
  l.run();
  CHECK(l.cb.drain().size() == 1);
  CHECK(l.b.counter(hw::Counter::kOutOfBuffer) == 1);
  CHECK(l.qb.query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kRts));
}

TEST_CASE("UC: a WRITE that is not allowed is dropped, READ is not for UC") {
  Link l(uc());
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64, 1);
  l.b.mem.fill(dst.addr, 64, 1);
  l.qa.send(l.write(src, 8, dst));
  l.run();
  CHECK(l.ca.drain().at(0).status == Status::kSuccess);
  CHECK(l.b.mem.filled(dst.addr, 64, 1));
  CHECK(l.qb.query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kRts));
  l.qa.send(l.read(src, 8, dst));
  l.run();
  CHECK(l.ca.drain().at(0).status == Status::kLocQpOpErr);
  CHECK(l.qa.query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kSqe));
}

TEST_CASE("UC: a receive too small completes with LOC_LEN and takes the QP to ERR") {
  Link l(uc());
  const Mr src = l.a.reg_mr(64), in = l.b.reg_mr(64);
  l.qb.recv(1, {{in.iova, 7, in.key}});
  l.qa.send(l.message(src, 8));
  l.run();
  CHECK(l.cb.drain().at(0).status == Status::kLocLenErr);
  CHECK(l.qb.query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kErr));
}
