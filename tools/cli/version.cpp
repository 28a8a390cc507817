// SPDX-License-Identifier: BSD-2-Clause
#include "version.hpp"

#include <fmt/format.h>
#include <rdma/ordma-abi.h>

#include "native_proto.h"
#include "ordma_hw.hpp"

namespace ordma::cli {

std::string version_text() {
  return fmt::format("ordma {} (contract {}.{}, uverbs ABI {}, native protocol {}, libordma {})",
                     ORDMA_VERSION, hw::kContractMajor, hw::kContractMinor,
                     ORDMA_UVERBS_ABI_VERSION, ORDMA_NP_VERSION, ORDMA_LIB_VERSION);
}

}  // namespace ordma::cli
