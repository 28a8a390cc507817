// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/fd.hpp"

namespace ordma::softdev {

// The write end of a pipe or socket that carries fixed-size event records to a client. Never
// blocks; what does not fit waits here. Equal waiting records are kept as one with a count, so
// memory is bounded by the client's objects and nothing is lost.
class EventSink {
 public:
  static constexpr std::size_t kRecordMax = 16;

  // A pipe whose read end goes to the client.
  [[nodiscard]] static std::unique_ptr<EventSink> make_pipe(Fd* read_end);
  // A descriptor from the client. Null with *error set when it is neither a pipe nor a socket.
  [[nodiscard]] static std::unique_ptr<EventSink> adopt(Fd fd, int* error);

  void post(std::span<const std::byte> record);
  // Takes back all records whose first eight bytes are `element` and that nobody has read; says how
  // many these were. A reader that polls may meanwhile find the pipe empty for a moment.
  std::uint64_t cancel(std::uint64_t element);
  // Writes what waits; true when anything was written.
  bool flush();
  [[nodiscard]] bool waiting() const { return !order_.empty(); }

 private:
  struct Record {
    std::array<std::byte, kRecordMax> bytes{};
    std::size_t size = 0;
    auto operator<=>(const Record&) const = default;
  };
  EventSink(Fd fd, bool socket) : fd_(std::move(fd)), socket_(socket) {}
  [[nodiscard]] bool try_write(const Record& record);
  void add(const Record& record);
  // What lies unread in the pipe, oldest first; the pipe is empty then.
  [[nodiscard]] std::vector<Record> take_unread();

  Fd fd_;
  bool socket_;
  bool broken_ = false;  // nobody reads any more
  std::size_t size_ = 0;  // of a record: one sink carries records of one size
  std::deque<Record> order_;
  std::map<Record, std::uint64_t> count_;
};

}  // namespace ordma::softdev
