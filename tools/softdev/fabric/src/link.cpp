// SPDX-License-Identifier: BSD-2-Clause
#include "link.hpp"

#include <algorithm>

#include "packet.hpp"

namespace ordma::fabric {
namespace {

bool is_plain(const PathConfig& c) {
  return c.rate_mbps == 0 && c.delay_ns == 0 && c.jitter_ns == 0 && c.loss == 0 &&
         c.burst_enter == 0 && c.dup == 0 && c.reorder == 0 && c.corrupt == 0;
}

std::vector<DownWindow> windows_of(const LinkConfig& link, std::uint32_t path) {
  std::vector<DownWindow> windows;
  std::copy_if(link.down.begin(), link.down.end(), std::back_inserter(windows),
               [path](const DownWindow& window) { return window.path == path; });
  return windows;
}

}  // namespace

Path::Path(const PathConfig& config, std::uint64_t stream_seed) : config_(config) {
  // One stream per kind of fault: switching one fault on leaves the pattern of the others alone.
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    rng_[stream] = Rng(mix64(stream_seed + stream));
  }
}

void Path::configure(const PathConfig& config, std::vector<DownWindow> down) {
  if (config.rate_mbps != config_.rate_mbps) {
    data_.rate_changed();
    trimmed_.rate_changed();
  }
  if (config.burst_enter == 0) {
    burst_bad_ = false;
  }
  config_ = config;
  down_ = std::move(down);
  plain_ = is_plain(config_) && down_.empty();
}

// Trimmed frames take a strict-priority queue, as trimming switches do: they leave ahead of queued
// data but use up the same wire, so data behind them leaves later.
bool Path::enqueue(Frame& frame, std::uint64_t now_ns, std::uint64_t buffer_bytes,
                   PathDecision& decision) {
  const std::uint64_t rate = config_.rate_mbps;
  const std::uint64_t backlog = data_.backlog_bytes(now_ns, rate);
  const std::uint64_t limit = std::min(config_.queue_bytes.value_or(buffer_bytes), buffer_bytes);
  bool trimmed = false;
  if (config_.trim_bytes && backlog > *config_.trim_bytes) {
    trimmed = trim_packet(frame, config_.trim_keep_bytes, config_.trim_dscp,
                          config_.trim_from_dscp);
  }
  const std::uint64_t wire_bytes = frame.size() + config_.overhead_bytes;
  if (trimmed) {
    if (trimmed_.backlog_bytes(now_ns, rate) + wire_bytes > limit) {
      return false;
    }
    decision.fate |= kFateTrimmed;
    decision.due_ns = trimmed_.depart(now_ns, wire_bytes, rate);
    (void)data_.depart(now_ns, wire_bytes, rate);
    return true;
  }
  if (backlog + wire_bytes > limit) {
    return false;
  }
  if (config_.ecn_bytes && backlog > *config_.ecn_bytes && mark_congestion(frame)) {
    decision.fate |= kFateMarked;
  }
  decision.due_ns = data_.depart(now_ns, wire_bytes, rate);
  return true;
}

DropReason Path::draw_loss() {
  if (config_.burst_enter > 0) {
    burst_bad_ = burst_bad_ ? !rng_[kBurst].chance(config_.burst_leave)
                            : rng_[kBurst].chance(config_.burst_enter);
  }
  const bool lost = rng_[kLoss].chance(config_.loss);
  if (lost) {
    return DropReason::kLoss;
  }
  return burst_bad_ ? DropReason::kBurst : DropReason::kNone;
}

bool Path::down_during(std::uint64_t from_ns, std::uint64_t to_ns) const {
  return std::any_of(down_.begin(), down_.end(), [&](const DownWindow& window) {
    return from_ns < window.to_ns && to_ns >= window.from_ns;
  });
}

bool Path::hold_back(Rng& rng, std::uint64_t& due_ns) {
  if (!rng.chance(config_.reorder)) {
    return false;
  }
  due_ns = add_time(due_ns, 1 + rng.below(config_.reorder_ns));
  return true;
}

void Path::fly(std::uint64_t now_ns, PathDecision& decision) {
  // A lost frame has used its time on the wire: loss comes after the queue. Every stream is drawn
  // for lost frames too, so one fault does not shift the pattern of another.
  decision.drop = draw_loss();
  std::uint64_t flight = config_.delay_ns;
  if (config_.jitter_ns != 0) {
    flight += rng_[kJitter].below(config_.jitter_ns + 1);
  }
  std::uint64_t& last = (decision.fate & kFateTrimmed) != 0 ? last_trimmed_due_ns_ : last_due_ns_;
  const std::uint64_t in_order_due = std::max(add_time(decision.due_ns, flight), last);
  decision.due_ns = in_order_due;
  if (hold_back(rng_[kReorder], decision.due_ns)) {
    decision.fate |= kFateReordered;
  }
  if (rng_[kCorrupt].chance(config_.corrupt)) {
    decision.fate |= kFateCorrupted;
  }
  if (rng_[kDup].chance(config_.dup)) {
    decision.duplicate = true;
    decision.duplicate_due_ns = in_order_due;
    if (hold_back(rng_[kDup], decision.duplicate_due_ns)) {
      decision.duplicate_fate |= kFateReordered;
    }
  }
  if (decision.drop == DropReason::kNone && down_during(now_ns, decision.due_ns)) {
    decision.drop = DropReason::kDown;
  }
  if (decision.drop == DropReason::kNone) {
    last = in_order_due;
  }
}

PathDecision Path::decide(Frame& frame, std::uint64_t now_ns, std::uint64_t buffer_bytes,
                          const FilterVerdict& verdict) {
  PathDecision decision;
  decision.due_ns = now_ns;
  if (!plain_) {
    if (down_during(now_ns, now_ns)) {
      decision.drop = DropReason::kDown;
      return decision;
    }
    if (config_.rate_mbps != 0 && !enqueue(frame, now_ns, buffer_bytes, decision)) {
      decision.drop = DropReason::kQueue;
      return decision;
    }
    fly(now_ns, decision);
  }
  if (verdict.dup && !decision.duplicate) {
    decision.duplicate = true;
    decision.duplicate_due_ns = decision.due_ns;
  }
  decision.duplicate_fate |= decision.fate & (kFateMarked | kFateTrimmed);
  if (verdict.extra_delay_ns != 0) {
    decision.due_ns = add_time(decision.due_ns, verdict.extra_delay_ns);
    decision.fate |= kFateReordered;
  }
  return decision;
}

bool Path::corrupt(Frame& frame) {
  if (frame.size() <= Frame::kEthernetBytes) {
    return false;
  }
  const std::uint64_t bits = (frame.size() - Frame::kEthernetBytes) * 8;
  const std::uint64_t bit = Frame::kEthernetBytes * 8 + rng_[kFlip].below(bits);
  frame.writable()[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
  return true;
}

Link::Link(const ResolvedLink& resolved, std::uint64_t stream_seed) : seed(stream_seed) {
  (void)configure(resolved);
}

std::vector<Counters> Link::configure(const ResolvedLink& resolved) {
  config = resolved.link;
  std::vector<Counters> gone;
  for (std::size_t path = config.k; path < paths.size(); ++path) {
    gone.push_back(paths[path]->counters);
  }
  paths.resize(std::min<std::size_t>(paths.size(), config.k));
  for (std::uint32_t path = 0; path < config.k; ++path) {
    if (path == paths.size()) {
      paths.push_back(std::make_unique<Path>(resolved.paths[path], mix64(seed + path)));
    }
    paths[path]->configure(resolved.paths[path], windows_of(config, path));
  }
  return gone;
}

}  // namespace ordma::fabric
