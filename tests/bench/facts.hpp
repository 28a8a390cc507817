// SPDX-License-Identifier: BSD-2-Clause
// Where a number was measured: machine, kernel, device.
#pragma once

#include <infiniband/verbs.h>

#include <nlohmann/json.hpp>

namespace ordma::bench {

nlohmann::ordered_json machine_facts();
nlohmann::ordered_json device_facts(ibv_context* ctx);

}  // namespace ordma::bench
