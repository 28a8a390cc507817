// SPDX-License-Identifier: BSD-2-Clause
// What device and port say about themselves, and the GID table.
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>

#include "checks.hpp"

using namespace ordma::test;

namespace {

std::string sysfs(const std::string& path) {
  std::ifstream in("/sys/class/infiniband/" + device_names().at(0) + "/" + path);
  std::string line;
  std::getline(in, line);
  return line;
}

bool zero(const ibv_gid& gid) {
  const ibv_gid none{};
  return std::memcmp(&gid, &none, sizeof(none)) == 0;
}

}  // namespace

TEST_CASE("case_103 port values that tools can read", "[rc]") {
  End end(device_names().at(0));
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(end.ctx.get(), 1, &port) == 0);
  CHECK(port.state == IBV_PORT_ACTIVE);
  CHECK(port.phys_state == 5);
  CHECK(port.max_mtu == IBV_MTU_4096);
  CHECK(port.active_mtu >= IBV_MTU_1024);
  CHECK(port.active_mtu <= port.max_mtu);
  CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET);
  CHECK(port.lid == 0);
  CHECK(port.sm_lid == 0);
  CHECK(port.pkey_tbl_len == 1);
  CHECK(port.gid_tbl_len >= 2);
  CHECK(port.max_msg_sz >= 1u << 30);
  CHECK(std::set<int>{1, 2, 4, 8, 16}.contains(port.active_width));
  CHECK(std::set<int>{1, 2, 4, 8, 16, 32, 64, 128}.contains(port.active_speed));
  CHECK(ibv_query_port(end.ctx.get(), 2, &port) != 0);
  CHECK(ibv_query_port(end.ctx.get(), 0, &port) != 0);
  __be16 pkey = 0;
  REQUIRE(ibv_query_pkey(end.ctx.get(), 1, 0, &pkey) == 0);
  CHECK(pkey == 0xffff);
  int gbps = 0;
  char text[64] = {};
  const std::string rate = sysfs("ports/1/rate");
  CAPTURE(rate);
  REQUIRE(std::sscanf(rate.c_str(), "%d Gb/sec (%63[^)])", &gbps, text) == 2);
  CHECK(gbps >= 1);
  CHECK(sysfs("ports/1/link_layer") == "Ethernet");
  CHECK(sysfs("ports/1/state") == "4: ACTIVE");
}

TEST_CASE("case_083 GUIDs and identity", "[rc]") {
  std::set<std::uint64_t> guids;
  for (const std::string& name : device_names()) {
    const Context ctx = open_device(name);
    ibv_device_attr device{};
    REQUIRE(ibv_query_device(ctx.get(), &device) == 0);
    CHECK(device.node_guid != 0);
    CHECK(device.sys_image_guid != 0);
    CHECK(device.node_guid == ibv_get_device_guid(ctx->device));
    CHECK(guids.insert(device.node_guid).second);
    CHECK(device.vendor_id != 0);
    CHECK(device.vendor_part_id != 0);
    CHECK(std::string(device.fw_ver) != "0.0.0");
    CHECK(std::count(device.fw_ver, device.fw_ver + std::strlen(device.fw_ver), '.') == 2);
    CHECK(device.phys_port_cnt == 1);
    CHECK(ctx->device->node_type == IBV_NODE_CA);
    CHECK(ctx->device->transport_type == IBV_TRANSPORT_IB);
  }
}

TEST_CASE("case_097 limits are not zero and can be reached", "[rc]") {
  End end(device_names().at(0));
  ibv_device_attr d{};
  REQUIRE(ibv_query_device(end.ctx.get(), &d) == 0);
  CHECK(d.max_sge_rd > 0);
  CHECK(d.max_res_rd_atom > 0);
  CHECK(d.max_qp_rd_atom > 0);
  CHECK(d.max_qp_init_rd_atom > 0);
  CHECK(d.max_mr_size >= std::uint64_t{1} << 40);
  CHECK((d.page_size_cap & 4096) != 0);
  CHECK(d.max_ah > 0);
  CHECK((d.device_cap_flags & IBV_DEVICE_RC_RNR_NAK_GEN) != 0);
  ibv_qp_init_attr attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.send_cq = attr.recv_cq = end.scq.get();
  attr.cap = {1, 1, 1, 1, 0};
  std::vector<Qp> qps;
  const auto most = static_cast<std::size_t>(d.max_qp) - 1;  // the rig has one
  const std::size_t wanted = std::min(most, scale(500, most, most));
  while (qps.size() < wanted) {
    qps.emplace_back(ibv_create_qp(end.pd.get(), &attr));
    REQUIRE(qps.back() != nullptr);
  }
  if (wanted == most) {
    errno = 0;
    CHECK(ibv_create_qp(end.pd.get(), &attr) == nullptr);
    CHECK(errno == ENOMEM);
  }
  std::vector<Cq> cqs;
  const std::size_t cq_count = std::min<std::size_t>(static_cast<std::size_t>(d.max_cq) - 2, wanted);
  while (cqs.size() < cq_count) {
    cqs.emplace_back(ibv_create_cq(end.ctx.get(), 1, nullptr, nullptr, 0));
    REQUIRE(cqs.back() != nullptr);
  }
}

TEST_CASE("case_088 the GID table", "[rc]") {
  End end(device_names().at(0));
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(end.ctx.get(), 1, &port) == 0);
  const ibv_gid link_local = end.gid(0), ipv4 = end.gid(1);
  CHECK(link_local.raw[0] == 0xfe);
  CHECK(link_local.raw[1] == 0x80);
  CHECK(std::all_of(ipv4.raw, ipv4.raw + 10, [](std::uint8_t b) { return b == 0; }));
  CHECK(ipv4.raw[10] == 0xff);
  CHECK(ipv4.raw[11] == 0xff);
  CHECK(sysfs("ports/1/gid_attrs/types/0") == "RoCE v2");
  CHECK(sysfs("ports/1/gid_attrs/types/1") == "RoCE v2");
  // A name there must be one of a network device: libibverbs looks its index up.
  const std::string netdev = sysfs("ports/1/gid_attrs/ndevs/0");
  CHECK((netdev.empty() || ::if_nametoindex(netdev.c_str()) != 0));
  std::set<std::string> seen;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    // The type of an unused entry refuses to be read on a kernel; a plain file cannot do that.
    const ibv_gid gid = end.gid(i);
    if (!zero(gid)) {
      CHECK(sysfs("ports/1/gid_attrs/types/" + std::to_string(i)) == "RoCE v2");
      CHECK(seen.emplace(reinterpret_cast<const char*>(gid.raw), sizeof(gid.raw)).second);
    }
  }
  ibv_gid beyond{};
  CHECK(ibv_query_gid(end.ctx.get(), 1, port.gid_tbl_len, &beyond) != 0);
}

TEST_CASE("case_088 the extended GID query", "[rc]") {
  End end(device_names().at(0));
  ibv_gid_entry entry{};
  REQUIRE(ibv_query_gid_ex(end.ctx.get(), 1, 1, &entry, 0) == 0);
  CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2);
  CHECK(entry.gid_index == 1);
  CHECK(entry.port_num == 1);
  const ibv_gid gid = end.gid(1);
  CHECK(std::memcmp(&entry.gid, &gid, sizeof(gid)) == 0);
  std::array<ibv_gid_entry, 256> table{};
  CHECK(ibv_query_gid_table(end.ctx.get(), table.data(), table.size(), 0) >= 2);
}

TEST_CASE("case_088 addresses of two families, or of nobody, fail at once", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback, {}, {}, false);
  REQUIRE(set_init(p.a.qp.get(), p.link) == 0);
  Link link = p.link;
  const int other = 1 - link.gid_index;
  const int err = set_rtr(p.a.qp.get(), link, p.b.qp->qp_num, p.b.gid(other), 0);
  CAPTURE(loopback, err);
  CHECK((err == EINVAL || err == ENETUNREACH));
  ibv_gid stranger = p.b.gid(1);
  stranger.raw[15] = 222;
  stranger.raw[13] ^= 1;
  link.gid_index = 1;
  const int unknown = set_rtr(p.a.qp.get(), link, p.b.qp->qp_num, stranger, 0);
  CHECK((unknown == EHOSTUNREACH || unknown == ENETUNREACH));
  CHECK(set_rtr(p.a.qp.get(), link, p.b.qp->qp_num, ibv_gid{}, 0) == EINVAL);
  link.gid_index = 5;  // an empty entry
  CHECK(set_rtr(p.a.qp.get(), link, p.b.qp->qp_num, p.b.gid(1), 0) == EINVAL);
  CHECK(query(p.a.qp.get()).qp_state == IBV_QPS_INIT);
}
