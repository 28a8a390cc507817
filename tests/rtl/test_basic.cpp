// SPDX-License-Identifier: BSD-2-Clause
// RC SEND and WRITE between two NICs, from doorbell to CQE.
#include <catch2/catch.hpp>

#include "pair.hpp"

namespace ordma::bench {

TEST_CASE("registers identify the NIC") {
  World w(make_rtl);
  auto& e = *w.hosts[0]->engine;
  CHECK(e.register_read(hw::reg::kMagic) == hw::kMagic);
  CHECK(e.register_read(hw::reg::kVersion) == (hw::kContractMajor << 16 | hw::kContractMinor));
  CHECK(e.register_read(hw::reg::kMaxQp) == 256);
  CHECK((e.register_read(hw::reg::kStatus) & 1) == 1);
}

TEST_CASE("commands answer in order") {
  World w(make_rtl);
  Host& h = *w.hosts[0];
  for (int i = 0; i < 40; ++i) CHECK(h.command(hw::CmdOp::kNop, 0) == hw::CmdStatus::kOk);
  CHECK(h.command(hw::CmdOp::kMcastAttach, 5) == hw::CmdStatus::kUnsupported);
  CHECK(h.command(static_cast<hw::CmdOp>(200), 5) == hw::CmdStatus::kUnsupported);
}

TEST_CASE("SEND, one packet") {
  Pair p(make_rtl);
  const auto data = pattern(100, 1);
  put(p.a(), p.ra, 10, data);
  p.qb->post_recv(77, {{p.rb.iova + 5, 200, p.rb.key}});
  p.qb->ring_rq();
  p.qa->post({.sges = {{p.ra.iova + 10, 100, p.ra.key}}});
  p.qa->ring_sq();
  const auto r = p.cb->wait();
  REQUIRE(r);
  CHECK(r->status == hw::WcStatus::kSuccess);
  CHECK(r->wr_id == 77);
  CHECK(r->byte_len == 100);
  CHECK(get(p.b(), p.rb, 5, 100) == data);
  const auto s = p.ca->wait();
  REQUIRE(s);
  CHECK(s->status == hw::WcStatus::kSuccess);
  CHECK(s->opcode == hw::WcOp::kSend);
  CHECK(s->wqe_index == 0);
  p.check_wire();
}

TEST_CASE("IPv6, with and without a VLAN tag") {
  const bool vlan = GENERATE(false, true);
  Pair p(make_rtl, {.mtu_log = 10, .ipv6 = true, .vlan = vlan});
  for (const std::uint32_t size : {0u, 1u, 2u, 3u, 4u, 100u, 1024u, 1025u, 3000u}) {
    INFO("size " << size);
    const auto data = pattern(size, size + 1);
    put(p.a(), p.ra, 10, data);
    std::vector<Sge> sges;
    if (size != 0) sges.push_back({p.ra.iova + 10, size, p.ra.key});
    p.qa->post({.op = hw::WqeOp::kWrite, .sges = sges, .remote_addr = p.rb.iova + 5, .rkey = p.rb.key});
    p.qa->ring_sq();
    const auto s = p.ca->wait();
    REQUIRE(s);
    REQUIRE(s->status == hw::WcStatus::kSuccess);
    CHECK(get(p.b(), p.rb, 5, size) == data);
  }
  p.check_wire();
}

TEST_CASE("sizes, MTUs, operations: SEND and WRITE arrive whole") {
  const unsigned mtu_log = GENERATE(8u, 10u, 12u);
  const auto level = GENERATE(hw::BufLevel::kDirect, hw::BufLevel::kList, hw::BufLevel::kTree);
  Pair p(make_rtl, {.mtu_log = mtu_log, .level = level});
  unsigned seed = 1;
  for (const std::uint32_t size : {0u, 1u, 3u, 63u, 64u, 65u, 255u, 256u, 257u, 1023u, 1025u, 4095u, 4096u, 4097u, 20000u}) {
    for (const auto op : {hw::WqeOp::kSend, hw::WqeOp::kSendImm, hw::WqeOp::kWrite, hw::WqeOp::kWriteImm}) {
      INFO("size " << size << " op " << static_cast<int>(op) << " mtu " << mtu_log);
      const auto data = pattern(size, ++seed);
      const std::uint32_t from = seed * 7 % 5000, to = seed * 13 % 5000;
      put(p.a(), p.ra, from, data);
      const bool write = op == hw::WqeOp::kWrite || op == hw::WqeOp::kWriteImm;
      const bool imm = op == hw::WqeOp::kSendImm || op == hw::WqeOp::kWriteImm;
      if (op != hw::WqeOp::kWrite) {
        p.qb->post_recv(seed, {{p.rb.iova + to, size, p.rb.key}});
        p.qb->ring_rq();
      }
      std::vector<Sge> sges;
      if (size != 0) sges.push_back({p.ra.iova + from, size, p.ra.key});
      p.qa->post({.op = op, .sges = sges, .remote_addr = p.rb.iova + to, .rkey = p.rb.key, .imm = 0x89abcdef + seed});
      p.qa->ring_sq();
      const auto s = p.ca->wait();
      REQUIRE(s);
      REQUIRE(s->status == hw::WcStatus::kSuccess);
      CHECK(s->opcode == (write ? hw::WcOp::kRdmaWrite : hw::WcOp::kSend));
      if (op != hw::WqeOp::kWrite) {
        const auto r = p.cb->wait();
        REQUIRE(r);
        REQUIRE(r->status == hw::WcStatus::kSuccess);
        CHECK(r->wr_id == seed);
        CHECK(r->byte_len == size);
        CHECK(r->has_imm == imm);
        if (imm) CHECK(r->imm == 0x89abcdef + seed);
        CHECK(r->opcode == (write ? hw::WcOp::kRecvRdmaWithImm : hw::WcOp::kRecv));
      }
      REQUIRE(get(p.b(), p.rb, to, size) == data);
    }
  }
  p.check_wire();
}

}  // namespace ordma::bench
