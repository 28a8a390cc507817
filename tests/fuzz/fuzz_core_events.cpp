// SPDX-License-Identifier: BSD-2-Clause
// The driver core against a device that writes anything: events, responses, status registers, in
// any order with submits, completions, modifies and resets of the driver.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "../core/fake_nic.hpp"

using ordma::test::FakeNic;

namespace {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  template <typename T>
  T take() {
    T value{};
    const std::size_t n = std::min(sizeof value, size_);
    std::memcpy(&value, data_, n);
    data_ += n;
    size_ -= n;
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

void require(bool ok) {
  if (!ok) std::abort();
}

struct World {
  World() {
    nic.bring_up();
    const ordma_qp_type types[] = {ORDMA_QP_TYPE_RC, ORDMA_QP_TYPE_UC, ORDMA_QP_TYPE_UD};
    for (std::uint32_t qpn = 2; qpn < 8; ++qpn) nic.make_qp(&qps[qpn], qpn, types[qpn % 3]);
    start = {qps[2], qps[3], qps[4], qps[5], qps[6], qps[7]};
  }
  void restart() {
    nic.regs[ORDMA_REG_STATUS] = 0;
    nic.regs[ORDMA_REG_CLOCK] = 0;
    require(ordma_core_start(&nic.core) == 0);
    nic.core.stats = {};
    nic.calls.clear();
    nic.doorbells.clear();
    for (std::uint32_t qpn = 2; qpn < 8; ++qpn) {
      qps[qpn] = start[qpn - 2];
      qps[qpn].state = ORDMA_QP_STATE_RTS;
      if (qps[qpn].init.type == ORDMA_QP_TYPE_RC) {
        ordma_recovery_start(&qps[qpn].rec, 100, qpn, 3, 14);
      }
    }
  }
  FakeNic nic;
  std::array<ordma_qp, 8> qps{};
  std::vector<ordma_qp> start;
};

void raw_response(FakeNic& nic, Input& in) {
  auto* ring = static_cast<ordma_rsp*>(nic.core.rings.rsp.va);
  auto& slot = ring[in.take<std::uint8_t>()];
  for (auto& w : slot.w) w = in.take<std::uint64_t>();
}

void reset_qp(World& w, ordma_qp& qp) {
  ordma_qp_attr attr{};
  ordma_qp_modify mod{};
  attr.qp_state = ORDMA_QP_STATE_RESET;
  require(ordma_qp_modify_check(&w.nic.core, &qp, &attr, ORDMA_ATTR_STATE, &mod) == 0);
  ordma_qp_modify_done(&w.nic.core, &qp, &mod);
  require(qp.state == ORDMA_QP_STATE_RESET);
  require(qp.rec.active == 0);
}

void check_calls(const World& w) {
  for (const auto& c : w.nic.calls) {
    if (c.what[0] == 'c' && c.what[1] == 'q') require(c.a && c.a < 32);
    if (c.what[0] == 's') require(c.a && c.a < 16);
    if (c.what == "page_error") require(c.a < 16 && c.b >= 1 && c.b <= 8);
    if (c.what == "qp_async") require(c.a >= 2 && c.a < 8);
    if (c.what == "cmd_done") require(c.a < ORDMA_CMD_SLOTS);
    if (c.what == "fatal") require(c.a >= 1 && c.a <= 4);
  }
}

void one_step(World& w, Input& in, std::vector<std::uint32_t>& tickets) {
  auto& core = w.nic.core;
  std::uint32_t ticket = 0;
  ordma_rsp_result res{};
  ordma_cmd cmd;
  switch (in.take<std::uint8_t>() % 9) {
    case 0:
    case 1: {
      const std::uint64_t words[3] = {in.take<std::uint64_t>(), in.take<std::uint64_t>(),
                                      in.take<std::uint64_t>()};
      w.nic.raw_event(words);
      break;
    }
    case 2: {
      const auto budget = in.take<std::uint8_t>();
      require(ordma_core_poll_events(&core, budget) <= budget);
      break;
    }
    case 3:
      ordma_cmd_nop(&cmd);
      if (!ordma_cmd_submit(&core, &cmd, true, &ticket)) tickets.push_back(ticket);
      break;
    case 4:
      raw_response(w.nic, in);
      break;
    case 5:
      ticket = in.take<std::uint32_t>();
      if (!tickets.empty() && ticket & 1) ticket = tickets[ticket / 2 % tickets.size()];
      (void)ordma_cmd_complete(&core, ticket, &res);
      break;
    case 6:
      (void)ordma_cmd_destroy_complete(&core, tickets.empty() ? 0 : tickets.back());
      break;
    case 7:
      reset_qp(w, w.qps[2 + in.take<std::uint8_t>() % 6]);
      break;
    default:
      w.nic.regs[ORDMA_REG_STATUS] = in.take<std::uint64_t>();
      w.nic.regs[ORDMA_REG_CLOCK] = in.take<std::uint8_t>();
      (void)ordma_core_check(&core, in.take<std::uint64_t>());
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World world;
  world.restart();
  Input in(data, size);
  std::vector<std::uint32_t> tickets;
  while (!in.empty()) one_step(world, in, tickets);
  require(world.nic.locked_qps == 0);
  unsigned fatal = 0;
  for (const auto& c : world.nic.calls) fatal += c.what == "fatal";
  require(fatal <= 1);
  for (const auto& qp : world.qps) {
    require(qp.state <= ORDMA_QP_STATE_ERR);
    require(qp.rec.retries <= qp.rec.retry_cnt || !qp.rec.active);
  }
  check_calls(world);
  return 0;
}
