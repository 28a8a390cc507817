// SPDX-License-Identifier: BSD-2-Clause
// Compare-swap and fetch-add.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "checks.hpp"

using namespace ordma::test;

namespace {

std::uint64_t load(const Buffer& b, std::size_t at = 0) {
  std::uint64_t v = 0;
  std::memcpy(&v, b.data() + at, sizeof(v));
  return v;
}

void store(Buffer& b, std::uint64_t v, std::size_t at = 0) { std::memcpy(b.data() + at, &v, sizeof(v)); }

int run(Pair& p, ibv_send_wr wr, Buffer& result) {
  REQUIRE(p.a.post_send(wr, std::array{result.sge(0, 8)}) == 0);
  return status(p.a.wait_send());
}

}  // namespace

TEST_CASE("case_049 alignment of the remote word", "[rc]") {
  const bool loopback = both_ways();
  const std::size_t offset = GENERATE(1, 2, 4, 7);
  const bool swap = GENERATE(false, true);
  Pair p(loopback);
  Buffer result(p.a.pd.get(), 8), target(p.b.pd.get(), 64);
  target.fill(1);
  const auto wr = swap ? cmp_swap_wr(1, target, 0, 1, offset) : fetch_add_wr(1, target, 1, offset);
  CAPTURE(loopback, offset, swap);
  CHECK(run(p, wr, result) == IBV_WC_REM_INV_REQ_ERR);
  CHECK(target.holds(1, 0, 64));
}

TEST_CASE("case_049 an atomic takes exactly one SGE of eight bytes", "[rc]") {
  Pair p(true);
  Buffer result(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
  const auto wr = fetch_add_wr(1, target, 1);
  CHECK(p.a.post_send(wr, std::array{result.sge(0, 4)}) == EINVAL);
  CHECK(p.a.post_send(wr, std::array{result.sge(0, 16)}) == EINVAL);
  CHECK(p.a.post_send(wr, std::array{result.sge(0, 8), result.sge(8, 8)}) == EINVAL);
  CHECK(p.a.post_send(wr) == EINVAL);
  auto in_line = wr;
  in_line.send_flags |= IBV_SEND_INLINE;
  CHECK(p.a.post_send(in_line, std::array{result.sge(0, 8)}) == EINVAL);
  CHECK(load(target) == 0);
}

TEST_CASE("case_050 values are in host order on both sides", "[rc]") {
  const bool loopback = both_ways();
  constexpr std::uint64_t kStart = 0x0123456789abcdef;
  Pair p(loopback);
  Buffer result(p.a.pd.get(), 8), target(p.b.pd.get(), 64);
  store(target, kStart, 8);
  CHECK(run(p, fetch_add_wr(1, target, 0x10, 8), result) == IBV_WC_SUCCESS);
  CHECK(load(result) == kStart);
  CHECK(load(target, 8) == kStart + 0x10);
  CHECK(run(p, cmp_swap_wr(2, target, 0xdead, 0xbeef, 8), result) == IBV_WC_SUCCESS);  // mismatch
  CHECK(load(result) == kStart + 0x10);
  CHECK(load(target, 8) == kStart + 0x10);
  CHECK(run(p, cmp_swap_wr(3, target, kStart + 0x10, 0xfedcba9876543210, 8), result) == IBV_WC_SUCCESS);
  CHECK(load(result) == kStart + 0x10);
  CHECK(load(target, 8) == 0xfedcba9876543210);
  CHECK(run(p, fetch_add_wr(4, target, ~std::uint64_t{0}, 8), result) == IBV_WC_SUCCESS);  // minus one
  CHECK(load(target, 8) == 0xfedcba987654320f);
  CHECK(target.all(0, 0, 8));
  CHECK(target.all(0, 16, 48));
}

TEST_CASE("case_050 opcodes and length of the completion", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer result(p.a.pd.get(), 8), target(p.b.pd.get(), 8);
  const std::array sges{result.sge(0, 8)};
  REQUIRE(p.a.post_send(fetch_add_wr(1, target, 1), sges) == 0);
  auto wc = p.a.wait_send();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->opcode == IBV_WC_FETCH_ADD);
  REQUIRE(p.a.post_send(cmp_swap_wr(2, target, 1, 2), sges) == 0);
  wc = p.a.wait_send();
  REQUIRE(status(wc) == IBV_WC_SUCCESS);
  CHECK(wc->opcode == IBV_WC_COMP_SWAP);
}

TEST_CASE("case_051 bounds and access", "[rc]") {
  const bool loopback = both_ways();
  const int kind = GENERATE(range(0, 4));
  Link link;
  const int no_atomic = kFullAccess & ~IBV_ACCESS_REMOTE_ATOMIC;
  link.access = kind == 3 ? no_atomic : kFullAccess;
  Pair p(loopback, {}, link);
  Buffer result(p.a.pd.get(), 8);
  // 12 bytes: the first word is inside, the second begins inside and ends outside.
  Buffer target(p.b.pd.get(), kind == 0 ? 16 : 12, kind == 2 ? no_atomic : kFullAccess);
  CAPTURE(loopback, kind);
  const int got = run(p, fetch_add_wr(1, target, 5, kind < 2 ? 8 : 0), result);
  switch (kind) {
    case 0: CHECK(got == IBV_WC_SUCCESS); break;          // the last word of the MR
    case 3: CHECK(got == IBV_WC_REM_INV_REQ_ERR); break;  // the QP does not take atomics
    default: CHECK(got == IBV_WC_REM_ACCESS_ERR); break;  // beyond the MR, MR without the right
  }
  CHECK(load(target) == 0);
  CHECK(target.canaries_intact());
}

TEST_CASE("case_053 atomics of many QPs on one word", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(p.a.ctx.get(), &device) == 0);
  CHECK(device.atomic_cap == IBV_ATOMIC_HCA);
  constexpr std::size_t kQps = 4;
  const std::size_t each = scale(200, 2000, 50000);
  Buffer target(p.b.pd.get(), 8);
  std::vector<std::unique_ptr<End>> ends;
  std::vector<Qp> far;
  for (std::size_t i = 0; i < kQps; ++i) {
    ends.push_back(std::make_unique<End>(device_names().at(0)));
    far.push_back(p.b.make_qp());
    connect(ends[i]->qp.get(), far[i].get(), p.link);
  }
  std::vector<std::vector<std::uint64_t>> seen(kQps);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kQps; ++i) {
    threads.emplace_back([&, i] {
      End& end = *ends[i];
      Buffer result(end.pd.get(), 8);
      for (std::size_t n = 0; n < each; ++n) {
        if (end.post_send(fetch_add_wr(n, target, 1), std::array{result.sge(0, 8)}) != 0) return;
        const auto wc = end.wait_send();
        if (!wc || wc->status != IBV_WC_SUCCESS) return;
        seen[i].push_back(load(result));
      }
    });
  }
  for (auto& t : threads) t.join();
  CHECK(load(target) == kQps * each);
  std::vector<std::uint64_t> all;
  for (const auto& s : seen) all.insert(all.end(), s.begin(), s.end());
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() == kQps * each);
  for (std::size_t i = 0; i < all.size(); ++i) {  // each value was given out once
    REQUIRE(all[i] == i);
  }
}

TEST_CASE("more READs and atomics than may be outstanding", "[rc]") {
  const bool loopback = both_ways();
  const std::uint8_t depth = GENERATE(as<std::uint8_t>{}, 1, 2, 16);
  Link link;
  link.rd_atomic = depth;
  Pair p(loopback, {}, link);
  Buffer result(p.a.pd.get(), 64 * 64), target(p.b.pd.get(), 4096);
  target.fill(2);
  store(target, 1000);
  CAPTURE(loopback, depth);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const bool atomic = i % 3 == 0;
    const auto wr = atomic ? fetch_add_wr(i, target, 1) : read_wr(i, target, 64);
    const std::array sges{result.sge(i * 64, atomic ? 8 : 64)};
    REQUIRE(p.a.post_send(wr, sges) == 0);
  }
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto wc = p.a.wait_send();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    CHECK(wc->wr_id == i);
    if (i % 3 == 0) {
      CHECK(load(result, i * 64) == 1000 + i / 3);
    } else {
      CHECK(std::memcmp(result.data() + i * 64, target.data() + 64, 64) == 0);
    }
  }
  CHECK(load(target) == 1020);
}

TEST_CASE("a fenced WRITE waits for the READ before it", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer local(p.a.pd.get(), 65536), remote(p.b.pd.get(), 65536);
  for (std::uint64_t round = 0; round < 50; ++round) {
    const auto seed = static_cast<std::uint8_t>(round + 1);
    remote.fill(seed);
    local.clear();
    // Reads all of the remote memory into the very buffer that is then written back, shifted.
    REQUIRE(p.a.post_send(read_wr(1, remote, 0, 0), std::array{local.sge(0, 65536)}) == 0);
    auto wr = write_wr(2, remote, 0, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
    REQUIRE(p.a.post_send(wr, std::array{local.sge(256, 65536 - 256)}) == 0);
    REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
    CHECK(local.holds(seed, 0, 65536));
    CHECK(std::memcmp(remote.data(), local.data() + 256, 65536 - 256) == 0);
  }
}
