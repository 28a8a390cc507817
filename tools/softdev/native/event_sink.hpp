// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>

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
  // Forgets waiting records whose first eight bytes are `element`.
  void cancel(std::uint64_t element);
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

  Fd fd_;
  bool socket_;
  bool broken_ = false;  // nobody reads any more
  std::deque<Record> order_;
  std::map<Record, std::uint64_t> count_;
};

}  // namespace ordma::softdev
