// SPDX-License-Identifier: BSD-2-Clause
// Event ring: dispatch, bounds, hostile entries, and the path from an event to the recovery ring.
#include <catch2/catch.hpp>
#include <cstring>

#include "fake_nic.hpp"

using ordma::test::Call;
using ordma::test::Ev;
using ordma::test::FakeNic;

namespace {

using Calls = std::vector<Call>;

Ev make(unsigned type, std::uint32_t number = 0, unsigned code = 0) {
  Ev ev;
  ev.type = type;
  ev.number = number;
  ev.code = code;
  return ev;
}

struct Fixture {
  Fixture() { nic.bring_up(); }
  // A QP of the type in the table, in RTS with recovery running.
  ordma_qp* rts(std::uint32_t qpn, ordma_qp_type type = ORDMA_QP_TYPE_RC) {
    auto& qp = store[qpn];
    nic.make_qp(&qp, qpn, type);
    qp.state = ORDMA_QP_STATE_RTS;
    if (type == ORDMA_QP_TYPE_RC) ordma_recovery_start(&qp.rec, 10, 2, 2, 14);
    return &qp;
  }
  FakeNic nic;
  std::map<std::uint32_t, ordma_qp> store;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "each event type reaches its callback") {
  rts(5);
  nic.event(make(ORDMA_EVENT_TYPE_CQ_FIRE, 31));
  nic.event(make(ORDMA_EVENT_TYPE_CQ_ERROR, 1));
  nic.event(make(ORDMA_EVENT_TYPE_SRQ_LIMIT, 15));
  nic.event(make(ORDMA_EVENT_TYPE_SRQ_ERROR, 2));
  nic.event(make(ORDMA_EVENT_TYPE_PAGE_ERROR, 0, ORDMA_DB_ERR_STATE));
  nic.event(make(ORDMA_EVENT_TYPE_QP_ASYNC, 5, ORDMA_ASYNC_CODE_COMM_EST));
  nic.event(make(ORDMA_EVENT_TYPE_QP_ASYNC, 5, ORDMA_ASYNC_CODE_LAST_WQE));
  CHECK(ordma_core_events_pending(&nic.core));
  CHECK(nic.drain() == 7);
  CHECK_FALSE(ordma_core_events_pending(&nic.core));
  CHECK(nic.calls == Calls{{"cq_event", 31, 0},
                           {"cq_error", 1, 0},
                           {"srq_limit", 15, 0},
                           {"srq_error", 2, 0},
                           {"page_error", 0, ORDMA_DB_ERR_STATE},
                           {"qp_async", 5, ORDMA_ASYNC_COMM_EST},
                           {"qp_async", 5, ORDMA_ASYNC_QP_LAST_WQE}});
  CHECK(nic.core.stats.events == 7);
  CHECK(nic.core.stats.events_bad == 0);
  CHECK(nic.locked_qps == 0);
}

TEST_CASE_METHOD(Fixture, "numbers out of range, unknown types and codes are counted and ignored") {
  rts(5);
  const std::vector<Ev> bad = {
      make(ORDMA_EVENT_TYPE_CQ_FIRE, 0),
      make(ORDMA_EVENT_TYPE_CQ_FIRE, 32),
      make(ORDMA_EVENT_TYPE_CQ_ERROR, 0xffffff),
      make(ORDMA_EVENT_TYPE_SRQ_LIMIT, 16),
      make(ORDMA_EVENT_TYPE_SRQ_ERROR, 0),
      make(ORDMA_EVENT_TYPE_PAGE_ERROR, 16, 1),
      make(ORDMA_EVENT_TYPE_PAGE_ERROR, 1, 0),
      make(ORDMA_EVENT_TYPE_PAGE_ERROR, 1, 9),
      make(ORDMA_EVENT_TYPE_QP_ASYNC, 5, 0),
      make(ORDMA_EVENT_TYPE_QP_ASYNC, 5, 6),
      make(ORDMA_EVENT_TYPE_QP_ASYNC, 5, 255),
      make(ORDMA_EVENT_TYPE_QP_NAK, 64),
      make(ORDMA_EVENT_TYPE_QP_ERROR, 0x3fff),
      make(ORDMA_EVENT_TYPE_SQ_DRAINED, 0),
      make(0),
      make(15),
      make(255),
  };
  for (const auto& ev : bad) nic.event(ev);
  CHECK(nic.drain() == bad.size());
  CHECK(nic.calls.empty());
  CHECK(nic.core.stats.events_bad == bad.size());
  // A plausible number without an object is stale, not bad.
  nic.event(make(ORDMA_EVENT_TYPE_QP_SILENCE, 9));
  nic.event(make(ORDMA_EVENT_TYPE_QP_ASYNC, 5 | 1u << ORDMA_QPN_INDEX_BITS, 1));
  nic.drain();
  CHECK(nic.core.stats.events_bad == bad.size());
  CHECK(nic.core.stats.events_stale == 2);
  CHECK(nic.rcmd_rung == 0);
}

TEST_CASE_METHOD(Fixture, "the budget bounds the work, and the consumer index is told") {
  for (int i = 0; i < 10; ++i) nic.event(make(ORDMA_EVENT_TYPE_CQ_FIRE, 1));
  CHECK(ordma_core_poll_events(&nic.core, 0) == 0);
  CHECK(nic.regs[ORDMA_REG_EQ_CI] == 0);
  CHECK(ordma_core_poll_events(&nic.core, 4) == 4);
  CHECK(nic.regs[ORDMA_REG_EQ_CI] == 4);
  CHECK(ordma_core_poll_events(&nic.core, 100) == 6);
  CHECK(nic.regs[ORDMA_REG_EQ_CI] == 10);
  CHECK(ordma_core_poll_events(&nic.core, 100) == 0);
}

TEST_CASE_METHOD(Fixture, "many laps and the wrap of the index") {
  const auto log = nic.regs[ORDMA_REG_EQ_LOG];
  const std::uint32_t start = (1u << ORDMA_INDEX_BITS) - (2u << log);
  nic.core.eq_ci = nic.eq_pi = start;
  auto* ring = static_cast<ordma_event*>(nic.core.rings.eq.va);
  for (std::uint32_t i = 0; i < 1u << log; ++i) {
    ORDMA_SET(&ring[i], EVENT_PHASE, (start >> log) & 1);
  }
  std::mt19937 rng(3);
  std::uint64_t sent = 0, seen = 0;
  while (sent < 5u << log) {
    const auto burst = rng() % (1u << log);
    for (std::uint32_t i = 0; i < burst; ++i) nic.event(make(ORDMA_EVENT_TYPE_CQ_FIRE, 1));
    sent += burst;
    unsigned n;
    while ((n = ordma_core_poll_events(&nic.core, 1 + rng() % 300)) != 0) seen += n;
    REQUIRE(seen == sent);
    REQUIRE(nic.calls.size() == sent);
    REQUIRE(nic.regs[ORDMA_REG_EQ_CI] == nic.eq_pi);
  }
}

TEST_CASE_METHOD(Fixture, "an event becomes a recovery command") {
  auto* qp = rts(5);
  Ev ev = make(ORDMA_EVENT_TYPE_QP_NAK, 5, ORDMA_AETH_SYNDROME_NAK_PSN);
  ev.psn = 12;
  ev.log_index = 0xabcdef;
  nic.event(ev);
  nic.drain();
  nic.step();
  REQUIRE(nic.recovery.size() == 1);
  const auto* rewind = reinterpret_cast<const ordma_cmd_rewind*>(&nic.recovery[0]);
  CHECK(ORDMA_GET(&nic.recovery[0], CMD_OPCODE) == ORDMA_CMD_OP_QP_REWIND);
  CHECK(ORDMA_GET(&nic.recovery[0], CMD_NUMBER) == 5);
  CHECK(ORDMA_GET(rewind, CMD_REWIND_PSN) == 12);
  CHECK(ORDMA_GET(rewind, CMD_REWIND_LOG_INDEX) == 0xabcdef);
  CHECK(ORDMA_GET(rewind, CMD_REWIND_NOT_BEFORE) == 0);

  ev = make(ORDMA_EVENT_TYPE_QP_RNR, 5, ORDMA_AETH_SYNDROME_RNR | 1);
  ev.psn = 12;
  ev.time = 5000;
  nic.event(ev);
  nic.drain();
  nic.step();
  REQUIRE(nic.recovery.size() == 2);
  rewind = reinterpret_cast<const ordma_cmd_rewind*>(&nic.recovery[1]);
  CHECK(ORDMA_GET(rewind, CMD_REWIND_NOT_BEFORE) == 15000);

  ev = make(ORDMA_EVENT_TYPE_QP_NAK, 5, ORDMA_AETH_SYNDROME_NAK_ACCESS);
  ev.psn = 13;
  nic.event(ev);
  nic.drain();
  nic.step();
  REQUIRE(nic.recovery.size() == 3);
  const auto* fail = reinterpret_cast<const ordma_cmd_fail*>(&nic.recovery[2]);
  CHECK(ORDMA_GET(&nic.recovery[2], CMD_OPCODE) == ORDMA_CMD_OP_QP_FAIL);
  CHECK(ORDMA_GET(fail, CMD_FAIL_PSN) == 13);
  CHECK(ORDMA_GET(fail, CMD_FAIL_STATUS) == ORDMA_WC_STATUS_REM_ACCESS_ERR);
  CHECK(ORDMA_GET(fail, CMD_FAIL_VENDOR_ERR) == ORDMA_AETH_SYNDROME_NAK_ACCESS);

  CHECK(qp->state == ORDMA_QP_STATE_ERR);
  // Given up: silence until reset.
  nic.event(make(ORDMA_EVENT_TYPE_QP_SILENCE, 5));
  nic.drain();
  nic.step();
  CHECK(nic.recovery.size() == 3);

  ordma_recovery_start(&qp->rec, 0, 7, 7, 0);
  nic.event(make(ORDMA_EVENT_TYPE_QP_SILENCE, 5));
  nic.drain();
  nic.step();
  REQUIRE(nic.recovery.size() == 4);
  const auto* silence = reinterpret_cast<const ordma_cmd_silence*>(&nic.recovery[3]);
  CHECK(ORDMA_GET(&nic.recovery[3], CMD_OPCODE) == ORDMA_CMD_OP_QP_SILENCE);
  CHECK(ORDMA_GET(silence, CMD_SILENCE_THRESHOLD) == 0);
  CHECK(nic.core.stats.recovery_events == 5);
  CHECK(nic.core.stats.rewinds == 2);
  CHECK(nic.core.stats.fails == 1);
  CHECK(nic.core.stats.silences == 1);
}

TEST_CASE_METHOD(Fixture, "the recovery ring holds one command of every QP of the table") {
  // The worst that the sticky bit allows, three times over; the fake device throws on an overflow.
  for (std::uint32_t lap = 1; lap <= 3; ++lap) {
    for (std::uint32_t qpn = 2; qpn < 64; ++qpn) {
      if (lap == 1) rts(qpn);
      Ev ev = make(ORDMA_EVENT_TYPE_QP_NAK, qpn, ORDMA_AETH_SYNDROME_NAK_PSN);
      ev.psn = 10 + lap;
      nic.event(ev);
    }
    nic.drain();
    nic.step();
    CHECK(nic.recovery.size() == 62 * lap);
  }
}

TEST_CASE_METHOD(Fixture, "recovery does not run for a QP that does not send") {
  auto* qp = rts(5);
  ordma_qp_to_error(qp, ORDMA_QP_STATE_ERR);
  rts(6, ORDMA_QP_TYPE_UC);
  nic.event(make(ORDMA_EVENT_TYPE_QP_SILENCE, 5));
  nic.event(make(ORDMA_EVENT_TYPE_QP_NAK, 6, ORDMA_AETH_SYNDROME_NAK_PSN));
  nic.drain();
  nic.step();
  CHECK(nic.recovery.empty());
  CHECK(nic.locked_qps == 0);
}

TEST_CASE_METHOD(Fixture, "errors move the QP to the state that its type has") {
  auto* rc = rts(5);
  auto* ud = rts(6, ORDMA_QP_TYPE_UD);
  auto* uc = rts(7, ORDMA_QP_TYPE_UC);
  auto* gsi = rts(1, ORDMA_QP_TYPE_GSI);
  auto* idle = rts(8, ORDMA_QP_TYPE_UD);
  idle->state = ORDMA_QP_STATE_RTR;
  for (const std::uint32_t qpn : {5u, 6u, 7u, 1u, 8u}) {
    nic.event(make(ORDMA_EVENT_TYPE_QP_ERROR, qpn, ORDMA_WC_STATUS_LOC_PROT_ERR));
  }
  nic.drain();
  CHECK(rc->state == ORDMA_QP_STATE_ERR);
  CHECK(rc->rec.active == 0);
  CHECK(ud->state == ORDMA_QP_STATE_SQE);
  CHECK(uc->state == ORDMA_QP_STATE_SQE);
  CHECK(gsi->state == ORDMA_QP_STATE_SQE);
  CHECK(idle->state == ORDMA_QP_STATE_ERR);
  CHECK(nic.calls.empty());
}

TEST_CASE_METHOD(Fixture, "a responder error of an RC QP: case_003") {
  auto* rc = rts(5);
  auto* ud = rts(6, ORDMA_QP_TYPE_UD);
  nic.event(make(ORDMA_EVENT_TYPE_QP_ASYNC, 5, ORDMA_ASYNC_CODE_ACCESS_ERR));
  nic.event(make(ORDMA_EVENT_TYPE_QP_ASYNC, 6, ORDMA_ASYNC_CODE_FATAL));
  nic.drain();
  CHECK(rc->state == ORDMA_QP_STATE_ERR);
  CHECK(ud->state == ORDMA_QP_STATE_RTS);
  CHECK(nic.calls ==
        Calls{{"qp_async", 5, ORDMA_ASYNC_QP_ACCESS_ERR}, {"qp_async", 6, ORDMA_ASYNC_QP_FATAL}});
}

TEST_CASE_METHOD(Fixture, "events of an earlier life are dropped") {
  auto* qp = rts(5);
  Ev ev = make(ORDMA_EVENT_TYPE_QP_NAK, 5, ORDMA_AETH_SYNDROME_NAK_PSN);
  ev.psn = 20;
  nic.event(ev);
  nic.event(make(ORDMA_EVENT_TYPE_QP_ASYNC, 5, ORDMA_ASYNC_CODE_COMM_EST));
  nic.event(make(ORDMA_EVENT_TYPE_QP_ERROR, 5, ORDMA_WC_STATUS_LOC_PROT_ERR));
  // The reset completes before the interrupt handler came to those events.
  ordma_qp_attr attr{};
  attr.qp_state = ORDMA_QP_STATE_RESET;
  ordma_qp_modify mod{};
  REQUIRE(ordma_qp_modify_check(&nic.core, qp, &attr, ORDMA_ATTR_STATE, &mod) == 0);
  ordma_qp_modify_done(&nic.core, qp, &mod);
  qp->state = ORDMA_QP_STATE_RTS;
  ordma_recovery_start(&qp->rec, 0, 7, 7, 14);
  CHECK(nic.drain() == 3);
  nic.step();
  CHECK(nic.calls.empty());
  CHECK(nic.recovery.empty());
  CHECK(qp->state == ORDMA_QP_STATE_RTS);
  CHECK(nic.core.stats.events_stale == 3);
  // What comes now belongs to the new life.
  nic.event(ev);
  nic.drain();
  nic.step();
  CHECK(nic.recovery.size() == 1);
}

TEST_CASE_METHOD(Fixture, "SQ_DRAINED is told once, to who asked, also before done") {
  auto* qp = rts(5);
  ordma_qp_attr attr{};
  attr.qp_state = ORDMA_QP_STATE_SQD;
  attr.en_sqd_async_notify = GENERATE(0, 1);
  ordma_qp_modify mod{};
  ordma_qpc image;
  ordma_cmd cmd;
  REQUIRE(ordma_qp_modify_check(&nic.core, qp, &attr,
                                ORDMA_ATTR_STATE | ORDMA_ATTR_EN_SQD_ASYNC_NOTIFY, &mod) == 0);
  ordma_qp_modify_cmd(qp, &mod, &image, 0x1000, &cmd);
  const bool early = GENERATE(false, true);
  if (!early) ordma_qp_modify_done(&nic.core, qp, &mod);
  nic.event(make(ORDMA_EVENT_TYPE_SQ_DRAINED, 5));
  nic.drain();
  if (early) ordma_qp_modify_done(&nic.core, qp, &mod);
  CHECK(qp->state == ORDMA_QP_STATE_SQD);
  nic.event(make(ORDMA_EVENT_TYPE_SQ_DRAINED, 5));
  nic.drain();
  if (attr.en_sqd_async_notify) {
    CHECK(nic.calls == Calls{{"qp_async", 5, ORDMA_ASYNC_SQ_DRAINED}});
  } else {
    CHECK(nic.calls.empty());
  }
}

TEST_CASE_METHOD(Fixture, "the link is read after the event was given back") {
  nic.regs[ORDMA_REG_STATUS] |= 4;
  nic.event(make(ORDMA_EVENT_TYPE_PORT));
  nic.event(make(ORDMA_EVENT_TYPE_PORT));
  nic.drain();
  CHECK(nic.calls == Calls{{"port_event", 1, 0}});
  nic.event(make(ORDMA_EVENT_TYPE_PORT));
  nic.drain();
  CHECK(nic.calls.size() == 1);
  nic.regs[ORDMA_REG_STATUS] &= ~4ull;
  nic.event(make(ORDMA_EVENT_TYPE_PORT));
  nic.drain();
  CHECK(nic.calls.back() == Call{"port_event", 0, 0});
}

TEST_CASE_METHOD(Fixture, "random words in the ring") {
  const auto seed = GENERATE(range(1u, ordma::test::last_seed(20)));
  INFO("seed " << seed);
  std::mt19937_64 rng(seed);
  for (std::uint32_t qpn = 2; qpn < 20; ++qpn) {
    rts(qpn, qpn % 3 ? ORDMA_QP_TYPE_RC : qpn % 2 ? ORDMA_QP_TYPE_UC : ORDMA_QP_TYPE_UD);
  }
  std::uint64_t written = 0;
  for (int i = 0; i < 3000; ++i) {
    std::uint64_t w[3] = {rng(), rng(), rng()};
    // Half of them nearly plausible, so that the deeper checks are reached too.
    if (rng() % 2) w[0] = (w[0] & 0x1f0000ff0f) % 0x2000001000;
    nic.raw_event(w);
    ++written;
    if (rng() % 50 == 0) nic.drain();
    if (rng() % 50 == 0) nic.step();
  }
  nic.drain();
  nic.step();
  CHECK(nic.core.stats.events == written);
  CHECK(nic.locked_qps == 0);
  for (const auto& call : nic.calls) {
    if (call.what == "cq_event" || call.what == "cq_error") REQUIRE((call.a && call.a < 32));
    if (call.what == "srq_limit" || call.what == "srq_error") REQUIRE((call.a && call.a < 16));
    if (call.what == "page_error") REQUIRE((call.a < 16 && call.b && call.b <= 8));
    if (call.what == "qp_async") REQUIRE(nic.qps.contains(static_cast<std::uint32_t>(call.a)));
    if (call.what == "cmd_done") REQUIRE(call.a < ORDMA_CMD_SLOTS);
  }
  for (const auto& cmd : nic.recovery) {
    const auto qpn = static_cast<std::uint32_t>(ORDMA_GET(&cmd, CMD_NUMBER));
    REQUIRE(nic.qps.contains(qpn));
    REQUIRE(store[qpn].init.type == ORDMA_QP_TYPE_RC);
    REQUIRE(ORDMA_GET(&cmd, CMD_OPCODE) >= ORDMA_CMD_OP_QP_REWIND);
  }
  CHECK_FALSE(nic.recovery.empty());
  CHECK_FALSE(nic.calls.empty());
}
