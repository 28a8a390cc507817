// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "network.hpp"
#include "options.hpp"

namespace ordma::cli {

// ordma run: becomes the command on the network's NICs; does not return on success.
int run_command(const NetOptions& options, const Command& command);
// Shows this process the NICs of the network and makes it, and what it becomes or starts, a member.
void open_network(Network& net, const NetOptions& options);
// Becomes the command, a shell if there is none.
[[noreturn]] void exec_command(Command command);

// ordma pair: a server on NIC 0 and a client on NIC 1; the client's status, or the server's if that
// failed.
int run_pair(const NetOptions& options, Command server, Command client);

}  // namespace ordma::cli
