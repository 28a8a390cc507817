// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace ordma::fabric {

// One Ethernet frame without FCS. A handle is pointer sized and moves; bytes are shared between
// handles made with share() and copied only when a shared frame is about to be written.
// Reference counts are not atomic: frames stay on the thread that runs the fabric.
class Frame {
 public:
  static constexpr std::size_t kMaxBytes = 9216;
  static constexpr std::size_t kEthernetBytes = 14;

  Frame() noexcept = default;
  // Contents are uninitialised. Throws std::length_error above kMaxBytes.
  explicit Frame(std::size_t bytes);
  static Frame copy_of(std::span<const std::uint8_t> bytes);

  Frame(Frame&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  Frame& operator=(Frame&& other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() { release(); }

  // Another handle on the same bytes; no copy.
  [[nodiscard]] Frame share() const noexcept;
  // A handle on its own copy of the bytes.
  [[nodiscard]] Frame clone() const { return copy_of(bytes()); }

  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept;
  // Detaches from other handles first, so writes are never seen through them.
  [[nodiscard]] std::span<std::uint8_t> writable();
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] bool is_shared() const noexcept;
  // Shortens the frame; a larger value changes nothing.
  void truncate(std::size_t bytes);

 private:
  struct Body;
  void release() noexcept;

  Body* body_ = nullptr;
};

}  // namespace ordma::fabric
