// SPDX-License-Identifier: BSD-2-Clause
// Receiver not ready, and nobody there. Times are device time, from completion timestamps.
#include <thread>

#include "checks.hpp"

using namespace ordma::test;

namespace {

constexpr std::uint64_t kMs = 1'000'000;

EndOptions timed() {
  EndOptions options;
  options.timestamps = true;
  return options;
}

// Device time, as the completion of a WRITE tells it.
std::uint64_t now(Pair& p, const Buffer& from, const Buffer& to) {
  REQUIRE(p.a.post_send(write_wr(1, to), std::array{from.sge(0, 8)}) == 0);
  const auto wc = wait_timed(p.a.scq_ex);
  REQUIRE(wc.has_value());
  REQUIRE(wc->status == IBV_WC_SUCCESS);
  return wc->time;
}

}  // namespace

TEST_CASE("case_030 rnr_retry 0 gives up after one RNR NAK", "[rc]") {
  const bool loopback = both_ways();
  Link link;
  link.rnr_retry = 0;
  Pair p(loopback, timed(), link);
  REQUIRE(p.a.post_send(send_wr(1)) == 0);
  const auto wc = wait_timed(p.a.scq_ex);
  REQUIRE(wc.has_value());
  CHECK(wc->status == IBV_WC_RNR_RETRY_EXC_ERR);
  CHECK(query(p.a.qp.get()).rnr_retry == 0);  // as set: nobody knows better than the user
  CHECK(p.b.state() == IBV_QPS_RTS);          // the responder's QP is not hurt
}

TEST_CASE("case_030 rnr_retry 3 waits three times", "[rc]") {
  const bool loopback = both_ways();
  Link link;
  link.rnr_retry = 3;
  link.min_rnr = 12;  // 0.64 ms
  Pair p(loopback, timed(), link);
  Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), 8);
  const std::uint64_t start = now(p, from, to);
  REQUIRE(p.a.post_send(send_wr(1)) == 0);
  const auto wc = wait_timed(p.a.scq_ex);
  REQUIRE(wc.has_value());
  CHECK(wc->status == IBV_WC_RNR_RETRY_EXC_ERR);
  CHECK(wc->time - start >= 3 * 640'000);
  CHECK(wc->time - start < 500 * kMs);
  CHECK(query(p.a.qp.get()).rnr_retry == 3);
  CHECK(query(p.b.qp.get()).min_rnr_timer == 12);
}

TEST_CASE("case_030 rnr_retry 7 waits for ever, without using up retry_cnt", "[rc]") {
  const bool loopback = both_ways();
  const bool srq = GENERATE(false, true);
  EndOptions options = timed();
  options.use_srq = srq;
  Link link;
  link.retry = 0;
  link.timeout = 20;  // 4.3 s: only RNR NAKs answer
  Pair p(loopback, options, link);
  REQUIRE(p.a.post_send(send_wr(1)) == 0);
  CAPTURE(loopback, srq);
  CHECK_FALSE(wait_timed(p.a.scq_ex, std::chrono::milliseconds(2000)).has_value());
  REQUIRE(p.b.post_recv(2) == 0);
  const auto start = std::chrono::steady_clock::now();
  const auto wc = wait_timed(p.a.scq_ex);
  REQUIRE(wc.has_value());
  CHECK(wc->status == IBV_WC_SUCCESS);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(7));
  const auto recv = wait_timed(p.b.rcq_ex);
  REQUIRE(recv.has_value());
  CHECK(recv->status == IBV_WC_SUCCESS);
  CHECK(recv->wr_id == 2);
}

TEST_CASE("case_030 the longest timers", "[rc]") {
  const bool loopback = both_ways();
  const int code = GENERATE(0, 31);
  const std::uint64_t wait = code == 0 ? 655'360'000 : 491'520'000;
  Link link;
  link.min_rnr = static_cast<std::uint8_t>(code);
  Pair p(loopback, timed(), link);
  Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), 8);
  const std::uint64_t start = now(p, from, to);
  REQUIRE(p.a.post_send(send_wr(1)) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  REQUIRE(p.b.post_recv(2) == 0);  // too late for the first try, long before the second
  const auto wc = wait_timed(p.a.scq_ex);
  REQUIRE(wc.has_value());
  CAPTURE(loopback, code);
  CHECK(wc->status == IBV_WC_SUCCESS);
  CHECK(wc->time - start >= wait);
  CHECK(wc->time - start < 10 * wait);
}

TEST_CASE("case_030 what is queued behind a message that waits goes out in order", "[rc]") {
  const bool loopback = both_ways();
  Link link;
  link.min_rnr = 1;
  Pair p(loopback, {}, link);
  Buffer from(p.a.pd.get(), 4096), to(p.b.pd.get(), 64 * 4096);
  from.fill(1);
  for (std::uint64_t i = 0; i < 20; ++i) {
    REQUIRE(p.a.post_send(send_wr(i), std::array{from.sge(0, 100 + 150 * i)}) == 0);
  }
  for (std::uint64_t i = 0; i < 20; ++i) {  // one receive at a time
    REQUIRE(p.b.post_recv(i, std::array{to.sge(4096 * i, 4096)}) == 0);
    const auto r = p.b.wait_recv();
    REQUIRE(status(r) == IBV_WC_SUCCESS);
    CHECK(r->wr_id == i);
    CHECK(r->byte_len == 100 + 150 * i);
    const auto s = p.a.wait_send();
    REQUIRE(status(s) == IBV_WC_SUCCESS);
    CHECK(s->wr_id == i);
  }
}

TEST_CASE("case_031 nobody answers", "[rc]") {
  const bool loopback = both_ways();
  Link link;
  link.timeout = 14;  // 67.1 ms
  link.retry = 2;
  Pair p(loopback, timed(), link);
  Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), 8);
  const std::uint64_t start = now(p, from, to);
  REQUIRE(set_state(p.b.qp.get(), IBV_QPS_RESET) == 0);
  REQUIRE(p.a.post_send(write_wr(5, to), std::array{from.sge(0, 8)}) == 0);
  REQUIRE(p.a.post_send(write_wr(6, to), std::array{from.sge(0, 8)}) == 0);
  const auto wc = wait_timed(p.a.scq_ex);
  REQUIRE(wc.has_value());
  CHECK(wc->status == IBV_WC_RETRY_EXC_ERR);
  CHECK(wc->wr_id == 5);
  constexpr std::uint64_t kTimeout = 4096ull << 14;
  CHECK(wc->time - start >= 3 * kTimeout);
  CHECK(wc->time - start < 10 * 4 * 3 * kTimeout);
  const auto rest = wait_timed(p.a.scq_ex);
  REQUIRE(rest.has_value());
  CHECK(rest->status == IBV_WC_WR_FLUSH_ERR);
  CHECK(query(p.a.qp.get()).qp_state == IBV_QPS_ERR);
}

TEST_CASE("case_031 timeout 0 never gives up", "[rc]") {
  const bool loopback = both_ways();
  Link link;
  link.timeout = 0;
  link.retry = 0;
  Pair p(loopback, timed(), link);
  Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), 8);
  REQUIRE(set_state(p.b.qp.get(), IBV_QPS_RESET) == 0);
  REQUIRE(p.a.post_send(write_wr(5, to), std::array{from.sge(0, 8)}) == 0);
  CHECK_FALSE(wait_timed(p.a.scq_ex, std::chrono::milliseconds(1500)).has_value());
  CHECK(query(p.a.qp.get()).qp_state == IBV_QPS_RTS);
}

TEST_CASE("case_031 a peer that comes late is found by a retry", "[rc]") {
  const bool loopback = both_ways();
  Link link;
  link.timeout = 14;
  Pair p(loopback, timed(), link, false);
  ibv_qp *const a = p.a.qp.get(), *const b = p.b.qp.get();
  Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), 8);
  from.fill(1);
  REQUIRE(set_init(a, link) == 0);
  REQUIRE(set_rtr(a, link, b->qp_num, p.b.gid(), link.psn_b) == 0);
  REQUIRE(set_rts(a, link, link.psn_a) == 0);
  REQUIRE(p.a.post_send(write_wr(5, to), std::array{from.sge(0, 8)}) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  REQUIRE(set_init(b, link) == 0);
  REQUIRE(set_rtr(b, link, a->qp_num, p.a.gid(), link.psn_a) == 0);
  const auto wc = wait_timed(p.a.scq_ex);
  REQUIRE(wc.has_value());
  CHECK(wc->status == IBV_WC_SUCCESS);
  CHECK(to.holds(1, 0, 8));
}
