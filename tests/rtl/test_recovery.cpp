// SPDX-License-Identifier: BSD-2-Clause
// Detect, stop, report; then do what the recovery ring says. The test plays the CPU's part.
#include <catch2/catch.hpp>

#include "pair.hpp"
#include "recovery.hpp"

namespace ordma::bench {
TEST_CASE("a lost packet is NAKed and sent again") {
  Pair p(make_rtl, {.mtu_log = 10});
  Recovery r{p};
  const auto lose = GENERATE(0u, 1u, 7u, 18u);
  unsigned sent = 0;
  p.world.filter = [&](int from, const Decoded&, Frame&) { return from != 0 || sent++ != lose; };
  const auto data = pattern(20000, 9);
  put(p.a(), p.ra, 3, data);
  p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova + 3, 20000, p.ra.key}}, .remote_addr = p.rb.iova + 1,
              .rkey = p.rb.key});
  p.qa->ring_sq();
  const auto s = r.wait(*p.ca);
  REQUIRE(s);
  CHECK(s->status == hw::WcStatus::kSuccess);
  CHECK(r.seen[hw::EventType::kQpNak] == 1);
  CHECK(get(p.b(), p.rb, 1, 20000) == data);
  CHECK(p.a().counter(hw::Counter::kRetransmittedPackets) > 0);
  CHECK(p.a().counter(hw::Counter::kRewinds) == 1);
  p.check_wire();
}

TEST_CASE("silence is reported once per threshold, and the last packet or ACK is recovered") {
  Pair p(make_rtl, {.mtu_log = 10, .silence = 50'000});
  Recovery r{p};
  const bool lose_ack = GENERATE(false, true);
  int lost = 0;
  p.world.filter = [&](int from, const Decoded& d, Frame&) {
    const bool hit = lose_ack ? from == 1 : from == 0 && d.opcode == 0x04;
    if (!hit || lost == 2) return true;
    ++lost;
    return false;
  };
  const auto data = pattern(100, 9);
  put(p.a(), p.ra, 0, data);
  p.qb->post_recv(1, {{p.rb.iova, 100, p.rb.key}});
  p.qb->post_recv(2, {{p.rb.iova, 100, p.rb.key}});
  p.qb->ring_rq();
  p.qa->post({.sges = {{p.ra.iova, 100, p.ra.key}}});
  p.qa->ring_sq();
  const std::uint64_t t0 = p.world.now;
  const auto s = r.wait(*p.ca);
  REQUIRE(s);
  CHECK(s->status == hw::WcStatus::kSuccess);
  CHECK(r.seen[hw::EventType::kQpSilence] == 2);
  CHECK(p.world.now - t0 >= 100'000);
  CHECK(p.world.now - t0 < 300'000);
  CHECK(get(p.b(), p.rb, 0, 100) == data);
  const auto q = p.cb->wait();
  REQUIRE(q);
  CHECK(q->wr_id == 1);
  p.world.settle();
  CHECK_FALSE(p.cb->poll());
  CHECK(p.a().counter(hw::Counter::kLocalAckTimeoutErr) == 2);
  p.check_wire();
}

TEST_CASE("case_030: receiver not ready") {
  Pair p(make_rtl, {.mtu_log = 10});
  Recovery r{p, 640'000};
  const auto op = GENERATE(hw::WqeOp::kSend, hw::WqeOp::kWriteImm);
  const auto data = pattern(5000, 2);
  put(p.a(), p.ra, 0, data);
  for (unsigned i = 0; i < 3; ++i) {
    p.qa->post({.op = op, .sges = {{p.ra.iova, 5000, p.ra.key}}, .remote_addr = p.rb.iova + 100, .rkey = p.rb.key, .imm = i});
  }
  p.qa->ring_sq();
  const std::uint64_t t0 = p.world.now;
  bool posted = false;
  for (unsigned i = 0; i < 3; ++i) {
    std::optional<Cqe> c;
    p.world.run([&] {
      r.serve();
      if (!posted && r.seen[hw::EventType::kQpRnr] == 2) {
        for (unsigned k = 0; k < 3; ++k) p.qb->post_recv(50 + k, {{p.rb.iova + 100, 6000, p.rb.key}});
        p.qb->ring_rq();
        posted = true;
      }
      return (c = p.ca->poll()).has_value();
    }, 60000);
    REQUIRE(c);
    CHECK(c->status == hw::WcStatus::kSuccess);
    CHECK(c->wqe_index == i);
  }
  CHECK(p.world.now - t0 >= 2 * 640'000);
  for (unsigned i = 0; i < 3; ++i) {
    const auto c = p.cb->wait();
    REQUIRE(c);
    CHECK(c->status == hw::WcStatus::kSuccess);
    CHECK(c->wr_id == 50 + i);
    CHECK(c->byte_len == 5000);
  }
  p.world.settle();
  CHECK_FALSE(p.cb->poll());
  CHECK(get(p.b(), p.rb, 100, 5000) == data);
  p.check_wire();
}

TEST_CASE("QP_FAIL completes what is below its PSN and flushes the rest") {
  Pair p(make_rtl, {.silence = 20'000});
  // Everything is lost from the third message on.
  unsigned sent = 0;
  p.world.filter = [&](int from, const Decoded&, Frame&) { return from != 0 || sent++ < 2; };
  for (unsigned i = 0; i < 5; ++i) {
    p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova, 64, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key});
  }
  p.qa->ring_sq();
  std::optional<Event> e;
  p.world.run([&] {
    while ((e = p.a().event())) {
      if (e->type == hw::EventType::kQpSilence) return true;
    }
    return false;
  });
  REQUIRE(e);
  CHECK(e->log_index == 2);
  p.a().recover(hw::CmdOp::kQpFail, p.qa->spec.qpn, [&](auto& c) {
    hw::set(c, hw::cmd_fail::psn, e->psn);
    hw::set(c, hw::cmd_fail::status, static_cast<std::uint64_t>(hw::WcStatus::kRetryExcErr));
  });
  const hw::WcStatus want[] = {hw::WcStatus::kSuccess, hw::WcStatus::kSuccess, hw::WcStatus::kRetryExcErr,
                               hw::WcStatus::kWrFlushErr, hw::WcStatus::kWrFlushErr};
  for (unsigned i = 0; i < 5; ++i) {
    const auto c = p.ca->wait();
    REQUIRE(c);
    CHECK(c->status == want[i]);
    CHECK(c->wqe_index == i);
  }
}

TEST_CASE("a WQE changed after posting fails its own QP when it has to be sent again") {
  Pair p(make_rtl);
  bool first = true;
  p.world.filter = [&](int from, const Decoded&, Frame&) { return from != 0 || !std::exchange(first, false); };
  p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova, 64, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key});
  p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova, 64, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key});
  p.qa->ring_sq();
  std::optional<Event> e;
  p.world.run([&] {
    while ((e = p.a().event())) {
      if (e->type == hw::EventType::kQpNak) return true;
    }
    return false;
  });
  REQUIRE(e);
  hw::set(p.a().at(p.qa->sq, 64), hw::wqe::remote_addr, p.rb.iova + 8);
  const auto frames = p.world.frames;
  p.a().recover(hw::CmdOp::kQpRewind, p.qa->spec.qpn, [&](auto& c) {
    hw::set(c, hw::cmd_rewind::log_index, e->log_index);
    hw::set(c, hw::cmd_rewind::psn, e->psn);
  });
  const auto c = p.ca->wait();
  REQUIRE(c);
  CHECK(c->status == hw::WcStatus::kLocQpOpErr);
  CHECK(c->wqe_index == 0);
  p.world.settle();
  CHECK(p.world.frames == frames);
}

TEST_CASE("random loss, duplication and reorder: every message arrives once, in order") {
  Pair p(make_rtl, {.mtu_log = 8, .silence = 30'000});
  Recovery r{p};
  std::uint64_t x = 88172645463325252ull;
  const auto dice = [&] {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x >> 20 & 1023;
  };
  Frame late;
  int late_to = 0;
  p.world.filter = [&](int from, const Decoded&, Frame& f) {
    const auto d = dice();
    if (d < 30) return false;
    if (d < 50 && late.empty()) {
      late = f.clone();
      late_to = 1 - from;
      return false;
    }
    if (d < 80) p.world.hosts[static_cast<std::size_t>(1 - from)]->engine->packet_in(f.clone());
    if (d < 110 && !late.empty()) {
      p.world.hosts[static_cast<std::size_t>(late_to)]->engine->packet_in(std::move(late));
      late = Frame();
    }
    return true;
  };
  constexpr unsigned kMessages = 200;
  std::vector<std::vector<std::byte>> data(kMessages);
  unsigned posted = 0, received = 0, completed = 0, recv_posted = 0;
  const auto fill_recv = [&] {
    while (recv_posted < kMessages && recv_posted - received < 16) {
      p.qb->post_recv(recv_posted, {{p.rb.iova + recv_posted % 16 * 4096, 4096, p.rb.key}});
      ++recv_posted;
    }
    p.qb->ring_rq();
  };
  fill_recv();
  const bool ok = p.world.run([&] {
    r.serve();
    while (posted < kMessages && posted - completed < 8) {
      const std::uint32_t n = static_cast<std::uint32_t>(dice() * 4 % 4000);
      data[posted] = pattern(n, posted + 1);
      put(p.a(), p.ra, posted % 8 * 4096, data[posted]);
      p.qa->post({.sges = {{p.ra.iova + posted % 8 * 4096, n, p.ra.key}}});
      ++posted;
      p.qa->ring_sq();
    }
    while (const auto c = p.ca->poll()) {
      REQUIRE(c->status == hw::WcStatus::kSuccess);
      REQUIRE(c->wqe_index == completed++);
      p.ca->update_record();
    }
    while (const auto c = p.cb->poll()) {
      REQUIRE(c->status == hw::WcStatus::kSuccess);
      REQUIRE(c->wr_id == received);
      REQUIRE(c->byte_len == data[received].size());
      REQUIRE(get(p.b(), p.rb, received % 16 * 4096, c->byte_len) == data[received]);
      ++received;
      p.cb->update_record();
      fill_recv();
    }
    return completed == kMessages && received == kMessages;
  }, 400000);
  CHECK(ok);
  CHECK(completed == kMessages);
  CHECK(r.seen[hw::EventType::kQpNak] > 5);
  p.check_wire();
}

}  // namespace ordma::bench
