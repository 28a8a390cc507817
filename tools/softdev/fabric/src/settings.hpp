// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fabric/config.hpp"

namespace ordma::fabric {

inline constexpr std::uint32_t kMtuMin = 68;  // smallest IPv4 MTU
inline constexpr std::uint64_t kTrimKeepMin = 12;
inline constexpr std::uint64_t kTrimKeepMax = 256;

enum class SettingScope : std::uint8_t { kFabric, kLink, kPath };

// The one table of keys: command line, TOML, overrides, help and README all go through it.
struct SettingSpec {
  std::string_view name;
  SettingScope scope;
  std::string_view range;
  std::string_view meaning;
  // Writes the value into the object of its scope; false when it is outside the range.
  bool (*apply)(FabricConfig& fabric, LinkConfig& link, PathConfig& path, std::string_view value);
};

[[nodiscard]] std::span<const SettingSpec> all_settings();
[[nodiscard]] const SettingSpec* find_setting(std::string_view name);  // null when unknown
[[nodiscard]] std::string setting_names();

// "[from:to/][path<n>.]key" into its parts; returns an error text, empty on success.
[[nodiscard]] std::string split_key(std::string_view key, FabricConfig::Override& parts);

[[nodiscard]] std::string_view trim_blanks(std::string_view text);

}  // namespace ordma::fabric
