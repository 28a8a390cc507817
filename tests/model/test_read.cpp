// SPDX-License-Identifier: BSD-2-Clause
// READ and atomics.
#include "link.hpp"

using namespace ordma;
using namespace ordma::bench;

namespace {

std::vector<Wc> ok(Link& l, std::size_t count) {
  auto wcs = l.ca.drain();
  REQUIRE(wcs.size() == count);
  for (const Wc& wc : wcs) CHECK(wc.status == hw::WcStatus::kSuccess);
  return wcs;
}

Send atomic(hw::WqeOp op, const Mr& local, const Mr& remote, std::uint64_t swap_add,
            std::uint64_t compare = 0, std::uint64_t offset = 0) {
  return {.op = op, .sges = {{local.iova, 8, local.key}}, .remote_addr = remote.iova + offset,
          .rkey = remote.key, .swap_add = swap_add, .compare = compare};
}

}  // namespace

TEST_CASE("case_034 READ of every size at every path MTU") {
  for (unsigned mtu_log = 8; mtu_log <= 12; ++mtu_log) {
    LinkOptions o;
    o.a.mtu_log = o.b.mtu_log = mtu_log;
    Link l(o);
    const Mr local = l.a.reg_mr(70000), remote = l.b.reg_mr(70000);
    unsigned seed = 7;
    for (const std::uint32_t n : {1u, 1023u, 1024u, 1025u, 4096u, 4097u, 65537u}) {
      INFO("mtu " << (1u << mtu_log) << " bytes " << n);
      l.b.mem.fill(remote.addr, n, ++seed);
      const auto before = l.qa.query(hw::progress::next_psn);
      l.qa.send(l.read(local, n, remote));
      l.run();
      const auto wcs = ok(l, 1);
      CHECK(wcs[0].opcode == hw::WcOp::kRdmaRead);
      CHECK(wcs[0].byte_len == n);
      CHECK(l.a.mem.filled(local.addr, n, seed));
      CHECK(l.qa.query(hw::progress::next_psn) == before + ((n - 1) >> mtu_log) + 1);
    }
  }
}

TEST_CASE("READ responses carry AETH in the first and last packet and the request's PSNs") {
  Link l;
  l.capture = true;
  const Mr local = l.a.reg_mr(4000), remote = l.b.reg_mr(4000);
  l.qa.send(l.read(local, 3000, remote));
  l.qa.send(l.read(local, 10, remote));
  l.run();
  ok(l, 2);
  REQUIRE(l.sent[1].size() == 4);
  using enum hw::RoceOp;
  const hw::RoceOp ops[] = {kRcReadRspFirst, kRcReadRspMiddle, kRcReadRspLast, kRcReadRspOnly};
  for (unsigned i = 0; i < 4; ++i) {
    const std::span<const std::byte> f = l.sent[1][i];
    CHECK(opcode_of(f) == ops[i]);
    CHECK(psn_of(f) == 0x100 + i);
    if (ops[i] == kRcReadRspMiddle) continue;
    const auto aeth = f.subspan(bth_at(f) + hw::bth::kBytes);
    CHECK(hw::get(aeth, hw::aeth::syndrome) == hw::kNoCredit);
    CHECK(hw::get(aeth, hw::aeth::msn) == (i == 3 ? 2u : 1u));
  }
}

TEST_CASE("READ scatters over several SGEs") {
  Link l;
  const Mr local = l.a.reg_mr(9000), remote = l.b.reg_mr(9000);
  l.b.mem.fill(remote.addr, 9000, 3);
  Send s = l.read(local, 0, remote);
  s.sges = {{local.iova, 100, local.key}, {0, 0, 0}, {local.iova + 100, 1500, local.key},
            {local.iova + 1600, 4400, local.key}};
  l.qa.send(s);
  l.run();
  CHECK(ok(l, 1)[0].byte_len == 6000);
  CHECK(l.a.mem.filled(local.addr, 6000, 3));
}

TEST_CASE("no more READs are outstanding than max_rd_atomic") {
  LinkOptions o;
  o.a.max_rd_atomic = 3;
  Link l(o);
  const Mr local = l.a.reg_mr(64), remote = l.b.reg_mr(64);
  unsigned outstanding = 0, most = 0;
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    if (opcode_of(f) == hw::RoceOp::kRcReadReq) most = std::max(most, ++outstanding);
    if (from == 1 && opcode_of(f) == hw::RoceOp::kRcReadRspOnly) --outstanding;
    return Pair::Verdict{};
  };
  for (unsigned i = 0; i < 40; ++i) l.qa.post(l.read(local, 8, remote));
  l.qa.ring();
  l.run();
  ok(l, 40);
  CHECK(most == 3);
}

TEST_CASE("a READ request beyond max_dest_rd_atomic is an invalid request") {
  LinkOptions o;
  o.a.max_rd_atomic = 8;
  o.b.max_dest_rd_atomic = 2;
  Link l(o);
  const Mr local = l.a.reg_mr(64), remote = l.b.reg_mr(64);
  for (unsigned i = 0; i < 8; ++i) l.qa.post(l.read(local, 8, remote));
  l.qa.ring();
  l.serve(10'000);
  const auto wcs = l.ca.drain();
  REQUIRE(wcs.size() == 8);
  CHECK(wcs[0].status == hw::WcStatus::kSuccess);
  CHECK(wcs[1].status == hw::WcStatus::kSuccess);
  CHECK(wcs[2].status == hw::WcStatus::kRemInvReqErr);
  CHECK(wcs[3].status == hw::WcStatus::kWrFlushErr);
}

TEST_CASE("max_rd_atomic 0 never sends a READ") {
  LinkOptions o;
  o.a.max_rd_atomic = 0;
  Link l(o);
  l.capture = true;
  const Mr local = l.a.reg_mr(64), remote = l.b.reg_mr(64);
  l.qa.send(l.read(local, 8, remote));
  l.run();
  CHECK(l.ca.drain().empty());
  CHECK(l.sent[0].empty());
}

TEST_CASE("fence waits for READs, no fence does not") {
  for (const bool fence : {false, true}) {
    Link l;
    const Mr local = l.a.reg_mr(4096), remote = l.b.reg_mr(4096);
    bool write_before_response = false;
    bool response = false;
    l.filter = [&](unsigned from, std::span<const std::byte> f) {
      if (from == 1 && opcode_of(f) == hw::RoceOp::kRcReadRspOnly) response = true;
      if (opcode_of(f) == hw::RoceOp::kRcWriteOnly && !response) write_before_response = true;
      return Pair::Verdict{};
    };
    l.qa.post(l.read(local, 64, remote));
    Send w = l.write(local, 64, remote, 100);
    w.fence = fence;
    l.qa.post(w);
    l.qa.ring();
    l.run();
    ok(l, 2);
    CHECK(write_before_response == !fence);
  }
}

TEST_CASE("a WRITE is seen by a READ behind it") {
  Link l;
  const Mr src = l.a.reg_mr(8192), back = l.a.reg_mr(8192), remote = l.b.reg_mr(8192);
  l.a.mem.fill(src.addr, 8192, 12);
  l.qa.post(l.write(src, 8192, remote));
  l.qa.post(l.read(back, 8192, remote));
  l.qa.ring();
  l.run();
  ok(l, 2);
  CHECK(l.a.mem.filled(back.addr, 8192, 12));
}

TEST_CASE("case_050 atomics: values, byte order, compare mismatch") {
  Link l;
  l.capture = true;
  const Mr local = l.a.reg_mr(64), remote = l.b.reg_mr(64);
  constexpr std::uint64_t kValue = 0x0123456789abcdef;
  l.b.mem.store(remote.addr, kValue);
  l.qa.send(atomic(hw::WqeOp::kFetchAdd, local, remote, 0x11));
  l.run();
  auto wcs = ok(l, 1);
  CHECK(wcs[0].opcode == hw::WcOp::kFetchAdd);
  CHECK(wcs[0].byte_len == 8);
  CHECK(l.a.mem.load(local.addr) == kValue);
  CHECK(l.b.mem.load(remote.addr) == kValue + 0x11);
  const std::span<const std::byte> f = l.sent[0].at(0);
  CHECK(hw::get(f.subspan(bth_at(f) + hw::bth::kBytes), hw::atomiceth::swap_add) == 0x11);
  // Mismatch: current value comes back, memory stays.
  l.qa.send(atomic(hw::WqeOp::kCmpSwap, local, remote, 42, 43));
  l.run();
  CHECK(ok(l, 1)[0].opcode == hw::WcOp::kCompSwap);
  CHECK(l.a.mem.load(local.addr) == kValue + 0x11);
  CHECK(l.b.mem.load(remote.addr) == kValue + 0x11);
  l.qa.send(atomic(hw::WqeOp::kCmpSwap, local, remote, 42, kValue + 0x11));
  l.run();
  ok(l, 1);
  CHECK(l.b.mem.load(remote.addr) == 42);
  // Wrap.
  l.b.mem.store(remote.addr, ~0ull);
  l.qa.send(atomic(hw::WqeOp::kFetchAdd, local, remote, 1));
  l.run();
  ok(l, 1);
  CHECK(l.b.mem.load(remote.addr) == 0);
}

TEST_CASE("case_049 misaligned atomics are invalid requests, wrong lengths fail at home") {
  {
    Link l;
    const Mr local = l.a.reg_mr(64), remote = l.b.reg_mr(64);
    l.qa.send(atomic(hw::WqeOp::kFetchAdd, local, remote, 1, 0, 4));
    l.serve(1000);
    CHECK(l.ca.drain().at(0).status == hw::WcStatus::kRemInvReqErr);
    CHECK(has_event(l.cpu_b.other, hw::EventType::kQpAsync, code_of(hw::AsyncCode::kReqErr)));
  }
  Link l;
  l.capture = true;
  const Mr local = l.a.reg_mr(64), remote = l.b.reg_mr(64);
  Send s = atomic(hw::WqeOp::kFetchAdd, local, remote, 1);
  s.sges[0].length = 4;
  l.qa.send(s);
  l.serve(1000);
  CHECK(l.ca.drain().at(0).status == hw::WcStatus::kLocQpOpErr);
  CHECK(l.sent[0].empty());
}

TEST_CASE("case_051 atomic bounds and rights") {
  const auto run = [](std::uint64_t offset, unsigned mr_access, unsigned qp_access) {
    LinkOptions o;
    o.b.access = qp_access;
    Link l(o);
    const Mr local = l.a.reg_mr(64), remote = l.b.reg_mr(64, mr_access);
    l.qa.send(atomic(hw::WqeOp::kFetchAdd, local, remote, 1, 0, offset));
    l.serve(1000);
    return l.ca.drain().at(0).status;
  };
  CHECK(run(56, 15, 15) == hw::WcStatus::kSuccess);
  CHECK(run(64, 15, 15) == hw::WcStatus::kRemAccessErr);
  CHECK(run(0, 7, 15) == hw::WcStatus::kRemAccessErr);
  CHECK(run(0, 15, 7) == hw::WcStatus::kRemInvReqErr);
}

TEST_CASE("duplicate atomics are answered from the result ring and not executed") {
  Link l;
  const Mr local = l.a.reg_mr(1024), remote = l.b.reg_mr(64);
  l.b.mem.store(remote.addr, 1000);
  unsigned dropped = 0;
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    // Every response is lost the first time.
    Pair::Verdict v;
    if (from == 1 && opcode_of(f) == hw::RoceOp::kRcAtomicAck && dropped < 5) {
      ++dropped;
      v.drop = true;
    }
    return v;
  };
  hw::set(l.qa.qpc, hw::qpc::silence, 10'000);
  REQUIRE(l.qa.to(hw::QpState::kRts) == hw::CmdStatus::kOk);
  for (unsigned i = 0; i < 5; ++i) {
    Send s = atomic(hw::WqeOp::kFetchAdd, local, remote, 1);
    s.sges[0].addr += 8 * i;
    l.qa.post(s);
  }
  l.qa.ring();
  l.serve(1'000'000);
  ok(l, 5);
  CHECK(l.b.mem.load(remote.addr) == 1005);
  for (unsigned i = 0; i < 5; ++i) CHECK(l.a.mem.load(local.addr + 8 * i) == 1000 + i);
  CHECK(l.b.counter(hw::Counter::kDuplicateRequest) >= 5);
}

TEST_CASE("case_054 a duplicate READ inside a WRITE disturbs nothing") {
  Link l;
  const Mr local = l.a.reg_mr(20000), remote = l.b.reg_mr(20000);
  l.a.mem.fill(local.addr, 20000, 2);
  std::vector<Frame> replay;
  unsigned writes = 0;
  // The READ and the first WRITE packet are put on the wire once more in the middle of the WRITE.
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    if (from != 0) return Pair::Verdict{};
    const auto op = opcode_of(f);
    const auto keep = [&] {
      replay.push_back(Frame::copy_of(
          {reinterpret_cast<const std::uint8_t*>(f.data()), f.size()}));
    };
    if (op == hw::RoceOp::kRcReadReq) keep();
    if (op == hw::RoceOp::kRcWriteFirst) keep();
    if (op == hw::RoceOp::kRcWriteMiddle && ++writes == 1) {
      for (const Frame& r : replay) l.b.nic->packet_in(r.clone());
    }
    return Pair::Verdict{};
  };
  l.qa.post(l.read(local, 3072, remote, 16000));
  l.qa.post(l.write(local, 10000, remote));
  l.qa.ring();
  l.serve(100'000);
  ok(l, 2);
  CHECK(l.b.counter(hw::Counter::kDuplicateRequest) == 2);
  CHECK(l.qb.query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kRts));
}

TEST_CASE("case_054 the ACK of a duplicate SEND is not that of a READ response") {
  Link l;
  const Mr local = l.a.reg_mr(4096), in = l.b.reg_mr(4096);
  l.qb.recv(1, {{in.iova, 64, in.key}});
  std::vector<Frame> send;
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    if (from == 0 && opcode_of(f) == hw::RoceOp::kRcSendOnly) {
      send.push_back(Frame::copy_of({reinterpret_cast<const std::uint8_t*>(f.data()), f.size()}));
    }
    return Pair::Verdict{};
  };
  l.qa.post(l.message(local, 10));
  l.qa.post(l.read(local, 2000, in));
  l.qa.ring();
  l.run();
  ok(l, 2);
  l.capture = true;
  l.b.nic->packet_in(std::move(send.at(0)));
  l.run();
  REQUIRE(l.sent[1].size() == 1);
  CHECK(opcode_of(l.sent[1][0]) == hw::RoceOp::kRcAck);
  CHECK(psn_of(l.sent[1][0]) == 0x100);
}

TEST_CASE("case_055 READ survives the loss of every k-th response") {
  for (unsigned k = 2; k <= 17; ++k) {
    INFO("k " << k);
    LinkOptions o;
    o.a.silence = 100'000;
    Link l(o);
    const Mr local = l.a.reg_mr(1 << 20), remote = l.b.reg_mr(1 << 20);
    l.b.mem.fill(remote.addr, 1 << 20, k);
    unsigned n = 0;
    l.filter = [&](unsigned from, std::span<const std::byte> f) {
      return Pair::Verdict{.drop = from == 1 && opcode_of(f) != hw::RoceOp::kRcAck &&
                                   ++n % k == 0};
    };
    l.qa.send(l.read(local, 1 << 20, remote));
    l.serve(2'000'000'000);
    ok(l, 1);
    CHECK(l.a.mem.filled(local.addr, 1 << 20, k));
    CHECK(l.a.counter(hw::Counter::kImpliedNakSeqErr) > 0);
  }
}

TEST_CASE("case_055 an ACK beyond an unanswered READ does not skip it") {
  LinkOptions o;
  o.a.silence = 1'000'000;
  Link l(o);
  const Mr local = l.a.reg_mr(4096), remote = l.b.reg_mr(4096);
  l.b.mem.fill(remote.addr, 64, 77);
  bool lost = false;
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    Pair::Verdict v;
    if (from == 1 && !lost && opcode_of(f) == hw::RoceOp::kRcReadRspOnly) {
      lost = true;
      v.drop = true;
    }
    return v;
  };
  l.qa.post(l.write(local, 8, remote, 1000));
  l.qa.post(l.read(local, 64, remote));
  l.qa.post(l.write(local, 8, remote, 1000));
  l.qa.ring();
  l.run();
  // The first WRITE is done; the READ is reported as an implied NAK with its own PSN.
  const auto events = l.a.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].type == hw::EventType::kQpImpliedNak);
  CHECK(events[0].psn == 0x101);
  CHECK(events[0].log_index == 1);
  ok(l, 1);
  l.a.rewind(l.qa.qpn, events[0].log_index, events[0].psn);
  l.run();
  ok(l, 2);
  CHECK(l.a.mem.filled(local.addr, 64, 77));
}

TEST_CASE("a lost READ request is asked again and executed once the gap closes") {
  LinkOptions o;
  o.a.silence = 50'000;
  Link l(o);
  const Mr local = l.a.reg_mr(8192), remote = l.b.reg_mr(8192);
  l.b.mem.fill(remote.addr, 8192, 6);
  unsigned requests = 0;
  l.filter = [&](unsigned, std::span<const std::byte> f) {
    return Pair::Verdict{.drop = opcode_of(f) == hw::RoceOp::kRcReadReq && ++requests == 1};
  };
  l.qa.post(l.read(local, 5000, remote));
  l.qa.post(l.write(local, 8, remote, 8000));
  l.qa.ring();
  l.serve(10'000'000);
  ok(l, 2);
  CHECK(l.a.mem.filled(local.addr, 5000, 6));
  CHECK(requests == 2);
}

TEST_CASE("a READ response of the wrong size fails the READ") {
  LinkOptions o;
  o.a.mtu_log = 12;
  o.b.mtu_log = 10;
  Link l(o);
  const Mr local = l.a.reg_mr(8192), remote = l.b.reg_mr(8192);
  l.qa.send(l.read(local, 5000, remote));
  l.serve(1'000'000);
  CHECK(l.ca.drain().at(0).status == hw::WcStatus::kBadRespErr);
}

TEST_CASE("READ without rights, and a key that dies under it") {
  {
    Link l;
    const Mr local = l.a.reg_mr(64), remote = l.b.reg_mr(64, 1);
    l.qa.send(l.read(local, 8, remote));
    l.serve(1000);
    CHECK(l.ca.drain().at(0).status == hw::WcStatus::kRemAccessErr);
  }
  Link l;
  const Mr local = l.a.reg_mr(1 << 20), remote = l.b.reg_mr(1 << 20);
  l.qa.send(l.read(local, 1 << 20, remote));
  l.a.nic->step(1);
  l.b.nic->step(16);
  REQUIRE(l.b.command(hw::CmdOp::kMrDestroy, remote.key) == hw::CmdStatus::kOk);
  l.b.mem.revoke(remote.addr, 1 << 20);
  l.serve(1'000'000);
  CHECK(l.ca.drain().at(0).status == hw::WcStatus::kRemAccessErr);
  CHECK(l.b.mem.violations == 0);
}
