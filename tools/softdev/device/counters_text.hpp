// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

#include "device/network.hpp"

namespace ordma::softdev {

// All counters of a network as lines "scope name value".
[[nodiscard]] std::string counters_text(Network& network);

}  // namespace ordma::softdev
