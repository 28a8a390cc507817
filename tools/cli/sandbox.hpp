// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <filesystem>
#include <string>

namespace ordma::cli {

// How a command is shown the NICs.
enum class Sandbox {
  kMountNamespace,  // root: private mounts, nothing else changes
  kUserNamespace,   // unprivileged: private mounts inside a user namespace
  kPreload,         // neither allowed: the preload library redirects paths
};
const char* sandbox_name(Sandbox mode);

// Makes /sys/class/infiniband* and /dev/infiniband/uverbs0.. appear to this process and its
// children. Tries namespaces first; falls back to kPreload, for which it only returns. Call once,
// before exec.
Sandbox enter_sandbox(const std::filesystem::path& sysfs, unsigned nics, bool force_preload,
                      std::string& why_preload);
// Tries in a child, changes nothing; for `ordma doctor`.
Sandbox probe_sandbox(std::string& why_preload);

}  // namespace ordma::cli
