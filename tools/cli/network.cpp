// SPDX-License-Identifier: BSD-2-Clause
#include "network.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "paths.hpp"
#include "sysfs.hpp"

namespace fs = std::filesystem;
using nlohmann::json;

namespace ordma::cli {
namespace {

constexpr int kStartMs = 30000;  // a Verilated NIC takes seconds to reset on a loaded machine
constexpr int kStopMs = 5000;

// Serialises start and stop of one network; released with the process.
class Lock {
 public:
  explicit Lock(const fs::path& file)
      : fd_(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    if (fd_ < 0 || ::flock(fd_, LOCK_EX) != 0) {
      throw Error("cannot lock " + file.string() + ": " + std::strerror(errno));
    }
  }
  ~Lock() { ::close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int fd_;
};

NetworkInfo read_info(const fs::path& file) {
  std::ifstream in(file);
  const json j = json::parse(in, nullptr, false);
  NetworkInfo info;
  if (!j.is_object()) {
    return info;
  }
  info.name = j.value("name", "");
  info.engine = j.value("engine", "");
  info.fabric = j.value("fabric", "");
  info.pcap = j.value("pcap", "");
  info.nics = j.value("nics", 0u);
  info.seed = j.value("seed", std::uint64_t{0});
  info.pid = j.value("pid", 0);
  return info;
}

void write_info(const fs::path& file, const NetworkInfo& info) {
  std::ofstream(file) << json{{"name", info.name}, {"engine", info.engine}, {"fabric", info.fabric},
                              {"pcap", info.pcap}, {"nics", info.nics},     {"seed", info.seed},
                              {"pid", info.pid}}
                             .dump(1)
                      << '\n';
}

// Waits for the soft-device's byte on its ready descriptor. False: it ended or took too long.
bool wait_ready(int fd) {
  pollfd p{fd, POLLIN, 0};
  char byte = 0;
  return ::poll(&p, 1, kStartMs) == 1 && ::read(fd, &byte, 1) == 1;
}

std::string last_lines(const fs::path& log) {
  std::ifstream in(log);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  std::string text;
  for (std::size_t i = lines.size() > 8 ? lines.size() - 8 : 0; i < lines.size(); ++i) {
    text += "\n  " + lines[i];
  }
  return text;
}

std::vector<std::string> softdev_args(const Paths& paths, const NetworkInfo& info,
                                      const fs::path& socket, bool stay, int ready_fd) {
  std::vector<std::string> args = {paths.softdev.string(),
                                   "--socket",
                                   socket.string(),
                                   "--nics",
                                   std::to_string(info.nics),
                                   "--engine",
                                   info.engine,
                                   "--seed",
                                   std::to_string(info.seed),
                                   "--ready-fd",
                                   std::to_string(ready_fd)};
  if (!info.fabric.empty()) {
    args.insert(args.end(), {"--fabric", info.fabric});
  }
  if (!info.pcap.empty()) {
    args.insert(args.end(), {"--pcap", info.pcap});
  }
  if (stay) {
    args.emplace_back("--stay");
  }
  return args;
}

[[noreturn]] void become_softdev(const std::vector<std::string>& args, int ready_write,
                                 const fs::path& log) {
  const int null_fd = ::open("/dev/null", O_RDONLY);
  const int log_fd = ::open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  ::dup2(null_fd, 0);
  ::dup2(log_fd, 1);
  ::dup2(log_fd, 2);
  ::fcntl(ready_write, F_SETFD, 0);
  const pid_t self = ::getpid();
  if (::write(ready_write, &self, sizeof(self)) != sizeof(self)) {
    ::_exit(kExitOurs);
  }
  std::vector<char*> argv;
  for (const auto& a : args) {
    argv.push_back(const_cast<char*>(a.c_str()));
  }
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(kExitOurs);
}

// Starts ordma-softdev detached from this terminal, and not as a child: a command that waits for
// its children must not meet it. Returns its pid once it listens.
pid_t spawn(const std::vector<std::string>& args, int ready_read, int ready_write,
            const fs::path& log) {
  const pid_t middle = ::fork();
  if (middle == 0) {
    ::setsid();
    if (::fork() == 0) {
      become_softdev(args, ready_write, log);
    }
    ::_exit(0);
  }
  ::close(ready_write);
  ::waitpid(middle, nullptr, 0);
  pid_t pid = 0;
  const bool have_pid = ::read(ready_read, &pid, sizeof(pid)) == sizeof(pid);
  if (!have_pid || !wait_ready(ready_read)) {
    if (have_pid) {
      ::kill(pid, SIGKILL);
    }
    throw Error("the soft-device did not start; its log " + log.string() +
                " ends:" + last_lines(log));
  }
  return pid;
}

NetworkInfo wanted(const NetOptions& options) {
  NetworkInfo info;
  info.name = options.name;
  info.engine = options.engine.empty() ? ORDMA_DEFAULT_ENGINE : options.engine;
  info.fabric = options.fabric;
  info.pcap = options.pcap.empty() ? "" : fs::absolute(options.pcap).string();
  if (!options.fabric.empty() && options.fabric.find('=') == std::string::npos) {
    info.fabric = fs::absolute(options.fabric).string();
  }
  info.nics = options.nics;
  info.seed = options.seed;
  return info;
}

void check_same(const NetworkInfo& running, const NetOptions& options) {
  std::string differs;
  if (!options.engine.empty() && options.engine != running.engine) {
    differs = "engine " + running.engine;
  } else if (options.nics > running.nics) {
    differs = std::to_string(running.nics) + " NICs";
  } else if (!options.fabric.empty() && wanted(options).fabric != running.fabric) {
    differs = running.fabric.empty() ? "a plain fabric" : "fabric '" + running.fabric + "'";
  } else if (!options.pcap.empty() && wanted(options).pcap != running.pcap) {
    differs = running.pcap.empty() ? "no capture" : "capture " + running.pcap;
  }
  if (!differs.empty()) {
    throw Error("network '" + running.name + "' already runs with " + differs +
                "; take another with --net NAME or end it with `ordma down " + running.name + "`");
  }
}

}  // namespace

Network join_or_start(const NetOptions& options, bool stay) {
  const fs::path dir = network_dir(options.name, true);
  const fs::path socket = dir / "socket";
  Lock lock(dir / "lock");
  if (Client::listening(socket)) {
    const NetworkInfo info = read_info(dir / "info.json");
    check_same(info, options);
    return {info, dir, socket, dir / "sys", false, Client(socket)};
  }
  ::unlink(socket.c_str());
  NetworkInfo info = wanted(options);
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) {
    throw Error(std::string("pipe: ") + std::strerror(errno));
  }
  const auto args = softdev_args(find_paths(), info, socket, stay, ready[1]);
  info.pid = spawn(args, ready[0], ready[1], dir / "log");
  ::close(ready[0]);
  write_info(dir / "info.json", info);
  Network net{info, dir, socket, dir / "sys", true, Client(socket)};
  write_sysfs(net.sysfs, socket, info.nics);
  return net;
}

std::vector<NetworkInfo> running_networks() {
  std::vector<NetworkInfo> found;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(runtime_dir(), ec)) {
    if (Client::listening(entry.path() / "socket")) {
      found.push_back(read_info(entry.path() / "info.json"));
    }
  }
  return found;
}

bool stop_network(const std::string& name) {
  const fs::path dir = network_dir(name, false);
  const fs::path socket = dir / "socket";
  if (!Client::listening(socket)) {
    return false;
  }
  // The listener itself says who it is: a pid from a file could be somebody else's by now.
  const int pid = Client(socket).peer_pid();
  if (pid <= 0 || ::kill(pid, SIGTERM) != 0) {
    throw Error("cannot end network '" + name + "' (pid " + std::to_string(pid) + ")");
  }
  for (int waited = 0; waited < kStopMs && Client::listening(socket); waited += 20) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return !Client::listening(socket);
}

}  // namespace ordma::cli
