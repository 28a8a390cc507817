// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/event_loop.hpp"
#include "device/network.hpp"

namespace ordma::softdev {

// The thread of a soft-device: runs the network while there is work and sleeps when there is none,
// without losing a doorbell.
//
// Going to sleep: ASLEEP = 1, full fence, a last look at every doorbell, then wait. A poster
// stores, fences, reads ASLEEP and kicks if it is 1. Whatever the interleaving, either the last
// look sees the store or the poster sees ASLEEP.
class Runner {
 public:
  // After the last work: long enough that a client that answers at once (a ping-pong) finds the
  // engine awake, short enough that it does not eat a core that clients need.
  static constexpr std::uint64_t kSpinNs = 30'000;
  // How often sockets are looked at while there is work: control verbs may wait this long.
  static constexpr std::uint64_t kPollNs = 20'000;
  // Who rings a token page never looks at ASLEEP.
  static constexpr std::uint64_t kTokenSleepNs = 100'000;

  Runner(Network& network, EventLoop& loop) : network_(network), loop_(loop) {}

  // Until `stop` says so; it is asked between passes and after every sleep.
  void run(const std::function<bool()>& stop);
  // One round: a pass and, when there was nothing to do for a while, a sleep of at most `max_ns`.
  void round(std::uint64_t max_ns);

  void append_counters(std::string* text) const;

 private:
  void sleep(std::uint64_t max_ns);

  Network& network_;
  EventLoop& loop_;
  std::uint64_t last_work_ns_ = 0;
  std::uint64_t last_poll_ns_ = 0;
  std::uint64_t passes_ = 0;
  std::uint64_t sleeps_ = 0;
  std::uint64_t refused_sleeps_ = 0;  // the last look found a doorbell
};

}  // namespace ordma::softdev
