// SPDX-License-Identifier: BSD-2-Clause
#include "native/event_sink.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace ordma::softdev {

std::unique_ptr<EventSink> EventSink::make_pipe(Fd* read_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  read_end->reset(ends[0]);
  Fd write_end(ends[1]);
  // Only our end: the client reads its own as its program likes.
  if (::fcntl(write_end.get(), F_SETFL, O_NONBLOCK) != 0) return nullptr;
  return std::unique_ptr<EventSink>(new EventSink(std::move(write_end), false));
}

std::unique_ptr<EventSink> EventSink::adopt(Fd fd, int* error) {
  struct stat info {};
  *error = EINVAL;
  if (::fstat(fd.get(), &info) != 0) return nullptr;
  if (S_ISSOCK(info.st_mode)) {
    return std::unique_ptr<EventSink>(new EventSink(std::move(fd), true));
  }
  if (!S_ISFIFO(info.st_mode)) return nullptr;
  // A description of our own: the client's may be the one its program reads from, and whether that
  // blocks is the program's choice.
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  Fd own(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!own) {
    *error = errno;
    return nullptr;
  }
  return std::unique_ptr<EventSink>(new EventSink(std::move(own), false));
}

bool EventSink::try_write(const Record& record) {
  if (broken_) return true;
  const ssize_t done =
      socket_ ? ::send(fd_.get(), record.bytes.data(), record.size, MSG_DONTWAIT | MSG_NOSIGNAL)
              : ::write(fd_.get(), record.bytes.data(), record.size);
  if (done < 0) {
    if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) return false;
    broken_ = true;
  } else if (static_cast<std::size_t>(done) != record.size) {
    broken_ = true;  // a stream socket that splits records cannot be put right again
  }
  return true;
}

void EventSink::add(const Record& record) {
  if (order_.empty() && try_write(record)) return;
  if (count_[record]++ == 0) order_.push_back(record);
}

void EventSink::post(std::span<const std::byte> record) {
  assert(record.size() >= 8 && record.size() <= kRecordMax);
  assert(size_ == 0 || size_ == record.size());
  size_ = record.size();
  Record entry;
  std::memcpy(entry.bytes.data(), record.data(), record.size());
  entry.size = record.size();
  add(entry);
}

std::vector<EventSink::Record> EventSink::take_unread() {
  std::vector<Record> records;
  if (socket_ || size_ == 0) return records;
  // A description of our own: the client's is for its program alone, and whether that one blocks
  // too.
  const Fd reader(::open(("/proc/self/fd/" + std::to_string(fd_.get())).c_str(),
                         O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Record record;
  record.size = size_;
  while (reader &&
         ::read(reader.get(), record.bytes.data(), size_) == static_cast<ssize_t>(size_)) {
    records.push_back(record);
  }
  return records;
}

std::uint64_t EventSink::cancel(std::uint64_t element) {
  std::uint64_t taken = 0;
  const auto of_element = [element](const Record& record) {
    return std::memcmp(record.bytes.data(), &element, sizeof element) == 0;
  };
  for (const auto& [record, count] : count_) {
    if (of_element(record)) taken += count;
  }
  std::erase_if(order_, of_element);
  std::erase_if(count_, [&](const auto& entry) { return of_element(entry.first); });
  std::vector<Record> unread = take_unread();
  taken += std::erase_if(unread, of_element);
  // The rest goes back, in front of what waits; the pipe has room for all that was in it.
  for (const Record& record : unread) {
    if (!try_write(record)) add(record);
  }
  return taken;
}

bool EventSink::flush() {
  bool wrote = false;
  while (!order_.empty() && try_write(order_.front())) {
    wrote = true;
    const auto it = count_.find(order_.front());
    if (--it->second == 0) {
      count_.erase(it);
      order_.pop_front();
    }
  }
  return wrote;
}

}  // namespace ordma::softdev
