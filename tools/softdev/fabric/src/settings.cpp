// SPDX-License-Identifier: BSD-2-Clause
#include "settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace ordma::fabric {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kDelayMax = 10 * kSecond;
constexpr std::uint64_t kRateMaxMbps = 100'000'000;
constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 30;
constexpr std::size_t kDownWindowsMax = 1024;
constexpr std::size_t kNameMax = 64;

std::optional<std::uint64_t> parse_integer(std::string_view text, std::uint64_t low,
                                           std::uint64_t high) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < low || value > high) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> parse_number(std::string_view text, double low, double high) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !(value >= low && value <= high)) {
    return std::nullopt;
  }
  return value;
}

// A decimal number times `unit`, exactly: "1.5" with unit 1000 is 1500; digits that `unit` cannot
// hold are refused rather than rounded.
std::optional<std::uint64_t> parse_scaled(std::string_view text, std::uint64_t unit,
                                          std::uint64_t high) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  const auto whole = parse_integer(text.substr(0, dot), 0, high / unit);
  if (!whole) {
    return std::nullopt;
  }
  std::uint64_t value = *whole * unit;
  if (dot + 1 == text.size()) {
    return std::nullopt;
  }
  for (std::size_t at = dot + 1; at < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9' || unit % 10 != 0) {
      return std::nullopt;
    }
    unit /= 10;
    value += static_cast<std::uint64_t>(text[at] - '0') * unit;
  }
  return value <= high ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_probability(std::string_view text) {
  if (text.ends_with('%')) {
    const auto percent = parse_number(text.substr(0, text.size() - 1), 0, 100);
    return percent ? std::optional(*percent / 100) : std::nullopt;
  }
  return parse_number(text, 0, 1);
}

std::optional<std::uint64_t> parse_time(std::string_view text, std::uint64_t high) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> kUnits = {
      {{"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", kSecond}}};
  for (const auto& [suffix, unit] : kUnits) {
    if (text.ends_with(suffix)) {
      return parse_scaled(text.substr(0, text.size() - suffix.size()), unit, high);
    }
  }
  return parse_integer(text, 0, high);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text, std::uint64_t low) {
  constexpr std::array<std::pair<char, unsigned>, 6> kUnits = {
      {{'k', 10}, {'K', 10}, {'m', 20}, {'M', 20}, {'g', 30}, {'G', 30}}};
  unsigned shift = 0;
  for (const auto& [suffix, bits] : kUnits) {
    if (text.ends_with(suffix)) {
      shift = bits;
      text.remove_suffix(1);
      break;
    }
  }
  const auto count = parse_integer(text, 0, kBytesMax >> shift);
  if (!count || (*count << shift) < low) {
    return std::nullopt;
  }
  return *count << shift;
}

template <typename Target, typename Value>
bool store(Target& target, const std::optional<Value>& value) {
  if (value) {
    target = static_cast<Target>(*value);
  }
  return value.has_value();
}

bool store_threshold(std::optional<std::uint64_t>& target, std::string_view text) {
  if (text == "off") {
    target.reset();
    return true;
  }
  return store(target, parse_bytes(text, 0));
}

bool store_rate(std::uint64_t& mbps, std::string_view text) {
  return store(mbps, parse_scaled(text, 1000, kRateMaxMbps));
}

// Splits "a:b"; both parts must be there.
std::optional<std::pair<std::string_view, std::string_view>> split_pair(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, colon), text.substr(colon + 1));
}

bool store_burst(PathConfig& path, std::string_view text) {
  const auto parts = split_pair(text);
  const auto enter = parts ? parse_probability(parts->first) : std::nullopt;
  const auto leave = parts ? parse_probability(parts->second) : std::nullopt;
  if (!enter || !leave || *leave == 0) {
    return false;
  }
  path.burst_enter = *enter;
  path.burst_leave = *leave;
  return true;
}

bool store_reorder(PathConfig& path, std::string_view text) {
  const auto parts = split_pair(text);
  const auto probability = parts ? parse_probability(parts->first) : std::nullopt;
  const auto window = parts ? parse_time(parts->second, kDelayMax) : std::nullopt;
  if (!probability || !window || *window == 0) {
    return false;
  }
  path.reorder = *probability;
  path.reorder_ns = *window;
  return true;
}

// "path@from..to", several joined by '+'; an empty `to` means for ever.
bool store_down(LinkConfig& link, std::string_view text) {
  while (true) {
    const std::size_t plus = std::min(text.find('+'), text.size());
    const std::string_view item = text.substr(0, plus);
    const std::size_t at = item.find('@');
    const std::size_t dots = item.find("..");
    if (at == std::string_view::npos || dots == std::string_view::npos || dots < at) {
      return false;
    }
    const auto path = parse_integer(item.substr(0, at), 0, kMaxPaths - 1);
    const auto from = parse_time(item.substr(at + 1, dots - at - 1), UINT64_MAX - 1);
    const std::string_view end = item.substr(dots + 2);
    const auto to = end.empty() ? std::optional(UINT64_MAX) : parse_time(end, UINT64_MAX - 1);
    if (!path || !from || !to || *from >= *to || link.down.size() >= kDownWindowsMax) {
      return false;
    }
    link.down.push_back({static_cast<std::uint32_t>(*path), *from, *to});
    if (plus == text.size()) {
      return true;
    }
    text.remove_prefix(plus + 1);
  }
}

bool store_select(LinkConfig& link, std::string_view text) {
  if (text != "hash" && text != "modulo") {
    return false;
  }
  link.select = text == "hash" ? PathSelect::kHash : PathSelect::kModulo;
  return true;
}

bool store_trim_from(PathConfig& path, std::string_view text) {
  if (text == "any") {
    path.trim_from_dscp.reset();
    return true;
  }
  return store(path.trim_from_dscp, parse_integer(text, 0, 63));
}

using enum SettingScope;
using F = FabricConfig;
using L = LinkConfig;
using P = PathConfig;
using V = std::string_view;

static_assert(kMtuMin == 68 && kMaxMtu == 9202 && kTrimKeepMin == 12 && kTrimKeepMax == 256 &&
              kMaxPaths == 256 && Frame::kMaxBytes == 9216 && kDelayMax == 10 * kSecond,
              "the range texts below name these limits");

constexpr V kTimeRange = "0..10s (ns, or with us, ms, s)";
constexpr V kProbabilityRange = "0..1, or 0%..100%";
constexpr V kBytesRange = "0..64G bytes (k, M, G), off";
constexpr V kRateRange = "0, 0.001..100000 Gb/s";

constexpr std::array kSettings = {
    SettingSpec{"k", kLink, "1..256", "paths between each pair of ports",
                [](F&, L& l, P&, V v) { return store(l.k, parse_integer(v, 1, kMaxPaths)); }},
    SettingSpec{"select", kLink, "hash, modulo", "how a flow picks its path",
                [](F&, L& l, P&, V v) { return store_select(l, v); }},
    SettingSpec{"mtu", kLink, "68..9202", "largest IP packet in bytes",
                [](F&, L& l, P&, V v) { return store(l.mtu, parse_integer(v, kMtuMin, kMaxMtu)); }},
    SettingSpec{"down", kLink, "path@from..to[+path@from..to], path 0..255, from < to",
                "path loses everything in [from, to); no 'to' = for ever; may be repeated",
                [](F&, L& l, P&, V v) { return store_down(l, v); }},
    SettingSpec{"rate_gbps", kPath, kRateRange, "path rate, 0 = infinite",
                [](F&, L&, P& p, V v) { return store_rate(p.rate_mbps, v); }},
    SettingSpec{"overhead", kPath, "0..64", "wire bytes per frame beyond the captured ones",
                [](F&, L&, P& p, V v) {
                  return store(p.overhead_bytes, parse_integer(v, 0, 64));
                }},
    SettingSpec{"delay_ns", kPath, kTimeRange, "one-way flight time",
                [](F&, L&, P& p, V v) { return store(p.delay_ns, parse_time(v, kDelayMax)); }},
    SettingSpec{"jitter_ns", kPath, kTimeRange, "extra 0..jitter, order within a path kept",
                [](F&, L&, P& p, V v) { return store(p.jitter_ns, parse_time(v, kDelayMax)); }},
    SettingSpec{"loss", kPath, kProbabilityRange, "uniform loss",
                [](F&, L&, P& p, V v) { return store(p.loss, parse_probability(v)); }},
    SettingSpec{"burst_loss", kPath, "p:r, p 0..1, r above 0..1",
                "Gilbert-Elliott loss: enter and leave the bad state",
                [](F&, L&, P& p, V v) { return store_burst(p, v); }},
    SettingSpec{"dup", kPath, kProbabilityRange, "duplication",
                [](F&, L&, P& p, V v) { return store(p.dup, parse_probability(v)); }},
    SettingSpec{"reorder", kPath, "p:window, p 0..1, window 1ns..10s",
                "hold a frame back 1..window so that others pass",
                [](F&, L&, P& p, V v) { return store_reorder(p, v); }},
    SettingSpec{"corrupt", kPath, kProbabilityRange, "flip one bit behind the Ethernet header",
                [](F&, L&, P& p, V v) { return store(p.corrupt, parse_probability(v)); }},
    SettingSpec{"queue", kPath, kBytesRange, "tail drop above this queue",
                [](F&, L&, P& p, V v) { return store_threshold(p.queue_bytes, v); }},
    SettingSpec{"ecn", kPath, kBytesRange, "mark CE above this queue",
                [](F&, L&, P& p, V v) { return store_threshold(p.ecn_bytes, v); }},
    SettingSpec{"trim", kPath, kBytesRange, "cut RoCEv2 payloads above this queue",
                [](F&, L&, P& p, V v) { return store_threshold(p.trim_bytes, v); }},
    SettingSpec{"trim_dscp", kPath, "0..63", "DSCP of a trimmed packet",
                [](F&, L&, P& p, V v) { return store(p.trim_dscp, parse_integer(v, 0, 63)); }},
    SettingSpec{"trim_from", kPath, "0..63, any", "trim only packets of this DSCP",
                [](F&, L&, P& p, V v) { return store_trim_from(p, v); }},
    SettingSpec{"trim_keep", kPath, "12..256", "bytes kept behind the UDP header",
                [](F&, L&, P& p, V v) {
                  return store(p.trim_keep_bytes, parse_integer(v, kTrimKeepMin, kTrimKeepMax));
                }},
    SettingSpec{"port_rate_gbps", kFabric, kRateRange,
                "last hop: rate into each port, 0 = infinite",
                [](F& f, L&, P&, V v) { return store_rate(f.port_rate_mbps, v); }},
    SettingSpec{"port_queue", kFabric, kBytesRange, "last hop: tail drop above this queue",
                [](F& f, L&, P&, V v) { return store_threshold(f.port_queue_bytes, v); }},
    SettingSpec{"port_ecn", kFabric, kBytesRange, "last hop: mark CE above this queue",
                [](F& f, L&, P&, V v) { return store_threshold(f.port_ecn_bytes, v); }},
    SettingSpec{"buffer", kFabric, "9216..64G bytes (k, M, G)",
                "bytes under way in the whole fabric",
                [](F& f, L&, P&, V v) {
                  return store(f.buffer_bytes, parse_bytes(v, Frame::kMaxBytes));
                }},
};

bool valid_port_pattern(std::string_view name) {
  return !name.empty() && name.size() <= kNameMax &&
         (name == "*" || std::all_of(name.begin(), name.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '_' || c == '-' || c == '.';
          }));
}

}  // namespace

std::span<const SettingSpec> all_settings() { return kSettings; }

const SettingSpec* find_setting(std::string_view name) {
  const auto* found = std::find_if(kSettings.begin(), kSettings.end(),
                                   [&](const SettingSpec& spec) { return spec.name == name; });
  return found == kSettings.end() ? nullptr : found;
}

std::string setting_names() {
  std::string names;
  for (const SettingSpec& spec : kSettings) {
    names += (names.empty() ? "" : " ") + std::string(spec.name);
  }
  return names;
}

std::string split_key(std::string_view key, FabricConfig::Override& parts) {
  const std::string quoted = "key '" + std::string(key) + "'";
  if (const std::size_t slash = key.find('/'); slash != std::string_view::npos) {
    const auto pair = split_pair(key.substr(0, slash));
    if (!pair || !valid_port_pattern(pair->first) || !valid_port_pattern(pair->second)) {
      return quoted + ": expected from:to/key with port names of letters, digits, '_', '-', '.' "
                      "(at most 64), or '*'";
    }
    parts.from = pair->first;
    parts.to = pair->second;
    key.remove_prefix(slash + 1);
  }
  const std::size_t dot = key.find('.');
  if (key.starts_with("path") && dot != std::string_view::npos) {
    const auto path = parse_integer(key.substr(4, dot - 4), 0, kMaxPaths - 1);
    if (!path) {
      return quoted + ": expected path<n>.key, n 0..255";
    }
    parts.path = static_cast<std::uint32_t>(*path);
    key.remove_prefix(dot + 1);
  }
  parts.key = key;
  return {};
}

std::string_view trim_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace ordma::fabric
