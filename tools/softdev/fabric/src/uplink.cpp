// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/uplink.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ordma::fabric {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kRecordMax = kLengthBytes + Frame::kMaxBytes;
// Several records per read() for speed; also the bound on work per on_readable().
constexpr std::size_t kInputBytes = 16 * kRecordMax;
constexpr std::size_t kOutputFramesMax = 65536;
constexpr std::size_t kWritesPerCallMax = 1024;

std::string system_error(const std::string& what) { return what + ": " + std::strerror(errno); }

bool fill_address(const std::string& path, sockaddr_un& address, std::string* error) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    *error = "uplink: socket path must have 1.." + std::to_string(sizeof(address.sun_path) - 1) +
             " bytes: '" + path + "'";
    return false;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return true;
}

int open_stream(std::string* error) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    *error = system_error("uplink: socket");
  }
  return fd;
}

bool connect_to(int fd, const sockaddr_un& address) {
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// Makes way for a new listener: removes a socket file only when nobody listens behind it.
bool clear_stale(const std::string& path, const sockaddr_un& address, std::string* error) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    return true;  // bind() reports what is wrong with the directory
  }
  if (!S_ISSOCK(status.st_mode)) {
    *error = "uplink: " + path + " exists and is no socket";
    return false;
  }
  const int probe = open_stream(error);
  if (probe < 0) {
    return false;
  }
  const bool refused = !connect_to(probe, address) && errno == ECONNREFUSED;
  ::close(probe);
  if (!refused) {
    *error = "uplink: " + path + " is in use";
    return false;
  }
  if (::unlink(path.c_str()) != 0) {
    *error = system_error("uplink: " + path);
    return false;
  }
  return true;
}

bool bind_private(int fd, const std::string& path, const sockaddr_un& address,
                  std::string* error) {
  // fchmod on the unbound socket gives the file its mode at birth: it is never open to others.
  if (::fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    *error = system_error("uplink: " + path);
    return false;
  }
  if (::listen(fd, 1) != 0) {
    *error = system_error("uplink: " + path);
    ::unlink(path.c_str());
    return false;
  }
  return true;
}

std::array<std::uint8_t, kLengthBytes> length_word(std::size_t bytes) {
  std::array<std::uint8_t, kLengthBytes> word;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    word[i] = static_cast<std::uint8_t>(bytes >> (24 - 8 * i));
  }
  return word;
}

}  // namespace

Uplink::Uplink(Fabric& fabric, UplinkOptions options)
    : fabric_(fabric), options_(std::move(options)) {
  input_.resize(kInputBytes);
}

std::unique_ptr<Uplink> Uplink::listen(Fabric& fabric, const std::string& path,
                                       UplinkOptions options, std::string* error) {
  sockaddr_un address{};
  if (!fill_address(path, address, error) || !clear_stale(path, address, error)) {
    return nullptr;
  }
  const int fd = open_stream(error);
  if (fd < 0) {
    return nullptr;
  }
  if (!bind_private(fd, path, address, error)) {
    ::close(fd);
    return nullptr;
  }
  std::unique_ptr<Uplink> uplink(new Uplink(fabric, std::move(options)));
  uplink->listen_fd_ = fd;
  uplink->path_ = path;
  uplink->state_ = State::kListening;
  return uplink;
}

std::unique_ptr<Uplink> Uplink::connect(Fabric& fabric, const std::string& path,
                                        UplinkOptions options, std::string* error) {
  sockaddr_un address{};
  if (!fill_address(path, address, error)) {
    return nullptr;
  }
  const int fd = open_stream(error);
  if (fd < 0) {
    return nullptr;
  }
  if (!connect_to(fd, address)) {
    *error = system_error("uplink: " + path);
    ::close(fd);
    return nullptr;
  }
  return adopt(fabric, fd, std::move(options), error);
}

std::unique_ptr<Uplink> Uplink::adopt(Fabric& fabric, int connected_fd, UplinkOptions options,
                                      std::string* error) {
  const int flags = ::fcntl(connected_fd, F_GETFL);
  if (flags < 0 || ::fcntl(connected_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    *error = system_error("uplink: fcntl");
    ::close(connected_fd);
    return nullptr;
  }
  std::unique_ptr<Uplink> uplink(new Uplink(fabric, std::move(options)));
  if (!uplink->attach(connected_fd)) {
    *error = uplink->last_error_;
    return nullptr;
  }
  return uplink;
}

Uplink::~Uplink() {
  drop_peer({});
  if (listen_fd_ >= 0) {
    ::close(listen_fd_);
    ::unlink(path_.c_str());
  }
}

int Uplink::fd() const {
  switch (state_) {
    case State::kListening: return listen_fd_;
    case State::kConnected: return peer_fd_;
    case State::kClosed: break;
  }
  return -1;
}

short Uplink::poll_events() const {
  if (state_ == State::kClosed) {
    return 0;
  }
  return static_cast<short>(output_.empty() ? POLLIN : POLLIN | POLLOUT);
}

// Owns `fd` from here on, also when it fails.
bool Uplink::attach(int fd) {
  port_ = fabric_.add_port(
      options_.mac, [this](Frame frame, std::uint64_t) { enqueue(std::move(frame)); },
      {options_.name, true});
  if (port_ == kNoPort) {
    last_error_ = "uplink: no free port for '" + options_.name + "'";
    ::close(fd);
    return false;
  }
  peer_fd_ = fd;
  input_used_ = 0;
  state_ = State::kConnected;
  ++counters_.peers;
  return true;
}

void Uplink::drop_peer(std::string why) {
  if (peer_fd_ < 0) {
    return;
  }
  ::close(peer_fd_);
  peer_fd_ = -1;
  fabric_.remove_port(port_);
  port_ = kNoPort;
  output_.clear();
  output_bytes_ = 0;
  output_done_ = 0;
  input_used_ = 0;
  last_error_ = std::move(why);
  state_ = listen_fd_ >= 0 ? State::kListening : State::kClosed;
}

void Uplink::accept_peer() {
  const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) {
    (void)attach(fd);
  } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    last_error_ = system_error("uplink: accept");
  }
}

void Uplink::on_readable(std::uint64_t now_ns) {
  if (state_ == State::kListening) {
    return accept_peer();
  }
  if (state_ != State::kConnected) {
    return;
  }
  const ssize_t got =
      ::recv(peer_fd_, input_.data() + input_used_, input_.size() - input_used_, 0);
  if (got > 0) {
    input_used_ += static_cast<std::size_t>(got);
    parse_input(now_ns);
  } else if (got == 0) {
    drop_peer("uplink: peer closed the connection");
  } else if (errno != EAGAIN && errno != EINTR) {
    drop_peer(system_error("uplink: recv"));
  }
}

void Uplink::parse_input(std::uint64_t now_ns) {
  std::size_t at = 0;
  while (input_used_ - at >= kLengthBytes) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < kLengthBytes; ++i) {
      length = length << 8 | input_[at + i];
    }
    // Past a wrong length the stream has no frame boundaries left: only closing is safe.
    if (length < Frame::kEthernetBytes || length > Frame::kMaxBytes) {
      ++counters_.bad_length;
      return drop_peer("uplink: peer sent a frame length of " + std::to_string(length) +
                       ", allowed range 14..9216");
    }
    if (input_used_ - at - kLengthBytes < length) {
      break;
    }
    ++counters_.rx_frames;
    fabric_.send(port_, Frame::copy_of({input_.data() + at + kLengthBytes, length}), now_ns);
    at += kLengthBytes + length;
  }
  std::memmove(input_.data(), input_.data() + at, input_used_ - at);
  input_used_ -= at;
}

void Uplink::enqueue(Frame frame) {
  const std::size_t bytes = kLengthBytes + frame.size();
  if (peer_fd_ < 0 || output_.size() >= kOutputFramesMax ||
      output_bytes_ + bytes > options_.queue_bytes_max) {
    ++counters_.tx_drops;
    return;
  }
  const bool was_empty = output_.empty();
  output_bytes_ += bytes;
  output_.push_back(std::move(frame));
  if (was_empty) {
    on_writable();
  }
}

void Uplink::on_writable() {
  for (std::size_t i = 0; i < kWritesPerCallMax && peer_fd_ >= 0 && !output_.empty(); ++i) {
    const std::span<const std::uint8_t> frame = output_.front().bytes();
    auto word = length_word(frame.size());
    const std::size_t word_done = std::min(output_done_, kLengthBytes);
    const std::size_t frame_done = output_done_ - word_done;
    std::array<iovec, 2> parts = {{
        {word.data() + word_done, kLengthBytes - word_done},
        {const_cast<std::uint8_t*>(frame.data()) + frame_done, frame.size() - frame_done},
    }};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t wrote = ::sendmsg(peer_fd_, &message, MSG_NOSIGNAL);
    if (wrote < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        drop_peer(system_error("uplink: send"));
      }
      return;
    }
    output_done_ += static_cast<std::size_t>(wrote);
    if (output_done_ == kLengthBytes + frame.size()) {
      output_bytes_ -= output_done_;
      output_done_ = 0;
      ++counters_.tx_frames;
      output_.pop_front();
    }
  }
}

void Uplink::on_events(short revents, std::uint64_t now_ns) {
  if ((revents & POLLOUT) != 0) {
    on_writable();
  }
  // POLLHUP and POLLERR surface through recv(), after what the peer still sent has been read.
  if ((revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    on_readable(now_ns);
  }
}

}  // namespace ordma::fabric
