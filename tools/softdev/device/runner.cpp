// SPDX-License-Identifier: BSD-2-Clause
#include "device/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "ordma_hw.hpp"

namespace ordma::softdev {
namespace {

constexpr std::uint64_t kHeartbeatNs = std::uint64_t{hw::kHeartbeatMs} * 1'000'000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void Runner::run(const std::function<bool()>& stop) {
  while (!stop()) round(kHeartbeatNs);
}

void Runner::round(std::uint64_t max_ns) {
  ++passes_;
  const bool worked = network_.step();
  const std::uint64_t now = network_.clock().host_now();
  if (worked) last_work_ns_ = now;
  if (now - last_poll_ns_ >= kPollNs) {
    last_poll_ns_ = now;
    // A request may have made work: look before sleeping.
    if (loop_.wait(0) != 0) {
      last_work_ns_ = now;
      return;
    }
  }
  if (worked) return;
  if (now - last_work_ns_ < kSpinNs) {
    pause();
    return;
  }
  sleep(max_ns);
}

void Runner::sleep(std::uint64_t max_ns) {
  network_.publish_asleep(true);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (network_.scan()) {
    ++refused_sleeps_;
    network_.publish_asleep(false);
    last_work_ns_ = network_.clock().host_now();
    return;
  }
  const std::uint64_t now = network_.clock().now();
  const std::uint64_t due = network_.next_due_ns();
  std::uint64_t timeout = std::min(max_ns, due > now ? due - now : 0);
  if (network_.tokens_open()) timeout = std::min(timeout, kTokenSleepNs);
  ++sleeps_;
  const unsigned handled = loop_.wait(timeout);
  network_.publish_asleep(false);
  // A kick or a request: what it announces is worth a spin. A timer alone is not.
  last_poll_ns_ = network_.clock().host_now();
  if (handled != 0) last_work_ns_ = last_poll_ns_;
}

void Runner::append_counters(std::string* text) const {
  const auto line = [text](std::string_view name, std::uint64_t value) {
    fmt::format_to(std::back_inserter(*text), "softdev {} {}\n", name, value);
  };
  line("passes", passes_);
  line("sleeps", sleeps_);
  line("refused_sleeps", refused_sleeps_);
}

}  // namespace ordma::softdev
