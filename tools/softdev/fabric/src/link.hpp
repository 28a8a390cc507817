// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "fabric/config.hpp"
#include "fabric/counters.hpp"
#include "fabric/fabric.hpp"
#include "pacer.hpp"
#include "rng.hpp"

namespace ordma::fabric {

// Saturating, so a hostile clock cannot wrap a due time into the past.
[[nodiscard]] constexpr std::uint64_t add_time(std::uint64_t a, std::uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

// What a path decides about one frame, before anything is changed or queued.
struct PathDecision {
  DropReason drop = DropReason::kNone;
  std::uint64_t due_ns = 0;
  std::uint32_t fate = 0;
  bool duplicate = false;
  std::uint64_t duplicate_due_ns = 0;
  std::uint32_t duplicate_fate = 0;
};

// One direction of one path: a queue in front of a wire, then faults, then the flight.
class Path {
 public:
  Path(const PathConfig& config, std::uint64_t stream_seed);
  // Keeps the queue and the random streams.
  void configure(const PathConfig& config, std::vector<DownWindow> down);

  // Marks and trims `frame` in place where the queue asks for it; draws all random faults except
  // the position of a corrupted bit.
  PathDecision decide(Frame& frame, std::uint64_t now_ns, std::uint64_t buffer_bytes,
                      const FilterVerdict& verdict);
  // Flips one bit behind the Ethernet header; false when there is none.
  bool corrupt(Frame& frame);

  Counters counters;

 private:
  enum Stream : std::size_t { kLoss, kBurst, kJitter, kDup, kReorder, kCorrupt, kFlip, kStreams };

  bool enqueue(Frame& frame, std::uint64_t now_ns, std::uint64_t buffer_bytes,
               PathDecision& decision);
  void fly(std::uint64_t now_ns, PathDecision& decision);
  DropReason draw_loss();
  bool down_during(std::uint64_t from_ns, std::uint64_t to_ns) const;
  bool hold_back(Rng& rng, std::uint64_t& due_ns);

  PathConfig config_;
  std::vector<DownWindow> down_;
  bool plain_ = false;  // infinite, immediate and faultless
  bool burst_bad_ = false;
  Pacer data_;
  Pacer trimmed_;
  std::uint64_t last_due_ns_ = 0;
  std::uint64_t last_trimmed_due_ns_ = 0;
  std::array<Rng, kStreams> rng_;
};

// One direction between two ports.
struct Link {
  Link(const ResolvedLink& resolved, std::uint64_t stream_seed);
  // Returns the counters of paths that no longer exist, by path number from the new k on.
  std::vector<Counters> configure(const ResolvedLink& resolved);

  LinkConfig config;
  std::uint64_t seed;
  std::vector<std::unique_ptr<Path>> paths;
};

}  // namespace ordma::fabric
