// SPDX-License-Identifier: BSD-2-Clause
#include "native/message_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace ordma::softdev {
namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * ORDMA_NP_MAX_FDS);

void take_fds(msghdr& header, std::vector<Fd>* fds) {
  for (cmsghdr* cmsg = CMSG_FIRSTHDR(&header); cmsg != nullptr; cmsg = CMSG_NXTHDR(&header, cmsg)) {
    if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof fd);
      fds->emplace_back(fd);
    }
  }
}

std::string message_of(const std::string& path, const char* what) {
  return path + ": " + what + ": " + std::strerror(errno);
}

// Removes a socket file that is left from a process that died.
bool clear_stale(const std::string& path, const sockaddr_un& address, int type,
                 std::string* error) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return true;
  if (!S_ISSOCK(info.st_mode)) {
    *error = path + ": exists and is not a socket";
    return false;
  }
  const Fd probe(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(probe.get(), generic, sizeof address) == 0 || errno != ECONNREFUSED) {
    *error = path + ": another process listens there";
    return false;
  }
  if (::unlink(path.c_str()) == 0) return true;
  *error = message_of(path, "unlink");
  return false;
}

}  // namespace

MessageSocket::Result MessageSocket::receive(std::vector<std::byte>* message,
                                             std::vector<Fd>* fds) {
  message->resize(ORDMA_NP_MAX_MSG);
  fds->clear();
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control;
  iovec io{message->data(), message->size()};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    const bool again = errno == EAGAIN || errno == EINTR;
    return again ? Result::kNothing : Result::kClosed;
  }
  take_fds(header, fds);
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    fds->clear();
    return Result::kTruncated;
  }
  if (got == 0) return Result::kClosed;
  message->resize(static_cast<std::size_t>(got));
  return Result::kMessage;
}

bool MessageSocket::send(std::span<const std::byte> message, std::span<const int> fds) {
  assert(fds.size() <= ORDMA_NP_MAX_FDS);
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control{};
  iovec io{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const cmsg = CMSG_FIRSTHDR(&header);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(cmsg), fds.data(), fds.size_bytes());
  }
  const ssize_t sent = ::sendmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent >= 0 && static_cast<std::size_t>(sent) == message.size();
}

Fd listen_unix(const std::string& path, int type, std::string* error) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    *error = path + ": empty or too long for a socket address";
    return Fd();
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (!clear_stale(path, address, type, error)) return Fd();
  Fd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // The mode is decided when bind() makes the file, not after it.
  const mode_t before = ::umask(0177);
  const int bound =
      fd ? ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) : -1;
  ::umask(before);
  if (bound != 0) {
    *error = message_of(path, "bind");
    return Fd();
  }
  if (::listen(fd.get(), SOMAXCONN) != 0) {
    *error = message_of(path, "listen");
    return Fd();
  }
  return fd;
}

}  // namespace ordma::softdev
