// SPDX-License-Identifier: BSD-2-Clause
#include "facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

namespace ordma::bench {
namespace {

std::string field_of(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with(name) && colon != std::string::npos) {
      const std::size_t from = line.find_first_not_of(" \t", colon + 1);
      return from == std::string::npos ? "" : line.substr(from);
    }
  }
  return "unknown";
}

std::string hex(std::uint64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

}  // namespace

nlohmann::ordered_json machine_facts() {
  utsname u{};
  ::uname(&u);
  double load[3] = {-1, -1, -1};
  (void)::getloadavg(load, 3);
  char stamp[32] = "";
  const std::time_t now = std::time(nullptr);
  std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return {{"date", stamp},
          {"cpu", field_of("/proc/cpuinfo", "model name")},
          {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"memory", field_of("/proc/meminfo", "MemTotal")},
          {"hypervisor", field_of("/proc/cpuinfo", "flags").find(" hypervisor") != std::string::npos},
          {"kernel", std::string(u.sysname) + " " + u.release},
          {"load_average_before", {load[0], load[1], load[2]}}};
}

nlohmann::ordered_json device_facts(ibv_context* ctx) {
  ibv_device_attr attr{};
  if (ibv_query_device(ctx, &attr) != 0) {
    return {{"name", ibv_get_device_name(ctx->device)}};
  }
  return {{"name", ibv_get_device_name(ctx->device)},
          {"fw_ver", attr.fw_ver},
          {"vendor_id", hex(attr.vendor_id)},
          {"part_id", hex(attr.vendor_part_id)}};
}

}  // namespace ordma::bench
