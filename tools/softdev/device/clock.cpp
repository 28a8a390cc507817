// SPDX-License-Identifier: BSD-2-Clause
#include "device/clock.hpp"

#include <ctime>

namespace ordma::softdev {

std::uint64_t host_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace ordma::softdev
