// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "base/shared_memory.hpp"

namespace ordma::softdev {

// The address space of one client as the NIC sees it: buffers that both sides have mapped, and
// everything else through process_vm_readv/writev. A client that is gone has no memory.
class ClientMemory {
 public:
  static constexpr std::uint64_t kVaEnd = std::uint64_t{1} << 48;  // the client id lies above
  static constexpr std::size_t kBuffersMax = 8192;
  static constexpr std::size_t kBytesMax = std::size_t{1} << 30;

  explicit ClientMemory(pid_t pid) : pid_(pid) {}
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  // All return 0 or an errno.
  [[nodiscard]] int allocate(std::uint64_t bytes, std::uint32_t* buffer);
  [[nodiscard]] int map(std::uint32_t buffer, std::uint64_t va);
  [[nodiscard]] int release(std::uint32_t buffer);
  [[nodiscard]] int fd_of(std::uint32_t buffer) const;  // -1: no such buffer

  // A queue or record lies in [va, va + bytes): holds the buffer until unpin() of the same va.
  // False unless one mapped buffer contains it all.
  [[nodiscard]] bool pin(std::uint64_t va, std::uint64_t bytes);
  void unpin(std::uint64_t va);

  // Can memory be registered? 0, EFAULT (not mapped with these rights) or EPERM (the system does
  // not let us read it).
  [[nodiscard]] int check_access(std::uint64_t va, std::uint64_t bytes, bool write) const;

  [[nodiscard]] bool read(std::uint64_t va, std::span<std::byte> dst);
  // The last aligned word becomes visible last.
  [[nodiscard]] bool write(std::uint64_t va, std::span<const std::byte> src);
  void detach() { attached_ = false; }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t buffers() const { return buffers_.size(); }

 private:
  struct Buffer {
    SharedMemory memory;
    std::uint64_t va = 0;  // 0: not mapped yet
    std::uint32_t pins = 0;
  };
  [[nodiscard]] Buffer* find(std::uint64_t va, std::uint64_t bytes);

  pid_t pid_;
  bool attached_ = true;
  std::size_t bytes_ = 0;
  std::uint32_t next_ = 1;
  std::map<std::uint32_t, std::unique_ptr<Buffer>> buffers_;
  std::map<std::uint64_t, Buffer*> by_va_;
  Buffer* last_ = nullptr;  // DMA comes in runs to one queue
};

}  // namespace ordma::softdev
