// SPDX-License-Identifier: BSD-2-Clause
// Registers, reset and what commands refuse.
#include "link.hpp"

using namespace ordma;
using namespace ordma::bench;
using enum hw::CmdStatus;

namespace {

using Fill = std::function<void(std::span<std::byte>)>;

Fill with(std::initializer_list<std::pair<hw::Field, std::uint64_t>> fields) {
  std::vector<std::pair<hw::Field, std::uint64_t>> list(fields);
  return [list](std::span<std::byte> raw) {
    for (const auto& [f, v] : list) hw::set(raw, f, v);
  };
}

}  // namespace

TEST_CASE("identity and limits") {
  EngineConfig c;
  c.limits.max_qp = 100;
  Node n(2, 4 << 20, c);
  const auto r = [&](std::uint32_t at) { return n.nic->register_read(at); };
  CHECK(r(hw::reg::kMagic) == hw::kMagic);
  CHECK(r(hw::reg::kVersion) == (hw::kContractMajor << 16 | hw::kContractMinor));
  CHECK(r(hw::reg::kBuild) >> 32 == static_cast<unsigned>(hw::Engine::kTwin));
  CHECK((r(hw::reg::kCaps) & static_cast<unsigned>(hw::Cap::kRc)) != 0);
  CHECK((r(hw::reg::kCaps) & static_cast<unsigned>(hw::Cap::kToken)) == 0);
  CHECK((r(hw::reg::kCaps) & static_cast<unsigned>(hw::Cap::kMrc)) == 0);
  CHECK(r(hw::reg::kMaxQp) == 100);
  CHECK(r(hw::reg::kMaxInline) == 448);
  CHECK(r(hw::reg::kGuid) == 0x1234'5678'0002);
  CHECK(r(hw::reg::kMac) == n.mac);
  CHECK(r(hw::reg::kStatus) == 5);
  CHECK(r(0xff8) == 0);
  n.nic->register_write(hw::reg::kMaxQp, 7);
  CHECK(r(hw::reg::kMaxQp) == 100);
}

TEST_CASE("reset by nonce: all objects gone, nothing moves until enabled again") {
  Link l;
  const Mr src = l.a.reg_mr(1 << 20), dst = l.b.reg_mr(1 << 20);
  l.qa.send(l.write(src, 1 << 20, dst));
  l.a.nic->step(8);
  // The same nonce and zero are no reset.
  l.a.nic->register_write(hw::reg::kReset, 0x5eed);
  l.a.nic->register_write(hw::reg::kReset, 0);
  CHECK(l.a.nic->register_read(hw::reg::kStatus) == 5);
  l.a.nic->register_write(hw::reg::kReset, 77);
  CHECK(l.a.mem.registers[hw::reg::kResetEcho] == 77);
  CHECK(l.a.nic->register_read(hw::reg::kStatus) == 0);
  CHECK_FALSE(l.a.mem.pages[1].first);
  l.a.mem.revoke(Memory::kBase, 1u << 30);
  l.run();
  l.advance(1'000'000);
  CHECK(l.a.mem.violations == 0);
  CHECK(l.a.nic->idle());
}

TEST_CASE("disable stops DMA") {
  Link l;
  const Mr src = l.a.reg_mr(1 << 20), dst = l.b.reg_mr(1 << 20);
  l.qa.send(l.write(src, 1 << 20, dst));
  l.a.nic->step(8);
  l.a.nic->register_write(hw::reg::kEnable, 0);
  CHECK(l.a.mem.registers[hw::reg::kStatus] == 4);
  l.a.mem.revoke(Memory::kBase, 1u << 30);
  l.qa.ring();
  l.run();
  CHECK(l.a.mem.violations == 0);
}

TEST_CASE("a link that is down loses frames both ways") {
  LinkOptions o;
  o.a.silence = 1'000'000;
  Link l(o);
  const Mr src = l.a.reg_mr(64), dst = l.b.reg_mr(64);
  l.capture = true;
  l.a.nic->register_write(hw::reg::kLinkCtrl, 0);
  l.qa.send(l.write(src, 8, dst));
  l.run();
  CHECK(l.sent[0].empty());
  l.a.nic->register_write(hw::reg::kLinkCtrl, 1);
  l.serve(2'000'000);
  CHECK(l.ca.drain().size() == 1);
}

TEST_CASE("a driver that writes nonsense stops the device with the reason") {
  {
    Pair p;
    // A sequence number that is not the slot's.
    p.a.cmd_pi += 5;
    CHECK_THROWS(p.a.command(hw::CmdOp::kNop, 0));
    CHECK((p.a.nic->register_read(hw::reg::kStatus) & 2) != 0);
    CHECK((p.a.nic->register_read(hw::reg::kStatus) >> 8 & 0xff) ==
          static_cast<unsigned>(hw::Fatal::kCmd));
    CHECK((p.a.mem.registers[hw::reg::kStatus] & 2) != 0);
    CHECK(p.a.nic->idle());
  }
  Pair p;
  p.a.mem.revoke(Memory::kBase, 1u << 30);
  CHECK_THROWS(p.a.command(hw::CmdOp::kNop, 0));
  CHECK((p.a.nic->register_read(hw::reg::kStatus) >> 8 & 0xff) ==
        static_cast<unsigned>(hw::Fatal::kDma));
}

TEST_CASE("command and response rings wrap; irq raises CMD_DONE") {
  Pair p;
  for (unsigned i = 0; i < 300; ++i) {
    REQUIRE(p.a.command(hw::CmdOp::kNop, 0, {}, nullptr, i % 100 == 0) == kOk);
  }
  CHECK(p.a.command(static_cast<hw::CmdOp>(33), 0) == kUnsupported);
  CHECK(p.a.command(hw::CmdOp::kQpRewind, 0) == kUnsupported);
  const auto events = p.a.events();
  REQUIRE(events.size() == 3);
  CHECK(events[0].type == hw::EventType::kCmdDone);
  CHECK(events[1].log_index - events[0].log_index == 100);
  CHECK(p.a.mem.interrupts[0] >= 3);
}

TEST_CASE("PAGE_OPEN and PAGE_CLOSE") {
  Pair p;
  CHECK(p.a.open_page(1, 1) == kExists);
  CHECK(p.a.open_page(0, 0) == kBadParam);
  CHECK(p.a.open_page(1024, 1) == kBadParam);
  CHECK(p.a.open_page(5, 512) == kBadParam);
  CHECK(p.a.open_page(5, 511) == kOk);
  CHECK(p.a.command(hw::CmdOp::kPageClose, 5) == kOk);
  CHECK(p.a.command(hw::CmdOp::kPageClose, 5) == kNoObject);
  CHECK(p.a.command(hw::CmdOp::kPageClose, 0) == kBadParam);
}

TEST_CASE("MR_CREATE ranges") {
  Pair p;
  namespace h = hw::cmd_mr;
  const auto make = [&](std::uint32_t key, Fill fill) {
    return p.a.command(hw::CmdOp::kMrCreate, key, fill);
  };
  const Addr list = p.a.mem.alloc(4096, 4096);
  CHECK(make(hw::kReservedLkey, with({{h::length, 1}})) == kBadParam);
  CHECK(make(0xab0000, with({{h::length, 1}})) == kBadParam);
  CHECK(make(0xab0005, with({{h::iova, ~0ull}, {h::length, 2}})) == kBadParam);
  CHECK(make(0xab0005, with({{h::addr, ~0ull}, {h::length, 2}})) == kBadParam);
  CHECK(make(0xab0005, with({{h::access, 16}})) == kBadParam);
  CHECK(make(0xab0005, with({{h::level, 3}, {h::page_log, 12}})) == kBadParam);
  CHECK(make(0xab0005, with({{h::level, 1}, {h::page_log, 11}, {h::addr, list}})) == kBadParam);
  CHECK(make(0xab0005, with({{h::level, 1}, {h::page_log, 32}, {h::addr, list}})) == kBadParam);
  CHECK(make(0xab0005, with({{h::level, 1}, {h::page_log, 12}, {h::addr, list + 4}})) ==
        kBadParam);
  CHECK(make(0xab0005, with({{h::level, 2}, {h::page_log, 12}, {h::addr, list},
                             {h::first_off, 4096}})) == kBadParam);
  CHECK(make(0xab0005, with({{h::iova, ~0ull}, {h::length, 1}})) == kOk);
  CHECK(make(0xab0005, with({{h::length, 1}})) == kExists);
  CHECK(make(0xcd0005, with({{h::length, 1}})) == kExists);
  CHECK(p.a.command(hw::CmdOp::kMrDestroy, 0xcd0005) == kNoObject);
  CHECK(p.a.command(hw::CmdOp::kMrDestroy, 0xab0005) == kOk);
  CHECK(p.a.command(hw::CmdOp::kMrDestroy, 0xab0005) == kNoObject);
  CHECK(make(0xcd0005, with({{h::length, 1}})) == kOk);
}

TEST_CASE("CQ and SRQ ranges, and objects in use") {
  Pair p;
  namespace c = hw::cmd_cq;
  const Addr ring = p.a.mem.alloc(4096, 4096), rec = p.a.mem.alloc(8);
  const auto cq = [&](std::uint32_t n, std::uint64_t log, std::uint64_t addr, std::uint64_t record,
                      std::uint64_t uctx = 1) {
    return p.a.command(hw::CmdOp::kCqCreate, n,
                       with({{c::log, log}, {c::addr, addr}, {c::record, record},
                             {c::uctx, uctx}}));
  };
  CHECK(cq(4096, 4, ring, rec) == kBadParam);
  CHECK(cq(50, 21, ring, rec) == kBadParam);
  CHECK(cq(50, 31, ring, rec) == kBadParam);
  CHECK(cq(50, 4, ring + 8, rec) == kBadParam);
  CHECK(cq(50, 4, 0, rec) == kBadParam);
  CHECK(cq(50, 4, ring, 0) == kBadParam);
  CHECK(cq(50, 4, ring, rec + 4) == kBadParam);
  CHECK(cq(50, 4, ring, rec, 512) == kBadParam);
  CHECK(cq(50, 4, ring, rec) == kOk);
  CHECK(cq(50, 4, ring, rec) == kExists);
  CHECK(p.a.command(hw::CmdOp::kCqResize, 51, with({{c::log, 4}})) == kNoObject);
  CHECK(p.a.command(hw::CmdOp::kCqResize, 50, with({{c::log, 4}})) == kBadParam);
  CHECK(p.a.command(hw::CmdOp::kCqDestroy, 50) == kOk);
  CHECK(p.a.command(hw::CmdOp::kCqDestroy, 50) == kNoObject);
  namespace s = hw::cmd_srq;
  const auto srq = [&](std::uint64_t log, std::uint64_t stride, std::uint64_t limit) {
    return p.a.command(hw::CmdOp::kSrqCreate, 60,
                       with({{s::log, log}, {s::stride_log, stride}, {s::addr, ring},
                             {s::record, rec}, {s::limit, limit}, {s::uctx, 1}}));
  };
  CHECK(srq(4, 4, 0) == kBadParam);
  CHECK(srq(4, 10, 0) == kBadParam);
  CHECK(srq(15, 5, 0) == kBadParam);
  CHECK(srq(4, 5, 17) == kBadParam);
  CHECK(srq(4, 5, 16) == kOk);
  CHECK(srq(4, 5, 0) == kExists);
  CHECK(p.a.command(hw::CmdOp::kSrqLimit, 60, with({{s::limit, 17}})) == kBadParam);
  CHECK(p.a.command(hw::CmdOp::kSrqLimit, 61, with({{s::limit, 1}})) == kNoObject);
  CHECK(p.a.command(hw::CmdOp::kSrqDestroy, 60) == kOk);

  Cq used = p.a.create_cq(4);
  Srq shared = p.a.create_srq(4);
  Qp qp = p.a.create_qp({.scq = &used, .rcq = &used, .srqn = shared.number});
  CHECK(p.a.command(hw::CmdOp::kCqDestroy, used.number) == kBadState);
  CHECK(p.a.command(hw::CmdOp::kSrqDestroy, shared.number) == kBadState);
  CHECK(p.a.destroy_qp(qp) == kOk);
  CHECK(p.a.command(hw::CmdOp::kCqDestroy, used.number) == kOk);
  CHECK(p.a.command(hw::CmdOp::kSrqDestroy, shared.number) == kOk);
}

TEST_CASE("QP_CREATE refuses images out of range") {
  Pair p;
  Cq cq = p.a.create_cq(4);
  Qp good = p.a.create_qp({.scq = &cq, .rcq = &cq});
  REQUIRE(p.a.destroy_qp(good) == kOk);
  namespace q = hw::qpc;
  const auto create = [&](std::uint32_t qpn,
                          std::initializer_list<std::pair<hw::Field, std::uint64_t>> changes) {
    auto raw = p.a.mem.at(good.image, hw::qpc::kBytes);
    std::copy(good.qpc.begin(), good.qpc.end(), raw.begin());
    hw::set(raw, q::qpn, qpn);
    for (const auto& [f, v] : changes) hw::set(raw, f, v);
    const auto status = p.a.command(hw::CmdOp::kQpCreate, qpn,
                                    with({{hw::cmd_qp::image, good.image}}));
    if (status == kOk) CHECK(p.a.command(hw::CmdOp::kQpDestroy, qpn) == kOk);
    return status;
  };
  const std::uint32_t n = good.qpn;
  CHECK(create(n, {}) == kOk);
  CHECK(create(0, {}) == kBadParam);
  CHECK(create(0x14000, {}) == kBadParam);
  CHECK(create(1, {}) == kBadParam);
  CHECK(create(hw::kMcastQpn, {}) == kBadParam);
  CHECK(create(0x1000000 + n, {}) == kBadParam);
  CHECK(create(n, {{q::qpn, n + 1}}) == kBadParam);
  CHECK(create(n, {{q::type_, 0}}) == kBadParam);
  CHECK(create(n, {{q::type_, 3}}) == kOk);
  CHECK(create(n, {{q::type_, 5}}) == kBadParam);
  CHECK(create(n, {{q::type_, 8}}) == kBadParam);
  CHECK(create(n, {{q::type_, 1}}) == kBadParam);
  CHECK(create(n, {{q::uctx, 512}}) == kBadParam);
  CHECK(create(n, {{q::scqn, 2000}}) == kBadParam);
  CHECK(create(n, {{q::rcqn, 0xffffff}}) == kBadParam);
  CHECK(create(n, {{q::has_srq, 1}, {q::srqn, 9}}) == kBadParam);
  CHECK(create(n, {{q::sq_log, 15}}) == kBadParam);
  CHECK(create(n, {{q::sq_log, 31}}) == kBadParam);
  CHECK(create(n, {{q::sq_stride_log, 5}}) == kBadParam);
  CHECK(create(n, {{q::sq_stride_log, 10}}) == kBadParam);
  CHECK(create(n, {{q::rq_stride_log, 4}}) == kBadParam);
  CHECK(create(n, {{q::rq_stride_log, 15}}) == kBadParam);
  CHECK(create(n, {{q::sq_addr, good.sq + 8}}) == kBadParam);
  CHECK(create(n, {{q::sq_level, 3}}) == kBadParam);
  CHECK(create(n, {{q::sq_level, 1}, {q::sq_page_log, 3}}) == kBadParam);
  CHECK(create(n, {{q::log_addr, 0}}) == kBadParam);
  CHECK(create(n, {{q::log_addr, good.log + 8}}) == kBadParam);
  CHECK(create(n, {{q::log_log, 16}}) == kBadParam);
  CHECK(create(n, {{q::max_rd_atomic, 17}}) == kBadParam);
  CHECK(create(n, {{q::max_dest_rd_atomic, 255}}) == kBadParam);
  CHECK(p.a.command(hw::CmdOp::kQpCreate, n, with({{hw::cmd_qp::image, 0x10}})) == kDma);
  CHECK(p.a.command(hw::CmdOp::kQpDestroy, n) == kNoObject);
  Qp x = p.a.create_qp({.scq = &cq, .rcq = &cq});
  CHECK(create(x.qpn, {}) == kExists);
  CHECK(create(x.qpn ^ 0x80000, {}) == kExists);
}

TEST_CASE("QP_MODIFY: the state table and what an image may not change") {
  using enum hw::QpState;
  Pair p;
  Cq cq = p.a.create_cq(4);
  const hw::QpState path[] = {kReset, kInit, kRtr, kRts, kSqd, kErr};
  const auto bring = [&](Qp& qp, hw::QpState to) {
    REQUIRE(qp.to(kReset) == kOk);
    if (to == kReset) return;
    if (to == kErr) {
      REQUIRE(qp.to(kErr) == kOk);
      return;
    }
    REQUIRE(qp.to(kInit) == kOk);
    if (to == kInit) return;
    REQUIRE(qp.to(kRtr, true) == kOk);
    if (to == kRtr) return;
    REQUIRE(qp.to(kRts, false, true) == kOk);
    if (to == kSqd) REQUIRE(qp.to(kSqd) == kOk);
  };
  const auto legal = [](hw::QpState from, hw::QpState to) {
    if (to == kReset || to == kErr) return true;
    if (to == kInit) return from == kReset || from == kInit;
    if (to == kRtr) return from == kInit;
    if (to == kRts) return from == kRtr || from == kRts || from == kSqd;
    if (to == kSqd) return from == kRts || from == kSqd;
    return false;
  };
  Qp qp = p.a.create_qp({.scq = &cq, .rcq = &cq});
  qp.connect(0x55, p.b.gid, p.b.mac);
  for (const hw::QpState from : path) {
    for (unsigned to = 0; to <= 7; ++to) {
      INFO("from " << static_cast<unsigned>(from) << " to " << to);
      bring(qp, from);
      const auto target = static_cast<hw::QpState>(to);
      const auto status = qp.to(target);
      CHECK(status == (to > 6 ? kBadParam : legal(from, target) ? kOk : kBadState));
      if (status != kOk) {
        CHECK(qp.query(hw::progress::state) == static_cast<unsigned>(from));
      }
    }
  }
  bring(qp, kInit);
  CHECK(qp.to(kRtr, true, true) == kBadParam);
  CHECK(qp.to(kInit, true) == kBadParam);
  namespace q = hw::qpc;
  const auto refuse = [&](hw::Field f, std::uint64_t value) {
    const auto saved = qp.qpc;
    hw::set(qp.qpc, f, value);
    CHECK(qp.to(kRtr, true) == kBadParam);
    qp.qpc = saved;
    CHECK(qp.query(hw::progress::state) == static_cast<unsigned>(kInit));
  };
  refuse(q::qpn, qp.qpn + 1);
  refuse(q::type_, 3);
  refuse(q::pd, 9);
  refuse(q::uctx, 2);
  refuse(q::sq_log, 5);
  refuse(q::rq_addr, qp.sq);
  refuse(q::log_log, 5);
  refuse(q::log_addr, qp.log + 64);
  refuse(q::mtu_log, 7);
  refuse(q::mtu_log, 13);
  refuse(q::sgid_index, 1);
  refuse(q::sgid_index, 200);
  refuse(q::max_dest_rd_atomic, 17);
  refuse(q::atomic_addr, 0);
  // The peer's GID is of another family than the source's.
  qp.connect(0x55, v6_gid(9), p.b.mac);
  CHECK(qp.to(kRtr, true) == kBadParam);
}

TEST_CASE("a path MTU beyond the port's is refused") {
  EngineConfig c;
  c.port_mtu = 1500;
  Pair p(c);
  Cq cq = p.a.create_cq(4);
  Qp qp = p.a.create_qp({.scq = &cq, .rcq = &cq, .mtu_log = 11});
  qp.connect(0x55, p.b.gid, p.b.mac);
  REQUIRE(qp.to(hw::QpState::kInit) == kOk);
  CHECK(qp.to(hw::QpState::kRtr, true) == kBadParam);
  hw::set(qp.qpc, hw::qpc::mtu_log, 10);
  CHECK(qp.to(hw::QpState::kRtr, true) == kOk);
}

TEST_CASE("GID, multicast, counters and Ethernet filter commands") {
  Pair p;
  CHECK(p.a.set_gid(64, v6_gid(1), 2) == kBadParam);
  CHECK(p.a.set_gid(3, v4_gid(239, 1, 1, 1), 2) == kBadParam);
  CHECK(p.a.set_gid(3, v6_gid(1), 2, 0) == kBadParam);
  CHECK(p.a.command(hw::CmdOp::kGidSet, 3,
                    with({{hw::cmd_gid::valid, 1}, {hw::cmd_gid::ipv4, 1}})) == kBadParam);
  CHECK(p.a.set_gid(3, v6_gid(1), 2, 4000) == kOk);
  CHECK(p.a.command(hw::CmdOp::kGidSet, 3) == kOk);
  CHECK(p.a.command(hw::CmdOp::kCounters, 0, with({{hw::cmd_out::addr, 4}})) == kBadParam);
  CHECK(p.a.command(hw::CmdOp::kCounters, 0,
                    with({{hw::cmd_out::addr, 8}, {hw::cmd_out::count, 9}})) == kDma);
  const Addr out = p.a.mem.alloc(16);
  p.a.mem.store(out + 8, 0x1111);
  std::uint64_t n = 0;
  CHECK(p.a.command(hw::CmdOp::kCounters, 0,
                    with({{hw::cmd_out::addr, out}, {hw::cmd_out::count, 1}}), &n) == kOk);
  CHECK(n == 1);
  CHECK(p.a.mem.load(out + 8) == 0x1111);
  CHECK(p.a.command(hw::CmdOp::kEthFilter, 77) == kNoObject);
  Cq cq = p.a.create_cq(4);
  Qp rc = p.a.create_qp({.scq = &cq, .rcq = &cq});
  CHECK(p.a.command(hw::CmdOp::kEthFilter, rc.qpn) == kBadParam);
  CHECK(p.a.command(hw::CmdOp::kMcastAttach, rc.qpn) == kBadParam);
  CHECK(p.a.command(hw::CmdOp::kMcastAttach, 0x777) == kNoObject);
  CHECK(p.a.command(hw::CmdOp::kQpQuery, rc.qpn, with({{hw::cmd_qp::image, 1}})) == kDma);
  CHECK(p.a.command(hw::CmdOp::kQpQuery, 0x777) == kNoObject);
  CHECK(p.a.command(hw::CmdOp::kQpModify, 0x777) == kNoObject);
}
