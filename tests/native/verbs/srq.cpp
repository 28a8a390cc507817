// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues.
#include <algorithm>
#include <cerrno>
#include <set>

#include "checks.hpp"

using namespace ordma::test;

namespace {

EndOptions shared(std::uint32_t depth = 64) {
  EndOptions options;
  options.use_srq = true;
  options.recv_wr = depth;
  return options;
}

std::uint32_t limit_of(ibv_srq* srq) {
  ibv_srq_attr attr{};
  REQUIRE(ibv_query_srq(srq, &attr) == 0);
  return attr.srq_limit;
}

int arm_limit(ibv_srq* srq, std::uint32_t limit) {
  ibv_srq_attr attr{};
  attr.srq_limit = limit;
  return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

// A 0-byte SEND that takes one receive.
void consume(Pair& p) {
  REQUIRE(p.a.post_send(send_wr(1)) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  REQUIRE(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
}

}  // namespace

TEST_CASE("case_076 the limit event fires once", "[srq]") {
  const bool loopback = both_ways();
  Pair p(loopback, shared());
  ibv_srq* const srq = p.b.srq.get();
  CHECK(limit_of(srq) == 0);
  for (std::uint64_t i = 0; i < 16; ++i) {
    REQUIRE(p.b.post_recv(i) == 0);
  }
  REQUIRE(arm_limit(srq, 8) == 0);
  CHECK(limit_of(srq) == 8);
  for (int i = 0; i < 8; ++i) {
    consume(p);
  }
  CHECK_FALSE(wait_async(p.b.ctx.get(), kNever).has_value());  // 8 left: not below the limit
  consume(p);
  const auto event = wait_async(p.b.ctx.get());
  REQUIRE(event.has_value());
  CHECK(event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
  CHECK(event->element.srq == srq);
  CHECK(limit_of(srq) == 0);
  consume(p);
  consume(p);
  CHECK_FALSE(wait_async(p.b.ctx.get(), kNever).has_value());
  for (std::uint64_t i = 0; i < 8; ++i) {
    REQUIRE(p.b.post_recv(i) == 0);
  }
  REQUIRE(arm_limit(srq, 5) == 0);  // 13 left
  for (int i = 0; i < 8; ++i) {
    consume(p);
  }
  CHECK_FALSE(wait_async(p.b.ctx.get(), kNever).has_value());
  consume(p);
  CHECK(wait_async(p.b.ctx.get()).has_value());
}

TEST_CASE("case_076 a limit that is reached already fires at once", "[srq]") {
  const bool loopback = both_ways();
  Pair p(loopback, shared());
  REQUIRE(p.b.post_recv(1) == 0);
  consume(p);
  REQUIRE(arm_limit(p.b.srq.get(), 4) == 0);
  const auto event = wait_async(p.b.ctx.get());
  REQUIRE(event.has_value());
  CHECK(event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
}

TEST_CASE("case_076 a limit out of range changes nothing", "[srq]") {
  Pair p(true, shared());
  ibv_srq* const srq = p.b.srq.get();
  ibv_srq_attr attr{};
  REQUIRE(ibv_query_srq(srq, &attr) == 0);
  CHECK(attr.max_wr >= 64);
  CHECK(attr.max_sge >= 4);
  REQUIRE(arm_limit(srq, 0) == 0);
  CHECK(arm_limit(srq, attr.max_wr + 1) == EINVAL);
  CHECK(limit_of(srq) == 0);
  attr.max_wr *= 2;
  CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EOPNOTSUPP);  // no resize
}

TEST_CASE("case_079 an SRQ in use stays", "[srq]") {
  Pair p(true, shared(), {}, false);
  CHECK(ibv_destroy_srq(p.b.srq.get()) == EBUSY);
  CHECK(post_recv(p.b.qp.get(), 1) == EINVAL);  // not on the QP: its receives come from the SRQ
  REQUIRE(set_init(p.b.qp.get(), p.link) == 0);
  CHECK(post_recv(p.b.qp.get(), 1) == EINVAL);
  CHECK(p.b.post_recv(1) == 0);
}

TEST_CASE("case_079 SRQ sizes", "[srq]") {
  End end(device_names().at(0));
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(end.ctx.get(), &device) == 0);
  const auto create = [&](std::uint32_t wr, std::uint32_t sge, std::uint32_t limit) {
    ibv_srq_init_attr attr{};
    attr.attr = {wr, sge, limit};
    errno = 0;
    Srq srq(ibv_create_srq(end.pd.get(), &attr));
    if (srq == nullptr) {
      return errno;
    }
    CHECK(attr.attr.max_wr >= wr);
    CHECK(attr.attr.max_sge >= sge);
    return 0;
  };
  const auto wr = static_cast<std::uint32_t>(device.max_srq_wr);
  const auto sge = static_cast<std::uint32_t>(device.max_srq_sge);
  CHECK(create(1, 1, 0) == 0);
  CHECK(create(wr, sge, 0) == 0);
  CHECK(create(0, 1, 0) == EINVAL);
  CHECK(create(wr + 1, 1, 0) == EINVAL);
  CHECK(create(1, sge + 1, 0) == EINVAL);
}

TEST_CASE("an SRQ feeds several QPs in order of arrival", "[srq]") {
  const bool loopback = both_ways();
  Pair p(loopback, shared(32));
  Qp c = p.a.make_qp(shared());
  Qp d = p.b.make_qp(shared());
  connect(c.get(), d.get(), p.link);
  Buffer from(p.a.pd.get(), 3000), to(p.b.pd.get(), 32 * 4096);
  from.fill(6);
  std::uint64_t posted = 0;
  const auto post = [&] {
    REQUIRE(p.b.post_recv(posted, std::array{to.sge(4096 * (posted % 32), 4096)}) == 0);
    ++posted;
  };
  while (posted < 32) post();
  CHECK(p.b.post_recv(99) == ENOMEM);
  std::set<std::uint64_t> wr_ids;
  for (std::uint64_t i = 0; i < 200; ++i) {
    ibv_qp* const qp = i % 3 == 0 ? c.get() : p.a.qp.get();
    REQUIRE(post_send(qp, send_wr(i), std::array{from.sge(0, 3000)}) == 0);
    REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
    const auto wc = p.b.wait_recv();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->byte_len == 3000);
    CHECK(wc->qp_num == (i % 3 == 0 ? d->qp_num : p.b.qp->qp_num));
    CHECK(wr_ids.insert(wc->wr_id).second);
    CHECK(std::equal(from.data(), from.data() + 3000, to.data() + 4096 * (wc->wr_id % 32)));
    post();
  }
}

TEST_CASE("case_005 receive too small, from an SRQ", "[srq]") {
  const bool loopback = both_ways();
  Pair p(loopback, shared());
  Buffer from(p.a.pd.get(), 4096), to(p.b.pd.get(), 4096);
  from.fill(5);
  REQUIRE(p.b.post_recv(7, std::array{to.sge(0, 1500)}) == 0);
  REQUIRE(p.a.post_send(send_wr(8), std::array{from.sge(0, 4096)}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_REM_INV_REQ_ERR);
  const auto r = p.b.wait_recv();
  CHECK(status(r) == IBV_WC_LOC_LEN_ERR);
  CHECK(r->wr_id == 7);
  CHECK(to.all(0, 1500, 4096 - 1500));
}

TEST_CASE("case_001 a QP on an SRQ that fails leaves the SRQ's receives alone", "[srq]") {
  const bool loopback = both_ways();
  Pair p(loopback, shared());
  Qp c = p.a.make_qp(shared());
  Qp d = p.b.make_qp(shared());
  connect(c.get(), d.get(), p.link);
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE(p.b.post_recv(i) == 0);
  }
  REQUIRE(p.b.to_error() == 0);
  const auto event = wait_async(p.b.ctx.get());
  REQUIRE(event.has_value());
  CHECK(event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
  CHECK(event->element.qp == p.b.qp.get());
  CHECK_FALSE(p.b.wait_recv(kNever).has_value());
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE(post_send(c.get(), send_wr(i)) == 0);
    CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
    CHECK(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
  }
}
