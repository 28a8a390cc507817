// SPDX-License-Identifier: BSD-2-Clause
// ibv_modify_qp and ibv_query_qp: masks, ranges, and that a refusal changes nothing.
#include <cerrno>
#include <cstring>

#include "checks.hpp"

using namespace ordma::test;

namespace {

// Everything that ibv_query_qp tells and a refused modify must leave alone.
std::vector<std::uint64_t> fingerprint(ibv_qp* qp) {
  const ibv_qp_attr a = query(qp);
  std::uint64_t dgid[2];
  std::memcpy(dgid, a.ah_attr.grh.dgid.raw, sizeof(dgid));
  return {a.qp_state, a.path_mtu, a.qkey, a.rq_psn, a.sq_psn, a.dest_qp_num, a.qp_access_flags,
          a.pkey_index, a.max_rd_atomic, a.max_dest_rd_atomic, a.min_rnr_timer, a.port_num,
          a.timeout, a.retry_cnt, a.rnr_retry, a.ah_attr.grh.sgid_index,
          a.ah_attr.grh.hop_limit, a.ah_attr.grh.traffic_class, a.ah_attr.is_global, dgid[0],
          dgid[1]};
}

void expect_refused(ibv_qp* qp, ibv_qp_attr attr, int mask, int err = EINVAL) {
  const auto before = fingerprint(qp);
  CHECK(ibv_modify_qp(qp, &attr, mask) == err);
  CHECK(fingerprint(qp) == before);
}

// Each single bit of `mask` but the state left out is EINVAL; then the whole is not.
void check_required(ibv_qp* qp, ibv_qp_attr attr, int mask) {
  for (int bit = 1; bit <= mask; bit <<= 1) {
    if ((mask & bit) == 0 || bit == IBV_QP_STATE) {
      continue;
    }
    CAPTURE(mask, bit);
    expect_refused(qp, attr, mask & ~bit);
  }
  REQUIRE(ibv_modify_qp(qp, &attr, mask) == 0);
  CHECK(query(qp).qp_state == attr.qp_state);
}

ibv_qp_attr init_attr(const Link& link) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(link.access);
  attr.qkey = link.qkey;
  return attr;
}

int init_mask(ibv_qp_type type) {
  return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
         (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}


}  // namespace

TEST_CASE("case_026 every required attribute is required", "[rc][ud]") {
  const bool loopback = both_ways();
  const auto type = GENERATE(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD);
  EndOptions options;
  options.type = type;
  Pair p(loopback, options, {}, false);
  ibv_qp* const qp = p.a.qp.get();
  CAPTURE(loopback, type);
  check_required(qp, init_attr(p.link), init_mask(type));
  check_required(qp, rtr_attr(p.link, p.b.qp->qp_num, p.b.gid(), 17), rtr_mask(type));
  check_required(qp, rts_attr(p.link, 18), rts_mask(type));
}

TEST_CASE("case_026 an attribute that a transition does not know is refused", "[rc]") {
  Pair p(true, {}, {}, false);
  ibv_qp* const qp = p.a.qp.get();
  ibv_qp_attr init = init_attr(p.link);
  for (const int extra : {IBV_QP_AV, IBV_QP_TIMEOUT, IBV_QP_SQ_PSN, IBV_QP_QKEY, IBV_QP_CAP}) {
    CAPTURE(extra);
    expect_refused(qp, init, init_mask(IBV_QPT_RC) | extra);
  }
  // And a transition that there is not.
  expect_refused(qp, rts_attr(p.link, 1), rts_mask(IBV_QPT_RC));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  expect_refused(qp, attr, IBV_QP_STATE);
  attr.qp_state = static_cast<ibv_qp_state>(17);
  expect_refused(qp, attr, IBV_QP_STATE);
}

TEST_CASE("case_027 what may change in RTS", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  ibv_qp* const qp = p.a.qp.get();
  ibv_qp_attr attr = rts_attr(p.link, 0);
  for (const int fixed : {IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_SQ_PSN,
                          IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_PATH_MTU, IBV_QP_AV}) {
    CAPTURE(fixed);
    expect_refused(qp, attr, IBV_QP_STATE | fixed);
  }
  attr.min_rnr_timer = 5;
  REQUIRE(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER) == 0);
  CHECK(query(qp).min_rnr_timer == 5);
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  REQUIRE(ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS) == 0);  // no state at all: stays
  CHECK(query(qp).qp_access_flags == IBV_ACCESS_REMOTE_READ);
  CHECK(query(qp).qp_state == IBV_QPS_RTS);
}

TEST_CASE("case_027 draining in SQD, and what may change there", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::array sges{from.sge(0, 64)};
  REQUIRE(p.a.post_send(write_wr(1, to), sges) == 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  REQUIRE(ibv_modify_qp(p.a.qp.get(), &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
  const auto event = wait_async(p.a.ctx.get());
  REQUIRE(event.has_value());
  CHECK(event->event_type == IBV_EVENT_SQ_DRAINED);
  // A request that the NIC had begun completes before the event; one that it had not stays posted.
  const auto begun = p.a.wait_send(kNever);
  if (begun.has_value()) CHECK(begun->status == IBV_WC_SUCCESS);
  CHECK(query(p.a.qp.get()).sq_draining == 0);
  REQUIRE(p.a.post_send(write_wr(2, to), sges) == 0);  // posted, not sent
  CHECK_FALSE(p.a.wait_send(kNever).has_value());
  attr = rts_attr(p.link, 0);
  attr.qp_state = IBV_QPS_SQD;
  attr.timeout = 10;
  attr.retry_cnt = 3;
  REQUIRE(ibv_modify_qp(p.a.qp.get(), &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT) == 0);
  CHECK(query(p.a.qp.get()).timeout == 10);
  CHECK(query(p.a.qp.get()).retry_cnt == 3);
  REQUIRE(set_state(p.a.qp.get(), IBV_QPS_RTS) == 0);
  for (std::uint64_t id = begun.has_value() ? 2 : 1; id <= 2; ++id) {
    const auto wc = p.a.wait_send();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->wr_id == id);
  }
}

TEST_CASE("case_028 ranges in INIT", "[rc]") {
  Pair p(true, {}, {}, false);
  ibv_qp* const qp = p.a.qp.get();
  for (const int port : {0, 2, 255}) {
    ibv_qp_attr attr = init_attr(p.link);
    attr.port_num = static_cast<std::uint8_t>(port);
    CAPTURE(port);
    expect_refused(qp, attr, init_mask(IBV_QPT_RC));
  }
  ibv_qp_attr attr = init_attr(p.link);
  attr.pkey_index = 1;
  expect_refused(qp, attr, init_mask(IBV_QPT_RC));
}

TEST_CASE("case_028 ranges in RTR and RTS", "[rc]") {
  Pair p(true, {}, {}, false);
  ibv_qp* const qp = p.a.qp.get();
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(p.a.ctx.get(), 1, &port) == 0);
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(p.a.ctx.get(), &device) == 0);
  REQUIRE(set_init(qp, p.link) == 0);
  const ibv_qp_attr rtr = rtr_attr(p.link, p.b.qp->qp_num, p.b.gid(), 1);
  const auto refuse_rtr = [&](auto change) {
    ibv_qp_attr attr = rtr;
    change(attr);
    expect_refused(qp, attr, rtr_mask(IBV_QPT_RC));
  };
  refuse_rtr([](ibv_qp_attr& a) { a.min_rnr_timer = 32; });
  refuse_rtr([](ibv_qp_attr& a) { a.path_mtu = static_cast<ibv_mtu>(0); });
  refuse_rtr([](ibv_qp_attr& a) { a.path_mtu = static_cast<ibv_mtu>(6); });
  refuse_rtr([&](ibv_qp_attr& a) {
    a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(port.gid_tbl_len);
  });
  refuse_rtr([&](ibv_qp_attr& a) {
    a.max_dest_rd_atomic = static_cast<std::uint8_t>(device.max_qp_rd_atom + 1);
  });
  refuse_rtr([](ibv_qp_attr& a) { a.ah_attr.port_num = 2; });
  if (port.active_mtu < IBV_MTU_4096) {
    refuse_rtr([&](ibv_qp_attr& a) { a.path_mtu = static_cast<ibv_mtu>(port.active_mtu + 1); });
  }
  ibv_qp_attr good = rtr;
  REQUIRE(ibv_modify_qp(qp, &good, rtr_mask(IBV_QPT_RC)) == 0);
  const ibv_qp_attr rts = rts_attr(p.link, 1);
  const auto refuse_rts = [&](auto change) {
    ibv_qp_attr attr = rts;
    change(attr);
    expect_refused(qp, attr, rts_mask(IBV_QPT_RC));
  };
  refuse_rts([](ibv_qp_attr& a) { a.retry_cnt = 8; });
  refuse_rts([](ibv_qp_attr& a) { a.rnr_retry = 8; });
  refuse_rts([](ibv_qp_attr& a) { a.timeout = 32; });
  refuse_rts([&](ibv_qp_attr& a) {
    a.max_rd_atomic = static_cast<std::uint8_t>(device.max_qp_init_rd_atom + 1);
  });
  good = rts;
  CHECK(ibv_modify_qp(qp, &good, rts_mask(IBV_QPT_RC)) == 0);
}

TEST_CASE("case_028 a PSN has 24 bits", "[rc]") {
  const bool loopback = both_ways();
  Link link;
  link.psn_a = 0xab000777;
  link.psn_b = 0xff123456;
  Pair p(loopback, {}, link);
  CHECK(query(p.a.qp.get()).sq_psn == 0x000777);
  CHECK(query(p.a.qp.get()).rq_psn == 0x123456);
  REQUIRE(p.b.post_recv(1) == 0);
  REQUIRE(p.a.post_send(send_wr(2)) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
}

TEST_CASE("case_029 RoCE needs a GRH, and says so at once", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, {}, {}, false);
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(p.a.ctx.get(), 1, &port) == 0);
  CHECK((port.flags & IBV_QPF_GRH_REQUIRED) != 0);
  REQUIRE(set_init(p.a.qp.get(), p.link) == 0);
  ibv_qp_attr attr = rtr_attr(p.link, p.b.qp->qp_num, p.b.gid(), 1);
  attr.ah_attr.is_global = 0;
  attr.ah_attr.dlid = 1;
  expect_refused(p.a.qp.get(), attr, rtr_mask(IBV_QPT_RC));
}

TEST_CASE("case_035 query returns what was set, after every transition", "[rc]") {
  const bool loopback = both_ways();
  EndOptions options;
  options.send_wr = 33;
  options.recv_wr = 17;
  Link link;
  link.hop_limit = 9;
  link.traffic_class = 0x68;
  link.timeout = 11;
  link.retry = 5;
  link.rnr_retry = 3;
  link.min_rnr = 21;
  link.rd_atomic = 4;
  Pair p(loopback, options, link, false);
  ibv_qp* const qp = p.a.qp.get();
  ibv_qp_attr a = query(qp);
  CHECK(a.qp_state == IBV_QPS_RESET);
  CHECK(a.cap.max_send_wr >= 33);
  CHECK(a.cap.max_recv_wr >= 17);
  CHECK(a.cap.max_send_sge >= 4);
  CHECK(a.cap.max_inline_data >= 64);
  REQUIRE(set_init(qp, link) == 0);
  a = query(qp);
  CHECK(a.qp_state == IBV_QPS_INIT);
  CHECK(a.port_num == 1);
  CHECK(a.pkey_index == 0);
  CHECK(a.qp_access_flags == static_cast<unsigned>(kFullAccess));
  const ibv_gid peer = p.b.gid();
  REQUIRE(set_rtr(qp, link, p.b.qp->qp_num, peer, 0x654321) == 0);
  a = query(qp);
  CHECK(a.qp_state == IBV_QPS_RTR);
  CHECK(a.path_mtu == IBV_MTU_1024);
  CHECK(a.dest_qp_num == p.b.qp->qp_num);
  CHECK(a.rq_psn == 0x654321);
  CHECK(a.max_dest_rd_atomic == 4);
  CHECK(a.min_rnr_timer == 21);
  CHECK(a.ah_attr.is_global == 1);
  CHECK(std::memcmp(&a.ah_attr.grh.dgid, &peer, sizeof(peer)) == 0);
  CHECK(a.ah_attr.grh.sgid_index == link.gid_index);
  CHECK(a.ah_attr.grh.hop_limit == 9);
  CHECK(a.ah_attr.grh.traffic_class == 0x68);
  REQUIRE(set_rts(qp, link, 0x111222) == 0);
  a = query(qp);
  CHECK(a.qp_state == IBV_QPS_RTS);
  CHECK(a.sq_psn == 0x111222);
  CHECK(a.timeout == 11);
  CHECK(a.retry_cnt == 5);
  CHECK(a.rnr_retry == 3);
  CHECK(a.max_rd_atomic == 4);
}

TEST_CASE("case_035 query also tells how the QP was created", "[rc]") {
  EndOptions options;
  options.sig_all = true;
  Pair p(true, options);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(p.a.qp.get(), &attr, IBV_QP_STATE, &init) == 0);
  CHECK(init.qp_type == IBV_QPT_RC);
  CHECK(init.sq_sig_all == 1);
  CHECK(init.send_cq == p.a.scq.get());
  CHECK(init.recv_cq == p.a.rcq.get());
  CHECK(init.srq == nullptr);
  CHECK(init.cap.max_send_wr == attr.cap.max_send_wr);
}

TEST_CASE("case_025 creation flags: none is fine, one is refused", "[rc][ud]") {
  const auto type = GENERATE(IBV_QPT_RC, IBV_QPT_UD);
  End end(device_names().at(0));
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = type;
  attr.send_cq = attr.recv_cq = end.scq.get();
  attr.cap = {1, 1, 1, 1, 0};
  attr.pd = end.pd.get();
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  CHECK(Qp(ibv_create_qp_ex(end.ctx.get(), &attr)) != nullptr);
  attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  errno = 0;
  CHECK(ibv_create_qp_ex(end.ctx.get(), &attr) == nullptr);
  CHECK(errno == EOPNOTSUPP);
}

TEST_CASE("QPs that cannot be made", "[rc]") {
  End end(device_names().at(0));
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(end.ctx.get(), &device) == 0);
  ibv_qp_init_attr base{};
  base.qp_type = IBV_QPT_RC;
  base.send_cq = base.recv_cq = end.scq.get();
  base.cap = {1, 1, 1, 1, 0};
  const auto create = [&](auto change) {
    ibv_qp_init_attr attr = base;
    change(attr);
    errno = 0;
    Qp qp(ibv_create_qp(end.pd.get(), &attr));
    return qp != nullptr ? 0 : errno;
  };
  CHECK(create([](ibv_qp_init_attr&) {}) == 0);
  const auto wr = static_cast<std::uint32_t>(device.max_qp_wr);
  const auto sge = static_cast<std::uint32_t>(device.max_sge);
  CHECK(create([&](ibv_qp_init_attr& a) { a.cap.max_send_wr = wr + 1; }) == EINVAL);
  CHECK(create([&](ibv_qp_init_attr& a) { a.cap.max_recv_wr = wr + 1; }) == EINVAL);
  CHECK(create([&](ibv_qp_init_attr& a) { a.cap.max_send_sge = sge + 1; }) == EINVAL);
  CHECK(create([&](ibv_qp_init_attr& a) { a.cap.max_recv_sge = sge + 1; }) == EINVAL);
  CHECK(create([&](ibv_qp_init_attr& a) { a.qp_type = IBV_QPT_RAW_PACKET; }) == EOPNOTSUPP);
  CHECK(create([&](ibv_qp_init_attr& a) { a.qp_type = IBV_QPT_XRC_SEND; }) == EOPNOTSUPP);
  // The largest that is advertised can be made, with all of it at once.
  CHECK(create([&](ibv_qp_init_attr& a) { a.cap = {wr, wr, sge, sge, 236}; }) == 0);
  CHECK(create([&](ibv_qp_init_attr& a) { a.cap = {0, 0, 0, 0, 0}; }) == 0);
}
