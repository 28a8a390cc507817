// SPDX-License-Identifier: BSD-2-Clause
// Unreliable connections: what RC does, without the answers.
#include <arpa/inet.h>

#include <cerrno>

#include "checks.hpp"

using namespace ordma::test;

namespace {

EndOptions unreliable() {
  EndOptions options;
  options.type = IBV_QPT_UC;
  return options;
}

}  // namespace

TEST_CASE("UC SEND and WRITE of several packets", "[uc]") {
  const bool loopback = both_ways();
  const std::size_t size = GENERATE(as<std::size_t>{}, 0, 1, 1024, 1025, 10000);
  Pair p(loopback, unreliable());
  Buffer from(p.a.pd.get(), 10000), to(p.b.pd.get(), 10000);
  from.fill(2);
  const std::array sges{from.sge(0, size)};
  CAPTURE(loopback, size);
  REQUIRE(p.b.post_recv(1, std::array{to.sge(0, 10000)}) == 0);
  REQUIRE(p.a.post_send(send_wr(2), sges) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  auto wc = p.b.wait_recv();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->byte_len == size);
  CHECK(to.holds(2, 0, size));
  to.clear();
  REQUIRE(p.b.post_recv(3) == 0);
  auto wr = write_wr(4, to);
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = htonl(0xfeedbeef);
  REQUIRE(p.a.post_send(wr, sges) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  wc = p.b.wait_recv();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM);
  CHECK(ntohl(wc->imm_data) == 0xfeedbeef);
  CHECK(wc->byte_len == size);
  CHECK(to.holds(2, 0, size));
}

TEST_CASE("UC drops a message that meets no receive, and takes the next", "[uc]") {
  const bool loopback = both_ways();
  Pair p(loopback, unreliable());
  Buffer from(p.a.pd.get(), 3000), to(p.b.pd.get(), 3000);
  const std::array sges{from.sge(0, 3000)};
  REQUIRE(p.a.post_send(send_wr(1), sges) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  CHECK_FALSE(p.b.wait_recv(kNever).has_value());
  REQUIRE(p.b.post_recv(2, std::array{to.sge(0, 3000)}) == 0);
  REQUIRE(p.a.post_send(send_wr(3), sges) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  const auto wc = p.b.wait_recv();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->wr_id == 2);
  CHECK(wc->byte_len == 3000);
}

TEST_CASE("UC has no READ and no atomics", "[uc]") {
  Pair p(true, unreliable());
  Buffer local(p.a.pd.get(), 64), remote(p.b.pd.get(), 64);
  CHECK(p.a.post_send(read_wr(1, remote), std::array{local.sge(0, 64)}) == EINVAL);
  CHECK(p.a.post_send(fetch_add_wr(1, remote, 1), std::array{local.sge(0, 8)}) == EINVAL);
}

TEST_CASE("a refused UC WRITE leaves no byte and no trace at the sender", "[uc]") {
  const bool loopback = both_ways();
  Pair p(loopback, unreliable());
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  from.fill(1);
  auto wr = write_wr(1, to);
  wr.wr.rdma.rkey ^= 0x00ff0000;
  REQUIRE(p.a.post_send(wr, std::array{from.sge(0, 64)}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  CHECK(query(p.a.qp.get()).qp_state == IBV_QPS_RTS);
  CHECK(to.all(0, 0, 64));
}
