// SPDX-License-Identifier: BSD-2-Clause
#include "forwarder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "options.hpp"

namespace ordma::cli {

// A line longer than this is cut in pieces.
constexpr std::size_t kLineMax = 4096;

Forwarder::Forwarder(std::string prefix) : prefix_(std::move(prefix)) {
  int ends[2];
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0 || ::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(std::string("pipe: ") + std::strerror(errno));
  }
  pipe_read_ = ends[0];
  pipe_write_ = ends[1];
  ::fcntl(pipe_read_, F_SETFL, O_NONBLOCK);
}

void Forwarder::finish() {
  if (thread_.joinable()) {
    ::eventfd_write(stop_, 1);
    thread_.join();
  }
}

Forwarder::~Forwarder() {
  finish();
  for (const int fd : {pipe_read_, pipe_write_, stop_}) {
    if (fd >= 0) {
      ::close(fd);
    }
  }
}

void Forwarder::attach_child() const {
  ::dup2(pipe_write_, 1);
  ::dup2(pipe_write_, 2);
}

void Forwarder::start() {
  ::close(pipe_write_);
  pipe_write_ = -1;
  thread_ = std::thread([this] { copy(); });
}

void Forwarder::print(std::string_view line) const { fmt::print(stderr, "{}{}\n", prefix_, line); }

void Forwarder::copy() {
  std::string line;
  std::array<char, 4096> part;
  for (;;) {
    std::array<pollfd, 2> fds = {pollfd{pipe_read_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      return;
    }
    ssize_t n = ::read(pipe_read_, part.data(), part.size());
    for (ssize_t i = 0; i < n; ++i) {
      if (part[i] != '\n') {
        line += part[i];
      }
      if (part[i] == '\n' || line.size() == kLineMax) {
        print(line);
        line.clear();
      }
    }
    const bool ended = n == 0 || (n < 0 && errno == EAGAIN && fds[1].revents != 0);
    if (ended) {
      break;
    }
  }
  if (!line.empty()) {
    print(line);
  }
}

}  // namespace ordma::cli
