// SPDX-License-Identifier: BSD-2-Clause
// Command ring: order, sequence numbers, phases, dead devices; and what the encoders write.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <cstring>
#include <string_view>

#include "fake_nic.hpp"
#include "ordma_hw.hpp"

using ordma::test::Call;
using ordma::test::Ev;
using ordma::test::FakeNic;
using ordma::test::Rsp;

namespace {

// The contract's C++ view is generated separately from the C macros that the encoders use.
std::uint64_t field(const ordma_cmd& cmd, std::string_view name,
                    std::span<const ordma::hw::FieldInfo> table) {
  for (const auto& f : table) {
    if (f.name != name) continue;
    const auto mask = f.field.width == 64 ? ~0ull : (1ull << f.field.width) - 1;
    return (cmd.w[f.field.word] >> f.field.shift) & mask;
  }
  throw std::logic_error("no such field: " + std::string(name));
}

std::span<const ordma::hw::FieldInfo> fields_of(std::string_view name) {
  for (const auto& s : ordma::hw::kStructs) {
    if (s.name == name) return s.fields;
  }
  throw std::logic_error("no such struct");
}

std::uint64_t head(const ordma_cmd& cmd, std::string_view name) {
  return field(cmd, name, fields_of("cmd"));
}

// Every bit that no field of the struct (or of the head) names must be zero.
void check_reserved(const ordma_cmd& cmd, std::string_view name) {
  ordma_cmd rest = cmd;
  auto clear = [&](std::span<const ordma::hw::FieldInfo> table) {
    for (const auto& f : table) {
      for (unsigned bit = 0; bit < f.field.width; ++bit) {
        rest.w[f.field.word + bit / 64] &= ~(1ull << ((f.field.shift + bit) % 64));
      }
    }
  };
  clear(fields_of("cmd"));
  if (!name.empty()) clear(fields_of(name));
  for (const auto w : rest.w) CHECK(w == 0);
}

ordma_cmd garbage() {
  ordma_cmd cmd;
  std::memset(&cmd, 0xff, sizeof cmd);
  return cmd;
}

}  // namespace

TEST_CASE("a command is executed, answered and used up") {
  FakeNic nic;
  nic.bring_up();
  nic.execute = [](const ordma_cmd&) { return Rsp{ORDMA_CMD_STATUS_OK, 0x1122, ~0ull}; };
  ordma_cmd cmd;
  std::uint32_t ticket = 0;
  ordma_rsp_result res{};
  ordma_cmd_nop(&cmd);
  REQUIRE(ordma_cmd_submit(&nic.core, &cmd, true, &ticket) == 0);
  CHECK(ordma_cmd_complete(&nic.core, ticket, &res) == -EINPROGRESS);
  nic.step();
  REQUIRE(ordma_cmd_complete(&nic.core, ticket, &res) == 0);
  CHECK(res.status == ORDMA_CMD_STATUS_OK);
  CHECK(res.result0 == 0x1122);
  CHECK(res.result1 == ~0ull);
  CHECK(ordma_cmd_complete(&nic.core, ticket, &res) == -EINVAL);
  REQUIRE(nic.executed.size() == 1);
  CHECK(head(nic.executed[0], "irq") == 1);
  CHECK(head(nic.executed[0], "opcode") == ORDMA_CMD_OP_NOP);
  REQUIRE(nic.drain() == 1);
  CHECK(nic.calls == std::vector<Call>{{"cmd_done", ordma_cmd_slot(ticket), 0}});
}

TEST_CASE("without irq there is no event") {
  FakeNic nic;
  nic.bring_up();
  ordma_cmd cmd;
  ordma_cmd_nop(&cmd);
  REQUIRE(nic.run(cmd) == 0);
  CHECK(nic.drain() == 0);
  CHECK(head(nic.executed[0], "irq") == 0);
}

TEST_CASE("the ring refuses the 257th command and takes one after any completion") {
  FakeNic nic;
  nic.bring_up();
  ordma_cmd cmd;
  ordma_cmd_nop(&cmd);
  std::vector<std::uint32_t> tickets(ORDMA_CMD_SLOTS);
  for (auto& t : tickets) REQUIRE(ordma_cmd_submit(&nic.core, &cmd, false, &t) == 0);
  std::uint32_t extra = 0;
  ordma_rsp_result res{};
  CHECK(ordma_cmd_submit(&nic.core, &cmd, false, &extra) == -EAGAIN);
  nic.step();
  // A response that is there but was not taken still holds its slot.
  CHECK(ordma_cmd_submit(&nic.core, &cmd, false, &extra) == -EAGAIN);
  REQUIRE(ordma_cmd_complete(&nic.core, tickets[1], &res) == 0);
  CHECK(ordma_cmd_submit(&nic.core, &cmd, false, &extra) == -EAGAIN);
  REQUIRE(ordma_cmd_complete(&nic.core, tickets[0], &res) == 0);
  REQUIRE(ordma_cmd_submit(&nic.core, &cmd, false, &extra) == 0);
  CHECK(ordma_cmd_slot(extra) == ordma_cmd_slot(tickets[0]));
  CHECK(ordma_cmd_complete(&nic.core, tickets[0], &res) == -EINVAL);
  CHECK(ordma_cmd_complete(&nic.core, extra, &res) == -EINPROGRESS);
}

TEST_CASE("random submits and completions over many laps and the index wrap") {
  const auto seed = GENERATE(range(1u, ordma::test::last_seed(8)));
  INFO("seed " << seed);
  std::mt19937 rng(seed);
  FakeNic nic;
  nic.bring_up();
  nic.execute = [](const ordma_cmd& c) { return Rsp{0, ORDMA_GET(&c, CMD_NUMBER), 0}; };
  // The index wraps at 2^24; start a few laps below it.
  const std::uint32_t start = (1u << ORDMA_INDEX_BITS) - 3 * ORDMA_CMD_SLOTS;
  nic.core.cmd_pi = nic.cmd_rung = nic.cmd_done = start;
  auto* rsp = static_cast<ordma_rsp*>(nic.core.rings.rsp.va);
  for (unsigned i = 0; i < ORDMA_CMD_SLOTS; ++i) {
    ORDMA_SET(&rsp[i], RSP_PHASE, (start >> ORDMA_CMD_RING_LOG) & 1);
  }
  std::map<std::uint32_t, std::uint32_t> out;  // ticket -> number
  std::uint32_t next = 0;
  std::size_t finished = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto what = rng() % 3;
    if (what == 0) {
      ordma_cmd cmd;
      ordma_cmd_page_close(&cmd, next);
      std::uint32_t ticket = 0;
      const int err = ordma_cmd_submit(&nic.core, &cmd, false, &ticket);
      REQUIRE((err == 0 || err == -EAGAIN));
      if (!err) REQUIRE(out.emplace(ticket, next++).second);
    } else if (what == 1) {
      nic.step_one();
    } else if (!out.empty()) {
      auto it = std::next(out.begin(), static_cast<long>(rng() % out.size()));
      ordma_rsp_result res{};
      const int err = ordma_cmd_complete(&nic.core, it->first, &res);
      REQUIRE((err == 0 || err == -EINPROGRESS));
      if (err) continue;
      REQUIRE(res.result0 == it->second);
      out.erase(it);
      ++finished;
    }
  }
  CHECK(finished > 4 * ORDMA_CMD_SLOTS);
  CHECK(nic.core.stats.rsp_bad == 0);
}

TEST_CASE("tickets that are not out are refused") {
  FakeNic nic;
  nic.bring_up();
  ordma_cmd cmd;
  ordma_cmd_nop(&cmd);
  std::uint32_t ticket = 0;
  ordma_rsp_result res{};
  REQUIRE(ordma_cmd_submit(&nic.core, &cmd, false, &ticket) == 0);
  nic.step();
  for (const std::uint32_t bad : {ticket + 1, ticket + ORDMA_CMD_SLOTS, ticket - ORDMA_CMD_SLOTS,
                                  ticket | 1u << 24, 0xffffffffu, 0x80000000u}) {
    CHECK(ordma_cmd_complete(&nic.core, bad, &res) == -EINVAL);
  }
  CHECK(ordma_cmd_complete(&nic.core, ticket, &res) == 0);
}

TEST_CASE("a response with a wrong sequence number kills the device, once") {
  FakeNic nic;
  nic.bring_up();
  ordma_cmd cmd;
  ordma_cmd_nop(&cmd);
  std::uint32_t a = 0, b = 0;
  ordma_rsp_result res{};
  REQUIRE(ordma_cmd_submit(&nic.core, &cmd, false, &a) == 0);
  REQUIRE(ordma_cmd_submit(&nic.core, &cmd, false, &b) == 0);
  nic.step();
  ORDMA_SET(static_cast<ordma_rsp*>(nic.core.rings.rsp.va), RSP_SEQ, 0x8000);
  CHECK(ordma_cmd_complete(&nic.core, a, &res) == -EIO);
  CHECK(ordma_cmd_complete(&nic.core, b, &res) == -EIO);
  CHECK(nic.core.stats.rsp_bad == 1);
  CHECK(nic.calls == std::vector<Call>{{"fatal", ORDMA_FATAL_CMD, 0}});
  CHECK(ordma_cmd_submit(&nic.core, &cmd, false, &a) == -EIO);
}

TEST_CASE("on a dead device submits fail and destroys succeed at once") {
  FakeNic nic;
  nic.bring_up();
  ordma_cmd cmd;
  std::uint32_t before = 0, ticket = 0;
  ordma_rsp_result res{};
  ordma_cmd_page_close(&cmd, 3);
  REQUIRE(ordma_cmd_submit_destroy(&nic.core, &cmd, false, &before) == 0);
  CHECK(ordma_cmd_destroy_complete(&nic.core, before) == -EINPROGRESS);
  ordma_core_mark_dead(&nic.core);
  ordma_core_mark_dead(&nic.core);
  CHECK(ordma_cmd_destroy_complete(&nic.core, before) == 0);
  CHECK(ordma_cmd_complete(&nic.core, before, &res) == -EIO);
  CHECK(ordma_cmd_submit(&nic.core, &cmd, false, &ticket) == -EIO);
  const auto rung = nic.doorbells.size();
  REQUIRE(ordma_cmd_submit_destroy(&nic.core, &cmd, true, &ticket) == 0);
  CHECK(ticket == ORDMA_TICKET_NONE);
  CHECK(ordma_cmd_destroy_complete(&nic.core, ticket) == 0);
  CHECK(nic.doorbells.size() == rung);
  Ev ev;
  ev.type = ORDMA_EVENT_TYPE_CQ_FIRE;
  ev.number = 1;
  nic.event(ev);
  CHECK(nic.drain() == 0);
  CHECK_FALSE(ordma_core_events_pending(&nic.core));
  CHECK(nic.calls.empty());
}

TEST_CASE("a refused destroy") {
  FakeNic nic;
  nic.bring_up();
  unsigned status = ORDMA_CMD_STATUS_NO_OBJECT;
  nic.execute = [&](const ordma_cmd&) { return Rsp{status, 0, 0}; };
  ordma_cmd cmd;
  std::uint32_t ticket = 0;
  ordma_cmd_page_close(&cmd, 3);
  REQUIRE(ordma_cmd_submit_destroy(&nic.core, &cmd, false, &ticket) == 0);
  nic.step();
  CHECK(ordma_cmd_destroy_complete(&nic.core, ticket) == 0);
  CHECK(nic.core.stats.destroy_errors == 1);
  CHECK_FALSE(ordma_core_dead(&nic.core));

  // The object may still be in use: only a dead device makes its memory safe to free.
  status = GENERATE(2u, 7u, 77u);
  REQUIRE(ordma_cmd_submit_destroy(&nic.core, &cmd, false, &ticket) == 0);
  nic.step();
  CHECK(ordma_cmd_destroy_complete(&nic.core, ticket) == 0);
  CHECK(ordma_core_dead(&nic.core));
  CHECK(nic.calls == std::vector<Call>{{"fatal", ORDMA_FATAL_INTERNAL, 0}});
}

TEST_CASE("status codes become the errnos of the contract") {
  const std::map<int, int> expected = {{0, 0},       {1, -EINVAL}, {2, -EINVAL},     {3, -ENOENT},
                                       {4, -EEXIST}, {5, -ENOMEM}, {6, -EOPNOTSUPP}, {7, -EFAULT}};
  for (int s = 0; s < 256; ++s) {
    const auto it = expected.find(s);
    CHECK(ordma_status_to_errno(static_cast<u32>(s)) == (it == expected.end() ? -EIO : it->second));
  }
}

TEST_CASE("encoders of pages and keys") {
  ordma_cmd cmd = garbage();
  ordma_cmd_nop(&cmd);
  CHECK(head(cmd, "opcode") == 1);
  check_reserved(cmd, "");

  cmd = garbage();
  ordma_cmd_page_open(&cmd, 9, 0xfffe, true, 0x123456789abcdef0);
  const auto page = fields_of("cmd_page");
  CHECK(head(cmd, "opcode") == 2);
  CHECK(head(cmd, "number") == 9);
  CHECK(field(cmd, "uctx", page) == 0xfffe);
  CHECK(field(cmd, "token", page) == 1);
  CHECK(field(cmd, "record", page) == 0x123456789abcdef0);
  check_reserved(cmd, "cmd_page");

  const ordma_mr mr{0xabcd0007,      0x123456, 0x3ff00000u | 0xff, 0xfff, 0x123456789,
                    {0x8000, 21, 2}, 0x1ff};
  cmd = garbage();
  ordma_cmd_mr_create(&cmd, &mr);
  const auto m = fields_of("cmd_mr");
  CHECK(head(cmd, "opcode") == 4);
  CHECK(head(cmd, "number") == 0xabcd0007);
  CHECK(field(cmd, "pd", m) == 0x123456);
  CHECK(field(cmd, "access", m) == 0xf);
  CHECK(field(cmd, "page_log", m) == 21);
  CHECK(field(cmd, "level", m) == 2);
  CHECK(field(cmd, "iova", m) == 0xfff);
  CHECK(field(cmd, "length", m) == 0x123456789);
  CHECK(field(cmd, "addr", m) == 0x8000);
  CHECK(field(cmd, "first_off", m) == 0x1ff);
  check_reserved(cmd, "cmd_mr");
  ordma_cmd_mr_destroy(&cmd, &mr);
  CHECK(head(cmd, "opcode") == 5);
  CHECK(head(cmd, "number") == 0xabcd0007);
}

TEST_CASE("encoders of completion and shared receive queues") {
  ordma_cmd cmd;
  const ordma_cq cq{17, 5, 3, 10, {0x9000, 12, 1}, 0xa040};
  for (const bool resize : {false, true}) {
    cmd = garbage();
    const ordma_buf buf{0xb000, 13, 2};
    if (resize) {
      ordma_cmd_cq_resize(&cmd, &cq, 11, &buf, 0xc040);
    } else {
      ordma_cmd_cq_create(&cmd, &cq);
    }
    const auto c = fields_of("cmd_cq");
    CHECK(head(cmd, "opcode") == (resize ? 7u : 6u));
    CHECK(head(cmd, "number") == 17);
    CHECK(field(cmd, "uctx", c) == 5);
    CHECK(field(cmd, "vector", c) == 3);
    CHECK(field(cmd, "log", c) == (resize ? 11u : 10u));
    CHECK(field(cmd, "page_log", c) == (resize ? 13u : 12u));
    CHECK(field(cmd, "level", c) == (resize ? 2u : 1u));
    CHECK(field(cmd, "addr", c) == (resize ? 0xb000u : 0x9000u));
    CHECK(field(cmd, "record", c) == (resize ? 0xc040u : 0xa040u));
    check_reserved(cmd, "cmd_cq");
  }
  ordma_cmd_cq_destroy(&cmd, &cq);
  CHECK(head(cmd, "opcode") == 8);

  ordma_srq srq{7, 0x1234, 6, 9, 6, {0xd000, 14, 1}, 0xe040, 512, 3, 100, 0, 0};
  cmd = garbage();
  ordma_cmd_srq_create(&cmd, &srq);
  const auto s = fields_of("cmd_srq");
  CHECK(head(cmd, "opcode") == 9);
  CHECK(head(cmd, "number") == 7);
  CHECK(field(cmd, "uctx", s) == 6);
  CHECK(field(cmd, "log", s) == 9);
  CHECK(field(cmd, "stride_log", s) == 6);
  CHECK(field(cmd, "page_log", s) == 14);
  CHECK(field(cmd, "level", s) == 1);
  CHECK(field(cmd, "addr", s) == 0xd000);
  CHECK(field(cmd, "record", s) == 0xe040);
  CHECK(field(cmd, "pd", s) == 0x1234);
  CHECK(field(cmd, "limit", s) == 100);
  check_reserved(cmd, "cmd_srq");
  ordma_cmd_srq_limit(&cmd, &srq, 55);
  CHECK(head(cmd, "opcode") == 10);
  CHECK(field(cmd, "limit", s) == 55);
  ordma_cmd_srq_destroy(&cmd, &srq);
  CHECK(head(cmd, "opcode") == 11);
  CHECK(head(cmd, "number") == 7);
}

TEST_CASE("encoder of the GID table") {
  const std::uint8_t v6[16] = {0xfe, 0x80, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  ordma_gid_entry e{};
  std::memcpy(e.gid, v6, 16);
  const std::uint8_t mac[6] = {2, 3, 4, 5, 6, 7};
  std::memcpy(e.mac, mac, 6);
  e.valid = true;
  e.has_vlan = true;
  e.vlan = 4094;
  ordma_cmd cmd = garbage();
  ordma_cmd_gid_set(&cmd, 63, &e);
  const auto g = fields_of("cmd_gid");
  CHECK(head(cmd, "opcode") == 16);
  CHECK(head(cmd, "number") == 63);
  CHECK(field(cmd, "valid", g) == 1);
  CHECK(field(cmd, "ipv4", g) == 0);
  CHECK(field(cmd, "has_vlan", g) == 1);
  CHECK(field(cmd, "vlan", g) == 4094);
  CHECK(field(cmd, "mac", g) == 0x070605040302);
  CHECK(std::memcmp(reinterpret_cast<const char*>(&cmd) + 16, v6, 16) == 0);
  check_reserved(cmd, "cmd_gid");
  e.valid = false;
  ordma_cmd_gid_set(&cmd, 63, &e);
  CHECK(cmd.w[ORDMA_CMD_GID_VALID_W] == 0);
  CHECK(cmd.w[ORDMA_CMD_GID_GID_OFF / 8] == 0);
  CHECK(cmd.w[ORDMA_CMD_GID_MAC_W] == 0);

  std::uint8_t back[6];
  ordma_mac_from_u64(ordma_mac_to_u64(mac), back);
  CHECK(std::memcmp(back, mac, 6) == 0);
}

TEST_CASE("encoders of multicast, counters and filters") {
  const std::uint8_t v6[16] = {0xff, 0x0e, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const std::uint8_t mac[6] = {2, 3, 4, 5, 6, 7};
  ordma_cmd cmd;
  ordma_qp qp{};
  qp.qpn = 0xabc123;
  for (const bool attach : {true, false}) {
    cmd = garbage();
    ordma_cmd_mcast(&cmd, &qp, v6, attach);
    CHECK(head(cmd, "opcode") == (attach ? 17u : 18u));
    CHECK(head(cmd, "number") == 0xabc123);
    CHECK(std::memcmp(reinterpret_cast<const char*>(&cmd) + 16, v6, 16) == 0);
    check_reserved(cmd, "cmd_mcast");
  }
  cmd = garbage();
  ordma_cmd_counters(&cmd, 0x5000, ORDMA_NUM_COUNTERS);
  CHECK(head(cmd, "opcode") == 19);
  CHECK(field(cmd, "addr", fields_of("cmd_out")) == 0x5000);
  CHECK(field(cmd, "count", fields_of("cmd_out")) == ORDMA_NUM_COUNTERS);
  check_reserved(cmd, "cmd_out");
  cmd = garbage();
  ordma_cmd_eth_filter(&cmd, 5, mac, true, false);
  CHECK(head(cmd, "opcode") == 20);
  CHECK(field(cmd, "promisc", fields_of("cmd_eth")) == 1);
  CHECK(field(cmd, "allmulti", fields_of("cmd_eth")) == 0);
  CHECK(field(cmd, "mac", fields_of("cmd_eth")) == 0x070605040302);
  check_reserved(cmd, "cmd_eth");
  ordma_cmd_qp_destroy(&cmd, &qp);
  CHECK(head(cmd, "opcode") == 14);
  CHECK(head(cmd, "number") == 0xabc123);
}

TEST_CASE("GID and multicast checks: case_088, case_080") {
  FakeNic nic;
  nic.bring_up();
  ordma_gid_entry e{};
  e.valid = true;
  e.gid[0] = 0xfe;
  e.mac[0] = 2;
  CHECK(ordma_gid_check(&nic.core, 0, &e) == 0);
  CHECK(ordma_gid_check(&nic.core, 64, &e) == -EINVAL);
  e.has_vlan = true;
  e.vlan = 4095;
  CHECK(ordma_gid_check(&nic.core, 0, &e) == -EINVAL);
  e.vlan = 1;
  e.mac[0] = 3;
  CHECK(ordma_gid_check(&nic.core, 0, &e) == -EINVAL);
  e.mac[0] = 0;
  CHECK(ordma_gid_check(&nic.core, 0, &e) == -EINVAL);
  e.mac[5] = 1;
  e.gid[0] = 0;
  CHECK(ordma_gid_check(&nic.core, 0, &e) == -EINVAL);
  e.gid[0] = 0xff;
  CHECK(ordma_gid_check(&nic.core, 0, &e) == -EINVAL);
  e.valid = false;
  CHECK(ordma_gid_check(&nic.core, 0, &e) == 0);
  e.valid = true;
  e.gid[0] = 0x20;
  nic.core.caps.bits &= ~std::uint64_t{ORDMA_CAP_IPV6};
  CHECK(ordma_gid_check(&nic.core, 0, &e) == -EOPNOTSUPP);
  const std::uint8_t v4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  std::memcpy(e.gid, v4, 16);
  CHECK(ordma_gid_is_ipv4(v4));
  CHECK(ordma_gid_check(&nic.core, 0, &e) == 0);

  ordma_qp ud{}, rc{};
  nic.make_qp(&ud, 2, ORDMA_QP_TYPE_UD);
  nic.make_qp(&rc, 3, ORDMA_QP_TYPE_RC);
  const std::uint8_t group[16] = {0xff, 0x0e};
  const std::uint8_t group4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 0, 0, 1};
  CHECK(ordma_mcast_check(&nic.core, &ud, group) == 0);
  CHECK(ordma_mcast_check(&nic.core, &ud, group4) == 0);
  CHECK(ordma_mcast_check(&nic.core, &ud, v4) == -EINVAL);
  CHECK(ordma_mcast_check(&nic.core, &rc, group) == -EINVAL);
  nic.core.caps.bits &= ~std::uint64_t{ORDMA_CAP_MCAST};
  CHECK(ordma_mcast_check(&nic.core, &ud, group) == -EOPNOTSUPP);
}

TEST_CASE("counter names are the contract's in lower case") {
  const auto names = std::span(ordma::hw::kCounterTable);
  REQUIRE(names.size() == ORDMA_NUM_COUNTERS);
  for (const auto& info : names) {
    std::string lower(info.name);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    REQUIRE(ordma_counter_name(static_cast<unsigned>(info.value)) != nullptr);
    CHECK(ordma_counter_name(static_cast<unsigned>(info.value)) == lower);
  }
  CHECK(ordma_counter_name(ORDMA_NUM_COUNTERS) == nullptr);
  CHECK(ordma_counter_name(~0u) == nullptr);
}
