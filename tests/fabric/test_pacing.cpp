// SPDX-License-Identifier: BSD-2-Clause
#include <catch2/catch.hpp>
#include <random>

#include "pacer.hpp"
#include "support.hpp"

using namespace ordma::fabric;
using namespace ordma::fabric::test;

TEST_CASE("frames leave at exactly the configured rate", "[pacing]") {
  // 976 + 24 wire bytes at 10 Gb/s are 800 ns.
  Net net("rate_gbps=10,delay_ns=1us");
  for (std::uint32_t i = 0; i < 100; ++i) {
    net.fabric.send(net.port[1], raw_frame(1, 2, 976, i), 0);
  }
  net.run_all();
  REQUIRE(net.deliveries.size() == 100);
  for (std::size_t i = 0; i < 100; ++i) {
    CHECK(net.deliveries[i].at_ns == (i + 1) * 800 + 1000);
  }
}

TEST_CASE("rates that do not divide a frame build up no rounding error", "[pacing]") {
  // Sum of bits / rate, computed once in wide arithmetic, against the running pacer.
  std::mt19937_64 random(7);
  for (const std::uint64_t rate : {1u, 999u, 40001u, 100000u, 333333u, 100000000u}) {
    Pacer pacer;
    const std::uint64_t start = 12345;
    unsigned __int128 milli_bits = 0;
    for (int i = 0; i < 10000; ++i) {
      const std::uint64_t bytes = 64 + random() % 9000;
      milli_bits += static_cast<unsigned __int128>(bytes) * 8000;
      const auto expect = start + static_cast<std::uint64_t>((milli_bits + rate - 1) / rate);
      REQUIRE(pacer.depart(start, bytes, rate) == expect);
    }
    CHECK(pacer.backlog_bytes(start, rate) == static_cast<std::uint64_t>(milli_bits / 8000));
  }
}

TEST_CASE("an idle wire sends at once and a queue drains with time", "[pacing]") {
  Net net("rate_gbps=8,overhead=0");  // 1 byte per ns
  net.fabric.send(net.port[1], raw_frame(1, 2, 1000, 0), 0);
  net.fabric.send(net.port[1], raw_frame(1, 2, 1000, 1), 500);
  net.fabric.send(net.port[1], raw_frame(1, 2, 1000, 2), 5000);
  net.run_all();
  REQUIRE(net.deliveries.size() == 3);
  CHECK(net.deliveries[0].at_ns == 1000);
  CHECK(net.deliveries[1].at_ns == 2000);
  CHECK(net.deliveries[2].at_ns == 6000);
}

TEST_CASE("each path and each direction has its own wire", "[pacing]") {
  Net net("k=2,select=modulo,rate_gbps=8,overhead=0");
  for (std::uint16_t port = 0; port < 2; ++port) {
    for (std::uint8_t from = 1; from <= 2; ++from) {
      RoceOptions options;
      options.from = from;
      options.to = static_cast<std::uint8_t>(3 - from);
      options.source_port = port;
      net.fabric.send(net.port[from], roce_frame(options), 0);
    }
  }
  net.run_all();
  REQUIRE(net.deliveries.size() == 4);
  for (const Delivery& delivery : net.deliveries) {
    CHECK(delivery.at_ns == delivery.bytes.size());
  }
}

TEST_CASE("the queue limit drops the tail", "[pacing]") {
  Net net("rate_gbps=8,overhead=0,queue=5000");
  for (std::uint32_t i = 0; i < 8; ++i) {
    net.fabric.send(net.port[1], raw_frame(1, 2, 1000, i), 0);
  }
  net.fabric.send(net.port[1], raw_frame(1, 2, 1000, 8), 1000);  // one frame has left
  net.run_all();
  CHECK(net.numbers() == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 8});
  CHECK(net.fabric.totals().queue_drops == 3);
  CHECK(net.fabric.path_counters(net.port[1], net.port[2], 0).queue_drops == 3);
}

TEST_CASE("CE appears exactly when the queue is above the threshold", "[pacing]") {
  Net net("rate_gbps=8,overhead=0,ecn=3000");
  RoceOptions options;
  options.traffic_class = 2;
  options.payload = 1000 - 14 - 20 - 8 - 12 - 4;
  for (options.psn = 0; options.psn < 8; ++options.psn) {
    net.fabric.send(net.port[1], roce_frame(options), 0);
  }
  options.traffic_class = 0;  // not ECN-capable
  net.fabric.send(net.port[1], roce_frame(options), 0);
  net.run_all();
  REQUIRE(net.deliveries.size() == 9);
  for (std::size_t i = 0; i < 8; ++i) {
    // Frame i finds i * 1000 bytes queued.
    CHECK((net.deliveries[i].bytes[15] & 3) == (i > 3 ? 3 : 2));
  }
  CHECK((net.deliveries[8].bytes[15] & 3) == 0);
  CHECK(net.fabric.totals().marked == 4);
}

TEST_CASE("trimmed packets overtake the queue they could not join", "[pacing]") {
  Net net("rate_gbps=8,overhead=0,trim=2000,trim_dscp=13");
  RoceOptions options;
  options.payload = 1000 - 14 - 20 - 8 - 12 - 4;
  for (options.psn = 0; options.psn < 5; ++options.psn) {
    net.fabric.send(net.port[1], roce_frame(options), 0);
  }
  net.run_all();
  REQUIRE(net.deliveries.size() == 5);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> seen;
  for (const Delivery& delivery : net.deliveries) {
    seen.emplace_back(psn_of(delivery.bytes), delivery.at_ns);
  }
  const std::vector<std::pair<std::uint32_t, std::uint64_t>> expect = {
      {3, 82}, {4, 164}, {0, 1000}, {1, 2000}, {2, 3000}};
  CHECK(seen == expect);
  CHECK(net.deliveries[0].bytes[15] >> 2 == 13);
  CHECK(net.fabric.totals().trimmed == 2);
  // The wire time of trimmed packets is paid by the data behind them.
  options.psn = 9;
  net.fabric.send(net.port[1], roce_frame(options), 3000);
  CHECK(net.fabric.next_due() == 3000u + 164 + 1000);
}

TEST_CASE("the last hop is shared by all senders", "[pacing]") {
  Net net("port_rate_gbps=8,overhead=0,port_queue=4000,port_ecn=1000,delay_ns=10", 4);
  for (std::uint8_t from = 2; from <= 4; ++from) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      RoceOptions options;
      options.from = from;
      options.to = 1;
      options.traffic_class = 1;
      options.payload = 1000 - 14 - 20 - 8 - 12 - 4;
      net.fabric.send(net.port[from], roce_frame(options), 0);
    }
  }
  net.run_all();
  REQUIRE(net.deliveries.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(net.deliveries[i].at_ns == 10 + (i + 1) * 1000);
    CHECK((net.deliveries[i].bytes[15] & 3) == (i > 1 ? 3 : 1));
  }
  CHECK(net.fabric.totals().queue_drops == 2);
  CHECK(net.fabric.totals().marked == 2);
  CHECK(net.fabric.port_counters(net.port[4]).queue_drops == 2);
}

TEST_CASE("a lost frame has used its time on the wire", "[pacing]") {
  Net net("rate_gbps=8,overhead=0");
  net.fabric.configure(config("rate_gbps=8,overhead=0,loss=1"));
  net.fabric.send(net.port[1], raw_frame(1, 2, 1000, 0), 0);
  net.fabric.configure(config("rate_gbps=8,overhead=0"));
  net.fabric.send(net.port[1], raw_frame(1, 2, 1000, 1), 0);
  net.run_all();
  REQUIRE(net.deliveries.size() == 1);
  CHECK(net.deliveries[0].at_ns == 2000);
}
