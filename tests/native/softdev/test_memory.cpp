// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "base/copy.hpp"
#include "native/address_space.hpp"
#include "native/arena.hpp"
#include "native/client_memory.hpp"
#include "native/dma_checker.hpp"

using namespace ordma::softdev;

namespace {

std::uint64_t address(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

TEST_CASE("client 0: only live allocations are accessible", "[memory]") {
  Arena arena(1 << 20);
  const auto a = arena.allocate(5000);
  const auto b = arena.allocate(4096);
  REQUIRE((a && b));
  CHECK(arena.at(*a, 8192).size() == 8192);
  CHECK(arena.at(*a, 8193).empty());
  CHECK(arena.at(*a + 8191, 2).empty());
  CHECK(arena.at(*a - 1, 1).empty());
  CHECK(arena.at(0, 8).empty());
  CHECK(arena.at(~std::uint64_t{0}, 8).empty());
  CHECK(arena.at(*b, ~std::size_t{0}).empty());

  arena.at(*a, 1)[0] = std::byte{0x5a};
  arena.free(*a);
  CHECK(arena.at(*a, 1).empty());
  CHECK(arena.at(*b, 1).size() == 1);
  const auto again = arena.allocate(8192);
  REQUIRE(again == a);
  CHECK(arena.at(*again, 1)[0] == std::byte{0});
  CHECK_FALSE(arena.allocate(2 << 20));
  CHECK_FALSE(arena.allocate(0));
}

TEST_CASE("client 0: freed neighbours join", "[memory]") {
  Arena arena(16 * Arena::kGrain);
  std::vector<std::uint64_t> all;
  while (const auto addr = arena.allocate(1)) all.push_back(*addr);
  REQUIRE(all.size() == 16);
  for (const std::size_t i : {3U, 5U, 4U, 0U, 2U, 1U}) arena.free(all[i]);
  CHECK(arena.allocate(6 * Arena::kGrain) == all[0]);
  CHECK(arena.used_bytes() == 16 * Arena::kGrain);
}

TEST_CASE("buffers of a client: limits, overlap, pins", "[memory]") {
  ClientMemory memory(::getpid());
  std::uint32_t a = 0, b = 0;
  CHECK(memory.allocate(0, &a) == EINVAL);
  CHECK(memory.allocate(ClientMemory::kBytesMax + 1, &a) == EINVAL);
  CHECK(memory.allocate(~std::uint64_t{0}, &a) == EINVAL);
  REQUIRE(memory.allocate(8192, &a) == 0);
  REQUIRE(memory.allocate(4096, &b) == 0);
  CHECK(memory.fd_of(a) >= 0);
  CHECK(memory.fd_of(77) == -1);

  CHECK(memory.map(77, 0x10000) == ENOENT);
  CHECK(memory.map(a, 0) == EINVAL);
  CHECK(memory.map(a, 0x10001) == EINVAL);
  CHECK(memory.map(a, ClientMemory::kVaEnd - 4096) == EINVAL);
  CHECK(memory.map(a, ClientMemory::kVaEnd) == EINVAL);
  REQUIRE(memory.map(a, 0x10000) == 0);
  CHECK(memory.map(a, 0x40000) == EEXIST);
  CHECK(memory.map(b, 0x11000) == EEXIST);
  REQUIRE(memory.map(b, 0x12000) == 0);

  CHECK(memory.pin(0x10000, 8192));
  CHECK_FALSE(memory.pin(0x11000, 8192));  // reaches into the next buffer
  CHECK_FALSE(memory.pin(0x13000, 1));
  CHECK_FALSE(memory.pin(0x10000, 0));
  CHECK_FALSE(memory.pin(0x10008, ~std::uint64_t{0}));
  CHECK(memory.release(a) == EBUSY);
  memory.unpin(0x10000);
  CHECK(memory.release(a) == 0);
  CHECK(memory.release(a) == ENOENT);
  CHECK(memory.bytes() == 4096);
}

TEST_CASE("a client cannot hold more bytes than its share", "[memory]") {
  ClientMemory memory(::getpid());
  std::uint32_t buffer = 0;
  REQUIRE(memory.allocate(std::size_t{1} << 20, &buffer) == 0);
  CHECK(memory.allocate(ClientMemory::kBytesMax, &buffer) == ENOMEM);
}

TEST_CASE("given memory cannot be resized; read-only memory cannot be written", "[memory]") {
  auto shared = SharedMemory::create("test", 4096);
  REQUIRE(shared);
  CHECK(::ftruncate(shared->fd(), 0) != 0);
  CHECK(::ftruncate(shared->fd(), 8192) != 0);
  CHECK(::fcntl(shared->fd(), F_ADD_SEALS, F_SEAL_WRITE) != 0);

  auto page = SharedMemory::create("test", 4096, SharedMemory::Others::kReadOnly);
  REQUIRE(page);
  page->data()[0] = std::byte{1};  // our own mapping stays writable
  const Fd fd = page->read_only_fd();
  REQUIRE(fd);
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  const Fd reopened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  for (const int candidate : {fd.get(), reopened.get()}) {
    if (candidate < 0) continue;
    CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, candidate, 0) == MAP_FAILED);
    CHECK(::pwrite(candidate, "x", 1, 0) < 0);
  }
  void* const view = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd.get(), 0);
  REQUIRE(view != MAP_FAILED);
  CHECK(::mprotect(view, 4096, PROT_READ | PROT_WRITE) != 0);
  CHECK(*static_cast<const std::byte*>(view) == std::byte{1});
  ::munmap(view, 4096);
}

TEST_CASE("what is registered must be mapped, with the rights asked for", "[memory]") {
  const std::size_t page = host_page_size();
  auto* const area = static_cast<std::byte*>(::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(area != MAP_FAILED);
  ::mprotect(area + page, page, PROT_READ);
  ::munmap(area + 3 * page, page);
  const pid_t self = ::getpid();
  CHECK(address_space_covers(self, address(area), 3 * page, false));
  CHECK_FALSE(address_space_covers(self, address(area), 3 * page, true));
  CHECK(address_space_covers(self, address(area), page, true));
  CHECK(address_space_covers(self, address(area + 2 * page), page, true));
  CHECK_FALSE(address_space_covers(self, address(area), 3 * page + 1, false));
  CHECK_FALSE(address_space_covers(self, address(area + 3 * page), 1, false));

  ClientMemory memory(self);
  CHECK(memory.check_access(address(area), 3 * page, false) == 0);
  CHECK(memory.check_access(address(area), 3 * page, true) == EFAULT);
  CHECK(memory.check_access(address(area), 4 * page, false) == EFAULT);
  CHECK(memory.check_access(ClientMemory::kVaEnd, 8, false) == EFAULT);
  CHECK(memory.check_access(8, ~std::uint64_t{0}, false) == EFAULT);
  memory.detach();
  CHECK(memory.check_access(address(area), page, false) == EFAULT);
  ::munmap(area, 3 * page);
}

TEST_CASE("DMA reaches private memory, and a partial transfer fails", "[memory]") {
  const std::size_t page = host_page_size();
  auto* const area = static_cast<std::byte*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(area != MAP_FAILED);
  ::munmap(area + page, page);
  ClientMemory memory(::getpid());
  const std::uint64_t value = 0x1122334455667788;
  CHECK(memory.write(address(area) + page - 8, bytes_of(value)));
  std::uint64_t back = 0;
  CHECK(memory.read(address(area) + page - 8, std::as_writable_bytes(std::span(&back, 1))));
  CHECK(back == value);
  CHECK_FALSE(memory.write(address(area) + page - 4, bytes_of(value)));
  CHECK_FALSE(memory.read(address(area) + page - 4, std::as_writable_bytes(std::span(&back, 1))));
  CHECK_FALSE(memory.read(0x1000, std::as_writable_bytes(std::span(&back, 1))));
  memory.detach();
  CHECK_FALSE(memory.read(address(area), std::as_writable_bytes(std::span(&back, 1))));
  CHECK_FALSE(memory.write(address(area), bytes_of(value)));
  ::munmap(area, page);
}

TEST_CASE("inside a mapped buffer DMA is shared memory", "[memory]") {
  ClientMemory memory(::getpid());
  std::uint32_t buffer = 0;
  REQUIRE(memory.allocate(4096, &buffer) == 0);
  void* const view =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd_of(buffer), 0);
  REQUIRE(view != MAP_FAILED);
  // Announced where nothing is mapped: only the shared mapping can make this work.
  const std::uint64_t elsewhere = std::uint64_t{1} << 46;
  REQUIRE(memory.map(buffer, elsewhere) == 0);
  const std::uint64_t value = 0xfeedfacecafebeef;
  CHECK(memory.write(elsewhere + 64, bytes_of(value)));
  CHECK(std::memcmp(static_cast<std::byte*>(view) + 64, &value, 8) == 0);
  CHECK_FALSE(memory.write(elsewhere + 4092, bytes_of(value)));
  ::munmap(view, 4096);
}

TEST_CASE("copies are exact whatever the alignment", "[memory]") {
  alignas(8) std::array<std::byte, 128> source;
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i + 1);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    for (std::size_t size = 0; size <= 80; ++size) {
      alignas(8) std::array<std::byte, 128> target{};
      copy_last_word_last(target.data() + 16 + offset, std::span(source).first(size));
      const auto at = target.begin() + 16 + static_cast<std::ptrdiff_t>(offset);
      REQUIRE(std::equal(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(size), at));
      REQUIRE(at[-1] == std::byte{0});
      REQUIRE(at[static_cast<std::ptrdiff_t>(size)] == std::byte{0});
    }
  }
}

TEST_CASE("the DMA checker fails what is not granted", "[memory]") {
  DmaChecker checker;
  checker.granted(1000, 100);
  checker.granted(1100, 100);
  checker.accessed(1000, 200, true);
  checker.accessed(1050, 0, true);
  CHECK(checker.violations() == 0);
  checker.accessed(1199, 2, false);
  CHECK(checker.violations() == 1);
  checker.accessed(999, 1, false);
  CHECK(checker.violations() == 2);
  checker.granted(1000, 100);  // a second MR over the same bytes
  checker.revoked(1000, 100);
  checker.accessed(1000, 100, true);
  CHECK(checker.violations() == 2);
  checker.revoked(1000, 100);
  checker.accessed(1000, 100, true);
  CHECK(checker.violations() == 3);
  checker.revoked(1000, 100);
  CHECK(checker.violations() == 4);
  REQUIRE(checker.reports().size() == 4);
  CHECK(checker.reports()[0] == "read of 0x4af+0x2 outside every granted range");
}
