// SPDX-License-Identifier: BSD-2-Clause
#include "vm/ivshmem_server.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "native/message_socket.hpp"

namespace ordma::softdev {
namespace {

// QEMU docs/specs/ivshmem-spec: 8-byte little-endian numbers, a descriptor with some of them.
constexpr std::int64_t kProtocolVersion = 0;
constexpr std::int64_t kSharedMemory = -1;

bool send_number(int socket, std::int64_t number, int fd) {
  static_assert(std::endian::native == std::endian::little);
  iovec io{&number, sizeof number};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const cmsg = CMSG_FIRSTHDR(&header);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(cmsg), &fd, sizeof fd);
  }
  return ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof number;
}

Fd make_event() { return Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

}  // namespace

IvshmemServer::IvshmemServer(EventLoop& loop, unsigned vectors, Events events)
    : loop_(loop), events_(std::move(events)), vectors_(vectors) {}

IvshmemServer::~IvshmemServer() {
  loop_.remove(peer_watch_);
  loop_.remove(kick_watch_);
  loop_.remove(listener_watch_);
  if (listener_) (void)::unlink(path_.c_str());
}

std::string IvshmemServer::listen(const std::string& path, int memory_fd) {
  std::string error;
  memory_fd_ = memory_fd;
  listener_ = listen_unix(path, SOCK_STREAM, &error);
  if (!listener_) return error;
  path_ = path;
  listener_watch_ = loop_.add(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_guest(); });
  return listener_watch_ != 0 ? std::string() : path + ": cannot be watched";
}

void IvshmemServer::accept_guest() {
  Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      (peer.uid != ::geteuid() && peer.uid != 0)) {
    log_warn("{}: process {} refused: it belongs to another user", path_, peer.pid);
    return;
  }
  if (peer_) {
    log_warn("{}: process {} refused: this NIC has a guest", path_, peer.pid);
    return;
  }
  peer_ = std::move(fd);
  // New ones for each guest: what an earlier one left in them is not for this one.
  kick_ = make_event();
  bool made = static_cast<bool>(kick_);
  for (Fd& vector : vectors_) {
    vector = make_event();
    made &= static_cast<bool>(vector);
  }
  if (made) {
    peer_watch_ = loop_.add(peer_.get(), EPOLLIN | EPOLLRDHUP,
                            [this](std::uint32_t ready) { on_peer(ready); });
    kick_watch_ = loop_.add(kick_.get(), EPOLLIN, [this](std::uint32_t) {
      std::uint64_t count;
      if (::read(kick_.get(), &count, sizeof count) == sizeof count) events_.kicked();
    });
  }
  if (!made || peer_watch_ == 0 || kick_watch_ == 0 || !greet()) {
    log_warn("{}: cannot serve process {}", path_, peer.pid);
    drop();
    return;
  }
  log_info("{}: guest in process {} attached", path_, peer.pid);
  events_.connected();
}

bool IvshmemServer::greet() {
  const int socket = peer_.get();
  bool sent = send_number(socket, kProtocolVersion, -1) && send_number(socket, kGuestId, -1) &&
              send_number(socket, kSharedMemory, memory_fd_) &&
              send_number(socket, kOurId, kick_.get());
  for (const Fd& vector : vectors_) sent = sent && send_number(socket, kGuestId, vector.get());
  return sent;
}

void IvshmemServer::on_peer(std::uint32_t) {
  // The guest's side never speaks; whatever comes is read away, the end is what matters.
  std::array<std::byte, 256> buffer;
  const ssize_t got = ::recv(peer_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  log_info("{}: guest gone", path_);
  drop();
  events_.disconnected();
}

void IvshmemServer::drop() {
  loop_.remove(std::exchange(peer_watch_, 0));
  loop_.remove(std::exchange(kick_watch_, 0));
  peer_.reset();
  kick_.reset();
  for (Fd& vector : vectors_) vector.reset();
}

void IvshmemServer::interrupt(unsigned vector) {
  if (vector >= vectors_.size() || !vectors_[vector]) return;
  const std::uint64_t one = 1;
  // Full means that the guest has not taken the last one: it coalesces.
  [[maybe_unused]] const ssize_t done = ::write(vectors_[vector].get(), &one, sizeof one);
}

}  // namespace ordma::softdev
