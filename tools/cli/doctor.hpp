// SPDX-License-Identifier: BSD-2-Clause
#pragma once

namespace ordma::cli {

// Checks what native mode and the VM need, each with its cure. 0 when native mode will work.
int run_doctor();

}  // namespace ordma::cli
