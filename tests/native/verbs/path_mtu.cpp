// SPDX-License-Identifier: BSD-2-Clause
// Message sizes around packet boundaries, and ends that disagree about the MTU.
#include <cerrno>

#include "checks.hpp"

using namespace ordma::test;

namespace {

constexpr std::array<std::size_t, 12> kSizes{1,    1023, 1024, 1025, 1500, 2047,
                                             2048, 2049, 4095, 4096, 4097, 65537};

void check_send(Pair& p, Buffer& from, Buffer& to, std::size_t size) {
  REQUIRE(p.b.post_recv(size, std::array{to.sge(0, to.size())}) == 0);
  REQUIRE(p.a.post_send(send_wr(size), std::array{from.sge(0, size)}) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  const auto wc = p.b.wait_recv();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->byte_len == size);
}

void check_write(Pair& p, Buffer& from, Buffer& to, std::size_t size) {
  REQUIRE(p.a.post_send(write_wr(size, to), std::array{from.sge(0, size)}) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
}

void check_read(Pair& p, Buffer& from, Buffer& to, std::size_t size) {
  // The other way round: B's `to` is read from A's `from` by B.
  REQUIRE(p.b.post_send(read_wr(size, from), std::array{to.sge(0, size)}) == 0);
  const auto wc = p.b.wait_send();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->opcode == IBV_WC_RDMA_READ);
}

}  // namespace

TEST_CASE("case_034 every size at every MTU", "[rc]") {
  const bool loopback = both_ways();
  const auto mtu = GENERATE(IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096);
  const int operation = GENERATE(0, 1, 2);
  Link link;
  link.mtu = mtu;
  EndOptions options;
  Pair p(loopback, options, link, false);
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(p.a.ctx.get(), 1, &port) == 0);
  if (mtu > port.active_mtu) {
    REQUIRE(set_init(p.a.qp.get(), link) == 0);
    CHECK(set_rtr(p.a.qp.get(), link, p.b.qp->qp_num, p.b.gid(), 0) == EINVAL);
    return;
  }
  connect(p.a.qp.get(), p.b.qp.get(), link);
  constexpr std::size_t kMax = 65537;
  Buffer from(p.a.pd.get(), kMax), to(p.b.pd.get(), kMax);
  std::uint8_t seed = 1;
  for (const std::size_t size : kSizes) {
    CAPTURE(loopback, mtu, operation, size);
    from.fill(++seed);
    to.clear();
    operation == 0   ? check_send(p, from, to, size)
    : operation == 1 ? check_write(p, from, to, size)
                     : check_read(p, from, to, size);
    CHECK(to.holds(seed, 0, size));
    CHECK(to.all(0, size, kMax - size));
    CHECK(to.canaries_intact());
  }
}

TEST_CASE("case_034 a packet above the receiver's MTU is refused, not timed out", "[rc]") {
  const bool loopback = both_ways();
  const bool write = GENERATE(false, true);
  Pair p(loopback, {}, {}, false);
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(p.a.ctx.get(), 1, &port) == 0);
  Link small = p.link, large = p.link;
  small.mtu = IBV_MTU_256;
  large.mtu = IBV_MTU_1024;
  REQUIRE(port.active_mtu >= large.mtu);
  ibv_qp *const a = p.a.qp.get(), *const b = p.b.qp.get();
  REQUIRE(set_init(a, large) == 0);
  REQUIRE(set_init(b, small) == 0);
  REQUIRE(set_rtr(a, large, b->qp_num, p.b.gid(), large.psn_b) == 0);
  REQUIRE(set_rtr(b, small, a->qp_num, p.a.gid(), large.psn_a) == 0);
  REQUIRE(set_rts(a, large, large.psn_a) == 0);
  REQUIRE(set_rts(b, small, large.psn_b) == 0);
  Buffer from(p.a.pd.get(), 4096), to(p.b.pd.get(), 4096);
  from.fill(1);
  CAPTURE(loopback, write);
  REQUIRE(p.b.post_recv(1, std::array{to.sge(0, 4096)}) == 0);
  const std::array fits{from.sge(0, 256)};
  REQUIRE(p.a.post_send(write ? write_wr(2, to) : send_wr(2), fits) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  REQUIRE(p.b.post_recv(3, std::array{to.sge(0, 4096)}) == 0);
  to.clear();
  const std::array wide{from.sge(0, 2000)};
  REQUIRE(p.a.post_send(write ? write_wr(4, to) : send_wr(4), wide) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_REM_INV_REQ_ERR);
  CHECK(to.all(0, 0, 4096));
}
