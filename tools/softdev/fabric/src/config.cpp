// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/config.hpp"

#include <algorithm>
#include <set>

#include "settings.hpp"

namespace ordma::fabric {
namespace {

constexpr std::size_t kSettingsMax = 4096;

bool matches(std::string_view pattern, std::string_view name) {
  return pattern == "*" || pattern == name;
}

std::string check_down(const LinkConfig& link) {
  for (const DownWindow& window : link.down) {
    if (window.path >= link.k) {
      return "down: path " + std::to_string(window.path) + " must be below k = " +
             std::to_string(link.k);
    }
  }
  return {};
}

std::string check_path(const PathConfig& path) {
  const auto bad_probability = [](double p) { return !(p >= 0 && p <= 1); };
  if (bad_probability(path.loss) || bad_probability(path.dup) || bad_probability(path.reorder) ||
      bad_probability(path.corrupt) || bad_probability(path.burst_enter) ||
      bad_probability(path.burst_leave)) {
    return "a probability is outside 0..1";
  }
  if (path.rate_mbps == 0 && path.ecn_bytes) {
    return "ecn needs rate_gbps above 0: without a rate no queue builds";
  }
  if (path.rate_mbps == 0 && path.trim_bytes) {
    return "trim needs rate_gbps above 0: without a rate no queue builds";
  }
  if (path.rate_mbps == 0 && path.queue_bytes) {
    return "queue needs rate_gbps above 0: without a rate no queue builds";
  }
  if (path.reorder > 0 && path.reorder_ns == 0) {
    return "reorder needs a window of at least 1 ns";
  }
  if (path.trim_keep_bytes < kTrimKeepMin || path.trim_keep_bytes > kTrimKeepMax) {
    return "trim_keep: allowed range 12..256 bytes";
  }
  return {};
}

std::string check_link(const ResolvedLink& resolved) {
  if (resolved.link.k < 1 || resolved.link.k > kMaxPaths) {
    return "k: allowed range 1..256";
  }
  for (const PathConfig& path : resolved.paths) {
    if (std::string error = check_path(path); !error.empty()) {
      return error;
    }
  }
  return {};
}

std::string check_override(const FabricConfig& config, const FabricConfig::Override& item) {
  const ResolvedLink resolved = config.resolve(item.from, item.to);
  const std::string where = item.from + ":" + item.to + "/";
  if (item.path && *item.path >= resolved.link.k) {
    return where + "path" + std::to_string(*item.path) + "." + item.key +
           ": path must be below k = " + std::to_string(resolved.link.k);
  }
  if (item.key == "down") {
    if (std::string error = check_down(resolved.link); !error.empty()) {
      return where + error;
    }
  }
  if (std::string error = check_link(resolved); !error.empty()) {
    return where + item.key + ": " + error;
  }
  return {};
}

}  // namespace

std::string FabricConfig::set(std::string_view key, std::string_view value) {
  const std::string_view whole = key;
  Override item;
  if (std::string error = split_key(key, item); !error.empty()) {
    return error;
  }
  const SettingSpec* spec = find_setting(item.key);
  if (spec == nullptr) {
    return "unknown key '" + std::string(whole) + "'; known keys: " + setting_names();
  }
  const bool prefixed = item.from != "*" || item.to != "*" || item.path;
  if (prefixed && spec->scope == SettingScope::kFabric) {
    return "key '" + std::string(whole) + "': " + item.key + " belongs to the whole fabric";
  }
  if (item.path && spec->scope != SettingScope::kPath) {
    return "key '" + std::string(whole) + "': " + item.key + " belongs to a port pair, not a path";
  }
  if (overrides.size() >= kSettingsMax) {
    return "more than 4096 settings";
  }
  FabricConfig scratch;
  if (!spec->apply(prefixed ? scratch : *this, prefixed ? scratch.base : base,
                   prefixed ? scratch.base.path : base.path, value)) {
    return "key '" + std::string(whole) + "' = '" + std::string(value) + "': allowed range " +
           std::string(spec->range);
  }
  if (prefixed) {
    item.value = value;
    overrides.push_back(std::move(item));
  }
  return {};
}

ResolvedLink FabricConfig::resolve(std::string_view from, std::string_view to) const {
  ResolvedLink resolved;
  resolved.link = base;
  FabricConfig scratch;  // overrides never reach the fabric scope, see set()
  const auto apply = [&](const Override& item, PathConfig& path) {
    if (const SettingSpec* spec = find_setting(item.key); spec != nullptr) {
      (void)spec->apply(scratch, resolved.link, path, item.value);
    }
  };
  for (const Override& item : overrides) {
    if (!item.path && matches(item.from, from) && matches(item.to, to)) {
      apply(item, resolved.link.path);
    }
  }
  const std::uint32_t k = std::clamp<std::uint32_t>(resolved.link.k, 1, kMaxPaths);
  resolved.paths.assign(k, resolved.link.path);
  for (const Override& item : overrides) {
    if (item.path && *item.path < k && matches(item.from, from) && matches(item.to, to)) {
      apply(item, resolved.paths[*item.path]);
    }
  }
  return resolved;
}

std::string FabricConfig::validate() const {
  if (port_rate_mbps == 0 && (port_queue_bytes || port_ecn_bytes)) {
    return "port_queue and port_ecn need port_rate_gbps above 0: without a rate no queue builds";
  }
  if (buffer_bytes < Frame::kMaxBytes) {
    return "buffer: allowed range 9216..64G bytes";
  }
  if (base.mtu < kMtuMin || base.mtu > kMaxMtu) {
    return "mtu: allowed range " + std::string(find_setting("mtu")->range);
  }
  ResolvedLink plain;
  plain.link = base;
  plain.paths = {base.path};
  std::string error = check_link(plain);
  if (error.empty()) {
    error = check_down(base);
  }
  for (const Override& item : overrides) {
    if (!error.empty()) {
      break;
    }
    error = check_override(*this, item);
  }
  return error;
}

ParsedConfig parse_settings(std::string_view text) {
  ParsedConfig parsed;
  std::set<std::string, std::less<>> seen;
  const auto fail = [&](std::string why) {
    parsed.error = "fabric: " + std::move(why);
    return parsed;
  };
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = trim_blanks(text.substr(0, comma));
    const bool trailing = comma + 1 == text.size();
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = item.find('=');
    if (item.empty() || trailing) {
      return fail("empty item: expected key=value,key=value");
    }
    if (equals == std::string_view::npos) {
      return fail("'" + std::string(item) + "' has no '=': expected key=value");
    }
    const std::string_view key = trim_blanks(item.substr(0, equals));
    const bool repeats = key == "down" || key.ends_with("/down");
    if (!seen.emplace(key).second && !repeats) {
      return fail("key '" + std::string(key) + "' is given twice");
    }
    if (std::string error = parsed.config.set(key, trim_blanks(item.substr(equals + 1)));
        !error.empty()) {
      return fail(std::move(error));
    }
  }
  if (std::string error = parsed.config.validate(); !error.empty()) {
    return fail(std::move(error));
  }
  return parsed;
}

std::string settings_help() {
  std::string text;
  for (const SettingSpec& spec : all_settings()) {
    std::string line = "  " + std::string(spec.name);
    line.resize(std::max<std::size_t>(line.size() + 1, 18), ' ');
    line += std::string(spec.range);
    line.resize(std::max<std::size_t>(line.size() + 1, 46), ' ');
    text += line + std::string(spec.meaning) + "\n";
  }
  return text;
}

}  // namespace ordma::fabric
