// SPDX-License-Identifier: BSD-2-Clause
// What the test files share on top of the rig.
#pragma once

#include <array>
#include <catch2/catch.hpp>

#include "rig.hpp"

namespace ordma::test {

// Both ends on one NIC, and on two: the two halves of a NIC must agree.
inline bool both_ways() { return GENERATE(true, false); }

inline int status(const std::optional<ibv_wc>& wc) {
  REQUIRE(wc.has_value());
  return wc->status;
}

// The statuses that a post must not confuse have names in what a failure prints.
inline std::string name(int wc_status) {
  return ibv_wc_status_str(static_cast<ibv_wc_status>(wc_status));
}

}  // namespace ordma::test
