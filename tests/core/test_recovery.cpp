// SPDX-License-Identifier: BSD-2-Clause
// The recovery policy as a pure function: event and time in, action out.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <random>

#include "fake_nic.hpp"
#include "recovery.h"

namespace {

struct Machine {
  explicit Machine(unsigned retry = 7, unsigned rnr = 7, unsigned timeout = 14,
                   std::uint32_t psn = 100) {
    ordma_recovery_start(&rec, psn, static_cast<u8>(retry), static_cast<u8>(rnr),
                         static_cast<u8>(timeout));
  }
  ordma_recovery_action feed(unsigned type, unsigned code, std::uint32_t psn, std::uint64_t now = 0,
                             std::uint32_t log_index = 7) {
    ordma_event_info ev{};
    ev.type = static_cast<u8>(type);
    ev.code = static_cast<u8>(code);
    ev.psn = psn;
    ev.log_index = log_index;
    ev.time = now;
    ordma_recovery_action act;
    ordma_recovery_event(&rec, &ev, now, &act);
    return act;
  }
  ordma_recovery_action nak(std::uint32_t psn, unsigned code = ORDMA_AETH_SYNDROME_NAK_PSN) {
    return feed(ORDMA_EVENT_TYPE_QP_NAK, code, psn);
  }
  ordma_recovery_action rnr(std::uint32_t psn, unsigned timer, std::uint64_t now = 0) {
    return feed(ORDMA_EVENT_TYPE_QP_RNR, ORDMA_AETH_SYNDROME_RNR | timer, psn, now);
  }
  ordma_recovery_action silence(std::uint32_t psn, std::uint64_t now = 0) {
    return feed(ORDMA_EVENT_TYPE_QP_SILENCE, 0, psn, now);
  }
  ordma_recovery rec{};
};

}  // namespace

TEST_CASE("timers: case_030, case_031") {
  CHECK(ordma_timeout_ns(0) == 0);
  CHECK(ordma_timeout_ns(1) == 8192);
  CHECK(ordma_timeout_ns(14) == 67108864);
  CHECK(ordma_timeout_ns(31) == 4096ull << 31);
  const double ms[32] = {655.36, 0.01,  0.02,  0.03,   0.04,   0.06,   0.08,   0.12,
                         0.16,   0.24,  0.32,  0.48,   0.64,   0.96,   1.28,   1.92,
                         2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                         40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
  for (unsigned i = 0; i < 32; ++i) {
    CHECK(ordma_rnr_timer_ns(static_cast<u8>(i)) == static_cast<u64>(ms[i] * 1e6 + 0.5));
    CHECK(ordma_rnr_timer_ns(static_cast<u8>(i | 0x20)) == ordma_rnr_timer_ns(static_cast<u8>(i)));
  }
}

TEST_CASE("silence fails after retry_cnt + 1 thresholds: case_031") {
  const auto retry = GENERATE(range(0u, 8u));
  Machine m(retry);
  for (unsigned i = 0; i < retry; ++i) {
    const auto act = m.silence(100, i * 70000000ull);
    REQUIRE(act.kind == ORDMA_RECOVERY_REWIND);
    CHECK(act.psn == 100);
    CHECK(act.log_index == 7);
    CHECK(act.not_before == 0);
  }
  const auto act = m.silence(100, 700000000);
  REQUIRE(act.kind == ORDMA_RECOVERY_FAIL);
  CHECK(act.status == ORDMA_WC_STATUS_RETRY_EXC_ERR);
  CHECK(act.psn == 100);
  CHECK(m.rec.total_rewinds == retry);
  // Nothing more comes from a QP that was given up.
  CHECK(m.silence(100).kind == ORDMA_RECOVERY_NONE);
  CHECK(m.nak(100).kind == ORDMA_RECOVERY_NONE);
}

TEST_CASE("progress gives all retries back: case_057") {
  Machine m(2);
  for (std::uint32_t psn = 100; psn < 200; ++psn) {
    REQUIRE(m.silence(psn).kind == ORDMA_RECOVERY_REWIND);
    REQUIRE(m.silence(psn).kind == ORDMA_RECOVERY_REWIND);
  }
  CHECK(m.silence(199).kind == ORDMA_RECOVERY_FAIL);
}

TEST_CASE("a sequence NAK counts as a retry only without progress") {
  Machine m(0);
  for (std::uint32_t psn = 101; psn < 300; psn += 3) {
    const auto act = m.nak(psn);
    REQUIRE(act.kind == ORDMA_RECOVERY_REWIND);
    REQUIRE(act.psn == psn);
  }
  const auto act = m.nak(299);
  REQUIRE(act.kind == ORDMA_RECOVERY_FAIL);
  CHECK(act.status == ORDMA_WC_STATUS_RETRY_EXC_ERR);
}

TEST_CASE("progress is modulo 2^24") {
  Machine m(0, 7, 14, 0xfffffe);
  CHECK(m.nak(0xffffff).kind == ORDMA_RECOVERY_REWIND);
  CHECK(m.nak(2).kind == ORDMA_RECOVERY_REWIND);
  CHECK(m.nak(0xffffff).kind == ORDMA_RECOVERY_FAIL);
}

TEST_CASE("implied NAKs are sequence NAKs") {
  Machine m(1);
  CHECK(m.feed(ORDMA_EVENT_TYPE_QP_IMPLIED_NAK, 0, 105).kind == ORDMA_RECOVERY_REWIND);
  CHECK(m.feed(ORDMA_EVENT_TYPE_QP_IMPLIED_NAK, 0, 105).kind == ORDMA_RECOVERY_REWIND);
  CHECK(m.feed(ORDMA_EVENT_TYPE_QP_IMPLIED_NAK, 0, 105).kind == ORDMA_RECOVERY_FAIL);
}

TEST_CASE("fatal NAKs fail at once with their status: case_003, case_005, case_006") {
  const std::map<unsigned, unsigned> expected = {
      {ORDMA_AETH_SYNDROME_NAK_INV_REQ, ORDMA_WC_STATUS_REM_INV_REQ_ERR},
      {ORDMA_AETH_SYNDROME_NAK_ACCESS, ORDMA_WC_STATUS_REM_ACCESS_ERR},
      {ORDMA_AETH_SYNDROME_NAK_OP, ORDMA_WC_STATUS_REM_OP_ERR}};
  for (unsigned code = 0; code < 256; ++code) {
    if (code == ORDMA_AETH_SYNDROME_NAK_PSN) continue;
    Machine m;
    const auto act = m.nak(123, code);
    REQUIRE(act.kind == ORDMA_RECOVERY_FAIL);
    const auto it = expected.find(code);
    const unsigned other = ORDMA_WC_STATUS_BAD_RESP_ERR;
    CHECK(act.status == (it == expected.end() ? other : it->second));
    CHECK(act.vendor_err == code);
    CHECK(act.psn == 123);
  }
}

TEST_CASE("RNR: case_030") {
  SECTION("rnr_retry 0 fails after one NAK") {
    Machine m(7, 0);
    const auto act = m.rnr(100, 12);
    REQUIRE(act.kind == ORDMA_RECOVERY_FAIL);
    CHECK(act.status == ORDMA_WC_STATUS_RNR_RETRY_EXC_ERR);
    CHECK(act.vendor_err == (ORDMA_AETH_SYNDROME_RNR | 12));
  }
  SECTION("rnr_retry 3 waits three times") {
    Machine m(7, 3);
    std::uint64_t now = 1000;
    for (int i = 0; i < 3; ++i) {
      const auto act = m.rnr(100, 12, now);
      REQUIRE(act.kind == ORDMA_RECOVERY_REWIND);
      CHECK(act.not_before == now + 640000);
      now = act.not_before + 100;
    }
    CHECK(now >= 3 * 640000);
    CHECK(m.rnr(100, 12, now).kind == ORDMA_RECOVERY_FAIL);
  }
  SECTION("7 is for ever") {
    Machine m(0, 7);
    for (int i = 0; i < 100000; ++i) REQUIRE(m.rnr(100, 0, 10).kind == ORDMA_RECOVERY_REWIND);
    CHECK(m.rec.retries == 0);
  }
  SECTION("progress resets") {
    Machine m(7, 1);
    for (std::uint32_t psn = 100; psn < 200; ++psn) {
      REQUIRE(m.rnr(psn, 1).kind == ORDMA_RECOVERY_REWIND);
    }
    CHECK(m.rnr(199, 1).kind == ORDMA_RECOVERY_FAIL);
  }
  SECTION("RNR never consumes retry_cnt, and an answer gives silence's count back") {
    Machine m(1, 7);
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t now = i * 1'000'000'000ull;
      REQUIRE(m.rnr(100, 1, now).kind == ORDMA_RECOVERY_REWIND);
      REQUIRE(m.silence(100, now + 500'000'000).kind == ORDMA_RECOVERY_REWIND);
    }
    CHECK(m.silence(100, 60'000'000'000).kind == ORDMA_RECOVERY_FAIL);
  }
  SECTION("silence while the wait lasts is not a retry") {
    Machine m(0, 7);
    const auto wait = m.rnr(100, 0, 1000);
    REQUIRE(wait.not_before == 1000 + 655360000);
    for (const std::uint64_t t : {70'000'000ull, 655'000'000ull}) {
      const auto act = m.silence(100, t);
      REQUIRE(act.kind == ORDMA_RECOVERY_REWIND);
      CHECK(act.not_before == wait.not_before);
    }
    const auto early = m.silence(100, wait.not_before + 67'000'000);
    REQUIRE(early.kind == ORDMA_RECOVERY_REWIND);
    CHECK(early.not_before == 0);
    CHECK(m.silence(100, wait.not_before + 67'108'864).kind == ORDMA_RECOVERY_FAIL);
  }
}

TEST_CASE("timeout 0 never retries") {
  Machine m(7, 7, 0);
  const auto act = m.silence(100);
  CHECK(act.kind == ORDMA_RECOVERY_SILENCE);
  CHECK(act.threshold == 0);
  CHECK(m.rec.retries == 0);
  CHECK(m.nak(101).kind == ORDMA_RECOVERY_REWIND);
}

TEST_CASE("without an event, or on a QP that is not watched, there is no action") {
  for (unsigned type = 0; type < 256; ++type) {
    Machine m;
    const auto before = m.rec;
    const auto act = m.feed(type, 0x60, 200);
    const bool recovery = type >= ORDMA_EVENT_TYPE_QP_NAK && type <= ORDMA_EVENT_TYPE_QP_SILENCE;
    CHECK((act.kind != ORDMA_RECOVERY_NONE) == recovery);
    if (!recovery) CHECK(std::memcmp(&before, &m.rec, sizeof before) == 0);
    ordma_recovery_clear(&m.rec);
    CHECK(m.feed(type, 0x60, 201).kind == ORDMA_RECOVERY_NONE);
  }
  ordma_recovery fresh{};
  ordma_recovery_action act;
  ordma_event_info ev{};
  ev.type = ORDMA_EVENT_TYPE_QP_SILENCE;
  ordma_recovery_event(&fresh, &ev, 1, &act);
  CHECK(act.kind == ORDMA_RECOVERY_NONE);
}

TEST_CASE("a new life starts with full counters") {
  Machine m(1, 1);
  REQUIRE(m.silence(100).kind == ORDMA_RECOVERY_REWIND);
  REQUIRE(m.silence(100).kind == ORDMA_RECOVERY_FAIL);
  ordma_recovery_start(&m.rec, 50, 1, 1, 14);
  CHECK(m.silence(50).kind == ORDMA_RECOVERY_REWIND);
  CHECK(m.silence(50).kind == ORDMA_RECOVERY_FAIL);
  CHECK(m.rec.total_rewinds == 2);
}

TEST_CASE("new limits in SQD keep what was consumed") {
  Machine m(5);
  REQUIRE(m.silence(100).kind == ORDMA_RECOVERY_REWIND);
  REQUIRE(m.silence(100).kind == ORDMA_RECOVERY_REWIND);
  ordma_recovery_set(&m.rec, 2, 7, 14);
  CHECK(m.silence(100).kind == ORDMA_RECOVERY_FAIL);
}

TEST_CASE("random event sequences") {
  const auto seed = GENERATE(range(1u, ordma::test::last_seed(40)));
  INFO("seed " << seed);
  std::mt19937 rng(seed);
  const unsigned retry = rng() % 8, rnr = rng() % 8, timeout = rng() % 32;
  Machine m(retry, rnr, timeout, rng() & 0xffffff);
  std::uint32_t una = m.rec.una_psn;
  std::uint64_t now = 0;
  unsigned attempts = 0;  // rewinds since the last progress
  const unsigned limit = (retry + 1) * (rnr + 1);
  bool failed = false;
  for (int i = 0; i < 5000; ++i) {
    now += rng() % 2'000'000'000;
    const bool progress = rng() % 10 == 0;
    if (progress) una = (una + 1 + rng() % 1000) & 0xffffff;
    // Devices also err: sometimes an old PSN comes, which must not count as progress.
    const std::uint32_t psn = rng() % 20 == 0 ? (una - 1 - rng() % 1000) & 0xffffff : una;
    const unsigned type = rng() % 20;
    unsigned code = ORDMA_AETH_SYNDROME_NAK_PSN;
    if (type == ORDMA_EVENT_TYPE_QP_RNR) code = ORDMA_AETH_SYNDROME_RNR | rng() % 32;
    if (rng() % 50 == 0) code = rng() % 256;
    const auto before = m.rec;
    const auto act = m.feed(type, code, psn, now);
    const bool known = type >= ORDMA_EVENT_TYPE_QP_NAK && type <= ORDMA_EVENT_TYPE_QP_SILENCE;
    if (!known || failed) {
      REQUIRE(act.kind == ORDMA_RECOVERY_NONE);
      REQUIRE(std::memcmp(&before, &m.rec, sizeof before) == 0);
      continue;
    }
    REQUIRE(act.kind != ORDMA_RECOVERY_NONE);
    if (m.rec.una_psn != before.una_psn) {
      REQUIRE(m.rec.una_psn == psn);
      REQUIRE(ordma_index_diff(psn, before.una_psn) > 0);
      attempts = 0;
    }
    REQUIRE(m.rec.retries <= retry);
    REQUIRE(m.rec.rnr_retries <= rnr);
    if (act.kind == ORDMA_RECOVERY_REWIND) {
      REQUIRE(act.psn == psn);
      REQUIRE((act.not_before == 0 || act.not_before > now));
      const bool ordered_silence = type == ORDMA_EVENT_TYPE_QP_SILENCE && before.not_before &&
                                   now < before.not_before + ordma_timeout_ns(m.rec.timeout);
      if (!ordered_silence) ++attempts;
      if (rnr != ORDMA_RNR_FOREVER) REQUIRE(attempts <= limit);
    } else if (act.kind == ORDMA_RECOVERY_FAIL) {
      failed = true;
    } else {
      REQUIRE(timeout == 0);
      REQUIRE(type == ORDMA_EVENT_TYPE_QP_SILENCE);
    }
  }
}

// A NIC with one lost packet in simulated device time: it sweeps in steps, the CPU takes its turn.
TEST_CASE("time to give up on a dead peer: case_031, case_107") {
  const unsigned timeout = GENERATE(8u, 14u, 19u);
  const unsigned retry = GENERATE(0u, 2u, 7u);
  const std::uint64_t t = ordma_timeout_ns(static_cast<u8>(timeout));
  std::mt19937 rng(timeout * 8 + retry);
  Machine m(retry, 7, timeout);
  std::uint64_t now = 0, sent = 0;
  unsigned transmissions = 1;
  for (;;) {
    now += 1 + rng() % (t / 8);
    if (now < sent + t) continue;
    const auto act = m.silence(100, now);
    now += rng() % (t / 4);  // interrupt, decision, recovery ring
    if (act.kind == ORDMA_RECOVERY_FAIL) break;
    REQUIRE(act.kind == ORDMA_RECOVERY_REWIND);
    sent = now;
    ++transmissions;
  }
  CHECK(transmissions == retry + 1);
  CHECK(now >= (retry + 1) * t);
  CHECK(now <= 4 * (retry + 1) * t);
}
