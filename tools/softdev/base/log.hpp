// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ordma::softdev {

enum class LogLevel : std::uint8_t { kError, kWarn, kInfo, kDebug };

[[nodiscard]] std::optional<LogLevel> log_level_of(std::string_view name);
// Lines go to standard error until a file is set. Empty on success, else why the file cannot be.
[[nodiscard]] std::string log_to_file(const std::string& path);
void log_set_level(LogLevel level);
[[nodiscard]] bool log_enabled(LogLevel level);
// Writes one line at once. Repeats caused by one hostile client are bounded by its request rate.
void log_line(LogLevel level, std::string_view text);

template <typename... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kError, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kWarn, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kDebug, format, std::forward<Args>(args)...);
}

}  // namespace ordma::softdev
