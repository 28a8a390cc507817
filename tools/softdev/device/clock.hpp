// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace ordma::softdev {

// Monotonic host time in ns. Tests inject a variable.
using HostTime = std::function<std::uint64_t()>;
[[nodiscard]] std::uint64_t host_time_ns();

// The one device clock of a soft-device. While engines work it advances by what their cost models
// say, so a slow simulation never times out early; while they are idle it follows host time.
class DeviceClock {
 public:
  explicit DeviceClock(HostTime host) : host_(std::move(host)), seen_(host_()) {}

  [[nodiscard]] std::uint64_t now() const { return now_; }
  [[nodiscard]] std::uint64_t host_now() const { return host_(); }
  void advance_busy(std::uint64_t busy_ns) {
    now_ += busy_ns;
    seen_ = host_();
  }
  // Stops at `limit`, the next thing due: after a long pause (this process was not scheduled)
  // frames in flight must arrive before the timers that wait for them expire. The rest follows next
  // time.
  void follow_host(std::uint64_t limit) {
    const std::uint64_t host = host_();
    if (host <= seen_) return;
    const std::uint64_t room = limit > now_ ? limit - now_ : 0;
    const std::uint64_t step = std::min(host - seen_, room);
    now_ += step;
    seen_ += step;
  }

 private:
  HostTime host_;
  std::uint64_t seen_;
  std::uint64_t now_ = 0;
};

}  // namespace ordma::softdev
