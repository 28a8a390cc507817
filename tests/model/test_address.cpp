// SPDX-License-Identifier: BSD-2-Clause
// What connected QPs take from the wire: addresses, keys, opcodes, states.
#include "link.hpp"
#include "wire.hpp"

using namespace ordma;
using namespace ordma::bench;

namespace {

struct Shot {
  std::array<std::byte, 16> sgid, dgid;
  std::uint64_t smac = 0, dmac = 0;
  std::uint16_t vlan = twin::kNoVlan;
  hw::RoceOp op = hw::RoceOp::kRcSendOnly;
  std::uint32_t qpn = 0, psn = 0;
  std::size_t payload = 8, ext = 0;
};

struct Target : Link {
  Target() : in(b.reg_mr(4096)) {
    for (unsigned i = 0; i < 8; ++i) qb.post_recv(i, {{in.iova, 4096, in.key}});
    qb.ring_recv();
  }
  Shot good() {
    return {.sgid = a.gid, .dgid = b.gid, .smac = a.mac, .dmac = b.mac, .qpn = qb.qpn,
            .psn = 0x100};
  }
  Frame frame(const Shot& s, const std::function<void(std::byte* ext)>& fill = {}) {
    const auto h = twin::make_template({.smac = s.smac, .dmac = s.dmac, .sgid = s.sgid,
                                        .dgid = s.dgid, .ipv4 = true, .vlan = s.vlan,
                                        .sport = 0xc001});
    twin::PacketBuilder p(h, {.opcode = s.op, .ack_req = true, .dest_qpn = s.qpn, .psn = s.psn,
                              .ext = s.ext, .payload = s.payload});
    std::memset(p.ext(), 0, s.ext + s.payload);
    if (fill) fill(p.ext());
    return p.seal();
  }
  std::size_t shoot(const Shot& s, const std::function<void(std::byte* ext)>& fill = {}) {
    b.nic->packet_in(frame(s, fill));
    run();
    return cb.drain().size();
  }
  Mr in;
};

}  // namespace

TEST_CASE("source and destination of every packet are those of the QP") {
  Target t;
  REQUIRE(t.shoot(t.good()) == 1);
  Shot s = t.good();
  s.psn = 0x101;
  const Shot base = s;
  s.sgid = v4_gid(10, 0, 0, 77);
  CHECK(t.shoot(s) == 0);
  s = base;
  s.dgid = v4_gid(10, 0, 0, 77);
  CHECK(t.shoot(s) == 0);
  s = base;
  s.vlan = 5;
  CHECK(t.shoot(s) == 0);
  s = base;
  s.dmac ^= 0x100;
  CHECK(t.shoot(s) == 0);
  CHECK(t.b.counter(hw::Counter::kDropAddress) == 4);
  s = base;
  s.qpn ^= 0x10000;
  CHECK(t.shoot(s) == 0);
  CHECK(t.b.counter(hw::Counter::kDropNoQp) == 1);
  // The source MAC is the last hop's and not checked.
  s = base;
  s.smac ^= 0x100;
  CHECK(t.shoot(s) == 1);
}

TEST_CASE("a source GID that the driver removed silences the QP") {
  Target t;
  REQUIRE(t.b.command(hw::CmdOp::kGidSet, 0) == hw::CmdStatus::kOk);
  CHECK(t.shoot(t.good()) == 0);
  CHECK(t.b.counter(hw::Counter::kDropAddress) == 1);
  // Sending is as with a pulled cable; a new entry heals it.
  const Mr src = t.b.reg_mr(64), dst = t.a.reg_mr(64);
  hw::set(t.qb.qpc, hw::qpc::silence, 1'000'000);
  t.capture = true;
  for (unsigned i = 0; i < 3; ++i) {
    t.qb.send({.sges = {{src.iova, 8, src.key}}, .remote_addr = dst.iova, .rkey = dst.key});
  }
  t.run();
  CHECK(t.sent[1].empty());
  REQUIRE(t.b.set_gid(0, t.b.gid, t.b.mac) == hw::CmdStatus::kOk);
  REQUIRE(t.qb.to(hw::QpState::kRts) == hw::CmdStatus::kOk);
  t.b.recovery(hw::CmdOp::kQpSilence, t.qb.qpn, [](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_silence::threshold, 1'000'000);
  });
  t.serve(5'000'000);
  CHECK(t.cb.drain().size() == 3);
}

TEST_CASE("opcodes of other services are dropped and counted") {
  Target t;
  for (const auto op : {hw::RoceOp::kUcSendOnly, hw::RoceOp::kUdSendOnly, hw::RoceOp::kCnp,
                        static_cast<hw::RoceOp>(0xca), static_cast<hw::RoceOp>(0xdc),
                        static_cast<hw::RoceOp>(0x15), static_cast<hw::RoceOp>(0x44)}) {
    Shot s = t.good();
    s.op = op;
    CHECK(t.shoot(s) == 0);
  }
  CHECK(t.b.counter(hw::Counter::kDropOpcode) == 7);
  CHECK(t.shoot(t.good()) == 1);
}

TEST_CASE("a wrong P_Key, a broken ICRC, a cut header") {
  Target t;
  Frame f = t.frame(t.good());
  auto raw = std::as_writable_bytes(f.writable());
  const std::size_t bth = bth_at(raw);
  // P_Key 0x1234 with a right ICRC.
  twin::poke<hw::bth::pkey>(raw.data() + bth, 0x1234);
  const auto l3 = raw.subspan(hw::eth::kBytes);
  const std::uint32_t crc = twin::icrc(true, l3.first(l3.size() - 4));
  std::memcpy(l3.data() + l3.size() - 4, &crc, 4);
  t.b.nic->packet_in(std::move(f));
  Frame g = t.frame(t.good());
  g.writable()[g.size() - 6] ^= 1;
  t.b.nic->packet_in(std::move(g));
  Frame h = t.frame(t.good());
  h.truncate(50);
  t.b.nic->packet_in(std::move(h));
  t.run();
  CHECK(t.cb.drain().empty());
  CHECK(t.b.counter(hw::Counter::kDropPkey) == 1);
  CHECK(t.b.counter(hw::Counter::kRxIcrcEncapsulated) == 1);
}

TEST_CASE("packets for a QP that cannot take them") {
  Target t;
  REQUIRE(t.qb.to(hw::QpState::kErr) == hw::CmdStatus::kOk);
  t.run();
  (void)t.cb.drain();
  CHECK(t.shoot(t.good()) == 0);
  CHECK(t.b.counter(hw::Counter::kDropState) == 1);
}

TEST_CASE("COMM_EST comes with the first packet in RTR, once") {
  Pair p;
  Cq ca = p.a.create_cq(4), cb = p.b.create_cq(4);
  Qp x = p.a.create_qp({.scq = &ca, .rcq = &ca});
  Qp y = p.b.create_qp({.scq = &cb, .rcq = &cb});
  x.connect(y.qpn, p.b.gid, p.b.mac);
  y.connect(x.qpn, p.a.gid, p.a.mac);
  hw::set(y.qpc, hw::qpc::rq_psn, x.o.sq_psn);
  for (Qp* q : {&x, &y}) {
    REQUIRE(q->to(hw::QpState::kInit) == hw::CmdStatus::kOk);
    REQUIRE(q->to(hw::QpState::kRtr, true) == hw::CmdStatus::kOk);
  }
  REQUIRE(x.to(hw::QpState::kRts, false, true) == hw::CmdStatus::kOk);
  const Mr src = p.a.reg_mr(64), dst = p.b.reg_mr(64);
  for (unsigned i = 0; i < 3; ++i) {
    x.send({.sges = {{src.iova, 8, src.key}}, .remote_addr = dst.iova, .rkey = dst.key});
    p.run();
  }
  const auto events = p.b.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].type == hw::EventType::kQpAsync);
  CHECK(events[0].code == code_of(hw::AsyncCode::kCommEst));
  CHECK(ca.drain().size() == 3);
}

TEST_CASE("requests that break the order or size rules are invalid requests") {
  using enum hw::RoceOp;
  struct Case {
    std::vector<hw::RoceOp> ops;
    std::vector<std::size_t> payloads;
    std::uint32_t dma_len;
  };
  const Case cases[] = {
      {{kRcSendMiddle}, {1024}, 0},
      {{kRcSendLast}, {8}, 0},
      {{kRcWriteMiddle}, {1024}, 0},
      {{kRcSendFirst}, {1000}, 0},
      {{kRcSendOnly}, {1025}, 0},
      {{kRcWriteOnly}, {1028}, 1028},
      {{kRcSendFirst, kRcSendLast}, {1024, 0}, 0},
      {{kRcSendFirst, kRcSendLast}, {1024, 1025}, 0},
      {{kRcWriteOnly}, {8}, 9},
      {{kRcWriteOnly}, {8}, 7},
      {{kRcWriteFirst}, {1024}, 1024},
      {{kRcWriteFirst, kRcWriteLast}, {1024, 8}, 1033},
      {{kRcWriteFirst, kRcWriteMiddle}, {1024, 1024}, 2048},
      {{kRcWriteFirst, kRcWriteLast}, {1024, 0}, 1025},
      {{kRcWriteFirst, kRcSendLast}, {1024, 8}, 2000},
      {{kRcWriteFirst, kRcWriteOnly}, {1024, 8}, 2000},
      {{kRcWriteFirst, kRcReadReq}, {1024, 0}, 2000},
      {{kRcReadReq}, {4}, 8},
      {{kRcFetchAdd}, {4}, 0},
  };
  for (const Case& c : cases) {
    INFO("first opcode " << static_cast<unsigned>(c.ops[0]) << " of " << c.ops.size()
                         << ", payload " << c.payloads.back() << ", length " << c.dma_len);
    Target t;
    t.capture = true;
    const Mr big = t.b.reg_mr(8192);
    for (std::size_t i = 0; i < c.ops.size(); ++i) {
      Shot s = t.good();
      s.op = c.ops[i];
      s.psn += static_cast<std::uint32_t>(i);
      s.payload = c.payloads[i];
      const bool reth = s.op == kRcWriteFirst || s.op == kRcWriteOnly || s.op == kRcReadReq;
      s.ext = reth ? hw::reth::kBytes : s.op == kRcFetchAdd ? hw::atomiceth::kBytes : 0;
      t.shoot(s, [&](std::byte* ext) {
        if (!reth) return;
        twin::poke<hw::reth::va>(ext, big.iova);
        twin::poke<hw::reth::rkey>(ext, big.key);
        twin::poke<hw::reth::dma_len>(ext, c.dma_len);
      });
    }
    REQUIRE(!t.sent[1].empty());
    const std::span<const std::byte> nak = t.sent[1].back();
    CHECK(opcode_of(nak) == kRcAck);
    CHECK(hw::get(nak.subspan(bth_at(nak) + hw::bth::kBytes), hw::aeth::syndrome) ==
          code_of(hw::AethSyndrome::kNakInvReq));
    CHECK(psn_of(nak) == 0x100 + c.ops.size() - 1);
    CHECK(t.qb.query(hw::progress::state) == static_cast<unsigned>(hw::QpState::kErr));
  }
}

TEST_CASE("the port's queue is bounded") {
  Target t;
  for (unsigned i = 0; i < 20'000; ++i) {
    Shot s = t.good();
    s.psn = 0x900;
    t.b.nic->packet_in(t.frame(s));
  }
  t.run();
  CHECK(t.b.counter(hw::Counter::kDropOverrun) == 20'000 - 16'384);
}

TEST_CASE("the ACK of a duplicate does not take back a newer one") {
  Target t;
  t.capture = true;
  const Mr big = t.b.reg_mr(64);
  Shot s = t.good();
  const Shot first = s;
  t.b.nic->packet_in(t.frame(s));
  Shot read = s;
  read.op = hw::RoceOp::kRcReadReq;
  read.psn = 0x101;
  read.payload = 0;
  read.ext = hw::reth::kBytes;
  t.b.nic->packet_in(t.frame(read, [&](std::byte* ext) {
    twin::poke<hw::reth::va>(ext, big.iova);
    twin::poke<hw::reth::rkey>(ext, big.key);
    twin::poke<hw::reth::dma_len>(ext, 8);
  }));
  s.psn = 0x102;
  t.b.nic->packet_in(t.frame(s));
  t.b.nic->packet_in(t.frame(first));
  t.b.nic->step(64);
  REQUIRE(t.sent[1].size() == 3);
  CHECK(psn_of(t.sent[1][0]) == 0x100);
  CHECK(opcode_of(t.sent[1][1]) == hw::RoceOp::kRcReadRspOnly);
  CHECK(psn_of(t.sent[1][2]) == 0x102);
}

TEST_CASE("acknowledgements coalesce within a step and carry the MSN") {
  Target t;
  t.capture = true;
  for (unsigned i = 0; i < 5; ++i) {
    Shot s = t.good();
    s.psn += i;
    t.b.nic->packet_in(t.frame(s));
  }
  t.b.nic->step(64);
  REQUIRE(t.sent[1].size() == 1);
  const std::span<const std::byte> ack = t.sent[1][0];
  CHECK(psn_of(ack) == 0x104);
  const auto aeth = ack.subspan(bth_at(ack) + hw::bth::kBytes);
  CHECK(hw::get(aeth, hw::aeth::msn) == 5);
  CHECK(hw::get(aeth, hw::aeth::syndrome) == 0x1f);
}
