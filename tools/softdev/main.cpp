// SPDX-License-Identifier: BSD-2-Clause
#include <exception>

#include "options.hpp"
#include "soft_device.hpp"

int main(int argc, char** argv) {
  using namespace ordma::softdev;
  int status = 0;
  const auto options = parse_options(argc, argv, &status);
  if (!options) return status;
  try {
    SoftDevice device(*options);
    return device.run();
  } catch (const std::exception& error) {
    log_error("{}", error.what());
    return 1;
  }
}
