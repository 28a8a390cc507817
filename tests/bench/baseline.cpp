// SPDX-License-Identifier: BSD-2-Clause
#include "baseline.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <stdexcept>
#include <string>

namespace ordma::bench {
namespace {

constexpr std::size_t kBlock = 1 << 20;
// As many as the bandwidth point of this size keeps in flight: the same footprint in the caches.
constexpr std::size_t kBlocks = 4;
constexpr std::uint64_t kPrivateBatch = 0xa1, kSharedBatch = 0xb2;

std::uint8_t* map_pages(int flags) {
  void* p = ::mmap(nullptr, kBlock * kBlocks, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    throw std::runtime_error(std::string("mmap: ") + std::strerror(errno));
  }
  return static_cast<std::uint8_t*>(p);
}

void fill_blocks(std::uint8_t* to, std::uint64_t batch) {
  for (std::size_t i = 0; i < kBlocks; ++i) {
    fill(to + i * kBlock, kBlock, batch, i);
  }
}

// The other process: owns the data, says when it is there, waits to be killed.
pid_t start_owner(std::uint8_t* own, std::uint8_t* shared) {
  int ready[2];
  if (::pipe(ready) != 0) {
    throw std::runtime_error("pipe");
  }
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(1);
    }
    fill_blocks(own, kPrivateBatch);
    fill_blocks(shared, kSharedBatch);
    const bool told = ::write(ready[1], "", 1) == 1;
    while (told) {
      ::pause();
    }
    ::_exit(1);
  }
  ::close(ready[1]);
  char byte = 0;
  const bool up = child > 0 && ::read(ready[0], &byte, 1) == 1;
  ::close(ready[0]);
  if (!up) {
    throw std::runtime_error("the other process of the copy baseline did not start");
  }
  return child;
}

std::vector<double> measure(const Timing& timing, const std::function<void(std::size_t)>& copy_block) {
  std::vector<double> rates;
  for (unsigned repeat = 0; repeat <= timing.repeats; ++repeat) {
    std::size_t copied = 0;
    const auto start = Clock::now();
    auto now = start;
    do {
      copy_block(copied % kBlocks);
      ++copied;
      now = Clock::now();
    } while (now - start < timing.slice || copied < kBlocks);
    if (repeat != 0) {  // the first one faults pages in
      rates.push_back(static_cast<double>(copied * kBlock) / seconds(now - start));
    }
  }
  return rates;
}

bool blocks_hold(const std::uint8_t* at, std::uint64_t batch) {
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (!holds(at + i * kBlock, kBlock, batch, i)) {
      return false;
    }
  }
  return true;
}

}  // namespace

CopyResult measure_copies(const Timing& timing) {
  std::uint8_t* own = map_pages(MAP_PRIVATE);
  std::uint8_t* shared = map_pages(MAP_SHARED);
  std::uint8_t* target = map_pages(MAP_PRIVATE);
  const pid_t owner = start_owner(own, shared);
  CopyResult result;
  result.block = kBlock;
  result.blocks = kBlocks;
  int failed = 0;
  result.vm_readv = measure(timing, [&](std::size_t i) {
    const iovec to{target + i * kBlock, kBlock};
    const iovec from{own + i * kBlock, kBlock};
    if (::process_vm_readv(owner, &to, 1, &from, 1, 0) != static_cast<ssize_t>(kBlock)) {
      failed = errno != 0 ? errno : EIO;
    }
  });
  result.verified = failed == 0 && blocks_hold(target, kPrivateBatch);
  result.shared = measure(timing, [&](std::size_t i) { std::memcpy(target + i * kBlock, shared + i * kBlock, kBlock); });
  result.verified = result.verified && blocks_hold(target, kSharedBatch);
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  for (std::uint8_t* p : {own, shared, target}) {
    ::munmap(p, kBlock * kBlocks);
  }
  if (!result.verified) {
    throw std::runtime_error(std::string("copy baseline: ") + (failed != 0 ? std::strerror(failed) : "wrong data"));
  }
  return result;
}

}  // namespace ordma::bench
