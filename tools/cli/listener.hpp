// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <chrono>

namespace ordma::cli {

// Waits until process `pid` (a child of ours) listens on a TCP socket, or ended, or the time is over.
// Perftest and the pingpongs exchange addresses over TCP, so then a client may start.
bool wait_for_listener(pid_t pid, std::chrono::milliseconds limit);

}  // namespace ordma::cli
