// SPDX-License-Identifier: BSD-2-Clause
#include "base/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.hpp"

namespace ordma::softdev {
namespace {

struct Sink {
  LogLevel level = LogLevel::kWarn;
  Fd file;
};

Sink& sink() {
  static Sink the_sink;
  return the_sink;
}

constexpr std::string_view kNames[] = {"error", "warn", "info", "debug"};

}  // namespace

std::optional<LogLevel> log_level_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

std::string log_to_file(const std::string& path) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return path + ": " + std::strerror(errno);
  sink().file = std::move(file);
  return {};
}

void log_set_level(LogLevel level) { sink().level = level; }

bool log_enabled(LogLevel level) { return level <= sink().level; }

void log_line(LogLevel level, std::string_view text) {
  const std::string line =
      fmt::format("ordma-softdev: {}: {}\n", kNames[static_cast<std::size_t>(level)], text);
  const int fd = sink().file ? sink().file.get() : STDERR_FILENO;
  // A log that cannot be written must not stop the device.
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
}

}  // namespace ordma::softdev
