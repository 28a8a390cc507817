// SPDX-License-Identifier: BSD-2-Clause
// The CPU's part of recovery, as small as it can be.
#pragma once

#include <map>

#include "pair.hpp"

namespace ordma::bench {

// Answers every event of A with a rewind to where it points, after `pause` ns; counts by type.
struct Recovery {
  Pair& p;
  std::uint64_t pause = 0;
  std::map<hw::EventType, int> seen{};

  void serve() {
    while (const auto e = p.a().event()) {
      if (e->type != hw::EventType::kQpNak && e->type != hw::EventType::kQpRnr &&
          e->type != hw::EventType::kQpSilence && e->type != hw::EventType::kQpImpliedNak) {
        continue;
      }
      ++seen[e->type];
      p.a().recover(hw::CmdOp::kQpRewind, p.qa->spec.qpn, [&](auto& c) {
        hw::set(c, hw::cmd_rewind::log_index, e->log_index);
        hw::set(c, hw::cmd_rewind::psn, e->psn);
        hw::set(c, hw::cmd_rewind::not_before, pause == 0 ? 0 : p.world.now + pause);
      });
    }
  }
  int total() const {
    int n = 0;
    for (const auto& [type, count] : seen) n += count;
    return n;
  }
  std::optional<Cqe> wait(Cq& cq) {
    std::optional<Cqe> c;
    p.world.run([&] {
      serve();
      return (c = cq.poll()).has_value();
    }, 30000);
    return c;
  }
};

}  // namespace ordma::bench
