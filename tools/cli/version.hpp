// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

namespace ordma::cli {

// Version of the project beside those of the contract, the uverbs ABI and libordma.
std::string version_text();

}  // namespace ordma::cli
