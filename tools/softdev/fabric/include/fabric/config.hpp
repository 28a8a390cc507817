// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/frame.hpp"

namespace ordma::fabric {

inline constexpr std::uint32_t kMaxPaths = 256;
inline constexpr std::uint32_t kMaxMtu = Frame::kMaxBytes - Frame::kEthernetBytes;

// Which path a flow takes. kHash mixes (src MAC, dst MAC, UDP source port, flow label) like ECMP;
// kModulo takes (UDP source port + flow label) mod k, so consecutive entropy values use
// consecutive paths. A flow sticks to its path under both.
enum class PathSelect : std::uint8_t { kHash, kModulo };

// One direction of one path between two ports. Probabilities are per frame, 0..1.
struct PathConfig {
  std::uint64_t rate_mbps = 0;       // 0 = infinite, else wire bytes (frame + overhead) are paced
  std::uint64_t overhead_bytes = 24;  // preamble, FCS and gap: wire time that a capture never shows
  std::uint64_t delay_ns = 0;
  std::uint64_t jitter_ns = 0;  // uniform 0..jitter added; never reorders within the path
  double loss = 0;
  double burst_enter = 0;  // Gilbert-Elliott p: good -> bad, drawn before each frame
  double burst_leave = 1;  // Gilbert-Elliott r: bad -> good; every frame in bad is lost
  double dup = 0;
  double reorder = 0;  // probability that a frame is held back 1..reorder_ns, letting others pass
  std::uint64_t reorder_ns = 0;
  double corrupt = 0;                         // one random bit behind the Ethernet header flips
  std::optional<std::uint64_t> ecn_bytes;     // CE on ECT frames when the queue is above this
  std::optional<std::uint64_t> trim_bytes;    // cut the payload when the queue is above this
  std::optional<std::uint64_t> queue_bytes;   // tail drop above this
  std::uint8_t trim_dscp = 12;                // DSCP of a trimmed frame
  std::optional<std::uint8_t> trim_from_dscp;  // trim only this class; absent = every class
  std::uint64_t trim_keep_bytes = 40;          // what stays behind the UDP header

  bool operator==(const PathConfig&) const = default;
};

// Path `path` loses every frame that is queued or in flight at any instant of [from_ns, to_ns).
struct DownWindow {
  std::uint32_t path = 0;
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = 0;

  bool operator==(const DownWindow&) const = default;
};

// One direction between two ports.
struct LinkConfig {
  std::uint32_t k = 1;
  std::uint32_t mtu = kMaxMtu;  // largest IP packet; the Ethernet header and VLAN tags come on top
  PathSelect select = PathSelect::kHash;
  PathConfig path;  // what every path starts from
  std::vector<DownWindow> down;
};

// LinkConfig with one PathConfig per path, overrides applied.
struct ResolvedLink {
  LinkConfig link;
  std::vector<PathConfig> paths;
};

struct FabricConfig {
  // One textual setting; from/to are port names or "*"; path absent = all paths.
  struct Override {
    std::string from = "*";
    std::string to = "*";
    std::optional<std::uint32_t> path;
    std::string key;
    std::string value;
  };

  LinkConfig base;
  std::vector<Override> overrides;  // later ones win; per-path ones win over path-less ones
  // Last hop: what one port receives from all others together. 0 = infinite.
  std::uint64_t port_rate_mbps = 0;
  std::optional<std::uint64_t> port_queue_bytes;
  std::optional<std::uint64_t> port_ecn_bytes;
  // Frames held by the fabric over all links; more are queue drops.
  std::uint64_t buffer_bytes = 256u << 20;

  // Sets one key, in the grammar of parse_settings. Returns an error text, empty on success.
  [[nodiscard]] std::string set(std::string_view key, std::string_view value);
  // Cross-key checks (path numbers below k, queue thresholds only with a rate, ...).
  [[nodiscard]] std::string validate() const;
  [[nodiscard]] ResolvedLink resolve(std::string_view from, std::string_view to) const;
};

struct ParsedConfig {
  FabricConfig config;
  std::string error;  // empty = success; one line that names key, value and allowed range

  explicit operator bool() const { return error.empty(); }
};

// Command line form "key=value,key=value". A key may be prefixed by a port pair and a path:
//   loss=0.01   path2.loss=5%   ordma0:ordma1/delay_ns=10us   ordma0:*/path1.rate_gbps=25
// README.md lists every key with its range. Empty text is the default configuration.
[[nodiscard]] ParsedConfig parse_settings(std::string_view text);

// TOML form: a [fabric] table with the same keys, [fabric.path.<n>] and [[fabric.pair]] tables.
// Top-level tables named in `other_tables` belong to somebody else and are left alone; any other
// one is refused. `origin` is the name used in errors.
[[nodiscard]] ParsedConfig parse_toml_text(std::string_view text, std::string_view origin,
                                           std::span<const std::string_view> other_tables = {});
[[nodiscard]] ParsedConfig parse_toml_file(const std::string& path,
                                           std::span<const std::string_view> other_tables = {});

// One line per key: name, range, meaning. For `--help`.
[[nodiscard]] std::string settings_help();

}  // namespace ordma::fabric
