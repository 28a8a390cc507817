// SPDX-License-Identifier: BSD-2-Clause
#include "vm/guest_memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/copy.hpp"
#include "base/fd.hpp"

namespace ordma::softdev {

std::string GuestMemory::attach() {
  const Fd file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) return path_ + ": " + std::strerror(errno);
  if (!S_ISREG(info.st_mode)) return path_ + ": not a file";
  const auto bytes = static_cast<std::uint64_t>(info.st_size);
  if (bytes == 0) return path_ + ": empty";
  if (bytes > kBytesMax) return path_ + ": more than 2 GiB; addresses would not be offsets";
  auto mapping = Mapping::map_fd(file.get(), bytes);
  if (!mapping) return path_ + ": " + std::strerror(errno);
  mapping_ = std::move(*mapping);
  return {};
}

bool GuestMemory::holds(std::uint64_t addr, std::size_t bytes) const {
  return addr <= mapping_.size() && bytes <= mapping_.size() - addr;
}

bool GuestMemory::read(std::uint64_t addr, std::span<std::byte> dst) const {
  if (!holds(addr, dst.size())) return false;
  if (!dst.empty()) std::memcpy(dst.data(), mapping_.data() + addr, dst.size());
  return true;
}

bool GuestMemory::write(std::uint64_t addr, std::span<const std::byte> src) {
  if (!holds(addr, src.size())) return false;
  if (!src.empty()) copy_last_word_last(mapping_.data() + addr, src);
  return true;
}

}  // namespace ordma::softdev
