// SPDX-License-Identifier: BSD-2-Clause
#include "fake_nic.hpp"

#include <array>
#include <cstring>
#include <stdexcept>

namespace ordma::test {
namespace {

constexpr std::uint32_t kIndexMask = (1u << ORDMA_INDEX_BITS) - 1;

FakeNic& nic_of(void* ctx) { return *static_cast<FakeNic*>(ctx); }

void on_doorbell(void* ctx, u32 slot, u64 word) {
  auto& nic = nic_of(ctx);
  nic.doorbells.push_back(word);
  const auto index = static_cast<std::uint32_t>(ORDMA_WGET(word, DB_INDEX));
  const auto kind = ORDMA_WGET(word, DB_KIND);
  if (kind == ORDMA_DB_KIND_CMD && slot == ORDMA_DRIVER_SLOT_CMD) {
    nic.cmd_rung = index;
  } else if (kind == ORDMA_DB_KIND_RCMD && slot == ORDMA_DRIVER_SLOT_RCMD) {
    nic.rcmd_rung = index;
  } else {
    throw std::logic_error("doorbell of a kind or slot that the core does not own");
  }
}

void on_write64(void* ctx, u32 offset, u64 value) {
  auto& nic = nic_of(ctx);
  nic.regs[offset] = value;
  if (offset == ORDMA_REG_RESET && nic.auto_reset) nic.regs[ORDMA_REG_RESET_ECHO] = value;
  if (offset == ORDMA_REG_ENABLE) {
    auto& status = nic.regs[ORDMA_REG_STATUS];
    status = (status & ~1ull) | (value & 1);
    if (value) nic.cmd_rung = nic.cmd_done = nic.rcmd_rung = nic.rcmd_done = nic.eq_pi = 0;
  }
}

ordma_qp* on_find(void* ctx, u32 qpn) {
  auto& nic = nic_of(ctx);
  const auto it = nic.qps.find(qpn);
  if (it == nic.qps.end()) return nullptr;
  ++nic.locked_qps;
  return it->second;
}

void record(void* ctx, const char* what, std::uint64_t a = 0, std::uint64_t b = 0) {
  auto& nic = nic_of(ctx);
  // The core promises that no QP is locked when it calls up.
  if (nic.locked_qps != 0) throw std::logic_error("upward call with a QP locked");
  nic.calls.push_back({what, a, b});
}

}  // namespace

unsigned last_seed(unsigned n) {
  const char* scale = std::getenv("ORDMA_TEST_SCALE");
  const std::string tier = scale ? scale : "fast";
  if (tier == "soak") return 200 * n + 1;
  return (tier == "check" ? 5 * n : n) + 1;
}

DmaBlock::DmaBlock(std::size_t bytes) {
  const std::size_t size = (bytes + 4095) & ~std::size_t{4095};
  block_.reset(std::aligned_alloc(4096, size));
  if (!block_) throw std::bad_alloc();
  std::memset(block_.get(), 0xa5, size);
  mem.va = block_.get();
  mem.dma = reinterpret_cast<std::uintptr_t>(block_.get());
  mem.len = bytes;
}

const ordma_core_ops* FakeNic::ops() {
  static const ordma_core_ops kOps = {
      .reg_write32 = [](void* c, u32 o, u32 v) { nic_of(c).regs[o] = v; },
      .reg_write64 = on_write64,
      .reg_read32 = [](void* c, u32 o) { return static_cast<u32>(nic_of(c).regs[o]); },
      .reg_read64 = [](void* c, u32 o) -> u64 { return nic_of(c).regs[o]; },
      .doorbell = on_doorbell,
      .random32 = [](void* c) { return static_cast<u32>(nic_of(c).rng()); },
      .cmd_done = [](void* c, u32 slot) { record(c, "cmd_done", slot); },
      .cq_event = [](void* c, u32 cqn) { record(c, "cq_event", cqn); },
      .cq_error = [](void* c, u32 cqn) { record(c, "cq_error", cqn); },
      .qp_async = [](void* c, u32 qpn, ordma_async a) { record(c, "qp_async", qpn, a); },
      .srq_limit = [](void* c, u32 srqn) { record(c, "srq_limit", srqn); },
      .srq_error = [](void* c, u32 srqn) { record(c, "srq_error", srqn); },
      .page_error = [](void* c, u32 p, ordma_db_err e) { record(c, "page_error", p, e); },
      .port_event = [](void* c, bool up) { record(c, "port_event", up); },
      .fatal = [](void* c, ordma_fatal reason) { record(c, "fatal", reason); },
      .qp_find = on_find,
      .qp_put = [](void* c, ordma_qp*) { --nic_of(c).locked_qps; },
  };
  return &kOps;
}

FakeNic::FakeNic() {
  regs[ORDMA_REG_MAGIC] = ORDMA_MAGIC;
  regs[ORDMA_REG_VERSION] = (ORDMA_CONTRACT_MAJOR << 16) | ORDMA_CONTRACT_MINOR;
  regs[ORDMA_REG_BUILD] = (std::uint64_t{ORDMA_ENGINE_TWIN} << 32) | 7;
  regs[ORDMA_REG_CAPS] = 0xfff;
  regs[ORDMA_REG_MAX_QP] = 64;
  regs[ORDMA_REG_MAX_CQ] = 32;
  regs[ORDMA_REG_MAX_SRQ] = 16;
  regs[ORDMA_REG_MAX_MR] = 128;
  regs[ORDMA_REG_MAX_PAGE] = 16;
  regs[ORDMA_REG_MAX_UCTX] = 8;
  regs[ORDMA_REG_MAX_SGE] = 16;
  regs[ORDMA_REG_MAX_INLINE] = 448;
  regs[ORDMA_REG_MAX_WR] = 16384;
  regs[ORDMA_REG_MAX_CQE] = 1u << 20;
  regs[ORDMA_REG_MAX_RD_ATOMIC] = 16;
  regs[ORDMA_REG_MAX_GID] = 64;
  regs[ORDMA_REG_MAX_MCAST] = 16;
  regs[ORDMA_REG_PORT_MTU] = 4200;
  regs[ORDMA_REG_PORT_SPEED] = 100000;
  regs[ORDMA_REG_MAC] = 0x060504030202;
  regs[ORDMA_REG_GUID] = 0x0202030405060708;
}

int FakeNic::probe(std::string* message) {
  std::array<char, 128> text{};
  const int err = ordma_core_probe(&core, ops(), this, text.data(), text.size());
  if (message) *message = text.data();
  return err;
}

void FakeNic::set_rings() {
  ordma_core_rings rings{};
  blocks_.clear();
  blocks_.reserve(4);
  rings.cmd = blocks_.emplace_back(ordma_core_cmd_bytes(&core)).mem;
  rings.rsp = blocks_.emplace_back(ordma_core_rsp_bytes(&core)).mem;
  rings.rcmd = blocks_.emplace_back(ordma_core_rcmd_bytes(&core)).mem;
  rings.eq = blocks_.emplace_back(ordma_core_eq_bytes(&core)).mem;
  if (ordma_core_set_rings(&core, &rings)) throw std::logic_error("rings refused");
}

void FakeNic::bring_up() {
  if (probe()) throw std::logic_error("probe failed");
  set_rings();
  ordma_core_reset_begin(&core);
  if (ordma_core_reset_done(&core)) throw std::logic_error("reset failed");
  if (ordma_core_start(&core) || ordma_core_start_done(&core)) throw std::logic_error("no start");
  ordma_core_set_active_mtu(&core, 5);
  ordma_core_gid_note(&core, 0, true, true);
  ordma_core_gid_note(&core, 1, true, false);
}

void FakeNic::write_response(std::uint32_t index, const ordma_cmd& cmd, const Rsp& rsp) {
  auto* ring = reinterpret_cast<ordma_rsp*>(regs[ORDMA_REG_CMD_RSP]);
  const auto log = regs[ORDMA_REG_CMD_LOG];
  ordma_rsp r{};
  ORDMA_SET(&r, RSP_STATUS, rsp.status);
  ORDMA_SET(&r, RSP_SEQ, ORDMA_GET(&cmd, CMD_SEQ));
  ORDMA_SET(&r, RSP_RESULT0, rsp.result0);
  ORDMA_SET(&r, RSP_RESULT1, rsp.result1);
  ORDMA_SET(&r, RSP_PHASE, !((index >> log) & 1));
  ring[index & ((1u << log) - 1)] = r;
}

void FakeNic::take_recovery() {
  const auto* ring = reinterpret_cast<const ordma_cmd*>(regs[ORDMA_REG_RCMD_BASE]);
  const auto mask = (1u << regs[ORDMA_REG_RCMD_LOG]) - 1;
  if (((rcmd_rung - rcmd_done) & kIndexMask) > mask + 1) {
    throw std::logic_error("recovery ring overflow");
  }
  for (; rcmd_done != rcmd_rung; rcmd_done = (rcmd_done + 1) & kIndexMask) {
    const ordma_cmd& cmd = ring[rcmd_done & mask];
    if (ORDMA_GET(&cmd, CMD_SEQ) != (rcmd_done & 0xffff)) throw std::logic_error("recovery seq");
    recovery.push_back(cmd);
  }
}

bool FakeNic::step_one() {
  take_recovery();
  if (cmd_done == cmd_rung) return false;
  const auto* ring = reinterpret_cast<const ordma_cmd*>(regs[ORDMA_REG_CMD_BASE]);
  const auto log = regs[ORDMA_REG_CMD_LOG];
  const ordma_cmd cmd = ring[cmd_done & ((1u << log) - 1)];
  if (ORDMA_GET(&cmd, CMD_SEQ) != (cmd_done & 0xffff)) throw std::logic_error("command seq");
  executed.push_back(cmd);
  write_response(cmd_done, cmd, execute ? execute(cmd) : Rsp{});
  if (ORDMA_GET(&cmd, CMD_IRQ)) {
    Ev ev;
    ev.type = ORDMA_EVENT_TYPE_CMD_DONE;
    ev.log_index = cmd_done & 0xffff;
    event(ev);
  }
  cmd_done = (cmd_done + 1) & kIndexMask;
  return true;
}

void FakeNic::step() {
  while (step_one()) {
  }
}

void FakeNic::raw_event(const std::uint64_t (&words)[3]) {
  auto* ring = reinterpret_cast<ordma_event*>(regs[ORDMA_REG_EQ_BASE]);
  const auto log = regs[ORDMA_REG_EQ_LOG];
  auto& slot = ring[eq_pi & ((1u << log) - 1)];
  for (int i = 0; i < 3; ++i) slot.w[i] = words[i];
  slot.w[ORDMA_EVENT_PHASE_W] = !((eq_pi >> log) & 1);
  eq_pi = (eq_pi + 1) & kIndexMask;
}

void FakeNic::event(const Ev& ev) {
  raw_event({ORDMA_FIELD(EVENT_TYPE, ev.type) | ORDMA_FIELD(EVENT_CODE, ev.code) |
                 ORDMA_FIELD(EVENT_NUMBER, ev.number),
             ORDMA_FIELD(EVENT_PSN, ev.psn) | ORDMA_FIELD(EVENT_LOG_INDEX, ev.log_index), ev.time});
}

int FakeNic::run(const ordma_cmd& cmd, ordma_rsp_result* out) {
  std::uint32_t ticket = 0;
  ordma_rsp_result result{};
  int err = ordma_cmd_submit(&core, &cmd, false, &ticket);
  if (err) return err;
  step();
  err = ordma_cmd_complete(&core, ticket, &result);
  if (err) return err;
  if (out) *out = result;
  return ordma_status_to_errno(result.status);
}

unsigned FakeNic::drain(unsigned budget) { return ordma_core_poll_events(&core, budget); }

void FakeNic::make_qp(ordma_qp* qp, std::uint32_t qpn, ordma_qp_type type) {
  ordma_qp_init init{};
  init.type = type;
  init.cap = {16, 16, 2, 2, 64};
  init.uctx = type == ORDMA_QP_TYPE_GSI || type == ORDMA_QP_TYPE_ETH ? 0u : 1u;
  init.pdn = 3;
  init.scqn = 4;
  init.rcqn = 5;
  if (ordma_qp_geometry(&core, &init)) throw std::logic_error("geometry");
  const ordma_buf sq{0x10000, 12, ORDMA_BUF_LEVEL_LIST};
  const ordma_buf rq{0x20000, 13, ORDMA_BUF_LEVEL_TREE};
  ordma_qp_setup(qp, qpn, &init, &sq, &rq, 0x30000, 0x40000);
  add_qp(qp);
}

}  // namespace ordma::test
