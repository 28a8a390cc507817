// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/fabric.hpp"

#include <algorithm>
#include <stdexcept>

#include "event_queue.hpp"
#include "link.hpp"
#include "mac_table.hpp"
#include "packet.hpp"
#include "rng.hpp"

namespace ordma::fabric {
namespace {

constexpr std::uint32_t kSlotBits = 8;
constexpr std::uint32_t kSlotMask = (1u << kSlotBits) - 1;
constexpr std::uint32_t kGenerationEnd = 1u << 23;  // keeps every id apart from kNoPort
static_assert(kMaxPorts == 1u << kSlotBits);

constexpr std::uint32_t slot_of(PortId id) { return id & kSlotMask; }

struct Port {
  PortId id = kNoPort;
  std::string name;
  std::uint64_t mac = 0;
  bool learn = false;
  Sink sink;
  Tap tap;
  Counters counters;
  Pacer last_hop;
  std::vector<std::unique_ptr<Link>> links;  // by destination slot, made at first use
};

std::uint64_t Counters::* drop_counter(DropReason reason) {
  switch (reason) {
    case DropReason::kLoss: return &Counters::lost;
    case DropReason::kBurst: return &Counters::burst_lost;
    case DropReason::kDown: return &Counters::down_lost;
    case DropReason::kFilter: return &Counters::filter_lost;
    case DropReason::kQueue: return &Counters::queue_drops;
    case DropReason::kOversize: return &Counters::oversize;
    case DropReason::kRunt: return &Counters::runt;
    case DropReason::kNoPort:
    case DropReason::kNone: break;
  }
  return &Counters::no_port;
}

void add_counters(Counters& sum, const Counters& more) {
  for (const CounterName& counter : kCounterNames) {
    sum.*counter.field += more.*counter.field;
  }
}

void require_valid(const FabricConfig& config) {
  if (const std::string error = config.validate(); !error.empty()) {
    throw std::invalid_argument(error);
  }
}

}  // namespace

std::string_view drop_reason_name(DropReason reason) {
  switch (reason) {
    case DropReason::kNone: return "none";
    case DropReason::kLoss: return "loss";
    case DropReason::kBurst: return "burst";
    case DropReason::kDown: return "down";
    case DropReason::kFilter: return "filter";
    case DropReason::kQueue: return "queue";
    case DropReason::kOversize: return "oversize";
    case DropReason::kRunt: return "runt";
    case DropReason::kNoPort: return "no_port";
  }
  return "unknown";
}

struct Fabric::Impl {
  Impl(FabricConfig config_in, std::uint64_t seed_in)
      : config(std::move(config_in)), seed(seed_in) {}

  Port* find(PortId id) {
    Port* port = id == kNoPort || slot_of(id) >= ports.size() ? nullptr : ports[slot_of(id)].get();
    return port != nullptr && port->id == id ? port : nullptr;
  }

  // The union over all copies of what happened to one frame on its way in.
  struct Ingress {
    std::uint32_t fate = 0;
    DropReason drop = DropReason::kNone;
    std::uint32_t path = 0;

    void dropped(DropReason reason) {
      fate |= kFateDropped;
      drop = reason;
    }
  };

  Link& link_between(Port& from, const Port& to);
  void retire(Link& link);
  void drop_on(Port& from, Path* path, DropReason reason, Ingress& ingress);
  void forward(Port& from, Frame frame, Ingress& ingress);
  void flood(Port& from, Frame frame, Ingress& ingress);
  void send_copy(Port& from, Port& to, Frame frame, Ingress& ingress);
  void count_fates(Port& from, Path& path, const PathDecision& decision);
  void push(Event event);
  bool pass_last_hop(Port& to, Event& event);
  void deliver(Port& to, Event event);
  void drop_in_flight(Event& event, Port* to, DropReason reason);
  Path* path_for(PortId from, PortId to, std::uint32_t path);
  void tap_frame(Port& port, TapEvent event);
  [[nodiscard]] bool tapped(const Port& port) const {
    return static_cast<bool>(tap) || static_cast<bool>(port.tap);
  }

  FabricConfig config;
  std::uint64_t seed;
  std::uint64_t clock_ns = 0;
  std::uint64_t next_sequence = 0;
  std::uint64_t bytes_in_flight = 0;
  bool delivering = false;
  EventQueue queue;
  MacTable macs;
  std::vector<std::unique_ptr<Port>> ports;      // by slot
  std::vector<std::unique_ptr<Port>> graveyard;  // removed while a sink may still be running
  std::vector<std::uint32_t> generations;
  std::array<bool, kMaxPaths> path_switched_off{};
  std::vector<Counters> retired_paths;  // of links that are gone, by path number
  Counters totals;
  Tap tap;
  Filter filter;
};

Link& Fabric::Impl::link_between(Port& from, const Port& to) {
  const std::uint32_t slot = slot_of(to.id);
  if (from.links.size() <= slot) {
    from.links.resize(slot + 1);
  }
  if (from.links[slot] == nullptr) {
    // Keyed by names: a link's faults are the same whatever other ports exist.
    const std::uint64_t stream = mix64(mix64(mix64(seed), from.name), to.name);
    from.links[slot] = std::make_unique<Link>(config.resolve(from.name, to.name), stream);
  }
  return *from.links[slot];
}

void Fabric::Impl::retire(Link& link) {
  if (retired_paths.size() < link.paths.size()) {
    retired_paths.resize(link.paths.size());
  }
  for (std::size_t path = 0; path < link.paths.size(); ++path) {
    add_counters(retired_paths[path], link.paths[path]->counters);
  }
}

void Fabric::Impl::drop_on(Port& from, Path* path, DropReason reason, Ingress& ingress) {
  const auto field = drop_counter(reason);
  ++(totals.*field);
  ++(from.counters.*field);
  if (path != nullptr) {
    ++(path->counters.*field);
  }
  ingress.dropped(reason);
}

void Fabric::Impl::push(Event event) {
  event.sequence = next_sequence++;
  bytes_in_flight += event.frame.size();
  queue.push(std::move(event));
}

void Fabric::Impl::count_fates(Port& from, Path& path, const PathDecision& decision) {
  constexpr std::array<std::pair<std::uint32_t, std::uint64_t Counters::*>, 4> kFields = {{
      {kFateReordered, &Counters::reordered},
      {kFateCorrupted, &Counters::corrupted},
      {kFateMarked, &Counters::marked},
      {kFateTrimmed, &Counters::trimmed},
  }};
  for (const auto& [bit, field] : kFields) {
    const std::uint64_t count = (decision.fate & bit) != 0 ? 1 : 0;
    totals.*field += count;
    from.counters.*field += count;
    path.counters.*field += count;
  }
  if (decision.duplicate) {
    const std::uint64_t held = (decision.duplicate_fate & kFateReordered) != 0 ? 1 : 0;
    for (Counters* counters : {&totals, &from.counters, &path.counters}) {
      ++counters->dup;
      counters->reordered += held;
    }
  }
}

void Fabric::Impl::send_copy(Port& from, Port& to, Frame frame, Ingress& ingress) {
  Link& link = link_between(from, to);
  std::uint32_t number = path_of(frame.bytes(), link.config.select, link.config.k);
  FilterVerdict verdict;
  if (filter) {
    verdict = filter({from.id, to.id, number, clock_ns, frame.bytes()});
    number = verdict.path.value_or(number) % link.config.k;
  }
  Path& path = *link.paths[number];
  ingress.path = number;
  ++path.counters.tx_frames;
  path.counters.tx_bytes += frame.size();
  if (frame.size() > link_header_bytes(frame.bytes()) + link.config.mtu) {
    return drop_on(from, &path, DropReason::kOversize, ingress);
  }
  if (verdict.drop || path_switched_off[number]) {
    return drop_on(from, &path, verdict.drop ? DropReason::kFilter : DropReason::kDown, ingress);
  }
  const std::uint64_t room =
      config.buffer_bytes > bytes_in_flight ? config.buffer_bytes - bytes_in_flight : 0;
  if (frame.size() > room) {
    return drop_on(from, &path, DropReason::kQueue, ingress);
  }
  PathDecision decision = path.decide(frame, clock_ns, config.buffer_bytes, verdict);
  if (decision.drop != DropReason::kNone) {
    return drop_on(from, &path, decision.drop, ingress);
  }
  decision.duplicate = decision.duplicate && 2 * frame.size() <= room;
  Frame copy = decision.duplicate ? frame.share() : Frame();
  if ((decision.fate & kFateCorrupted) != 0 && !path.corrupt(frame)) {
    decision.fate &= ~static_cast<std::uint32_t>(kFateCorrupted);
  }
  if (verdict.corrupt_bit && *verdict.corrupt_bit / 8 < frame.size()) {
    frame.writable()[*verdict.corrupt_bit / 8] ^=
        static_cast<std::uint8_t>(1u << (*verdict.corrupt_bit % 8));
    decision.fate |= kFateCorrupted;
  }
  count_fates(from, path, decision);
  ingress.fate |= decision.fate | (decision.duplicate ? kFateDuplicate : 0u);
  const std::uint32_t flooded = ingress.fate & kFateFlooded;
  push({decision.due_ns, 0, std::move(frame), from.id, to.id, number, decision.fate | flooded,
        false});
  if (decision.duplicate) {
    push({decision.duplicate_due_ns, 0, std::move(copy), from.id, to.id, number,
          decision.duplicate_fate | kFateDuplicate | flooded, false});
  }
}

void Fabric::Impl::flood(Port& from, Frame frame, Ingress& ingress) {
  ++totals.flooded;
  ++from.counters.flooded;
  ingress.fate |= kFateFlooded;
  bool somebody = false;
  for (const auto& to : ports) {
    if (to != nullptr && to.get() != &from) {
      somebody = true;
      send_copy(from, *to, frame.share(), ingress);
    }
  }
  if (!somebody) {
    drop_on(from, nullptr, DropReason::kNoPort, ingress);
  }
}

void Fabric::Impl::forward(Port& from, Frame frame, Ingress& ingress) {
  if (frame.size() < Frame::kEthernetBytes) {
    return drop_on(from, nullptr, DropReason::kRunt, ingress);
  }
  const std::uint64_t destination = mac_key(frame.bytes().first<6>());
  const std::uint64_t source = mac_key(frame.bytes().subspan<6, 6>());
  if (from.learn && !is_group(source) && source != 0) {
    macs.learn(source, from.id);
  }
  const auto entry = is_group(destination) ? std::nullopt : macs.find(destination);
  Port* to = entry ? find(entry->port) : nullptr;
  if (to == nullptr) {
    return flood(from, std::move(frame), ingress);
  }
  if (to == &from && !entry->fixed) {
    // The station sits on the segment that the frame came from and has seen it.
    return drop_on(from, nullptr, DropReason::kNoPort, ingress);
  }
  send_copy(from, *to, std::move(frame), ingress);
}

void Fabric::Impl::tap_frame(Port& port, TapEvent event) {
  event.port = port.id;
  event.port_name = port.name;
  if (tap) {
    tap(event);
  }
  if (port.tap) {
    port.tap(event);
  }
}

Path* Fabric::Impl::path_for(PortId from_id, PortId to_id, std::uint32_t path) {
  Port* from = find(from_id);
  const std::uint32_t slot = slot_of(to_id);
  if (from == nullptr || find(to_id) == nullptr || slot >= from->links.size() ||
      from->links[slot] == nullptr || path >= from->links[slot]->paths.size()) {
    return nullptr;
  }
  return from->links[slot]->paths[path].get();
}

void Fabric::Impl::drop_in_flight(Event& event, Port* to, DropReason reason) {
  const auto field = drop_counter(reason);
  ++(totals.*field);
  if (Port* from = find(event.from); from != nullptr) {
    ++(from->counters.*field);
  }
  if (Path* path = path_for(event.from, event.to, event.path); path != nullptr) {
    ++(path->counters.*field);
  }
  if (to != nullptr && tapped(*to)) {
    tap_frame(*to, {TapEvent::Kind::kEgressDrop, kNoPort, {}, event.due_ns, event.frame.bytes(),
                    event.fate | kFateDropped, reason, event.path});
  }
}

// True when the event may be delivered now; false when it was queued again or dropped.
bool Fabric::Impl::pass_last_hop(Port& to, Event& event) {
  if (config.port_rate_mbps == 0 || event.last_hop_done) {
    return true;
  }
  const std::uint64_t rate = config.port_rate_mbps;
  const std::uint64_t now = event.due_ns;
  const std::uint64_t wire_bytes = event.frame.size() + config.base.path.overhead_bytes;
  const std::uint64_t backlog = to.last_hop.backlog_bytes(now, rate);
  const std::uint64_t limit =
      std::min(config.port_queue_bytes.value_or(config.buffer_bytes), config.buffer_bytes);
  if (backlog + wire_bytes > limit) {
    drop_in_flight(event, &to, DropReason::kQueue);
    return false;
  }
  if (config.port_ecn_bytes && backlog > *config.port_ecn_bytes && mark_congestion(event.frame)) {
    event.fate |= kFateMarked;
    ++totals.marked;
    if (Port* from = find(event.from); from != nullptr) {
      ++from->counters.marked;
    }
    if (Path* path = path_for(event.from, event.to, event.path); path != nullptr) {
      ++path->counters.marked;
    }
  }
  event.due_ns = to.last_hop.depart(now, wire_bytes, rate);
  event.last_hop_done = true;
  push(std::move(event));
  return false;
}

void Fabric::Impl::deliver(Port& to, Event event) {
  const std::uint64_t bytes = event.frame.size();
  const auto count = [bytes](Counters& counters) {
    ++counters.rx_frames;
    counters.rx_bytes += bytes;
  };
  count(totals);
  count(to.counters);
  if (Path* path = path_for(event.from, event.to, event.path); path != nullptr) {
    count(path->counters);
  }
  if (tapped(to)) {
    tap_frame(to, {TapEvent::Kind::kEgress, kNoPort, {}, event.due_ns, event.frame.bytes(),
                   event.fate, DropReason::kNone, event.path});
  }
  if (to.sink) {
    to.sink(std::move(event.frame), event.due_ns);
  }
}

Fabric::Fabric(FabricConfig config, std::uint64_t seed) {
  require_valid(config);
  impl_ = std::make_unique<Impl>(std::move(config), seed);
}

Fabric::~Fabric() = default;

PortId Fabric::add_port(const MacAddress& mac, Sink sink, PortOptions options) {
  Impl& impl = *impl_;
  std::size_t slot = 0;
  while (slot < impl.ports.size() && impl.ports[slot] != nullptr) {
    ++slot;
  }
  if (slot == kMaxPorts) {
    return kNoPort;
  }
  if (options.name.empty()) {
    options.name = "port" + std::to_string(slot);
  }
  const bool name_taken = std::any_of(impl.ports.begin(), impl.ports.end(), [&](const auto& p) {
    return p != nullptr && p->name == options.name;
  });
  if (slot == impl.generations.size()) {
    impl.generations.push_back(0);
  }
  const PortId id = impl.generations[slot] << kSlotBits | static_cast<PortId>(slot);
  const std::uint64_t key = mac_key(mac);
  if (name_taken || is_group(key) || (key != 0 && !impl.macs.add_fixed(key, id))) {
    return kNoPort;
  }
  impl.generations[slot] = (impl.generations[slot] + 1) % kGenerationEnd;
  auto port = std::make_unique<Port>();
  port->id = id;
  port->name = std::move(options.name);
  port->mac = key;
  port->learn = options.learn;
  port->sink = std::move(sink);
  if (slot == impl.ports.size()) {
    impl.ports.emplace_back();
  }
  impl.ports[slot] = std::move(port);
  return id;
}

void Fabric::remove_port(PortId id) {
  Impl& impl = *impl_;
  Port* gone = impl.find(id);
  if (gone == nullptr) {
    return;
  }
  impl.macs.remove_port(id);
  const std::uint32_t slot = slot_of(id);
  for (const auto& link : gone->links) {
    if (link != nullptr) {
      impl.retire(*link);
    }
  }
  gone->links.clear();
  for (const auto& port : impl.ports) {
    if (port != nullptr && slot < port->links.size() && port->links[slot] != nullptr) {
      impl.retire(*port->links[slot]);
      port->links[slot].reset();
    }
  }
  // A sink may remove its own port: the callback object must outlive the call.
  impl.graveyard.push_back(std::move(impl.ports[slot]));
  if (!impl.delivering) {
    impl.graveyard.clear();
  }
}

bool Fabric::add_mac(PortId port, const MacAddress& mac) {
  const std::uint64_t key = mac_key(mac);
  return key != 0 && !is_group(key) && impl_->find(port) != nullptr &&
         impl_->macs.add_fixed(key, port);
}

void Fabric::remove_mac(PortId port, const MacAddress& mac) {
  impl_->macs.remove_fixed(mac_key(mac), port);
}

void Fabric::send(PortId from_id, Frame frame, std::uint64_t now_ns) {
  Impl& impl = *impl_;
  Port* from = impl.find(from_id);
  if (from == nullptr) {
    ++impl.totals.no_port;
    return;
  }
  // Inside a sink the clock is the delivery time; nobody can send into the past.
  const std::uint64_t clock_before = impl.clock_ns;
  impl.clock_ns = std::max(impl.clock_ns, now_ns);
  ++impl.totals.tx_frames;
  impl.totals.tx_bytes += frame.size();
  ++from->counters.tx_frames;
  from->counters.tx_bytes += frame.size();
  const bool tapped = impl.tapped(*from);
  const Frame original = tapped ? frame.share() : Frame();
  Impl::Ingress ingress;
  impl.forward(*from, std::move(frame), ingress);
  if (tapped) {
    impl.tap_frame(*from, {TapEvent::Kind::kIngress, kNoPort, {}, impl.clock_ns, original.bytes(),
                           ingress.fate, ingress.drop, ingress.path});
  }
  if (impl.delivering) {
    impl.clock_ns = clock_before;
  }
}

std::size_t Fabric::advance(std::uint64_t now_ns) {
  Impl& impl = *impl_;
  if (impl.delivering) {
    return 0;
  }
  // A sink that throws must not leave the fabric locked.
  struct Delivering {
    explicit Delivering(Impl& impl_in) : impl(impl_in) { impl.delivering = true; }
    ~Delivering() {
      impl.delivering = false;
      impl.graveyard.clear();
    }
    Impl& impl;
  };
  const Delivering guard(impl);
  std::size_t handled = 0;
  std::size_t delivered = 0;
  while (handled < kAdvanceFramesMax && impl.queue.size() != 0 &&
         impl.queue.front().due_ns <= now_ns) {
    Event event = impl.queue.pop();
    ++handled;
    impl.bytes_in_flight -= event.frame.size();
    impl.clock_ns = std::max(impl.clock_ns, event.due_ns);
    Port* to = impl.find(event.to);
    if (to == nullptr) {
      impl.drop_in_flight(event, nullptr, DropReason::kNoPort);
    } else if (impl.pass_last_hop(*to, event)) {
      ++delivered;
      impl.deliver(*to, std::move(event));
    }
  }
  if (impl.queue.size() == 0 || impl.queue.front().due_ns > now_ns) {
    impl.clock_ns = std::max(impl.clock_ns, now_ns);
  }
  return delivered;
}

std::optional<std::uint64_t> Fabric::next_due() const {
  if (impl_->queue.size() == 0) {
    return std::nullopt;
  }
  return impl_->queue.front().due_ns;
}

std::uint64_t Fabric::clock_ns() const { return impl_->clock_ns; }

std::size_t Fabric::frames_in_flight() const { return impl_->queue.size(); }

void Fabric::configure(FabricConfig config) {
  require_valid(config);
  Impl& impl = *impl_;
  if (config.port_rate_mbps != impl.config.port_rate_mbps) {
    for (const auto& port : impl.ports) {
      if (port != nullptr) {
        port->last_hop.rate_changed();
      }
    }
  }
  impl.config = std::move(config);
  for (const auto& from : impl.ports) {
    for (std::size_t slot = 0; from != nullptr && slot < from->links.size(); ++slot) {
      Link* link = from->links[slot].get();
      if (link == nullptr) {
        continue;
      }
      const auto gone =
          link->configure(impl.config.resolve(from->name, impl.ports[slot]->name));
      impl.retired_paths.resize(
          std::max(impl.retired_paths.size(), link->paths.size() + gone.size()));
      for (std::size_t i = 0; i < gone.size(); ++i) {
        add_counters(impl.retired_paths[link->paths.size() + i], gone[i]);
      }
    }
  }
}

void Fabric::set_path_up(std::uint32_t path, bool up) {
  if (path < kMaxPaths) {
    impl_->path_switched_off[path] = !up;
  }
}

void Fabric::set_tap(Tap tap) { impl_->tap = std::move(tap); }

void Fabric::set_port_tap(PortId id, Tap tap) {
  if (Port* port = impl_->find(id); port != nullptr) {
    port->tap = std::move(tap);
  }
}

void Fabric::set_filter(Filter filter) { impl_->filter = std::move(filter); }

std::vector<Fabric::PortInfo> Fabric::ports() const {
  std::vector<PortInfo> infos;
  for (const auto& port : impl_->ports) {
    if (port == nullptr) {
      continue;
    }
    PortInfo info{port->id, port->name, {}};
    for (std::size_t i = 0; i < info.mac.size(); ++i) {
      info.mac[i] = static_cast<std::uint8_t>(port->mac >> (40 - 8 * i));
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

const Counters& Fabric::totals() const { return impl_->totals; }

Counters Fabric::port_counters(PortId id) const {
  const Port* port = impl_->find(id);
  return port == nullptr ? Counters{} : port->counters;
}

Counters Fabric::path_counters(PortId from, PortId to, std::uint32_t path) const {
  const Path* found = impl_->path_for(from, to, path);
  return found == nullptr ? Counters{} : found->counters;
}

Counters Fabric::path_totals(std::uint32_t path) const {
  Counters sum = path < impl_->retired_paths.size() ? impl_->retired_paths[path] : Counters{};
  for (const auto& port : impl_->ports) {
    for (std::size_t slot = 0; port != nullptr && slot < port->links.size(); ++slot) {
      const Link* link = port->links[slot].get();
      if (link != nullptr && path < link->paths.size()) {
        add_counters(sum, link->paths[path]->counters);
      }
    }
  }
  return sum;
}

std::uint32_t Fabric::paths_max() const {
  std::size_t most = 0;
  for (const auto& port : impl_->ports) {
    for (std::size_t slot = 0; port != nullptr && slot < port->links.size(); ++slot) {
      if (port->links[slot] != nullptr) {
        most = std::max(most, port->links[slot]->paths.size());
      }
    }
  }
  return static_cast<std::uint32_t>(most);
}

std::uint64_t Fabric::seed() const { return impl_->seed; }

}  // namespace ordma::fabric
