// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "forwarder.hpp"
#include "listener.hpp"
#include "run.hpp"

namespace ordma::cli {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// A Verilated NIC needs its time before the server gets as far as listening.
constexpr auto kServerStart = seconds(20);
// What the server may take to end by itself once its client is done; less if the client failed.
constexpr auto kServerGrace = seconds(20);
constexpr auto kServerGraceFailed = seconds(2);

int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool is_verbs_test(const std::string& word) {
  const std::string name = std::filesystem::path(word).filename().string();
  return name.starts_with("ib_") || name.starts_with("ibv_");
}

// The two ends find their NICs in their own arguments: -d goes behind the test's name, which need
// not be the first word (`timeout 9 ib_write_bw`). Other programs find it in ORDMA_NIC.
void choose_nic(Command& command, const std::string& nic) {
  const auto test = std::find_if(command.begin(), command.end(), is_verbs_test);
  const bool has = std::any_of(command.begin(), command.end(), [](const std::string& a) {
    return a == "-d" || a.starts_with("--ib-dev");
  });
  if (test != command.end() && !has) {
    command.insert(test + 1, {"-d", nic});
  }
}

pid_t start(Command command, const std::string& nic, const Forwarder* output) {
  choose_nic(command, nic);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    throw Error(std::string("fork: ") + std::strerror(errno));
  }
  if (child == 0) {
    // Whoever ends `ordma pair` means both ends.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) {
      ::_exit(kExitOurs);
    }
    ::setenv("ORDMA_NIC", nic.c_str(), 1);
    if (output != nullptr) {
      output->attach_child();
    }
    exec_command(std::move(command));
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_status(status);
}

// Waits until it has ended or the time is over.
bool reap(pid_t child, Clock::duration limit, int& status) {
  const auto end = Clock::now() + limit;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// Lets the server end by itself, then ends it.
int reap_server(pid_t server, bool client_failed) {
  int status = 0;
  if (reap(server, client_failed ? kServerGraceFailed : kServerGrace, status)) {
    return exit_status(status);
  }
  fmt::print(stderr, "ordma: the server did not end with its client; stopping it\n");
  ::kill(server, SIGTERM);
  if (!reap(server, seconds(2), status)) {
    ::kill(server, SIGKILL);
    ::waitpid(server, &status, 0);
  }
  return exit_status(status);
}

}  // namespace

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
  // The client has our stdout: that is where results are.
  Forwarder server_lines("server| ");
  ::setenv("ORDMA_STDOUT", "line", 1);
  const pid_t server_pid = start(std::move(server), "ordma0", &server_lines);
  ::unsetenv("ORDMA_STDOUT");
  server_lines.start();
  const Listener state = wait_for_listener(server_pid, kServerStart);
  if (state == Listener::kTimeout) {
    fmt::print(stderr,
               "ordma: the server listens on no TCP port; starting the client all the same\n");
  }
  int server_status = state == Listener::kEnded ? wait_for(server_pid) : 0;
  if (server_status != 0) {
    server_lines.finish();
    fmt::print(stderr, "ordma: the server ended with status {}; no client was started\n",
               server_status);
    return server_status;
  }
  const int client_status = wait_for(start(std::move(client), "ordma1", nullptr));
  if (state != Listener::kEnded) {
    server_status = reap_server(server_pid, client_status != 0);
  }
  server_lines.finish();
  if (server_status != 0) {
    fmt::print(stderr, "ordma: the server ended with status {}\n", server_status);
  }
  return client_status != 0 ? client_status : server_status;
}

}  // namespace ordma::cli
