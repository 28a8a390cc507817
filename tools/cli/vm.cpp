// SPDX-License-Identifier: BSD-2-Clause
#include "vm.hpp"

#include <fmt/format.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "paths.hpp"

namespace fs = std::filesystem;

namespace ordma::cli {
namespace {

constexpr int kReadyMs = 30000;

// Guest RAM must be shared memory; sockets and RAM files of one run live together and go together.
class RunDirectory {
 public:
  RunDirectory() {
    char name[] = "/dev/shm/ordma-vm-XXXXXX";
    if (::mkdtemp(name) == nullptr) {
      throw Error(std::string("/dev/shm: ") + std::strerror(errno) +
                  "; guests need shared memory there");
    }
    path_ = name;
  }
  ~RunDirectory() {
    std::error_code ec;
    fs::remove_all(path_, ec);
  }
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

pid_t spawn(const std::vector<std::string>& args, int keep_fd) {
  const pid_t child = ::fork();
  if (child < 0) {
    throw Error(std::string("fork: ") + std::strerror(errno));
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (keep_fd >= 0) {
      ::fcntl(keep_fd, F_SETFD, 0);
    }
    std::vector<char*> argv;
    for (const auto& a : args) {
      argv.push_back(const_cast<char*>(a.c_str()));
    }
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    fmt::print(stderr, "ordma: cannot run {}: {}\n", args[0], std::strerror(errno));
    ::_exit(kExitOurs);
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Plan {
  fs::path dir;
  unsigned nics;
  unsigned guests;

  [[nodiscard]] unsigned guest_of(unsigned nic) const { return guests == 1 ? 1 : nic % guests + 1; }
  [[nodiscard]] fs::path socket(unsigned nic) const { return dir / fmt::format("nic{}", nic); }
  [[nodiscard]] fs::path ram(unsigned guest) const { return dir / fmt::format("ram{}", guest); }
};

std::vector<std::string> softdev_args(const NetOptions& net, const Plan& plan, int ready_fd) {
  std::vector<std::string> args = {find_paths().softdev.string(),
                                   "--nics",
                                   std::to_string(plan.nics),
                                   "--engine",
                                   net.engine.empty() ? ORDMA_DEFAULT_ENGINE : net.engine,
                                   "--seed",
                                   std::to_string(net.seed),
                                   "--stay",
                                   "--ready-fd",
                                   std::to_string(ready_fd),
                                   "--socket",
                                   (plan.dir / "socket").string()};
  for (unsigned nic = 0; nic < plan.nics; ++nic) {
    args.insert(args.end(), {"--vm", fmt::format("{}={},ram={}", nic, plan.socket(nic).string(),
                                                 plan.ram(plan.guest_of(nic)).string())});
  }
  if (!net.fabric.empty()) {
    args.insert(args.end(), {"--fabric", net.fabric});
  }
  if (!net.pcap.empty()) {
    args.insert(args.end(), {"--pcap", net.pcap});
  }
  return args;
}

std::vector<std::string> guest_args(const NetOptions& net, const VmOptions& vm, const Plan& plan,
                                    const std::vector<Command>& commands) {
  const Paths paths = find_paths();
  const fs::path module = paths.module / vm.kernel / "ordma.ko";
  if (!fs::exists(module)) {
    throw Error("no " + module.string() + "; run `make module`");
  }
  std::vector<std::string> args = {paths.vm.string(),
                                   "--guests",
                                   std::to_string(plan.guests),
                                   "--kernel",
                                   vm.kernel,
                                   "--smp",
                                   std::to_string(vm.smp),
                                   "--timeout",
                                   std::to_string(vm.timeout),
                                   "--module",
                                   module.string(),
                                   "--modprobe",
                                   "rdma_ucm"};
  for (unsigned nic = 0; nic < plan.nics; ++nic) {
    args.insert(args.end(),
                {"--nic", fmt::format("{}:{}", plan.guest_of(nic), plan.socket(nic).string())});
  }
  for (unsigned guest = 1; guest <= plan.guests; ++guest) {
    args.insert(args.end(), {"--ram-file", fmt::format("{}:{}", guest, plan.ram(guest).string())});
  }
  if (!net.quiet) {
    fmt::print(stderr, "ordma: {} guest(s), kernel {}, {} NICs, engine {}\n", plan.guests,
               vm.kernel, plan.nics, net.engine.empty() ? ORDMA_DEFAULT_ENGINE : net.engine);
  }
  const std::string setup = (paths.vm.parent_path() / "guest/ordma-net").string();
  for (const Command& command : commands) {
    args.insert(args.end(), {"--", setup});
    args.insert(args.end(), command.begin(), command.end());
  }
  return args;
}

void wait_ready(int fd) {
  pollfd p{fd, POLLIN, 0};
  char byte = 0;
  if (::poll(&p, 1, kReadyMs) != 1 || ::read(fd, &byte, 1) != 1) {
    throw Error("the soft-device did not start; what it printed stands above");
  }
}

}  // namespace

int run_vm(const NetOptions& net, const VmOptions& vm, const std::vector<Command>& commands) {
  if (commands.size() != vm.guests && !(commands.empty() && vm.guests == 1)) {
    throw Error(fmt::format("{} guest(s) need {} command(s): ordma vm -- CMD... [-- CMD2...]",
                            vm.guests, vm.guests));
  }
  const RunDirectory dir;
  const Plan plan{dir.path(), std::max(net.nics, vm.guests), vm.guests};
  const auto guests =
      guest_args(net, vm, plan, commands.empty() ? std::vector<Command>{{"/bin/sh"}} : commands);
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) {
    throw Error(std::string("pipe: ") + std::strerror(errno));
  }
  const pid_t softdev = spawn(softdev_args(net, plan, ready[1]), ready[1]);
  ::close(ready[1]);
  // The runner below gets the terminal's signals itself; we stay to clean up.
  ::signal(SIGINT, SIG_IGN);
  int status = kExitOurs;
  try {
    wait_ready(ready[0]);
    ::setenv("ORDMA_NICS", std::to_string(plan.nics).c_str(), 1);
    ::setenv("RDMAV_DRIVERS", find_paths().provider.c_str(), 1);
    status = wait_for(spawn(guests, -1));
  } catch (...) {
    ::kill(softdev, SIGTERM);
    wait_for(softdev);
    throw;
  }
  ::kill(softdev, SIGTERM);
  wait_for(softdev);
  return status;
}

}  // namespace ordma::cli
