// SPDX-License-Identifier: BSD-2-Clause
// QP creation, context image, query.
#include <catch2/catch.hpp>
#include <cstring>

#include "fake_nic.hpp"

using ordma::test::FakeNic;

namespace {

ordma_qp_init base(ordma_qp_type type = ORDMA_QP_TYPE_RC) {
  ordma_qp_init init{};
  init.type = type;
  init.cap = {16, 16, 2, 2, 64};
  init.uctx = 1;
  init.sq_log = 4;
  init.sq_stride_log = 7;
  init.rq_log = 4;
  init.rq_stride_log = 6;
  return init;
}

}  // namespace

TEST_CASE("QP types follow the capabilities") {
  FakeNic nic;
  nic.bring_up();
  const std::map<int, std::uint64_t> user = {{ORDMA_QP_TYPE_RC, ORDMA_CAP_RC},
                                             {ORDMA_QP_TYPE_UC, ORDMA_CAP_UC},
                                             {ORDMA_QP_TYPE_UD, ORDMA_CAP_UD}};
  for (int type = 0; type < 256; ++type) {
    auto init = base(static_cast<ordma_qp_type>(type));
    const auto it = user.find(type);
    CHECK(ordma_qp_check_create(&nic.core, &init) == (it == user.end() ? -EOPNOTSUPP : 0));
    const bool port = type == ORDMA_QP_TYPE_GSI || type == ORDMA_QP_TYPE_ETH;
    init.uctx = ORDMA_KERNEL_UCTX;
    CHECK(ordma_qp_check_create(&nic.core, &init) == (it == user.end() && !port ? -EOPNOTSUPP : 0));
    if (it == user.end()) continue;
    nic.core.caps.bits &= ~it->second;
    CHECK(ordma_qp_check_create(&nic.core, &init) == -EOPNOTSUPP);
    nic.core.caps.bits |= it->second;
  }
}

TEST_CASE("QP capabilities: case_011, case_097, case_099") {
  FakeNic nic;
  nic.bring_up();
  auto check = [&](auto&& change) {
    auto init = base();
    change(init);
    return ordma_qp_check_create(&nic.core, &init);
  };
  using I = ordma_qp_init;
  CHECK(check([](I&) {}) == 0);
  CHECK(check([](I& i) { i.cap.max_send_wr = 17; }) == -EINVAL);
  CHECK(check([](I& i) { i.cap.max_send_wr = 16384, i.sq_log = 14; }) == 0);
  CHECK(check([](I& i) { i.cap.max_send_wr = 16385, i.sq_log = 15; }) == -EINVAL);
  CHECK(check([](I& i) { i.sq_log = 15; }) == -EINVAL);
  CHECK(check([](I& i) { i.sq_log = 33; }) == -EINVAL);
  CHECK(check([](I& i) { i.cap.max_send_sge = 6; }) == 0);
  CHECK(check([](I& i) { i.cap.max_send_sge = 7; }) == -EINVAL);
  CHECK(check([](I& i) { i.cap.max_send_sge = 16, i.sq_stride_log = 9; }) == 0);
  CHECK(check([](I& i) { i.cap.max_send_sge = 17, i.sq_stride_log = 9; }) == -EINVAL);
  CHECK(check([](I& i) { i.cap.max_inline = 96; }) == 0);
  CHECK(check([](I& i) { i.cap.max_inline = 97; }) == -EINVAL);
  CHECK(check([](I& i) { i.cap.max_inline = 448, i.sq_stride_log = 9; }) == 0);
  CHECK(check([](I& i) { i.cap.max_inline = 449, i.sq_stride_log = 9; }) == -EINVAL);
  CHECK(check([](I& i) { i.sq_stride_log = 10; }) == -EINVAL);
  CHECK(check([](I& i) { i.sq_stride_log = 5; }) == -EINVAL);
  CHECK(check([](I& i) { i.sq_stride_log = 0; }) == -EINVAL);
  CHECK(check([](I& i) { i.cap.max_send_wr = 0, i.sq_stride_log = 0, i.sq_log = 0; }) == 0);
  CHECK(check([](I& i) { i.cap.max_recv_wr = 17; }) == -EINVAL);
  CHECK(check([](I& i) { i.cap.max_recv_sge = 3; }) == 0);
  CHECK(check([](I& i) { i.cap.max_recv_sge = 4; }) == -EINVAL);
  CHECK(check([](I& i) { i.cap.max_recv_sge = 17, i.rq_stride_log = 9; }) == -EINVAL);
  CHECK(check([](I& i) { i.rq_stride_log = 10; }) == -EINVAL);
  CHECK(check([](I& i) { i.rq_log = 15; }) == -EINVAL);
  CHECK(check([](I& i) { i.rq_stride_log = 0; }) == -EINVAL);
  CHECK(check([](I& i) { i.cap.max_recv_wr = 0, i.rq_stride_log = 0, i.rq_log = 0; }) == 0);
  CHECK(check([](I& i) { i.has_srq = true; }) == -EINVAL);
  auto srq = [](I& i) { i.has_srq = true, i.rq_stride_log = 0, i.rq_log = 0; };
  CHECK(check(srq) == 0);
  CHECK(check([&](I& i) { srq(i), i.cap.max_recv_wr = ~0u, i.cap.max_recv_sge = ~0u; }) == 0);
  CHECK(check([](I& i) { i.cap.max_send_sge = ~0u; }) == -EINVAL);
  CHECK(check([](I& i) { i.cap.max_recv_sge = ~0u; }) == -EINVAL);
  nic.core.caps.bits &= ~std::uint64_t{ORDMA_CAP_SRQ};
  CHECK(check(srq) == -EOPNOTSUPP);
  // A datagram carries its address vector in the WQE.
  auto ud = base(ORDMA_QP_TYPE_UD);
  ud.cap.max_inline = 64;
  CHECK(ordma_qp_check_create(&nic.core, &ud) == 0);
  ud.cap.max_inline = 65;
  CHECK(ordma_qp_check_create(&nic.core, &ud) == -EINVAL);
}

TEST_CASE("geometry always passes the check and never shrinks what was asked") {
  FakeNic nic;
  nic.bring_up();
  std::mt19937 rng(5);
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    ordma_qp_init init{};
    const ordma_qp_type types[] = {ORDMA_QP_TYPE_RC, ORDMA_QP_TYPE_UC, ORDMA_QP_TYPE_UD,
                                   ORDMA_QP_TYPE_GSI};
    init.type = types[rng() % 4];
    init.cap = {static_cast<u32>(rng() % 17000), static_cast<u32>(rng() % 17000),
                static_cast<u32>(rng() % 18), static_cast<u32>(rng() % 18),
                static_cast<u32>(rng() % 460)};
    if (rng() % 8 == 0) init.cap.max_send_wr = 0;
    if (rng() % 8 == 0) init.cap.max_recv_wr = 0;
    init.has_srq = rng() % 4 == 0;
    const auto asked = init.cap;
    const int err = ordma_qp_geometry(&nic.core, &init);
    const bool fits = asked.max_send_wr <= 16384 && asked.max_send_sge <= 16 &&
                      asked.max_inline <= 448 &&
                      (init.has_srq || (asked.max_recv_wr <= 16384 && asked.max_recv_sge <= 16));
    REQUIRE((err == 0) == fits);
    if (err) continue;
    ++good;
    REQUIRE(ordma_qp_check_create(&nic.core, &init) == 0);
    REQUIRE(init.cap.max_send_wr >= asked.max_send_wr);
    REQUIRE(init.cap.max_send_sge >= asked.max_send_sge);
    REQUIRE(init.cap.max_inline >= asked.max_inline);
    REQUIRE(init.cap.max_recv_wr >= asked.max_recv_wr);
    REQUIRE(init.cap.max_recv_sge >= asked.max_recv_sge);
    REQUIRE(ordma_qp_log_bytes(&init) >= 16 * init.cap.max_send_wr);
  }
  CHECK(good > 5000);
}

TEST_CASE("memory that a QP needs") {
  FakeNic nic;
  nic.bring_up();
  auto init = base();
  CHECK(ordma_qp_log_bytes(&init) == 16 * 64);
  init.sq_log = 10;
  CHECK(ordma_qp_log_bytes(&init) == 16 * 1024);
  CHECK(ordma_qp_atomic_bytes(&nic.core, &init) == 16 * 16);
  nic.core.caps.max_rd_atomic = 17;
  CHECK(ordma_qp_atomic_bytes(&nic.core, &init) == 16 * 32);
  nic.core.caps.max_rd_atomic = 0;
  CHECK(ordma_qp_atomic_bytes(&nic.core, &init) == 0);
  init.sq_stride_log = 0;
  CHECK(ordma_qp_log_bytes(&init) == 0);
  auto ud = base(ORDMA_QP_TYPE_UD);
  CHECK(ordma_qp_atomic_bytes(&nic.core, &ud) == 0);
}

TEST_CASE("creation image") {
  FakeNic nic;
  nic.bring_up();
  ordma_qp qp{};
  nic.make_qp(&qp, 0xabc005, ORDMA_QP_TYPE_RC);
  CHECK(qp.state == ORDMA_QP_STATE_RESET);
  ordma_qpc image;
  ordma_cmd cmd;
  std::memset(&image, 0xff, sizeof image);
  std::memset(&cmd, 0xff, sizeof cmd);
  ordma_qp_create_cmd(&qp, &image, 0x77000, &cmd);
  const auto* args = reinterpret_cast<const ordma_cmd_qp*>(&cmd);
  CHECK(ORDMA_GET(&cmd, CMD_OPCODE) == ORDMA_CMD_OP_QP_CREATE);
  CHECK(ORDMA_GET(&cmd, CMD_NUMBER) == 0xabc005);
  CHECK(ORDMA_GET(args, CMD_QP_IMAGE) == 0x77000);
  CHECK(ORDMA_GET(args, CMD_QP_STATE) == 0);
  CHECK(ORDMA_GET(&image, QPC_QPN) == 0xabc005);
  CHECK(ORDMA_GET(&image, QPC_TYPE) == ORDMA_QP_TYPE_RC);
  CHECK(ORDMA_GET(&image, QPC_UCTX) == 1);
  CHECK(ORDMA_GET(&image, QPC_PD) == 3);
  CHECK(ORDMA_GET(&image, QPC_SCQN) == 4);
  CHECK(ORDMA_GET(&image, QPC_RCQN) == 5);
  CHECK(ORDMA_GET(&image, QPC_HAS_SRQ) == 0);
  CHECK(ORDMA_GET(&image, QPC_SQ_ADDR) == 0x10000);
  CHECK(ORDMA_GET(&image, QPC_SQ_LOG) == 4);
  CHECK(ORDMA_GET(&image, QPC_SQ_STRIDE_LOG) == qp.init.sq_stride_log);
  CHECK(ORDMA_GET(&image, QPC_SQ_PAGE_LOG) == 12);
  CHECK(ORDMA_GET(&image, QPC_SQ_LEVEL) == ORDMA_BUF_LEVEL_LIST);
  CHECK(ORDMA_GET(&image, QPC_RQ_ADDR) == 0x20000);
  CHECK(ORDMA_GET(&image, QPC_RQ_LOG) == 4);
  CHECK(ORDMA_GET(&image, QPC_RQ_STRIDE_LOG) == qp.init.rq_stride_log);
  CHECK(ORDMA_GET(&image, QPC_RQ_PAGE_LOG) == 13);
  CHECK(ORDMA_GET(&image, QPC_RQ_LEVEL) == ORDMA_BUF_LEVEL_TREE);
  CHECK(ORDMA_GET(&image, QPC_LOG_LOG) == 6);
  CHECK(ORDMA_GET(&image, QPC_LOG_ADDR) == 0x30000);
  CHECK(ORDMA_GET(&image, QPC_ATOMIC_ADDR) == 0x40000);
  CHECK(ORDMA_GET(&image, QPC_SILENCE) == 0);
}

TEST_CASE("the device is the authority on ERR and SQE") {
  FakeNic nic;
  nic.bring_up();
  ordma_qp qp{};
  nic.make_qp(&qp, 5, ORDMA_QP_TYPE_UD);
  auto sync = [&](unsigned ours, unsigned device) {
    ordma_progress p{};
    qp.state = ours;
    ORDMA_SET(&p, PROGRESS_STATE, device);
    ordma_qp_sync(&qp, &p);
    return qp.state;
  };
  for (unsigned ours = 0; ours <= 6; ++ours) {
    for (unsigned device = 0; device < 256; ++device) {
      const bool error = device == ORDMA_QP_STATE_ERR || device == ORDMA_QP_STATE_SQE;
      CHECK(sync(ours, device) == (error && ours != ORDMA_QP_STATE_RESET ? device : ours));
    }
  }
}

TEST_CASE("query") {
  FakeNic nic;
  nic.bring_up();
  ordma_qp qp{};
  nic.make_qp(&qp, 5, ORDMA_QP_TYPE_RC);
  ordma_cmd cmd;
  ordma_qp_query_cmd(&qp, 0x9000, &cmd);
  CHECK(ORDMA_GET(&cmd, CMD_OPCODE) == ORDMA_CMD_OP_QP_QUERY);
  CHECK(ORDMA_GET(reinterpret_cast<ordma_cmd_qp*>(&cmd), CMD_QP_IMAGE) == 0x9000);
  ordma_progress p{};
  ordma_qp_attr out{};
  ORDMA_SET(&p, PROGRESS_DRAINING, 1);
  qp.state = ORDMA_QP_STATE_SQD;
  ordma_qp_query(&qp, &p, &out);
  CHECK(out.qp_state == ORDMA_QP_STATE_SQD);
  CHECK(out.cur_qp_state == ORDMA_QP_STATE_SQD);
  CHECK(out.sq_draining == 1);
  ordma_qp_query(&qp, nullptr, &out);
  CHECK(out.sq_draining == 0);
  qp.state = ORDMA_QP_STATE_RTS;
  ordma_qp_query(&qp, &p, &out);
  CHECK(out.sq_draining == 0);
}
