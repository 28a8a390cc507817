// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/config.hpp"
#include "fabric/counters.hpp"
#include "fabric/frame.hpp"

namespace ordma::fabric {

using PortId = std::uint32_t;
inline constexpr PortId kNoPort = 0xffffffffu;
inline constexpr std::uint32_t kMaxPorts = 256;

using MacAddress = std::array<std::uint8_t, 6>;

// Called from advance() only. `at_ns` is the frame's own delivery time, which may be earlier than
// the time given to advance(). The sink may call send(), add_port() and remove_port().
using Sink = std::function<void(Frame frame, std::uint64_t at_ns)>;

struct PortOptions {
  // Names the port in pair settings, captures and counters, and keys its random streams, so a
  // link's faults do not depend on the order in which unrelated ports appear. "" = "port<n>".
  std::string name;
  // Learn source MACs seen on this port (a port with an unknown number of stations behind it).
  bool learn = false;
};

enum class DropReason : std::uint8_t {
  kNone, kLoss, kBurst, kDown, kFilter, kQueue, kOversize, kRunt, kNoPort
};
[[nodiscard]] std::string_view drop_reason_name(DropReason reason);

// What happened to a frame, as flag bits of TapEvent::fate.
enum Fate : std::uint32_t {
  kFateDropped = 1u << 0,
  kFateCorrupted = 1u << 1,
  kFateDuplicate = 1u << 2,  // ingress: was duplicated; egress: is the extra copy
  kFateReordered = 1u << 3,
  kFateMarked = 1u << 4,
  kFateTrimmed = 1u << 5,
  kFateFlooded = 1u << 6,
};

struct TapEvent {
  // kIngress: a port handed the frame in (bytes as sent, fate already decided; for a flooded frame
  // the union over its copies). kEgress: about to be delivered to `port`. kEgressDrop: was on its
  // way to `port` and died in the last hop.
  enum class Kind : std::uint8_t { kIngress, kEgress, kEgressDrop };
  Kind kind = Kind::kIngress;
  PortId port = kNoPort;
  std::string_view port_name;
  std::uint64_t at_ns = 0;
  std::span<const std::uint8_t> bytes;
  std::uint32_t fate = 0;
  DropReason drop = DropReason::kNone;
  std::uint32_t path = 0;
};
using Tap = std::function<void(const TapEvent&)>;

// Targeted faults for tests: asked once per copy of a frame before the random faults.
struct FilterVerdict {
  bool drop = false;
  bool dup = false;
  std::optional<std::uint64_t> corrupt_bit;  // bit number from the start of the frame
  std::uint64_t extra_delay_ns = 0;          // held back; later frames may pass
  std::optional<std::uint32_t> path;         // taken modulo k
};
struct FilterContext {
  PortId from = kNoPort;
  PortId to = kNoPort;
  std::uint32_t path = 0;
  std::uint64_t now_ns = 0;
  std::span<const std::uint8_t> bytes;
};
using Filter = std::function<FilterVerdict(const FilterContext&)>;

// Path that (frame, select) takes out of k; what send() uses, exposed for tests and tools.
[[nodiscard]] std::uint32_t path_of(std::span<const std::uint8_t> frame, PathSelect select,
                                    std::uint32_t k);

// Connects ports like one Ethernet switch with k paths between each ordered pair of ports.
// Single-threaded; time and seed are injected, so a run is a pure function of its inputs.
class Fabric {
 public:
  static constexpr std::size_t kAdvanceFramesMax = 65536;

  // Throws std::invalid_argument when config.validate() finds a fault.
  Fabric(FabricConfig config, std::uint64_t seed);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // kNoPort when kMaxPorts exist or the MAC or name is taken. An all-zero MAC is "none".
  [[nodiscard]] PortId add_port(const MacAddress& mac, Sink sink, PortOptions options = {});
  // Frames in flight to it are dropped (no_port); those it has sent still arrive. Ids are not
  // reused soon. Unknown ids are ignored.
  void remove_port(PortId port);
  // A further station address of the port. False when taken or the port is unknown.
  [[nodiscard]] bool add_mac(PortId port, const MacAddress& mac);
  void remove_mac(PortId port, const MacAddress& mac);

  // Hands a frame in. Never calls a sink. A time earlier than the fabric's clock counts as now.
  void send(PortId from, Frame frame, std::uint64_t now_ns);
  // Delivers due frames in time order (ties: in order of sending). At most kAdvanceFramesMax per
  // call, so sinks that answer each other without delay cannot hold the caller for ever; when the
  // bound was hit next_due() is still <= now_ns. Returns the number delivered.
  std::size_t advance(std::uint64_t now_ns);
  // Earliest time at which advance() has something to do; none when nothing is in flight.
  [[nodiscard]] std::optional<std::uint64_t> next_due() const;
  [[nodiscard]] std::uint64_t clock_ns() const;
  [[nodiscard]] std::size_t frames_in_flight() const;

  // Replaces the configuration: ports, frames in flight, random streams and counters stay, so a
  // test can end its faults and watch recovery. Throws like the constructor.
  void configure(FabricConfig config);
  // Operator's switch over a path number on every link; on top of the down script.
  void set_path_up(std::uint32_t path, bool up);

  void set_tap(Tap tap);                    // all ports
  void set_port_tap(PortId port, Tap tap);  // one port; both may be set
  void set_filter(Filter filter);

  struct PortInfo {
    PortId id = kNoPort;
    std::string name;
    MacAddress mac{};
  };
  [[nodiscard]] std::vector<PortInfo> ports() const;
  [[nodiscard]] const Counters& totals() const;
  // Unknown ids give zeroes.
  [[nodiscard]] Counters port_counters(PortId port) const;
  [[nodiscard]] Counters path_counters(PortId from, PortId to, std::uint32_t path) const;
  [[nodiscard]] Counters path_totals(std::uint32_t path) const;  // over all pairs
  [[nodiscard]] std::uint32_t paths_max() const;                 // largest k of any live link
  [[nodiscard]] std::uint64_t seed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ordma::fabric
