// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/frame.hpp"

#include <cstring>
#include <new>
#include <stdexcept>

namespace ordma::fabric {

// Header and bytes are one allocation; the bytes follow the header directly.
struct Frame::Body {
  std::uint32_t references;
  std::uint32_t size;

  std::uint8_t* bytes() noexcept { return reinterpret_cast<std::uint8_t*>(this + 1); }
};

Frame::Frame(std::size_t bytes) {
  if (bytes > kMaxBytes) {
    throw std::length_error("fabric: a frame has at most 9216 bytes");
  }
  static_assert(kMaxBytes == 9216, "the text above names the limit");
  void* memory = ::operator new(sizeof(Body) + bytes);
  body_ = new (memory) Body{1, static_cast<std::uint32_t>(bytes)};
}

Frame Frame::copy_of(std::span<const std::uint8_t> bytes) {
  Frame copy(bytes.size());
  if (!bytes.empty()) {
    std::memcpy(copy.body_->bytes(), bytes.data(), bytes.size());
  }
  return copy;
}

Frame Frame::share() const noexcept {
  Frame other;
  other.body_ = body_;
  if (body_ != nullptr) {
    ++body_->references;
  }
  return other;
}

std::span<const std::uint8_t> Frame::bytes() const noexcept {
  if (body_ == nullptr) {
    return {};
  }
  return {body_->bytes(), body_->size};
}

std::span<std::uint8_t> Frame::writable() {
  if (body_ == nullptr) {
    return {};
  }
  if (body_->references > 1) {
    *this = clone();
  }
  return {body_->bytes(), body_->size};
}

std::size_t Frame::size() const noexcept { return body_ == nullptr ? 0 : body_->size; }

bool Frame::is_shared() const noexcept { return body_ != nullptr && body_->references > 1; }

void Frame::truncate(std::size_t bytes) {
  if (bytes >= size()) {
    return;
  }
  if (body_->references > 1) {
    *this = copy_of(this->bytes().first(bytes));
    return;
  }
  body_->size = static_cast<std::uint32_t>(bytes);
}

void Frame::release() noexcept {
  if (body_ != nullptr && --body_->references == 0) {
    ::operator delete(body_);
  }
  body_ = nullptr;
}

}  // namespace ordma::fabric
