// SPDX-License-Identifier: BSD-2-Clause
#include "support.hpp"

#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace ordma::fabric::test {
namespace {

void put16(std::vector<std::uint8_t>& out, std::size_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}

void put32(std::vector<std::uint8_t>& out, std::uint32_t value) {
  put16(out, value >> 16);
  put16(out, value & 0xffff);
}

std::uint16_t checksum(std::span<const std::uint8_t> bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += static_cast<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  }
  while (sum > 0xffff) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(~sum);
}

void set16(std::vector<std::uint8_t>& out, std::size_t at, std::uint16_t value) {
  out[at] = static_cast<std::uint8_t>(value >> 8);
  out[at + 1] = static_cast<std::uint8_t>(value);
}

void put_ip(std::vector<std::uint8_t>& out, const RoceOptions& o, std::size_t udp_bytes) {
  const std::size_t ip = out.size();
  if (o.ipv6) {
    put32(out, 6u << 28 | static_cast<std::uint32_t>(o.traffic_class) << 20 | o.flow_label);
    put16(out, udp_bytes);
    put16(out, 17u << 8 | 64);
    for (const std::uint8_t station : {o.from, o.to}) {
      put32(out, 0xfe800000);
      put32(out, 0);
      put32(out, 0);
      put32(out, station);
    }
    return;
  }
  put16(out, 0x4500u | o.traffic_class);
  put16(out, 20 + udp_bytes);
  put32(out, 0x00004000);
  put16(out, 64u << 8 | 17);
  put16(out, 0);
  put32(out, 0x0a000000u | o.from);
  put32(out, 0x0a000000u | o.to);
  set16(out, ip + 10, checksum(std::span(out).subspan(ip, 20)));
}

}  // namespace

MacAddress mac_of(std::uint8_t station) { return {0x02, 0x6f, 0x72, 0x64, 0x00, station}; }

Frame roce_frame(const RoceOptions& o) {
  std::vector<std::uint8_t> out;
  for (const std::uint8_t station : {o.to, o.from}) {
    const MacAddress mac = mac_of(station);
    out.insert(out.end(), mac.begin(), mac.end());
  }
  if (o.vlan) {
    put32(out, 0x81000007);
  }
  put16(out, o.ipv6 ? 0x86dd : 0x0800);
  const std::size_t ip = out.size();
  const std::size_t udp_bytes = 8 + 12 + o.payload + 4;
  put_ip(out, o, udp_bytes);
  const std::size_t udp = out.size();
  put16(out, o.source_port);
  put16(out, 4791);
  put16(out, udp_bytes);
  put16(out, 0);
  put32(out, 0x0440ffff);  // SEND_ONLY, MigReq, default P_Key
  put32(out, 0x12);
  put32(out, o.psn & 0xffffff);
  for (std::size_t i = 0; i < o.payload; ++i) {
    out.push_back(static_cast<std::uint8_t>(i * 7 + o.psn));
  }
  put32(out, 0);
  if (o.ipv6) {
    std::vector<std::uint8_t> pseudo(out.begin() + static_cast<std::ptrdiff_t>(ip) + 8,
                                     out.begin() + static_cast<std::ptrdiff_t>(ip) + 40);
    put32(pseudo, static_cast<std::uint32_t>(udp_bytes));
    put32(pseudo, 17);
    pseudo.insert(pseudo.end(), out.begin() + static_cast<std::ptrdiff_t>(udp), out.end());
    set16(out, udp + 6, checksum(pseudo));
  }
  return Frame::copy_of(out);
}

std::uint32_t psn_of(std::span<const std::uint8_t> frame) {
  const bool ipv6 = frame[12] == 0x86;
  const std::size_t at = 14 + (ipv6 ? 40u : 20u) + 8 + 9;
  return static_cast<std::uint32_t>(frame[at] << 16 | frame[at + 1] << 8 | frame[at + 2]);
}

Frame raw_frame(std::uint8_t from, std::uint8_t to, std::size_t bytes, std::uint32_t number) {
  Frame frame(bytes);
  const std::span<std::uint8_t> out = frame.writable();
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  const MacAddress source = mac_of(from);
  const MacAddress destination = to == 0xff ? MacAddress{255, 255, 255, 255, 255, 255} : mac_of(to);
  std::copy(destination.begin(), destination.end(), out.begin());
  std::copy(source.begin(), source.end(), out.begin() + 6);
  for (std::size_t i = 0; i < 4 && 14 + i < bytes; ++i) {
    out[14 + i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
  }
  return frame;
}

std::uint32_t number_of(std::span<const std::uint8_t> frame) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    number = number << 8 | frame[14 + i];
  }
  return number;
}

std::vector<std::uint8_t> from_hex(std::string_view hex) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(std::string(hex.substr(i, 2)), nullptr,
                                                         16)));
  }
  return bytes;
}

FabricConfig config(std::string_view settings) {
  ParsedConfig parsed = parse_settings(settings);
  INFO(parsed.error);
  REQUIRE(parsed);
  return parsed.config;
}

Net::Net(std::string_view settings, std::size_t ports, std::uint64_t seed)
    : fabric(config(settings), seed), port{kNoPort} {
  for (std::size_t i = 1; i <= ports; ++i) {
    const auto station = static_cast<std::uint8_t>(i);
    port.push_back(fabric.add_port(
        mac_of(station),
        [this, i](Frame frame, std::uint64_t at_ns) {
          const auto bytes = frame.bytes();
          deliveries.push_back({port[i], at_ns, {bytes.begin(), bytes.end()}});
        },
        {"p" + std::to_string(i), false}));
    REQUIRE(port.back() != kNoPort);
  }
}

void Net::run_all() {
  while (const auto due = fabric.next_due()) {
    fabric.advance(*due);
  }
}

std::vector<std::uint32_t> Net::numbers() const {
  std::vector<std::uint32_t> all;
  for (const Delivery& delivery : deliveries) {
    all.push_back(number_of(delivery.bytes));
  }
  return all;
}

std::uint64_t Net::trace_hash() const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3u; };
  for (const Delivery& delivery : deliveries) {
    add(delivery.port);
    add(delivery.at_ns);
    for (const std::uint8_t byte : delivery.bytes) {
      add(byte);
    }
  }
  return hash;
}

CommandResult run_command(const std::string& command) {
  CommandResult result;
  FILE* pipe = ::popen(("(" + command + ") 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> chunk;
  while (const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), pipe)) {
    result.output.append(chunk.data(), got);
  }
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "ordma-fabric-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::file(std::string_view name) const { return path_ + "/" + std::string(name); }

}  // namespace ordma::fabric::test
