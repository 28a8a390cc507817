// SPDX-License-Identifier: BSD-2-Clause
// ibv_wr_*: work requests built call by call.
#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "checks.hpp"

using namespace ordma::test;

namespace {

constexpr std::uint64_t kRcOps =
    std::uint64_t{IBV_QP_EX_WITH_SEND} | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

EndOptions built() {
  EndOptions options;
  options.send_ops = kRcOps;
  return options;
}

ibv_qp_ex* begin(Pair& p, std::uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(p.a.qp.get());
  REQUIRE(qp != nullptr);
  ibv_wr_start(qp);
  qp->wr_id = wr_id;
  qp->wr_flags = flags;
  return qp;
}

void start_zero(ibv_qp_ex* qp, int opcode) {
  constexpr std::uint32_t kKey = 0x12345678;  // of no MR: no byte, no check
  constexpr std::uint64_t kAddr = 0xdeadbeef000;
  switch (opcode) {
    case IBV_WR_SEND: ibv_wr_send(qp); break;
    case IBV_WR_SEND_WITH_IMM: ibv_wr_send_imm(qp, htonl(7)); break;
    case IBV_WR_RDMA_WRITE: ibv_wr_rdma_write(qp, kKey, kAddr); break;
    case IBV_WR_RDMA_WRITE_WITH_IMM: ibv_wr_rdma_write_imm(qp, kKey, kAddr, htonl(7)); break;
    default: ibv_wr_rdma_read(qp, kKey, kAddr); break;
  }
}

}  // namespace

TEST_CASE("case_007 zero bytes by ibv_wr_*", "[rc]") {
  const bool loopback = both_ways();
  const int opcode = GENERATE(as<int>{}, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                              IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ);
  const int form = GENERATE(range(0, 4));
  Pair p(loopback, built());
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  REQUIRE(p.b.post_recv(1) == 0);
  ibv_qp_ex* const qp = begin(p, 2);
  start_zero(qp, opcode);
  switch (form) {
    case 0: break;  // no setter at all
    case 1: ibv_wr_set_sge(qp, from.lkey(), from.addr(), 0); break;
    case 2: ibv_wr_set_sge(qp, 0, from.addr(), 0); break;
    default: ibv_wr_set_sge_list(qp, 0, nullptr); break;
  }
  CAPTURE(loopback, opcode, form);
  REQUIRE(ibv_wr_complete(qp) == 0);
  const auto sent = p.a.wait_send();
  REQUIRE(status(sent) == IBV_WC_SUCCESS);
  CHECK(sent->wr_id == 2);
  if (opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_RDMA_READ) {
    const auto wc = p.b.wait_recv();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->byte_len == 0);
  }
}

TEST_CASE("case_100 every operation", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, built());
  Buffer local(p.a.pd.get(), 4096), remote(p.b.pd.get(), 4096);
  local.fill(3);
  REQUIRE(p.b.post_recv(1, std::array{remote.sge(2048, 1024)}) == 0);
  REQUIRE(p.b.post_recv(2) == 0);
  ibv_qp_ex* qp = begin(p, 10);
  ibv_wr_send_imm(qp, htonl(0xa1b2c3d4));
  const std::array list{local.sge(0, 500), local.sge(500, 524)};
  ibv_wr_set_sge_list(qp, list.size(), list.data());
  qp->wr_id = 11;
  ibv_wr_rdma_write_imm(qp, remote.rkey(), remote.addr(), htonl(5));
  ibv_wr_set_sge(qp, local.lkey(), local.addr(), 1024);
  qp->wr_id = 12;
  ibv_wr_rdma_read(qp, remote.rkey(), remote.addr());
  ibv_wr_set_sge(qp, local.lkey(), local.addr(2048), 1024);
  qp->wr_id = 13;
  ibv_wr_atomic_fetch_add(qp, remote.rkey(), remote.addr(4088), 9);
  ibv_wr_set_sge(qp, local.lkey(), local.addr(4088), 8);
  qp->wr_id = 14;
  ibv_wr_atomic_cmp_swp(qp, remote.rkey(), remote.addr(4088), 9, 77);
  ibv_wr_set_sge(qp, local.lkey(), local.addr(4080), 8);
  REQUIRE(ibv_wr_complete(qp) == 0);
  const std::array<int, 5> opcodes{IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_FETCH_ADD,
                                   IBV_WC_COMP_SWAP};
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto wc = p.a.wait_send();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->wr_id == 10 + i);
    CHECK(wc->opcode == opcodes[i]);
  }
  const auto r = p.b.wait_recv();
  REQUIRE(status(r) == IBV_WC_SUCCESS);
  CHECK(ntohl(r->imm_data) == 0xa1b2c3d4);
  CHECK(r->byte_len == 1024);
  CHECK(std::memcmp(remote.data() + 2048, local.data(), 1024) == 0);
  CHECK(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
  CHECK(remote.holds(3, 0, 1024));
  CHECK(std::memcmp(local.data() + 2048, local.data(), 1024) == 0);
  std::uint64_t old_add = 1, old_swap = 1, now = 0;
  std::memcpy(&old_add, local.data() + 4088, 8);
  std::memcpy(&old_swap, local.data() + 4080, 8);
  std::memcpy(&now, remote.data() + 4088, 8);
  CHECK(old_add == 0);
  CHECK(old_swap == 9);
  CHECK(now == 77);
}

TEST_CASE("case_100 abort discards", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, built());
  Buffer local(p.a.pd.get(), 64), remote(p.b.pd.get(), 64);
  local.fill(1);
  for (int i = 0; i < 200; ++i) {  // more often than the queue has slots
    ibv_qp_ex* const qp = begin(p, 1);
    ibv_wr_rdma_write(qp, remote.rkey(), remote.addr());
    ibv_wr_set_sge(qp, local.lkey(), local.addr(), 64);
    ibv_wr_abort(qp);
  }
  CHECK_FALSE(p.a.wait_send(kNever).has_value());
  CHECK(remote.all(0, 0, 64));
  ibv_qp_ex* const qp = begin(p, 2);
  ibv_wr_rdma_write(qp, remote.rkey(), remote.addr(32));
  ibv_wr_set_sge(qp, local.lkey(), local.addr(32), 32);
  REQUIRE(ibv_wr_complete(qp) == 0);
  const auto wc = p.a.wait_send();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->wr_id == 2);
  CHECK(remote.all(0, 0, 32));
}

TEST_CASE("case_100 one setter that fails fails the whole section", "[rc]") {
  const bool loopback = both_ways();
  const int kind = GENERATE(range(0, 4));
  Pair p(loopback, built());
  const ibv_qp_cap cap = query(p.a.qp.get()).cap;
  Buffer local(p.a.pd.get(), 4096), remote(p.b.pd.get(), 64);
  local.fill(1);
  ibv_qp_ex* const qp = begin(p, 1);
  ibv_wr_rdma_write(qp, remote.rkey(), remote.addr());
  ibv_wr_set_sge(qp, local.lkey(), local.addr(), 64);
  qp->wr_id = 2;
  std::vector<ibv_sge> many(cap.max_send_sge + 1, local.sge(0, 1));
  switch (kind) {
    case 0:
      ibv_wr_rdma_write(qp, remote.rkey(), remote.addr());
      ibv_wr_set_sge_list(qp, many.size(), many.data());
      break;
    case 1:
      ibv_wr_rdma_write(qp, remote.rkey(), remote.addr());
      ibv_wr_set_inline_data(qp, local.data(), cap.max_inline_data + 1);
      break;
    case 2:
      ibv_wr_rdma_read(qp, remote.rkey(), remote.addr());
      ibv_wr_set_inline_data(qp, local.data(), 8);
      break;
    default:
      ibv_wr_atomic_fetch_add(qp, remote.rkey(), remote.addr(), 1);
      ibv_wr_set_sge(qp, local.lkey(), local.addr(), 4);
      break;
  }
  qp->wr_id = 3;
  ibv_wr_rdma_write(qp, remote.rkey(), remote.addr());
  ibv_wr_set_sge(qp, local.lkey(), local.addr(), 64);
  CAPTURE(loopback, kind);
  CHECK(ibv_wr_complete(qp) == EINVAL);
  CHECK_FALSE(p.a.wait_send(kNever).has_value());
  CHECK(remote.all(0, 0, 64));
  REQUIRE(p.a.post_send(write_wr(4, remote), std::array{local.sge(0, 64)}) == 0);
  const auto wc = p.a.wait_send();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->wr_id == 4);
}

TEST_CASE("case_100 a full queue is ENOMEM and posts nothing", "[rc]") {
  const bool loopback = both_ways();
  EndOptions options = built();
  options.send_wr = 4;
  Pair p(loopback, options);
  const std::uint32_t depth = query(p.a.qp.get()).cap.max_send_wr;
  ibv_qp_ex* qp = begin(p, 0, 0);
  for (std::uint32_t i = 0; i <= depth; ++i) {
    ibv_wr_send(qp);
  }
  CHECK(ibv_wr_complete(qp) == ENOMEM);
  REQUIRE(p.b.post_recv(1) == 0);
  CHECK_FALSE(p.b.wait_recv(kNever).has_value());
  qp = begin(p, 5);
  ibv_wr_send(qp);
  REQUIRE(ibv_wr_complete(qp) == 0);
  CHECK(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
}

TEST_CASE("case_100 flags belong to one work request", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, built());
  Buffer local(p.a.pd.get(), 64), remote(p.b.pd.get(), 64);
  ibv_qp_ex* const qp = begin(p, 1, 0);
  ibv_wr_rdma_write(qp, remote.rkey(), remote.addr());
  ibv_wr_set_inline_data(qp, local.data(), 8);
  qp->wr_id = 2;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(qp, remote.rkey(), remote.addr());
  ibv_wr_set_sge(qp, local.lkey(), local.addr(), 8);
  qp->wr_id = 3;
  qp->wr_flags = 0;
  ibv_wr_rdma_write(qp, remote.rkey(), remote.addr());
  ibv_wr_set_sge(qp, local.lkey(), local.addr(), 8);
  qp->wr_id = 4;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(qp, remote.rkey(), remote.addr());
  ibv_wr_set_sge(qp, local.lkey(), local.addr(), 8);
  REQUIRE(ibv_wr_complete(qp) == 0);
  CHECK(p.a.wait_send()->wr_id == 2);
  CHECK(p.a.wait_send()->wr_id == 4);
  CHECK_FALSE(p.a.wait_send(kNever).has_value());
}

TEST_CASE("case_100 inline lists", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, built());
  Buffer remote(p.b.pd.get(), 64);
  std::array<char, 5> a{'h', 'e', 'l', 'l', 'o'};
  std::array<char, 6> b{' ', 'w', 'o', 'r', 'l', 'd'};
  const std::array<ibv_data_buf, 3> list{{{a.data(), 5}, {nullptr, 0}, {b.data(), 6}}};
  ibv_qp_ex* const qp = begin(p, 1);
  ibv_wr_rdma_write(qp, remote.rkey(), remote.addr());
  ibv_wr_set_inline_data_list(qp, list.size(), list.data());
  REQUIRE(ibv_wr_complete(qp) == 0);
  a.fill('x');
  b.fill('x');
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  CHECK(std::memcmp(remote.data(), "hello world", 11) == 0);
  CHECK(remote.all(0, 11, 53));
}

TEST_CASE("case_100 posts in a state that cannot send", "[rc]") {
  Pair p(true, built(), {}, false);
  ibv_qp_ex* const qp = begin(p, 1);
  ibv_wr_send(qp);
  CHECK(ibv_wr_complete(qp) == EINVAL);
}

TEST_CASE("case_100 what cannot be built is refused at creation", "[rc][ud]") {
  End end(device_names().at(0));
  const auto create = [&](ibv_qp_type type, std::uint64_t ops) {
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = type;
    attr.send_cq = attr.recv_cq = end.scq.get();
    attr.cap = {4, 4, 1, 1, 0};
    attr.pd = end.pd.get();
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = ops;
    errno = 0;
    Qp qp(ibv_create_qp_ex(end.ctx.get(), &attr));
    return qp != nullptr ? 0 : errno;
  };
  CHECK(create(IBV_QPT_RC, kRcOps) == 0);
  CHECK(create(IBV_QPT_RC, kRcOps | IBV_QP_EX_WITH_LOCAL_INV) == EOPNOTSUPP);
  CHECK(create(IBV_QPT_RC, kRcOps | IBV_QP_EX_WITH_BIND_MW) == EOPNOTSUPP);
  CHECK(create(IBV_QPT_RC, kRcOps | IBV_QP_EX_WITH_SEND_WITH_INV) == EOPNOTSUPP);
  CHECK(create(IBV_QPT_RC, IBV_QP_EX_WITH_TSO) == EOPNOTSUPP);
  CHECK(create(IBV_QPT_RC, std::uint64_t{1} << 40) == EOPNOTSUPP);
  CHECK(create(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM) == 0);
  CHECK(create(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE) == EOPNOTSUPP);
  CHECK(create(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE) == 0);
  CHECK(create(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ) == EOPNOTSUPP);
}
