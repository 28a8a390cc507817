// SPDX-License-Identifier: BSD-2-Clause
#include "native/server.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.hpp"

namespace ordma::softdev {
namespace {

constexpr int kAcceptsPerCall = 16;

// A descriptor that becomes readable when the process that connected ends; where the kernel offers
// it, taken from the socket, so that no reuse of the number can come between.
Fd peer_pid_fd(int socket, pid_t pid) {
  constexpr int kSoPeerPidFd = 77;  // Linux 6.5; not in older C libraries
  int fd = -1;
  socklen_t size = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, kSoPeerPidFd, &fd, &size) == 0) return Fd(fd);
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

void drain(int fd) {
  std::uint64_t value;
  [[maybe_unused]] const ssize_t got = ::read(fd, &value, sizeof value);
}

}  // namespace

NativeServer::NativeServer(EventLoop& loop, Session::Host host)
    : loop_(loop), host_(std::move(host)) {}

NativeServer::~NativeServer() {
  while (!connections_.empty()) drop(connections_.begin()->first, "shut down");
  if (listener_) {
    loop_.remove(listener_watch_);
    (void)::unlink(path_.c_str());
  }
}

bool NativeServer::listen(const std::string& path, std::string* error) {
  listener_ = listen_unix(path, SOCK_SEQPACKET, error);
  if (!listener_) return false;
  path_ = path;
  listener_watch_ =
      loop_.add(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_clients(); });
  if (listener_watch_ != 0) return true;
  *error = path + ": cannot be watched";
  return false;
}

void NativeServer::accept_clients() {
  for (int i = 0; i < kAcceptsPerCall; ++i) {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno == EMFILE || errno == ENFILE) log_warn("no descriptor left for a client");
      return;
    }
    adopt(std::move(fd));
  }
}

bool NativeServer::adopt(Fd fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid != ::geteuid() && peer.uid != 0) {
    log_warn("process {} of user {} refused: this network belongs to user {}", peer.pid, peer.uid,
             ::geteuid());
    return false;
  }
  if (connections_.size() >= kClientsMax) {
    log_warn("process {} refused: {} clients are connected", peer.pid, kClientsMax);
    return false;
  }
  const int key = fd.get();
  auto connection = std::make_unique<Connection>(std::move(fd));
  connection->pid = peer.pid;
  connection->session = std::make_unique<Session>(host_, peer.pid);
  Connection& entry = *connection;
  entry.socket_watch =
      loop_.add(key, EPOLLIN | EPOLLRDHUP, [this, &entry](std::uint32_t) { on_message(entry); });
  if (entry.socket_watch == 0) return false;
  connections_.emplace(key, std::move(connection));
  ++served_;
  return true;
}

void NativeServer::on_message(Connection& connection) {
  const int key = connection.socket.fd();
  std::vector<Fd> fds;
  switch (connection.socket.receive(&message_, &fds)) {
    case MessageSocket::Result::kNothing:
      return;
    case MessageSocket::Result::kClosed:
      return drop(key, "hung up");
    case MessageSocket::Result::kTruncated:
      return drop(key, "sent a message beyond the limits");
    case MessageSocket::Result::kMessage:
      break;
  }
  Reply body;
  std::vector<std::byte> reply;
  const bool keep = connection.session->handle(message_, std::move(fds), &reply, &body);
  if (!connection.socket.send(reply, body.fds())) return drop(key, "does not take its replies");
  if (!keep) return drop(key, "sent a message of another version or form");
  if (connection.session->attached() && !watch_attached(connection)) drop(key, "has ended");
}

bool NativeServer::watch_attached(Connection& connection) {
  if (connection.kick_watch != 0) return true;
  // Only a process that has objects here is watched by its pid: a mere member may pass its
  // connection on and end.
  const int key = connection.socket.fd();
  connection.pid_fd = peer_pid_fd(key, connection.pid);
  if (!connection.pid_fd) return false;
  connection.pid_watch = loop_.add(connection.pid_fd.get(), EPOLLIN,
                                   [this, key](std::uint32_t) { drop(key, "ended"); });
  const int kick = connection.session->kick_fd();
  connection.kick_watch = loop_.add(kick, EPOLLIN, [kick](std::uint32_t) { drain(kick); });
  return connection.pid_watch != 0 && connection.kick_watch != 0;
}

void NativeServer::drop(int fd, const char* why) {
  const auto it = connections_.find(fd);
  if (it == connections_.end()) return;
  Connection& connection = *it->second;
  log_info("process {} {}", connection.pid, why);
  loop_.remove(connection.socket_watch);
  loop_.remove(connection.pid_watch);
  loop_.remove(connection.kick_watch);
  const std::unique_ptr<Connection> last = std::move(it->second);
  connections_.erase(it);
  last->session->tear_down();
}

}  // namespace ordma::softdev
