// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "event_queue.hpp"
#include "rng.hpp"
#include "support.hpp"

using namespace ordma::fabric;
using namespace ordma::fabric::test;

namespace {

constexpr std::string_view kAllFaults =
    "k=4,rate_gbps=10,delay_ns=1us,jitter_ns=200,loss=0.02,burst_loss=0.005:0.3,dup=0.03,"
    "reorder=0.05:3us,corrupt=0.01,ecn=3000,trim=6000,queue=20000,path3.loss=0.2,"
    "down=2@100us..200us,port_rate_gbps=20,port_ecn=8000";

// `step_ns` is how far each advance() goes: results must not depend on it.
std::uint64_t run_trace(std::uint64_t seed, std::uint64_t step_ns) {
  Net net(kAllFaults, 3, seed);
  std::uint64_t advanced = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const std::uint64_t now = i * 50;
    for (; advanced + step_ns <= now; advanced += step_ns) {
      net.fabric.advance(advanced + step_ns);
    }
    RoceOptions options;
    options.from = static_cast<std::uint8_t>(1 + i % 3);
    options.to = static_cast<std::uint8_t>(1 + (i + 1 + i / 7 % 2) % 3);
    options.source_port = static_cast<std::uint16_t>(i * 13);
    options.traffic_class = 2;
    options.payload = 100 + i * 37 % 900;
    options.psn = i;
    net.fabric.send(net.port[options.from], roce_frame(options), now);
  }
  net.run_all();
  CHECK(net.deliveries.size() > 3000);
  CHECK(net.fabric.totals().lost > 0);
  CHECK(net.fabric.totals().burst_lost > 0);
  CHECK(net.fabric.totals().down_lost > 0);
  CHECK(net.fabric.totals().dup > 0);
  CHECK(net.fabric.totals().reordered > 0);
  CHECK(net.fabric.totals().corrupted > 0);
  return net.trace_hash();
}

// Numbers of the p1 -> p2 frames that arrived, out of 5000.
std::vector<std::uint32_t> survivors(std::string_view settings, bool other_traffic,
                                     bool other_port_first) {
  Fabric fabric(config(settings), 42);
  std::vector<std::uint32_t> numbers;
  if (other_port_first) {
    REQUIRE(fabric.add_port(mac_of(3), {}, {"p3", false}) != kNoPort);
  }
  const PortId one = fabric.add_port(mac_of(1), {}, {"p1", false});
  const PortId two = fabric.add_port(
      mac_of(2),
      [&](Frame frame, std::uint64_t) {
        const std::uint32_t number = number_of(frame.bytes());
        if (frame.bytes()[11] == 1 && (numbers.empty() || numbers.back() != number)) {
          numbers.push_back(number);
        }
      },
      {"p2", false});
  if (!other_port_first) {
    REQUIRE(fabric.add_port(mac_of(3), {}, {"p3", false}) != kNoPort);
  }
  for (std::uint32_t i = 0; i < 5000; ++i) {
    fabric.send(one, raw_frame(1, 2, 64, i), i);
    for (int extra = 0; other_traffic && extra < 3; ++extra) {
      fabric.send(one, raw_frame(1, 3, 64, i), i);
      fabric.send(two, raw_frame(2, 1, 64, i), i);
    }
    fabric.advance(i);
  }
  fabric.advance(1'000'000);
  return numbers;
}

}  // namespace

TEST_CASE("the same seed gives the same run, another seed another", "[determinism]") {
  const std::uint64_t hash = run_trace(11, 1000);
  CHECK(run_trace(11, 1000) == hash);
  CHECK(run_trace(12, 1000) != hash);
}

TEST_CASE("delivery order and times do not depend on how often time is advanced",
          "[determinism]") {
  CHECK(run_trace(11, 50) == run_trace(11, 25000));
}

TEST_CASE("traffic on other links changes nothing on this one", "[determinism]") {
  const auto alone = survivors("loss=0.1", false, false);
  CHECK(alone.size() > 4000);
  CHECK(alone.size() < 5000);
  CHECK(survivors("loss=0.1", true, false) == alone);
  CHECK(survivors("loss=0.1", false, true) == alone);
}

TEST_CASE("switching another fault on leaves the loss pattern alone", "[determinism]") {
  const auto alone = survivors("loss=0.1", false, false);
  CHECK(survivors("loss=0.1,dup=0.2,jitter_ns=30", false, false) == alone);
  CHECK(survivors("loss=0.11", false, false) != alone);
}

TEST_CASE("streams of links, paths and faults differ", "[determinism]") {
  std::map<std::uint64_t, int> first_draws;
  for (const std::string_view name : {"a", "b", "ab", "ba", ""}) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      ++first_draws[Rng(mix64(mix64(mix64(seed), name), "x")).next()];
    }
  }
  CHECK(first_draws.size() == 500);
  CHECK(mix64(mix64(1, "ab"), "c") != mix64(mix64(1, "a"), "bc"));
}

TEST_CASE("every path of every link loses other frames", "[determinism]") {
  Net net("k=4,select=modulo,loss=0.3", 3);
  std::map<std::array<std::uint32_t, 3>, std::vector<std::uint32_t>> arrived;
  for (std::uint32_t i = 0; i < 400; ++i) {
    for (const auto& [from, to] :
         {std::pair(1, 2), std::pair(1, 3), std::pair(2, 1), std::pair(3, 1)}) {
      for (std::uint16_t path = 0; path < 4; ++path) {
        RoceOptions options;
        options.from = static_cast<std::uint8_t>(from);
        options.to = static_cast<std::uint8_t>(to);
        options.source_port = path;
        options.psn = i;
        net.fabric.send(net.port[options.from], roce_frame(options), i);
      }
    }
  }
  net.run_all();
  for (const Delivery& delivery : net.deliveries) {
    const auto& bytes = delivery.bytes;
    arrived[{bytes[11], bytes[5], bytes[35]}].push_back(psn_of(bytes));
  }
  CHECK(arrived.size() == 16);
  std::set<std::vector<std::uint32_t>> patterns;
  for (const auto& item : arrived) {
    patterns.insert(item.second);
  }
  CHECK(patterns.size() == 16);
}

TEST_CASE("events leave by time, ties in the order in which they came", "[determinism]") {
  std::mt19937 random(3);
  EventQueue queue;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> waiting;
  std::uint64_t sequence = 0;
  std::uint64_t now = 0;
  for (int round = 0; round < 20000; ++round) {
    if (waiting.empty() || random() % 5 < 3) {
      const std::uint64_t due = now + random() % 6;
      Event event;
      event.due_ns = due;
      event.sequence = sequence;
      queue.push(std::move(event));
      waiting.emplace_back(due, sequence++);
      continue;
    }
    const auto first = std::min_element(waiting.begin(), waiting.end());
    REQUIRE(queue.size() == waiting.size());
    REQUIRE(queue.front().due_ns == first->first);
    const Event event = queue.pop();
    REQUIRE(std::pair(event.due_ns, event.sequence) == *first);
    now = event.due_ns;
    waiting.erase(first);
  }
}

TEST_CASE("bounded draws are uniform", "[determinism]") {
  Rng rng(5);
  std::array<int, 7> hits{};
  for (int i = 0; i < 70000; ++i) {
    ++hits[rng.below(7)];
  }
  for (const int count : hits) {
    CHECK(count > 9500);
    CHECK(count < 10500);
  }
}
