// SPDX-License-Identifier: BSD-2-Clause
// UD, GSI, multicast and raw Ethernet.
#include "link.hpp"

using namespace ordma;
using namespace ordma::bench;
using Status = hw::WcStatus;

namespace {

constexpr std::uint32_t kQkey = 0x11111111;

hw::av::Bytes av_to(const Node& to, std::uint32_t qpn, std::uint32_t qkey = kQkey) {
  namespace h = hw::av;
  h::Bytes av{};
  hw::set(av, h::dest_qpn, qpn);
  hw::set(av, h::qkey, qkey);
  hw::set(av, h::dmac, to.mac);
  hw::set(av, h::hop_limit, 9);
  hw::set(av, h::tclass, 0xa0);
  hw::set(av, h::sl, 3);
  std::copy(to.gid.begin(), to.gid.end(),
            hw::raw(std::span<std::byte>(av), h::dgid).begin());
  return av;
}

struct Ud : Pair {
  explicit Ud(bool ipv6 = false, hw::QpType type = hw::QpType::kUd, EngineConfig config = {},
              std::optional<std::uint32_t> b_qkey = {})
      : Pair(config), ca(a.create_cq(8)), cb(b.create_cq(8)) {
    if (ipv6) {
      for (Node* n : {&a, &b}) {
        n->gid = v6_gid(n->id + 1);
        REQUIRE(n->set_gid(0, n->gid, n->mac) == hw::CmdStatus::kOk);
      }
    }
    QpOptions o{.type = type, .mtu_log = 0};
    if (type == hw::QpType::kGsi) {
      o.uctx = 0;
      o.page = 0;
    }
    o.scq = o.rcq = &ca;
    qa = up(a, o);
    o.scq = o.rcq = &cb;
    o.qkey = b_qkey.value_or(o.qkey);
    qb = up(b, o);
  }
  static Qp up(Node& n, const QpOptions& o) {
    Qp qp = n.create_qp(o);
    REQUIRE(qp.to(hw::QpState::kInit) == hw::CmdStatus::kOk);
    REQUIRE(qp.to(hw::QpState::kRtr, true) == hw::CmdStatus::kOk);
    REQUIRE(qp.to(hw::QpState::kRts, false, true) == hw::CmdStatus::kOk);
    return qp;
  }
  Send message(const Mr& src, std::uint32_t n) {
    return {.op = hw::WqeOp::kSend, .sges = {{src.iova, n, src.key}}, .av = av_to(b, qb.qpn)};
  }
  Cq ca, cb;
  Qp qa, qb;
};

}  // namespace

TEST_CASE("case_072 the GRH area, IPv4 and IPv6") {
  for (const bool ipv6 : {false, true}) {
    Ud u(ipv6);
    const Mr src = u.a.reg_mr(4096), in = u.b.reg_mr(4096);
    u.a.mem.fill(src.addr, 4096, 6);
    u.b.mem.fill(in.addr, 4096, 7);
    u.capture = true;
    u.qb.recv(31, {{in.iova, 4096, in.key}});
    u.qa.send(u.message(src, 100));
    u.run();
    REQUIRE(u.ca.drain().size() == 1);
    const auto wcs = u.cb.drain();
    REQUIRE(wcs.size() == 1);
    const Wc& wc = wcs[0];
    CHECK(wc.status == Status::kSuccess);
    CHECK(wc.wr_id == 31);
    CHECK(wc.byte_len == 140);
    CHECK(wc.has_grh);
    CHECK(wc.ipv4 == !ipv6);
    CHECK(u.b.mem.filled(in.addr + 40, 0, 0));
    const auto data = u.b.mem.at(in.addr + 40, 100);
    CHECK(std::equal(data.begin(), data.end(), u.a.mem.at(src.addr, 100).begin()));
    const auto area = u.b.mem.at(in.addr, 40);
    const std::span<const std::byte> ip =
        std::span<const std::byte>(u.sent[0].at(0)).subspan(hw::eth::kBytes);
    if (ipv6) {
      CHECK(hw::get(area, hw::ipv6::version) == 6);
      CHECK(hw::get(area, hw::ipv6::next_header) == 17);
      CHECK(hw::get(area, hw::ipv6::hop_limit) == 9);
      CHECK(std::equal(area.begin() + 8, area.end(), ip.begin() + 8));
    } else {
      // The first twenty bytes are not written.
      CHECK(u.b.mem.filled(in.addr, 20, 7));
      CHECK(std::equal(area.begin() + 20, area.end(), ip.begin()));
    }
    // Nothing behind the message.
    Bytes tail(u.b.mem.at(in.addr + 140, 64).begin(), u.b.mem.at(in.addr + 140, 64).end());
    u.b.mem.fill(in.addr, 4096, 7);
    CHECK(std::equal(tail.begin(), tail.end(), u.b.mem.at(in.addr + 140, 64).begin()));
  }
}

TEST_CASE("the GRH area may span SGEs") {
  for (const std::uint32_t first : {1u, 19u, 20u, 21u, 39u, 40u, 41u}) {
    Ud u;
    const Mr src = u.a.reg_mr(4096), in = u.b.reg_mr(4096);
    u.a.mem.fill(src.addr, 4096, 6);
    u.qb.recv(1, {{in.iova, first, in.key}, {0, 0, 0}, {in.iova + 1000, 500, in.key}});
    u.qa.send(u.message(src, 64));
    u.run();
    REQUIRE(u.cb.drain().at(0).byte_len == 104);
    Bytes got;
    const auto p = u.b.mem.at(in.addr, first), q = u.b.mem.at(in.addr + 1000, 500);
    got.insert(got.end(), p.begin(), p.end());
    got.insert(got.end(), q.begin(), q.end());
    CHECK(std::equal(got.begin() + 40, got.begin() + 104, u.a.mem.at(src.addr, 64).begin()));
    CHECK(got[20] == std::byte{0x45});
  }
}

TEST_CASE("case_073 what a reply needs is in the CQE") {
  Ud u;
  const Mr src = u.a.reg_mr(64), in = u.b.reg_mr(256);
  u.capture = true;
  u.qb.recv(1, {{in.iova, 256, in.key}});
  Send s = u.message(src, 8);
  s.op = hw::WqeOp::kSendImm;
  s.imm = 0x12345678;
  s.solicited = true;
  u.qa.send(s);
  u.run();
  const auto wcs = u.cb.drain();
  REQUIRE(wcs.size() == 1);
  CHECK(wcs[0].src_qpn == u.qa.qpn);
  CHECK(wcs[0].sl == 5);
  CHECK(wcs[0].has_imm);
  CHECK(wcs[0].imm == 0x12345678);
  CHECK(wcs[0].solicited);
  const auto ip = std::span<const std::byte>(u.sent[0].at(0)).subspan(hw::eth::kBytes);
  CHECK(hw::get(ip, hw::ipv4::ttl) == 9);
  CHECK(hw::get(ip, hw::ipv4::tos) == 0xa0);
  const auto udp = ip.subspan(hw::ipv4::kBytes);
  CHECK(hw::get(udp, hw::udp::sport) >= 0xc000);
}

TEST_CASE("case_074 Q_Keys") {
  Ud u(false, hw::QpType::kUd, {}, 0x22222222);
  const Mr src = u.a.reg_mr(64), in = u.b.reg_mr(256);
  u.qb.recv(1, {{in.iova, 256, in.key}});
  Send s = u.message(src, 8);
  u.qa.send(s);
  u.run();
  CHECK(u.ca.drain().at(0).status == Status::kSuccess);
  CHECK(u.cb.drain().empty());
  CHECK(u.b.counter(hw::Counter::kDropQkey) == 1);
  // Bit 31: the sender's own.
  hw::set(s.av, hw::av::qkey, 0x80000000 | 0x22222222);
  u.qa.send(s);
  u.run();
  CHECK(u.b.counter(hw::Counter::kDropQkey) == 2);
  hw::set(s.av, hw::av::qkey, 0x22222222);
  u.qa.send(s);
  u.run();
  CHECK(u.cb.drain().size() == 1);
}

TEST_CASE("case_074 bit 31 of a user's Q_Key stands for the QP's own") {
  Ud u;
  const Mr src = u.a.reg_mr(64), in = u.b.reg_mr(256);
  u.qb.recv(1, {{in.iova, 256, in.key}});
  Send s = u.message(src, 8);
  hw::set(s.av, hw::av::qkey, 0x80010000);
  u.qa.send(s);
  u.run();
  CHECK(u.cb.drain().size() == 1);
}

TEST_CASE("case_074 a datagram longer than the path fails at the sender, and SQE follows") {
  for (const std::uint32_t port_mtu : {1500u, 4200u}) {
    EngineConfig c;
    c.port_mtu = port_mtu;
    const std::uint32_t mtu = port_mtu == 1500 ? 1024 : 4096;
    Ud u(false, hw::QpType::kUd, c);
    const Mr src = u.a.reg_mr(8192), in = u.b.reg_mr(8192);
    u.qb.recv(1, {{in.iova, 8192, in.key}});
    u.qa.send(u.message(src, mtu));
    u.run();
    CHECK(u.ca.drain().at(0).status == Status::kSuccess);
    CHECK(u.cb.drain().at(0).byte_len == mtu + 40);
    u.qa.post(u.message(src, mtu + 1));
    u.qa.post(u.message(src, 8));
    u.qa.ring();
    u.run();
    const auto wcs = u.ca.drain();
    REQUIRE(wcs.size() == 2);
    CHECK(wcs[0].status == Status::kLocLenErr);
    CHECK(wcs[1].status == Status::kWrFlushErr);
    CHECK(u.qa.query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kSqe));
    CHECK(has_event(u.a.events(), hw::EventType::kQpError, code_of(Status::kLocLenErr)));
    // It still receives, flushes what is posted, and sends again after SQE to RTS.
    const Mr in_a = u.a.reg_mr(256);
    u.qa.recv(9, {{in_a.iova, 256, in_a.key}});
    u.qb.send({.op = hw::WqeOp::kSend, .sges = {}, .av = av_to(u.a, u.qa.qpn)});
    u.qa.send(u.message(src, 8));
    u.run();
    auto more = u.ca.drain();
    REQUIRE(more.size() == 2);
    unsigned flushed = 0, received = 0;
    for (const Wc& wc : more) {
      flushed += wc.status == Status::kWrFlushErr;
      received += wc.is_recv;
    }
    CHECK(flushed == 1);
    CHECK(received == 1);
    REQUIRE(u.qa.to(hw::QpState::kRts) == hw::CmdStatus::kOk);
    u.qb.recv(2, {{in.iova, 8192, in.key}});
    u.qa.send(u.message(src, 8));
    u.run();
    more = u.ca.drain();
    REQUIRE(more.size() == 1);
    CHECK(more[0].status == Status::kSuccess);
  }
}

TEST_CASE("case_075 a datagram larger than its buffer is LOC_LEN, a bad key LOC_PROT") {
  for (const bool bad_key : {false, true}) {
    Ud u;
    const Mr src = u.a.reg_mr(64), in = u.b.reg_mr(256);
    u.qb.recv(1, {{in.iova, bad_key ? 256u : 40u + 7u, bad_key ? in.key ^ 0x100000 : in.key}});
    u.qb.recv(2, {{in.iova, 256, in.key}});
    u.qa.send(u.message(src, 8));
    u.run();
    const auto wcs = u.cb.drain();
    REQUIRE(wcs.size() == 2);
    CHECK(wcs[0].status == (bad_key ? Status::kLocProtErr : Status::kLocLenErr));
    CHECK(wcs[1].status == Status::kWrFlushErr);
  }
  Ud u;
  const Mr src = u.a.reg_mr(64), in = u.b.reg_mr(256);
  u.qb.recv(1, {{in.iova, 48, in.key}});
  u.qa.send(u.message(src, 8));
  u.run();
  CHECK(u.cb.drain().at(0).status == Status::kSuccess);
  u.qa.send(u.message(src, 8));
  u.run();
  CHECK(u.b.counter(hw::Counter::kOutOfBuffer) == 1);
}

TEST_CASE("an address vector that the GID table does not cover") {
  enum { kIndex, kInvalid, kFamily, kCases };
  for (int what = 0; what < kCases; ++what) {
    Ud u;
    u.capture = true;
    const Mr src = u.a.reg_mr(64);
    Send s = u.message(src, 8);
    if (what == kIndex) hw::set(s.av, hw::av::sgid_index, 64);
    if (what == kInvalid) hw::set(s.av, hw::av::sgid_index, 5);
    if (what == kFamily) {
      const auto g = v6_gid(3);
      std::copy(g.begin(), g.end(), hw::raw(std::span<std::byte>(s.av), hw::av::dgid).begin());
    }
    u.qa.send(s);
    u.run();
    CHECK(u.ca.drain().at(0).status == Status::kLocQpOpErr);
    CHECK(u.sent[0].empty());
  }
}

TEST_CASE("source addresses and VLAN come from the GID table alone") {
  Ud u;
  REQUIRE(u.a.set_gid(4, v4_gid(10, 9, 9, 9), 0x0000'aabb'0002, 55) == hw::CmdStatus::kOk);
  u.capture = true;
  const Mr src = u.a.reg_mr(64), in = u.b.reg_mr(256);
  Send s = u.message(src, 8);
  hw::set(s.av, hw::av::sgid_index, 4);
  u.qb.recv(1, {{in.iova, 256, in.key}});
  u.qa.send(s);
  u.run();
  const std::span<const std::byte> f = u.sent[0].at(0);
  CHECK(hw::get(f, hw::eth::type_) == 0x8100);
  CHECK((std::to_integer<unsigned>(f[14]) & 0xf) == 0);
  CHECK(std::to_integer<unsigned>(f[15]) == 55);
  CHECK(std::to_integer<unsigned>(f[14]) >> 5 == 3);
  CHECK(f[6] == std::byte{0x02});
  CHECK(f[8] == std::byte{0xbb});
  // B has no such VLAN.
  CHECK(u.cb.drain().empty());
  CHECK(u.b.counter(hw::Counter::kDropAddress) == 1);
}

TEST_CASE("GSI: QPN 1, its Q_Key, source MAC and VLAN") {
  Ud u(false, hw::QpType::kGsi);
  CHECK(u.qb.qpn == 1);
  // The kernel's queue may use the local-DMA key.
  const Addr out = u.a.mem.alloc(256), in = u.b.mem.alloc(512);
  u.a.mem.fill(out, 256, 1);
  u.qb.recv(1, {{in, 512, hw::kReservedLkey}});
  Send s{.op = hw::WqeOp::kSend, .sges = {{out, 256, hw::kReservedLkey}},
         .av = av_to(u.b, 1, hw::kGsiQkey)};
  u.qa.send(s);
  u.run();
  REQUIRE(u.ca.drain().at(0).status == Status::kSuccess);
  const auto wcs = u.cb.drain();
  REQUIRE(wcs.size() == 1);
  CHECK(wcs[0].src_qpn == 1);
  CHECK(wcs[0].smac == u.a.mac);
  CHECK(wcs[0].vlan == 0xffff);
  CHECK(u.b.mem.filled(in + 40, 256, 1));
}

TEST_CASE("the local-DMA key is no key for user queues") {
  Link l;
  l.capture = true;
  const Addr out = l.a.mem.alloc(64);
  const Mr dst = l.b.reg_mr(64);
  l.qa.send({.sges = {{out, 8, hw::kReservedLkey}}, .remote_addr = dst.iova, .rkey = dst.key});
  l.run();
  CHECK(l.ca.drain().at(0).status == Status::kLocProtErr);
  CHECK(l.sent[0].empty());
}

TEST_CASE("case_080 multicast: members here and there, one copy each, no doubles") {
  Ud u;
  const auto group = v4_gid(239, 1, 2, 3);
  const auto attach = [&](Node& n, Qp& qp, hw::CmdOp op) {
    return n.command(op, qp.qpn, [&](std::span<std::byte> raw) {
      std::copy(group.begin(), group.end(), hw::raw(raw, hw::cmd_mcast::gid).begin());
    });
  };
  QpOptions o{.type = hw::QpType::kUd, .mtu_log = 0};
  o.scq = o.rcq = &u.cb;
  Qp third = Ud::up(u.b, o);
  CHECK(attach(u.b, u.qb, hw::CmdOp::kMcastDetach) == hw::CmdStatus::kNoObject);
  REQUIRE(attach(u.a, u.qa, hw::CmdOp::kMcastAttach) == hw::CmdStatus::kOk);
  REQUIRE(attach(u.b, u.qb, hw::CmdOp::kMcastAttach) == hw::CmdStatus::kOk);
  REQUIRE(attach(u.b, third, hw::CmdOp::kMcastAttach) == hw::CmdStatus::kOk);
  CHECK(attach(u.b, u.qb, hw::CmdOp::kMcastAttach) == hw::CmdStatus::kExists);
  const Mr src = u.a.reg_mr(64), in_a = u.a.reg_mr(256), in_b = u.b.reg_mr(256);
  const auto post = [&] {
    u.qa.recv(1, {{in_a.iova, 256, in_a.key}});
    u.qb.recv(2, {{in_b.iova, 256, in_b.key}});
    third.recv(3, {{in_b.iova, 256, in_b.key}});
  };
  post();
  Send s = u.message(src, 8);
  hw::set(s.av, hw::av::dest_qpn, hw::kMcastQpn);
  hw::set(s.av, hw::av::dmac, 0x0302'015e'0001);
  std::copy(group.begin(), group.end(), hw::raw(std::span<std::byte>(s.av), hw::av::dgid).begin());
  u.qa.send(s);
  u.run();
  CHECK(u.ca.drain().size() == 2);  // sent and heard
  CHECK(u.cb.drain().size() == 2);
  REQUIRE(attach(u.b, third, hw::CmdOp::kMcastDetach) == hw::CmdStatus::kOk);
  REQUIRE(u.b.destroy_qp(u.qb) == hw::CmdStatus::kOk);
  u.qa.send(s);
  u.run();
  CHECK(u.cb.drain().empty());
  CHECK(u.b.counter(hw::Counter::kDropNoQp) == 1);
}

TEST_CASE("raw Ethernet: filter, content, VLAN tag, padding") {
  Pair p;
  Cq ca = p.a.create_cq(6), cb = p.b.create_cq(6);
  QpOptions o{.type = hw::QpType::kEth, .uctx = 0, .page = 0, .mtu_log = 0};
  o.scq = o.rcq = &ca;
  Qp x = Ud::up(p.a, o);
  o.scq = o.rcq = &cb;
  Qp y = Ud::up(p.b, o);
  CHECK_THROWS(p.b.create_qp(o));
  const auto filter = [&](bool promisc, bool multi) {
    return p.b.command(hw::CmdOp::kEthFilter, y.qpn, [&](std::span<std::byte> raw) {
      hw::set(raw, hw::cmd_eth::promisc, promisc);
      hw::set(raw, hw::cmd_eth::allmulti, multi);
      hw::set(raw, hw::cmd_eth::mac, p.b.mac);
    });
  };
  REQUIRE(filter(false, false) == hw::CmdStatus::kOk);
  const Addr out = p.a.mem.alloc(8192), in = p.b.mem.alloc(65536);
  unsigned got = 0;
  for (unsigned i = 0; i < 32; ++i) y.post_recv(i, {{in + i * 2048, 2048, hw::kReservedLkey}});
  y.ring_recv();
  const auto send = [&](std::uint64_t dmac, std::uint32_t bytes, std::uint16_t type) {
    p.a.mem.fill(out, bytes, bytes);
    auto raw = p.a.mem.at(out, 14);
    std::memcpy(raw.data(), &dmac, 6);
    hw::set(raw, hw::eth::type_, type);
    x.send({.op = hw::WqeOp::kEth, .sges = {{out, bytes, hw::kReservedLkey}}});
    p.run();
    CHECK(ca.drain().size() == 1);
    const auto wcs = cb.drain();
    if (wcs.empty()) return false;
    REQUIRE(wcs.size() == 1);
    CHECK(wcs[0].status == Status::kSuccess);
    CHECK(wcs[0].byte_len == std::max(bytes, 60u));
    const auto frame = p.b.mem.at(in + got * 2048, bytes);
    CHECK(std::equal(frame.begin(), frame.end(), p.a.mem.at(out, bytes).begin()));
    ++got;
    return true;
  };
  CHECK(send(p.b.mac, 42, 0x0806));
  CHECK(send(p.b.mac, 1514, 0x0800));
  CHECK(send(p.b.mac, 100, 0x8100));
  CHECK(send(0xffffffffffff, 60, 0x0806));
  CHECK_FALSE(send(p.b.mac + 0x100, 60, 0x0806));
  CHECK_FALSE(send(0x0100005e0001, 60, 0x0800));
  REQUIRE(filter(false, true) == hw::CmdStatus::kOk);
  CHECK(send(0x0100005e0001, 60, 0x0800));
  REQUIRE(filter(true, false) == hw::CmdStatus::kOk);
  CHECK(send(p.b.mac + 0x100, 60, 0x0806));
  // Larger than the buffer: dropped, and the buffer serves the next frame.
  CHECK_FALSE(send(p.b.mac, 3000, 0x0800));
  CHECK(send(p.b.mac, 64, 0x0800));
  CHECK(p.b.counter(hw::Counter::kEthRx) == 7);
  CHECK(p.b.counter(hw::Counter::kEthDrop) == 3);
  x.send({.op = hw::WqeOp::kEth, .sges = {{out, 13, hw::kReservedLkey}}});
  p.run();
  CHECK(ca.drain().at(0).status == Status::kLocLenErr);
}
