// SPDX-License-Identifier: BSD-2-Clause
// The CRC block alone, both forms, against zlib.
#include <catch2/catch.hpp>
#include <zlib.h>

#include <cstring>

#include "Vcrc_forms.h"
#include "bench.hpp"
#include "verilated.h"

namespace ordma::bench {

TEST_CASE("both forms of the CRC equal zlib's") {
  VerilatedContext context;
  Vcrc_forms top(&context);
  for (unsigned n = 0; n < 600; ++n) {
    std::vector<std::byte> data(64);
    // Each single bit, then random beats.
    if (n < 512) data[n / 8] = static_cast<std::byte>(1u << n % 8);
    else data = pattern(64, n);
    std::memcpy(top.data_i.data(), data.data(), 64);
    top.eval();
    // Start state 0 and no final inversion: undo zlib's by starting from all ones.
    const auto want = ~static_cast<std::uint32_t>(
        crc32(0xffffffff, reinterpret_cast<const Bytef*>(data.data()), 64));
    REQUIRE(top.table_o == want);
    REQUIRE(top.mask_o == want);
  }
  top.final();
}

}  // namespace ordma::bench
