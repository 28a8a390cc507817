// SPDX-License-Identifier: BSD-2-Clause
#include "device/uplinks.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <iterator>
#include <utility>

#include "base/log.hpp"

namespace ordma::softdev {
namespace {

static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT && POLLHUP == EPOLLHUP &&
              POLLERR == EPOLLERR);

}  // namespace

Uplinks::~Uplinks() {
  for (const auto& entry : entries_) loop_.remove(entry->watch);
}

std::string Uplinks::add(std::unique_ptr<fabric::Uplink> link, const std::string& name,
                         const std::string& error) {
  if (link == nullptr) return error;
  auto entry = std::make_unique<Entry>();
  entry->name = name;
  entry->link = std::move(link);
  entries_.push_back(std::move(entry));
  refresh();
  return {};
}

std::string Uplinks::listen(const std::string& path) {
  std::string error;
  const std::string name = fmt::format("uplink{}", entries_.size());
  return add(fabric::Uplink::listen(network_.fabric(), path, {.name = name}, &error), name, error);
}

std::string Uplinks::connect(const std::string& path) {
  std::string error;
  const std::string name = fmt::format("uplink{}", entries_.size());
  return add(fabric::Uplink::connect(network_.fabric(), path, {.name = name}, &error), name, error);
}

void Uplinks::refresh() {
  for (const auto& entry : entries_) {
    const int fd = entry->link->fd();
    const auto events = static_cast<std::uint32_t>(entry->link->poll_events());
    if (fd == entry->fd && events == entry->events) continue;
    if (fd == entry->fd) {
      loop_.modify(entry->watch, events);
    } else {
      loop_.remove(entry->watch);
      Entry& target = *entry;
      entry->watch = fd < 0 ? 0 : loop_.add(fd, events, [this, &target](std::uint32_t ready) {
        target.link->on_events(static_cast<short>(ready), network_.clock().now());
      });
      if (fd >= 0 && entry->watch == 0) log_error("{}: cannot be watched", entry->name);
    }
    entry->fd = fd;
    entry->events = events;
  }
}

void Uplinks::append_counters(std::string* text) const {
  for (const auto& entry : entries_) {
    const fabric::UplinkCounters& counters = entry->link->counters();
    const auto line = [&](std::string_view name, std::uint64_t value) {
      fmt::format_to(std::back_inserter(*text), "{} {} {}\n", entry->name, name, value);
    };
    line("rx_frames", counters.rx_frames);
    line("tx_frames", counters.tx_frames);
    line("tx_drops", counters.tx_drops);
    line("bad_length", counters.bad_length);
    line("peers", counters.peers);
  }
}

}  // namespace ordma::softdev
