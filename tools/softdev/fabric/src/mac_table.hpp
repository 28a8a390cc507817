// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "fabric/fabric.hpp"

namespace ordma::fabric {

[[nodiscard]] constexpr std::uint64_t mac_key(std::span<const std::uint8_t, 6> mac) {
  std::uint64_t key = 0;
  for (const std::uint8_t byte : mac) {
    key = key << 8 | byte;
  }
  return key;
}

[[nodiscard]] constexpr bool is_group(std::uint64_t key) { return (key >> 40 & 1) != 0; }

// Station addresses. Those given to ports by their owner are fixed; learned ones come from the
// wire, may move between learning ports and never displace a fixed one.
class MacTable {
 public:
  // A station that finds the table full is reached by flooding.
  static constexpr std::size_t kLearnedMax = 4096;

  struct Entry {
    PortId port = kNoPort;
    bool fixed = false;
  };

  bool add_fixed(std::uint64_t key, PortId port) {
    auto [it, inserted] = entries_.try_emplace(key, Entry{port, true});
    if (!inserted && it->second.fixed) {
      return false;
    }
    if (!inserted) {
      --learned_;
      it->second = Entry{port, true};
    }
    return true;
  }

  void learn(std::uint64_t key, PortId port) {
    if (const auto it = entries_.find(key); it != entries_.end()) {
      if (!it->second.fixed) {
        it->second.port = port;
      }
      return;
    }
    if (learned_ < kLearnedMax) {
      entries_.emplace(key, Entry{port, false});
      ++learned_;
    }
  }

  [[nodiscard]] std::optional<Entry> find(std::uint64_t key) const {
    const auto it = entries_.find(key);
    return it == entries_.end() ? std::nullopt : std::optional(it->second);
  }

  void remove_fixed(std::uint64_t key, PortId port) {
    const auto it = entries_.find(key);
    if (it != entries_.end() && it->second.fixed && it->second.port == port) {
      entries_.erase(it);
    }
  }

  void remove_port(PortId port) {
    std::erase_if(entries_, [&](const auto& item) {
      const bool gone = item.second.port == port;
      if (gone && !item.second.fixed) {
        --learned_;
      }
      return gone;
    });
  }

 private:
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::size_t learned_ = 0;
};

}  // namespace ordma::fabric
