// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ordma::fabric {

// The same set counts a port, a path of a port pair, a path number over all pairs, and the whole
// fabric. A fault is counted at the port that sent the frame; rx_* at the port that got it.
struct Counters {
  std::uint64_t tx_frames = 0;  // handed to the fabric (per path: placed on that path)
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_frames = 0;  // delivered
  std::uint64_t rx_bytes = 0;
  std::uint64_t lost = 0;        // uniform loss
  std::uint64_t burst_lost = 0;  // Gilbert-Elliott bad state
  std::uint64_t down_lost = 0;   // path was down
  std::uint64_t filter_lost = 0;  // dropped by the filter hook
  std::uint64_t dup = 0;          // extra copies made by duplication
  std::uint64_t reordered = 0;    // held back
  std::uint64_t corrupted = 0;
  std::uint64_t marked = 0;   // CE set
  std::uint64_t trimmed = 0;
  std::uint64_t queue_drops = 0;  // path queue, port queue or fabric buffer full
  std::uint64_t oversize = 0;     // above the MTU
  std::uint64_t runt = 0;         // shorter than an Ethernet header
  std::uint64_t flooded = 0;      // multicast, broadcast and unknown unicast frames
  std::uint64_t no_port = 0;      // nobody to deliver to, or the port went away in flight

  bool operator==(const Counters&) const = default;
};

struct CounterName {
  std::string_view name;
  std::uint64_t Counters::* field;
};

inline constexpr std::array<CounterName, 18> kCounterNames = {{
    {"tx_frames", &Counters::tx_frames},
    {"tx_bytes", &Counters::tx_bytes},
    {"rx_frames", &Counters::rx_frames},
    {"rx_bytes", &Counters::rx_bytes},
    {"lost", &Counters::lost},
    {"burst_lost", &Counters::burst_lost},
    {"down_lost", &Counters::down_lost},
    {"filter_lost", &Counters::filter_lost},
    {"dup", &Counters::dup},
    {"reordered", &Counters::reordered},
    {"corrupted", &Counters::corrupted},
    {"marked", &Counters::marked},
    {"trimmed", &Counters::trimmed},
    {"queue_drops", &Counters::queue_drops},
    {"oversize", &Counters::oversize},
    {"runt", &Counters::runt},
    {"flooded", &Counters::flooded},
    {"no_port", &Counters::no_port},
}};
static_assert(sizeof(Counters) == kCounterNames.size() * sizeof(std::uint64_t),
              "a counter without a name would be invisible");

}  // namespace ordma::fabric
