// SPDX-License-Identifier: BSD-2-Clause
#include <catch2/catch.hpp>
#include <stdexcept>

#include "mac_table.hpp"
#include "support.hpp"

using namespace ordma::fabric;
using namespace ordma::fabric::test;

TEST_CASE("unicast reaches exactly the station's port", "[switch]") {
  Net net("", 3);
  net.fabric.send(net.port[1], raw_frame(1, 3, 60, 5), 100);
  CHECK(net.deliveries.empty());  // never from inside send()
  CHECK(net.fabric.next_due() == 100u);
  CHECK(net.fabric.advance(100) == 1);
  REQUIRE(net.deliveries.size() == 1);
  CHECK(net.deliveries[0].port == net.port[3]);
  CHECK(net.deliveries[0].at_ns == 100);
  CHECK(net.fabric.port_counters(net.port[1]).tx_frames == 1);
  CHECK(net.fabric.port_counters(net.port[3]).rx_bytes == 60);
  CHECK(net.fabric.path_counters(net.port[1], net.port[3], 0).rx_frames == 1);
  CHECK_FALSE(net.fabric.next_due());
}

TEST_CASE("broadcast, multicast and unknown unicast reach all other ports", "[switch]") {
  const auto target = GENERATE(0xff, 0x77);
  Net net("", 4);
  net.fabric.send(net.port[2], raw_frame(2, static_cast<std::uint8_t>(target), 60), 0);
  net.run_all();
  REQUIRE(net.deliveries.size() == 3);
  for (const Delivery& delivery : net.deliveries) {
    CHECK(delivery.port != net.port[2]);
  }
  CHECK(net.fabric.totals().flooded == 1);
}

TEST_CASE("a frame to the sender's own address comes back through the path model", "[switch]") {
  Net net("delay_ns=500");
  net.fabric.send(net.port[1], raw_frame(1, 1, 60), 0);
  CHECK(net.fabric.next_due() == 500u);
  net.run_all();
  REQUIRE(net.deliveries.size() == 1);
  CHECK(net.deliveries[0].port == net.port[1]);
  CHECK(net.fabric.path_counters(net.port[1], net.port[1], 0).rx_frames == 1);
}

TEST_CASE("a learning port is found by the addresses seen on it", "[switch]") {
  Net net("", 2);
  int arrived = 0;
  const PortId guest =
      net.fabric.add_port({}, [&](Frame, std::uint64_t) { ++arrived; }, {"guest", true});
  REQUIRE(guest != kNoPort);
  net.fabric.send(guest, raw_frame(50, 1, 60), 0);
  net.fabric.send(net.port[1], raw_frame(1, 50, 60), 1);
  net.run_all();
  CHECK(arrived == 1);
  CHECK(net.deliveries.size() == 1);  // port 2 saw no flood
  // Two stations behind one learning port talk without the switch.
  net.fabric.send(guest, raw_frame(51, 50, 60), 2);
  net.run_all();
  CHECK(arrived == 1);
  CHECK(net.fabric.totals().no_port == 1);
}

TEST_CASE("a learning port cannot take over a fixed address", "[switch]") {
  Net net("", 2);
  const PortId thief = net.fabric.add_port({}, {}, {"thief", true});
  net.fabric.send(thief, raw_frame(1, 2, 60), 0);  // claims to be station 1
  net.run_all();
  net.deliveries.clear();
  net.fabric.send(net.port[2], raw_frame(2, 1, 60), 1);
  net.run_all();
  REQUIRE(net.deliveries.size() == 1);
  CHECK(net.deliveries[0].port == net.port[1]);
}

TEST_CASE("the learned table is bounded and forgets a port that left", "[switch]") {
  MacTable table;
  for (std::uint64_t key = 1; key <= 2 * MacTable::kLearnedMax; ++key) {
    table.learn(key, 7);
  }
  CHECK(table.find(MacTable::kLearnedMax));
  CHECK_FALSE(table.find(MacTable::kLearnedMax + 1));
  CHECK(table.add_fixed(MacTable::kLearnedMax + 1, 8));
  CHECK_FALSE(table.add_fixed(MacTable::kLearnedMax + 1, 9));
  table.remove_port(7);
  CHECK_FALSE(table.find(1));
  table.learn(1, 9);
  CHECK(table.find(1)->port == 9);
}

TEST_CASE("removing a port drops what is on its way to it and frees its names", "[switch]") {
  Net net("delay_ns=100");
  net.fabric.send(net.port[1], raw_frame(1, 2, 60), 0);
  net.fabric.send(net.port[2], raw_frame(2, 1, 60), 0);
  net.fabric.remove_port(net.port[2]);
  net.run_all();
  REQUIRE(net.deliveries.size() == 1);  // what it had sent still arrives
  CHECK(net.deliveries[0].port == net.port[1]);
  CHECK(net.fabric.totals().no_port == 1);
  CHECK(net.fabric.path_totals(0).tx_frames == 2);  // counters outlive the link
  const PortId again = net.fabric.add_port(mac_of(2), {}, {"p2", false});
  REQUIRE(again != kNoPort);
  CHECK(again != net.port[2]);
  net.fabric.send(net.port[2], raw_frame(2, 1, 60), 300);  // stale id
  CHECK(net.fabric.frames_in_flight() == 0);
}

TEST_CASE("ports are refused when address or name is taken or the table is full", "[switch]") {
  Net net("", 2);
  CHECK(net.fabric.add_port(mac_of(1), {}, {"other", false}) == kNoPort);
  CHECK(net.fabric.add_port(mac_of(9), {}, {"p1", false}) == kNoPort);
  CHECK(net.fabric.add_port({0x01, 0, 0x5e, 0, 0, 1}, {}) == kNoPort);
  for (std::uint32_t i = 2; i < kMaxPorts; ++i) {
    REQUIRE(net.fabric.add_port({}, {}) != kNoPort);
  }
  CHECK(net.fabric.add_port({}, {}) == kNoPort);
  CHECK(net.fabric.ports().size() == kMaxPorts);
}

TEST_CASE("a further address leads to the same port until it is removed", "[switch]") {
  Net net("", 3);
  CHECK(net.fabric.add_mac(net.port[2], mac_of(20)));
  CHECK_FALSE(net.fabric.add_mac(net.port[3], mac_of(20)));
  net.fabric.send(net.port[1], raw_frame(1, 20, 60), 0);
  net.run_all();
  REQUIRE(net.deliveries.size() == 1);
  CHECK(net.deliveries[0].port == net.port[2]);
  net.fabric.remove_mac(net.port[2], mac_of(20));
  net.fabric.send(net.port[1], raw_frame(1, 20, 60), 1);
  net.run_all();
  CHECK(net.deliveries.size() == 3);  // unknown now: flooded to 2 and 3
}

TEST_CASE("a sink may answer, remove its own port and add another", "[switch]") {
  Fabric fabric(config(""), 1);
  int got = 0;
  PortId one = fabric.add_port(mac_of(1), [&](Frame, std::uint64_t) { ++got; });
  PortId two = kNoPort;
  two = fabric.add_port(mac_of(2), [&, payload = std::string(64, 'x')](Frame, std::uint64_t at) {
    fabric.send(two, raw_frame(2, 1, 60), at);
    fabric.remove_port(two);
    const PortId three = fabric.add_port(mac_of(3), {});
    CHECK(three != kNoPort);
    CHECK(payload == std::string(64, 'x'));  // the running callback is still alive
    CHECK(fabric.advance(1000) == 0);        // no recursion
  });
  fabric.send(one, raw_frame(1, 2, 60), 5);
  fabric.advance(5);
  CHECK(got == 1);
}

TEST_CASE("sinks that answer each other without delay cannot hold advance()", "[switch]") {
  Fabric fabric(config(""), 1);
  std::uint64_t rounds = 0;
  PortId ids[3] = {};
  for (const std::uint8_t me : {std::uint8_t{1}, std::uint8_t{2}}) {
    ids[me] = fabric.add_port(mac_of(me), [&, me](Frame, std::uint64_t at) {
      ++rounds;
      fabric.send(ids[me], raw_frame(me, static_cast<std::uint8_t>(3 - me), 60), at);
    });
  }
  fabric.send(ids[1], raw_frame(1, 2, 60), 10);
  CHECK(fabric.advance(20) == Fabric::kAdvanceFramesMax);
  CHECK(rounds == Fabric::kAdvanceFramesMax);
  CHECK(fabric.next_due() == 10u);
}

TEST_CASE("answers sent from a sink keep global time order", "[switch]") {
  Net net("delay_ns=100", 3);
  Fabric& fabric = net.fabric;
  std::vector<std::uint64_t> times;
  const PortId echo = fabric.add_port(
      mac_of(9),
      [&](Frame, std::uint64_t at) {
        times.push_back(at);
        fabric.send(fabric.ports().back().id, raw_frame(9, 1, 60), at);
      },
      {"echo", false});
  REQUIRE(echo == fabric.ports().back().id);
  fabric.send(net.port[1], raw_frame(1, 9, 60), 0);
  fabric.send(net.port[2], raw_frame(2, 3, 60), 50);
  fabric.send(net.port[2], raw_frame(2, 3, 60), 150);
  fabric.advance(10000);
  REQUIRE(net.deliveries.size() == 3);
  CHECK(net.deliveries[0].at_ns == 150);
  CHECK(net.deliveries[1].at_ns == 250);
  CHECK(net.deliveries[2].at_ns == 250);
  CHECK(fabric.clock_ns() == 10000);
}

TEST_CASE("runts, frames above the MTU and the fabric's own buffer limit are counted",
          "[switch]") {
  Net net("mtu=1500,buffer=9216,delay_ns=10");
  net.fabric.send(net.port[1], Frame(13), 0);
  net.fabric.send(net.port[1], Frame(), 0);
  CHECK(net.fabric.totals().runt == 2);
  net.fabric.send(net.port[1], raw_frame(1, 2, 1515), 0);
  CHECK(net.fabric.totals().oversize == 1);
  Frame tagged = raw_frame(1, 2, 1518);
  tagged.writable()[12] = 0x81;  // VLAN tag: 4 more bytes are allowed
  net.fabric.send(net.port[1], std::move(tagged), 0);
  CHECK(net.fabric.totals().oversize == 1);
  for (int i = 0; i < 6; ++i) {
    net.fabric.send(net.port[1], raw_frame(1, 2, 1514), 0);
  }
  CHECK(net.fabric.totals().queue_drops == 1);  // 1518 + 5 * 1514 fit into 9216
  net.run_all();
  CHECK(net.deliveries.size() == 6);
}

TEST_CASE("copies respect the fabric's buffer too", "[switch]") {
  Net net("dup=1,buffer=9216", 3);
  net.fabric.send(net.port[1], raw_frame(1, 2, 9000), 0);
  net.run_all();
  CHECK(net.deliveries.size() == 1);
  CHECK(net.fabric.totals().dup == 0);
  net.fabric.send(net.port[1], raw_frame(1, 0xff, 9000), 0);  // room for one receiver only
  net.run_all();
  CHECK(net.deliveries.size() == 2);
  CHECK(net.fabric.totals().queue_drops == 1);
}

TEST_CASE("time never runs backwards", "[switch]") {
  Net net("");
  net.fabric.advance(1000);
  net.fabric.send(net.port[1], raw_frame(1, 2, 60), 10);
  CHECK(net.fabric.next_due() == 1000u);
  Net late("delay_ns=10s");
  late.fabric.send(late.port[1], raw_frame(1, 2, 60), UINT64_MAX - 5);
  CHECK(late.fabric.next_due() == UINT64_MAX);
}

TEST_CASE("a sink that sends for later does not move the clock of others", "[switch]") {
  Fabric fabric(config(""), 1);
  std::vector<std::uint64_t> times;
  PortId one = kNoPort;
  one = fabric.add_port(mac_of(1), [&](Frame frame, std::uint64_t at) {
    times.push_back(at);
    if (number_of(frame.bytes()) == 1) {
      fabric.send(one, raw_frame(1, 1, 60, 2), at + 500);
      fabric.send(one, raw_frame(1, 1, 60, 3), at + 10);
    }
  });
  fabric.send(one, raw_frame(1, 1, 60, 1), 100);
  fabric.advance(1000);
  CHECK(times == std::vector<std::uint64_t>{100, 110, 600});
}

TEST_CASE("a throwing sink leaves the fabric usable", "[switch]") {
  Fabric fabric(config(""), 1);
  const PortId one = fabric.add_port(mac_of(1), [](Frame, std::uint64_t) {
    throw std::runtime_error("sink");
  });
  fabric.send(one, raw_frame(1, 1, 60), 0);
  fabric.send(one, raw_frame(1, 1, 60), 0);
  CHECK_THROWS(fabric.advance(0));
  CHECK_THROWS(fabric.advance(0));
  CHECK(fabric.advance(0) == 0);
}
