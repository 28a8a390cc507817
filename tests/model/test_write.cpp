// SPDX-License-Identifier: BSD-2-Clause
#include "link.hpp"

using namespace ordma;
using namespace ordma::bench;

namespace {

void require_ok(const std::vector<Wc>& wcs, std::size_t count) {
  REQUIRE(wcs.size() == count);
  for (const Wc& wc : wcs) CHECK(wc.status == hw::WcStatus::kSuccess);
}

}  // namespace

TEST_CASE("RC WRITE with an SGE arrives and completes") {
  Link l;
  const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192);
  l.a.mem.fill(src.addr, 8192, 3);
  l.qa.send(l.write(src, 5000, dst, 100));
  l.run();
  const auto wcs = l.ca.drain();
  require_ok(wcs, 1);
  CHECK(wcs[0].opcode == hw::WcOp::kRdmaWrite);
  CHECK(wcs[0].qpn == l.qa.qpn);
  CHECK(wcs[0].wqe_index == 0);
  CHECK_FALSE(wcs[0].is_recv);
  CHECK(l.b.mem.filled(dst.addr + 100, 5000, 3));
  CHECK(l.cb.drain().empty());
  CHECK(l.a.events().empty());
}

TEST_CASE("RC WRITE inline") {
  Link l;
  const Mr dst = l.b.reg_mr(4096);
  std::vector<std::byte> data(236);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);
  l.qa.send({.inline_data = data, .remote_addr = dst.iova, .rkey = dst.key});
  l.run();
  require_ok(l.ca.drain(), 1);
  const auto got = l.b.mem.at(dst.addr, data.size());
  CHECK(std::equal(got.begin(), got.end(), data.begin()));
}

TEST_CASE("case_034 WRITE and SEND of every size at every path MTU") {
  for (unsigned mtu_log = 8; mtu_log <= 12; ++mtu_log) {
    LinkOptions o;
    o.a.mtu_log = o.b.mtu_log = mtu_log;
    Link l(o);
    const Mr src = l.a.reg_mr(70000), dst = l.b.reg_mr(70000), in = l.b.reg_mr(70000);
    unsigned seed = mtu_log * 100;
    for (const std::uint32_t n : {1u, 1023u, 1024u, 1025u, 1500u, 2047u, 2048u, 2049u, 4095u,
                                  4096u, 4097u, 65537u}) {
      INFO("mtu " << (1u << mtu_log) << " bytes " << n);
      l.a.mem.fill(src.addr, n, ++seed);
      l.qb.recv(n, {{in.iova, n, in.key}});
      l.qa.post(l.write(src, n, dst));
      l.qa.send(l.message(src, n));
      l.run();
      require_ok(l.ca.drain(), 2);
      CHECK(l.b.mem.filled(dst.addr, n, seed));
      CHECK(l.b.mem.filled(in.addr, n, seed));
      const auto got = l.cb.drain();
      require_ok(got, 1);
      CHECK(got[0].byte_len == n);
      CHECK(got[0].wr_id == n);
    }
  }
}

TEST_CASE("one packet per message up to the MTU, AckReq on the last packet of each message") {
  Link l;
  l.capture = true;
  const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192);
  for (const unsigned n : {0u, 1u, 1024u, 1025u, 3072u}) {
    l.sent[0].clear();
    l.qa.send(l.write(src, n, dst));
    l.run();
    const std::size_t packets = n == 0 ? 1 : (n + 1023) / 1024;
    REQUIRE(l.sent[0].size() == packets);
    for (std::size_t i = 0; i < packets; ++i) {
      const auto bth = std::span<const std::byte>(l.sent[0][i]).subspan(bth_at(l.sent[0][i]));
      CHECK(hw::get(bth, hw::bth::ack_req) == (i + 1 == packets ? 1u : 0u));
      CHECK(hw::get(bth, hw::bth::dest_qpn) == l.qb.qpn);
    }
  }
  require_ok(l.ca.drain(), 5);
}

TEST_CASE("case_007 zero-byte operations") {
  Link l;
  const Mr mr = l.a.reg_mr(64), in = l.b.reg_mr(64);
  using enum hw::WqeOp;
  const std::vector<std::vector<Piece>> lists = {
      {}, {{mr.iova, 0, mr.key}}, {{0, 0, 0}}, {{~0ull, 0, 0xdead}}};
  for (const hw::WqeOp op : {kSend, kSendImm, kWrite, kWriteImm, kRead}) {
    for (const auto& sges : lists) {
      INFO("op " << static_cast<unsigned>(op) << " sges " << sges.size());
      const auto before = l.qa.query(hw::progress::next_psn);
      const bool receives = op != kWrite && op != kRead;
      if (receives) l.qb.recv(77, {{in.iova, 64, in.key}});
      // A bogus key and address: not looked at for zero bytes.
      l.qa.send({.op = op, .sges = sges, .imm = 5, .remote_addr = ~0ull, .rkey = 0xbad});
      l.run();
      const auto wcs = l.ca.drain();
      require_ok(wcs, 1);
      CHECK(wcs[0].byte_len == 0);
      CHECK(l.qa.query(hw::progress::next_psn) == before + 1);
      const auto got = l.cb.drain();
      require_ok(got, receives ? 1 : 0);
      if (receives) {
        CHECK(got[0].byte_len == 0);
        CHECK(got[0].wr_id == 77);
        CHECK(got[0].opcode ==
              (op == kWriteImm ? hw::WcOp::kRecvRdmaWithImm : hw::WcOp::kRecv));
      }
    }
  }
  // Inline of zero bytes.
  l.qa.send({.inlined = true, .remote_addr = 1, .rkey = 2});
  l.run();
  require_ok(l.ca.drain(), 1);
}

TEST_CASE("case_008 WRITE with immediate consumes a receive") {
  Link l;
  const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192), in = l.b.reg_mr(64);
  l.a.mem.fill(src.addr, 8192, 9);
  for (unsigned i = 0; i < 4; ++i) l.qb.post_recv(100 + i, {{in.iova, 64, in.key}});
  l.qb.ring_recv();
  const std::uint32_t imms[] = {0x89abcdef, 0, 0xffffffff, 0x01020304};
  const std::uint32_t sizes[] = {0, 1, 1024, 5000};
  for (unsigned i = 0; i < 4; ++i) {
    Send s = l.write(src, sizes[i], dst);
    s.op = hw::WqeOp::kWriteImm;
    s.imm = imms[i];
    l.qa.send(s);
  }
  l.run();
  const auto wcs = l.ca.drain();
  require_ok(wcs, 4);
  const auto got = l.cb.drain();
  require_ok(got, 4);
  for (unsigned i = 0; i < 4; ++i) {
    CHECK(wcs[i].opcode == hw::WcOp::kRdmaWrite);
    CHECK(got[i].opcode == hw::WcOp::kRecvRdmaWithImm);
    CHECK(got[i].has_imm);
    CHECK(got[i].imm == imms[i]);
    CHECK(got[i].wr_id == 100 + i);
    CHECK(got[i].byte_len == sizes[i]);
  }
  CHECK(l.b.mem.filled(dst.addr, 5000, 9));
}

TEST_CASE("case_009 the immediate's bytes cross unswapped") {
  Link l;
  l.capture = true;
  const Mr in = l.b.reg_mr(64);
  l.qb.recv(1, {{in.iova, 64, in.key}});
  // htobe32(0x89abcdef) as a little-endian program holds it.
  l.qa.send({.op = hw::WqeOp::kSendImm, .imm = 0xefcdab89});
  l.run();
  const auto& f = l.sent[0].at(0);
  const auto imm = std::span<const std::byte>(f).subspan(bth_at(f) + hw::bth::kBytes, 4);
  CHECK(hw::get(imm, hw::immdt::imm) == 0x89abcdef);
  const auto got = l.cb.drain();
  require_ok(got, 1);
  CHECK(got[0].imm == 0xefcdab89);
}

TEST_CASE("case_010 unsignaled WQEs are retired by a later signaled one") {
  Link l;
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  unsigned signaled = 0;
  for (unsigned i = 0; i < 4 * 64; ++i) {
    Send s = l.write(src, 8, dst);
    s.signaled = i % 4 == 3;
    l.qa.send(s);
    if (i % 4 != 3) continue;
    l.run();
    const auto wcs = l.ca.drain();
    require_ok(wcs, 1);
    CHECK(wcs[0].wqe_index == (i & 0xffff));
    ++signaled;
  }
  CHECK(signaled == 64);
  CHECK(l.qa.query(hw::progress::sq_ci) == 256);
}

TEST_CASE("multi-SGE gather across odd pieces and empty ones") {
  Link l;
  const Mr src = l.a.reg_mr(20000), dst = l.b.reg_mr(20000);
  l.a.mem.fill(src.addr, 20000, 21);
  Send s = l.write(src, 0, dst);
  s.sges.clear();
  const std::uint32_t lengths[] = {1, 0, 1023, 7, 3000, 0, 5, 4096, 1};
  std::uint32_t at = 0;
  for (const std::uint32_t n : lengths) {
    s.sges.push_back({src.iova + at, n, n == 0 ? 0 : src.key});
    at += n;
  }
  l.qa.send(s);
  l.run();
  require_ok(l.ca.drain(), 1);
  CHECK(l.b.mem.filled(dst.addr, at, 21));
  // And scatter on the receiving side.
  const Mr in = l.b.reg_mr(20000);
  std::vector<Piece> pieces = {{in.iova, 3, in.key}, {0, 0, 0}, {in.iova + 3, 2000, in.key},
                               {in.iova + 2003, 1, in.key}, {in.iova + 2004, 9000, in.key}};
  l.qb.recv(4, pieces);
  Send m = s;
  m.op = hw::WqeOp::kSend;
  l.qa.send(m);
  l.run();
  require_ok(l.ca.drain(), 1);
  const auto got = l.cb.drain();
  require_ok(got, 1);
  CHECK(got[0].byte_len == at);
  CHECK(l.b.mem.filled(in.addr, at, 21));
}

TEST_CASE("case_036 paged MRs at odd offsets, exactly to the end and not beyond") {
  for (const bool tree : {false, true}) {
    for (const unsigned off : {0u, 1u, 4095u}) {
      for (const std::uint32_t n : {1u, 2u, 4095u, 4096u, 4097u, (2u << 20) + 1}) {
        INFO("tree " << tree << " off " << off << " bytes " << n);
        LinkOptions o;
        o.a.mtu_log = o.b.mtu_log = 12;
        Link l(o);
        const Mr src = l.a.reg_mr_list(n, off, !tree), dst = l.b.reg_mr_list(n, off, tree);
        Bytes data(n);
        for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::byte>(i * 13 + i / 251);
        l.a.copy_in(src, 0, data);
        l.qa.send(l.write(src, n, dst));
        l.run();
        require_ok(l.ca.drain(), 1);
        CHECK(l.b.copy_out(dst, 0, n) == data);
        // READ back into another paged MR.
        const Mr back = l.a.reg_mr_list(n, 4095 - off, tree);
        l.qa.send(l.read(back, n, dst));
        l.run();
        require_ok(l.ca.drain(), 1);
        CHECK(l.a.copy_out(back, 0, n) == data);
        // One byte more.
        const Mr big = l.a.reg_mr(n + 1);
        l.qa.send(l.write(big, n + 1, dst));
        l.serve(1'000'000);
        const auto wcs = l.ca.drain();
        REQUIRE(wcs.size() == 1);
        CHECK(wcs[0].status == hw::WcStatus::kRemAccessErr);
        CHECK(l.b.copy_out(dst, 0, n) == data);
      }
    }
  }
}

TEST_CASE("case_038 iova differs from the address, and may be zero") {
  Link l;
  Mr zero;
  zero.addr = l.b.mem.alloc(4096);
  zero.iova = 0;
  zero.length = 4096;
  zero.key = 0x7777'00f0;
  REQUIRE(l.b.create_mr(zero, 15, 7) == hw::CmdStatus::kOk);
  const Mr src = l.a.reg_mr(64);
  l.a.mem.fill(src.addr, 64, 5);
  l.qa.send(l.write(src, 64, zero, 4032));
  l.run();
  require_ok(l.ca.drain(), 1);
  CHECK(l.b.mem.filled(zero.addr + 4032, 64, 5));
}

TEST_CASE("case_044 an old key never works on a new MR in the same slot") {
  Link l;
  const Mr src = l.a.reg_mr(64);
  Mr mr = l.b.reg_mr(64);
  const std::uint32_t old_key = mr.key;
  REQUIRE(l.b.command(hw::CmdOp::kMrDestroy, old_key) == hw::CmdStatus::kOk);
  mr.key = old_key ^ 0x0100'0000;
  REQUIRE(l.b.create_mr(mr, 15, 7) == hw::CmdStatus::kOk);
  l.qa.send(l.write(src, 8, mr));
  l.run();
  require_ok(l.ca.drain(), 1);
  mr.key = old_key;
  l.qa.send(l.write(src, 8, mr));
  l.serve(1000);
  const auto wcs = l.ca.drain();
  REQUIRE(wcs.size() == 1);
  CHECK(wcs[0].status == hw::WcStatus::kRemAccessErr);
}

TEST_CASE("case_048 a zero-length MR lets only zero bytes pass") {
  Link l;
  Mr empty;
  empty.addr = l.b.mem.alloc(64);
  empty.iova = 0x1000;
  empty.key = 0x5555'00f1;
  REQUIRE(l.b.create_mr(empty, 15, 7) == hw::CmdStatus::kOk);
  const Mr src = l.a.reg_mr(64);
  l.qa.send(l.write(src, 0, empty));
  l.run();
  require_ok(l.ca.drain(), 1);
  l.qa.send(l.write(src, 1, empty));
  l.serve(1000);
  CHECK(l.ca.drain().at(0).status == hw::WcStatus::kRemAccessErr);
}

TEST_CASE("rings behind page lists wrap many times") {
  LinkOptions o;
  o.a.lists = o.b.lists = true;
  o.a.sq_log = 5;
  o.b.rq_log = 5;
  o.a.log_log = 5;
  Link l(o);
  const Mr src = l.a.reg_mr(64), in = l.b.reg_mr(64);
  for (unsigned i = 0; i < 1000; ++i) {
    l.qb.recv(i, {{in.iova, 64, in.key}});
    l.qa.send(l.message(src, i % 64));
    if (i % 16 != 15) continue;
    l.run();
    const auto got = l.cb.drain();
    require_ok(got, 16);
    for (unsigned k = 0; k < 16; ++k) {
      CHECK(got[k].wr_id == i - 15 + k);
      CHECK(got[k].byte_len == (i - 15 + k) % 64);
    }
    require_ok(l.ca.drain(), 16);
  }
}

TEST_CASE("a log smaller than the send queue stalls and goes on by itself") {
  LinkOptions o;
  o.a.log_log = 2;
  Link l(o);
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  for (unsigned i = 0; i < 50; ++i) l.qa.post(l.write(src, 8, dst));
  l.qa.ring();
  CHECK(l.qa.query(hw::progress::log_accepted) <= 4);
  l.run();
  require_ok(l.ca.drain(), 50);
  CHECK(l.qa.query(hw::progress::log_acked) == 50);
}

TEST_CASE("order-log entries hold what was sent") {
  Link l;
  namespace h = hw::log_entry;
  const Mr src = l.a.reg_mr(5000), dst = l.b.reg_mr(5000);
  for (unsigned i = 0; i < 3; ++i) {
    Send s = l.write(src, 2000 + i, dst);
    s.signaled = i == 2;
    l.qa.post(s);
  }
  l.qa.ring();
  l.run();
  for (unsigned i = 0; i < 3; ++i) {
    const auto e = l.a.mem.at(l.qa.log_entry(i), h::kBytes);
    CHECK(hw::get(e, h::kind) == static_cast<unsigned>(hw::LogKind::kWqe));
    CHECK(hw::get(e, h::sq_index) == i);
    CHECK(hw::get(e, h::opcode) == static_cast<unsigned>(hw::WqeOp::kWrite));
    CHECK(hw::get(e, h::length) == 2000 + i);
    CHECK(hw::get(e, h::first_psn) == 0x100 + 2 * i);
    CHECK(hw::get(e, h::signaled) == (i == 2 ? 1u : 0u));
    std::uint32_t sum = 0;
    const auto wqe = l.a.mem.at(l.qa.wqe(i), 32);
    for (unsigned k = 0; k < 32; k += 2) {
      sum += std::to_integer<unsigned>(wqe[k]) | std::to_integer<unsigned>(wqe[k + 1]) << 8;
    }
    sum = (sum & 0xffff) + (sum >> 16);
    CHECK(hw::get(e, h::checksum) == sum);
  }
}

TEST_CASE("NOP completes behind what was posted before it") {
  Link l;
  const Mr src = l.a.reg_mr(9000), dst = l.b.reg_mr(9000);
  l.qa.post(l.write(src, 9000, dst));
  l.qa.post({.op = hw::WqeOp::kNop});
  l.qa.post(l.write(src, 10, dst));
  l.qa.post({.op = hw::WqeOp::kNop});
  l.qa.ring();
  l.run();
  const auto wcs = l.ca.drain();
  require_ok(wcs, 4);
  for (unsigned i = 0; i < 4; ++i) CHECK(wcs[i].wqe_index == i);
}

TEST_CASE("a large WRITE over IPv6 and VLAN") {
  for (const int vlan : {-1, 100}) {
    LinkOptions o;
    o.ipv6 = true;
    o.vlan = vlan;
    Link l(o);
    const Mr src = l.a.reg_mr(100001), dst = l.b.reg_mr(100001);
    l.a.mem.fill(src.addr, 100001, 4);
    l.qa.send(l.write(src, 100001, dst));
    l.run();
    require_ok(l.ca.drain(), 1);
    CHECK(l.b.mem.filled(dst.addr, 100001, 4));
  }
}

TEST_CASE("same-device loopback crosses the wire") {
  Pair p;
  Cq cq = p.a.create_cq(6);
  QpOptions o;
  o.scq = o.rcq = &cq;
  Qp x = p.a.create_qp(o), y = p.a.create_qp(o);
  p.connect(x, y);
  const Mr src = p.a.reg_mr(5000), dst = p.a.reg_mr(5000);
  p.a.mem.fill(src.addr, 5000, 8);
  p.capture = true;
  x.send({.sges = {{src.iova, 5000, src.key}}, .remote_addr = dst.iova, .rkey = dst.key});
  p.run();
  require_ok(cq.drain(), 1);
  CHECK(p.a.mem.filled(dst.addr, 5000, 8));
  CHECK(p.sent[0].size() == 6);
}
