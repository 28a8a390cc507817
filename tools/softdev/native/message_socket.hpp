// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "native_proto.h"

namespace ordma::softdev {

// Messages with descriptors over a connected SOCK_SEQPACKET socket. Never blocks.
class MessageSocket {
 public:
  enum class Result : std::uint8_t {
    kMessage,
    kNothing,    // would block
    kClosed,     // the peer is gone
    kTruncated,  // longer than ORDMA_NP_MAX_MSG or more than ORDMA_NP_MAX_FDS descriptors
  };

  explicit MessageSocket(Fd fd) : fd_(std::move(fd)) {}
  [[nodiscard]] int fd() const { return fd_.get(); }

  // Descriptors of a truncated message are closed.
  [[nodiscard]] Result receive(std::vector<std::byte>* message, std::vector<Fd>* fds);
  // False when the peer is gone or does not take its replies.
  [[nodiscard]] bool send(std::span<const std::byte> message, std::span<const int> fds);

 private:
  Fd fd_;
};

// Listens at `path` (mode 0600). A socket file that nobody answers on is replaced; anything else in
// the way is refused. Without a value *error says why.
[[nodiscard]] Fd listen_unix(const std::string& path, int type, std::string* error);

}  // namespace ordma::softdev
