// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "device/network.hpp"
#include "fabric/uplink.hpp"

namespace ordma::softdev {

// The uplinks of a network: their descriptors and poll masks change with every call, so what the
// event loop watches is brought up to date before each wait.
class Uplinks {
 public:
  Uplinks(Network& network, EventLoop& loop) : network_(network), loop_(loop) {}
  ~Uplinks();

  // Empty on success, else why not.
  [[nodiscard]] std::string listen(const std::string& path);
  [[nodiscard]] std::string connect(const std::string& path);
  // Before every wait.
  void refresh();
  void append_counters(std::string* text) const;

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<fabric::Uplink> link;
    int fd = -1;
    std::uint32_t events = 0;
    EventLoop::WatchId watch = 0;
  };
  [[nodiscard]] std::string add(std::unique_ptr<fabric::Uplink> link, const std::string& name,
                                const std::string& error);

  Network& network_;
  EventLoop& loop_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace ordma::softdev
