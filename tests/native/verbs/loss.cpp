// SPDX-License-Identifier: BSD-2-Clause
// RC on a fabric that loses, doubles, reorders or corrupts: the script that runs these ("[loss]") chooses which. They hold on a
// good fabric too. ORDMA_TEST_EXPECT names counters that the faults must have moved.
#include <arpa/inet.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

#include "checks.hpp"

using namespace ordma::test;

namespace {

constexpr std::uint32_t kDepth = 32;
constexpr std::size_t kSlot = 4096;

Link lossy_link() {
  Link link;
  link.timeout = 12;  // 16.8 ms
  link.min_rnr = 1;
  link.psn_a = 0xfffff0;  // wraps after sixteen packets
  link.psn_b = 0xfffff8;
  return link;
}

// Message n: between 8 bytes and three packets, and every byte depends on n.
std::size_t length_of(std::uint64_t n) { return 8 + n * 37 % 2600; }

void write_message(Buffer& b, std::size_t at, std::uint64_t n) {
  std::uint8_t* const p = b.data() + at;
  std::memcpy(p, &n, sizeof(n));
  std::memset(p + 8, static_cast<int>(n * 7 & 0xff), length_of(n) - 8);
}

bool is_message(const Buffer& b, std::size_t at, std::uint64_t n) {
  std::uint64_t number = 0;
  std::memcpy(&number, b.data() + at, sizeof(number));
  return number == n && b.all(static_cast<std::uint8_t>(n * 7), at + 8, length_of(n) - 8);
}

std::uint64_t moved(const std::string& name) {
  return counter(0, name).value_or(0) + counter(1, name).value_or(0);
}

// One stream of numbered messages from A to B, by SEND or by WRITE with immediate.
struct Stream {
  Stream(Pair& pair, bool use_write)
      : p(pair),
        write(use_write),
        from(p.a.pd.get(), kDepth * kSlot),
        to(p.b.pd.get(), kDepth * kSlot) {
    for (std::uint64_t i = 0; i < kDepth; ++i) post_recv(i);
  }

  void post_recv(std::uint64_t n) {
    const std::array sges{to.sge(n % kDepth * kSlot, kSlot)};
    REQUIRE(p.b.post_recv(n, std::span<const ibv_sge>(sges.data(), write ? 0 : 1)) == 0);
  }

  void post(std::uint64_t n) {
    const std::size_t at = n % kDepth * kSlot;
    write_message(from, at, n);
    ibv_send_wr wr = write ? write_wr(n, to, at) : send_wr(n);
    if (write) wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.imm_data = htonl(static_cast<std::uint32_t>(n));
    REQUIRE(p.a.post_send(wr, std::array{from.sge(at, length_of(n))}) == 0);
  }

  void check(const ibv_wc& wc) {
    const std::uint64_t n = received++;
    REQUIRE(wc.status == IBV_WC_SUCCESS);
    REQUIRE(wc.wr_id == n);
    REQUIRE(wc.byte_len == length_of(n));
    if (write) REQUIRE(ntohl(wc.imm_data) == static_cast<std::uint32_t>(n));
    REQUIRE(is_message(to, n % kDepth * kSlot, n));
  }

  // Sends `total`, and sees each of them once, in order, at both ends.
  void run(std::uint64_t total) {
    std::uint64_t posted = 0, completed = 0;
    auto last = std::chrono::steady_clock::now();
    while (completed < total || received < total) {
      // A slot is written again when its message was received and completed.
      while (posted < total && posted < completed + kDepth && posted < received + kDepth) post(posted++);
      ibv_wc wc{};
      const bool sent = ibv_poll_cq(p.a.scq.get(), 1, &wc) == 1;
      if (sent) {
        REQUIRE(wc.status == IBV_WC_SUCCESS);
        REQUIRE(wc.wr_id == completed++);
      }
      const bool got = ibv_poll_cq(p.b.rcq.get(), 1, &wc) == 1;
      if (got) {
        check(wc);
        post_recv(wc.wr_id + kDepth);
      }
      if (sent || got) {
        last = std::chrono::steady_clock::now();
      } else {
        REQUIRE(std::chrono::steady_clock::now() - last < kWatchdog);
        std::this_thread::yield();
      }
    }
    ibv_wc wc{};
    CHECK(ibv_poll_cq(p.b.rcq.get(), 1, &wc) == 0);
  }

  Pair& p;
  bool write;
  Buffer from, to;
  std::uint64_t received = 0;
};

}  // namespace

TEST_CASE("case_056 case_065 numbered messages arrive once and in order", "[.][loss]") {
  const bool loopback = both_ways();
  const bool write = GENERATE(false, true);
  Pair p(loopback, {}, lossy_link());
  CAPTURE(loopback, write);
  Stream stream(p, write);
  stream.run(scale(500, 5000, 100000));
}

TEST_CASE("case_057 atomics are executed once, however often they are sent", "[.][loss]") {
  const bool loopback = both_ways();
  Pair p(loopback, {}, lossy_link());
  Buffer result(p.a.pd.get(), kDepth * 8), target(p.b.pd.get(), 16);
  const std::uint64_t total = scale(300, 3000, 50000);
  std::uint64_t posted = 0;
  for (std::uint64_t done = 0; done < total; ++done) {
    for (; posted < total && posted < done + 16; ++posted) {
      const std::array sges{result.sge(posted % kDepth * 8, 8)};
      REQUIRE(p.a.post_send(fetch_add_wr(posted, target, 3), sges) == 0);
    }
    const auto wc = p.a.wait_send();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    REQUIRE(wc->wr_id == done);
    std::uint64_t old = 0;
    std::memcpy(&old, result.data() + done % kDepth * 8, 8);
    REQUIRE(old == 3 * done);
  }
  std::uint64_t sum = 0;
  std::memcpy(&sum, target.data(), 8);
  CHECK(sum == 3 * total);
}

TEST_CASE("case_057 compare-swap chains", "[.][loss]") {
  const bool loopback = both_ways();
  Pair p(loopback, {}, lossy_link());
  Buffer result(p.a.pd.get(), 8), target(p.b.pd.get(), 8);
  const std::uint64_t total = scale(100, 500, 2000);
  for (std::uint64_t i = 0; i < total; ++i) {
    REQUIRE(p.a.post_send(cmp_swap_wr(i, target, i, i + 1), std::array{result.sge(0, 8)}) == 0);
    REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
    std::uint64_t old = 0;
    std::memcpy(&old, result.data(), 8);
    REQUIRE(old == i);  // a second execution would have found i + 1
  }
}

TEST_CASE("case_055 long READs", "[.][loss]") {
  const bool loopback = both_ways();
  constexpr std::size_t kBytes = 1 << 20;
  Pair p(loopback, {}, lossy_link());
  Buffer local(p.a.pd.get(), kBytes), remote(p.b.pd.get(), kBytes);
  const std::size_t rounds = scale(2, 5, 50);
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto seed = static_cast<std::uint8_t>(round + 1);
    remote.fill(seed);
    local.clear();
    REQUIRE(p.a.post_send(read_wr(round, remote), std::array{local.sge(0, kBytes)}) == 0);
    REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
    REQUIRE(local.holds(seed, 0, kBytes));
  }
}

TEST_CASE("case_054 READs between WRITEs", "[.][loss]") {
  const bool loopback = both_ways();
  constexpr std::size_t kRead = 12288;
  Pair p(loopback, {}, lossy_link());
  Buffer local(p.a.pd.get(), 4 * kRead), remote(p.b.pd.get(), kRead), source(p.b.pd.get(), kRead);
  source.fill(1);
  const std::size_t rounds = scale(40, 200, 2000);
  for (std::size_t round = 0; round < rounds; ++round) {
    local.fill(static_cast<std::uint8_t>(round));
    const std::array out{local.sge(0, 3000)};
    REQUIRE(p.a.post_send(write_wr(1, remote, 0, 0), out) == 0);
    REQUIRE(p.a.post_send(read_wr(2, source, 0, 0), std::array{local.sge(kRead, kRead)}) == 0);
    REQUIRE(p.a.post_send(write_wr(3, remote, 4096, 0), out) == 0);
    REQUIRE(p.a.post_send(read_wr(4, source, 0, 0), std::array{local.sge(2 * kRead, kRead)}) == 0);
    REQUIRE(p.a.post_send(write_wr(5, remote, 8192), out) == 0);
    const auto wc = p.a.wait_send();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    REQUIRE(wc->wr_id == 5);
    for (const std::size_t at : {kRead, 2 * kRead}) {
      REQUIRE(std::memcmp(local.data() + at, source.data(), kRead) == 0);
    }
    for (const std::size_t at : {0, 4096, 8192}) {
      REQUIRE(std::memcmp(remote.data() + at, local.data(), 3000) == 0);
    }
  }
}

namespace {

// Waits for memory to hold a value that the NIC writes there.
bool see(const std::uint8_t* at, std::uint64_t value) {
  const auto end = std::chrono::steady_clock::now() + kWatchdog;
  const auto* const word = reinterpret_cast<const std::uint64_t*>(at);
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

TEST_CASE("case_063 case_064 a flag is not seen before the data", "[.][loss]") {
  const bool loopback = both_ways();
  constexpr std::size_t kBytes = 1 << 18;
  Pair p(loopback, {}, lossy_link());
  REQUIRE(ibv_query_qp_data_in_order(p.a.qp.get(), IBV_WR_RDMA_WRITE, 0) == 1);
  Buffer from(p.a.pd.get(), kBytes), to(p.b.pd.get(), kBytes), flag(p.b.pd.get(), 8);
  Buffer number(p.a.pd.get(), 8);
  const std::size_t rounds = scale(5, 40, 10000);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const auto seed = static_cast<std::uint8_t>(round);
    from.fill(seed);
    std::memcpy(number.data(), &round, 8);
    const std::array data{from.sge(0, kBytes)};
    if (round % 2 == 0) {  // the last eight bytes of the same WRITE are the flag
      std::memcpy(from.data() + kBytes - 8, &round, 8);
      REQUIRE(p.a.post_send(write_wr(1, to), data) == 0);
      REQUIRE(see(to.data() + kBytes - 8, round));
    } else {
      REQUIRE(p.a.post_send(write_wr(1, to, 0, 0), data) == 0);
      REQUIRE(p.a.post_send(write_wr(2, flag), std::array{number.sge(0, 8)}) == 0);
      REQUIRE(see(flag.data(), round));
    }
    REQUIRE(to.holds(seed, 0, kBytes - 8));
    REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  }
}

TEST_CASE("case_030 RNR and loss together", "[.][loss]") {
  const bool loopback = both_ways();
  Pair p(loopback, {}, lossy_link());
  Buffer from(p.a.pd.get(), 2000), to(p.b.pd.get(), 2000);
  from.fill(3);
  const std::uint64_t total = scale(60, 300, 5000);
  std::uint64_t posted = 0;
  for (std::uint64_t i = 0; i < total; ++i) {
    for (; posted < total && posted < i + 8; ++posted) {
      REQUIRE(p.a.post_send(send_wr(posted), std::array{from.sge(0, 2000)}) == 0);
    }
    to.clear();
    REQUIRE(p.b.post_recv(i, std::array{to.sge(0, 2000)}) == 0);
    const auto r = p.b.wait_recv();
    REQUIRE(status(r) == IBV_WC_SUCCESS);
    REQUIRE(r->wr_id == i);
    REQUIRE(to.holds(3, 0, 2000));
    const auto s = p.a.wait_send();
    REQUIRE(status(s) == IBV_WC_SUCCESS);
    REQUIRE(s->wr_id == i);
  }
}

TEST_CASE("case_068 the faults that were asked for did happen", "[.][loss]") {
  const char* const names = std::getenv("ORDMA_TEST_EXPECT");
  std::istringstream list(names != nullptr ? names : "");
  for (std::string name; std::getline(list, name, ',');) {
    CAPTURE(name);
    CHECK(moved(name) > 0);
  }
}
