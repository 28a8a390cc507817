// SPDX-License-Identifier: BSD-2-Clause
#include <catch2/catch.hpp>

#include "device/addresses.hpp"
#include "device/clock.hpp"

using namespace ordma::softdev;

TEST_CASE("device time follows the host when idle, the engines when busy", "[clock]") {
  std::uint64_t host = 1000;
  DeviceClock clock([&] { return host; });
  const std::uint64_t never = ~std::uint64_t{0};
  CHECK(clock.now() == 0);
  host += 500;
  clock.follow_host(never);
  CHECK(clock.now() == 500);
  host += 100'000;  // a pass that took long on the host but little in the device
  clock.advance_busy(70);
  CHECK(clock.now() == 570);
  clock.follow_host(never);
  CHECK(clock.now() == 570);
  host -= 400;  // a host clock that steps back changes nothing
  clock.follow_host(never);
  CHECK(clock.now() == 570);
}

TEST_CASE("after a pause device time stops at each thing that is due", "[clock]") {
  std::uint64_t host = 0;
  DeviceClock clock([&] { return host; });
  host = 10'000;
  clock.follow_host(300);
  CHECK(clock.now() == 300);
  clock.follow_host(300);
  CHECK(clock.now() == 300);
  clock.follow_host(4000);
  CHECK(clock.now() == 4000);
  clock.follow_host(100);  // due in the past
  CHECK(clock.now() == 4000);
  clock.follow_host(~std::uint64_t{0});
  CHECK(clock.now() == 10'000);
}

TEST_CASE("addresses of NICs are distinct and well formed", "[addresses]") {
  const Mac mac = nic_mac(0);
  CHECK((mac[0] & 3) == 2);
  CHECK(nic_mac(1) != mac);
  CHECK(nic_mac(300) != nic_mac(44));
  CHECK(format_mac(nic_mac(0)) == "02:4f:52:44:00:01");
  CHECK(parse_mac("02:4f:52:44:00:01") == mac);
  CHECK_FALSE(parse_mac("02:4f:52:44:00"));
  CHECK_FALSE(parse_mac("02:4f:52:44:00:0g"));
  CHECK_FALSE(parse_mac("02-4f-52-44-00-01"));
  CHECK(guid_of(mac) != 0);
  CHECK(guid_of(mac) != guid_of(nic_mac(1)));
  CHECK(nic_ipv4_gid(0) == parse_gid("10.86.0.1"));
  CHECK(nic_ipv4_gid(249) == parse_gid("10.86.0.250"));
  CHECK(nic_ipv4_gid(250) == parse_gid("10.86.1.1"));
  CHECK(link_local_gid(mac) == parse_gid("fe80::4f:52ff:fe44:1"));
}

TEST_CASE("destination addresses", "[addresses]") {
  Neighbours neighbours;
  REQUIRE(neighbours.add(*parse_gid("10.86.0.1"), nic_mac(0)));
  CHECK(neighbours.resolve(*parse_gid("10.86.0.1")) == nic_mac(0));
  CHECK_FALSE(neighbours.resolve(*parse_gid("10.86.0.2")));
  CHECK_FALSE(neighbours.resolve(*parse_gid("2001:db8::1")));
  CHECK(neighbours.resolve(*parse_gid("239.129.2.3")) == parse_mac("01:00:5e:01:02:03"));
  CHECK(neighbours.resolve(*parse_gid("ff0e::1:2:3")) == parse_mac("33:33:00:02:00:03"));
  CHECK(neighbours.resolve(link_local_gid(nic_mac(9))) == nic_mac(9));
  CHECK_FALSE(neighbours.resolve(*parse_gid("fe80::1")));
  REQUIRE(neighbours.add(*parse_gid("10.86.0.1"), nic_mac(5)));
  CHECK(neighbours.resolve(*parse_gid("10.86.0.1")) == nic_mac(5));
}
