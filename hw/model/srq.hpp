// SPDX-License-Identifier: BSD-2-Clause
// Receive WQEs: from a QP's own ring or from a shared one, and placement into them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory.hpp"
#include "objects.hpp"

namespace ordma::twin {

struct Nic;

class SharedQueues {
 public:
  SharedQueues(Nic& nic, std::uint32_t max_srq) : nic_(nic), srqs_(max_srq) {}
  void reset() {
    for (auto& srq : srqs_) srq.reset();
  }
  [[nodiscard]] std::unique_ptr<Srq>* slot(std::uint32_t number) {
    return number < srqs_.size() ? &srqs_[number] : nullptr;
  }
  [[nodiscard]] Srq* find(std::uint32_t number) {
    return number < srqs_.size() ? srqs_[number].get() : nullptr;
  }
  // Fires the limit event, once per arming, when fewer than `limit` WQEs are left.
  void check_limit(Srq& srq);

 private:
  Nic& nic_;
  std::vector<std::unique_ptr<Srq>> srqs_;
};

enum class TakeResult : std::uint8_t { kOk, kNone, kBad };

class ReceiveQueues {
 public:
  explicit ReceiveQueues(Nic& nic) : nic_(nic) {}
  // Fetches the next receive WQE of the QP into qp.r.wqe. kBad: it is unusable; qp.r.wqe is active
  // when its wr_id is known, so that it can complete with an error.
  [[nodiscard]] TakeResult take(Qp& qp);
  // Places bytes at the cursor; the caller has compared with the capacity.
  [[nodiscard]] Fault scatter(const Qp& qp, RecvWqe& wqe, std::span<const std::byte> src);

 private:
  [[nodiscard]] TakeResult take_shared(Qp& qp, Srq& srq);
  [[nodiscard]] bool load(RecvWqe& wqe, std::span<const std::byte> raw, std::uint32_t index) const;

  Nic& nic_;
};

}  // namespace ordma::twin
