// SPDX-License-Identifier: BSD-2-Clause
// Completion queues: notification, sizes, resize, overflow.
#include <atomic>
#include <cerrno>
#include <random>
#include <thread>

#include "checks.hpp"

using namespace ordma::test;

namespace {

EndOptions with_channel() {
  EndOptions options;
  options.channel = true;
  return options;
}

// 0-byte sends of A that B has receives for; every one is a CQE in B's receive CQ.
void send_some(Pair& p, std::uint64_t count, unsigned flags = 0) {
  for (std::uint64_t i = 0; i < count; ++i) {
    REQUIRE(p.b.post_recv(i) == 0);
    REQUIRE(p.a.post_send(send_wr(i, flags | IBV_SEND_SIGNALED)) == 0);
    REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  }
}

void expect_event(End& end, ibv_cq* of) {
  ibv_cq* const cq = wait_event(end.channel.get());
  REQUIRE(cq == of);
  ibv_ack_cq_events(cq, 1);
}

bool event_comes(End& end) {
  ibv_cq* const cq = wait_event(end.channel.get(), kNever);
  if (cq != nullptr) {
    ibv_ack_cq_events(cq, 1);
  }
  return cq != nullptr;
}

// On a QP in ERR each receive becomes a CQE at once.
void flush_into(ibv_qp* qp, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    REQUIRE(post_recv(qp, i) == 0);
  }
}

}  // namespace

TEST_CASE("case_016 arming again without polling loses no event", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, with_channel());
  ibv_cq* const cq = p.b.rcq.get();
  const std::size_t rounds = scale(100, 2000, 10000);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < 5; ++i) {
      REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
    }
    send_some(p, 1);
    expect_event(p.b, cq);
    REQUIRE(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
  }
  CHECK_FALSE(event_comes(p.b));  // one event per CQE that met an armed CQ, not more
}

TEST_CASE("case_017 arm and poll race with a producer", "[rc]") {
  const bool loopback = both_ways();
  EndOptions options = with_channel();
  options.cqe = 1024;
  options.recv_wr = 512;
  Pair p(loopback, options);
  ibv_cq* const cq = p.b.rcq.get();
  const std::size_t total = scale(2000, 20000, 1000000);
  for (std::uint64_t i = 0; i < 512; ++i) {
    REQUIRE(p.b.post_recv(i) == 0);
  }
  REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
  std::thread producer([&] {
    std::mt19937 random(1);
    ibv_wc wc{};
    std::uint64_t posted = 0, done = 0;
    while (done < total) {
      if (posted < total && posted - done < 32 && p.a.post_send(send_wr(posted)) == 0) {
        ++posted;
      }
      if (random() % 8 == 0 || posted - done == 32 || posted == total) {
        done += static_cast<std::uint64_t>(ibv_poll_cq(p.a.scq.get(), 1, &wc));
        std::this_thread::yield();
      }
    }
  });
  std::mt19937 random(2);
  const auto pause = [&] {
    if (random() % 16 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
    }
  };
  std::size_t seen = 0;
  bool stuck = false;
  while (seen < total && !stuck) {
    ibv_cq* const named = wait_event(p.b.channel.get());
    stuck = named == nullptr;
    if (stuck) {
      break;
    }
    pause();
    ibv_ack_cq_events(named, 1);
    pause();
    REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
    pause();
    ibv_wc wc{};
    while (ibv_poll_cq(cq, 1, &wc) == 1) {
      seen += wc.status == IBV_WC_SUCCESS;
      REQUIRE(p.b.post_recv(seen) == 0);
    }
  }
  if (stuck) {  // lets the producer end: its sends only need receives
    ibv_wc wc{};
    for (std::size_t rest = seen; rest < total;) {
      rest += static_cast<std::size_t>(ibv_poll_cq(cq, 1, &wc));
      p.b.post_recv(0);
    }
  }
  producer.join();
  CHECK_FALSE(stuck);
  CHECK(seen == total);
}

TEST_CASE("case_018 one shot, and solicited only", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, with_channel());
  ibv_cq* const cq = p.b.rcq.get();
  SECTION("one event per arm") {
    REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
    send_some(p, 3);
    expect_event(p.b, cq);
    CHECK_FALSE(event_comes(p.b));
  }
  SECTION("solicited") {
    REQUIRE(ibv_req_notify_cq(cq, 1) == 0);
    send_some(p, 3);
    CHECK_FALSE(event_comes(p.b));
    for (int i = 0; i < 3; ++i) {
      CHECK(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
    }
    send_some(p, 1, IBV_SEND_SOLICITED);
    expect_event(p.b, cq);
    REQUIRE(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
    // An error counts as solicited.
    REQUIRE(ibv_req_notify_cq(cq, 1) == 0);
    REQUIRE(p.b.post_recv(9) == 0);
    REQUIRE(p.b.to_error() == 0);
    expect_event(p.b, cq);
    CHECK(status(p.b.wait_recv()) == IBV_WC_WR_FLUSH_ERR);
  }
  SECTION("arming for all after arming for solicited widens, not the other way round") {
    REQUIRE(ibv_req_notify_cq(cq, 1) == 0);
    REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
    send_some(p, 1);
    expect_event(p.b, cq);
  }
  SECTION("a CQE that lies unseen when arming does not swallow the event of the next") {
    send_some(p, 1);
    REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
    const bool at_once = event_comes(p.b);  // either is legal: the caller polls after arming
    send_some(p, 1);
    CHECK(event_comes(p.b) != at_once);
    ibv_wc wc{};
    CHECK(ibv_poll_cq(cq, 1, &wc) == 1);
    CHECK(ibv_poll_cq(cq, 1, &wc) == 1);
  }
}

TEST_CASE("case_019 destroy_cq waits until every event is acknowledged", "[rc]") {
  Pair p(true, with_channel());
  Cq cq(ibv_create_cq(p.b.ctx.get(), 16, nullptr, p.b.channel.get(), 0));
  REQUIRE(cq != nullptr);
  ibv_qp_init_attr attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.send_cq = attr.recv_cq = cq.get();
  attr.cap = {1, 1, 1, 1, 0};
  Qp qp(ibv_create_qp(p.b.pd.get(), &attr));
  REQUIRE(qp != nullptr);
  REQUIRE(set_init(qp.get(), p.link) == 0);
  REQUIRE(ibv_req_notify_cq(cq.get(), 0) == 0);
  REQUIRE(post_recv(qp.get(), 1) == 0);
  REQUIRE(set_state(qp.get(), IBV_QPS_ERR) == 0);
  ibv_cq* const named = wait_event(p.b.channel.get());
  REQUIRE(named == cq.get());
  qp.reset();
  std::atomic<bool> done{false};
  int result = -1;
  std::thread destroyer([&] {
    result = ibv_destroy_cq(cq.release());
    done = true;
  });
  std::this_thread::sleep_for(kNever);
  CHECK_FALSE(done);
  ibv_ack_cq_events(named, 1);
  destroyer.join();
  CHECK(result == 0);
}

TEST_CASE("case_021 CQ sizes", "[rc]") {
  End end(device_names().at(0));
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(end.ctx.get(), &device) == 0);
  for (const int asked : {1, 2, 3, 4, 255, 256, 257, device.max_cqe}) {
    Cq cq(ibv_create_cq(end.ctx.get(), asked, nullptr, nullptr, 0));
    CAPTURE(asked);
    REQUIRE(cq != nullptr);
    CHECK(cq->cqe >= asked);
  }
  for (const int asked : {0, -1, device.max_cqe + 1}) {
    errno = 0;
    CHECK(ibv_create_cq(end.ctx.get(), asked, nullptr, nullptr, 0) == nullptr);
    CHECK(errno == EINVAL);
  }
}

TEST_CASE("case_021 a CQ holds as many entries as it says", "[rc]") {
  const int asked = GENERATE(1, 2, 5, 64, 4096);
  End end(device_names().at(0));
  Cq cq(ibv_create_cq(end.ctx.get(), asked, nullptr, nullptr, 0));
  REQUIRE(cq != nullptr);
  ibv_qp_init_attr attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.send_cq = attr.recv_cq = cq.get();
  attr.cap = {1, static_cast<std::uint32_t>(cq->cqe) + 1, 1, 1, 0};
  Qp qp(ibv_create_qp(end.pd.get(), &attr));
  REQUIRE(qp != nullptr);
  REQUIRE(set_init(qp.get(), Link()) == 0);
  REQUIRE(set_state(qp.get(), IBV_QPS_ERR) == 0);
  const auto size = static_cast<std::uint32_t>(cq->cqe);
  CAPTURE(asked, size);
  for (int lap = 0; lap < 3; ++lap) {
    flush_into(qp.get(), size);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // all of them lie in the CQ
    for (std::uint32_t i = 0; i < size; ++i) {
      const auto wc = wait_cq(cq.get());
      REQUIRE(status(wc) == IBV_WC_WR_FLUSH_ERR);
      REQUIRE(wc->wr_id == i);
    }
  }
  CHECK_FALSE(wait_async(end.ctx.get(), std::chrono::milliseconds(0)).has_value());
}

TEST_CASE("case_021 one entry too many is a CQ error, and no memory beyond is touched", "[rc]") {
  End end(device_names().at(0));
  Cq cq(ibv_create_cq(end.ctx.get(), 4, nullptr, nullptr, 0));
  REQUIRE(cq != nullptr);
  ibv_qp_init_attr attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.send_cq = attr.recv_cq = cq.get();
  attr.cap = {1, static_cast<std::uint32_t>(cq->cqe) + 8, 1, 1, 0};
  Qp qp(ibv_create_qp(end.pd.get(), &attr));
  REQUIRE(qp != nullptr);
  REQUIRE(set_init(qp.get(), Link()) == 0);
  REQUIRE(set_state(qp.get(), IBV_QPS_ERR) == 0);
  flush_into(qp.get(), static_cast<std::uint32_t>(cq->cqe) + 8);
  const auto event = wait_async(end.ctx.get());
  REQUIRE(event.has_value());
  CHECK(event->event_type == IBV_EVENT_CQ_ERR);
  CHECK(event->element.cq == cq.get());
  // The device goes on.
  Pair p(true);
  REQUIRE(p.b.post_recv(1) == 0);
  REQUIRE(p.a.post_send(send_wr(2)) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
}

TEST_CASE("resize_cq keeps every completion and its order", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::array sges{from.sge(0, 64)};
  std::uint64_t posted = 0, seen = 0;
  for (const int size : {512, 64, 300, 16, 1024}) {
    for (int i = 0; i < 12; ++i) {
      REQUIRE(p.a.post_send(write_wr(posted++, to), sges) == 0);
    }
    while (posted - seen > 12) {  // leaves some in the old ring
      const auto wc = p.a.wait_send();
      REQUIRE(status(wc) == IBV_WC_SUCCESS);
      CHECK(wc->wr_id == seen++);
    }
    CAPTURE(size);
    REQUIRE(ibv_resize_cq(p.a.scq.get(), size) == 0);
    CHECK(p.a.scq->cqe >= size);
  }
  while (seen < posted) {
    const auto wc = p.a.wait_send();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->wr_id == seen++);
  }
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(p.a.ctx.get(), &device) == 0);
  CHECK(ibv_resize_cq(p.a.scq.get(), device.max_cqe + 1) == EINVAL);
}
