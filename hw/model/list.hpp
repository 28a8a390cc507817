// SPDX-License-Identifier: BSD-2-Clause
// Intrusive list: an object is on a list at most once and leaves it in O(1), so a destroyed QP is
// never left behind on a work list.
#pragma once

#include <cstddef>

namespace ordma::twin {

template <class T>
struct Link {
  T* prev = nullptr;
  T* next = nullptr;
  bool linked = false;
};

template <class T, Link<T> T::*Member>
class List {
 public:
  [[nodiscard]] bool empty() const { return head_ == nullptr; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] T* front() const { return head_; }
  [[nodiscard]] static T* next(const T& item) { return (item.*Member).next; }

  void push(T& item) {
    Link<T>& link = item.*Member;
    if (link.linked) return;
    link = {tail_, nullptr, true};
    (tail_ != nullptr ? (tail_->*Member).next : head_) = &item;
    tail_ = &item;
    ++size_;
  }
  void remove(T& item) {
    Link<T>& link = item.*Member;
    if (!link.linked) return;
    (link.prev != nullptr ? (link.prev->*Member).next : head_) = link.next;
    (link.next != nullptr ? (link.next->*Member).prev : tail_) = link.prev;
    link = {};
    --size_;
  }
  T* pop() {
    T* item = head_;
    if (item != nullptr) remove(*item);
    return item;
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ordma::twin
