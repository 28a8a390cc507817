// SPDX-License-Identifier: BSD-2-Clause
// Control verbs: objects, references, limits, what a client is told.
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "ordma_hw.hpp"
#include "rig.hpp"

using namespace ordma;
using namespace ordma::softdev;
using namespace ordma::softdev::test;

namespace {

ordma_np_handle handle(std::uint32_t number) {
  ordma_np_handle req{};
  req.handle = number;
  return req;
}

}  // namespace

TEST_CASE("HELLO: identity, limits and three descriptors", "[native]") {
  Rig rig;
  Client a(rig, 0), b(rig, 1);
  CHECK(a.hello.client != 0);
  CHECK(a.hello.ctx.uctx == a.hello.client);
  CHECK(a.hello.ctx.contract_version == rig.network.engine(0).register_read(hw::reg::kVersion));
  CHECK(a.hello.ctx.max_wr == EngineLimits().max_wr);
  CHECK(a.hello.ctx.kick_mmap_off == 0);
  // Twice, and on a NIC that is not there.
  ordma_np_hello again{};
  CHECK(a.error(ORDMA_NP_HELLO, again) == EEXIST);
  Client stranger(rig, 0, false);
  again.nic = 2;
  CHECK(stranger.error(ORDMA_NP_HELLO, again) == ENODEV);
  again.nic = ~0U;
  CHECK(stranger.error(ORDMA_NP_HELLO, again) == ENODEV);
  CHECK(stranger.request(ORDMA_NP_ALLOC_PD, {}).header.err == ENOTCONN);
  CHECK(stranger.request(ORDMA_NP_QUERY_PORT, {}).header.err == ENOTCONN);

  // The public page can be read and never written.
  CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a.public_page.get(), 0) ==
        MAP_FAILED);
  void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, a.public_page.get(), 0);
  REQUIRE(page != MAP_FAILED);
  rig.run_for(1000);
  CHECK(static_cast<const std::uint64_t*>(page)[1] == rig.now());
  ::munmap(page, 4096);
}

TEST_CASE("device, port and GID table are what tools expect", "[native]") {
  Rig rig;
  Client client(rig, 1);
  const auto reply = client.request(ORDMA_NP_QUERY_DEVICE, {});
  ordma_np_device device{};
  REQUIRE(reply.body.size() == sizeof device);
  std::memcpy(&device, reply.body.data(), sizeof device);
  CHECK(device.fw_ver != 0);
  CHECK(device.node_guid == guid_of(nic_mac(1)));
  CHECK(device.sys_image_guid == device.node_guid);
  CHECK(device.vendor_id != 0);
  CHECK(device.vendor_part_id != 0);
  CHECK(device.phys_port_cnt == 1);
  CHECK(device.max_qp == EngineLimits().max_qp - 2);
  CHECK(device.max_sge_rd != 0);
  CHECK(device.max_res_rd_atom != 0);
  CHECK(device.max_qp_rd_atom == device.max_qp_init_rd_atom);

  const auto port_reply = client.request(ORDMA_NP_QUERY_PORT, {});
  ordma_np_port port{};
  REQUIRE(port_reply.body.size() == sizeof port);
  std::memcpy(&port, port_reply.body.data(), sizeof port);
  CHECK(port.state == 4);
  CHECK(port.phys_state == 5);
  CHECK(port.active_mtu == 5);
  CHECK(port.max_mtu == 5);
  CHECK(port.active_width == 2);
  CHECK(port.active_speed == 32);
  CHECK(port.pkey_tbl_len == 1);
  CHECK(port.flags == 1);

  ordma_np_gid_req req{};
  auto gid = client.call<ordma_np_gid>(ORDMA_NP_QUERY_GID, req);
  CHECK(gid.valid == 1);
  CHECK(gid.type == 2);
  CHECK(std::equal(gid.gid, gid.gid + 16, link_local_gid(nic_mac(1)).begin()));
  req.index = 1;
  gid = client.call<ordma_np_gid>(ORDMA_NP_QUERY_GID, req);
  CHECK(std::equal(gid.gid, gid.gid + 16, nic_ipv4_gid(1).begin()));
  req.index = 2;
  CHECK(client.call<ordma_np_gid>(ORDMA_NP_QUERY_GID, req).valid == 0);
  req.index = port.gid_tbl_len;
  CHECK(client.error(ORDMA_NP_QUERY_GID, req) == EINVAL);
}

TEST_CASE("destination MACs of address handles", "[native]") {
  Rig rig;
  Client client(rig);
  ordma_np_resolve req{};
  req.sgid_index = 1;
  const Gid peer = nic_ipv4_gid(1);
  std::copy(peer.begin(), peer.end(), req.dgid);
  const auto mac = client.call<ordma_np_mac>(ORDMA_NP_RESOLVE_GID, req);
  CHECK(std::equal(mac.mac, mac.mac + 6, nic_mac(1).begin()));
  req.dgid[15] = 99;
  CHECK(client.error(ORDMA_NP_RESOLVE_GID, req) == EHOSTUNREACH);
  req.sgid_index = 2;
  CHECK(client.error(ORDMA_NP_RESOLVE_GID, req) == EINVAL);
}

TEST_CASE("an object that is used is busy", "[native]") {
  Rig rig({.nics = 1});
  Client client(rig);
  const std::uint32_t pd = client.pd();
  std::byte* const memory = client.buffer(4096);
  const ordma_np_mr mr = client.mr(pd, memory, 4096, 7);
  CHECK(client.error(ORDMA_NP_DEALLOC_PD, handle(pd)) == EBUSY);
  TestCq cq(client, 4);
  TestQp qp(client, pd, cq);
  CHECK(client.error(ORDMA_NP_DESTROY_CQ, handle(cq.resp.handle)) == EBUSY);
  CHECK(client.error(ORDMA_NP_DEREG_MR, handle(mr.handle)) == 0);
  CHECK(client.error(ORDMA_NP_DEREG_MR, handle(mr.handle)) == ENOENT);
  CHECK(client.error(ORDMA_NP_DEALLOC_PD, handle(pd)) == EBUSY);
  CHECK(client.error(ORDMA_NP_BUF_FREE, handle(1)) == 0);
  CHECK(client.error(ORDMA_NP_BUF_FREE, handle(2)) == EBUSY);  // the CQ's ring
  CHECK(client.error(ORDMA_NP_DESTROY_QP, handle(qp.resp.handle)) == 0);
  CHECK(client.error(ORDMA_NP_DESTROY_CQ, handle(cq.resp.handle)) == 0);
  CHECK(client.error(ORDMA_NP_DEALLOC_PD, handle(pd)) == 0);
  CHECK(client.error(ORDMA_NP_BUF_FREE, handle(2)) == 0);
  CHECK(rig.checker.violations() == 0);
  CHECK(rig.checker.accesses() != 0);
}

TEST_CASE("shared receive queues: references, limit, query", "[native]") {
  Rig rig({.nics = 1});
  Client client(rig);
  const std::uint32_t pd = client.pd();
  std::byte* const ring = client.buffer(4096);
  std::byte* const record = client.buffer(4096);
  ordma_np_create_srq req{};
  req.pd = pd;
  req.max_wr = 16;
  req.max_sge = 1;
  req.drv.ring_va = va(ring);
  req.drv.record_va = va(record);
  req.drv.ring_log = 4;
  req.drv.stride_log = 5;
  const auto srq = client.call<ordma_np_srq>(ORDMA_NP_CREATE_SRQ, req);
  ordma_np_modify_srq modify{};
  modify.handle = srq.handle;
  modify.mask = 2;
  modify.srq_limit = 17;
  CHECK(client.error(ORDMA_NP_MODIFY_SRQ, modify) == EINVAL);
  modify.srq_limit = 8;
  CHECK(client.error(ORDMA_NP_MODIFY_SRQ, modify) == 0);
  CHECK(client.call<ordma_np_srq_attr>(ORDMA_NP_QUERY_SRQ, handle(srq.handle)).max_wr == 16);

  TestCq cq(client, 4);
  ordma_np_create_qp qp{};
  qp.pd = pd;
  qp.scq = qp.rcq = cq.resp.handle;
  qp.srq = srq.handle;
  qp.type = 2;
  qp.max_send_wr = 4;
  qp.max_send_sge = 1;
  std::byte* const sq = client.buffer(4096);
  qp.drv.sq_va = va(sq);
  qp.drv.sq_log = 2;
  qp.drv.sq_stride_log = 7;
  const auto created = client.call<ordma_np_qp>(ORDMA_NP_CREATE_QP, qp);
  CHECK(client.error(ORDMA_NP_DESTROY_SRQ, handle(srq.handle)) == EBUSY);
  CHECK(client.error(ORDMA_NP_DESTROY_QP, handle(created.handle)) == 0);
  CHECK(client.error(ORDMA_NP_DESTROY_SRQ, handle(srq.handle)) == 0);
  CHECK(rig.checker.violations() == 0);
}

TEST_CASE("multicast: attached twice is once, attached is busy", "[native]") {
  Rig rig({.nics = 1});
  Client client(rig);
  const std::uint32_t pd = client.pd();
  TestCq cq(client, 4);
  TestQp ud(client, pd, cq, 4), rc(client, pd, cq, 2);
  ordma_np_mcast req{};
  req.qp = ud.resp.handle;
  const Gid group = *parse_gid("239.1.2.3");
  std::copy(group.begin(), group.end(), req.gid);
  CHECK(client.error(ORDMA_NP_DETACH_MCAST, req) == EINVAL);
  CHECK(client.error(ORDMA_NP_ATTACH_MCAST, req) == 0);
  CHECK(client.error(ORDMA_NP_ATTACH_MCAST, req) == 0);
  CHECK(client.error(ORDMA_NP_DESTROY_QP, handle(ud.resp.handle)) == EBUSY);
  CHECK(client.error(ORDMA_NP_DETACH_MCAST, req) == 0);
  CHECK(client.error(ORDMA_NP_DETACH_MCAST, req) == EINVAL);
  CHECK(client.error(ORDMA_NP_DESTROY_QP, handle(ud.resp.handle)) == 0);
  req.qp = rc.resp.handle;
  CHECK(client.error(ORDMA_NP_ATTACH_MCAST, req) == EINVAL);
}

TEST_CASE("memory registration refuses what cannot be reached", "[native]") {
  Rig rig;
  Client client(rig);
  const std::uint32_t pd = client.pd();
  std::byte* const memory = client.buffer(8192);
  ordma_np_reg_mr req{};
  req.pd = pd;
  req.va = req.iova = va(memory);
  req.len = 8192;
  req.access = 1;
  CHECK(client.error(ORDMA_NP_REG_MR, req) == 0);
  req.access = 2;  // remote write without local write
  CHECK(client.error(ORDMA_NP_REG_MR, req) == EINVAL);
  req.access = 1U << 20;  // a hint
  CHECK(client.error(ORDMA_NP_REG_MR, req) == 0);
  req.len = 0;
  CHECK(client.error(ORDMA_NP_REG_MR, req) == EINVAL);
  req.len = std::uint64_t{1} << 30;
  CHECK(client.error(ORDMA_NP_REG_MR, req) == EFAULT);
  req.len = 8192;
  req.va = std::uint64_t{1} << 48;
  CHECK(client.error(ORDMA_NP_REG_MR, req) == EFAULT);
  req.va = 4096;
  CHECK(client.error(ORDMA_NP_REG_MR, req) == EFAULT);
  req.va = va(memory);
  req.iova = ~std::uint64_t{0} - 100;
  CHECK(client.error(ORDMA_NP_REG_MR, req) == EINVAL);
}

TEST_CASE("queues must lie in buffers of the soft-device", "[native]") {
  Rig rig;
  Client client(rig);
  std::vector<std::byte> own(1 << 16);
  std::byte* const ring = client.buffer(8192);
  std::byte* const record = client.buffer(4096);
  ordma_np_create_cq req{};
  req.cqe = 16;
  req.drv.ring_log = 4;
  const std::uint64_t private_page = (va(own.data()) + 4095) / 4096 * 4096;
  req.drv.ring_va = private_page;
  req.drv.record_va = va(record);
  CHECK(client.error(ORDMA_NP_CREATE_CQ, req) == EFAULT);
  req.drv.ring_va = va(ring);
  req.drv.record_va = private_page;
  CHECK(client.error(ORDMA_NP_CREATE_CQ, req) == EFAULT);
  req.drv.record_va = va(record) + 8;
  CHECK(client.error(ORDMA_NP_CREATE_CQ, req) == EINVAL);
  req.drv.record_va = va(record);
  req.drv.ring_va = va(ring) + 64;
  CHECK(client.error(ORDMA_NP_CREATE_CQ, req) == EINVAL);
  req.drv.ring_va = va(ring);
  req.drv.ring_log = 8;  // longer than the buffer
  CHECK(client.error(ORDMA_NP_CREATE_CQ, req) == EFAULT);
  req.drv.ring_log = 3;  // does not hold 16
  CHECK(client.error(ORDMA_NP_CREATE_CQ, req) == EINVAL);
  req.drv.ring_log = 4;
  req.drv.comp_mask = 1;
  CHECK(client.error(ORDMA_NP_CREATE_CQ, req) == EOPNOTSUPP);
  req.drv.comp_mask = 0;
  req.comp_vector = 1;
  CHECK(client.error(ORDMA_NP_CREATE_CQ, req) == EINVAL);
  req.comp_vector = 0;
  req.has_channel = 1;  // and no descriptor
  CHECK(client.error(ORDMA_NP_CREATE_CQ, req) == EINVAL);
  req.has_channel = 0;
  CHECK(client.error(ORDMA_NP_CREATE_CQ, req) == 0);
}

TEST_CASE("modify: a wrong attribute is told before an unknown neighbour", "[native]") {
  Rig rig;
  Client client(rig);
  const std::uint32_t pd = client.pd();
  TestCq cq(client, 4);
  TestQp qp(client, pd, cq);
  qp.to_init(0);
  ordma_np_qp_attr attr{};
  attr.mask = 1 | (1 << 7) | (1 << 8) | (1 << 20) | (1 << 12) | (1 << 17) | (1 << 15);
  attr.qp_state = 2;
  attr.path_mtu = 3;
  attr.ah.is_global = 1;
  attr.ah.port_num = 1;
  attr.ah.sgid_index = 1;
  const Gid unknown = *parse_gid("10.99.0.1");
  std::copy(unknown.begin(), unknown.end(), attr.ah.dgid);
  CHECK(qp.modify(attr) == EHOSTUNREACH);
  attr.path_mtu = 6;
  CHECK(qp.modify(attr) == EINVAL);
  attr.path_mtu = 3;
  attr.ah.is_global = 0;
  CHECK(qp.modify(attr) == EINVAL);
  attr.ah.is_global = 1;
  const Gid peer = nic_ipv4_gid(1);
  std::copy(peer.begin(), peer.end(), attr.ah.dgid);
  CHECK(qp.modify(attr) == 0);
  const auto state = client.call<ordma_np_qp_attr>(ORDMA_NP_QUERY_QP, handle(qp.resp.handle));
  CHECK(state.qp_state == 2);
  CHECK(state.path_mtu == 3);
  CHECK(state.ah.sgid_index == 1);
  CHECK(std::equal(state.ah.dmac, state.ah.dmac + 6, nic_mac(1).begin()));
  CHECK(state.max_send_wr == 64);
}

TEST_CASE("programs get no GSI and no raw Ethernet QP", "[native]") {
  Rig rig;
  Client client(rig);
  const std::uint32_t pd = client.pd();
  TestCq cq(client, 4);
  for (const std::uint32_t type : {0U, 1U, 5U, 8U, 9U, ~0U}) {
    ordma_np_create_qp req{};
    req.pd = pd;
    req.scq = req.rcq = cq.resp.handle;
    req.srq = ~0U;
    req.type = type;
    CHECK(client.error(ORDMA_NP_CREATE_QP, req) == EOPNOTSUPP);
  }
}

TEST_CASE("every number is given back", "[native]") {
  EngineLimits limits;
  limits.max_qp = 8;
  limits.max_cq = 4;
  limits.max_mr = 8;
  limits.max_page = 4;
  limits.max_uctx = 4;
  Rig rig({.nics = 1, .limits = limits});
  for (int round = 0; round < 20; ++round) {
    Client client(rig);
    const std::uint32_t pd = client.pd();
    std::byte* const memory = client.buffer(4096);
    for (unsigned i = 0; i < limits.max_mr - 2; ++i) (void)client.mr(pd, memory, 4096, 1);
    ordma_np_reg_mr one_more{};
    one_more.pd = pd;
    one_more.va = one_more.iova = va(memory);
    one_more.len = 8;
    CHECK(client.error(ORDMA_NP_REG_MR, one_more) == ENOMEM);
    TestCq cq(client, 4);
    for (unsigned i = 0; i < limits.max_qp - 2; ++i) TestQp(client, pd, cq);
    const std::size_t before = rig.counter("ordma0", "driver_memory_bytes");
    ordma_np_create_qp req{};
    req.pd = pd;
    req.scq = req.rcq = cq.resp.handle;
    req.srq = ~0U;
    req.type = 2;
    req.max_send_wr = 1;
    req.max_send_sge = 1;
    std::byte* const sq = client.buffer(4096);
    req.drv.sq_va = va(sq);
    req.drv.sq_stride_log = 7;
    CHECK(client.error(ORDMA_NP_CREATE_QP, req) == ENOMEM);
    CHECK(rig.counter("ordma0", "driver_memory_bytes") == before);
  }
  rig.settle();
  CHECK(rig.counter("ordma0", "objects_qp") == 0);
  CHECK(rig.counter("ordma0", "objects_cq") == 0);
  CHECK(rig.checker.violations() == 0);
  for (const std::string& report : rig.checker.reports()) WARN(report);
}

TEST_CASE("hours of idleness are no stalled clock", "[native]") {
  Rig rig;
  Client client(rig);
  for (int i = 0; i < 50; ++i) {
    rig.host_ns += 600'000'000;  // a heartbeat
    rig.settle();
    REQUIRE(ordma_core_clock(&rig.nic(0).core()) + 1'000'000'000 > rig.now());
  }
  rig.host_ns += 3'600'000'000'000;  // stopped for an hour, as by a debugger
  rig.settle();
  rig.settle();
  CHECK_FALSE(rig.nic(0).dead());
  CHECK(client.pd() != 0);
}

TEST_CASE("counters come in pieces and belong together", "[native]") {
  Rig rig({.nics = 4});
  Client anyone(rig, 0, false);
  std::string text;
  ordma_np_counters_resp resp{};
  do {
    ordma_np_counters_req req{};
    req.offset = static_cast<std::uint32_t>(text.size());
    const auto reply = anyone.request(ORDMA_NP_COUNTERS, req);
    REQUIRE(reply.header.err == 0);
    REQUIRE(reply.body.size() >= sizeof resp);
    std::memcpy(&resp, reply.body.data(), sizeof resp);
    REQUIRE(resp.len == reply.body.size() - sizeof resp);
    REQUIRE(resp.len != 0);
    text.append(reinterpret_cast<const char*>(reply.body.data()) + sizeof resp, resp.len);
  } while (text.size() < resp.total);
  CHECK(text.size() > ORDMA_NP_MAX_MSG);
  CHECK(text.find("ordma1 tx_packets 0\n") != text.npos);
  CHECK(text.find("fabric tx_frames 0\n") != text.npos);
  CHECK(text.find("port.ordma0 ") != text.npos);
  ordma_np_counters_req beyond{};
  beyond.offset = resp.total + 1;
  CHECK(anyone.error(ORDMA_NP_COUNTERS, beyond) == EINVAL);
}
