// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "fabric/fabric.hpp"

namespace ordma::fabric {

// One copy of a frame under way.
struct Event {
  std::uint64_t due_ns = 0;
  std::uint64_t sequence = 0;
  Frame frame;
  PortId from = kNoPort;
  PortId to = kNoPort;
  std::uint32_t path = 0;
  std::uint32_t fate = 0;
  bool last_hop_done = false;

  [[nodiscard]] bool before(const Event& other) const {
    return due_ns != other.due_ns ? due_ns < other.due_ns : sequence < other.sequence;
  }
};

// Events by (due, sequence). Most arrive already in order (no fault, constant delay) and go through
// a ring that allocates only to grow; the rest go through a heap.
class EventQueue {
 public:
  void push(Event event) {
    if (ring_used_ == 0 || event.due_ns >= ring_at(ring_used_ - 1).due_ns) {
      push_ring(std::move(event));
      return;
    }
    heap_.push_back(std::move(event));
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  [[nodiscard]] std::size_t size() const { return ring_used_ + heap_.size(); }
  // Only when size() > 0.
  [[nodiscard]] const Event& front() const {
    return ring_is_next() ? ring_[ring_head_] : heap_.front();
  }

  Event pop() {
    if (!ring_is_next()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      Event event = std::move(heap_.back());
      heap_.pop_back();
      return event;
    }
    Event event = std::move(ring_[ring_head_]);
    ring_head_ = (ring_head_ + 1) & (ring_.size() - 1);
    --ring_used_;
    return event;
  }

 private:
  static constexpr std::size_t kRingStart = 64;

  static bool later(const Event& a, const Event& b) { return b.before(a); }

  Event& ring_at(std::size_t index) { return ring_[(ring_head_ + index) & (ring_.size() - 1)]; }

  [[nodiscard]] bool ring_is_next() const {
    return heap_.empty() || (ring_used_ != 0 && ring_[ring_head_].before(heap_.front()));
  }

  void push_ring(Event event) {
    if (ring_used_ == ring_.size()) {
      std::vector<Event> grown(std::max(kRingStart, ring_.size() * 2));
      for (std::size_t i = 0; i < ring_used_; ++i) {
        grown[i] = std::move(ring_at(i));
      }
      ring_ = std::move(grown);
      ring_head_ = 0;
    }
    ring_at(ring_used_) = std::move(event);
    ++ring_used_;
  }

  std::vector<Event> ring_;  // size is a power of two
  std::size_t ring_head_ = 0;
  std::size_t ring_used_ = 0;
  std::vector<Event> heap_;
};

}  // namespace ordma::fabric
