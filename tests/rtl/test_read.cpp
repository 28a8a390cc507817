// SPDX-License-Identifier: BSD-2-Clause
// RDMA READ and atomics: data, order among answers, duplicates, implied NAKs, rights.
#include <catch2/catch.hpp>

#include <cstring>

#include "pair.hpp"
#include "recovery.hpp"

namespace ordma::bench {
namespace {

std::uint64_t word(Host& h, const Region& r, std::uint64_t off) {
  std::uint64_t v;
  std::memcpy(&v, get(h, r, off, 8).data(), 8);
  return v;
}

void put_word(Host& h, const Region& r, std::uint64_t off, std::uint64_t v) {
  std::vector<std::byte> raw(8);
  std::memcpy(raw.data(), &v, 8);
  put(h, r, off, raw);
}

}  // namespace

TEST_CASE("READ: sizes, MTUs, scattered and gathered") {
  const unsigned mtu_log = GENERATE(8u, 10u, 12u);
  const auto level = GENERATE(hw::BufLevel::kDirect, hw::BufLevel::kTree);
  Pair p(make_rtl, {.mtu_log = mtu_log, .level = level});
  unsigned seed = 1;
  for (const std::uint32_t size : {0u, 1u, 3u, 64u, 255u, 256u, 257u, 1025u, 4096u, 4097u, 20000u}) {
    INFO("size " << size << " mtu " << mtu_log);
    const auto data = pattern(size, ++seed);
    const std::uint32_t from = seed * 131 % 5000, to = seed * 77 % 5000;
    put(p.b(), p.rb, from, data);
    std::vector<Sge> sges;
    const std::uint32_t half = size / 3;
    if (half != 0) sges.push_back({p.ra.iova + to, half, p.ra.key});
    if (size - half != 0) sges.push_back({p.ra.iova + to + half, size - half, p.ra.key});
    p.qa->post({.op = hw::WqeOp::kRead, .sges = sges, .remote_addr = p.rb.iova + from, .rkey = p.rb.key});
    p.qa->ring_sq();
    const auto s = p.ca->wait();
    REQUIRE(s);
    REQUIRE(s->status == hw::WcStatus::kSuccess);
    CHECK(s->opcode == hw::WcOp::kRdmaRead);
    CHECK(s->byte_len == size);
    REQUIRE(get(p.a(), p.ra, to, size) == data);
  }
  p.check_wire();
}

TEST_CASE("READs, WRITEs and SENDs mixed complete in order; a READ sees the WRITE before it") {
  Pair p(make_rtl, {.mtu_log = 10});
  for (unsigned i = 0; i < 16; ++i) p.qb->post_recv(i, {{p.rb.iova + 40000, 100, p.rb.key}});
  p.qb->ring_rq();
  for (unsigned i = 0; i < 16; ++i) {
    const auto data = pattern(3000, i + 50);
    put(p.a(), p.ra, i * 1000 % 16000, pattern(3000, i));
    put(p.a(), p.ra, 30000, data);
    p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova + 30000, 3000, p.ra.key}}, .remote_addr = p.rb.iova + 100, .rkey = p.rb.key});
    p.qa->post({.op = hw::WqeOp::kRead, .sges = {{p.ra.iova + 45000, 3000, p.ra.key}}, .remote_addr = p.rb.iova + 100, .rkey = p.rb.key});
    p.qa->post({.sges = {{p.ra.iova, 100, p.ra.key}}});
    p.qa->ring_sq();
    for (unsigned k = 0; k < 3; ++k) {
      const auto s = p.ca->wait();
      REQUIRE(s);
      REQUIRE(s->status == hw::WcStatus::kSuccess);
      CHECK(s->wqe_index == i * 3 + k);
    }
    REQUIRE(get(p.a(), p.ra, 45000, 3000) == data);
    p.ca->update_record();
  }
  p.check_wire();
}

TEST_CASE("outstanding READs keep to max_rd_atomic, and a fence waits for them") {
  Pair p(make_rtl, {.mtu_log = 12, .rd_atomic = 2});
  unsigned open = 0, most = 0;
  bool fenced_early = false;
  p.world.filter = [&](int from, const Decoded& d, Frame&) {
    if (from == 0 && d.opcode == 0x0c) most = std::max(most, ++open);
    if (from == 1 && d.opcode == 0x10) --open;
    if (from == 0 && d.opcode == 0x0a && open != 0) fenced_early = true;
    return true;
  };
  for (unsigned i = 0; i < 6; ++i) {
    p.qa->post({.op = hw::WqeOp::kRead, .signaled = false, .sges = {{p.ra.iova + i * 4096, 4096, p.ra.key}},
                .remote_addr = p.rb.iova, .rkey = p.rb.key});
  }
  p.qa->post({.op = hw::WqeOp::kWrite, .fence = true, .sges = {{p.ra.iova, 64, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key});
  p.qa->ring_sq();
  const auto s = p.ca->wait();
  REQUIRE(s);
  CHECK(s->status == hw::WcStatus::kSuccess);
  CHECK(s->wqe_index == 6);
  CHECK(most == 2);
  CHECK_FALSE(fenced_early);
}

TEST_CASE("atomics") {
  Pair p(make_rtl);
  put_word(p.b(), p.rb, 1036, 100);  // 100 + 1036 is a multiple of 8
  const std::uint64_t target = p.rb.iova + 1036;
  REQUIRE(target % 8 == 0);
  const auto run = [&](hw::WqeOp op, std::uint64_t swap_add, std::uint64_t compare) {
    p.qa->post({.op = op, .sges = {{p.ra.iova + 8, 8, p.ra.key}}, .remote_addr = target, .rkey = p.rb.key,
                .swap_add = swap_add, .compare = compare});
    p.qa->ring_sq();
    const auto s = p.ca->wait();
    REQUIRE(s);
    REQUIRE(s->status == hw::WcStatus::kSuccess);
    CHECK(s->byte_len == 8);
    return word(p.a(), p.ra, 8);
  };
  CHECK(run(hw::WqeOp::kFetchAdd, 5, 0) == 100);
  CHECK(run(hw::WqeOp::kFetchAdd, ~std::uint64_t{0}, 0) == 105);
  CHECK(run(hw::WqeOp::kCmpSwap, 7, 1) == 104);
  CHECK(run(hw::WqeOp::kCmpSwap, 0x1122334455667788, 104) == 104);
  CHECK(run(hw::WqeOp::kFetchAdd, 0, 0) == 0x1122334455667788);
  CHECK(word(p.b(), p.rb, 1036) == 0x1122334455667788);
  p.check_wire();
}

TEST_CASE("a lost READ response is an implied NAK; a lost atomic response does not add twice") {
  Pair p(make_rtl, {.mtu_log = 8, .silence = 40'000});
  // A rewind unfreezes at once and pauses only the sending, so answers that are still in flight freeze
  // again. What counts is the wire: within one pause nothing is asked twice more.
  Recovery r{p, 30'000};
  const unsigned lose = GENERATE(0u, 1u, 5u, 9u);
  const bool atomic = GENERATE(false, true);
  unsigned seen = 0;
  std::map<std::uint32_t, int> asked;
  p.world.filter = [&](int from, const Decoded& d, Frame&) {
    if (from == 0) ++asked[d.psn];
    const bool hit = from == 1 && (atomic ? d.opcode == 0x12 : d.opcode >= 0x0d && d.opcode <= 0x10);
    return !hit || seen++ != lose;
  };
  const auto data = pattern(2500, 9);
  put(p.b(), p.rb, 0, data);
  put_word(p.b(), p.rb, 8196, 1);
  for (unsigned i = 0; i < 12; ++i) {
    if (atomic) {
      p.qa->post({.op = hw::WqeOp::kFetchAdd, .sges = {{p.ra.iova + 20000 + i * 8, 8, p.ra.key}},
                  .remote_addr = p.rb.iova + 8196, .rkey = p.rb.key, .swap_add = 1});
    } else {
      p.qa->post({.op = hw::WqeOp::kRead, .sges = {{p.ra.iova + i * 2500, 2500, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key});
    }
  }
  p.qa->ring_sq();
  for (unsigned i = 0; i < 12; ++i) {
    const auto s = r.wait(*p.ca);
    REQUIRE(s);
    REQUIRE(s->status == hw::WcStatus::kSuccess);
    CHECK(s->wqe_index == i);
  }
  for (unsigned i = 0; i < 12; ++i) {
    if (atomic) CHECK(word(p.a(), p.ra, 20000 + i * 8) == 1 + i);
    else CHECK(get(p.a(), p.ra, i * 2500, 2500) == data);
  }
  if (atomic) CHECK(word(p.b(), p.rb, 8196) == 13);
  CHECK(r.total() > 0);
  int twice = 0;
  for (const auto& [psn, times] : asked) {
    CHECK(times <= 2);
    twice += times == 2;
  }
  // Of a READ that lost a packet inside, the rest is asked under a PSN of its own.
  CHECK((twice > 0 || asked.size() > 12));
  p.check_wire();
}

TEST_CASE("READ that the peer may not do: nothing is read, the QPs fail") {
  const int what = GENERATE(0, 1, 2);
  PairSpec spec;
  if (what == 2) spec.qp.access = 1 | 2;
  Pair p(make_rtl, spec);
  p.qa->post({.op = hw::WqeOp::kRead, .sges = {{p.ra.iova, 64, p.ra.key}},
              .remote_addr = p.rb.iova + (what == 0 ? p.rb.bytes - 63 : 0), .rkey = p.rb.key ^ (what == 1 ? 0x10000 : 0)});
  p.qa->ring_sq();
  p.world.settle();
  std::optional<Event> nak;
  while (const auto e = p.a().event()) {
    if (e->type == hw::EventType::kQpNak) nak = e;
  }
  REQUIRE(nak);
  CHECK(nak->code == static_cast<unsigned>(what == 2 ? hw::AethSyndrome::kNakInvReq : hw::AethSyndrome::kNakAccess));
  CHECK(hw::get(p.qb->query(), hw::progress::state) == static_cast<unsigned>(hw::QpState::kErr));
}

TEST_CASE("random loss among all operations") {
  Pair p(make_rtl, {.mtu_log = 8, .silence = 60'000});
  Recovery r{p};
  std::uint64_t x = 0x1234567812345678;
  const auto dice = [&] {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x >> 20 & 1023;
  };
  p.world.filter = [&](int from, const Decoded&, Frame& f) {
    const auto d = dice();
    if (d < 25) return false;
    if (d < 50) p.world.hosts[static_cast<std::size_t>(1 - from)]->engine->packet_in(f.clone());
    return true;
  };
  put_word(p.b(), p.rb, 60004, 0);
  std::uint64_t adds = 0;
  for (unsigned i = 0; i < 60; ++i) {
    const auto n = static_cast<std::uint32_t>(dice() * 3 + 1);
    const auto data = pattern(n, i + 1);
    switch (i % 3) {
      case 0:
        put(p.a(), p.ra, 0, data);
        p.qa->post({.op = hw::WqeOp::kWrite, .sges = {{p.ra.iova, n, p.ra.key}}, .remote_addr = p.rb.iova, .rkey = p.rb.key});
        break;
      case 1:
        put(p.b(), p.rb, 10000, data);
        p.qa->post({.op = hw::WqeOp::kRead, .sges = {{p.ra.iova + 10000, n, p.ra.key}}, .remote_addr = p.rb.iova + 10000, .rkey = p.rb.key});
        break;
      default:
        p.qa->post({.op = hw::WqeOp::kFetchAdd, .sges = {{p.ra.iova + 30000, 8, p.ra.key}}, .remote_addr = p.rb.iova + 60004,
                    .rkey = p.rb.key, .swap_add = i});
        break;
    }
    p.qa->ring_sq();
    const auto s = r.wait(*p.ca);
    REQUIRE(s);
    REQUIRE(s->status == hw::WcStatus::kSuccess);
    REQUIRE(s->wqe_index == i);
    p.ca->update_record();
    if (i % 3 == 0) REQUIRE(get(p.b(), p.rb, 0, n) == data);
    if (i % 3 == 1) REQUIRE(get(p.a(), p.ra, 10000, n) == data);
    if (i % 3 == 2) {
      REQUIRE(word(p.a(), p.ra, 30000) == adds);
      adds += i;
      REQUIRE(word(p.b(), p.rb, 60004) == adds);
    }
  }
  CHECK(r.total() > 3);
  p.check_wire();
}

}  // namespace ordma::bench
