// SPDX-License-Identifier: BSD-2-Clause
#include "listener.hpp"

#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

namespace fs = std::filesystem;

namespace ordma::cli {
namespace {

// Inodes of all listening TCP sockets of this network namespace.
std::set<std::string> listening_inodes() {
  std::set<std::string> inodes;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(table);
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      std::istringstream words(line);
      std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
      words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
          timeout >> inode;
      if (state == "0A") {  // TCP_LISTEN
        inodes.insert(inode);
      }
    }
  }
  return inodes;
}

// Wrappers (timeout, strace, sh) have the program as child or grandchild.
constexpr unsigned kDepth = 3;

bool listens(pid_t pid, unsigned depth) {
  const auto inodes = listening_inodes();
  const std::string proc = "/proc/" + std::to_string(pid);
  std::error_code ec;
  for (const auto& fd : fs::directory_iterator(proc + "/fd", ec)) {
    const std::string target = fs::read_symlink(fd.path(), ec).string();
    if (target.starts_with("socket:[") && inodes.contains(target.substr(8, target.size() - 9))) {
      return true;
    }
  }
  std::ifstream children(proc + "/task/" + std::to_string(pid) + "/children");
  for (pid_t child = 0; depth > 1 && children >> child;) {
    if (listens(child, depth - 1)) {
      return true;
    }
  }
  return false;
}

bool ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid;
}

}  // namespace

Listener wait_for_listener(pid_t pid, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    if (ended(pid)) {
      return Listener::kEnded;
    }
    if (listens(pid, kDepth)) {
      return Listener::kListens;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return Listener::kTimeout;
}

}  // namespace ordma::cli
