// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fabric.hpp"

namespace ordma::fabric {

// Writes a pcapng capture: one section, one interface per port, device time in nanoseconds.
// The file is a pure function of the frames: no wall clock, no host name. Buffers at most
// kBufferBytes; an I/O error stops the capture and stays visible in error().
class PcapngWriter {
 public:
  static constexpr std::size_t kBufferBytes = 256u << 10;
  enum class Direction : std::uint8_t { kUnknown = 0, kInbound = 1, kOutbound = 2 };

  // Null with *error set when the file cannot be created. An existing file is replaced.
  [[nodiscard]] static std::unique_ptr<PcapngWriter> create(const std::string& path,
                                                            std::string* error);
  ~PcapngWriter();  // closes
  PcapngWriter(const PcapngWriter&) = delete;
  PcapngWriter& operator=(const PcapngWriter&) = delete;

  [[nodiscard]] std::uint32_t add_interface(std::string_view name);
  void write_frame(std::uint32_t interface, std::uint64_t at_ns,
                   std::span<const std::uint8_t> bytes, Direction direction,
                   std::string_view comment = {});
  // Direction is the NIC's: frames it hands in are outbound, frames delivered to it inbound.
  // Adds an interface when a port name is first seen. Drops, corruption, marks and trims become
  // comments "drop: loss", "corrupt", ... so a reader can tell planted faults from real ones.
  void on_tap(const TapEvent& event);
  [[nodiscard]] Tap tap() {
    return [this](const TapEvent& event) { on_tap(event); };
  }

  bool flush();
  bool close();  // flushes; false when anything could not be written
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::uint64_t frames() const { return frames_; }

 private:
  explicit PcapngWriter(int fd) : fd_(fd) {}
  void put_block(std::uint32_t type, std::span<const std::uint8_t> body);
  void put_section_header();

  int fd_;
  std::vector<std::uint8_t> buffer_;
  std::vector<std::uint8_t> scratch_;
  std::map<std::string, std::uint32_t, std::less<>> interface_of_;  // by port name
  std::uint32_t interfaces_ = 0;
  std::uint64_t frames_ = 0;
  std::string error_;
};

}  // namespace ordma::fabric
