// SPDX-License-Identifier: BSD-2-Clause
#include <catch2/catch.hpp>
#include <deque>
#include <set>

#include "fake_nic.hpp"

using ordma::test::FakeNic;

namespace {

struct Ids {
  Ids(FakeNic& nic, ordma_ids_kind kind) : memory(ordma_ids_bytes(&nic.core, kind) + 16, 0xa5) {
    if (ordma_ids_init(&ids, &nic.core, kind, memory.data(), memory.size() - 16)) {
      throw std::logic_error("init");
    }
  }
  ~Ids() {
    // Bytes behind the memory that was asked for are not touched.
    for (std::size_t i = memory.size() - 16; i < memory.size(); ++i) {
      if (memory[i] != 0xa5) std::abort();
    }
  }
  std::vector<std::uint8_t> memory;
  ordma_ids ids{};
};

const std::vector<ordma_ids_kind> kKinds = {ORDMA_IDS_QPN,  ORDMA_IDS_MKEY, ORDMA_IDS_CQN,
                                            ORDMA_IDS_SRQN, ORDMA_IDS_PDN,  ORDMA_IDS_PAGE,
                                            ORDMA_IDS_UCTX};

}  // namespace

TEST_CASE("allocators: random get and put") {
  const auto kind = GENERATE(from_range(kKinds));
  const auto seed = GENERATE(range(1u, ordma::test::last_seed(5)));
  INFO("kind " << kind << " seed " << seed);
  FakeNic nic;
  nic.bring_up();
  nic.rng.seed(seed);
  Ids a(nic, kind);
  const auto count = ordma_ids_count(&nic.core, kind);
  std::set<std::uint32_t> out, indices, old;
  std::mt19937 rng(seed);
  for (int i = 0; i < 20000; ++i) {
    const bool get = rng() % 100 < (i / 5000 % 2 ? 35 : 65);
    if (get) {
      std::uint32_t n = 0;
      const int err = ordma_ids_get(&a.ids, &n);
      REQUIRE(err == (out.size() == count ? -ENOMEM : 0));
      if (err) continue;
      const auto index = ordma_ids_index(&a.ids, n);
      REQUIRE(index >= 1);
      REQUIRE(out.insert(n).second);
      REQUIRE(indices.insert(index).second);
      REQUIRE(ordma_ids_valid(&a.ids, n));
      if (kind == ORDMA_IDS_QPN) {
        REQUIRE(n != ORDMA_MCAST_QPN);
        REQUIRE(n < 1u << 24);
        REQUIRE(index >= 2);
        REQUIRE(index < nic.core.caps.max_qp);
      }
      if (kind == ORDMA_IDS_MKEY) REQUIRE(index < nic.core.caps.max_mr);
    } else if (!out.empty()) {
      const auto it = std::next(out.begin(), static_cast<long>(rng() % out.size()));
      const auto n = *it;
      REQUIRE(ordma_ids_put(&a.ids, n));
      REQUIRE_FALSE(ordma_ids_put(&a.ids, n));
      REQUIRE_FALSE(ordma_ids_valid(&a.ids, n));
      indices.erase(ordma_ids_index(&a.ids, n));
      out.erase(it);
      old.insert(n);
    }
    // A number that was never given, or an old key of an index that is out, is not accepted.
    const auto wild = static_cast<std::uint32_t>(rng());
    REQUIRE(ordma_ids_valid(&a.ids, wild) == out.contains(wild));
    if (!out.contains(wild)) REQUIRE_FALSE(ordma_ids_put(&a.ids, wild));
  }
}

TEST_CASE("allocators: every number can be out at once: case_097") {
  const auto kind = GENERATE(from_range(kKinds));
  FakeNic nic;
  nic.bring_up();
  Ids a(nic, kind);
  const auto count = ordma_ids_count(&nic.core, kind);
  std::set<std::uint32_t> out;
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    REQUIRE(ordma_ids_get(&a.ids, &n) == 0);
    REQUIRE(out.insert(n).second);
  }
  CHECK(ordma_ids_get(&a.ids, &n) == -ENOMEM);
  for (const auto v : out) REQUIRE(ordma_ids_put(&a.ids, v));
  CHECK(ordma_ids_get(&a.ids, &n) == 0);
}

TEST_CASE("no rkey comes back within 256 registrations, however full the table: case_044") {
  const auto held = GENERATE(0u, 60u, 125u);
  FakeNic nic;
  nic.bring_up();
  Ids a(nic, ORDMA_IDS_MKEY);
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < held; ++i) REQUIRE(ordma_ids_get(&a.ids, &n) == 0);
  // With one free index, all 65536 keys of that index are used before one repeats.
  std::deque<std::uint32_t> recent;
  std::set<std::uint32_t> window;
  const std::size_t distance = 60000;
  for (int i = 0; i < 100000; ++i) {
    REQUIRE(ordma_ids_get(&a.ids, &n) == 0);
    REQUIRE(window.insert(n).second);
    recent.push_back(n);
    REQUIRE(ordma_ids_put(&a.ids, n));
    if (recent.size() > distance) {
      window.erase(recent.front());
      recent.pop_front();
    }
  }
}

TEST_CASE("a key runs through all its values before it repeats") {
  const auto kind = GENERATE(ORDMA_IDS_QPN, ORDMA_IDS_MKEY);
  FakeNic nic;
  nic.bring_up();
  Ids a(nic, kind);
  std::uint32_t n = 0;
  while (ordma_ids_get(&a.ids, &n) == 0) {
  }
  // The last one got is the only one that circulates.
  ordma_ids_valid(&a.ids, n);
  const std::uint32_t period = kind == ORDMA_IDS_QPN ? 1024 : 65536;
  std::uint32_t last = 0;
  for (std::uint32_t candidate = 0; candidate < 0x1000000 && !last; ++candidate) {
    if (ordma_ids_valid(&a.ids, candidate)) last = candidate;
  }
  REQUIRE(last != 0);
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < period; ++i) {
    REQUIRE(seen.insert(last).second);
    REQUIRE(ordma_ids_put(&a.ids, last));
    REQUIRE(ordma_ids_get(&a.ids, &n) == 0);
    last = n;
  }
  CHECK(seen.contains(last));
}

TEST_CASE("keys of two devices differ and do not count up") {
  FakeNic one, two;
  one.rng.seed(11);
  two.rng.seed(12);
  one.bring_up();
  two.bring_up();
  Ids a(one, ORDMA_IDS_MKEY), b(two, ORDMA_IDS_MKEY);
  std::uint32_t x = 0, y = 0, before = 0;
  int same = 0, steps = 0;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(ordma_ids_get(&a.ids, &x) == 0);
    REQUIRE(ordma_ids_get(&b.ids, &y) == 0);
    same += x == y;
    steps += (x >> 16) - (before >> 16) <= 1;
    before = x;
  }
  CHECK(same < 5);
  CHECK(steps < 5);
}

TEST_CASE("the multicast QPN is never given") {
  FakeNic nic;
  nic.regs[ORDMA_REG_MAX_QP] = 1u << ORDMA_QPN_INDEX_BITS;
  nic.regs[ORDMA_REG_MAX_CQ] = 2;
  nic.regs[ORDMA_REG_MAX_SRQ] = 0;
  nic.bring_up();
  // The core may have reduced the table; index 0x3fff is what the test is about.
  nic.core.caps.max_qp = 1u << ORDMA_QPN_INDEX_BITS;
  Ids a(nic, ORDMA_IDS_QPN);
  std::uint32_t n = 0, last = 0;
  while (ordma_ids_get(&a.ids, &n) == 0) last = n;
  REQUIRE(ordma_ids_index(&a.ids, last) == 0x3fff);
  int seen = 0;
  for (int i = 0; i < 2100; ++i, ++seen) {
    REQUIRE(last != ORDMA_MCAST_QPN);
    REQUIRE(ordma_ids_put(&a.ids, last));
    REQUIRE(ordma_ids_get(&a.ids, &last) == 0);
  }
  CHECK(seen == 2100);
}

TEST_CASE("a freed number comes back last") {
  FakeNic nic;
  nic.bring_up();
  Ids a(nic, ORDMA_IDS_CQN);
  std::uint32_t first = 0, n = 0;
  REQUIRE(ordma_ids_get(&a.ids, &first) == 0);
  REQUIRE(ordma_ids_put(&a.ids, first));
  for (std::uint32_t i = 1; i < ordma_ids_count(&nic.core, ORDMA_IDS_CQN); ++i) {
    REQUIRE(ordma_ids_get(&a.ids, &n) == 0);
    REQUIRE(n != first);
  }
  REQUIRE(ordma_ids_get(&a.ids, &n) == 0);
  CHECK(n == first);
}

TEST_CASE("an allocator of nothing, and memory that is too small") {
  FakeNic nic;
  nic.regs[ORDMA_REG_MAX_SRQ] = 0;
  nic.regs[ORDMA_REG_MAX_UCTX] = 1;
  nic.bring_up();
  for (const auto kind : {ORDMA_IDS_SRQN, ORDMA_IDS_UCTX}) {
    Ids a(nic, kind);
    std::uint32_t n = 0;
    CHECK(ordma_ids_count(&nic.core, kind) == 0);
    CHECK(ordma_ids_get(&a.ids, &n) == -ENOMEM);
    CHECK_FALSE(ordma_ids_put(&a.ids, 1));
  }
  std::vector<std::uint8_t> mem(ordma_ids_bytes(&nic.core, ORDMA_IDS_CQN));
  ordma_ids ids{};
  CHECK(ordma_ids_init(&ids, &nic.core, ORDMA_IDS_CQN, mem.data(), mem.size() - 1) == -EINVAL);
}

TEST_CASE("doorbell slots") {
  const auto seed = GENERATE(range(1u, ordma::test::last_seed(4)));
  std::mt19937 rng(seed);
  ordma_db_page pg{};
  ordma_db_page_init(&pg, 5, 9);
  CHECK(pg.page == 5);
  CHECK(pg.uctx == 9);
  std::map<std::uint32_t, std::uint32_t> out;  // slot -> n
  std::set<std::uint32_t> slots;
  for (int i = 0; i < 20000; ++i) {
    if (rng() % 100 < (i / 4000 % 2 ? 30u : 75u)) {
      const std::uint32_t n = 1 + rng() % 2;
      const int slot = ordma_db_slot_get(&pg, n);
      if (slot < 0) {
        REQUIRE(slot == -ENOSPC);
        REQUIRE(out.size() > 100);
        continue;
      }
      REQUIRE(slot + n <= ORDMA_PAGE_SLOTS);
      out[static_cast<std::uint32_t>(slot)] = n;
      for (std::uint32_t k = 0; k < n; ++k) REQUIRE(slots.insert(slot + k).second);
    } else if (!out.empty()) {
      const auto it = std::next(out.begin(), static_cast<long>(rng() % out.size()));
      ordma_db_slot_put(&pg, it->first, it->second);
      for (std::uint32_t k = 0; k < it->second; ++k) slots.erase(it->first + k);
      out.erase(it);
    }
    REQUIRE(pg.in_use == slots.size());
  }
}

TEST_CASE("doorbell slots: full page and nonsense") {
  ordma_db_page pg{};
  ordma_db_page_init(&pg, 1, 1);
  for (int i = 0; i < 256; ++i) REQUIRE(ordma_db_slot_get(&pg, 2) == 2 * i);
  CHECK(ordma_db_slot_get(&pg, 1) == -ENOSPC);
  CHECK(ordma_db_slot_get(&pg, 0) == -EINVAL);
  CHECK(ordma_db_slot_get(&pg, 3) == -EINVAL);
  ordma_db_slot_put(&pg, 512, 1);
  ordma_db_slot_put(&pg, 1, 2);
  ordma_db_slot_put(&pg, 0, 3);
  CHECK(pg.in_use == 512);
  ordma_db_slot_put(&pg, 6, 2);
  ordma_db_slot_put(&pg, 6, 2);
  CHECK(pg.in_use == 510);
  CHECK(ordma_db_slot_get(&pg, 1) == 6);
  CHECK(ordma_db_slot_get(&pg, 2) == -ENOSPC);
}
