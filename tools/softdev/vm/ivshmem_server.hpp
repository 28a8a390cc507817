// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/fd.hpp"

namespace ordma::softdev {

// The server side of QEMU's ivshmem-doorbell device for exactly one guest at a time. We are peer 0
// and have one vector, the kick; the guest is peer 1.
class IvshmemServer {
 public:
  static constexpr std::int64_t kOurId = 0;
  static constexpr std::int64_t kGuestId = 1;

  struct Events {
    std::function<void()> connected;
    std::function<void()> disconnected;
    std::function<void()> kicked;
  };

  // `vectors` must not exceed the device's property of that name.
  IvshmemServer(EventLoop& loop, unsigned vectors, Events events);
  ~IvshmemServer();
  IvshmemServer(const IvshmemServer&) = delete;
  IvshmemServer& operator=(const IvshmemServer&) = delete;

  // `memory_fd` becomes BAR2 of whoever connects. Empty on success, else why not.
  [[nodiscard]] std::string listen(const std::string& path, int memory_fd);
  // Raises an MSI-X vector of the guest. Vectors that it does not have are ignored.
  void interrupt(unsigned vector);
  [[nodiscard]] bool connected() const { return static_cast<bool>(peer_); }

 private:
  void accept_guest();
  [[nodiscard]] bool greet();
  void on_peer(std::uint32_t ready);
  void drop();

  EventLoop& loop_;
  Events events_;
  std::string path_;
  int memory_fd_ = -1;
  Fd listener_;
  Fd peer_;
  Fd kick_;
  std::vector<Fd> vectors_;
  EventLoop::WatchId listener_watch_ = 0;
  EventLoop::WatchId peer_watch_ = 0;
  EventLoop::WatchId kick_watch_ = 0;
};

}  // namespace ordma::softdev
