// SPDX-License-Identifier: BSD-2-Clause
#include "run.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "listener.hpp"
#include "paths.hpp"
#include "sandbox.hpp"

namespace ordma::cli {
namespace {

constexpr auto kServerStart = std::chrono::seconds(20);
constexpr auto kServerGrace = std::chrono::seconds(20);

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
  }
}

[[noreturn]] void exec_command(Command command) {
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

int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The two ends find their NICs by name in their own arguments.
void choose_nic(Command& command, unsigned nic) {
  const bool has = std::any_of(command.begin(), command.end(), [](const std::string& a) {
    return a == "-d" || a.rfind("--ib-dev", 0) == 0;
  });
  if (!has) {
    command.insert(command.begin() + 1, {"-d", "ordma" + std::to_string(nic)});
  }
}

pid_t start(const Command& command) {
  const pid_t child = ::fork();
  if (child < 0) {
    throw Error(std::string("fork: ") + std::strerror(errno));
  }
  if (child == 0) {
    exec_command(command);
  }
  return child;
}

// Gives the server time to end by itself once the client is done, then ends it.
int reap_server(pid_t server) {
  const auto end = std::chrono::steady_clock::now() + kServerGrace;
  int status = 0;
  while (::waitpid(server, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      fmt::print(stderr, "ordma: the server did not end with its client; stopping it\n");
      ::kill(server, SIGTERM);
      ::waitpid(server, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return exit_status(status);
}

Sandbox open_network(Network& net, const NetOptions& options) {
  std::string why;
  const Sandbox mode = enter_sandbox(net.sysfs, net.info.nics, options.force_preload, why);
  if (!options.quiet) {
    const std::string text = mode == Sandbox::kPreload ? "preload (" + why + ")" : sandbox_name(mode);
    print_network(net, text.c_str());
  }
  set_environment(net, mode);
  // Membership is this open connection: it passes into the command and ends with its last process.
  net.member.release_inheritable();
  return mode;
}

}  // namespace

int run_command(const NetOptions& options, const Command& command) {
  Network net = join_or_start(options, false);
  open_network(net, options);
  exec_command(command);
}

int run_pair(const NetOptions& options, Command server, Command client) {
  if (server.empty()) {
    throw Error("pair needs a command: ordma pair -- ib_write_bw");
  }
  if (client.empty()) {
    client = server;
    client.emplace_back("localhost");
  }
  NetOptions wanted = options;
  wanted.nics = std::max(2u, options.nics);
  Network net = join_or_start(wanted, false);
  open_network(net, wanted);
  choose_nic(server, 0);
  choose_nic(client, 1);
  const pid_t server_pid = start(server);
  wait_for_listener(server_pid, kServerStart);
  const pid_t client_pid = start(client);
  int status = 0;
  while (::waitpid(client_pid, &status, 0) < 0 && errno == EINTR) {
  }
  const int client_status = exit_status(status);
  const int server_status = reap_server(server_pid);
  return client_status != 0 ? client_status : server_status;
}

}  // namespace ordma::cli
