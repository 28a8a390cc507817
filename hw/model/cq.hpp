// SPDX-License-Identifier: BSD-2-Clause
// Completion queues: phase, overflow, arming.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "objects.hpp"

namespace ordma::twin {

struct Nic;

struct Completion {
  std::uint64_t wr_id = 0;
  std::uint32_t qpn = 0;
  hw::WcOp opcode{};
  hw::WcStatus status{};
  std::uint32_t wqe_index = 0;
  std::uint8_t vendor_err = 0;
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;
  std::uint32_t src_qpn = 0;
  bool is_recv = false;
  bool has_imm = false;
  bool has_grh = false;
  bool ipv4 = false;
  bool solicited = false;
  std::uint8_t sl = 0;
  std::uint64_t smac = 0;
  std::uint16_t vlan = kNoVlan;
};

class CompletionQueues {
 public:
  CompletionQueues(Nic& nic, std::uint32_t max_cq) : nic_(nic), cqs_(max_cq) {}
  void reset();

  [[nodiscard]] std::unique_ptr<Cq>* slot(std::uint32_t number) {
    return number < cqs_.size() ? &cqs_[number] : nullptr;
  }
  [[nodiscard]] Cq* find(std::uint32_t number) {
    return number < cqs_.size() ? cqs_[number].get() : nullptr;
  }
  // One egress write. Overflow or unusable memory puts the CQ in error; its QPs follow at the next
  // settle(), not under the caller's feet.
  void push(Cq& cq, const Completion& c);
  void arm(Cq& cq, std::uint64_t word);
  // Moves the QPs of failed CQs to ERR.
  void settle();
  [[nodiscard]] bool unsettled() const { return !failed_.empty(); }
  void forget(Cq& cq);
  // The event ring has room again.
  void release();

 private:
  [[nodiscard]] bool full(Cq& cq);
  void fail(Cq& cq, bool overflow);
  void fire(Cq& cq);
  [[nodiscard]] static bool unseen(const Cq& cq);

  Nic& nic_;
  std::vector<std::unique_ptr<Cq>> cqs_;
  std::vector<Cq*> failed_;
  List<Cq, &Cq::wait_link> deferred_;  // armed, and an event is due
};

}  // namespace ordma::twin
