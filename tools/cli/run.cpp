// SPDX-License-Identifier: BSD-2-Clause
#include "run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "paths.hpp"
#include "sandbox.hpp"

namespace ordma::cli {
namespace {

void print_network(const Network& net, const char* mode) {
  const NetworkInfo& i = net.info;
  fmt::print(stderr, "ordma: network {} ({}), engine {}, {}, seed {}{}\n", i.name,
             net.started ? "started" : "joined", i.engine, mode, i.seed,
             i.fabric.empty() ? "" : ", fabric " + i.fabric);
  for (unsigned n = 0; n < i.nics; ++n) {
    fmt::print(stderr, "ordma:   ordma{}  GID 0 link-local, GID 1 ::ffff:10.86.0.{}\n", n, n + 1);
  }
}

void prepend_env(const char* name, const std::string& value, char separator) {
  const char* old = std::getenv(name);
  const std::string joined = old != nullptr && *old != 0 ? value + separator + old : value;
  ::setenv(name, joined.c_str(), 1);
}

void set_environment(const Network& net, Sandbox mode) {
  const Paths paths = find_paths();
  ::setenv(ORDMA_NP_ENV_SOCKET, net.socket.c_str(), 1);
  ::setenv(ORDMA_NP_ENV_PRELOAD, paths.preload.c_str(), 1);
  ::setenv("ORDMA_NET", net.info.name.c_str(), 1);
  prepend_env("RDMAV_DRIVERS", paths.provider.string(), ':');
  prepend_env("LD_PRELOAD", paths.preload.string(), ':');
  if (mode == Sandbox::kPreload) {
    ::setenv("ORDMA_SYSFS", net.sysfs.c_str(), 1);
    ::setenv("SYSFS_PATH", net.sysfs.c_str(), 1);
  } else {
    // Left by an outer `ordma run --preload`, they would lead past what is mounted.
    ::unsetenv("ORDMA_SYSFS");
    ::unsetenv("SYSFS_PATH");
  }
}

}  // namespace

void exec_command(Command command) {
  if (command.empty()) {
    const char* shell = std::getenv("SHELL");
    command = {shell != nullptr && *shell != 0 ? shell : "/bin/sh"};
  }
  std::vector<char*> argv;
  for (auto& word : command) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  fmt::print(stderr, "ordma: cannot run {}: {}\n", argv[0], std::strerror(errno));
  ::_exit(kExitOurs);
}

void open_network(Network& net, const NetOptions& options) {
  std::string why;
  const Sandbox mode = enter_sandbox(net.sysfs, net.info.nics, options.force_preload, why);
  if (!options.quiet) {
    const std::string text =
        mode == Sandbox::kPreload ? "preload (" + why + ")" : sandbox_name(mode);
    print_network(net, text.c_str());
  }
  set_environment(net, mode);
  // Membership is this open connection: it passes into the command and ends with its last process.
  net.member.release_inheritable();
}

int run_command(const NetOptions& options, const Command& command) {
  Network net = join_or_start(options, false);
  open_network(net, options);
  exec_command(command);
}

}  // namespace ordma::cli
