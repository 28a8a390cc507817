// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "native/event_sink.hpp"

using namespace ordma::softdev;

namespace {

std::array<std::byte, 16> record(std::uint64_t element, std::uint32_t type) {
  std::array<std::byte, 16> bytes{};
  std::memcpy(bytes.data(), &element, 8);
  std::memcpy(bytes.data() + 8, &type, 4);
  return bytes;
}

// All records that are in the pipe now.
std::vector<std::uint64_t> drain(int fd) {
  std::vector<std::uint64_t> elements;
  std::array<std::byte, 16> bytes;
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  while (::read(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    std::uint64_t element;
    std::memcpy(&element, bytes.data(), 8);
    elements.push_back(element);
  }
  return elements;
}

}  // namespace

TEST_CASE("events beyond a full pipe wait, and none is lost", "[events]") {
  Fd read_end;
  const auto sink = EventSink::make_pipe(&read_end);
  REQUIRE(sink);
  std::map<std::uint64_t, unsigned> sent, seen;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    sink->post(record(i % 97, 1));
    ++sent[i % 97];
  }
  CHECK(sink->waiting());
  for (int round = 0; round < 100 && seen != sent; ++round) {
    for (const std::uint64_t element : drain(read_end.get())) ++seen[element];
    sink->flush();
  }
  CHECK(seen == sent);
  CHECK_FALSE(sink->waiting());
}

TEST_CASE("order is kept while events wait", "[events]") {
  Fd read_end;
  const auto sink = EventSink::make_pipe(&read_end);
  std::uint64_t posted = 0;
  while (!sink->waiting()) sink->post(record(posted++, 1));
  for (int i = 0; i < 10; ++i) sink->post(record(posted++, 1));
  std::uint64_t expected = 0;
  while (expected < posted) {
    const auto got = drain(read_end.get());
    REQUIRE(!got.empty());
    for (const std::uint64_t element : got) REQUIRE(element == expected++);
    sink->flush();
  }
}

TEST_CASE("waiting events of a destroyed object are forgotten", "[events]") {
  Fd read_end;
  const auto sink = EventSink::make_pipe(&read_end);
  while (!sink->waiting()) sink->post(record(1, 1));
  sink->post(record(2, 1));
  sink->post(record(3, 1));
  sink->cancel(2);
  sink->cancel(1);
  (void)drain(read_end.get());
  CHECK(sink->flush());
  CHECK(drain(read_end.get()) == std::vector<std::uint64_t>{3});
}

TEST_CASE("a reader that is gone costs nothing", "[events]") {
  Fd read_end;
  const auto sink = EventSink::make_pipe(&read_end);
  read_end.reset();
  ::signal(SIGPIPE, SIG_IGN);
  for (int i = 0; i < 10; ++i) sink->post(record(1, 1));
  CHECK_FALSE(sink->waiting());
}

TEST_CASE("a completion channel may be a pipe or a socket and nothing else", "[events]") {
  int err = 0;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd pipe_read(ends[0]);
  auto sink = EventSink::adopt(Fd(ends[1]), &err);
  REQUIRE(sink);
  const auto seven = record(7, 0);
  sink->post(std::span(seven).first(8));
  std::uint64_t value = 0;
  CHECK(::read(pipe_read.get(), &value, 8) == 8);
  CHECK(value == 7);
  // The reader's own flags are not touched.
  CHECK((::fcntl(pipe_read.get(), F_GETFL) & O_NONBLOCK) == 0);

  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Fd other(ends[0]);
  CHECK(EventSink::adopt(Fd(ends[1]), &err) != nullptr);

  CHECK(EventSink::adopt(Fd(::open("/dev/null", O_RDWR | O_CLOEXEC)), &err) == nullptr);
  CHECK(err == EINVAL);
  CHECK(EventSink::adopt(Fd(), &err) == nullptr);
  CHECK(err == EINVAL);
}
