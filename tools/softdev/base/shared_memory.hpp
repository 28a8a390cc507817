// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/fd.hpp"

namespace ordma::softdev {

// A range of memory mapped from a file; unmapped at the end.
class Mapping {
 public:
  Mapping() noexcept = default;
  // Nothing when mmap refuses. `writable` false maps read-only.
  [[nodiscard]] static std::optional<Mapping> map_fd(int fd, std::size_t bytes,
                                                     bool writable = true);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Zeroed memory that can be given to other processes: a memfd whose size is sealed, so that a
// receiver can neither truncate it under our feet (SIGBUS) nor grow it at our expense. Its pages
// are allocated at once for the same reason.
class SharedMemory {
 public:
  enum class Others : std::uint8_t { kWrite, kReadOnly };

  SharedMemory() noexcept = default;
  // `bytes` is rounded up to pages. Nothing when the system has no memory or descriptors left.
  // kReadOnly: no mapping made after this one can be writable, whoever reopens the file.
  [[nodiscard]] static std::optional<SharedMemory> create(const char* name, std::size_t bytes,
                                                          Others others = Others::kWrite);

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] std::byte* data() const noexcept { return mapping_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return mapping_.size(); }
  // A descriptor of the same memory that was opened for reading. -1 with errno on failure.
  [[nodiscard]] Fd read_only_fd() const;

 private:
  Fd fd_;
  Mapping mapping_;
};

[[nodiscard]] std::size_t host_page_size();
[[nodiscard]] std::size_t round_to_pages(std::size_t bytes);

}  // namespace ordma::softdev
