// SPDX-License-Identifier: BSD-2-Clause
#include "doctor.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "paths.hpp"
#include "sandbox.hpp"

namespace fs = std::filesystem;

namespace ordma::cli {
namespace {

int problems = 0;

void good(const char* what, const std::string& text) {
  fmt::print("ok    {:<18} {}\n", what, text);
}
void note(const char* what, const std::string& text) {
  fmt::print("note  {:<18} {}\n", what, text);
}
void bad(const char* what, const std::string& text) {
  fmt::print("BAD   {:<18} {}\n", what, text);
  ++problems;
}

void check_sandbox() {
  std::string why;
  const Sandbox mode = probe_sandbox(why);
  if (mode == Sandbox::kPreload) {
    note("namespaces", why +
                           ": programs are shown the NICs by the preload library; static binaries "
                           "will not see them");
  } else {
    good("namespaces", sandbox_name(mode));
  }
}

void check_ptrace() {
  std::ifstream in("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  in >> scope;
  if (scope >= 2 && ::geteuid() != 0) {
    bad("ptrace", fmt::format("kernel.yama.ptrace_scope = {}: the soft NIC cannot reach program "
                              "memory; sysctl kernel.yama.ptrace_scope=1",
                              scope));
  } else {
    good("ptrace", fmt::format("kernel.yama.ptrace_scope = {}", scope));
  }
}

void check_limits() {
  rlimit lock{};
  ::getrlimit(RLIMIT_MEMLOCK, &lock);
  note("memlock",
       lock.rlim_cur == RLIM_INFINITY
           ? "unlimited"
           : fmt::format("{} KiB; native mode pins nothing, the kernel driver does (ulimit -l)",
                         lock.rlim_cur / 1024));
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0) {
    const auto mib = shm.f_bavail * shm.f_frsize >> 20;
    if (mib < 1200) {
      note("shm",
           fmt::format(
               "{} MiB free in /dev/shm; a guest needs 1024 (mount -o remount,size=4G /dev/shm)",
               mib));
    } else {
      good("shm", fmt::format("{} MiB free in /dev/shm", mib));
    }
  } else {
    note("shm", "no /dev/shm: `ordma vm` needs it for guest memory");
  }
}

void check_files() {
  const Paths paths = find_paths();
  const std::string plugin = paths.provider.string() + "-rdmav34.so";
  for (const auto& [what, path] : {std::pair{"soft-device", paths.softdev.string()},
                                   {"provider", plugin},
                                   {"preload", paths.preload.string()}}) {
    if (fs::exists(path)) {
      good(what, path);
    } else {
      bad(what, path + " is missing; run `make`");
    }
  }
  if (fs::exists("/usr/bin/qemu-system-x86_64")) {
    good("qemu", "/usr/bin/qemu-system-x86_64");
  } else {
    note("qemu", "missing; `ordma vm` needs it (tools/setup.sh)");
  }
  if (::access("/sys/class/infiniband", F_OK) == 0) {
    note("other devices",
         "this host has RDMA devices of its own; under `ordma run` only ours are seen");
  }
}

}  // namespace

int run_doctor() {
  utsname u{};
  ::uname(&u);
  note("kernel", u.release);
  check_sandbox();
  check_ptrace();
  check_limits();
  check_files();
  fmt::print("{}\n",
             problems == 0 ? "native mode will work" : "native mode will not work: see BAD above");
  return problems == 0 ? 0 : 1;
}

}  // namespace ordma::cli
