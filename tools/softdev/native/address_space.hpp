// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace ordma::softdev {

// Is [va, va + bytes) mapped in process `pid`, without a hole, readable and (if asked) writable?
[[nodiscard]] bool address_space_covers(pid_t pid, std::uint64_t va, std::uint64_t bytes,
                                        bool write);

}  // namespace ordma::softdev
