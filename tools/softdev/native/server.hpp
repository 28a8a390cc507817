// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "native/message_socket.hpp"
#include "native/session.hpp"

namespace ordma::softdev {

// The control socket of one network. Serves processes of the same user and of root.
class NativeServer {
 public:
  static constexpr std::size_t kClientsMax = 1024;

  NativeServer(EventLoop& loop, Session::Host host);
  ~NativeServer();  // takes all clients down, removes the socket file
  NativeServer(const NativeServer&) = delete;
  NativeServer& operator=(const NativeServer&) = delete;

  // False with *error set when `path` cannot be listened on.
  [[nodiscard]] bool listen(const std::string& path, std::string* error);
  // A connected socket from elsewhere (tests); credentials are checked all the same.
  bool adopt(Fd fd);

  // Open connections, members that only keep the network alive included.
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }
  [[nodiscard]] std::uint64_t served() const { return served_; }

 private:
  struct Connection {
    explicit Connection(Fd fd) : socket(std::move(fd)) {}
    MessageSocket socket;
    pid_t pid = 0;
    Fd pid_fd;
    EventLoop::WatchId socket_watch = 0;
    EventLoop::WatchId pid_watch = 0;
    EventLoop::WatchId kick_watch = 0;
    std::unique_ptr<Session> session;
  };
  void accept_clients();
  void on_message(Connection& connection);
  [[nodiscard]] bool watch_attached(Connection& connection);
  void drop(int fd, const char* why);

  EventLoop& loop_;
  Session::Host host_;
  Fd listener_;
  EventLoop::WatchId listener_watch_ = 0;
  std::string path_;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;
  std::vector<std::byte> message_;
  std::uint64_t served_ = 0;
};

}  // namespace ordma::softdev
