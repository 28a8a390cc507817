// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "ordma_core.h"

namespace ordma::softdev {

// What the driver core calls; its context is a NativeNic.
[[nodiscard]] const ordma_core_ops* native_nic_ops();

}  // namespace ordma::softdev
