// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <chrono>

namespace ordma::cli {

enum class Listener { kListens, kEnded, kTimeout };

// Waits until process `pid` (a child of ours) or a child of it listens on a TCP socket. Perftest
// and the pingpongs exchange addresses over TCP, so then a client may start. Does not reap.
Listener wait_for_listener(pid_t pid, std::chrono::milliseconds limit);

}  // namespace ordma::cli
