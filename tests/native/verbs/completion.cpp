// SPDX-License-Identifier: BSD-2-Clause
// Completion and error semantics on RC: what each end sees, and that nothing is touched that must not be.
#include <arpa/inet.h>

#include "checks.hpp"

using namespace ordma::test;

TEST_CASE("RC write places exactly the bytes and completes", "[rc]") {
  const bool loopback = both_ways();
  const std::size_t size = GENERATE(as<std::size_t>{}, 1, 8, 1023, 1024, 1025, 4096, 65537);
  Pair p(loopback);
  Buffer from(p.a.pd.get(), size), to(p.b.pd.get(), size);
  from.fill(3);
  const std::array sges{from.sge(0, size)};
  REQUIRE(p.a.post_send(write_wr(42, to), sges) == 0);
  const auto wc = p.a.wait_send();
  CAPTURE(loopback, size);
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->wr_id == 42);
  CHECK(wc->opcode == IBV_WC_RDMA_WRITE);
  CHECK(wc->qp_num == p.a.qp->qp_num);
  CHECK(to.holds(3, 0, size));
  CHECK(to.canaries_intact());
}

TEST_CASE("case_001 everything flushes in order, also what is posted in ERR", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer buf(p.a.pd.get(), 64);
  const std::array sges{buf.sge(0, 64)};
  for (std::uint64_t i = 0; i < 16; ++i) {
    REQUIRE(p.a.post_recv(i, sges) == 0);
  }
  REQUIRE(p.b.to_error() == 0);  // the peer answers no more
  for (std::uint64_t i = 0; i < 16; ++i) {
    REQUIRE(p.a.post_send(send_wr(100 + i, 0), sges) == 0);
  }
  REQUIRE(p.a.to_error() == 0);
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE(p.a.post_send(send_wr(116 + i, 0), sges) == 0);
    REQUIRE(p.a.post_recv(16 + i, sges) == 0);
  }
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto s = p.a.wait_send();
    const auto r = p.a.wait_recv();
    REQUIRE(status(s) == IBV_WC_WR_FLUSH_ERR);
    REQUIRE(status(r) == IBV_WC_WR_FLUSH_ERR);
    CHECK(s->wr_id == 100 + i);
    CHECK(r->wr_id == i);
  }
  ibv_wc wc{};
  CHECK(p.a.poll_now(p.a.scq.get(), wc) == 0);
  CHECK(p.a.poll_now(p.a.rcq.get(), wc) == 0);
}

TEST_CASE("case_003 the first error is the real status, the rest flush", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64), spare(p.b.pd.get(), 64);
  const std::array sges{from.sge(0, 64)}, recv{spare.sge(0, 64)};
  for (std::uint64_t i = 0; i < 3; ++i) {
    REQUIRE(p.b.post_recv(i, recv) == 0);
  }
  for (std::uint64_t i = 1; i <= 4; ++i) {
    auto wr = write_wr(i, to);
    wr.wr.rdma.rkey ^= i == 2 ? 0x00ff0000u : 0u;
    REQUIRE(p.a.post_send(wr, sges) == 0);
  }
  const std::array<int, 4> expected{IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR,
                                    IBV_WC_WR_FLUSH_ERR};
  for (std::uint64_t i = 1; i <= 4; ++i) {
    const auto wc = p.a.wait_send();
    CAPTURE(i);
    CHECK(status(wc) == expected[i - 1]);
    CHECK(wc->wr_id == i);
  }
  CHECK(p.a.state() == IBV_QPS_ERR);
  const auto event = wait_async(p.b.ctx.get());
  REQUIRE(event.has_value());
  CHECK(event->event_type == IBV_EVENT_QP_ACCESS_ERR);
  CHECK(event->element.qp == p.b.qp.get());
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(status(p.b.wait_recv()) == IBV_WC_WR_FLUSH_ERR);
  }
  CHECK(p.b.state() == IBV_QPS_ERR);
}

TEST_CASE("case_004 a refused write says so and touches nothing", "[rc]") {
  const bool loopback = both_ways();
  const int kind = GENERATE(range(0, 5));
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 64);
  Buffer to(p.b.pd.get(), 64, kind == 3 ? IBV_ACCESS_LOCAL_WRITE : kFullAccess);
  Pd other(ibv_alloc_pd(p.b.ctx.get()));
  Buffer foreign(other.get(), 64);
  from.fill(9);
  auto wr = write_wr(1, kind == 4 ? foreign : to);
  std::size_t length = 64;
  switch (kind) {
    case 0: wr.wr.rdma.rkey += 0x01000000; break;  // unknown key
    case 1: wr.wr.rdma.remote_addr += 1; break;    // one byte past the end
    case 2: wr.wr.rdma.remote_addr = ~std::uint64_t{7}; length = 16; break;  // wraps
    default: break;                                // 3: no REMOTE_WRITE, 4: other PD
  }
  const std::array sges{from.sge(0, length)};
  const auto placed = counter(loopback ? 0 : 1, "rx_bytes");
  REQUIRE(p.a.post_send(wr, sges) == 0);
  CAPTURE(loopback, kind);
  CHECK(status(p.a.wait_send()) == IBV_WC_REM_ACCESS_ERR);
  CHECK(counter(loopback ? 0 : 1, "rx_bytes") == placed);  // what was refused is not credited
  CHECK(to.all(0, 0, 64));
  CHECK(foreign.all(0, 0, 64));
  CHECK(to.canaries_intact());
}

TEST_CASE("case_005 receive buffer too small", "[rc]") {
  const bool loopback = both_ways();
  const bool multi = GENERATE(false, true);
  const std::size_t room = multi ? 1500 : 100, sent = multi ? 4096 : 101;
  Pair p(loopback);
  Buffer from(p.a.pd.get(), sent), to(p.b.pd.get(), 8192);
  from.fill(5);
  const std::array sges{from.sge(0, sent)}, recv{to.sge(0, room)};
  REQUIRE(p.b.post_recv(7, recv) == 0);
  REQUIRE(p.a.post_send(send_wr(8), sges) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_REM_INV_REQ_ERR);
  CHECK(status(p.b.wait_recv()) == IBV_WC_LOC_LEN_ERR);
  CHECK(to.all(0, room, 8192 - room));
}

TEST_CASE("case_006 a bad lkey is a local protection error", "[rc]") {
  const bool loopback = both_ways();
  SECTION("on the receiver") {
    Pair p(loopback);
    Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
    std::array recv{to.sge(0, 64)};
    recv[0].lkey ^= 0x5a000000;
    const std::array sges{from.sge(0, 64)};
    REQUIRE(p.b.post_recv(1, recv) == 0);
    REQUIRE(p.a.post_send(send_wr(2), sges) == 0);
    CHECK(status(p.a.wait_send()) == IBV_WC_REM_OP_ERR);
    CHECK(status(p.b.wait_recv()) == IBV_WC_LOC_PROT_ERR);
    CHECK(to.all(0, 0, 64));
  }
  SECTION("on the sender") {
    Pair p(loopback);
    Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
    std::array sges{from.sge(0, 64)};
    sges[0].lkey ^= 0x5a000000;
    REQUIRE(p.a.post_send(write_wr(2, to), sges) == 0);
    CHECK(status(p.a.wait_send()) == IBV_WC_LOC_PROT_ERR);
  }
}

TEST_CASE("case_007 zero bytes", "[rc]") {
  const bool loopback = both_ways();
  const auto opcode = GENERATE(IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                               IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ);
  const int form = GENERATE(range(0, 3));
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  REQUIRE(p.b.post_recv(1, {}) == 0);
  ibv_send_wr wr = send_wr(2);
  wr.opcode = opcode;
  wr.imm_data = htonl(7);
  wr.wr.rdma.remote_addr = 0xdeadbeef000;  // never looked at
  wr.wr.rdma.rkey = 0x12345678;
  std::array<ibv_sge, 1> sge{from.sge(0, 0)};
  sge[0].lkey = form == 2 ? 0 : sge[0].lkey;
  const auto packets = counter(loopback ? 0 : 1, "rx_packets");
  const std::span<const ibv_sge> sges(sge.data(), form == 0 ? 0 : 1);
  REQUIRE(p.a.post_send(wr, sges) == 0);
  CAPTURE(loopback, opcode, form);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  if (opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_RDMA_READ) {
    const auto wc = p.b.wait_recv();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->byte_len == 0);
    const bool write = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    CHECK(wc->opcode == (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
  }
  CHECK(to.all(0, 0, 64));
  CHECK(from.all(0, 0, 64));
  if (packets && !loopback) {  // one request and nothing else: the answer goes the other way
    CHECK(counter(1, "rx_packets") == *packets + 1);
  }
  // The PSN moved on by one: the next message is accepted.
  REQUIRE(p.a.post_send(write_wr(3, to), std::array{from.sge(0, 64)}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
}

TEST_CASE("case_008 case_009 write with immediate consumes a receive and keeps the byte order", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 256), to(p.b.pd.get(), 256);
  from.fill(1);
  const std::array sges{from.sge(0, 256)};
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE(p.b.post_recv(10 + i, {}) == 0);
  }
  const std::array<std::uint32_t, 4> imms{0x89abcdefu, 0u, 0xffffffffu, 0x01020304u};
  for (std::uint64_t i = 0; i < 4; ++i) {
    auto wr = write_wr(i, to);
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.imm_data = htonl(imms[i]);
    REQUIRE(p.a.post_send(wr, sges) == 0);
    const auto s = p.a.wait_send();
    REQUIRE(status(s) == IBV_WC_SUCCESS);
    CHECK(s->opcode == IBV_WC_RDMA_WRITE);
    const auto r = p.b.wait_recv();
    REQUIRE(status(r) == IBV_WC_SUCCESS);
    CHECK(r->opcode == IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK((r->wc_flags & IBV_WC_WITH_IMM) != 0);
    CHECK(ntohl(r->imm_data) == imms[i]);
    CHECK(r->wr_id == 10 + i);
    CHECK(r->byte_len == 256);
  }
  CHECK(to.holds(1, 0, 256));
}

TEST_CASE("case_008 write with immediate waits for a receive and completes once", "[rc][srq]") {
  const bool loopback = both_ways();
  const bool srq = GENERATE(false, true);
  EndOptions options;
  options.use_srq = srq;
  Link link;
  link.min_rnr = 1;  // 10 us
  Pair p(loopback, options, link);
  Buffer from(p.a.pd.get(), 4096), to(p.b.pd.get(), 4096);
  from.fill(2);
  auto wr = write_wr(1, to);
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = htonl(0x80000001);
  REQUIRE(p.a.post_send(wr, std::array{from.sge(0, 4096)}) == 0);
  CAPTURE(loopback, srq);
  CHECK_FALSE(p.a.wait_send(kNever).has_value());
  REQUIRE(p.b.post_recv(77) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  const auto r = p.b.wait_recv();
  REQUIRE(status(r) == IBV_WC_SUCCESS);
  CHECK(r->wr_id == 77);
  CHECK(r->byte_len == 4096);
  CHECK(ntohl(r->imm_data) == 0x80000001);
  CHECK(to.holds(2, 0, 4096));
  REQUIRE(p.b.post_recv(78) == 0);
  CHECK_FALSE(wait_cq(p.b.rcq.get(), kNever).has_value());
}

TEST_CASE("what an RC message of many SGEs gathers and scatters", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 8192), to(p.b.pd.get(), 8192);
  from.fill(4);
  // 5000 bytes in pieces that meet no packet boundary, with an empty one among them.
  const std::array sges{from.sge(1, 1000), from.sge(1001, 0), from.sge(1001, 2999), from.sge(4000, 1001)};
  const std::array recv{to.sge(1, 3), to.sge(4, 1024), to.sge(1028, 3973), to.sge(5001, 3000)};
  REQUIRE(p.b.post_recv(1, recv) == 0);
  REQUIRE(p.a.post_send(send_wr(2), sges) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  const auto wc = p.b.wait_recv();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->byte_len == 5000);
  CHECK(to.holds(4, 1, 5000));
  CHECK(to.all(0, 5001, 8192 - 5001));
  CHECK(to.all(0, 0, 1));
}
