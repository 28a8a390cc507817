// SPDX-License-Identifier: BSD-2-Clause
// The `ordma` command: shows programs soft RDMA NICs, natively or in a VM.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "doctor.hpp"
#include "network.hpp"
#include "run.hpp"
#include "stat.hpp"
#include "version.hpp"
#include "vm.hpp"

using namespace ordma::cli;

namespace {

// Splits at the bare "--" words, before CLI11 sees anything: what follows the first is never ours.
std::vector<std::vector<std::string>> split(int argc, char** argv) {
  std::vector<std::vector<std::string>> parts(1);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") {
      parts.emplace_back();
    } else {
      parts.back().emplace_back(argv[i]);
    }
  }
  return parts;
}

// One command may have "--" words of its own.
Command join(const std::vector<Command>& parts) {
  Command all;
  for (const Command& part : parts) {
    if (&part != &parts.front()) {
      all.emplace_back("--");
    }
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void add_net_options(CLI::App* app, NetOptions& o) {
  app->add_option("--net", o.name, "network to join or start")->capture_default_str();
  app->add_option("--nics", o.nics, "NICs of a network that is started")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  app->add_option("--engine", o.engine, "twin (C++ twin) or rtl (Verilated RTL)")
      ->check(CLI::IsMember({"twin", "rtl"}));
  app->add_option("--fabric", o.fabric,
                  "fabric faults, k=v,... or a TOML file: loss=0.01,delay_ns=1000,dup=0.05,...");
  app->add_option("--pcap", o.pcap, "write every frame to this pcapng file");
  app->add_option("--seed", o.seed, "seed of all randomness")->capture_default_str();
  app->add_flag("-q,--quiet", o.quiet, "say nothing at start");
  app->add_flag("--preload", o.force_preload,
                "show the NICs by the preload library, not by namespaces");
}

struct Options {
  NetOptions net;
  VmOptions vm;
  std::string down_name = "default";
  bool stat_all = false;
  bool stat_json = false;
};

int dispatch(const CLI::App& app, Options& o, std::vector<Command> commands) {
  const auto command = [&](std::size_t i) { return i < commands.size() ? commands[i] : Command{}; };
  const std::string verb = app.get_subcommands().front()->get_name();
  if (verb == "run") {
    return run_command(o.net, join(commands));
  }
  if (verb == "pair") {
    return run_pair(o.net, command(0), command(1));
  }
  if (verb == "vm") {
    if (o.vm.guests == 1 && !commands.empty()) {
      commands = std::vector<Command>(1, join(commands));
    }
    return run_vm(o.net, o.vm, commands);
  }
  if (verb == "up") {
    const Network net = join_or_start(o.net, true);
    fmt::print("network {} runs: {} NICs, engine {}, pid {}\n", net.info.name, net.info.nics,
               net.info.engine, net.info.pid);
    return 0;
  }
  if (verb == "down") {
    if (!stop_network(o.down_name)) {
      throw Error("no network '" + o.down_name + "' runs; `ordma ps` lists them");
    }
    return 0;
  }
  if (verb == "ps") {
    return run_ps();
  }
  if (verb == "stat") {
    return run_stat(o.net.name, o.stat_all, o.stat_json);
  }
  return run_doctor();
}

void define(CLI::App& app, Options& o) {
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer(
      "Your own program on two soft NICs: ordma run -- ./prog. Exit status 125 is ordma's own "
      "failure.");
  auto* run = app.add_subcommand(
      "run", "run a command (or a shell) on the NICs of a network: ordma run [options] -- CMD...");
  add_net_options(run, o.net);
  auto* pair = app.add_subcommand(
      "pair", "run both ends of a test: ordma pair [options] -- SERVER... [-- CLIENT...]");
  add_net_options(pair, o.net);
  auto* vm = app.add_subcommand(
      "vm",
      "run a command in a VM on the real ordma.ko: ordma vm [options] -- CMD... [-- CMD2...]");
  add_net_options(vm, o.net);
  vm->add_option("--guests", o.vm.guests, "guests, one NIC each if 2")
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
  vm->add_option("--kernel", o.vm.kernel, "guest kernel")
      ->check(CLI::IsMember({"6.1", "6.12"}))
      ->capture_default_str();
  vm->add_option("--smp", o.vm.smp, "virtual CPUs of a guest")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  vm->add_option("--timeout", o.vm.timeout, "seconds before the guests are ended")
      ->capture_default_str();
  auto* up = app.add_subcommand("up", "start a network that stays until `ordma down`");
  add_net_options(up, o.net);
  app.add_subcommand("down", "end a network")
      ->add_option("NAME", o.down_name, "network")
      ->capture_default_str();
  app.add_subcommand("ps", "list the running networks of this user");
  auto* stat = app.add_subcommand("stat", "counters of a running network");
  stat->add_option("--net", o.net.name, "network")->capture_default_str();
  stat->add_flag("-a,--all", o.stat_all, "zero counters too");
  stat->add_flag("--json", o.stat_json, "JSON");
  app.add_subcommand("doctor", "check this machine, with the cure for what is missing");
}

}  // namespace

int main(int argc, char** argv) {
  auto parts = split(argc, argv);
  Options options;
  CLI::App app{"ordma: soft RDMA NICs for unmodified verbs programs"};
  define(app, options);
  std::vector<std::string> ours = parts.front();
  std::reverse(ours.begin(), ours.end());
  try {
    app.parse(ours);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {
      return app.exit(e);
    }
    fmt::print(stderr, "ordma: {}; `ordma --help` lists what there is\n", e.what());
    return kExitOurs;
  }
  parts.erase(parts.begin());
  try {
    return dispatch(app, options, std::move(parts));
  } catch (const std::exception& e) {
    fmt::print(stderr, "ordma: {}\n", e.what());
    return kExitOurs;
  }
}
