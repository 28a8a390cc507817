// SPDX-License-Identifier: BSD-2-Clause
// The NIC detects and stops; the recovery ring goes on.
#include <random>

#include "link.hpp"

using namespace ordma;
using namespace ordma::bench;
using Status = hw::WcStatus;

namespace {

unsigned state(Qp& qp) { return static_cast<unsigned>(qp.query(hw::progress::state)); }
constexpr unsigned kErr = static_cast<unsigned>(hw::QpState::kErr);

// Drops the n-th packet (from 0) of `from`, once.
Pair::Filter drop_nth(unsigned from, unsigned n) {
  return [=, seen = 0u](unsigned f, std::span<const std::byte>) mutable {
    return Pair::Verdict{.drop = f == from && seen++ == n};
  };
}

void check_success(const std::vector<Wc>& wcs, std::size_t n) {
  REQUIRE(wcs.size() == n);
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(wcs[i].status == Status::kSuccess);
    CHECK(wcs[i].wqe_index == (i & 0xffff));
  }
}

}  // namespace

TEST_CASE("a NAK freezes the QP and raises one event; QP_REWIND sends again from the PSN") {
  Link l;
  const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192);
  l.a.mem.fill(src.addr, 8192, 3);
  l.filter = drop_nth(0, 3);
  l.capture = true;
  l.qa.post(l.write(src, 1024, dst));
  l.qa.post(l.write(src, 8192, dst));
  l.qa.post(l.write(src, 100, dst));
  l.qa.ring();
  l.run();
  auto events = l.a.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].type == hw::EventType::kQpNak);
  CHECK(events[0].code == code_of(hw::AethSyndrome::kNakPsn));
  CHECK(events[0].number == l.qa.qpn);
  CHECK(events[0].psn == 0x103);
  CHECK(events[0].log_index == 1);
  CHECK(l.qa.query(hw::progress::frozen) == 1);
  CHECK(l.qa.query(hw::progress::una_psn) == 0x103);
  CHECK(l.ca.drain().size() == 1);
  const std::size_t before = l.sent[0].size();
  // Frozen: neither new posts nor time send anything.
  l.qa.send(l.write(src, 10, dst));
  l.advance(1'000'000);
  CHECK(l.sent[0].size() == before);
  l.a.rewind(l.qa.qpn, 1, 0x103);
  l.run();
  CHECK(psn_of(l.sent[0].at(before)) == 0x103);
  CHECK(opcode_of(l.sent[0].at(before)) == hw::RoceOp::kRcWriteMiddle);
  CHECK(l.ca.drain().size() == 3);
  CHECK(l.qa.query(hw::progress::frozen) == 0);
  CHECK(l.b.mem.filled(dst.addr + 100, 0, 3));
  CHECK(l.a.events().empty());
  CHECK(l.b.counter(hw::Counter::kOutOfSequence) > 0);
  CHECK(l.a.counter(hw::Counter::kPacketSeqErr) == 1);
  CHECK(l.a.counter(hw::Counter::kRewinds) == 1);
  CHECK(l.a.counter(hw::Counter::kRetransmittedPackets) > 0);
}

TEST_CASE("a gap draws one NAK") {
  Link l;
  const Mr src = l.a.reg_mr(1 << 17), dst = l.b.reg_mr(1 << 17);
  l.filter = drop_nth(0, 5);
  l.capture = true;
  l.qa.send(l.write(src, 100 * 1024, dst));
  l.run();
  unsigned naks = 0;
  for (const auto& f : l.sent[1]) {
    const auto aeth = std::span<const std::byte>(f).subspan(bth_at(f) + hw::bth::kBytes);
    naks += hw::get(aeth, hw::aeth::syndrome) == code_of(hw::AethSyndrome::kNakPsn);
  }
  CHECK(naks == 1);
}

TEST_CASE("case_061 a single drop at each packet of a message is recovered") {
  for (const std::uint32_t n : {1u, 1024u, 5000u, 16384u, 65536u}) {
    const unsigned packets = (n + 1023) / 1024;
    for (unsigned k = 0; k < packets; k += packets > 20 ? 7 : 1) {
      INFO("bytes " << n << " drop " << k);
      LinkOptions o;
      o.a.silence = 100'000;
      Link l(o);
      const Mr src = l.a.reg_mr(n), dst = l.b.reg_mr(n), in = l.b.reg_mr(64);
      l.a.mem.fill(src.addr, n, k);
      l.filter = drop_nth(0, k);
      l.qb.recv(5, {{in.iova, 64, in.key}});
      Send s = l.write(src, n, dst);
      s.op = hw::WqeOp::kWriteImm;
      l.qa.send(s);
      l.serve(10'000'000);
      check_success(l.ca.drain(), 1);
      CHECK(l.cb.drain().size() == 1);
      CHECK(l.b.mem.filled(dst.addr, n, k));
      CHECK(l.cpu_a.rewinds == 1);
    }
  }
}

TEST_CASE("case_031 silence: threshold, transmissions, failure, and never for 0") {
  LinkOptions o;
  o.a.silence = 67'000'000;
  Link l(o);
  l.cpu_a.retry_cnt = 2;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  unsigned sent = 0;
  l.filter = [&](unsigned from, std::span<const std::byte>) {
    sent += from == 0;
    return Pair::Verdict{.drop = true};
  };
  l.qa.post(l.write(src, 8, dst));
  l.qa.post(l.write(src, 8, dst));
  l.qa.ring();
  l.serve(3 * 67'000'000 - 1);
  CHECK(l.ca.drain().empty());
  l.serve(2);
  const auto wcs = l.ca.drain();
  REQUIRE(wcs.size() == 2);
  CHECK(wcs[0].status == Status::kRetryExcErr);
  CHECK(wcs[1].status == Status::kWrFlushErr);
  CHECK(sent == 6);
  CHECK(state(l.qa) == kErr);
  CHECK(l.a.counter(hw::Counter::kLocalAckTimeoutErr) == 3);

  LinkOptions never;
  Link m(never);
  m.filter = [](unsigned, std::span<const std::byte>) { return Pair::Verdict{.drop = true}; };
  const Mr s2 = m.a.reg_mr(64), d2 = m.b.reg_mr(64);
  m.qa.send(m.write(s2, 8, d2));
  m.serve(100'000'000'000);
  CHECK(m.ca.drain().empty());
  CHECK(m.a.nic->next_timer_ns() == ~0ull);
}

TEST_CASE("progress restarts the silence clock") {
  LinkOptions o;
  o.a.silence = 1'000'000;
  Link l(o);
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  bool drop = false;
  l.filter = [&](unsigned from, std::span<const std::byte>) {
    return Pair::Verdict{.drop = drop && from == 0};
  };
  for (unsigned i = 0; i < 10; ++i) {
    l.qa.send(l.write(src, 8, dst));
    l.advance(900'000);
  }
  CHECK(l.a.events().empty());
  drop = true;
  l.qa.send(l.write(src, 8, dst));
  l.advance(999'999);
  CHECK(l.a.events().empty());
  l.advance(1);
  const auto events = l.a.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].type == hw::EventType::kQpSilence);
  CHECK(events[0].psn == 0x10a);
  CHECK(events[0].log_index == 10);
}

TEST_CASE("an acknowledgement of some restarts the silence clock of the rest") {
  LinkOptions o;
  o.a.silence = 1'000'000;
  Link l(o);
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  std::vector<Frame> acks;
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    if (from == 1) {
      acks.push_back(Frame::copy_of({reinterpret_cast<const std::uint8_t*>(f.data()), f.size()}));
    }
    return Pair::Verdict{.drop = from == 1};
  };
  for (unsigned i = 0; i < 3; ++i) {
    l.qa.send(l.write(src, 8, dst));
    l.run();
  }
  REQUIRE(acks.size() == 3);
  l.advance(900'000);
  l.a.nic->packet_in(std::move(acks[0]));
  l.advance(999'999);
  CHECK(l.a.events().empty());
  l.advance(1);
  const auto events = l.a.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].type == hw::EventType::kQpSilence);
  CHECK(events[0].psn == 0x101);
}

TEST_CASE("QP_SILENCE changes the threshold and lets a silent QP wait on") {
  LinkOptions o;
  o.a.silence = 1'000'000;
  Link l(o);
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  bool drop = true;
  std::vector<Frame> late;
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    if (drop && from == 0) {
      late.push_back(Frame::copy_of({reinterpret_cast<const std::uint8_t*>(f.data()), f.size()}));
    }
    return Pair::Verdict{.drop = drop && from == 0};
  };
  l.qa.send(l.write(src, 8, dst));
  l.advance(1'000'000);
  REQUIRE(has_event(l.a.events(), hw::EventType::kQpSilence));
  l.a.recovery(hw::CmdOp::kQpSilence, l.qa.qpn, [](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_silence::threshold, 5'000'000);
  });
  l.advance(4'900'000);
  CHECK(l.a.events().empty());
  l.advance(200'000);
  CHECK(has_event(l.a.events(), hw::EventType::kQpSilence));
  l.a.recovery(hw::CmdOp::kQpSilence, l.qa.qpn, [](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_silence::threshold, 0);
  });
  l.advance(1'000'000'000);
  CHECK(l.a.events().empty());
  REQUIRE(late.size() == 1);
  l.b.nic->packet_in(std::move(late[0]));
  l.run();
  check_success(l.ca.drain(), 1);
}

TEST_CASE("case_030 RNR: stops, waits, sends again, and fails when told so") {
  LinkOptions o;
  o.b.min_rnr_timer = 12;
  {
    Link l(o);
    l.cpu_a.rnr_retry = 0;
    const Mr src = l.a.reg_mr(64);
    l.qa.send(l.message(src, 8));
    l.serve(100'000);
    const auto wcs = l.ca.drain();
    REQUIRE(wcs.size() == 1);
    CHECK(wcs[0].status == Status::kRnrRetryExcErr);
    CHECK(l.a.counter(hw::Counter::kRnrNakRetryErr) == 1);
  }
  {
    Link l(o);
    l.cpu_a.rnr_retry = 3;
    const Mr src = l.a.reg_mr(64);
    l.capture = true;
    l.qa.send(l.message(src, 8));
    l.serve(3 * 640'000 - 1);
    CHECK(l.ca.drain().empty());
    l.serve(10);
    CHECK(l.ca.drain().at(0).status == Status::kRnrRetryExcErr);
    CHECK(l.sent[0].size() == 4);
  }
  Link l(o);
  const Mr src = l.a.reg_mr(64), in = l.b.reg_mr(64);
  l.a.mem.fill(src.addr, 64, 1);
  l.capture = true;
  l.qa.send(l.message(src, 64));
  l.run();
  const auto events = l.a.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].type == hw::EventType::kQpRnr);
  CHECK(events[0].code == (code_of(hw::AethSyndrome::kRnr) | 12));
  l.a.rewind(l.qa.qpn, events[0].log_index, events[0].psn, l.now + 640'000);
  l.advance(639'999);
  CHECK(l.sent[0].size() == 1);
  l.qb.recv(2, {{in.iova, 64, in.key}});
  l.advance(1);
  CHECK(l.sent[0].size() == 2);
  check_success(l.ca.drain(), 1);
  CHECK(l.cb.drain().size() == 1);
  CHECK(l.b.mem.filled(in.addr, 64, 1));
}

TEST_CASE("case_008 RNR of a WRITE with immediate: the completion appears once") {
  Link l;
  const Mr src = l.a.reg_mr(5000), dst = l.b.reg_mr(5000), in = l.b.reg_mr(64);
  l.a.mem.fill(src.addr, 5000, 8);
  Send s = l.write(src, 5000, dst);
  s.op = hw::WqeOp::kWriteImm;
  s.imm = 99;
  l.qa.send(s);
  l.qa.send(l.write(src, 8, dst));
  l.serve(2'000'000);
  CHECK(l.ca.drain().empty());
  l.qb.recv(2, {{in.iova, 64, in.key}});
  l.serve(2'000'000);
  check_success(l.ca.drain(), 2);
  const auto got = l.cb.drain();
  REQUIRE(got.size() == 1);
  CHECK(got[0].imm == 99);
  CHECK(got[0].byte_len == 5000);
  CHECK(l.b.mem.filled(dst.addr, 5000, 8));
}

TEST_CASE("case_056 exactly once and in order under loss, duplication and reorder") {
  for (const double loss : {0.001, 0.01, 0.1}) {
    INFO("loss " << loss);
    LinkOptions o;
    o.a.silence = o.b.silence = 200'000;
    o.cq_log = 10;
    Link l(o);
    std::mt19937 rng(17);
    std::uniform_real_distribution<double> draw(0, 1);
    l.filter = [&](unsigned, std::span<const std::byte>) {
      Pair::Verdict v;
      v.drop = draw(rng) < loss;
      v.duplicate = draw(rng) < 0.05;
      if (draw(rng) < 0.02) v.hold = 1 + rng() % 5;
      return v;
    };
    const Mr src = l.a.reg_mr(64 * 4096), in = l.b.reg_mr(64 * 4096), dst = l.b.reg_mr(4096);
    constexpr unsigned kMessages = 1500;
    unsigned posted = 0, received = 0, completed = 0, recvs = 0;
    l.cpu_a.retry_cnt = l.cpu_b.retry_cnt = 100;
    while (completed < kMessages) {
      for (; recvs < received + 48; ++recvs) {
        l.qb.post_recv(recvs, {{in.iova + recvs % 64 * 4096, 4096, in.key}});
      }
      l.qb.ring_recv();
      for (; posted < kMessages && posted < completed + 32; ++posted) {
        l.a.mem.store(src.addr + posted % 64 * 4096, posted);
        Send s = l.message(src, 8 + posted * 37 % 3000);
        s.sges[0].addr += posted % 64 * 4096;
        if (posted % 3 == 0) {
          s.op = hw::WqeOp::kWriteImm;
          s.remote_addr = dst.iova;
          s.rkey = dst.key;
        }
        if (posted % 3 == 1) s.op = hw::WqeOp::kSendImm;
        s.imm = posted;
        l.qa.post(s);
      }
      l.qa.ring();
      l.serve(50'000);
      for (const Wc& wc : l.cb.drain()) {
        REQUIRE(wc.status == Status::kSuccess);
        REQUIRE(wc.wr_id == received);
        if (received % 3 != 2) REQUIRE(wc.imm == received);
        REQUIRE(wc.byte_len == 8 + received * 37 % 3000);
        if (received % 3 != 0) {
          REQUIRE(l.b.mem.load(in.addr + received % 64 * 4096) == received);
        }
        ++received;
      }
      for (const Wc& wc : l.ca.drain()) {
        REQUIRE(wc.status == Status::kSuccess);
        REQUIRE(wc.wqe_index == (completed & 0xffff));
        ++completed;
      }
      REQUIRE(l.now < 60'000'000'000);
    }
    CHECK(received == kMessages);
    CHECK(l.cpu_a.rewinds > 0);
  }
}

TEST_CASE("READs, atomics and WRITEs mixed under loss give the right data") {
  LinkOptions o;
  o.a.silence = 200'000;
  Link l(o);
  l.cpu_a.retry_cnt = 100;
  std::mt19937 rng(5);
  l.filter = [&](unsigned, std::span<const std::byte>) {
    return Pair::Verdict{.drop = rng() % 50 == 0, .duplicate = rng() % 30 == 0};
  };
  const Mr local = l.a.reg_mr(1 << 16), remote = l.b.reg_mr(1 << 16), word = l.b.reg_mr(64);
  const Mr back = l.a.reg_mr(1 << 16);
  l.b.mem.store(word.addr, 0);
  std::uint64_t adds = 0;
  for (unsigned round = 0; round < 200; ++round) {
    const std::uint32_t n = 1 + rng() % 20000;
    l.a.mem.fill(local.addr, n, round);
    l.qa.post(l.write(local, n, remote));
    Send add = l.read(back, 8, word);
    add.op = hw::WqeOp::kFetchAdd;
    add.swap_add = 1;
    add.sges[0].addr += 40000;
    l.qa.post(add);
    l.qa.post(l.read(back, n, remote));
    l.qa.ring();
    l.serve(20'000'000);
    const auto wcs = l.ca.drain();
    REQUIRE(wcs.size() == 3);
    for (const Wc& wc : wcs) REQUIRE(wc.status == Status::kSuccess);
    REQUIRE(l.a.mem.filled(back.addr, n, round));
    REQUIRE(l.a.mem.load(back.addr + 40000) == adds++);
  }
  CHECK(l.b.mem.load(word.addr) == 200);
}

TEST_CASE("case_057 lost ACKs execute nothing twice") {
  LinkOptions o;
  o.a.silence = 10'000'000;
  Link l(o);
  const Mr src = l.a.reg_mr(64), in = l.b.reg_mr(64);
  for (unsigned i = 0; i < 8; ++i) l.qb.post_recv(i, {{in.iova, 64, in.key}});
  l.qb.ring_recv();
  l.filter = [&](unsigned from, std::span<const std::byte>) {
    return Pair::Verdict{.drop = from == 1 && l.now < 50'000'000};
  };
  for (unsigned i = 0; i < 4; ++i) l.qa.post(l.message(src, 8));
  l.qa.ring();
  l.serve(100'000'000);
  check_success(l.ca.drain(), 4);
  CHECK(l.cb.drain().size() == 4);
  CHECK(l.qb.query(hw::progress::rq_ci) == 4);
}

TEST_CASE("a WQE changed after posting fails the QP instead of being sent again") {
  namespace w = hw::wqe;
  for (const hw::Field f : {w::length, w::opcode, w::rkey, w::remote_addr, w::signaled}) {
    Link l;
    const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
    l.filter = drop_nth(0, 1);
    for (unsigned i = 0; i < 3; ++i) l.qa.post(l.write(src, 8, dst));
    l.qa.ring();
    l.run();
    REQUIRE(l.ca.drain().size() == 1);
    l.capture = true;
    const auto raw = l.a.mem.at(l.qa.wqe(1), 64);
    hw::set(raw, f, hw::get(raw, f) ^ 1);
    l.serve(1000);
    const auto wcs = l.ca.drain();
    REQUIRE(wcs.size() == 2);
    CHECK(wcs[0].status == Status::kLocQpOpErr);
    CHECK(wcs[0].wqe_index == 1);
    CHECK(wcs[1].status == Status::kWrFlushErr);
    CHECK(l.sent[0].empty());
  }
}

TEST_CASE("a resend revalidates keys") {
  Link l;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  l.filter = drop_nth(0, 0);
  l.qa.post(l.write(src, 8, dst));
  l.qa.post(l.write(src, 8, dst));
  l.qa.ring();
  l.run();
  REQUIRE(l.a.command(hw::CmdOp::kMrDestroy, src.key) == hw::CmdStatus::kOk);
  l.a.mem.revoke(src.addr, 64);
  l.serve(1000);
  const auto wcs = l.ca.drain();
  REQUIRE(wcs.size() == 2);
  CHECK(wcs[0].status == Status::kLocProtErr);
  CHECK(l.a.mem.violations == 0);
}

TEST_CASE("QP_FAIL completes what is below, fails what holds the PSN and flushes the rest") {
  LinkOptions o;
  o.a.silence = 1000;
  Link l(o);
  const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192), in = l.a.reg_mr(64);
  l.qa.recv(55, {{in.iova, 64, in.key}});
  l.filter = [](unsigned, std::span<const std::byte>) { return Pair::Verdict{.drop = true}; };
  for (unsigned i = 0; i < 5; ++i) {
    Send s = l.write(src, 2048, dst);
    s.signaled = i % 2 == 0;
    l.qa.post(s);
  }
  l.qa.ring();
  l.advance(1000);
  REQUIRE(has_event(l.a.events(), hw::EventType::kQpSilence));
  // Packets 0x100..0x109; the third message holds 0x104 and 0x105.
  l.a.fail(l.qa.qpn, 0x105, Status::kRetryExcErr, 7);
  l.run();
  const auto wcs = l.ca.drain();
  REQUIRE(wcs.size() == 5);
  const auto find = [&](unsigned index) {
    for (const Wc& wc : wcs) {
      if (!wc.is_recv && wc.wqe_index == index) return wc.status;
    }
    return Status::kFatalErr;
  };
  CHECK(find(0) == Status::kSuccess);
  CHECK(find(1) == Status::kFatalErr);  // unsignaled success: no CQE
  CHECK(find(2) == Status::kRetryExcErr);
  CHECK(find(3) == Status::kWrFlushErr);
  CHECK(find(4) == Status::kWrFlushErr);
  unsigned recvs = 0;
  for (const Wc& wc : wcs) {
    if (wc.is_recv) {
      ++recvs;
      CHECK(wc.wr_id == 55);
      CHECK(wc.status == Status::kWrFlushErr);
    }
    if (wc.status == Status::kRetryExcErr) CHECK(wc.vendor_err == 7);
  }
  CHECK(recvs == 1);
  CHECK(state(l.qa) == kErr);
}

TEST_CASE("QP_FAIL never calls a READ without its response a success") {
  LinkOptions o;
  o.a.silence = 1000;
  Link l(o);
  const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192);
  l.filter = [](unsigned, std::span<const std::byte>) { return Pair::Verdict{.drop = true}; };
  l.qa.post(l.read(src, 2048, dst));
  l.qa.post(l.write(src, 8, dst));
  l.qa.ring();
  l.advance(1000);
  l.a.fail(l.qa.qpn, 0x102, Status::kRetryExcErr);
  l.run();
  const auto wcs = l.ca.drain();
  REQUIRE(wcs.size() == 2);
  CHECK(wcs[0].status == Status::kRetryExcErr);
  CHECK(wcs[1].status == Status::kWrFlushErr);
}

TEST_CASE("recovery commands for a QP that is gone, sound or elsewhere do nothing") {
  Link l;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  l.a.rewind(0x777777, 0, 0);
  l.a.fail(0x777777, 0, Status::kRetryExcErr);
  l.a.fail(l.qa.qpn, 0x100, Status::kRetryExcErr);
  l.a.rewind(l.qa.qpn, 0, 0x100);
  l.run();
  CHECK(state(l.qa) == static_cast<unsigned>(hw::QpState::kRts));
  l.filter = drop_nth(0, 0);
  l.qa.post(l.write(src, 8, dst));
  l.qa.post(l.write(src, 8, dst));
  l.qa.ring();
  l.run();
  REQUIRE(l.a.events().size() == 1);
  // A PSN that is not in the message named: refused, the QP stays as it is.
  l.a.rewind(l.qa.qpn, 1, 0x100);
  l.a.rewind(l.qa.qpn, 5, 0x180);
  l.a.rewind(l.qa.qpn, 0, 0x101);
  l.run();
  CHECK(l.qa.query(hw::progress::frozen) == 1);
  l.a.rewind(l.qa.qpn, 0, 0x100);
  l.run();
  check_success(l.ca.drain(), 2);
}

TEST_CASE("a rewind to what was acknowledged meanwhile starts at what is not") {
  LinkOptions o;
  o.a.silence = 1000;
  Link l(o);
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  std::vector<Frame> acks;
  bool hold = true;
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    if (from == 1 && hold) {
      acks.push_back(Frame::copy_of({reinterpret_cast<const std::uint8_t*>(f.data()), f.size()}));
    }
    return Pair::Verdict{.drop = from == 1 && hold};
  };
  l.qa.post(l.write(src, 8, dst));
  l.qa.ring();
  l.run();
  l.qa.post(l.write(src, 8, dst));
  l.qa.ring();
  l.advance(1000);
  const auto events = l.a.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].psn == 0x100);
  // The first ACK arrives while the QP is frozen.
  hold = false;
  l.a.nic->packet_in(std::move(acks.at(0)));
  l.run();
  CHECK(l.ca.drain().size() == 1);
  l.capture = true;
  l.a.rewind(l.qa.qpn, events[0].log_index, events[0].psn);
  l.run();
  REQUIRE(l.sent[0].size() == 1);
  CHECK(psn_of(l.sent[0][0]) == 0x101);
  CHECK(l.ca.drain().size() == 1);
}

TEST_CASE("an ACK that overtakes the resend is honoured") {
  Link l;
  const Mr src = l.a.reg_mr(1 << 16), dst = l.b.reg_mr(1 << 16);
  std::vector<Frame> ack;
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    if (from == 1) {
      ack.push_back(Frame::copy_of({reinterpret_cast<const std::uint8_t*>(f.data()), f.size()}));
    }
    return Pair::Verdict{.drop = from == 1};
  };
  for (unsigned i = 0; i < 4; ++i) l.qa.post(l.write(src, 16 * 1024, dst));
  l.qa.ring();
  l.run();
  l.a.recovery(hw::CmdOp::kQpSilence, l.qa.qpn, [](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_silence::threshold, 1000);
  });
  l.advance(2000);
  const auto events = l.a.events();
  REQUIRE(has_event(events, hw::EventType::kQpSilence));
  l.filter = {};
  l.capture = true;
  l.a.rewind(l.qa.qpn, events[0].log_index, events[0].psn);
  l.a.nic->step(8);
  REQUIRE(!ack.empty());
  l.a.nic->packet_in(std::move(ack.back()));
  l.run();
  check_success(l.ca.drain(), 4);
  CHECK(l.sent[0].size() < 64);
}

TEST_CASE("a fatal NAK that comes while frozen is reported after the rewind") {
  LinkOptions o;
  o.a.silence = 1000;
  Link l(o);
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  std::vector<Frame> held;
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    if (from == 1) {
      held.push_back(Frame::copy_of({reinterpret_cast<const std::uint8_t*>(f.data()), f.size()}));
    }
    return Pair::Verdict{.drop = from == 1};
  };
  Send s = l.write(src, 8, dst);
  s.rkey ^= 0x1000000;
  l.qa.send(s);
  l.advance(1000);
  const auto events = l.a.events();
  REQUIRE(has_event(events, hw::EventType::kQpSilence));
  l.filter = {};
  REQUIRE(held.size() == 1);
  l.a.nic->packet_in(std::move(held[0]));
  l.run();
  CHECK(l.a.events().empty());
  l.a.rewind(l.qa.qpn, events[0].log_index, events[0].psn);
  l.run();
  const auto more = l.a.events();
  REQUIRE(more.size() == 1);
  CHECK(more[0].type == hw::EventType::kQpNak);
  CHECK(more[0].code == code_of(hw::AethSyndrome::kNakAccess));
}

TEST_CASE("stale and forged responses change nothing") {
  Link l;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  std::vector<Frame> acks;
  l.filter = [&](unsigned from, std::span<const std::byte> f) {
    if (from == 1) {
      acks.push_back(Frame::copy_of({reinterpret_cast<const std::uint8_t*>(f.data()), f.size()}));
    }
    return Pair::Verdict{};
  };
  for (unsigned i = 0; i < 4; ++i) {
    l.qa.send(l.write(src, 8, dst));
    l.run();
  }
  check_success(l.ca.drain(), 4);
  for (const Frame& f : acks) l.a.nic->packet_in(f.clone());
  l.run();
  CHECK(l.a.events().empty());
  CHECK(l.qa.query(hw::progress::una_psn) == 0x104);
}

TEST_CASE("SQD finishes what was sent, holds the rest and says when it is drained") {
  Link l;
  const Mr src = l.a.reg_mr(1 << 16), dst = l.b.reg_mr(1 << 16);
  for (unsigned i = 0; i < 4; ++i) l.qa.post(l.write(src, 16 * 1024, dst));
  l.qa.ring();
  l.a.nic->step(20);
  REQUIRE(l.qa.to(hw::QpState::kSqd) == hw::CmdStatus::kOk);
  CHECK(l.qa.query(hw::progress::draining) == 1);
  l.run();
  const auto done = l.ca.drain();
  CHECK(done.size() < 4);
  CHECK(has_event(l.a.events(), hw::EventType::kSqDrained));
  CHECK(l.qa.query(hw::progress::draining) == 0);
  l.qa.send(l.write(src, 8, dst));
  l.run();
  CHECK(l.ca.drain().empty());
  REQUIRE(l.qa.to(hw::QpState::kRts) == hw::CmdStatus::kOk);
  l.run();
  CHECK(l.ca.drain().size() == 5 - done.size());
  // Drained at once when nothing is out.
  REQUIRE(l.qa.to(hw::QpState::kSqd) == hw::CmdStatus::kOk);
  CHECK(has_event(l.a.events(), hw::EventType::kSqDrained));
}

TEST_CASE("the same input gives the same frames, byte for byte") {
  const auto run = [] {
    LinkOptions o;
    o.a.silence = 200'000;
    Link l(o);
    l.capture = true;
    std::mt19937 rng(3);
    l.filter = [&](unsigned, std::span<const std::byte>) {
      return Pair::Verdict{.drop = rng() % 20 == 0, .duplicate = rng() % 20 == 0};
    };
    const Mr src = l.a.reg_mr(1 << 16), dst = l.b.reg_mr(1 << 16);
    l.a.mem.fill(src.addr, 1 << 16, 1);
    for (unsigned i = 0; i < 20; ++i) {
      l.qa.post(l.write(src, 1000 + 2000 * i, dst));
      l.qa.post(l.read(src, 500 * i, dst));
    }
    l.qa.ring();
    l.serve(100'000'000);
    CHECK(l.ca.drain().size() == 40);
    return std::make_pair(l.sent[0], l.sent[1]);
  };
  const auto one = run();
  CHECK(one == run());
}

TEST_CASE("PSNs wrap") {
  LinkOptions o;
  o.a.sq_psn = 0xfffff0;
  o.a.silence = 100'000;
  Link l(o);
  const Mr src = l.a.reg_mr(1 << 17), dst = l.b.reg_mr(1 << 17);
  l.a.mem.fill(src.addr, 1 << 17, 1);
  unsigned n = 0;
  l.filter = [&](unsigned from, std::span<const std::byte>) {
    return Pair::Verdict{.drop = from == 0 && ++n % 23 == 0};
  };
  for (unsigned i = 0; i < 6; ++i) l.qa.post(l.write(src, 1 << 17, dst));
  l.qa.post(l.read(src, 1 << 17, dst));
  l.qa.ring();
  l.serve(1'000'000'000);
  check_success(l.ca.drain(), 7);
  CHECK(l.b.mem.filled(dst.addr, 1 << 17, 1));
  CHECK(l.a.mem.filled(src.addr, 1 << 17, 1));
}
