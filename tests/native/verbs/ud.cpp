// SPDX-License-Identifier: BSD-2-Clause
// Datagrams: GRH, completion fields, keys, multicast.
#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "checks.hpp"

using namespace ordma::test;

namespace {

constexpr std::size_t kGrh = 40;
constexpr std::uint32_t kMulticastQpn = 0xffffff;

EndOptions datagram() {
  EndOptions options;
  options.type = IBV_QPT_UD;
  return options;
}

ibv_send_wr ud_wr(std::uint64_t wr_id, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  ibv_send_wr wr = send_wr(wr_id);
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = qpn;
  wr.wr.ud.remote_qkey = qkey;
  return wr;
}

struct UdPair : Pair {
  explicit UdPair(bool loopback, const EndOptions& options = datagram())
      : Pair(loopback, options), ah(make_ah(a.pd.get(), b.gid(), link)) {
    REQUIRE(ah != nullptr);
  }
  ibv_send_wr to_b(std::uint64_t wr_id) const {
    return ud_wr(wr_id, ah.get(), b.qp->qp_num, link.qkey);
  }
  Ah ah;
};

bool is_ipv4(const ibv_gid& gid) {
  static const std::uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, prefix, sizeof(prefix)) == 0;
}

}  // namespace

TEST_CASE("case_072 forty bytes come before the payload", "[ud]") {
  const bool loopback = both_ways();
  const std::size_t size = GENERATE(as<std::size_t>{}, 1, 64, 1000, 4096);
  UdPair p(loopback);
  Buffer from(p.a.pd.get(), size), to(p.b.pd.get(), size + kGrh);
  from.fill(4);
  REQUIRE(p.b.post_recv(1, std::array{to.sge(0, size + kGrh)}) == 0);
  REQUIRE(p.a.post_send(p.to_b(2), std::array{from.sge(0, size)}) == 0);
  CAPTURE(loopback, size);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  const auto wc = p.b.wait_recv();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->byte_len == size + kGrh);
  CHECK((wc->wc_flags & IBV_WC_GRH) != 0);
  CHECK(std::memcmp(to.data() + kGrh, from.data(), size) == 0);
  CHECK(to.canaries_intact());
  const ibv_gid sgid = p.a.gid(), dgid = p.b.gid();
  if (is_ipv4(sgid)) {  // an IPv4 header in the last twenty
    CHECK(to.data()[20] == 0x45);
    CHECK(to.data()[29] == 17);
    CHECK(std::memcmp(to.data() + 32, sgid.raw + 12, 4) == 0);
    CHECK(std::memcmp(to.data() + 36, dgid.raw + 12, 4) == 0);
  } else {
    CHECK(to.data()[0] >> 4 == 6);
    CHECK(std::memcmp(to.data() + 8, sgid.raw, 16) == 0);
    CHECK(std::memcmp(to.data() + 24, dgid.raw, 16) == 0);
  }
}

TEST_CASE("case_073 a reply finds its way by what the completion says", "[ud]") {
  const bool loopback = both_ways();
  UdPair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64 + kGrh), back(p.a.pd.get(), 64 + kGrh);
  REQUIRE(p.b.post_recv(1, std::array{to.sge(0, 64 + kGrh)}) == 0);
  REQUIRE(p.a.post_recv(2, std::array{back.sge(0, 64 + kGrh)}) == 0);
  REQUIRE(p.a.post_send(p.to_b(3), std::array{from.sge(0, 64)}) == 0);
  ibv_wc wc = *p.b.wait_recv();
  REQUIRE(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.src_qp == p.a.qp->qp_num);
  CHECK(wc.pkey_index == 0);
  // The packet type: UDP, and IPv4 or IPv6. UCX drops datagrams that do not say it.
  CHECK(wc.sl == (is_ipv4(p.a.gid()) ? 0xa : 0x9));
  CHECK(wc.slid == 0);
  CHECK(wc.qp_num == p.b.qp->qp_num);
  ibv_ah_attr attr{};
  auto* const grh = reinterpret_cast<ibv_grh*>(to.data());
  REQUIRE(ibv_init_ah_from_wc(p.b.ctx.get(), 1, &wc, grh, &attr) == 0);
  const ibv_gid sgid = p.a.gid();
  CHECK(std::memcmp(&attr.grh.dgid, &sgid, sizeof(sgid)) == 0);
  CHECK(attr.grh.sgid_index == default_gid_index());
  Ah ah(ibv_create_ah_from_wc(p.b.pd.get(), &wc, grh, 1));
  REQUIRE(ah != nullptr);
  REQUIRE(p.b.post_send(ud_wr(4, ah.get(), wc.src_qp, p.link.qkey), std::array{to.sge(kGrh, 64)}) == 0);
  const auto reply = p.a.wait_recv();
  REQUIRE(status(reply) == IBV_WC_SUCCESS);
  CHECK(reply->wr_id == 2);
  CHECK(reply->src_qp == p.b.qp->qp_num);
}

TEST_CASE("case_073 immediate data of a datagram", "[ud]") {
  const bool loopback = both_ways();
  UdPair p(loopback);
  Buffer to(p.b.pd.get(), kGrh);
  REQUIRE(p.b.post_recv(1, std::array{to.sge(0, kGrh)}) == 0);
  auto wr = p.to_b(2);
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = htonl(0x89abcdef);
  REQUIRE(p.a.post_send(wr) == 0);
  const auto wc = p.b.wait_recv();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(ntohl(wc->imm_data) == 0x89abcdef);
  CHECK((wc->wc_flags & IBV_WC_WITH_IMM) != 0);
  CHECK(wc->byte_len == kGrh);
}

TEST_CASE("case_007 a datagram of no bytes", "[ud]") {
  const bool loopback = both_ways();
  UdPair p(loopback);
  Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), kGrh);
  for (const bool with_sge : {false, true}) {
    REQUIRE(p.b.post_recv(1, std::array{to.sge(0, kGrh)}) == 0);
    const std::array sges{from.sge(0, 0)};
    REQUIRE(p.a.post_send(p.to_b(2), std::span<const ibv_sge>(sges.data(), with_sge)) == 0);
    CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
    const auto wc = p.b.wait_recv();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->byte_len == kGrh);
  }
}

TEST_CASE("case_074 a wrong Q_Key is dropped silently and counted", "[ud]") {
  const bool loopback = both_ways();
  UdPair p(loopback);
  Buffer from(p.a.pd.get(), 8), to(p.b.pd.get(), 8 + kGrh);
  const std::size_t device = loopback ? 0 : 1;
  const auto dropped = counter(device, "drop_qkey");
  REQUIRE(p.b.post_recv(1, std::array{to.sge(0, 8 + kGrh)}) == 0);
  auto wr = p.to_b(2);
  wr.wr.ud.remote_qkey ^= 1;
  const std::array sges{from.sge(0, 8)};
  REQUIRE(p.a.post_send(wr, sges) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  CHECK_FALSE(p.b.wait_recv(kNever).has_value());
  if (dropped) {
    CHECK(counter(device, "drop_qkey") == *dropped + 1);
  }
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(p.b.ctx.get(), 1, &port) == 0);
  CHECK(port.qkey_viol_cntr >= 1);
  // Bit 31 names the QP's own key, and a user cannot say another key with that bit.
  wr.wr.ud.remote_qkey = 0x80000000;
  REQUIRE(p.a.post_send(wr, sges) == 0);
  const auto wc = p.b.wait_recv();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->wr_id == 1);
}

TEST_CASE("case_074 a datagram above the MTU fails at the sender", "[ud]") {
  const bool loopback = both_ways();
  UdPair p(loopback);
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(p.a.ctx.get(), 1, &port) == 0);
  const std::size_t mtu = std::size_t{128} << port.active_mtu;
  Buffer from(p.a.pd.get(), mtu + 1), to(p.b.pd.get(), mtu + 1 + kGrh);
  REQUIRE(p.b.post_recv(1, std::array{to.sge(0, mtu + 1 + kGrh)}) == 0);
  const int err = p.a.post_send(p.to_b(2), std::array{from.sge(0, mtu + 1)});
  if (err == 0) {
    CHECK(status(p.a.wait_send()) == IBV_WC_LOC_LEN_ERR);
  } else {
    CHECK(err == EINVAL);
  }
  CHECK_FALSE(p.b.wait_recv(kNever).has_value());
}

TEST_CASE("case_075 a receive that has no room for the header and payload", "[ud][srq]") {
  const bool loopback = both_ways();
  const bool srq = GENERATE(false, true);
  const int kind = GENERATE(0, 1);
  EndOptions options = datagram();
  options.use_srq = srq;
  UdPair p(loopback, options);
  Buffer from(p.a.pd.get(), 4096), to(p.b.pd.get(), 4096 + kGrh);
  from.fill(1);
  // Too short a list, or a list that reaches beyond its MR.
  ibv_sge sge = to.sge(0, 4096 + (kind == 0 ? 0 : kGrh));
  if (kind == 1) sge.addr += kGrh;
  REQUIRE(p.b.post_recv(1, std::array{sge}) == 0);
  REQUIRE(p.a.post_send(p.to_b(2), std::array{from.sge(0, 4096)}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  const auto wc = p.b.wait_recv();
  CAPTURE(loopback, srq, kind);
  CHECK(status(wc) == (kind == 0 ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR));
  CHECK(wc->wr_id == 1);
  CHECK(to.canaries_intact());
}

TEST_CASE("case_075 UD on an SRQ", "[ud][srq]") {
  const bool loopback = both_ways();
  EndOptions options = datagram();
  options.use_srq = true;
  UdPair p(loopback, options);
  Buffer from(p.a.pd.get(), 4096), to(p.b.pd.get(), 4096 + kGrh);
  from.fill(8);
  for (std::uint64_t i = 0; i < 100; ++i) {
    REQUIRE(p.b.post_recv(i, std::array{to.sge(0, 4096 + kGrh)}) == 0);
    REQUIRE(p.a.post_send(p.to_b(i), std::array{from.sge(0, 4096)}) == 0);
    const auto wc = p.b.wait_recv();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->wr_id == i);
    CHECK(wc->byte_len == 4096 + kGrh);
    CHECK(std::memcmp(to.data() + kGrh, from.data(), 4096) == 0);
    REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  }
}

TEST_CASE("a datagram that finds no receive or no QP hurts nobody", "[ud]") {
  const bool loopback = both_ways();
  UdPair p(loopback);
  Buffer to(p.b.pd.get(), kGrh);
  REQUIRE(p.a.post_send(p.to_b(1)) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  REQUIRE(p.a.post_send(ud_wr(2, p.ah.get(), 0xabcdef, p.link.qkey)) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  REQUIRE(p.b.post_recv(3, std::array{to.sge(0, kGrh)}) == 0);
  CHECK_FALSE(p.b.wait_recv(kNever).has_value());
  REQUIRE(p.a.post_send(p.to_b(4)) == 0);
  CHECK(status(p.b.wait_recv()) == IBV_WC_SUCCESS);
}

TEST_CASE("address handles that cannot be", "[ud]") {
  UdPair p(true);
  ibv_ah_attr attr = rtr_attr(p.link, 0, p.b.gid(), 0).ah_attr;
  const auto create = [&](auto change) {
    ibv_ah_attr a = attr;
    change(a);
    errno = 0;
    Ah ah(ibv_create_ah(p.a.pd.get(), &a));
    return ah != nullptr ? 0 : errno;
  };
  CHECK(create([](ibv_ah_attr&) {}) == 0);
  CHECK(create([](ibv_ah_attr& a) { a.is_global = 0; }) == EINVAL);
  CHECK(create([](ibv_ah_attr& a) { a.port_num = 2; }) == EINVAL);
  CHECK(create([](ibv_ah_attr& a) { a.grh.sgid_index = 255; }) == EINVAL);
  CHECK(create([](ibv_ah_attr& a) { a.grh.dgid = {}; }) != 0);
}

TEST_CASE("case_080 multicast", "[ud]") {
  const bool loopback = both_ways();
  const bool ipv4 = default_gid_index() == 1;
  ibv_gid group{};
  REQUIRE(::inet_pton(AF_INET6, ipv4 ? "::ffff:239.1.2.3" : "ff0e::1:2:3", group.raw) == 1);
  UdPair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 4 * (64 + kGrh));
  from.fill(9);
  const Ah ah = make_ah(p.a.pd.get(), group, p.link);
  REQUIRE(ah != nullptr);
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE(p.b.post_recv(i, std::array{to.sge(i * (64 + kGrh), 64 + kGrh)}) == 0);
  }
  const auto send = [&] {
    const auto wr = ud_wr(7, ah.get(), kMulticastQpn, p.link.qkey);
    REQUIRE(p.a.post_send(wr, std::array{from.sge(0, 64)}) == 0);
    REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  };
  send();
  CHECK_FALSE(p.b.wait_recv(kNever).has_value());  // nobody attached
  REQUIRE(ibv_attach_mcast(p.b.qp.get(), &group, 0) == 0);
  CHECK(ibv_attach_mcast(p.b.qp.get(), &group, 0) == 0);  // twice is one copy
  send();
  const auto wc = p.b.wait_recv();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->src_qp == p.a.qp->qp_num);
  CHECK(wc->byte_len == 64 + kGrh);
  CHECK(std::memcmp(to.data() + kGrh, from.data(), 64) == 0);
  CHECK_FALSE(p.b.wait_recv(kNever).has_value());
  CHECK(ibv_destroy_qp(p.b.qp.get()) == EBUSY);
  REQUIRE(ibv_detach_mcast(p.b.qp.get(), &group, 0) == 0);
  send();
  CHECK_FALSE(p.b.wait_recv(kNever).has_value());
  CHECK(ibv_detach_mcast(p.b.qp.get(), &group, 0) != 0);
}

TEST_CASE("case_080 one copy for every QP that is attached", "[ud]") {
  const bool loopback = both_ways();
  ibv_gid group{};
  REQUIRE(::inet_pton(AF_INET6, "ff0e::abcd", group.raw) == 1);
  UdPair p(loopback);
  Qp second = p.b.make_qp(datagram());
  REQUIRE(set_init(second.get(), p.link) == 0);
  REQUIRE(set_rtr(second.get(), p.link, 0, {}, 0) == 0);
  Buffer to(p.b.pd.get(), 2 * kGrh);
  REQUIRE(p.b.post_recv(1, std::array{to.sge(0, kGrh)}) == 0);
  REQUIRE(post_recv(second.get(), 2, std::array{to.sge(kGrh, kGrh)}) == 0);
  REQUIRE(ibv_attach_mcast(p.b.qp.get(), &group, 0) == 0);
  REQUIRE(ibv_attach_mcast(second.get(), &group, 0) == 0);
  Link link = p.link;
  link.gid_index = 0;
  const Ah ah = make_ah(p.a.pd.get(), group, link);
  REQUIRE(ah != nullptr);
  REQUIRE(p.a.post_send(ud_wr(3, ah.get(), kMulticastQpn, p.link.qkey)) == 0);
  const auto first = p.b.wait_recv(), other = p.b.wait_recv();
  REQUIRE(status(first) == IBV_WC_SUCCESS);
  REQUIRE(status(other) == IBV_WC_SUCCESS);
  CHECK(first->wr_id + other->wr_id == 3);
  CHECK(first->qp_num != other->qp_num);
  REQUIRE(ibv_detach_mcast(p.b.qp.get(), &group, 0) == 0);
  REQUIRE(ibv_detach_mcast(second.get(), &group, 0) == 0);
}

TEST_CASE("case_080 multicast is for datagrams", "[ud][rc]") {
  Pair p(true);
  ibv_gid group{};
  REQUIRE(::inet_pton(AF_INET6, "ff0e::1", group.raw) == 1);
  CHECK(ibv_attach_mcast(p.a.qp.get(), &group, 0) == EINVAL);
  UdPair ud(true);
  const ibv_gid unicast = ud.a.gid();
  CHECK(ibv_attach_mcast(ud.a.qp.get(), &unicast, 0) == EINVAL);
}
