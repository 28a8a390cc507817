// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "fabric/frame.hpp"

namespace ordma {
// Ethernet frame without FCS as it crosses an engine's packet port.
using Frame = fabric::Frame;
}  // namespace ordma
