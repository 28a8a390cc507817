// SPDX-License-Identifier: BSD-2-Clause
#include "base/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace ordma::softdev {

std::optional<Mapping> Mapping::map_fd(int fd, std::size_t bytes, bool writable) {
  const int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = ::mmap(nullptr, bytes, prot, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return std::nullopt;
  // A child of this process (a test's, a shell's) must never hold client memory.
  (void)::madvise(data, bytes, MADV_DONTFORK);
  Mapping mapping;
  mapping.data_ = static_cast<std::byte*>(data);
  mapping.size_ = bytes;
  return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

std::optional<SharedMemory> SharedMemory::create(const char* name, std::size_t bytes,
                                                 Others others) {
  const std::size_t size = round_to_pages(bytes);
  if (size == 0 || size < bytes) return std::nullopt;
  SharedMemory memory;
  memory.fd_.reset(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.fd_ || ::ftruncate(memory.fd_.get(), static_cast<off_t>(size)) != 0) {
    return std::nullopt;
  }
  if (::fallocate(memory.fd_.get(), 0, 0, static_cast<off_t>(size)) != 0) return std::nullopt;
  auto mapping = Mapping::map_fd(memory.fd_.get(), size);
  if (!mapping) return std::nullopt;
  memory.mapping_ = std::move(*mapping);
  // After our own mapping: the seal against future writers spares only mappings that exist.
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (others == Others::kReadOnly) seals |= F_SEAL_FUTURE_WRITE;
  if (::fcntl(memory.fd_.get(), F_ADD_SEALS, seals) != 0) return std::nullopt;
  return memory;
}

Fd SharedMemory::read_only_fd() const {
  const std::string path = "/proc/self/fd/" + std::to_string(fd_.get());
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

std::size_t host_page_size() {
  static const std::size_t size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t round_to_pages(std::size_t bytes) {
  const std::size_t page = host_page_size();
  return (bytes + page - 1) / page * page;
}

}  // namespace ordma::softdev
