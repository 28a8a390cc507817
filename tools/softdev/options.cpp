// SPDX-License-Identifier: BSD-2-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <string_view>

namespace ordma::softdev {
namespace {

using Strings = std::vector<std::string>;

std::string parse_fabric(const std::string& text, fabric::FabricConfig* config) {
  // A file has a name that is no setting.
  const auto parsed = text.find('=') == std::string::npos && !text.empty()
                          ? fabric::parse_toml_file(text)
                          : fabric::parse_settings(text);
  if (!parsed) return parsed.error;
  *config = parsed.config;
  return {};
}

// NIC=SOCKET,ram=FILE
std::string parse_vm(const std::string& text, const Options& options, VmOption* vm) {
  const std::string form = "--vm " + text + ": expected NIC=SOCKET,ram=FILE";
  const std::size_t equals = text.find('=');
  const std::size_t ram = text.find(",ram=");
  if (equals == text.npos || ram == text.npos || ram < equals) return form;
  const char* const end = text.data() + equals;
  const auto number = std::from_chars(text.data(), end, vm->nic);
  if (number.ec != std::errc() || number.ptr != end) return form;
  if (vm->nic >= options.nics) return form + " with NIC below " + std::to_string(options.nics);
  vm->socket = text.substr(equals + 1, ram - equals - 1);
  vm->ram = text.substr(ram + 5);
  if (vm->socket.empty() || vm->ram.empty()) return form;
  const auto& vms = options.vms;
  const bool twice = std::any_of(vms.begin(), vms.end(),
                                 [&](const VmOption& other) { return other.nic == vm->nic; });
  return twice ? "--vm " + text + ": that NIC has a guest already" : std::string();
}

// GID=MAC
std::string parse_neighbour(const std::string& text, std::pair<Gid, Mac>* neighbour) {
  const std::size_t equals = text.find('=');
  const auto gid = parse_gid(text.substr(0, equals));
  const auto mac = equals == text.npos ? std::nullopt
                                       : parse_mac(std::string_view(text).substr(equals + 1));
  if (!gid || !mac) return "--neighbour " + text + ": expected ADDRESS=xx:xx:xx:xx:xx:xx";
  *neighbour = {*gid, *mac};
  return {};
}

// LEVEL or LEVEL:FILE
std::string parse_log(const std::string& text, Options* options) {
  const std::size_t colon = text.find(':');
  const auto level = log_level_of(text.substr(0, colon));
  if (!level) {
    return "--log " + text + ": expected error, warn, info or debug, then :FILE if wanted";
  }
  options->log_level = *level;
  if (colon != text.npos) options->log_file = text.substr(colon + 1);
  return {};
}

struct Texts {
  std::string fabric;
  std::string log;
  Strings vms, listens, connects, neighbours;
};

std::string finish(const Texts& texts, Options* options) {
  std::string error = parse_fabric(texts.fabric, &options->fabric);
  if (error.empty() && !texts.log.empty()) error = parse_log(texts.log, options);
  for (const std::string& text : texts.vms) {
    VmOption vm;
    if (error.empty()) error = parse_vm(text, *options, &vm);
    options->vms.push_back(std::move(vm));
  }
  for (const std::string& text : texts.neighbours) {
    std::pair<Gid, Mac> neighbour;
    if (error.empty()) error = parse_neighbour(text, &neighbour);
    options->neighbours.push_back(neighbour);
  }
  for (const std::string& path : texts.listens) options->uplinks.push_back({path, true});
  for (const std::string& path : texts.connects) options->uplinks.push_back({path, false});
  if (error.empty() && options->socket.empty() && options->vms.empty()) {
    error = "nothing to serve: give --socket or --vm";
  }
  return error;
}

void declare(CLI::App* app, Options* options, Texts* texts) {
  app->add_option("--socket", options->socket, "control socket of native clients");
  app->add_option("--nics", options->nics, "number of NICs")
      ->check(CLI::Range(1U, Options::kNicsMax));
  app->add_option("--first", options->first, "number of the first NIC; decides names and addresses")
      ->check(CLI::Range(0U, 10000U));
  app->add_option("--engine", options->engine, "twin or rtl")
      ->check(CLI::IsMember({"twin", "rtl"}));
  app->add_option("--fabric", texts->fabric,
                  "settings k=v,... or a TOML file; --help-fabric lists them");
  app->add_option("--pcap", options->pcap, "capture every frame into this pcapng file");
  app->add_option("--seed", options->seed, "seed of the fabric's faults");
  app->add_flag("--stay", options->stay, "do not end when the last client has gone");
  app->add_option("--lifetime", options->grace_ms, "ms to wait for a next client before ending")
      ->check(CLI::Range(0U, 3600000U));
  app->add_option("--ready-fd", options->ready_fd, "write one byte there when clients may connect");
  app->add_option("--log", texts->log, "error, warn, info or debug; LEVEL:FILE appends to FILE");
  app->add_option("--waves", options->waves, "rtl: write waveforms (FST) to FILE.<nic>");
  app->add_option("--vm", texts->vms, "NIC=SOCKET,ram=FILE: the NIC belongs to a QEMU guest");
  app->add_option("--uplink", texts->listens, "listen there for frames of a netdev or soft-device");
  app->add_option("--uplink-connect", texts->connects, "connect there and exchange frames");
  app->add_option("--neighbour", texts->neighbours, "ADDRESS=MAC of a station behind an uplink");
  app->add_flag_callback(
      "--help-fabric",
      [] {
        fmt::print("{}", fabric::settings_help());
        throw CLI::Success();
      },
      "list the settings of --fabric");
  app->set_version_flag("--version", std::string("ordma-softdev ") + ORDMA_VERSION);
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int* status) {
  Options options;
  Texts texts;
  CLI::App app(
      "Soft NICs of ordma: engines, the fabric between them, and what they are attached to.");
  declare(&app, &options, &texts);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& result) {
    *status = app.exit(result);
    return std::nullopt;
  }
  const std::string error = finish(texts, &options);
  if (error.empty()) return options;
  fmt::print(stderr, "ordma-softdev: {}\n", error);
  *status = 2;
  return std::nullopt;
}

}  // namespace ordma::softdev
