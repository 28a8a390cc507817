// SPDX-License-Identifier: BSD-2-Clause
#include "paths.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "options.hpp"

namespace fs = std::filesystem;

namespace ordma::cli {

Paths find_paths() {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  Paths p;
  p.softdev = bin / "ordma-softdev";
  const fs::path build = bin.parent_path();
  if (fs::exists(build / "CMakeCache.txt")) {  // build tree
    p.provider = build / "lib/libordma";
    p.preload = build / "lib/libordma-preload.so";
    p.vm = build.parent_path() / "tools/vm/ordma-vm";
    p.module = build / "module";
  } else {
    const fs::path lib = bin.parent_path() / "lib/ordma";
    p.provider = lib / "libordma";
    p.preload = lib / "libordma-preload.so";
    p.vm = lib / "vm/ordma-vm";
    p.module = lib / "module";
  }
  return p;
}

namespace {

// A directory that only this user can have prepared: created 0700, or refused.
void make_private_dir(const fs::path& dir) {
  if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    throw Error("cannot create " + dir.string() + ": " + std::strerror(errno));
  }
  struct stat st {};
  if (::lstat(dir.c_str(), &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != ::geteuid() ||
      (st.st_mode & 077) != 0) {
    throw Error(dir.string() + " is not a directory of this user with mode 0700; remove it");
  }
}

}  // namespace

fs::path runtime_dir() {
  if (const char* dir = std::getenv("ORDMA_RUNTIME_DIR")) {
    return dir;
  }
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  if (xdg != nullptr && ::access(xdg, W_OK) == 0) {
    return fs::path(xdg) / "ordma";
  }
  return "/tmp/ordma-" + std::to_string(::geteuid());
}

fs::path network_dir(const std::string& name, bool create) {
  const bool ok = !name.empty() && name.size() <= 32 && name[0] != '.' &&
                  std::all_of(name.begin(), name.end(), [](unsigned char c) {
                    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
                  });
  if (!ok) {
    throw Error("network name '" + name + "': use 1 to 32 letters, digits, '-', '_' or '.'");
  }
  const fs::path base = runtime_dir();
  if (create) {
    make_private_dir(base);
    make_private_dir(base / name);
  }
  return base / name;
}

}  // namespace ordma::cli
