// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <catch2/catch.hpp>

#include "fake_nic.hpp"

extern "C" {
#include "core_priv.h"
}

using ordma::test::Call;
using ordma::test::DmaBlock;
using ordma::test::Ev;
using ordma::test::FakeNic;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::size_t count_calls(const FakeNic& nic, const std::string& what) {
  return static_cast<std::size_t>(std::count_if(nic.calls.begin(), nic.calls.end(),
                                                [&](const Call& c) { return c.what == what; }));
}

}  // namespace

TEST_CASE("probe fills the limits from the registers") {
  FakeNic nic;
  std::string message;
  REQUIRE(nic.probe(&message) == 0);
  CHECK(message.empty());
  CHECK(nic.core.caps.max_qp == 64);
  CHECK(nic.core.caps.max_cq == 32);
  CHECK(nic.core.caps.max_srq == 16);
  CHECK(nic.core.caps.max_mr == 128);
  CHECK(nic.core.caps.max_page == 16);
  CHECK(nic.core.caps.max_uctx == 8);
  CHECK(nic.core.caps.max_sge == 16);
  CHECK(nic.core.caps.max_inline == 448);
  CHECK(nic.core.caps.max_wr == 16384);
  CHECK(nic.core.caps.max_cqe == 1u << 20);
  CHECK(nic.core.caps.max_rd_atomic == 16);
  CHECK(nic.core.caps.max_gid == 64);
  CHECK(nic.core.caps.max_mcast == 16);
  CHECK(nic.core.caps.port_mtu == 4200);
  CHECK(nic.core.caps.port_speed == 100000);
  CHECK(nic.core.caps.engine == ORDMA_ENGINE_TWIN);
  CHECK(nic.core.caps.build == 7);
  CHECK(nic.core.caps.mac == 0x060504030202);
  CHECK(nic.core.caps.guid == 0x0202030405060708);
}

TEST_CASE("probe refuses what is not this device, in one line with both values") {
  FakeNic nic;
  std::string message;

  SECTION("magic") {
    nic.regs[ORDMA_REG_MAGIC] = ~0ull;
    REQUIRE(nic.probe(&message) == -ENODEV);
    CHECK(message == "not an ordma device: magic 0xffffffffffffffff, expected 0x30414d44524f");
  }
  SECTION("zero magic") {
    nic.regs[ORDMA_REG_MAGIC] = 0;
    REQUIRE(nic.probe(&message) == -ENODEV);
    CHECK(message == "not an ordma device: magic 0x0, expected 0x30414d44524f");
  }
  SECTION("major version") {
    nic.regs[ORDMA_REG_VERSION] = ((ORDMA_CONTRACT_MAJOR + 12u) << 16) | 34;
    REQUIRE(nic.probe(&message) == -ENODEV);
    CHECK(message == "device speaks contract 12.34, driver speaks 0.1");
  }
  SECTION("another minor version is taken") {
    nic.regs[ORDMA_REG_VERSION] = (ORDMA_CONTRACT_MAJOR << 16) | 99;
    REQUIRE(nic.probe(&message) == 0);
    CHECK(nic.core.caps.minor == 99);
  }
  SECTION("impossible limit") {
    nic.regs[ORDMA_REG_MAX_CQ] = 1;
    REQUIRE(nic.probe(&message) == -ENODEV);
    CHECK(message == "device limit MAX_CQ is 1, at least 2 is needed");
  }
  SECTION("no GUID: case_083") {
    nic.regs[ORDMA_REG_GUID] = 0;
    REQUIRE(nic.probe(&message) == -ENODEV);
    CHECK(message == "device has no node GUID");
  }
  SECTION("a short buffer is cut, not overrun") {
    char text[8] = "xxxxxxx";
    nic.regs[ORDMA_REG_MAGIC] = 1;
    REQUIRE(ordma_core_probe(&nic.core, FakeNic::ops(), &nic, text, 5) == -ENODEV);
    CHECK(std::string(text) == "not ");
    CHECK(text[5] == 'x');
    REQUIRE(ordma_core_probe(&nic.core, FakeNic::ops(), &nic, nullptr, 0) == -ENODEV);
  }
}

TEST_CASE("every limit register at zero or all ones is survived") {
  for (std::uint32_t reg = ORDMA_REG_MAX_QP; reg <= ORDMA_REG_PORT_SPEED; reg += 4) {
    for (const std::uint64_t value : {0ull, 1ull, 2ull, 0x7fffffffull, 0xffffffffull}) {
      FakeNic nic;
      nic.regs[reg] = value;
      const int err = nic.probe();
      INFO("register " << reg << " value " << value);
      REQUIRE((err == 0 || err == -ENODEV));
      if (err) continue;
      CHECK(nic.core.caps.max_qp <= 1u << ORDMA_QPN_INDEX_BITS);
      CHECK(nic.core.caps.max_mr <= 1u << ORDMA_MKEY_INDEX_BITS);
      CHECK(nic.core.caps.max_gid <= ORDMA_GID_MAX);
      CHECK(nic.core.caps.max_sge <= 28);
      CHECK(nic.core.caps.max_inline <= 448);
      CHECK(nic.core.caps.max_wr <= 1u << 15);
      CHECK(nic.core.caps.max_cqe <= 1u << 23);
      CHECK(ordma_core_eq_bytes(&nic.core) <= 4u << 20);
      CHECK(ordma_core_rcmd_bytes(&nic.core) <= 1u << 20);
      nic.bring_up();
    }
  }
}

TEST_CASE("queue limits are powers of two") {
  FakeNic nic;
  nic.regs[ORDMA_REG_MAX_WR] = 10000;
  nic.regs[ORDMA_REG_MAX_CQE] = 5;
  REQUIRE(nic.probe() == 0);
  CHECK(nic.core.caps.max_wr == 8192);
  CHECK(nic.core.caps.max_cqe == 4);
}

TEST_CASE("rings are sized to their sources") {
  FakeNic nic;
  nic.regs[ORDMA_REG_MAX_QP] = 4096;
  nic.regs[ORDMA_REG_MAX_CQ] = 4096;
  nic.regs[ORDMA_REG_MAX_SRQ] = 1024;
  nic.regs[ORDMA_REG_MAX_PAGE] = 1024;
  REQUIRE(nic.probe() == 0);
  CHECK(nic.core.caps.max_qp == 4096);
  const std::size_t entries = ordma_core_eq_bytes(&nic.core) / ORDMA_EVENT_BYTES;
  const std::size_t bounded = 4096 * 6 + 4096 + 2 * 1024 + 1024 + ORDMA_CMD_SLOTS + 1;
  CHECK(entries >= 2 * bounded);
  CHECK(ordma_core_rcmd_bytes(&nic.core) == 4096 * ORDMA_CMD_BYTES);

  SECTION("a device with too many sources loses objects, not events") {
    nic.regs[ORDMA_REG_MAX_QP] = 1u << 30;
    nic.regs[ORDMA_REG_MAX_CQ] = 1u << 30;
    nic.regs[ORDMA_REG_MAX_SRQ] = 1u << 30;
    REQUIRE(nic.probe() == 0);
    const auto& c = nic.core.caps;
    const std::size_t sources =
        c.max_qp * 6 + c.max_cq + 2 * c.max_srq + c.max_page + ORDMA_CMD_SLOTS + 1;
    CHECK(ordma_core_eq_bytes(&nic.core) / ORDMA_EVENT_BYTES >= 2 * sources);
    CHECK(ordma_core_eq_bytes(&nic.core) <= 4u << 20);
    CHECK(c.max_qp >= 1024);
  }
}

TEST_CASE("rings that are too small or not aligned are refused") {
  FakeNic nic;
  REQUIRE(nic.probe() == 0);
  const DmaBlock cmd(ordma_core_cmd_bytes(&nic.core)), rsp(ordma_core_rsp_bytes(&nic.core));
  const DmaBlock rcmd(ordma_core_rcmd_bytes(&nic.core)), eq(ordma_core_eq_bytes(&nic.core));
  const ordma_core_rings good{cmd.mem, rsp.mem, rcmd.mem, eq.mem};
  REQUIRE(ordma_core_start(&nic.core) == -EINVAL);
  for (int which = 0; which < 4; ++which) {
    for (int fault = 0; fault < 3; ++fault) {
      ordma_core_rings rings = good;
      ordma_mem* mem[] = {&rings.cmd, &rings.rsp, &rings.rcmd, &rings.eq};
      if (fault == 0) mem[which]->len -= 1;
      if (fault == 1) mem[which]->dma += 64;
      if (fault == 2) mem[which]->va = nullptr;
      CHECK(ordma_core_set_rings(&nic.core, &rings) == -EINVAL);
    }
  }
  CHECK(ordma_core_set_rings(&nic.core, &good) == 0);
}

TEST_CASE("reset uses a new nonce and polls the echo") {
  FakeNic nic;
  nic.auto_reset = false;
  REQUIRE(nic.probe() == 0);
  nic.set_rings();
  ordma_core_reset_begin(&nic.core);
  const auto nonce = nic.regs[ORDMA_REG_RESET];
  CHECK(nonce != 0);
  CHECK(nonce != nic.regs[ORDMA_REG_RESET_ECHO]);
  CHECK(nic.regs[ORDMA_REG_ENABLE] == 0);
  CHECK(ordma_core_reset_done(&nic.core) == -EINPROGRESS);
  nic.regs[ORDMA_REG_RESET_ECHO] = nonce ^ 4;
  CHECK(ordma_core_reset_done(&nic.core) == -EINPROGRESS);
  nic.regs[ORDMA_REG_RESET_ECHO] = ~0ull;
  CHECK(ordma_core_reset_done(&nic.core) == -EIO);
  nic.regs[ORDMA_REG_RESET_ECHO] = nonce;
  CHECK(ordma_core_reset_done(&nic.core) == 0);

  SECTION("even when the random numbers repeat") {
    nic.rng.seed(1);
    (void)nic.rng();
    nic.rng.seed(1);
    for (int i = 0; i < 4; ++i) {
      nic.rng.seed(1);
      nic.regs[ORDMA_REG_RESET_ECHO] = nic.regs[ORDMA_REG_RESET];
      const auto old = nic.regs[ORDMA_REG_RESET_ECHO];
      ordma_core_reset_begin(&nic.core);
      CHECK(nic.regs[ORDMA_REG_RESET] != old);
    }
  }
}

TEST_CASE("start programs the rings and waits for ready") {
  FakeNic nic;
  nic.bring_up();
  CHECK(nic.regs[ORDMA_REG_CMD_BASE] == nic.core.rings.cmd.dma);
  CHECK(nic.regs[ORDMA_REG_CMD_RSP] == nic.core.rings.rsp.dma);
  CHECK(nic.regs[ORDMA_REG_RCMD_BASE] == nic.core.rings.rcmd.dma);
  CHECK(nic.regs[ORDMA_REG_EQ_BASE] == nic.core.rings.eq.dma);
  CHECK(nic.regs[ORDMA_REG_CMD_LOG] == ORDMA_CMD_RING_LOG);
  CHECK(nic.regs[ORDMA_REG_RCMD_LOG] == 6);
  CHECK((std::size_t{ORDMA_EVENT_BYTES} << nic.regs[ORDMA_REG_EQ_LOG]) ==
        ordma_core_eq_bytes(&nic.core));
  CHECK(nic.regs[ORDMA_REG_ENABLE] == 1);
  // No entry may look valid before the device wrote it.
  CHECK_FALSE(ordma_core_events_pending(&nic.core));

  nic.regs[ORDMA_REG_STATUS] = 0;
  CHECK(ordma_core_start_done(&nic.core) == -EINPROGRESS);
  nic.regs[ORDMA_REG_STATUS] = 3;
  CHECK(ordma_core_start_done(&nic.core) == -EIO);
  nic.regs[ORDMA_REG_STATUS] = ~0ull;
  CHECK(ordma_core_start_done(&nic.core) == -EIO);
}

TEST_CASE("stop ends when ready is gone, and the device can start again") {
  FakeNic nic;
  nic.bring_up();
  ordma_core_stop(&nic.core);
  CHECK(nic.regs[ORDMA_REG_ENABLE] == 0);
  CHECK(ordma_core_stop_done(&nic.core) == 0);
  nic.regs[ORDMA_REG_STATUS] |= 1;
  CHECK(ordma_core_stop_done(&nic.core) == -EINPROGRESS);
  nic.regs[ORDMA_REG_STATUS] = ~0ull;
  CHECK(ordma_core_stop_done(&nic.core) == 0);

  ordma_cmd cmd;
  std::uint32_t ticket = 0;
  ordma_cmd_nop(&cmd);
  CHECK(ordma_cmd_submit(&nic.core, &cmd, false, &ticket) == -EIO);

  nic.regs[ORDMA_REG_STATUS] = 0;
  ordma_core_reset_begin(&nic.core);
  REQUIRE(ordma_core_reset_done(&nic.core) == 0);
  REQUIRE(ordma_core_start(&nic.core) == 0);
  REQUIRE(ordma_core_start_done(&nic.core) == 0);
  CHECK_FALSE(ordma_core_dead(&nic.core));
  CHECK_FALSE(ordma_core_gid_ok(&nic.core, 0));
  CHECK(nic.run(cmd) == 0);
}

TEST_CASE("watchdog: case_107") {
  FakeNic nic;
  nic.bring_up();
  nic.regs[ORDMA_REG_CLOCK] = 1000;
  REQUIRE(ordma_core_check(&nic.core, 10 * kSecond) == 0);
  CHECK(nic.calls == std::vector<Call>{{"port_event", 0, 0}});
  nic.calls.clear();

  SECTION("a moving clock lives for ever") {
    for (std::uint64_t t = 10; t < 100; t += 4) {
      nic.regs[ORDMA_REG_CLOCK] += 1;
      REQUIRE(ordma_core_check(&nic.core, t * kSecond) == 0);
    }
    CHECK(nic.calls.empty());
  }
  SECTION("a clock that stands still for CLOCK_STALL_MS is fatal, once") {
    REQUIRE(ordma_core_check(&nic.core, 15 * kSecond - 1) == 0);
    CHECK(ordma_core_check(&nic.core, 15 * kSecond) == -EIO);
    CHECK(ordma_core_check(&nic.core, 16 * kSecond) == -EIO);
    CHECK(nic.calls == std::vector<Call>{{"fatal", ORDMA_FATAL_CLOCK, 0}});
    CHECK(ordma_core_dead(&nic.core));
  }
  SECTION("host time that jumps back is no stall") {
    REQUIRE(ordma_core_check(&nic.core, 2 * kSecond) == 0);
    REQUIRE(ordma_core_check(&nic.core, 6 * kSecond) == 0);
    CHECK(ordma_core_check(&nic.core, 7 * kSecond) == -EIO);
  }
  SECTION("the device says fatal") {
    nic.regs[ORDMA_REG_STATUS] |= 2 | (ORDMA_FATAL_DMA << 8);
    CHECK(ordma_core_check(&nic.core, 11 * kSecond) == -EIO);
    CHECK(nic.calls == std::vector<Call>{{"fatal", ORDMA_FATAL_DMA, 0}});
  }
  SECTION("the device says fatal for a reason that does not exist") {
    nic.regs[ORDMA_REG_STATUS] |= 2 | 0xee00;
    CHECK(ordma_core_check(&nic.core, 11 * kSecond) == -EIO);
    CHECK(nic.calls == std::vector<Call>{{"fatal", ORDMA_FATAL_INTERNAL, 0}});
  }
  SECTION("the device is gone") {
    nic.regs[ORDMA_REG_STATUS] = ~0ull;
    CHECK(ordma_core_check(&nic.core, 11 * kSecond) == -EIO);
    CHECK(nic.calls == std::vector<Call>{{"fatal", ORDMA_FATAL_INTERNAL, 0}});
    CHECK_FALSE(ordma_core_link_up(&nic.core));
  }
  SECTION("a link change without event is told once") {
    nic.regs[ORDMA_REG_STATUS] |= 4;
    nic.regs[ORDMA_REG_CLOCK] += 1;
    REQUIRE(ordma_core_check(&nic.core, 11 * kSecond) == 0);
    REQUIRE(ordma_core_check(&nic.core, 12 * kSecond) == 0);
    CHECK(nic.calls == std::vector<Call>{{"port_event", 1, 0}});
    CHECK(ordma_core_link_up(&nic.core));
  }
  SECTION("two causes at the same time are one report") {
    ordma_core_fatal(&nic.core, ORDMA_FATAL_DMA);
    ordma_core_fatal(&nic.core, ORDMA_FATAL_CMD);
    CHECK(nic.calls == std::vector<Call>{{"fatal", ORDMA_FATAL_DMA, 0}});
  }
  SECTION("mark_dead alone reports nothing") {
    ordma_core_mark_dead(&nic.core);
    CHECK(ordma_core_check(&nic.core, 11 * kSecond) == -EIO);
    CHECK(count_calls(nic, "fatal") == 0);
  }
}

TEST_CASE("link control, MTU and vectors are clamped to what exists") {
  FakeNic nic;
  nic.bring_up();
  ordma_core_set_link(&nic.core, true);
  CHECK(nic.regs[ORDMA_REG_LINK_CTRL] == 1);
  ordma_core_set_link(&nic.core, false);
  CHECK(nic.regs[ORDMA_REG_LINK_CTRL] == 0);
  ordma_core_set_active_mtu(&nic.core, 0);
  CHECK(nic.core.active_mtu == 1);
  ordma_core_set_active_mtu(&nic.core, 9);
  CHECK(nic.core.active_mtu == 5);
  ordma_core_set_vectors(&nic.core, 0);
  CHECK(nic.core.num_vectors == 1);
  nic.regs[ORDMA_REG_CLOCK] = 77;
  CHECK(ordma_core_clock(&nic.core) == 77);
}

TEST_CASE("GID notes beyond the table are ignored") {
  FakeNic nic;
  nic.bring_up();
  ordma_core_gid_note(&nic.core, 63, true, false);
  CHECK(ordma_core_gid_ok(&nic.core, 63));
  CHECK_FALSE(ordma_core_gid_is_ipv4(&nic.core, 63));
  ordma_core_gid_note(&nic.core, 64, true, true);
  CHECK_FALSE(ordma_core_gid_ok(&nic.core, 64));
  ordma_core_gid_note(&nic.core, 63, false, false);
  CHECK_FALSE(ordma_core_gid_ok(&nic.core, 63));
}
