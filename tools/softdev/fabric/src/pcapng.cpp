// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/pcapng.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ordma::fabric {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kLinkTypeEthernet = 1;
constexpr std::uint16_t kOptionEnd = 0;
constexpr std::uint16_t kOptionComment = 1;
constexpr std::uint16_t kOptionIfName = 2;
constexpr std::uint16_t kOptionUserApplication = 4;
constexpr std::uint16_t kOptionIfTsResolution = 9;
constexpr std::uint16_t kOptionPacketFlags = 2;
constexpr std::uint8_t kNanoseconds = 9;  // 10^-9
constexpr std::size_t kOptionTextMax = 1024;

// pcapng is written in the host's byte order; the magic tells the reader which.
template <typename T>
void put(std::vector<std::uint8_t>& out, T value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof(value));
  std::memcpy(out.data() + at, &value, sizeof(value));
}

void put_padded(std::vector<std::uint8_t>& out, std::span<const std::uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.resize((out.size() + 3) & ~std::size_t{3});
}

void put_option(std::vector<std::uint8_t>& out, std::uint16_t code,
                std::span<const std::uint8_t> value) {
  put(out, code);
  put(out, static_cast<std::uint16_t>(value.size()));
  put_padded(out, value);
}

void put_option(std::vector<std::uint8_t>& out, std::uint16_t code, std::string_view text) {
  text = text.substr(0, kOptionTextMax);
  put_option(out, code,
             std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

std::string comment_for(const TapEvent& event) {
  constexpr std::array<std::pair<std::uint32_t, std::string_view>, 6> kWords = {{
      {kFateCorrupted, "corrupt"},
      {kFateDuplicate, "dup"},
      {kFateReordered, "reorder"},
      {kFateMarked, "mark"},
      {kFateTrimmed, "trim"},
      {kFateFlooded, "flood"},
  }};
  std::string text;
  if ((event.fate & kFateDropped) != 0) {
    text = "drop: " + std::string(drop_reason_name(event.drop));
  }
  for (const auto& [bit, word] : kWords) {
    if ((event.fate & bit) != 0) {
      text += (text.empty() ? "" : ", ") + std::string(word);
    }
  }
  if (!text.empty()) {
    text += ", path " + std::to_string(event.path);
  }
  return text;
}

}  // namespace

std::unique_ptr<PcapngWriter> PcapngWriter::create(const std::string& path, std::string* error) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    *error = path + ": " + std::strerror(errno);
    return nullptr;
  }
  std::unique_ptr<PcapngWriter> writer(new PcapngWriter(fd));
  writer->buffer_.reserve(kBufferBytes);
  writer->put_section_header();
  return writer;
}

PcapngWriter::~PcapngWriter() { (void)close(); }

void PcapngWriter::put_block(std::uint32_t type, std::span<const std::uint8_t> body) {
  constexpr std::size_t kFraming = 12;
  if (fd_ < 0 || !error_.empty()) {
    return;
  }
  if (buffer_.size() + body.size() + kFraming > kBufferBytes && !flush()) {
    return;
  }
  const auto length = static_cast<std::uint32_t>(body.size() + kFraming);
  put(buffer_, type);
  put(buffer_, length);
  buffer_.insert(buffer_.end(), body.begin(), body.end());
  put(buffer_, length);
}

void PcapngWriter::put_section_header() {
  scratch_.clear();
  put(scratch_, kByteOrderMagic);
  put(scratch_, std::uint16_t{1});
  put(scratch_, std::uint16_t{0});
  put(scratch_, UINT64_MAX);  // section length not given
  put_option(scratch_, kOptionUserApplication, "ordma fabric");
  put_option(scratch_, kOptionEnd, std::span<const std::uint8_t>());
  put_block(kSectionHeader, scratch_);
}

std::uint32_t PcapngWriter::add_interface(std::string_view name) {
  scratch_.clear();
  put(scratch_, kLinkTypeEthernet);
  put(scratch_, std::uint16_t{0});
  put(scratch_, static_cast<std::uint32_t>(Frame::kMaxBytes));
  put_option(scratch_, kOptionIfName, name);
  put_option(scratch_, kOptionIfTsResolution, std::span(&kNanoseconds, 1));
  put_option(scratch_, kOptionEnd, std::span<const std::uint8_t>());
  put_block(kInterfaceDescription, scratch_);
  return interfaces_++;
}

void PcapngWriter::write_frame(std::uint32_t interface, std::uint64_t at_ns,
                               std::span<const std::uint8_t> bytes, Direction direction,
                               std::string_view comment) {
  if (interface >= interfaces_ || bytes.size() > Frame::kMaxBytes) {
    if (error_.empty()) {
      error_ = "capture: frame for an unknown interface or above the frame limit";
    }
    return;
  }
  const auto length = static_cast<std::uint32_t>(bytes.size());
  scratch_.clear();
  put(scratch_, interface);
  put(scratch_, static_cast<std::uint32_t>(at_ns >> 32));
  put(scratch_, static_cast<std::uint32_t>(at_ns));
  put(scratch_, length);
  put(scratch_, length);
  put_padded(scratch_, bytes);
  if (!comment.empty()) {
    put_option(scratch_, kOptionComment, comment);
  }
  const auto flags = static_cast<std::uint32_t>(direction);
  std::array<std::uint8_t, sizeof(flags)> flag_bytes;
  std::memcpy(flag_bytes.data(), &flags, sizeof(flags));
  put_option(scratch_, kOptionPacketFlags, flag_bytes);
  put_option(scratch_, kOptionEnd, std::span<const std::uint8_t>());
  put_block(kEnhancedPacket, scratch_);
  ++frames_;
}

void PcapngWriter::on_tap(const TapEvent& event) {
  auto found = interface_of_.find(event.port_name);
  if (found == interface_of_.end()) {
    found = interface_of_.emplace(event.port_name, add_interface(event.port_name)).first;
  }
  Direction direction = Direction::kUnknown;
  if (event.kind == TapEvent::Kind::kIngress) {
    direction = Direction::kOutbound;
  } else if (event.kind == TapEvent::Kind::kEgress) {
    direction = Direction::kInbound;
  }
  write_frame(found->second, event.at_ns, event.bytes, direction, comment_for(event));
}

bool PcapngWriter::flush() {
  std::size_t done = 0;
  while (fd_ >= 0 && error_.empty() && done < buffer_.size()) {
    const ssize_t wrote = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno != EINTR) {
      error_ = std::string("capture: ") + std::strerror(errno);
    } else if (wrote > 0) {
      done += static_cast<std::size_t>(wrote);
    }
  }
  buffer_.clear();
  return error_.empty();
}

bool PcapngWriter::close() {
  (void)flush();
  if (fd_ >= 0 && ::close(fd_) != 0 && error_.empty()) {
    error_ = std::string("capture: ") + std::strerror(errno);
  }
  fd_ = -1;
  return error_.empty();
}

}  // namespace ordma::fabric
