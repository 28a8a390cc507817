// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>

#include "device/addresses.hpp"
#include "native/event_sink.hpp"
#include "ordma_obj.h"
#include "ordma_qp.h"

namespace ordma::softdev {

// Where a queue's doorbell is.
struct DoorbellSlot {
  std::uint32_t page = 0;
  std::uint32_t slot = 0;
  std::uint32_t count = 0;
};

// Verbs objects of one client. `refs` counts the objects that use this one: not zero is EBUSY.
struct Pd {
  ordma_pd core{};
  std::uint32_t refs = 0;
};

struct Mr {
  ordma_mr core{};
  Pd* pd = nullptr;
};

struct Channel {
  std::shared_ptr<EventSink> sink;  // with the CQs that report to it
};

struct Cq {
  ordma_cq core{};
  std::uint32_t cqe = 0;
  std::uint32_t refs = 0;
  std::uint64_t user_handle = 0;
  std::shared_ptr<EventSink> channel;  // null: no completion channel
  EventSink* async = nullptr;
  std::uint32_t comp_events = 0;  // posted to the channel
  std::uint32_t async_events = 0;
  DoorbellSlot doorbell;
};

struct Srq {
  ordma_srq core{};
  Pd* pd = nullptr;
  std::uint32_t refs = 0;
  std::uint64_t user_handle = 0;
  EventSink* async = nullptr;
  std::uint32_t async_events = 0;
  DoorbellSlot doorbell;
};

struct Qp {
  ordma_qp core{};
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;
  std::uint64_t user_handle = 0;
  EventSink* async = nullptr;
  std::uint32_t async_events = 0;
  DoorbellSlot doorbell;
  std::set<Gid> multicast;
};

// Handles of one kind of object. A handle comes back only after 2^32 others.
template <typename T>
class HandleTable {
 public:
  [[nodiscard]] std::uint32_t add(std::unique_ptr<T> object) {
    while (objects_.contains(next_)) ++next_;
    objects_.emplace(next_, std::move(object));
    return next_++;
  }
  [[nodiscard]] T* find(std::uint32_t handle) const {
    const auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second.get();
  }
  void remove(std::uint32_t handle) { objects_.erase(handle); }
  [[nodiscard]] std::size_t size() const { return objects_.size(); }
  [[nodiscard]] bool empty() const { return objects_.empty(); }
  // Any one of them, with its handle.
  [[nodiscard]] std::uint32_t first() const { return objects_.begin()->first; }

 private:
  std::unordered_map<std::uint32_t, std::unique_ptr<T>> objects_;
  std::uint32_t next_ = 1;
};

}  // namespace ordma::softdev
