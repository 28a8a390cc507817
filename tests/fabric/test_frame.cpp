// SPDX-License-Identifier: BSD-2-Clause
#include <catch2/catch.hpp>
#include <stdexcept>

#include "fabric/frame.hpp"
#include "support.hpp"

using namespace ordma::fabric;
using namespace ordma::fabric::test;

TEST_CASE("frames share bytes until one of them is written", "[frame]") {
  Frame one = raw_frame(1, 2, 64, 7);
  Frame two = one.share();
  CHECK(one.bytes().data() == two.bytes().data());
  CHECK(one.is_shared());
  two.writable()[20] = 0xaa;
  CHECK(one.bytes().data() != two.bytes().data());
  CHECK(one.bytes()[20] == 0);
  CHECK(two.bytes()[20] == 0xaa);
  CHECK_FALSE(one.is_shared());
}

TEST_CASE("moving a frame moves its bytes without a copy", "[frame]") {
  Frame one = raw_frame(1, 2, 64);
  const auto* bytes = one.bytes().data();
  Frame two = std::move(one);
  CHECK(two.bytes().data() == bytes);
  CHECK(one.empty());
}

TEST_CASE("truncating a shared frame leaves the other handle whole", "[frame]") {
  Frame one = raw_frame(1, 2, 64, 9);
  Frame two = one.share();
  two.truncate(18);
  CHECK(two.size() == 18);
  CHECK(one.size() == 64);
  CHECK(number_of(two.bytes()) == 9);
  two.truncate(100);
  CHECK(two.size() == 18);
}

TEST_CASE("a frame has at most 9216 bytes", "[frame]") {
  CHECK(Frame(9216).size() == 9216);
  CHECK_THROWS_AS(Frame(9217), std::length_error);
  CHECK(Frame().bytes().empty());
  CHECK(Frame().writable().empty());
}
