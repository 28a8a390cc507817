// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "native_proto.h"

namespace ordma::cli {

// One connection to a soft-device, speaking the native control protocol.
class Client {
 public:
  explicit Client(const std::filesystem::path& socket);  // throws Error when nobody listens
  ~Client();
  Client(Client&& other) noexcept;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // True when a soft-device answers on the socket.
  static bool listening(const std::filesystem::path& socket);

  ordma_np_hello_resp hello(unsigned nic);
  ordma_np_device query_device();
  ordma_np_port query_port();
  ordma_np_gid query_gid(unsigned index);
  std::string counters();

  // Process that listens on the socket.
  int peer_pid() const;

  // Gives up ownership: the descriptor stays open across exec and keeps the network alive.
  int release_inheritable();

 private:
  std::vector<std::byte> call(unsigned op, std::span<const std::byte> request);
  template <typename Reply, typename Request>
  Reply call(unsigned op, const Request& request);

  int fd_ = -1;
  unsigned seq_ = 0;
};

}  // namespace ordma::cli
