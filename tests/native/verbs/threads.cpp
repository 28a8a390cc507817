// SPDX-License-Identifier: BSD-2-Clause
// Many threads. Catch2's macros are for one, so threads only count.
#include <atomic>
#include <cerrno>
#include <functional>
#include <random>
#include <thread>

#include "checks.hpp"

using namespace ordma::test;

namespace {

void run_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (auto& t : threads) t.join();
}

// Takes completions of one CQ until so many came or none does any more.
std::size_t drain(ibv_cq* cq, std::size_t wanted, std::atomic<bool>& failed) {
  std::array<ibv_wc, 16> wcs;
  std::size_t got = 0;
  auto last = std::chrono::steady_clock::now();
  while (got < wanted) {
    const int n = ibv_poll_cq(cq, static_cast<int>(wcs.size()), wcs.data());
    for (int i = 0; i < n; ++i) {
      if (wcs[static_cast<std::size_t>(i)].status != IBV_WC_SUCCESS) failed = true;
    }
    if (n > 0) {
      got += static_cast<std::size_t>(n);
      last = std::chrono::steady_clock::now();
    } else if (n < 0 || std::chrono::steady_clock::now() - last > kWatchdog) {
      failed = true;
      return got;
    } else {
      std::this_thread::yield();
    }
  }
  return got;
}

}  // namespace

TEST_CASE("case_101 two threads post to one QP without a stall", "[threads]") {
  const bool loopback = both_ways();
  EndOptions options;
  options.sig_all = true;
  options.cqe = 1024;
  Pair p(loopback, options);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  const std::size_t each = scale(3000, 50000, 5000000);
  std::atomic<bool> failed{false};
  std::thread poller([&] { drain(p.a.scq.get(), 2 * each, failed); });
  run_threads(2, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    const std::array sges{from.sge(0, 8)};
    for (std::size_t i = 0; i < each && !failed;) {
      const int err = p.a.post_send(write_wr(i, to, static_cast<std::size_t>(thread) * 8, 0), sges);
      if (err == 0) {
        ++i;
      } else if (err == ENOMEM) {
        std::this_thread::yield();
      } else {
        failed = true;
      }
      if (random() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 30));
    }
  });
  poller.join();
  CHECK_FALSE(failed);
}

TEST_CASE("case_101 one QP per thread, one CQ for all", "[threads]") {
  const bool loopback = both_ways();
  constexpr int kThreads = 3;
  EndOptions options;
  options.cqe = 1024;
  Pair p(loopback, options);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  std::vector<Qp> near, far;
  for (int i = 0; i < kThreads; ++i) {
    near.push_back(p.a.make_qp());
    far.push_back(p.b.make_qp());
    connect(near.back().get(), far.back().get(), p.link);
  }
  const std::size_t each = scale(2000, 30000, 3000000);
  std::atomic<bool> failed{false};
  std::thread poller([&] { drain(p.a.scq.get(), kThreads * (each / 4), failed); });
  run_threads(kThreads, [&](int thread) {
    const std::array sges{from.sge(0, 64)};
    for (std::size_t i = 0; i < each && !failed;) {
      const unsigned flags = i % 4 == 3 ? IBV_SEND_SIGNALED : 0;
      const int err = post_send(near[static_cast<std::size_t>(thread)].get(), write_wr(i, to, 0, flags), sges);
      err == 0 ? void(++i) : std::this_thread::yield();
      if (err != 0 && err != ENOMEM) failed = true;
    }
  });
  poller.join();
  CHECK_FALSE(failed);
}

TEST_CASE("case_014 a QP is destroyed while another thread polls its CQ", "[threads]") {
  const bool loopback = both_ways();
  EndOptions options;
  options.cqe = 512;
  Pair p(loopback, options);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  std::atomic<bool> stop{false}, failed{false};
  std::atomic<std::uint32_t> gone{0};  // a QPN of which nothing may be polled any more
  std::thread poller([&] {
    while (!stop) {
      const std::uint32_t dead = gone;
      ibv_wc wc{};
      if (ibv_poll_cq(p.a.scq.get(), 1, &wc) == 1 && wc.qp_num == dead) failed = true;
    }
  });
  const std::size_t rounds = scale(20, 200, 2000);
  for (std::size_t round = 0; round < rounds; ++round) {
    Qp near = p.a.make_qp(), far = p.b.make_qp();
    connect(near.get(), far.get(), p.link);
    for (std::uint64_t i = 0; i < 20; ++i) {
      REQUIRE(post_send(near.get(), write_wr(i, to), std::array{from.sge(0, 64)}) == 0);
    }
    const std::uint32_t qpn = near->qp_num;
    near.reset();
    gone = qpn;
    std::this_thread::yield();
    gone = 0;  // the number may come back with the next QP
  }
  stop = true;
  poller.join();
  CHECK_FALSE(failed);
}

TEST_CASE("case_102 objects made and destroyed by many threads", "[threads]") {
  const std::size_t rounds = scale(10, 100, 3000);
  Pair p(true);
  std::atomic<int> failures{0};
  run_threads(4, [&](int thread) {
    std::vector<std::uint8_t> memory(8192);
    for (std::size_t i = 0; i < rounds; ++i) {
      const Pd pd(ibv_alloc_pd(p.a.ctx.get()));
      const Mr mr(pd ? ibv_reg_mr(pd.get(), memory.data(), 8192, kFullAccess) : nullptr);
      const Cq cq(ibv_create_cq(p.a.ctx.get(), 16 + thread, nullptr, nullptr, 0));
      ibv_srq_init_attr srq_attr{};
      srq_attr.attr = {16, 1, 0};
      const Srq srq(pd ? ibv_create_srq(pd.get(), &srq_attr) : nullptr);
      ibv_qp_init_attr attr{};
      attr.qp_type = thread % 2 == 0 ? IBV_QPT_RC : IBV_QPT_UD;
      attr.send_cq = attr.recv_cq = cq.get();
      attr.srq = i % 2 == 0 ? srq.get() : nullptr;
      attr.cap = {8, 8, 1, 1, 16};
      const Qp qp(pd && cq ? ibv_create_qp(pd.get(), &attr) : nullptr);
      if (!pd || !mr || !cq || !srq || !qp || set_init(qp.get(), p.link) != 0) ++failures;
    }
  });
  CHECK(failures == 0);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  REQUIRE(p.a.post_send(write_wr(1, to), std::array{from.sge(0, 64)}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
}

TEST_CASE("case_102 traffic goes on while objects come and go", "[threads]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::thread churn([&] {
    std::vector<std::uint8_t> memory(4096);
    while (!stop) {
      const Mr mr(ibv_reg_mr(p.a.pd.get(), memory.data(), 4096, kFullAccess));
      const Qp qp = p.a.make_qp();
      if (!mr || !qp) ++failures;
    }
  });
  const std::size_t count = scale(1000, 10000, 200000);
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(p.a.post_send(write_wr(i, to), std::array{from.sge(0, 64)}) == 0);
    const auto wc = p.a.wait_send();
    REQUIRE(status(wc) == IBV_WC_SUCCESS);
    REQUIRE(wc->wr_id == i);
  }
  stop = true;
  churn.join();
  CHECK(failures == 0);
}
