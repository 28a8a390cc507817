// SPDX-License-Identifier: BSD-2-Clause
// Statuses, flush and state after errors.
#include "link.hpp"

using namespace ordma;
using namespace ordma::bench;
using Status = hw::WcStatus;

namespace {

unsigned state(Qp& qp) { return static_cast<unsigned>(qp.query(hw::progress::state)); }
constexpr unsigned kErr = static_cast<unsigned>(hw::QpState::kErr);

void check_statuses(const std::vector<Wc>& wcs, const std::vector<Status>& expected) {
  REQUIRE(wcs.size() == expected.size());
  for (std::size_t i = 0; i < wcs.size(); ++i) {
    INFO("CQE " << i);
    CHECK(wcs[i].status == expected[i]);
  }
}

}  // namespace

TEST_CASE("case_001 flush is complete and in order, also for posts in ERR") {
  Link l;
  Cq rcq = l.a.create_cq(6);
  QpOptions o;
  o.scq = &l.ca;
  o.rcq = &rcq;
  Qp q = l.a.create_qp(o);
  Qp peer = l.b.create_qp({.scq = &l.cb, .rcq = &l.cb});
  l.connect(q, peer);
  REQUIRE(l.b.destroy_qp(peer) == hw::CmdStatus::kOk);
  const Mr mr = l.a.reg_mr(64);
  for (unsigned i = 0; i < 16; ++i) {
    q.post_recv(500 + i, {{mr.iova, 64, mr.key}});
    q.post({.op = hw::WqeOp::kSend, .sges = {{mr.iova, 8, mr.key}}, .signaled = false});
  }
  q.ring_recv();
  q.ring();
  l.run();
  CHECK(l.ca.drain().empty());
  REQUIRE(q.to(hw::QpState::kErr) == hw::CmdStatus::kOk);
  l.run();
  for (unsigned i = 0; i < 4; ++i) {
    q.post_recv(516 + i, {{mr.iova, 64, mr.key}});
    q.post({.op = hw::WqeOp::kSend, .sges = {{mr.iova, 8, mr.key}}, .signaled = false});
  }
  q.ring_recv();
  q.ring();
  l.run();
  const auto sends = l.ca.drain(), recvs = rcq.drain();
  REQUIRE(sends.size() == 20);
  REQUIRE(recvs.size() == 20);
  for (unsigned i = 0; i < 20; ++i) {
    CHECK(sends[i].status == Status::kWrFlushErr);
    CHECK(sends[i].wqe_index == i);
    CHECK(recvs[i].status == Status::kWrFlushErr);
    CHECK(recvs[i].wr_id == 500 + i);
    CHECK(recvs[i].is_recv);
  }
}

TEST_CASE("case_003 the first error is the real one, the rest flush, both ends end in ERR") {
  Link l;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  for (unsigned i = 0; i < 3; ++i) l.qb.post_recv(40 + i, {{dst.iova, 64, dst.key}});
  l.qb.ring_recv();
  for (unsigned i = 0; i < 4; ++i) {
    Send s = l.write(src, 8, dst);
    if (i == 1) s.rkey ^= 0x100;
    l.qa.post(s);
  }
  l.qa.ring();
  l.serve(10'000);
  const auto wcs = l.ca.drain();
  check_statuses(wcs, {Status::kSuccess, Status::kRemAccessErr, Status::kWrFlushErr,
                       Status::kWrFlushErr});
  CHECK(wcs[1].vendor_err == code_of(hw::AethSyndrome::kNakAccess));
  CHECK(state(l.qa) == kErr);
  CHECK(state(l.qb) == kErr);
  CHECK(has_event(l.cpu_b.other, hw::EventType::kQpAsync, code_of(hw::AsyncCode::kAccessErr)));
  const auto flushed = l.cb.drain();
  REQUIRE(flushed.size() == 3);
  for (unsigned i = 0; i < 3; ++i) {
    CHECK(flushed[i].status == Status::kWrFlushErr);
    CHECK(flushed[i].wr_id == 40 + i);
  }
}

TEST_CASE("case_004 refused WRITEs touch nothing") {
  enum { kKey, kEnd, kWrap, kRight, kPd, kLocalDma, kCases };
  for (int what = 0; what < kCases; ++what) {
    INFO("variant " << what);
    Link l;
    const Mr src = l.a.reg_mr(64);
    Mr dst = l.b.reg_mr(64, what == kRight ? 1 : 15, what == kPd ? 8 : 7);
    l.b.mem.fill(dst.addr - 64, 192, 1);
    l.a.mem.fill(src.addr, 64, 2);
    Send s = l.write(src, 16, dst);
    if (what == kKey) s.rkey ^= 0x4000'0000;
    if (what == kEnd) s.remote_addr += 64 - 15;
    if (what == kWrap) s.remote_addr = ~0ull - 7;
    if (what == kLocalDma) {
      s.rkey = hw::kReservedLkey;
      s.remote_addr = dst.addr;
    }
    l.qa.send(s);
    l.serve(1000);
    check_statuses(l.ca.drain(), {Status::kRemAccessErr});
    CHECK(l.b.mem.filled(dst.addr - 64, 192, 1));
    CHECK(l.b.counter(hw::Counter::kRxBytes) == 0);
    CHECK(l.b.counter(hw::Counter::kRespRemoteAccessErrors) == 1);
    CHECK(l.a.counter(hw::Counter::kReqRemoteAccessErrors) == 1);
  }
}

TEST_CASE("case_005 receive too small") {
  struct Case {
    std::uint32_t recv, send;
  };
  for (const Case c : {Case{100, 101}, Case{1500, 4096}, Case{0, 1}}) {
    Link l;
    const Mr src = l.a.reg_mr(8192), in = l.b.reg_mr(8192);
    l.b.mem.fill(in.addr, 8192, 1);
    l.a.mem.fill(src.addr, 8192, 2);
    l.qb.recv(9, {{in.iova, c.recv, in.key}});
    l.qa.send(l.message(src, c.send));
    l.serve(1000);
    check_statuses(l.ca.drain(), {Status::kRemInvReqErr});
    const auto got = l.cb.drain();
    check_statuses(got, {Status::kLocLenErr});
    CHECK(got[0].wr_id == 9);
    Bytes rest(8192 - c.recv);
    const auto raw = l.b.mem.at(in.addr + c.recv, rest.size());
    std::copy(raw.begin(), raw.end(), rest.begin());
    l.b.mem.fill(in.addr, 8192, 1);
    CHECK(std::equal(rest.begin(), rest.end(), l.b.mem.at(in.addr + c.recv, 1).data()));
    CHECK(state(l.qb) == kErr);
    CHECK(l.b.counter(hw::Counter::kRespLocalLengthError) == 1);
  }
}

TEST_CASE("case_006 bad local keys on either side") {
  for (const bool no_write : {false, true}) {
    Link l;
    const Mr src = l.a.reg_mr(64), in = l.b.reg_mr(64, no_write ? 0 : 15);
    l.qb.recv(3, {{in.iova, 64, no_write ? in.key : in.key ^ 0x10000}});
    l.qa.send(l.message(src, 10));
    l.serve(1000);
    check_statuses(l.ca.drain(), {Status::kRemOpErr});
    check_statuses(l.cb.drain(), {Status::kLocProtErr});
  }
  Link l;
  l.capture = true;
  const Mr src = l.a.reg_mr(64);
  Send s = l.message(src, 10);
  s.sges.push_back({src.iova, 10, src.key ^ 0x20000});
  l.qa.send(s);
  l.serve(1000);
  check_statuses(l.ca.drain(), {Status::kLocProtErr});
  CHECK(l.sent[0].empty());
  CHECK(has_event(l.cpu_a.other, hw::EventType::kQpError, code_of(Status::kLocProtErr)));
  CHECK(state(l.qa) == kErr);
}

TEST_CASE("a local fault waits for what was posted before it and flushes what comes after") {
  Link l;
  const Mr src = l.a.reg_mr(20000), dst = l.b.reg_mr(20000);
  l.qa.post(l.write(src, 20000, dst));
  l.qa.post(l.read(src, 5000, dst));
  Send bad = l.write(src, 8, dst);
  bad.sges[0].lkey ^= 0x10000;
  l.qa.post(bad);
  l.qa.post(l.write(src, 8, dst));
  l.qa.ring();
  l.serve(1000);
  const auto wcs = l.ca.drain();
  check_statuses(wcs, {Status::kSuccess, Status::kSuccess, Status::kLocProtErr,
                       Status::kWrFlushErr});
  for (unsigned i = 0; i < 4; ++i) CHECK(wcs[i].wqe_index == i);
}

TEST_CASE("a fault in the middle of a message ends it after what was sent before") {
  LinkOptions o;
  Link l(o);
  const Mr src = l.a.reg_mr(1 << 20), dst = l.b.reg_mr(1 << 20);
  l.qa.post(l.write(src, 100, dst));
  l.qa.post(l.write(src, 1 << 20, dst));
  l.qa.post(l.write(src, 100, dst));
  l.qa.ring();
  l.a.nic->step(32);
  REQUIRE(l.a.command(hw::CmdOp::kMrDestroy, src.key) == hw::CmdStatus::kOk);
  l.a.mem.revoke(src.addr, 1 << 20);
  l.serve(1'000'000);
  check_statuses(l.ca.drain(), {Status::kSuccess, Status::kLocProtErr, Status::kWrFlushErr});
  CHECK(l.a.mem.violations == 0);
}

TEST_CASE("WQEs that no provider writes fail with LOC_QP_OP_ERR and send nothing") {
  using enum hw::WqeOp;
  enum { kIndex, kOpcode, kZeroOp, kEthOp, kLength, kSges, kInlineRead, kInlineLong, kCases };
  for (int what = 0; what < kCases; ++what) {
    INFO("variant " << what);
    Link l;
    l.capture = true;
    const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
    Send s = l.write(src, 8, dst);
    if (what == kIndex) s.index = 77;
    if (what == kOpcode) s.op = static_cast<hw::WqeOp>(200);
    if (what == kZeroOp) s.op = static_cast<hw::WqeOp>(0);
    if (what == kEthOp) s.op = kEth;
    if (what == kLength) s.length = 9;
    if (what == kSges) s.sges.assign(17, {src.iova, 1, src.key});
    if (what == kInlineRead) {
      s.op = kRead;
      s.sges.clear();
      s.inline_data.resize(8);
    }
    if (what == kInlineLong) {
      s.sges.clear();
      s.inline_data.resize(8);
      s.length = 481;
    }
    l.qa.post(s);
    l.qa.post(l.write(src, 8, dst));
    l.qa.ring();
    l.serve(1000);
    check_statuses(l.ca.drain(), {Status::kLocQpOpErr, Status::kWrFlushErr});
    CHECK(l.sent[0].empty());
  }
  Link l;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  Send s = l.write(src, 8, dst);
  s.length = (1u << 31) + 1;
  l.qa.send(s);
  l.serve(1000);
  check_statuses(l.ca.drain(), {Status::kLocLenErr});
}

TEST_CASE("unreadable send queue memory fails the WQE") {
  Link l;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  l.qa.post(l.write(src, 8, dst));
  l.a.mem.revoke(l.qa.sq, 64);
  l.qa.ring();
  l.serve(1000);
  check_statuses(l.ca.drain(), {Status::kLocQpOpErr});
}

TEST_CASE("case_034 different path MTUs end in an invalid request, not in a timeout") {
  for (const bool big_sender : {true, false}) {
    for (const bool send : {true, false}) {
      LinkOptions o;
      o.a.mtu_log = big_sender ? 12 : 10;
      o.b.mtu_log = big_sender ? 10 : 12;
      Link l(o);
      const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192);
      l.qb.recv(1, {{dst.iova, 8192, dst.key}});
      l.qa.send(send ? l.message(src, 5000) : l.write(src, 5000, dst));
      l.serve(1000);
      check_statuses(l.ca.drain(), {Status::kRemInvReqErr});
    }
  }
}

TEST_CASE("QP access without REMOTE_WRITE or REMOTE_READ is an invalid request") {
  for (const bool read : {false, true}) {
    LinkOptions o;
    o.b.access = 1;
    Link l(o);
    const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
    l.qa.send(read ? l.read(src, 8, dst) : l.write(src, 8, dst));
    l.serve(1000);
    check_statuses(l.ca.drain(), {Status::kRemInvReqErr});
    CHECK(has_event(l.cpu_b.other, hw::EventType::kQpAsync, code_of(hw::AsyncCode::kReqErr)));
  }
}

TEST_CASE("SEND with invalidate finds nothing that may be invalidated") {
  Link l;
  const Mr src = l.a.reg_mr(64), in = l.b.reg_mr(64);
  l.qb.recv(6, {{in.iova, 64, in.key}});
  Send s = l.message(src, 8);
  s.op = hw::WqeOp::kSendInv;
  s.imm = in.key;
  l.qa.send(s);
  l.serve(1000);
  check_statuses(l.ca.drain(), {Status::kRemInvReqErr});
  check_statuses(l.cb.drain(), {Status::kWrFlushErr});
}

TEST_CASE("case_014 a destroyed QP leaves no CQE and touches no memory") {
  Link l;
  QpOptions o;
  o.scq = o.rcq = &l.ca;
  Qp c = l.a.create_qp(o);
  Qp d = l.b.create_qp({.scq = &l.cb, .rcq = &l.cb});
  l.connect(c, d);
  const Mr src = l.a.reg_mr(1 << 20), dst = l.b.reg_mr(1 << 20), in = l.a.reg_mr(64);
  l.qa.recv(1, {{in.iova, 64, in.key}});
  l.qa.send(l.write(src, 1 << 20, dst));
  l.a.nic->step(16);
  const std::uint32_t gone = l.qa.qpn;
  REQUIRE(l.a.destroy_qp(l.qa) == hw::CmdStatus::kOk);
  l.a.mem.revoke(l.qa.sq, 64 << 9);
  l.a.mem.revoke(l.qa.rq, 64 << 7);
  l.a.mem.revoke(l.qa.log, 16 << 6);
  l.a.mem.revoke(src.addr, 4096);
  for (unsigned i = 0; i < 8; ++i) {
    c.post({.sges = {{src.iova + 8192, 64, src.key}}, .remote_addr = dst.iova, .rkey = dst.key});
  }
  c.ring();
  l.run();
  const auto wcs = l.ca.drain();
  REQUIRE(wcs.size() == 8);
  for (const Wc& wc : wcs) CHECK(wc.qpn != gone);
  CHECK(l.a.mem.violations == 0);
}

TEST_CASE("a deregistered MR is not touched again, whichever side it is on") {
  Link l;
  const Mr src = l.a.reg_mr(1 << 20), dst = l.b.reg_mr_list(1 << 20, 100, true);
  l.qa.send(l.write(src, 1 << 20, dst));
  l.a.nic->step(32);
  l.b.nic->step(8);
  REQUIRE(l.b.command(hw::CmdOp::kMrDestroy, dst.key) == hw::CmdStatus::kOk);
  l.b.mem.writes.clear();
  l.b.mem.trace = true;
  l.serve(1'000'000);
  check_statuses(l.ca.drain(), {Status::kRemAccessErr});
  for (const WriteRecord& w : l.b.mem.writes) CHECK(w.kind != WriteKind::kPayload);
}

TEST_CASE("a payload is written before its CQE") {
  Link l;
  const Mr src = l.a.reg_mr(8192), in = l.b.reg_mr(8192);
  l.b.mem.trace = true;
  for (unsigned i = 0; i < 8; ++i) {
    l.qb.post_recv(i, {{in.iova, 8192, in.key}});
    l.qa.post(l.message(src, 3000));
  }
  l.qb.ring_recv();
  l.qa.ring();
  l.run();
  std::size_t payload = 0, cqes = 0;
  for (const WriteRecord& w : l.b.mem.writes) {
    if (w.kind == WriteKind::kPayload) payload += w.bytes;
    if (w.kind == WriteKind::kCqe) CHECK(payload == 3000 * ++cqes);
  }
  CHECK(cqes == 8);
}

TEST_CASE("requests that break the rules of a message") {
  // Frames are taken from a good stream and dropped so that the order breaks without a PSN gap.
  const auto run = [](auto&& mangle) {
    Link l;
    const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192);
    l.qb.recv(1, {{dst.iova, 8192, dst.key}});
    mangle(l, src, dst);
    l.serve(1000);
    CHECK(state(l.qb) == kErr);
    CHECK(has_event(l.cpu_b.other, hw::EventType::kQpAsync, code_of(hw::AsyncCode::kReqErr)));
    return l.a.counter(hw::Counter::kReqRemoteInvalidRequest);
  };
  // MIDDLE without FIRST: B expects what A's second packet carries.
  CHECK(run([](Link& l, const Mr& src, const Mr& dst) {
          l.filter = [&l](unsigned from, std::span<const std::byte> f) {
            return Pair::Verdict{.drop = from == 0 && opcode_of(f) == hw::RoceOp::kRcWriteFirst};
          };
          hw::set(l.qb.qpc, hw::qpc::rq_psn, 0x101);
          REQUIRE(l.qb.to(hw::QpState::kReset) == hw::CmdStatus::kOk);
          REQUIRE(l.qb.to(hw::QpState::kInit) == hw::CmdStatus::kOk);
          REQUIRE(l.qb.to(hw::QpState::kRtr, true) == hw::CmdStatus::kOk);
          l.qa.send(l.write(src, 5000, dst));
        }) == 1);
}
