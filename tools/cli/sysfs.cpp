// SPDX-License-Identifier: BSD-2-Clause
#include "sysfs.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string>

#include "client.hpp"
#include "options.hpp"

namespace fs = std::filesystem;

namespace ordma::cli {
namespace {

void put(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream out(file);
  out << text << '\n';
  if (!out.flush()) {
    throw Error("cannot write " + file.string());
  }
}

std::string guid_text(std::uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, (guid >> 32) & 0xffff,
                     (guid >> 16) & 0xffff, guid & 0xffff);
}

std::string gid_text(const __u8 (&gid)[16]) {
  std::string text;
  for (unsigned i = 0; i < 16; i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid[i], gid[i + 1]);
  }
  return text;
}

// As the kernel words them; numbers are ibv_port_state and ibv_port_physical_state.
std::string state_text(unsigned state) {
  static constexpr std::array<const char*, 6> kNames = {"NOP",   "DOWN",   "INIT",
                                                        "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  return fmt::format("{}: {}", state, state < kNames.size() ? kNames[state] : "UNKNOWN");
}

unsigned rate_gbps(const ordma_np_port& port) {
  const unsigned lanes = port.active_width == 1   ? 1
                         : port.active_width == 2 ? 4
                         : port.active_width == 4 ? 8
                         : port.active_width == 8 ? 12
                                                  : 2;
  unsigned lane = 0;
  switch (port.active_speed) {
    case 1:
      lane = 2;
      break;
    case 2:
      lane = 5;
      break;
    case 4:
    case 8:
      lane = 10;
      break;
    case 16:
      lane = 14;
      break;
    case 32:
      lane = 25;
      break;
    case 64:
      lane = 50;
      break;
    default:
      lane = 100;
      break;
  }
  return lanes * lane;
}

void write_port(const fs::path& dir, Client& client) {
  const ordma_np_port port = client.query_port();
  put(dir / "state", state_text(port.state));
  put(dir / "phys_state", port.phys_state == 5 ? "5: LinkUp" : "3: Disabled");
  put(dir / "rate", fmt::format("{} Gb/sec (4X EDR)", rate_gbps(port)));
  put(dir / "link_layer", "Ethernet");
  for (const char* zero : {"lid", "sm_lid", "lid_mask_count", "sm_sl"}) {
    put(dir / zero, "0x0");
  }
  put(dir / "cap_mask", fmt::format("0x{:08x}", port.port_cap_flags));
  put(dir / "pkeys/0", "0xffff");
  for (unsigned i = 0; i < port.gid_tbl_len; ++i) {
    const ordma_np_gid gid = client.query_gid(i);
    put(dir / "gids" / std::to_string(i), gid_text(gid.gid));
    // An unused entry of the kernel's refuses to be read, which no plain file does; without a file,
    // libibverbs gives up the whole table. No gid_attrs/ndevs: there is no network device, and
    // libibverbs takes a name there for one.
    put(dir / "gid_attrs/types" / std::to_string(i), "RoCE v2");
  }
}

void write_nic(const fs::path& root, const fs::path& socket, unsigned nic) {
  Client client(socket);
  client.hello(nic);
  const ordma_np_device device = client.query_device();
  const fs::path ib = root / "class/infiniband" / fmt::format("ordma{}", nic);
  put(ib / "node_type", "1: CA");
  put(ib / "node_guid", guid_text(device.node_guid));
  put(ib / "sys_image_guid", guid_text(device.sys_image_guid));
  put(ib / "fw_ver", fmt::format("{}.{}.{}", device.fw_ver >> 32, (device.fw_ver >> 16) & 0xffff,
                                 device.fw_ver & 0xffff));
  put(ib / "hw_rev", fmt::format("0x{:x}", device.hw_ver));
  put(ib / "board_id", "ordma-soft");
  put(ib / "node_desc", fmt::format("ordma{}", nic));
  write_port(ib / "ports/1", client);

  const fs::path verbs = root / "class/infiniband_verbs" / fmt::format("uverbs{}", nic);
  put(verbs / "ibdev", fmt::format("ordma{}", nic));
  put(verbs / "abi_version", std::to_string(ORDMA_UVERBS_ABI_VERSION));
  // The node that stands for uverbs is /dev/null; libibverbs compares its numbers with these.
  put(verbs / "dev", "1:3");
  // Seen only where the preload library redirects; otherwise /dev/null itself is mounted there.
  const fs::path node = root / "dev/infiniband" / fmt::format("uverbs{}", nic);
  fs::create_directories(node.parent_path());
  fs::create_symlink("/dev/null", node);
}

}  // namespace

void write_sysfs(const fs::path& root, const fs::path& socket, unsigned nics) {
  const fs::path fresh = root.string() + ".new";
  fs::remove_all(fresh);
  put(fresh / "class/infiniband_verbs/abi_version", "6");
  for (unsigned nic = 0; nic < nics; ++nic) {
    write_nic(fresh, socket, nic);
  }
  fs::remove_all(root);
  fs::rename(fresh, root);
}

}  // namespace ordma::cli
