// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <filesystem>
#include <string>

namespace ordma::cli {

// Where the parts of this build are: beside the running binary in a build tree, else installed.
struct Paths {
  std::filesystem::path softdev;   // ordma-softdev
  std::filesystem::path provider;  // .../libordma, as RDMAV_DRIVERS wants it (suffix -rdmavNN.so is
                                   // added by libibverbs)
  std::filesystem::path preload;   // libordma-preload.so
  std::filesystem::path vm;        // the VM runner
  std::filesystem::path module;    // directory with the built ordma.ko files
};
Paths find_paths();

// Directory of one network of this user: socket, lock, log, sysfs tree. Created 0700 and checked
// for ownership.
std::filesystem::path network_dir(const std::string& name, bool create);
// The directory above it.
std::filesystem::path runtime_dir();

}  // namespace ordma::cli
