// SPDX-License-Identifier: BSD-2-Clause
// What operations cost in clock cycles: the source of the numbers in hw/rtl/README.md. The bounds are
// loose; they catch a block that stalls, not a cycle more or less.
#include <catch2/catch.hpp>

#include <cstdio>
#include <ctime>

#include "pair.hpp"

namespace ordma::bench {
namespace {

std::uint64_t cycles(Host& h) {
  for (const auto& c : h.engine->internals()) {
    if (c.name == "cycles") return c.value;
  }
  return 0;
}

// Cycles of A per message when `n` are posted with one doorbell.
double per_message(Pair& p, hw::WqeOp op, std::uint32_t size, unsigned n) {
  p.world.settle();
  const auto before = cycles(p.a());
  for (unsigned i = 0; i < n; ++i) {
    p.qa->post({.op = op, .signaled = i + 1 == n, .sges = {{p.ra.iova, size, p.ra.key}},
                .remote_addr = p.rb.iova, .rkey = p.rb.key});
  }
  p.qa->ring_sq();
  const auto c = p.ca->wait(200000);
  REQUIRE(c);
  REQUIRE(c->status == hw::WcStatus::kSuccess);
  p.ca->update_record();
  return static_cast<double>(cycles(p.a()) - before) / n;
}

}  // namespace

TEST_CASE("cycles per operation") {
  Pair p(make_rtl);
  per_message(p, hw::WqeOp::kWrite, 64, 1);  // fills the caches of page lists
  const std::clock_t t0 = std::clock();
  const auto c0 = cycles(p.a()) + cycles(p.b());
  struct Row {
    const char* what;
    hw::WqeOp op;
    std::uint32_t size;
    unsigned n;
    double most;
  };
  for (const Row& r : {Row{"WRITE 8 B, alone, doorbell to CQE", hw::WqeOp::kWrite, 8, 1, 2000},
                       Row{"WRITE 8 B, 32 in a row", hw::WqeOp::kWrite, 8, 32, 600},
                       Row{"WRITE 4096 B, 32 in a row", hw::WqeOp::kWrite, 4096, 32, 800},
                       Row{"WRITE 65536 B", hw::WqeOp::kWrite, 65536, 1, 8000},
                       Row{"READ 8 B, alone", hw::WqeOp::kRead, 8, 1, 2000},
                       Row{"READ 65536 B", hw::WqeOp::kRead, 65536, 1, 8000}}) {
    const double c = per_message(p, r.op, r.size, r.n);
    std::printf("%-36s %7.0f cycles\n", r.what, c);
    CHECK(c < r.most);
  }
  const double s = static_cast<double>(std::clock() - t0) / CLOCKS_PER_SEC;
  std::printf("%-36s %7.0f kHz of two NICs together\n", "simulation speed",
              static_cast<double>(cycles(p.a()) + cycles(p.b()) - c0) / s / 1000);
}

}  // namespace ordma::bench
