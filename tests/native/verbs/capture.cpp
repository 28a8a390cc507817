// SPDX-License-Identifier: BSD-2-Clause
// Traffic for a capture. Each test has PSNs of its own, by which tests/native/capture.py finds its packets and says what must be
// in them; both ends are on different NICs.
#include <arpa/inet.h>

#include "checks.hpp"

using namespace ordma::test;

namespace {

// PSNs of A begin at `psn`; those of B far enough behind.
Link numbered(std::uint32_t psn) {
  Link link;
  link.psn_a = psn;
  link.psn_b = psn + 0x8000;
  return link;
}

int send_one(Pair& p, ibv_send_wr wr, std::span<const ibv_sge> sges) {
  REQUIRE(p.a.post_send(wr, sges) == 0);
  return status(p.a.wait_send());
}

}  // namespace

TEST_CASE("case_007 on the wire: zero bytes are one packet", "[.][capture]") {
  Pair p(false, {}, numbered(0x070000));
  REQUIRE(p.b.post_recv(1) == 0);
  CHECK(send_one(p, send_wr(1), {}) == IBV_WC_SUCCESS);
  auto wr = send_wr(2);
  wr.opcode = IBV_WR_RDMA_WRITE;
  CHECK(send_one(p, wr, {}) == IBV_WC_SUCCESS);
  wr.opcode = IBV_WR_RDMA_READ;
  CHECK(send_one(p, wr, {}) == IBV_WC_SUCCESS);
}

TEST_CASE("case_009 on the wire: byte order of immediate data", "[.][capture]") {
  Pair p(false, {}, numbered(0x090000));
  REQUIRE(p.b.post_recv(1) == 0);
  auto wr = send_wr(1);
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = htonl(0x89abcdef);
  CHECK(send_one(p, wr, {}) == IBV_WC_SUCCESS);
}

TEST_CASE("case_030 on the wire: how often a receiver is asked", "[.][capture]") {
  for (const std::uint8_t retry : {0, 3}) {
    Link link = numbered(retry == 0 ? 0x300000 : 0x301000);
    link.rnr_retry = retry;
    link.min_rnr = 12;
    link.timeout = 18;  // 1 s: nothing but RNR
    Pair p(false, {}, link);
    CHECK(send_one(p, send_wr(1), {}) == IBV_WC_RNR_RETRY_EXC_ERR);
  }
}

TEST_CASE("case_031 on the wire: one try and two retries", "[.][capture]") {
  Link link = numbered(0x310000);
  link.retry = 2;
  link.timeout = 12;
  Pair p(false, {}, link);
  Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), 8);
  REQUIRE(set_state(p.b.qp.get(), IBV_QPS_RESET) == 0);
  CHECK(send_one(p, write_wr(1, to), std::array{from.sge(0, 8)}) == IBV_WC_RETRY_EXC_ERR);
}

TEST_CASE("case_035 on the wire: hop limit and traffic class", "[.][capture]") {
  for (const std::uint8_t hops : {9, 0}) {
    Link link = numbered(hops == 9 ? 0x350000 : 0x351000);
    link.hop_limit = hops;
    link.traffic_class = 0x68;
    Pair p(false, {}, link);
    Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), 8);
    CHECK(send_one(p, write_wr(1, to), std::array{from.sge(0, 8)}) == IBV_WC_SUCCESS);
  }
}

TEST_CASE("case_050 on the wire: atomics are big endian", "[.][capture]") {
  Pair p(false, {}, numbered(0x500000));
  Buffer result(p.a.pd.get(), 8), target(p.b.pd.get(), 8);
  const std::array sges{result.sge(0, 8)};
  CHECK(send_one(p, fetch_add_wr(1, target, 0x0123456789abcdef), sges) == IBV_WC_SUCCESS);
  const auto swap = cmp_swap_wr(2, target, 0x0123456789abcdef, 0x1122334455667788);
  CHECK(send_one(p, swap, sges) == IBV_WC_SUCCESS);
}

TEST_CASE("case_070 on the wire: bits of the BTH", "[.][capture]") {
  Pair p(false, {}, numbered(0x700000));
  Buffer from(p.a.pd.get(), 2050), to(p.b.pd.get(), 2050);
  REQUIRE(p.b.post_recv(1, std::array{to.sge(0, 2050)}) == 0);
  const auto wr = send_wr(1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
  CHECK(send_one(p, wr, std::array{from.sge(0, 2050)}) == IBV_WC_SUCCESS);
}

TEST_CASE("case_069 on the wire: every padding of every kind of message", "[.][capture]") {
  const auto type = GENERATE(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD);
  EndOptions options;
  options.type = type;
  Pair p(false, options, numbered(0x690000));
  Buffer from(p.a.pd.get(), 4096), to(p.b.pd.get(), 4096);
  from.fill(1);
  const Ah ah = make_ah(p.a.pd.get(), p.b.gid());
  for (std::size_t size = 1; size <= 8; ++size) {
    for (const bool imm : {false, true}) {
      REQUIRE(p.b.post_recv(size, std::array{to.sge(0, 4096)}) == 0);
      auto wr = send_wr(size);
      wr.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
      wr.wr.ud.ah = ah.get();
      wr.wr.ud.remote_qpn = p.b.qp->qp_num;
      wr.wr.ud.remote_qkey = p.link.qkey;
      CHECK(send_one(p, wr, std::array{from.sge(0, size)}) == IBV_WC_SUCCESS);
      CHECK(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
    }
  }
  for (std::size_t size = 2045; type != IBV_QPT_UD && size <= 2052; ++size) {
    const std::array sges{from.sge(0, size)};
    CHECK(send_one(p, write_wr(size, to), sges) == IBV_WC_SUCCESS);
    if (type == IBV_QPT_RC) {
      CHECK(send_one(p, read_wr(size, to), sges) == IBV_WC_SUCCESS);
    }
  }
}
