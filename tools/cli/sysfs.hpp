// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <filesystem>

namespace ordma::cli {

// Writes class/infiniband and class/infiniband_verbs for the network's NICs below `root`, from what
// the soft-device says of itself. Atomic: builds beside and renames.
void write_sysfs(const std::filesystem::path& root, const std::filesystem::path& socket,
                 unsigned nics);

}  // namespace ordma::cli
