// SPDX-License-Identifier: BSD-2-Clause
// The extended polling interface, and what a CQ is asked to report.
#include <arpa/inet.h>

#include <cerrno>
#include <thread>

#include "checks.hpp"

using namespace ordma::test;

namespace {

EndOptions extended() {
  EndOptions options;
  options.timestamps = true;
  return options;
}

ibv_cq_ex* create(ibv_context* ctx, std::uint64_t wc_flags, std::uint32_t comp_mask = 0,
                  std::uint32_t flags = 0) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.wc_flags = wc_flags;
  attr.comp_mask = comp_mask;
  attr.flags = flags;
  return ibv_create_cq_ex(ctx, &attr);
}

}  // namespace

TEST_CASE("case_023 the iterator counts no entry twice", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, extended());
  ibv_cq_ex* const cq = p.a.scq_ex;
  ibv_poll_cq_attr attr{};
  CHECK(ibv_start_poll(cq, &attr) == ENOENT);  // no end_poll after a start that failed
  CHECK(ibv_start_poll(cq, &attr) == ENOENT);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::array sges{from.sge(0, 64)};
  // More than the ring holds, so that an index that runs ahead shows as a phantom entry.
  std::uint64_t next = 0;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t batch = 1 + static_cast<std::uint64_t>(round % 4);
    for (std::uint64_t i = 0; i < batch; ++i) {
      REQUIRE(p.a.post_send(write_wr(next + i, to), sges) == 0);
    }
    for (std::uint64_t got = 0; got < batch;) {
      const int err = ibv_start_poll(cq, &attr);
      if (err == ENOENT) {
        std::this_thread::yield();
        continue;
      }
      REQUIRE(err == 0);
      do {
        CHECK(cq->status == IBV_WC_SUCCESS);
        CHECK(cq->wr_id == next + got++);
        CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RDMA_WRITE);
        CHECK(ibv_wc_read_qp_num(cq) == p.a.qp->qp_num);
      } while (ibv_next_poll(cq) == 0);
      ibv_end_poll(cq);
    }
    next += batch;
    CHECK(ibv_start_poll(cq, &attr) == ENOENT);
  }
}

TEST_CASE("case_023 mixed with ibv_poll_cq", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, extended());
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::array sges{from.sge(0, 64)};
  for (std::uint64_t i = 0; i < 100; ++i) {
    REQUIRE(p.a.post_send(write_wr(i, to), sges) == 0);
    if (i % 2 == 0) {
      const auto wc = p.a.wait_send();
      REQUIRE(status(wc) == IBV_WC_SUCCESS);
      CHECK(wc->wr_id == i);
    } else {
      const auto wc = wait_timed(p.a.scq_ex);
      REQUIRE(wc.has_value());
      CHECK(wc->status == IBV_WC_SUCCESS);
      CHECK(wc->wr_id == i);
    }
  }
}

TEST_CASE("case_023 every reader of a receive completion", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, extended());
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  REQUIRE(p.b.post_recv(5, std::array{to.sge(0, 64)}) == 0);
  auto wr = send_wr(6);
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = htonl(0x01020304);
  REQUIRE(p.a.post_send(wr, std::array{from.sge(0, 40)}) == 0);
  REQUIRE(wait_timed(p.a.scq_ex).has_value());
  ibv_cq_ex* const cq = p.b.rcq_ex;
  ibv_poll_cq_attr attr{};
  int err = ENOENT;
  for (int i = 0; i < 100000 && err == ENOENT; ++i) {
    err = ibv_start_poll(cq, &attr);
    std::this_thread::yield();
  }
  REQUIRE(err == 0);
  CHECK(cq->wr_id == 5);
  CHECK(cq->status == IBV_WC_SUCCESS);
  CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RECV);
  CHECK(ibv_wc_read_wc_flags(cq) == IBV_WC_WITH_IMM);
  CHECK(ntohl(ibv_wc_read_imm_data(cq)) == 0x01020304);
  CHECK(ibv_wc_read_byte_len(cq) == 40);
  CHECK(ibv_wc_read_qp_num(cq) == p.b.qp->qp_num);
  CHECK(ibv_wc_read_slid(cq) == 0);
  CHECK(ibv_wc_read_dlid_path_bits(cq) == 0);
  CHECK(ibv_wc_read_completion_ts(cq) != 0);
  CHECK(ibv_next_poll(cq) == ENOENT);
  ibv_end_poll(cq);
  CHECK(ibv_start_poll(cq, &attr) == ENOENT);
}

TEST_CASE("case_024 timestamps count in the advertised clock", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, extended());
  ibv_device_attr_ex device{};
  REQUIRE(ibv_query_device_ex(p.a.ctx.get(), nullptr, &device) == 0);
  REQUIRE(device.completion_timestamp_mask != 0);
  REQUIRE(device.hca_core_clock != 0);
  Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), 8);
  const auto stamp = [&] {
    REQUIRE(p.a.post_send(write_wr(1, to), std::array{from.sge(0, 8)}) == 0);
    const auto wc = wait_timed(p.a.scq_ex);
    REQUIRE(wc.has_value());
    return std::pair(wc->time, std::chrono::steady_clock::now());
  };
  const auto [ticks0, host0] = stamp();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto [ticks1, host1] = stamp();
  const double ms = static_cast<double>(ticks1 - ticks0) / static_cast<double>(device.hca_core_clock);
  const double host_ms = std::chrono::duration<double, std::milli>(host1 - host0).count();
  // The unit is what the case is about: consumers were off by 1000. The host's time of a loaded
  // machine is coarse, hence the width.
  CHECK(ms > host_ms * 0.5);
  CHECK(ms < host_ms * 1.5);
}

TEST_CASE("case_024 timestamps never run backwards", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, extended());
  Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), 8);
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    REQUIRE(p.a.post_send(write_wr(i, to), std::array{from.sge(0, 8)}) == 0);
    const auto wc = wait_timed(p.a.scq_ex);
    REQUIRE(wc.has_value());
    CHECK(wc->time >= last);
    last = wc->time;
  }
}

TEST_CASE("case_025 what a CQ cannot report or do is refused at creation", "[rc]") {
  End end(device_names().at(0));
  ibv_context* const ctx = end.ctx.get();
  const auto refused = [&](ibv_cq_ex* cq) {
    const int err = errno;
    if (cq != nullptr) {
      ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
      return 0;
    }
    return err;
  };
  CHECK(refused(create(ctx, std::uint64_t{1} << 40)) == EOPNOTSUPP);
  CHECK(refused(create(ctx, IBV_WC_EX_WITH_CVLAN)) == EOPNOTSUPP);
  CHECK(refused(create(ctx, IBV_WC_EX_WITH_FLOW_TAG)) == EOPNOTSUPP);
  CHECK(refused(create(ctx, IBV_WC_EX_WITH_TM_INFO)) == EOPNOTSUPP);
  const std::uint32_t with_flags = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  CHECK(refused(create(ctx, 0, with_flags, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)) == EOPNOTSUPP);
  CHECK(refused(create(ctx, 0, with_flags, 1u << 20)) == EOPNOTSUPP);
  Cq plain(ibv_cq_ex_to_cq(create(ctx, 0)));
  REQUIRE(plain != nullptr);
  ibv_cq_ex* const ex = reinterpret_cast<ibv_cq_ex*>(plain.get());
  CHECK(ex->read_byte_len == nullptr);  // what was not asked for cannot be read
  CHECK(ex->read_completion_ts == nullptr);
  CHECK(ex->read_imm_data == nullptr);
  ibv_poll_cq_attr attr{};
  attr.comp_mask = 1;
  CHECK(ibv_start_poll(ex, &attr) == EINVAL);
}
