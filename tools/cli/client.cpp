// SPDX-License-Identifier: BSD-2-Clause
#include "client.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "options.hpp"

namespace ordma::cli {
namespace {

constexpr int kReplySeconds = 20;

int connect_to(const std::filesystem::path& socket) {
  sockaddr_un addr{};
  addr.sun_family = AF_UNIX;
  const std::string path = socket.string();
  if (path.size() >= sizeof(addr.sun_path)) {
    throw Error("socket path too long: " + path + "; set ORDMA_RUNTIME_DIR to a shorter one");
  }
  std::memcpy(addr.sun_path, path.c_str(), path.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&addr), sizeof(addr)) != 0) {
    const int err = errno;
    ::close(fd);
    errno = err;
    return -1;
  }
  return fd;
}

}  // namespace

bool Client::listening(const std::filesystem::path& socket) {
  const int fd = connect_to(socket);
  if (fd >= 0) {
    ::close(fd);
  }
  return fd >= 0;
}

Client::Client(const std::filesystem::path& socket) : fd_(connect_to(socket)) {
  if (fd_ < 0) {
    throw Error("no soft-device at " + socket.string() + ": " + std::strerror(errno) +
                "; `ordma ps` lists the networks");
  }
  const timeval limit{kReplySeconds, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

Client::~Client() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

Client::Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)), seq_(other.seq_) {}

int Client::peer_pid() const {
  ucred cred{};
  socklen_t len = sizeof(cred);
  return ::getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.pid : 0;
}

int Client::release_inheritable() {
  ::fcntl(fd_, F_SETFD, 0);
  return std::exchange(fd_, -1);
}

std::vector<std::byte> Client::call(unsigned op, std::span<const std::byte> request) {
  ordma_np_hdr hdr{};
  hdr.op = static_cast<__u16>(op);
  hdr.version = ORDMA_NP_VERSION;
  hdr.seq = ++seq_;
  hdr.len = static_cast<__u32>(request.size());
  std::vector<std::byte> message(sizeof(hdr) + request.size());
  std::memcpy(message.data(), &hdr, sizeof(hdr));
  if (!request.empty()) {
    std::memcpy(message.data() + sizeof(hdr), request.data(), request.size());
  }
  if (::send(fd_, message.data(), message.size(), MSG_NOSIGNAL) < 0) {
    throw Error(std::string("soft-device: ") + std::strerror(errno));
  }
  // Descriptors that come with a reply are not wanted here: without a control buffer the kernel
  // closes them.
  std::vector<std::byte> reply(ORDMA_NP_MAX_MSG);
  const ssize_t n = ::recv(fd_, reply.data(), reply.size(), 0);
  if (n < static_cast<ssize_t>(sizeof(hdr))) {
    throw Error("the soft-device does not answer; its log is beside its socket");
  }
  std::memcpy(&hdr, reply.data(), sizeof(hdr));
  if (hdr.seq != seq_ || sizeof(hdr) + hdr.len != static_cast<std::size_t>(n)) {
    throw Error("the soft-device answers in another version; restart it with `ordma down`");
  }
  if (hdr.err != 0) {
    throw Error(std::string("soft-device refuses: ") + std::strerror(hdr.err));
  }
  return {reply.begin() + sizeof(hdr), reply.begin() + n};
}

template <typename Reply, typename Request>
Reply Client::call(unsigned op, const Request& request) {
  const auto body = call(op, std::as_bytes(std::span(&request, 1)));
  Reply out{};
  if (body.size() < sizeof(out)) {
    throw Error("short answer from the soft-device; restart it with `ordma down`");
  }
  std::memcpy(&out, body.data(), sizeof(out));
  return out;
}

ordma_np_hello_resp Client::hello(unsigned nic) {
  ordma_np_hello req{};
  req.nic = nic;
  return call<ordma_np_hello_resp>(ORDMA_NP_HELLO, req);
}

ordma_np_device Client::query_device() {
  const auto body = call(ORDMA_NP_QUERY_DEVICE, {});
  ordma_np_device out{};
  std::memcpy(&out, body.data(), std::min(sizeof(out), body.size()));
  return out;
}

ordma_np_port Client::query_port() {
  const auto body = call(ORDMA_NP_QUERY_PORT, {});
  ordma_np_port out{};
  std::memcpy(&out, body.data(), std::min(sizeof(out), body.size()));
  return out;
}

ordma_np_gid Client::query_gid(unsigned index) {
  ordma_np_gid_req req{};
  req.index = index;
  return call<ordma_np_gid>(ORDMA_NP_QUERY_GID, req);
}

std::string Client::counters() {
  std::string text;
  for (;;) {
    ordma_np_counters_req req{};
    req.offset = static_cast<__u32>(text.size());
    const auto body = call(ORDMA_NP_COUNTERS, std::as_bytes(std::span(&req, 1)));
    ordma_np_counters_resp resp{};
    if (body.size() < sizeof(resp)) {
      throw Error("short answer from the soft-device; restart it with `ordma down`");
    }
    std::memcpy(&resp, body.data(), sizeof(resp));
    const std::size_t len = std::min<std::size_t>(resp.len, body.size() - sizeof(resp));
    text.append(reinterpret_cast<const char*>(body.data()) + sizeof(resp), len);
    if (len == 0 || text.size() >= resp.total) {
      return text;
    }
  }
}

}  // namespace ordma::cli
