// SPDX-License-Identifier: BSD-2-Clause
#include "device/counters_text.hpp"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace ordma::softdev {
namespace {

void append(std::string* text, std::string_view scope, const fabric::Counters& counters) {
  for (const fabric::CounterName& counter : fabric::kCounterNames) {
    fmt::format_to(std::back_inserter(*text), "{} {} {}\n", scope, counter.name,
                   counters.*counter.field);
  }
}

}  // namespace

std::string counters_text(Network& network) {
  std::string text;
  for (std::size_t i = 0; i < network.nics(); ++i) {
    network.attachment(i).append_counters(network.nic_name(i), &text);
    const std::string scope = "engine." + network.nic_name(i);
    for (const EngineCounter& counter : network.engine(i).internals()) {
      fmt::format_to(std::back_inserter(text), "{} {} {}\n", scope, counter.name, counter.value);
    }
  }
  const fabric::Fabric& fabric = network.fabric();
  append(&text, "fabric", fabric.totals());
  for (const auto& port : fabric.ports()) {
    append(&text, "port." + port.name, fabric.port_counters(port.id));
  }
  for (std::uint32_t path = 0; path < fabric.paths_max(); ++path) {
    append(&text, fmt::format("path.{}", path), fabric.path_totals(path));
  }
  fmt::format_to(std::back_inserter(text), "clock device_ns {}\n", network.clock().now());
  return text;
}

}  // namespace ordma::softdev
