// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>

#include "native_proto.h"
#include "ordma_core.h"

namespace ordma::softdev {

inline constexpr std::uint32_t kPortNumber = 1;
// One thread serves all vectors.
inline constexpr std::uint32_t kCompVectors = 1;

// enum ibv_mtu for the largest Ethernet payload: what is left after the largest RoCE headers.
[[nodiscard]] std::uint32_t active_mtu_of(std::uint32_t port_mtu);

void fill_port(const ordma_core& core, ordma_np_port* port);
void fill_device(const ordma_core& core, ordma_np_device* device);

}  // namespace ordma::softdev
