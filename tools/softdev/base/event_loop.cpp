// SPDX-License-Identifier: BSD-2-Clause
#include "base/event_loop.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

namespace ordma::softdev {

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
}

EventLoop::WatchId EventLoop::add(int fd, std::uint32_t events, Handler handler) {
  // Closing a descriptor ended its old watch in the kernel; here it ends now.
  if (const auto it = by_fd_.find(fd); it != by_fd_.end()) forget(it->second);
  auto watch = std::make_unique<Watch>(Watch{next_, fd, std::move(handler)});
  epoll_event event{};
  event.events = events;
  event.data.ptr = watch.get();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return 0;
  by_fd_[fd] = watch.get();
  watches_.emplace(next_, std::move(watch));
  return next_++;
}

void EventLoop::modify(WatchId id, std::uint32_t events) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.ptr = it->second.get();
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, it->second->fd, &event);
}

void EventLoop::remove(WatchId id) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) return;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second->fd, nullptr);
  forget(it->second.get());
}

void EventLoop::forget(Watch* watch) {
  watch->removed = true;
  by_fd_.erase(watch->fd);
  const auto it = watches_.find(watch->id);
  removed_.push_back(std::move(it->second));
  watches_.erase(it);
}

unsigned EventLoop::wait(std::uint64_t timeout_ns) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  std::array<epoll_event, kBatch> events;
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(std::min<std::uint64_t>(timeout_ns / kSecond, 3600));
  timeout.tv_nsec = static_cast<long>(timeout_ns % kSecond);
  const int ready = ::epoll_pwait2(epoll_.get(), events.data(), kBatch, &timeout, nullptr);
  unsigned handled = 0;
  for (int i = 0; i < ready; ++i) {
    auto* watch = static_cast<Watch*>(events[static_cast<std::size_t>(i)].data.ptr);
    if (watch->removed) continue;
    watch->handler(events[static_cast<std::size_t>(i)].events);
    ++handled;
  }
  removed_.clear();
  return handled;
}

}  // namespace ordma::softdev
