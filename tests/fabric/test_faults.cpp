// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <set>

#include "support.hpp"

using namespace ordma::fabric;
using namespace ordma::fabric::test;

namespace {

constexpr std::uint32_t kFrames = 100000;

// Sends `frames` numbered frames from p1 to p2, one per `gap_ns`, and delivers as time passes.
void send_stream(Net& net, std::uint32_t frames, std::uint64_t gap_ns = 10) {
  for (std::uint32_t i = 0; i < frames; ++i) {
    const std::uint64_t now = i * gap_ns;
    net.fabric.send(net.port[1], raw_frame(1, 2, 64, i), now);
    net.fabric.advance(now);
  }
  net.run_all();
}

// Whether `count` of `trials` fits probability p within five standard deviations.
bool fits(std::uint64_t count, std::uint64_t trials, double p) {
  const auto n = static_cast<double>(trials);
  return std::abs(static_cast<double>(count) - n * p) <= 5 * std::sqrt(n * p * (1 - p)) + 1;
}

std::vector<std::uint32_t> missing(const Net& net, std::uint32_t frames) {
  std::vector<bool> seen(frames);
  for (const std::uint32_t number : net.numbers()) {
    seen[number] = true;
  }
  std::vector<std::uint32_t> gone;
  for (std::uint32_t i = 0; i < frames; ++i) {
    if (!seen[i]) {
      gone.push_back(i);
    }
  }
  return gone;
}

bool in_order(const std::vector<std::uint32_t>& numbers) {
  return std::is_sorted(numbers.begin(), numbers.end());
}

}  // namespace

TEST_CASE("uniform loss has the configured rate and no memory", "[faults]") {
  const double loss = GENERATE(0.0001, 0.01, 0.3);
  const std::uint64_t seed = GENERATE(1u, 2u, 3u);
  Net net("loss=" + std::to_string(loss), 2, seed);
  send_stream(net, kFrames);
  const Counters counters = net.fabric.port_counters(net.port[1]);
  CHECK(fits(counters.lost, kFrames, loss));
  CHECK(counters.lost + net.deliveries.size() == kFrames);
  CHECK(in_order(net.numbers()));
  // After a loss the next frame is lost with the same probability.
  const auto gone = missing(net, kFrames);
  std::uint64_t pairs = 0;
  for (std::size_t i = 1; i < gone.size(); ++i) {
    pairs += gone[i] == gone[i - 1] + 1 ? 1 : 0;
  }
  CHECK(fits(pairs, gone.size(), loss));
}

TEST_CASE("burst loss has Gilbert-Elliott rate and burst length", "[faults]") {
  const double enter = 0.01;
  const double leave = 0.25;
  Net net("burst_loss=0.01:0.25");
  send_stream(net, kFrames);
  const auto gone = missing(net, kFrames);
  CHECK(net.fabric.totals().burst_lost == gone.size());
  const double rate = static_cast<double>(gone.size()) / kFrames;
  CHECK(rate == Approx(enter / (enter + leave)).epsilon(0.1));
  std::uint64_t bursts = 0;
  for (std::size_t i = 0; i < gone.size(); ++i) {
    bursts += i == 0 || gone[i] != gone[i - 1] + 1 ? 1 : 0;
  }
  const double length = static_cast<double>(gone.size()) / static_cast<double>(bursts);
  CHECK(length == Approx(1 / leave).epsilon(0.1));
}

TEST_CASE("certain and impossible faults are exactly that", "[faults]") {
  Net all("loss=1");
  send_stream(all, 1000);
  CHECK(all.deliveries.empty());
  CHECK(all.fabric.totals().lost == 1000);
  Net none("delay_ns=5");
  send_stream(none, 1000);
  CHECK(none.deliveries.size() == 1000);
}

TEST_CASE("per-path loss hits its path only", "[faults]") {
  Net net("k=4,select=modulo,path2.loss=0.5");
  for (std::uint32_t i = 0; i < 40000; ++i) {
    RoceOptions options;
    options.source_port = static_cast<std::uint16_t>(i);
    net.fabric.send(net.port[1], roce_frame(options), i);
  }
  net.run_all();
  for (std::uint32_t path = 0; path < 4; ++path) {
    const Counters counters = net.fabric.path_counters(net.port[1], net.port[2], path);
    CHECK(counters.tx_frames == 10000);
    CHECK(counters.rx_frames + counters.lost == 10000);
    CHECK((path == 2 ? fits(counters.lost, 10000, 0.5) : counters.lost == 0));
    CHECK(net.fabric.path_totals(path) == counters);
  }
  CHECK(net.fabric.paths_max() == 4);
}

TEST_CASE("pair settings hit their direction only", "[faults]") {
  Net net("p1:p2/loss=1,p2:*/delay_ns=70");
  net.fabric.send(net.port[1], raw_frame(1, 2, 64), 0);
  net.fabric.send(net.port[2], raw_frame(2, 1, 64), 0);
  net.run_all();
  REQUIRE(net.deliveries.size() == 1);
  CHECK(net.deliveries[0].port == net.port[1]);
  CHECK(net.deliveries[0].at_ns == 70);
}

TEST_CASE("duplication copies frames and nothing else", "[faults]") {
  Net net("dup=0.05");
  send_stream(net, kFrames);
  const Counters counters = net.fabric.totals();
  CHECK(fits(counters.dup, kFrames, 0.05));
  CHECK(net.deliveries.size() == kFrames + counters.dup);
  CHECK(in_order(net.numbers()));
  CHECK(missing(net, kFrames).empty());
}

TEST_CASE("reordering holds frames back inside its window and loses none", "[faults]") {
  Net net("reorder=0.1:1us,delay_ns=100");
  send_stream(net, kFrames, 10);
  const Counters counters = net.fabric.totals();
  CHECK(fits(counters.reordered, kFrames, 0.1));
  CHECK(net.deliveries.size() == kFrames);
  CHECK(missing(net, kFrames).empty());
  CHECK_FALSE(in_order(net.numbers()));
  std::uint64_t held = 0;
  std::uint64_t longest = 0;
  for (const Delivery& delivery : net.deliveries) {
    const std::uint64_t extra = delivery.at_ns - number_of(delivery.bytes) * 10 - 100;
    held += extra != 0 ? 1 : 0;
    longest = std::max(longest, extra);
  }
  CHECK(held == counters.reordered);
  CHECK(longest <= 1000);
  CHECK(longest > 900);
  const bool by_time = std::is_sorted(
      net.deliveries.begin(), net.deliveries.end(),
      [](const Delivery& a, const Delivery& b) { return a.at_ns < b.at_ns; });
  CHECK(by_time);
}

TEST_CASE("jitter spreads arrival but keeps the order of a path", "[faults]") {
  Net net("jitter_ns=500,delay_ns=100");
  send_stream(net, kFrames, 10);
  CHECK(in_order(net.numbers()));
  CHECK(net.fabric.totals().reordered == 0);
  std::set<std::uint64_t> extras;
  for (const Delivery& delivery : net.deliveries) {
    const std::uint64_t extra = delivery.at_ns - number_of(delivery.bytes) * 10 - 100;
    CHECK(extra <= 500);
    extras.insert(extra);
  }
  CHECK(extras.size() > 100);
}

TEST_CASE("paths of different delay reorder between flows, never within one", "[faults]") {
  Net net("k=2,select=modulo,path1.delay_ns=1us");
  for (std::uint32_t i = 0; i < 100; ++i) {
    RoceOptions options;
    options.source_port = static_cast<std::uint16_t>(i % 2);
    options.psn = i;
    net.fabric.send(net.port[1], roce_frame(options), i * 10);
  }
  net.run_all();
  std::vector<std::uint32_t> all;
  std::vector<std::uint32_t> flows[2];
  for (const Delivery& delivery : net.deliveries) {
    const std::uint32_t psn = psn_of(delivery.bytes);
    all.push_back(psn);
    flows[psn % 2].push_back(psn);
  }
  CHECK(all.size() == 100);
  CHECK_FALSE(in_order(all));
  CHECK(in_order(flows[0]));
  CHECK(in_order(flows[1]));
}

TEST_CASE("corruption flips one bit, anywhere but in the Ethernet header", "[faults]") {
  Net net("corrupt=0.5");
  std::vector<std::uint64_t> hits(64 * 8);
  const Frame clean = raw_frame(1, 2, 64, 0);
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    net.fabric.send(net.port[1], clean.share(), i);
  }
  net.run_all();
  std::uint64_t corrupted = 0;
  for (const Delivery& delivery : net.deliveries) {
    std::uint64_t flips = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      const auto diff = static_cast<std::uint8_t>(delivery.bytes[i] ^ clean.bytes()[i]);
      flips += static_cast<std::uint64_t>(std::popcount(diff));
      if (diff != 0) {
        ++hits[i * 8 + static_cast<std::size_t>(std::countr_zero(diff))];
      }
    }
    REQUIRE(flips <= 1);
    corrupted += flips;
  }
  CHECK(corrupted == net.fabric.totals().corrupted);
  CHECK(fits(corrupted, kFrames, 0.5));
  CHECK(std::accumulate(hits.begin(), hits.begin() + 14 * 8, std::uint64_t{0}) == 0);
  CHECK(*std::min_element(hits.begin() + 14 * 8, hits.end()) > 70);  // mean 125
  CHECK(clean.bytes()[30] == 0);  // the sender's own copy was never touched
}

TEST_CASE("corruption never reaches other receivers of a flooded frame", "[faults]") {
  Net net("p1:p2/corrupt=1", 3);
  net.fabric.send(net.port[1], raw_frame(1, 0xff, 64), 0);
  net.run_all();
  REQUIRE(net.deliveries.size() == 2);
  const Frame clean = raw_frame(1, 0xff, 64);
  for (const Delivery& delivery : net.deliveries) {
    const bool same = std::equal(delivery.bytes.begin(), delivery.bytes.end(),
                                 clean.bytes().begin());
    CHECK(same == (delivery.port == net.port[3]));
  }
}

TEST_CASE("the down script cuts what is in flight and what is sent, and ends", "[faults]") {
  Net net("delay_ns=100,down=0@1000..2000+0@5000..6000");
  for (std::uint32_t t = 0; t < 70; ++t) {
    net.fabric.send(net.port[1], raw_frame(1, 2, 64, t), t * 100);
  }
  net.run_all();
  std::vector<std::uint32_t> expect;
  for (std::uint32_t t = 0; t < 70; ++t) {
    const bool first = t >= 9 && t < 20;  // sent at 900 would arrive at 1000: cut in flight
    const bool second = t >= 49 && t < 60;
    if (first || second) {
      expect.push_back(t);
    }
  }
  CHECK(missing(net, 70) == expect);
  CHECK(net.fabric.totals().down_lost == expect.size());
}

TEST_CASE("down for ever and the operator's switch", "[faults]") {
  Net net("k=2,select=modulo,down=1@50..");
  const auto send = [&](std::uint16_t source_port, std::uint64_t now) {
    RoceOptions options;
    options.source_port = source_port;
    net.fabric.send(net.port[1], roce_frame(options), now);
    net.run_all();
    const bool arrived = !net.deliveries.empty();
    net.deliveries.clear();
    return arrived;
  };
  CHECK(send(1, 49));
  CHECK_FALSE(send(1, 50));
  CHECK_FALSE(send(1, 1'000'000'000));
  CHECK(send(0, 1'000'000'000));
  net.fabric.set_path_up(0, false);
  CHECK_FALSE(send(0, 1'000'000'001));
  net.fabric.set_path_up(0, true);
  CHECK(send(0, 1'000'000'002));
}

TEST_CASE("the filter aims at single frames", "[faults]") {
  Net net("k=3,select=modulo");
  net.fabric.set_filter([&](const FilterContext& context) {
    FilterVerdict verdict;
    CHECK(context.from == net.port[1]);
    CHECK(context.to == net.port[2]);
    switch (number_of(context.bytes)) {
      case 1: verdict.drop = true; break;
      case 2: verdict.dup = true; break;
      case 3: verdict.extra_delay_ns = 1000; break;
      case 4: verdict.corrupt_bit = 20 * 8 + 3; break;
      case 5: verdict.path = 2; break;
      default: break;
    }
    return verdict;
  });
  for (std::uint32_t i = 0; i < 8; ++i) {
    net.fabric.send(net.port[1], raw_frame(1, 2, 64, i), i);
  }
  net.run_all();
  CHECK(net.numbers() == std::vector<std::uint32_t>{0, 2, 2, 4, 5, 6, 7, 3});
  const Counters counters = net.fabric.totals();
  CHECK(counters.filter_lost == 1);
  CHECK(counters.dup == 1);
  CHECK(counters.reordered == 1);
  CHECK(counters.corrupted == 1);
  CHECK(net.deliveries[3].bytes[20] == 8);
  CHECK(net.fabric.path_counters(net.port[1], net.port[2], 2).tx_frames == 1);
}

TEST_CASE("faults can be ended and started at run time", "[faults]") {
  Net net("k=4,loss=1");
  net.fabric.send(net.port[1], raw_frame(1, 2, 64), 0);
  net.fabric.configure(config("k=1"));
  net.fabric.send(net.port[1], raw_frame(1, 2, 64), 1);
  net.run_all();
  CHECK(net.deliveries.size() == 1);
  CHECK(net.fabric.totals().lost == 1);
  CHECK(net.fabric.path_totals(0).tx_frames + net.fabric.path_totals(1).tx_frames +
            net.fabric.path_totals(2).tx_frames + net.fabric.path_totals(3).tx_frames ==
        2);
  FabricConfig bad;
  bad.base.path.loss = 2;
  CHECK_THROWS_AS(net.fabric.configure(bad), std::invalid_argument);
  CHECK_THROWS_AS(Fabric(bad, 1), std::invalid_argument);
}
