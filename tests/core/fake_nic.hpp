// SPDX-License-Identifier: BSD-2-Clause
// A device made of memory: registers in a map, rings where the core put them. It executes commands
// only when step() is called, writes what the test tells it to, and records every upward call. DMA
// addresses are the virtual ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ordma_alloc.h"
#include "ordma_cmd.h"
#include "ordma_core.h"
#include "ordma_obj.h"
#include "ordma_qp.h"
#include "recovery.h"

namespace ordma::test {

// Seeds 1 .. n in the fast tier, more in the longer ones; prints nothing, failures name their seed.
unsigned last_seed(unsigned n);

struct DmaBlock {
  explicit DmaBlock(std::size_t bytes);
  ordma_mem mem{};

 private:
  std::unique_ptr<void, decltype(&std::free)> block_{nullptr, &std::free};
};

struct Rsp {
  unsigned status = ORDMA_CMD_STATUS_OK;
  std::uint64_t result0 = 0;
  std::uint64_t result1 = 0;
};

struct Ev {
  unsigned type = 0;
  unsigned code = 0;
  std::uint32_t number = 0;
  std::uint32_t psn = 0;
  std::uint32_t log_index = 0;
  std::uint64_t time = 0;
};

struct Call {
  std::string what;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  bool operator==(const Call&) const = default;
};

class FakeNic {
 public:
  FakeNic();
  FakeNic(const FakeNic&) = delete;
  FakeNic& operator=(const FakeNic&) = delete;

  // probe, rings, reset, start; fails hard if any step does.
  void bring_up();
  int probe(std::string* message = nullptr);
  void set_rings();

  // Executes every command that was rung; recovery commands first, as the contract says.
  void step();
  // One command only; false: nothing rung.
  bool step_one();
  void event(const Ev& ev);
  // A raw event ring entry with a valid phase.
  void raw_event(const std::uint64_t (&words)[3]);
  // Submits, steps, completes; returns the errno of the status.
  int run(const ordma_cmd& cmd, ordma_rsp_result* out = nullptr);
  unsigned drain(unsigned budget = 1u << 20);

  void add_qp(ordma_qp* qp) { qps[qp->qpn] = qp; }
  // A QP in RESET with both queues, in the table.
  void make_qp(ordma_qp* qp, std::uint32_t qpn, ordma_qp_type type);

  static const ordma_core_ops* ops();

  ordma_core core{};
  std::map<std::uint32_t, std::uint64_t> regs;
  std::map<std::uint32_t, ordma_qp*> qps;
  std::function<Rsp(const ordma_cmd&)> execute;
  std::vector<ordma_cmd> executed;
  std::vector<ordma_cmd> recovery;
  std::vector<Call> calls;
  std::vector<std::uint64_t> doorbells;
  std::mt19937 rng{1};
  std::uint32_t cmd_rung = 0, cmd_done = 0;
  std::uint32_t rcmd_rung = 0, rcmd_done = 0;
  std::uint32_t eq_pi = 0;
  int locked_qps = 0;
  bool auto_reset = true;

 private:
  void write_response(std::uint32_t index, const ordma_cmd& cmd, const Rsp& rsp);
  void take_recovery();

  std::vector<DmaBlock> blocks_;
};

}  // namespace ordma::test
