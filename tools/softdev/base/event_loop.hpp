// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/fd.hpp"

namespace ordma::softdev {

// epoll with one callback per descriptor, level-triggered. Watches have identities of their own: a
// descriptor number may be closed and reused before its watch is removed.
class EventLoop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;
  using WatchId = std::uint64_t;  // never reused; 0 is none

  EventLoop();
  // 0 when the descriptor cannot be watched (EPERM: a plain file; ENOSPC: too many).
  [[nodiscard]] WatchId add(int fd, std::uint32_t events, Handler handler);
  void modify(WatchId id, std::uint32_t events);
  // No call to its handler begins after this.
  void remove(WatchId id);
  // Runs the handlers of what is ready, each at most once. Returns their number.
  unsigned wait(std::uint64_t timeout_ns);

 private:
  struct Watch {
    WatchId id;
    int fd;
    Handler handler;
    bool removed = false;
  };
  static constexpr int kBatch = 64;

  void forget(Watch* watch);

  Fd epoll_;
  WatchId next_ = 1;
  std::unordered_map<WatchId, std::unique_ptr<Watch>> watches_;
  std::unordered_map<int, Watch*> by_fd_;
  std::vector<std::unique_ptr<Watch>> removed_;  // a batch in progress may still name them
};

}  // namespace ordma::softdev
