// SPDX-License-Identifier: BSD-2-Clause
#include <array>
#include <catch2/catch.hpp>

#include "device/doorbell_scanner.hpp"
#include "fake_engine.hpp"
#include "ordma_hw.hpp"

using namespace ordma;
using namespace ordma::softdev;
using test::FakeEngine;

namespace {

struct alignas(4096) PageMemory {
  std::array<std::uint64_t, 512> words;
  std::byte* bytes() { return reinterpret_cast<std::byte*>(words.data()); }
};

std::uint64_t token(std::uint64_t value, unsigned lap) {
  return hw::place(hw::token::slot, value) | hw::place(hw::token::lap_lo, lap) |
         hw::place(hw::token::lap_hi, lap) |
         hw::place(hw::token::kind, static_cast<std::uint64_t>(hw::DbKind::kToken));
}

}  // namespace

TEST_CASE("index page: new words once, the latest wins, a cleared slot is no word", "[scanner]") {
  PageMemory page;
  page.words.fill(~std::uint64_t{0});
  FakeEngine engine;
  DoorbellScanner scanner;
  scanner.open(7, page.bytes(), false);
  CHECK(page.words[0] == 0);
  CHECK_FALSE(scanner.scan(engine));

  page.words[0] = 11;
  page.words[511] = 12;
  CHECK(scanner.scan(engine));
  CHECK(engine.doorbells ==
        std::vector<FakeEngine::Doorbell>{{7, 0, 11}, {7, 511 * 8, 12}});
  CHECK_FALSE(scanner.scan(engine));

  engine.doorbells.clear();
  page.words[511] = 13;
  page.words[511] = 14;
  page.words[0] = 0;
  CHECK(scanner.scan(engine));
  CHECK(engine.doorbells == std::vector<FakeEngine::Doorbell>{{7, 511 * 8, 14}});
  page.words[0] = 11;  // the word from before the slot was cleared is new again
  CHECK(scanner.scan(engine));
  CHECK(engine.doorbells.back() == FakeEngine::Doorbell{7, 0, 11});
  CHECK_FALSE(scanner.tokens_open());
  CHECK(scanner.words() == 4);
}

TEST_CASE("the driver's words come last, its command rings at the very end", "[scanner]") {
  PageMemory driver, user;
  FakeEngine engine;
  DoorbellScanner scanner;
  scanner.open(hw::kDriverPage, driver.bytes(), false);
  scanner.open(4, user.bytes(), false);
  driver.words[0] = 1;
  driver.words[6] = 2;
  user.words[9] = 3;
  CHECK(scanner.scan(engine));
  CHECK(engine.doorbells == std::vector<FakeEngine::Doorbell>{
                                {4, 72, 3}, {hw::kDriverPage, 48, 2}, {hw::kDriverPage, 0, 1}});
}

TEST_CASE("index page: a new queue's equal word in a reused slot is new", "[scanner]") {
  PageMemory page;
  FakeEngine engine;
  DoorbellScanner scanner;
  scanner.open(1, page.bytes(), false);
  page.words[5] = 99;
  CHECK(scanner.scan(engine));
  scanner.clear_slot(1, 5);
  CHECK_FALSE(scanner.scan(engine));
  page.words[5] = 99;
  CHECK(scanner.scan(engine));
  CHECK(engine.doorbells.size() == 2);
}

TEST_CASE("token page: in order, each once, over many laps", "[scanner]") {
  PageMemory page;
  FakeEngine engine;
  DoorbellScanner scanner;
  scanner.open(3, page.bytes(), true);
  CHECK(scanner.tokens_open());
  std::uint64_t posted = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 77; ++i, ++posted) {
      page.words[posted % 512] = token(posted, (posted / 512) % 2 == 0 ? 1 : 0);
    }
    while (scanner.scan(engine)) {
    }
    REQUIRE(engine.doorbells.size() == posted);
  }
  for (std::uint64_t i = 0; i < posted; ++i) {
    REQUIRE(hw::wget(engine.doorbells[i].word, hw::token::slot) == i);
    REQUIRE(engine.doorbells[i].offset == (i % 512) * 8);
  }
}

TEST_CASE("token page: a half-written word and a wrong lap wait", "[scanner]") {
  PageMemory page;
  FakeEngine engine;
  DoorbellScanner scanner;
  scanner.open(3, page.bytes(), true);
  const std::uint64_t word = token(1, 1);
  page.words[0] = word & 0xffffffff;
  CHECK_FALSE(scanner.scan(engine));
  page.words[0] = word & ~std::uint64_t{0xffffffff};
  CHECK_FALSE(scanner.scan(engine));
  page.words[0] = token(1, 0);  // lap 0 is not due
  CHECK_FALSE(scanner.scan(engine));
  page.words[1] = token(2, 1);  // slot 0 comes first
  CHECK_FALSE(scanner.scan(engine));
  page.words[0] = word;
  CHECK(scanner.scan(engine));
  REQUIRE(engine.doorbells.size() == 2);
  CHECK(engine.doorbells[0].word == word);
  CHECK(page.words[0] == word);  // never written to
}

TEST_CASE("token page: a full page is one lap, not two", "[scanner]") {
  PageMemory page;
  FakeEngine engine;
  DoorbellScanner scanner;
  scanner.open(3, page.bytes(), true);
  for (std::uint64_t i = 0; i < 512; ++i) page.words[i] = token(i, 1);
  unsigned scans = 0;
  while (scanner.scan(engine)) ++scans;
  CHECK(engine.doorbells.size() == 512);
  CHECK(scans == 512 / DoorbellScanner::kTokensPerScan);
}

TEST_CASE("reopening a page starts at slot 0, lap 1", "[scanner]") {
  PageMemory page;
  FakeEngine engine;
  DoorbellScanner scanner;
  scanner.open(3, page.bytes(), true);
  for (std::uint64_t i = 0; i < 600; ++i) {
    page.words[i % 512] = token(i, i < 512 ? 1 : 0);
    CHECK(scanner.scan(engine));
  }
  scanner.close(3);
  CHECK_FALSE(scanner.tokens_open());
  page.words[88] = token(5, 0);
  CHECK_FALSE(scanner.scan(engine));
  scanner.open(3, page.bytes(), true);
  page.words[0] = token(42, 1);
  CHECK(scanner.scan(engine));
  CHECK(hw::wget(engine.doorbells.back().word, hw::token::slot) == 42);
}

TEST_CASE("a doorbell may close its own page and open others", "[scanner]") {
  PageMemory a, b, c;
  FakeEngine engine;
  DoorbellScanner scanner;
  scanner.open(1, a.bytes(), false);
  scanner.open(2, b.bytes(), true);
  engine.on_doorbell = [&](const FakeEngine::Doorbell& bell) {
    if (bell.page != 1) return;
    scanner.close(1);
    scanner.close(2);
    for (std::uint32_t page = 10; page < 30; ++page) scanner.open(page, c.bytes(), false);
  };
  a.words[0] = 1;
  a.words[1] = 2;
  b.words[0] = token(0, 1);
  CHECK(scanner.scan(engine));
  CHECK(engine.doorbells.size() == 1);
  CHECK_FALSE(scanner.scan(engine));
  CHECK_FALSE(scanner.tokens_open());
}
