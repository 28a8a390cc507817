// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <toml++/toml.h>

#include "fabric/config.hpp"

namespace ordma::fabric {
namespace {

constexpr std::size_t kFileBytesMax = 1u << 20;

// Turns a TOML table into calls of FabricConfig::set(), so that both forms share names, ranges and
// error texts. Stops at the first error and keeps its place.
class TomlReader {
 public:
  TomlReader(FabricConfig& config, std::string_view origin) : config_(config), origin_(origin) {}

  void read_fabric(const toml::table& table) {
    for (const auto& [key, node] : table) {
      if (key.str() == "path") {
        read_paths(node, "");
      } else if (key.str() == "pair") {
        read_pairs(node);
      } else {
        read_value(std::string(key.str()), node);
      }
      if (!error_.empty()) {
        return;
      }
    }
  }

  void fail(const toml::node& node, const std::string& why) {
    if (error_.empty()) {
      const auto& at = node.source().begin;
      error_ = origin_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) +
               ": fabric: " + why;
    }
  }

  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  void read_paths(const toml::node& node, const std::string& prefix) {
    const toml::table* paths = node.as_table();
    if (paths == nullptr) {
      return fail(node, "path: expected tables [fabric.path.<n>], n 0..255");
    }
    for (const auto& [number, settings] : *paths) {
      const toml::table* table = settings.as_table();
      if (table == nullptr) {
        return fail(settings, "path: expected tables [fabric.path.<n>], n 0..255");
      }
      for (const auto& [key, value] : *table) {
        read_value(prefix + "path" + std::string(number.str()) + "." + std::string(key.str()),
                   value);
      }
    }
  }

  void read_pairs(const toml::node& node) {
    const toml::array* pairs = node.as_array();
    if (pairs == nullptr) {
      return fail(node, "pair: expected [[fabric.pair]] tables with from and to");
    }
    for (const toml::node& item : *pairs) {
      const toml::table* pair = item.as_table();
      const auto from = pair == nullptr ? std::nullopt : (*pair)["from"].value_exact<std::string>();
      const auto to = pair == nullptr ? std::nullopt : (*pair)["to"].value_exact<std::string>();
      if (!from || !to) {
        return fail(item, "pair: from and to must be port names or \"*\"");
      }
      read_pair(*pair, *from + ":" + *to + "/");
    }
  }

  void read_pair(const toml::table& pair, const std::string& prefix) {
    for (const auto& [key, node] : pair) {
      if (key.str() == "path") {
        read_paths(node, prefix);
      } else if (key.str() != "from" && key.str() != "to") {
        read_value(prefix + std::string(key.str()), node);
      }
    }
  }

  void read_value(const std::string& key, const toml::node& node) {
    if (key == "down" || key.ends_with("/down")) {
      if (const toml::array* windows = node.as_array(); windows != nullptr) {
        for (const toml::node& window : *windows) {
          set(key, window);
        }
        return;
      }
    }
    set(key, node);
  }

  void set(const std::string& key, const toml::node& node) {
    std::string text;
    if (const toml::array* parts = node.as_array(); parts != nullptr && parts->size() == 2) {
      const auto first = scalar(*parts->get(0));
      const auto second = scalar(*parts->get(1));
      if (!first || !second) {
        return fail(node, "key '" + key + "': expected two numbers");
      }
      text = *first + ":" + *second;
    } else if (const auto value = scalar(node); value) {
      text = *value;
    } else {
      return fail(node, "key '" + key + "': expected a number, a string or [a, b]");
    }
    if (const std::string error = config_.set(key, text); !error.empty()) {
      fail(node, error);
    }
  }

  static std::optional<std::string> scalar(const toml::node& node) {
    if (const auto* text = node.as_string(); text != nullptr) {
      return text->get();
    }
    if (const auto* integer = node.as_integer(); integer != nullptr) {
      return std::to_string(integer->get());
    }
    if (const auto* number = node.as_floating_point(); number != nullptr) {
      std::array<char, 32> digits;
      const auto [end, error] =
          std::to_chars(digits.data(), digits.data() + digits.size(), number->get());
      return error == std::errc() ? std::optional(std::string(digits.data(), end)) : std::nullopt;
    }
    return std::nullopt;
  }

  FabricConfig& config_;
  std::string origin_;
  std::string error_;
};

}  // namespace

ParsedConfig parse_toml_text(std::string_view text, std::string_view origin,
                             std::span<const std::string_view> other_tables) {
  ParsedConfig parsed;
  TomlReader reader(parsed.config, origin);
  try {
    const toml::table root = toml::parse(text, origin);
    for (const auto& [key, node] : root) {
      if (key.str() == "fabric" && node.is_table()) {
        reader.read_fabric(*node.as_table());
      } else if (std::find(other_tables.begin(), other_tables.end(), key.str()) ==
                 other_tables.end()) {
        reader.fail(node, "unknown top-level key '" + std::string(key.str()) +
                              "': expected a [fabric] table");
      }
    }
  } catch (const toml::parse_error& error) {
    const auto& at = error.source().begin;
    parsed.error = std::string(origin) + ":" + std::to_string(at.line) + ":" +
                   std::to_string(at.column) + ": " + std::string(error.description());
    return parsed;
  }
  parsed.error = reader.error();
  if (parsed.error.empty()) {
    if (const std::string error = parsed.config.validate(); !error.empty()) {
      parsed.error = std::string(origin) + ": fabric: " + error;
    }
  }
  return parsed;
}

ParsedConfig parse_toml_file(const std::string& path,
                             std::span<const std::string_view> other_tables) {
  ParsedConfig parsed;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  text.resize(kFileBytesMax + 1);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    parsed.error = path + ": cannot be read";
    return parsed;
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kFileBytesMax) {
    parsed.error = path + ": larger than 1 MiB";
    return parsed;
  }
  return parse_toml_text(text, path, other_tables);
}

}  // namespace ordma::fabric
