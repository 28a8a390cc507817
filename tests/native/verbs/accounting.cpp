// SPDX-License-Identifier: BSD-2-Clause
// Who gets a completion, when a queue is full, and what a post in the wrong state answers.
#include <cerrno>
#include <set>

#include "checks.hpp"

using namespace ordma::test;

TEST_CASE("case_010 sq_sig_all completes what asked for nothing", "[rc]") {
  const bool loopback = both_ways();
  EndOptions options;
  options.sig_all = true;
  Pair p(loopback, options);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::array sges{from.sge(0, 64)};
  for (std::uint64_t i = 0; i < 8; ++i) {
    REQUIRE(p.a.post_send(write_wr(i, to, 0, 0), sges) == 0);
  }
  for (std::uint64_t i = 0; i < 8; ++i) {
    const auto wc = p.a.wait_send();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->wr_id == i);
  }
}

TEST_CASE("case_010 one signaled of four retires four slots", "[rc]") {
  const bool loopback = both_ways();
  EndOptions options;
  options.send_wr = 16;
  Pair p(loopback, options);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::array sges{from.sge(0, 64)};
  const std::uint32_t depth = query(p.a.qp.get()).cap.max_send_wr;
  std::uint64_t completed = 0;
  for (std::uint64_t i = 0; i < 4 * depth; ++i) {
    const unsigned flags = i % 4 == 3 ? IBV_SEND_SIGNALED : 0;
    // Never full while at most `depth` are not known to be complete.
    while (i - 4 * completed >= depth) {
      const auto wc = p.a.wait_send();
      REQUIRE(status(wc) == IBV_WC_SUCCESS);
      CHECK(wc->wr_id == 4 * completed + 3);
      ++completed;
    }
    REQUIRE(p.a.post_send(write_wr(i, to, 0, flags), sges) == 0);
  }
  for (; completed < depth; ++completed) {
    const auto wc = p.a.wait_send();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->wr_id == 4 * completed + 3);
  }
  ibv_wc wc{};
  CHECK(p.a.poll_now(p.a.scq.get(), wc) == 0);
}

TEST_CASE("case_011 a full send queue refuses the WR that does not fit", "[rc]") {
  const bool loopback = both_ways();
  EndOptions options;
  options.send_wr = 8;
  options.recv_wr = 64;
  Link link;
  link.min_rnr = 1;
  Pair p(loopback, options, link);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::uint32_t depth = query(p.a.qp.get()).cap.max_send_wr;
  // The peer has no receive posted: nothing completes.
  std::vector<ibv_send_wr> list(depth + 2);
  ibv_sge sge = from.sge(0, 64);
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = send_wr(i, 0);
    list[i].sg_list = &sge;
    list[i].num_sge = 1;
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  CHECK(ibv_post_send(p.a.qp.get(), &list[0], &bad) == ENOMEM);
  CHECK(bad == &list[depth]);
  const std::array recv{to.sge(0, 64)};
  for (std::uint64_t i = 0; i < depth + 1; ++i) {
    REQUIRE(p.b.post_recv(i, recv) == 0);
  }
  for (std::uint64_t i = 0; i < depth; ++i) {  // what fitted was executed
    const auto wc = p.b.wait_recv();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->wr_id == i);
  }
  CHECK_FALSE(p.b.wait_recv(kNever).has_value());
}

TEST_CASE("case_011 what can never fit is EINVAL, not ENOMEM", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  const ibv_qp_cap cap = query(p.a.qp.get()).cap;
  Buffer from(p.a.pd.get(), 4096), to(p.b.pd.get(), 4096);
  const std::vector<ibv_sge> many(cap.max_send_sge + 1, from.sge(0, 1));
  CHECK(p.a.post_send(write_wr(1, to), many) == EINVAL);
  const std::array wide{from.sge(0, cap.max_inline_data + 1)};
  CHECK(p.a.post_send(write_wr(2, to, 0, IBV_SEND_INLINE | IBV_SEND_SIGNALED), wide) == EINVAL);
  const std::vector<ibv_sge> many_recv(cap.max_recv_sge + 1, from.sge(0, 1));
  CHECK(p.a.post_recv(3, many_recv) == EINVAL);
  // The queue is as it was.
  REQUIRE(p.a.post_send(write_wr(4, to), std::array{from.sge(0, 64)}) == 0);
  const auto wc = p.a.wait_send();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->wr_id == 4);
}

TEST_CASE("case_011 a full receive queue", "[rc]") {
  EndOptions options;
  options.recv_wr = 8;
  Pair p(true, options);
  const std::uint32_t depth = query(p.a.qp.get()).cap.max_recv_wr;
  for (std::uint64_t i = 0; i < depth; ++i) {
    REQUIRE(p.a.post_recv(i) == 0);
  }
  CHECK(p.a.post_recv(depth) == ENOMEM);
}

TEST_CASE("case_012 posts in every state", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, {}, {}, false);
  ibv_qp* const qp = p.a.qp.get();
  Buffer buf(p.a.pd.get(), 64);
  const std::array sges{buf.sge(0, 64)};
  const ibv_gid peer = p.b.gid();
  CHECK(p.a.post_recv(1, sges) == EINVAL);  // RESET
  CHECK(p.a.post_send(send_wr(1), sges) == EINVAL);
  REQUIRE(set_init(qp, p.link) == 0);
  CHECK(p.a.post_recv(2, sges) == 0);
  CHECK(p.a.post_send(send_wr(2), sges) == EINVAL);
  REQUIRE(set_rtr(qp, p.link, p.b.qp->qp_num, peer, 0) == 0);
  CHECK(p.a.post_recv(3, sges) == 0);
  CHECK(p.a.post_send(send_wr(3), sges) == EINVAL);
  REQUIRE(set_rts(qp, p.link, 0) == 0);
  CHECK(p.a.post_recv(4, sges) == 0);
  REQUIRE(p.a.to_error() == 0);
  CHECK(p.a.post_recv(5, sges) == 0);
  CHECK(p.a.post_send(send_wr(6), sges) == 0);
  for (std::uint64_t i = 2; i <= 5; ++i) {
    const auto wc = p.a.wait_recv();
    REQUIRE(status(wc) == IBV_WC_WR_FLUSH_ERR);
    CHECK(wc->wr_id == i);
  }
  const auto wc = p.a.wait_send();
  REQUIRE(status(wc) == IBV_WC_WR_FLUSH_ERR);
  CHECK(wc->wr_id == 6);
}

TEST_CASE("case_012 a QP that the NIC put into ERR still takes and flushes posts", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::array sges{from.sge(0, 64)};
  auto wr = write_wr(1, to);
  wr.wr.rdma.rkey ^= 0x00ff0000;
  REQUIRE(p.a.post_send(wr, sges) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_REM_ACCESS_ERR);
  // Neither side has asked for its state: the post itself must find out.
  for (End* end : {&p.a, &p.b}) {
    REQUIRE(end->post_send(send_wr(2, 0)) == 0);
    REQUIRE(end->post_recv(3) == 0);
    CHECK(status(end->wait_send()) == IBV_WC_WR_FLUSH_ERR);
    CHECK(status(end->wait_recv()) == IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_CASE("case_014 a destroyed QP leaves no completion behind", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Qp c = p.a.make_qp();
  Qp d = p.b.make_qp();
  connect(c.get(), d.get(), p.link);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::array sges{from.sge(0, 64)};
  for (std::uint64_t i = 0; i < 8; ++i) {  // interleaved in the CQ that A and C share
    REQUIRE(p.a.post_send(write_wr(100 + i, to), sges) == 0);
    REQUIRE(post_send(c.get(), write_wr(200 + i, to), sges) == 0);
  }
  // All sixteen are in the CQ once a later one of the other queue is: RC completes in order.
  REQUIRE(p.b.post_recv(1) == 0);
  REQUIRE(post_recv(d.get(), 2) == 0);
  REQUIRE(p.a.post_send(send_wr(108, 0)) == 0);
  REQUIRE(post_send(c.get(), send_wr(208)) == 0);
  REQUIRE(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
  REQUIRE(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
  const std::uint32_t gone = p.a.qp->qp_num;
  p.a.qp.reset();
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 9; ++i) {
    const auto wc = p.a.wait_send();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->qp_num == c->qp_num);
    CHECK(wc->qp_num != gone);
    seen.insert(wc->wr_id);
  }
  CHECK(seen.size() == 9);
  CHECK(*seen.begin() == 200);
  CHECK_FALSE(p.a.wait_send(kNever).has_value());
}

TEST_CASE("case_014 RESET forgets the completions of the earlier life", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::array sges{from.sge(0, 64)};
  for (int life = 0; life < 3; ++life) {
    for (std::uint64_t i = 0; i < 5; ++i) {
      REQUIRE(p.a.post_send(write_wr(i, to), sges) == 0);
      REQUIRE(p.a.post_recv(10 + i, sges) == 0);
    }
    p.reconnect();
    ibv_wc wc{};
    CHECK(p.a.poll_now(p.a.scq.get(), wc) == 0);
    REQUIRE(p.a.post_recv(50, sges) == 0);
    REQUIRE(p.b.post_send(send_wr(51), {}) == 0);
    const auto r = p.a.wait_recv();
    REQUIRE(status(r) == IBV_WC_SUCCESS);
    CHECK(r->wr_id == 50);
    REQUIRE(status(p.b.wait_send()) == IBV_WC_SUCCESS);
  }
}
