// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

namespace ordma::cli {

// Counters of a running network; zero ones only with `all`.
int run_stat(const std::string& net, bool all, bool as_json);
// The running networks of this user.
int run_ps();

}  // namespace ordma::cli
