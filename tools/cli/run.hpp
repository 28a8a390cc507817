// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "network.hpp"
#include "options.hpp"

namespace ordma::cli {

// ordma run: becomes the command on the network's NICs; does not return on success.
int run_command(const NetOptions& options, const Command& command);
// ordma pair: a server on NIC 0 and a client on NIC 1; the client's status, or the server's if that failed.
int run_pair(const NetOptions& options, Command server, Command client);

}  // namespace ordma::cli
