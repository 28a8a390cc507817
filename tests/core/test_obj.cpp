// SPDX-License-Identifier: BSD-2-Clause
#include <catch2/catch.hpp>

#include "fake_nic.hpp"

using ordma::test::FakeNic;

TEST_CASE("MR access rules: case_039, case_045, case_047, case_048") {
  FakeNic nic;
  nic.bring_up();
  auto check = [&](std::uint32_t access, std::uint64_t length = 4096, std::uint64_t iova = 0) {
    return ordma_mr_check(&nic.core, iova, length, access);
  };
  for (std::uint32_t access = 0; access < 16; ++access) {
    const bool changes = access & (2 | 8), local = access & 1;
    INFO("access " << access);
    CHECK(check(access) == (changes && !local ? -EINVAL : 0));
  }
  CHECK(check(1u << 20) == 0);
  CHECK(check(0x3ffu << 20) == 0);
  CHECK(check((0x3ffu << 20) | 0xf) == 0);
  CHECK(check(1u << 30) == -EINVAL);
  CHECK(check(1u << 31) == -EINVAL);
  CHECK(check(1u << 10) == -EINVAL);
  CHECK(check(1u << 19) == -EINVAL);
  CHECK(check(ORDMA_IB_ACCESS_ON_DEMAND | 1) == -EOPNOTSUPP);
  CHECK(check(ORDMA_IB_ACCESS_ON_DEMAND, ~0ull, 0) == -EOPNOTSUPP);
  CHECK(check(ORDMA_IB_ACCESS_MW_BIND | 1) == -EOPNOTSUPP);
  CHECK(check(1u << 8) == -EOPNOTSUPP);
  CHECK(check(ORDMA_IB_ACCESS_ZERO_BASED | 1) == 0);
  CHECK(check(ORDMA_IB_ACCESS_HUGETLB | 1) == 0);
  CHECK(check(1, 0) == -EINVAL);
  CHECK(check(1, 1) == 0);
  CHECK(check(1, 1, ~0ull) == 0);
  CHECK(check(1, 2, ~0ull) == -EINVAL);
  CHECK(check(1, ~0ull, 0) == -ENOMEM);
  CHECK(check(1, ~0ull, 1) == -ENOMEM);
  CHECK(check(1, ~0ull, 2) == -EINVAL);
  CHECK(check(1, ORDMA_MAX_MR_SIZE) == 0);
  CHECK(check(1, ORDMA_MAX_MR_SIZE + 1) == -ENOMEM);
  nic.core.caps.bits &= ~std::uint64_t{ORDMA_CAP_ATOMIC};
  CHECK(check(1 | 8) == -EOPNOTSUPP);
}

TEST_CASE("CQ sizes: case_021") {
  FakeNic nic;
  nic.bring_up();
  ordma_core_set_vectors(&nic.core, 3);
  const auto max = nic.core.caps.max_cqe;
  CHECK(ordma_cq_log(&nic.core, 0) == -EINVAL);
  CHECK(ordma_cq_log(&nic.core, 1) == 0);
  CHECK(ordma_cq_log(&nic.core, 2) == 1);
  CHECK(ordma_cq_log(&nic.core, 3) == 2);
  CHECK(ordma_cq_log(&nic.core, max) == 20);
  CHECK(ordma_cq_log(&nic.core, max + 1) == -EINVAL);
  CHECK(ordma_cq_log(&nic.core, 0xffffffff) == -EINVAL);
  for (const std::uint32_t cqe : {1u, 2u, 3u, 100u, max}) {
    const auto log = static_cast<std::uint32_t>(ordma_cq_log(&nic.core, cqe));
    CHECK((1u << log) >= cqe);
    CHECK(ordma_cq_check(&nic.core, cqe, log, 0) == 0);
    CHECK(ordma_cq_resize_check(&nic.core, cqe, log) == 0);
    if (log) CHECK(ordma_cq_check(&nic.core, cqe, log - 1, 0) == -EINVAL);
  }
  CHECK(ordma_cq_check(&nic.core, 10, 20, 2) == 0);
  CHECK(ordma_cq_check(&nic.core, 10, 21, 2) == -EINVAL);
  CHECK(ordma_cq_check(&nic.core, 10, 0xffffffff, 2) == -EINVAL);
  CHECK(ordma_cq_check(&nic.core, 10, 4, 3) == -EINVAL);
  nic.core.caps.bits &= ~std::uint64_t{ORDMA_CAP_RESIZE_CQ};
  CHECK(ordma_cq_resize_check(&nic.core, 10, 4) == -EOPNOTSUPP);

  ordma_cq cq{4, 1, 0, 3, {0x1000, 12, 1}, 0x2000};
  const ordma_buf buf{0x5000, 13, 2};
  ordma_cq_resize_done(&cq, 5, &buf, 0x6000);
  CHECK(cq.log == 5);
  CHECK(cq.buf.addr == 0x5000);
  CHECK(cq.record == 0x6000);
}

TEST_CASE("SRQ: case_076") {
  FakeNic nic;
  nic.bring_up();
  std::uint32_t log = 99, stride = 99;
  CHECK(ordma_rq_geometry(&nic.core, 0, 1, &log, &stride) == -EINVAL);
  CHECK(ordma_rq_geometry(&nic.core, 16385, 1, &log, &stride) == -EINVAL);
  CHECK(ordma_rq_geometry(&nic.core, 16, 17, &log, &stride) == -EINVAL);
  REQUIRE(ordma_rq_geometry(&nic.core, 16384, 16, &log, &stride) == 0);
  CHECK(log == 14);
  CHECK(stride == 9);
  REQUIRE(ordma_rq_geometry(&nic.core, 1, 0, &log, &stride) == 0);
  CHECK(log == 0);
  CHECK(stride == ORDMA_RQ_STRIDE_LOG_MIN);
  REQUIRE(ordma_rq_geometry(&nic.core, 17, 3, &log, &stride) == 0);
  CHECK(log == 5);
  CHECK(stride == 6);

  CHECK(ordma_srq_check(&nic.core, 100, 3, 100, 7, 6) == 0);
  CHECK(ordma_srq_check(&nic.core, 100, 3, 101, 7, 6) == -EINVAL);
  CHECK(ordma_srq_check(&nic.core, 100, 3, 0, 6, 6) == -EINVAL);
  CHECK(ordma_srq_check(&nic.core, 100, 3, 0, 15, 6) == -EINVAL);
  CHECK(ordma_srq_check(&nic.core, 100, 3, 0, 7, 5) == -EINVAL);
  CHECK(ordma_srq_check(&nic.core, 100, 3, 0, 7, 10) == -EINVAL);

  ordma_srq srq{};
  srq.max_wr = 100;
  CHECK(ordma_srq_modify_check(&nic.core, &srq, ORDMA_SRQ_LIMIT, 100) == 0);
  CHECK(ordma_srq_modify_check(&nic.core, &srq, ORDMA_SRQ_LIMIT, 101) == -EINVAL);
  CHECK(ordma_srq_modify_check(&nic.core, &srq, 0, 101) == 0);
  CHECK(ordma_srq_modify_check(&nic.core, &srq, 4, 1) == -EINVAL);
  CHECK(ordma_srq_modify_check(&nic.core, &srq, ORDMA_SRQ_MAX_WR, 1) == -EOPNOTSUPP);
  ordma_srq_modify_done(&srq, 8);
  CHECK(srq.limit == 8);
  ordma_srq_limit_fired(&srq);
  CHECK(srq.limit == 0);
  // Armed below its level: the event comes before the response of the command.
  ordma_cmd cmd;
  ordma_cmd_srq_limit(&cmd, &srq, 50);
  ordma_srq_limit_fired(&srq);
  ordma_srq_modify_done(&srq, 50);
  CHECK(srq.limit == 0);
  ordma_cmd_srq_limit(&cmd, &srq, 50);
  ordma_srq_modify_done(&srq, 50);
  CHECK(srq.limit == 50);
  nic.core.caps.bits &= ~std::uint64_t{ORDMA_CAP_SRQ};
  CHECK(ordma_srq_check(&nic.core, 100, 3, 0, 7, 6) == -EOPNOTSUPP);
}

TEST_CASE("page lists") {
  ordma_pbl pbl{};
  CHECK(ordma_pbl_plan(&pbl, 0) == -EINVAL);
  CHECK(ordma_pbl_plan(&pbl, (ORDMA_MAX_MR_SIZE >> 12) + 1) == -EINVAL);
  REQUIRE(ordma_pbl_plan(&pbl, 1) == 0);
  CHECK(pbl.level == ORDMA_BUF_LEVEL_LIST);
  CHECK(pbl.leaves == 0);
  CHECK(pbl.top_bytes == 8);
  REQUIRE(ordma_pbl_plan(&pbl, 512) == 0);
  CHECK(pbl.level == ORDMA_BUF_LEVEL_LIST);
  CHECK(pbl.top_bytes == 4096);
  REQUIRE(ordma_pbl_plan(&pbl, 513) == 0);
  CHECK(pbl.level == ORDMA_BUF_LEVEL_TREE);
  CHECK(pbl.leaves == 2);
  CHECK(pbl.top_bytes == 16);
  REQUIRE(ordma_pbl_plan(&pbl, ORDMA_MAX_MR_SIZE >> 12) == 0);
  CHECK(pbl.leaves == 1u << 19);
  CHECK(pbl.top_bytes == 4u << 20);

  std::uint64_t block[2] = {};
  ordma_pbl_set(block, 1, 0x123456789000);
  CHECK(block[0] == 0);
  CHECK(block[1] == 0x123456789000);

  auto check = [](std::uint64_t addr, unsigned page_log, unsigned level) {
    const ordma_buf buf{addr, static_cast<std::uint8_t>(page_log),
                        static_cast<std::uint8_t>(level)};
    return ordma_buf_check(&buf);
  };
  CHECK(check(0x1001, 12, 0) == 0);
  CHECK(check(0x1008, 31, 1) == 0);
  CHECK(check(0x1004, 12, 1) == -EINVAL);
  CHECK(check(0x1000, 11, 1) == -EINVAL);
  CHECK(check(0x1000, 32, 2) == -EINVAL);
  CHECK(check(0x1000, 12, 3) == -EINVAL);
}
