// SPDX-License-Identifier: BSD-2-Clause
// The command processor: the driver's ring, one response each, and the recovery ring, none.
#pragma once

#include <array>
#include <cstdint>

#include "objects.hpp"

namespace ordma::twin {

struct Nic;

class Commands {
 public:
  explicit Commands(Nic& nic) : nic_(nic) {}
  // Rings are read when ENABLE goes to 1; false when their sizes are out of range.
  [[nodiscard]] bool start();
  [[nodiscard]] hw::DbErr ring(std::uint32_t index, bool recovery);
  // Executes a bounded number; true when any was executed.
  bool process();
  [[nodiscard]] bool pending() const { return cmd_.ci != cmd_.pi || rcmd_.ci != rcmd_.pi; }

 private:
  struct Ring {
    std::uint64_t base = 0;
    std::uint32_t log = 0;
    std::uint32_t pi = 0, ci = 0;
  };
  using Bytes = hw::cmd::Bytes;
  struct Result {
    hw::CmdStatus status = hw::CmdStatus::kOk;
    std::uint64_t result0 = 0;
    Result() = default;
    Result(hw::CmdStatus s) : status(s) {}  // NOLINT: a status alone is the usual result
  };

  [[nodiscard]] bool fetch(Ring& ring, Bytes& cmd);
  void respond(std::uint32_t index, const Bytes& cmd, const Result& result);
  [[nodiscard]] Result execute(const Bytes& cmd);
  void execute_recovery(const Bytes& cmd);

  Result page_open(std::uint32_t number, const Bytes& cmd);
  Result page_close(std::uint32_t number);
  Result mr_create(std::uint32_t mkey, const Bytes& cmd);
  Result mr_destroy(std::uint32_t mkey);
  Result cq_create(std::uint32_t number, const Bytes& cmd);
  Result cq_resize(std::uint32_t number, const Bytes& cmd);
  Result cq_destroy(std::uint32_t number);
  Result srq_create(std::uint32_t number, const Bytes& cmd);
  Result srq_limit(std::uint32_t number, const Bytes& cmd);
  Result srq_destroy(std::uint32_t number);
  Result qp_create(std::uint32_t number, const Bytes& cmd);
  Result qp_modify(std::uint32_t number, const Bytes& cmd);
  Result qp_destroy(std::uint32_t number);
  Result qp_query(std::uint32_t number, const Bytes& cmd);
  Result gid_set(std::uint32_t number, const Bytes& cmd);
  Result mcast(std::uint32_t number, const Bytes& cmd, bool attach);
  Result counters(const Bytes& cmd);
  Result eth_filter(std::uint32_t number, const Bytes& cmd);

  Nic& nic_;
  Ring cmd_, rcmd_;
  std::uint64_t rsp_base_ = 0;
};

// Fills `buf` for a ring of `bytes`; false when a field is out of range.
[[nodiscard]] bool set_queue_buf(QueueBuf& buf, std::uint64_t addr, std::uint64_t level,
                                 std::uint64_t page_log, std::uint64_t bytes);

}  // namespace ordma::twin
