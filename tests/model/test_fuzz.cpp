// SPDX-License-Identifier: BSD-2-Clause
// Random input at every untrusted door. What matters is that nothing crashes, hangs or reaches
// memory it must not; the sanitizers watch the rest.
#include <cstdlib>
#include <random>

#include "link.hpp"
#include "wire.hpp"

using namespace ordma;
using namespace ordma::bench;

namespace {

unsigned rounds(unsigned normal) {
  const char* scale = std::getenv("ORDMA_TEST_SCALE");
  const double factor = scale != nullptr ? std::atof(scale) : 1;
  return factor > 0 ? static_cast<unsigned>(normal * factor) + 1 : normal;
}

std::mt19937_64 seeded(unsigned salt) {
  const char* seed = std::getenv("ORDMA_TEST_SEED");
  return std::mt19937_64(salt + (seed != nullptr ? std::strtoull(seed, nullptr, 0) : 0));
}

// What only the driver owns: no packet and no WQE may write there.
struct Guard {
  explicit Guard(Node& n) : node(n), addr(n.mem.alloc(4096, 4096)) { n.mem.fill(addr, 4096, 99); }
  ~Guard() { CHECK(node.mem.filled(addr, 4096, 99)); }
  Node& node;
  Addr addr;
};

}  // namespace

TEST_CASE("fuzz: random headers at connected and datagram QPs") {
  auto rng = seeded(1);
  for (unsigned run = 0; run < rounds(20); ++run) {
    Link l;
    const Guard guard(l.b);
    Srq srq = l.b.create_srq(5);
    QpOptions o;
    o.scq = o.rcq = &l.cb;
    o.srqn = srq.number;
    Qp with_srq = l.b.create_qp(o);
    Qp peer = l.a.create_qp({.scq = &l.ca, .rcq = &l.ca});
    l.connect(peer, with_srq);
    const Mr in = l.b.reg_mr(8192), src = l.a.reg_mr(8192);
    for (unsigned i = 0; i < 32; ++i) {
      l.qb.post_recv(i, {{in.iova, 3000, in.key}});
      srq.post(i, {{in.iova, 2000, in.key}});
    }
    l.qb.ring_recv();
    // Something outstanding at B, so that responses mean something.
    l.qb.post({.sges = {{in.iova, 5000, in.key}}, .remote_addr = src.iova, .rkey = src.key});
    l.qb.post({.op = hw::WqeOp::kRead, .sges = {{in.iova, 5000, in.key}},
               .remote_addr = src.iova, .rkey = src.key});
    l.qb.ring();
    l.filter = [](unsigned, std::span<const std::byte>) { return Pair::Verdict{.drop = true}; };
    const auto h = twin::make_template({.smac = l.a.mac, .dmac = l.b.mac, .sgid = l.a.gid,
                                        .dgid = l.b.gid, .ipv4 = true, .sport = 0xc000});
    std::uint32_t psn = 0x100;
    for (unsigned i = 0; i < 400; ++i) {
      const std::size_t ext = rng() % 3 == 0 ? rng() % 40 : (rng() % 8) * 4;
      const std::size_t payload = rng() % 4 == 0 ? 1024 : rng() % 1400;
      const std::uint32_t near = psn + static_cast<std::uint32_t>(rng() % 5) - 1;
      twin::PacketBuilder p(
          h, {.opcode = static_cast<hw::RoceOp>(rng() % 8 == 0 ? rng() % 256 : rng() % 0x18),
              .solicited = rng() % 2 == 0, .ack_req = rng() % 2 == 0,
              .dest_qpn = rng() % 3 == 0 ? with_srq.qpn : l.qb.qpn,
              .psn = (rng() % 4 == 0 ? static_cast<std::uint32_t>(rng()) : near) & 0xffffff,
              .ext = ext, .payload = payload});
      for (std::size_t k = 0; k < ext + payload; ++k) p.ext()[k] = static_cast<std::byte>(rng());
      if (ext >= hw::reth::kBytes && rng() % 2 == 0) {
        twin::poke<hw::reth::va>(p.ext(), in.iova + rng() % 9000);
        twin::poke<hw::reth::rkey>(p.ext(), in.key);
        twin::poke<hw::reth::dma_len>(p.ext(), rng() % 9000);
      }
      l.b.nic->packet_in(p.seal());
      if (rng() % 4 == 0) {
        l.run();
        psn = static_cast<std::uint32_t>(l.qb.query(hw::progress::epsn));
      }
    }
    l.run();
    for (Qp* q : {&l.qb, &with_srq}) {
      if (q->query(hw::progress::state) == 6) REQUIRE(q->to(hw::QpState::kReset) ==
                                                      hw::CmdStatus::kOk);
    }
    CHECK((l.b.nic->register_read(hw::reg::kStatus) & 2) == 0);
  }
}

TEST_CASE("fuzz: random bytes as frames") {
  auto rng = seeded(2);
  Link l;
  const Guard guard(l.b);
  const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192);
  std::vector<Bytes> good;
  l.capture = true;
  l.qa.post(l.write(src, 3000, dst));
  l.qa.post(l.read(src, 3000, dst));
  l.qa.ring();
  l.run();
  for (unsigned i = 0; i < rounds(20000); ++i) {
    Bytes frame = l.sent[rng() % 2].at(rng() % 3);
    const unsigned flips = rng() % 6;
    for (unsigned k = 0; k < flips; ++k) {
      frame[rng() % frame.size()] = static_cast<std::byte>(rng());
    }
    if (rng() % 3 == 0) frame.resize(rng() % (frame.size() + 1));
    // Half of them with a right ICRC, so that they get further than the first gate.
    if (rng() % 2 == 0 && frame.size() > 60) {
      const auto l3 = std::span<std::byte>(frame).subspan(hw::eth::kBytes);
      const std::uint32_t crc = twin::icrc(true, l3.first(l3.size() - 4));
      std::memcpy(l3.data() + l3.size() - 4, &crc, 4);
    }
    l.b.nic->packet_in(Frame::copy_of(
        {reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size()}));
    if (i % 64 == 0) l.run();
  }
  l.run();
  CHECK((l.b.nic->register_read(hw::reg::kStatus) & 2) == 0);
}

TEST_CASE("fuzz: random send and receive queue memory") {
  auto rng = seeded(3);
  for (const auto type : {hw::QpType::kRc, hw::QpType::kUc, hw::QpType::kUd}) {
    for (unsigned run = 0; run < rounds(120); ++run) {
      LinkOptions o;
      o.a.type = o.b.type = type;
      o.a.sq_stride_log = 6 + rng() % 4;
      o.b.rq_stride_log = 5 + rng() % 5;
      if (type == hw::QpType::kUd) o.a.mtu_log = o.b.mtu_log = 0;
      Link l(o, 8u << 20);
      const Guard guard(l.a), guard_b(l.b);
      const Mr src = l.a.reg_mr(4096), dst = l.b.reg_mr(4096);
      const auto sq = l.a.mem.at(l.qa.sq, std::size_t{64} << o.a.sq_stride_log);
      for (auto& b : sq) b = static_cast<std::byte>(rng() % 3 == 0 ? rng() : 0);
      const auto rq = l.b.mem.at(l.qb.rq, std::size_t{64} << o.b.rq_stride_log);
      for (auto& b : rq) b = static_cast<std::byte>(rng() % 3 == 0 ? rng() : 0);
      // Plausible heads, so that not everything ends at the index check.
      const std::size_t stride = std::size_t{1} << o.a.sq_stride_log;
      for (unsigned i = 0; i < 64; ++i) {
        const auto raw = sq.subspan(i * stride, stride);
        hw::set(raw, hw::wqe::index, i);
        hw::set(raw, hw::wqe::opcode, rng() % 11);
        if (rng() % 2 == 0) hw::set(raw, hw::wqe::inline_, 1);
        if (rng() % 2 == 0) {
          const std::uint32_t n = rng() % 5000;
          hw::set(raw, hw::wqe::inline_, 0);
          hw::set(raw, hw::wqe::num_sge, 1);
          hw::set(raw, hw::wqe::length, n);
          if (type != hw::QpType::kUd && stride >= 64) {
            const auto sge = raw.subspan(hw::kWqeDataOff, hw::sge::kBytes);
            hw::set(sge, hw::sge::addr, src.iova);
            hw::set(sge, hw::sge::length, n);
            hw::set(sge, hw::sge::lkey, src.key);
            hw::set(raw, hw::wqe::remote_addr, dst.iova + rng() % 4096);
            hw::set(raw, hw::wqe::rkey, dst.key);
          }
        }
        const auto rqe = rq.subspan(std::size_t{i} << o.b.rq_stride_log,
                                    std::size_t{1} << o.b.rq_stride_log);
        hw::set(rqe, hw::rqe::index, i);
        hw::set(rqe, hw::rqe::num_sge, rng() % 4);
      }
      l.qb.rq_pi = 64;
      l.qb.ring_recv();
      for (unsigned i = 1; i <= 64; i += 1 + rng() % 8) {
        l.qa.sq_pi = i;
        l.qa.ring();
        l.serve(10'000);
        (void)l.ca.drain();
        (void)l.cb.drain();
      }
      CHECK((l.a.nic->register_read(hw::reg::kStatus) & 2) == 0);
      CHECK((l.b.nic->register_read(hw::reg::kStatus) & 2) == 0);
    }
  }
}

TEST_CASE("fuzz: random doorbells") {
  auto rng = seeded(4);
  Link l;
  REQUIRE(l.a.open_page(2, 1, true) == hw::CmdStatus::kOk);
  Srq srq = l.a.create_srq(4);
  for (unsigned i = 0; i < rounds(50000); ++i) {
    std::uint64_t word = rng();
    if (rng() % 2 == 0) {
      const std::uint32_t numbers[] = {l.qa.qpn, l.ca.number, srq.number, 0};
      word = hw::place(hw::db::kind, rng() % 9) | hw::place(hw::db::number, numbers[rng() % 4]) |
             hw::place(hw::db::index, rng() % 70) | hw::place(hw::db::arm_seq, rng());
      if (rng() % 2 == 0) word |= 1ull << 31 | 1ull << 63;
    }
    l.a.nic->doorbell(1 + rng() % 3, (rng() % 520) * (rng() % 8 == 0 ? 1 : 8), word,
                      rng() % 16 == 0 ? static_cast<std::uint8_t>(rng()) : 0xff);
    if (i % 100 == 0) {
      l.run();
      (void)l.ca.drain();
      (void)l.a.events();
    }
  }
  l.run();
  CHECK((l.a.nic->register_read(hw::reg::kStatus) & 2) == 0);
}

TEST_CASE("fuzz: random commands and context images") {
  auto rng = seeded(5);
  for (unsigned run = 0; run < rounds(6); ++run) {
    Link l;
    const Mr mr = l.a.reg_mr(4096);
    for (unsigned i = 0; i < 1500; ++i) {
      const Addr image = l.a.mem.alloc(hw::qpc::kBytes);
      const auto raw = l.a.mem.at(image, hw::qpc::kBytes);
      std::copy(l.qa.qpc.begin(), l.qa.qpc.end(), raw.begin());
      const unsigned flips = rng() % 5;
      for (unsigned k = 0; k < flips; ++k) raw[rng() % raw.size()] = static_cast<std::byte>(rng());
      const std::uint32_t numbers[] = {l.qa.qpn, static_cast<std::uint32_t>(rng() % 70),
                                       static_cast<std::uint32_t>(rng()), mr.key};
      const std::uint32_t number = numbers[rng() % 4];
      if (rng() % 2 == 0) hw::set(raw, hw::qpc::qpn, number);
      const auto op = static_cast<hw::CmdOp>(1 + rng() % 21);
      l.a.command(op, number, [&](std::span<std::byte> cmd) {
        for (std::size_t w = 8; w < cmd.size(); ++w) {
          if (rng() % 3 == 0) cmd[w] = static_cast<std::byte>(rng() % (rng() % 2 == 0 ? 256 : 16));
        }
        if (op == hw::CmdOp::kQpCreate || op == hw::CmdOp::kQpModify) {
          hw::set(cmd, hw::cmd_qp::image, image);
        }
        // Rings and records that the command may have the NIC write to.
        if (rng() % 2 == 0) hw::set(cmd, hw::cmd_cq::addr, l.ca.ring);
        if (rng() % 2 == 0) hw::set(cmd, hw::cmd_cq::record, l.ca.record);
      });
      if (rng() % 8 == 0) {
        l.qa.sq_pi += 1;
        l.qa.ring();
      }
      if (rng() % 4 == 0) {
        l.a.recovery(static_cast<hw::CmdOp>(64 + rng() % 4), l.qa.qpn,
                     [&](std::span<std::byte> cmd) {
                       for (std::size_t w = 8; w < cmd.size(); ++w) {
                         cmd[w] = static_cast<std::byte>(rng() % 4 == 0 ? rng() : 0);
                       }
                     });
      }
      l.advance(100);
      (void)l.a.events();
      (void)l.ca.drain();
      if ((l.a.nic->register_read(hw::reg::kStatus) & 1) == 0) break;
    }
  }
}
