// SPDX-License-Identifier: BSD-2-Clause
#include "native/client_memory.hpp"

#include <sys/uio.h>

#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "base/copy.hpp"
#include "native/address_space.hpp"

namespace ordma::softdev {

int ClientMemory::allocate(std::uint64_t bytes, std::uint32_t* buffer) {
  if (bytes == 0 || bytes > kBytesMax) return EINVAL;
  const std::size_t size = round_to_pages(bytes);
  if (buffers_.size() >= kBuffersMax || size > kBytesMax - bytes_) return ENOMEM;
  auto memory = SharedMemory::create("ordma-buffer", size);
  if (!memory) return ENOMEM;
  auto entry = std::make_unique<Buffer>();
  entry->memory = std::move(*memory);
  *buffer = next_++;
  buffers_.emplace(*buffer, std::move(entry));
  bytes_ += size;
  return 0;
}

int ClientMemory::map(std::uint32_t buffer, std::uint64_t va) {
  const auto it = buffers_.find(buffer);
  if (it == buffers_.end()) return ENOENT;
  Buffer& entry = *it->second;
  const std::size_t size = entry.memory.size();
  if (entry.va != 0) return EEXIST;
  if (va == 0 || va % host_page_size() != 0 || va >= kVaEnd || size > kVaEnd - va) return EINVAL;
  const auto next = by_va_.lower_bound(va);
  if (next != by_va_.end() && next->first < va + size) return EEXIST;
  if (next != by_va_.begin()) {
    const auto prev = std::prev(next);
    if (prev->first + prev->second->memory.size() > va) return EEXIST;
  }
  entry.va = va;
  by_va_.emplace(va, &entry);
  return 0;
}

int ClientMemory::release(std::uint32_t buffer) {
  const auto it = buffers_.find(buffer);
  if (it == buffers_.end()) return ENOENT;
  Buffer& entry = *it->second;
  if (entry.pins != 0) return EBUSY;
  if (entry.va != 0) by_va_.erase(entry.va);
  if (last_ == &entry) last_ = nullptr;
  bytes_ -= entry.memory.size();
  buffers_.erase(it);
  return 0;
}

int ClientMemory::fd_of(std::uint32_t buffer) const {
  const auto it = buffers_.find(buffer);
  return it == buffers_.end() ? -1 : it->second->memory.fd();
}

ClientMemory::Buffer* ClientMemory::find(std::uint64_t va, std::uint64_t bytes) {
  const auto holds = [&](const Buffer& buffer) {
    return va >= buffer.va && va - buffer.va <= buffer.memory.size() &&
           bytes <= buffer.memory.size() - (va - buffer.va);
  };
  if (last_ != nullptr && holds(*last_)) return last_;
  auto it = by_va_.upper_bound(va);
  if (it == by_va_.begin()) return nullptr;
  Buffer* candidate = (--it)->second;
  if (!holds(*candidate)) return nullptr;
  last_ = candidate;
  return candidate;
}

bool ClientMemory::pin(std::uint64_t va, std::uint64_t bytes) {
  if (bytes == 0) return false;
  Buffer* buffer = find(va, bytes);
  if (buffer == nullptr) return false;
  ++buffer->pins;
  return true;
}

void ClientMemory::unpin(std::uint64_t va) {
  Buffer* buffer = find(va, 1);
  assert(buffer != nullptr && buffer->pins > 0);
  --buffer->pins;
}

int ClientMemory::check_access(std::uint64_t va, std::uint64_t bytes, bool write) const {
  if (!attached_) return EFAULT;
  if (va >= kVaEnd || bytes > kVaEnd - va) return EFAULT;
  if (bytes == 0) return 0;
  if (!address_space_covers(pid_, va, bytes, write)) return EFAULT;
  // The map may be readable where the memory is not: only a transfer tells.
  std::byte probe;
  iovec local{&probe, 1};
  iovec remote{std::bit_cast<void*>(va), 1};
  if (::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == 1) return 0;
  return errno == EPERM || errno == ENOSYS ? EPERM : EFAULT;
}

bool ClientMemory::read(std::uint64_t va, std::span<std::byte> dst) {
  if (!attached_) return false;
  if (dst.empty()) return true;
  if (const Buffer* buffer = find(va, dst.size())) {
    std::memcpy(dst.data(), buffer->memory.data() + (va - buffer->va), dst.size());
    return true;
  }
  iovec local{dst.data(), dst.size()};
  iovec remote{std::bit_cast<void*>(va), dst.size()};
  const ssize_t moved = ::process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  return moved >= 0 && static_cast<std::size_t>(moved) == dst.size();
}

bool ClientMemory::write(std::uint64_t va, std::span<const std::byte> src) {
  if (!attached_) return false;
  if (src.empty()) return true;
  if (const Buffer* buffer = find(va, src.size())) {
    copy_last_word_last(buffer->memory.data() + (va - buffer->va), src);
    return true;
  }
  iovec local{const_cast<std::byte*>(src.data()), src.size()};
  iovec remote{std::bit_cast<void*>(va), src.size()};
  const ssize_t moved = ::process_vm_writev(pid_, &local, 1, &remote, 1, 0);
  return moved >= 0 && static_cast<std::size_t>(moved) == src.size();
}

}  // namespace ordma::softdev
