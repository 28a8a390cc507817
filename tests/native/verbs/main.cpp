// SPDX-License-Identifier: BSD-2-Clause
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "rig.hpp"

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  return failed != 0 ? failed : ordma::test::destroy_failures() != 0;
}
