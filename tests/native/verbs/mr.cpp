// SPDX-License-Identifier: BSD-2-Clause
// Memory regions: bounds, access, keys, and memory of unusual kinds.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fstream>
#include <set>

#include "checks.hpp"

using namespace ordma::test;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

int reg_errno(ibv_pd* pd, void* addr, std::size_t length, int access) {
  errno = 0;
  Mr mr(ibv_reg_mr(pd, addr, length, access));
  return mr != nullptr ? 0 : errno;
}

std::size_t map_count() {
  std::ifstream in("/proc/self/maps");
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>(), '\n'));
}

// All of the MR by WRITE and by READ, then one byte more by each.
void check_bounds(Pair& p, Buffer& local, Buffer& remote, std::size_t length) {
  const std::array all{local.sge(0, length)};
  local.fill(7);
  REQUIRE(p.a.post_send(write_wr(1, remote), all) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  CHECK(remote.holds(7, 0, length));
  local.clear();
  REQUIRE(p.a.post_send(read_wr(2, remote), all) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  CHECK(local.holds(7, 0, length));
  const std::array more{local.sge(0, length + 1)};
  REQUIRE(p.a.post_send(write_wr(3, remote), more) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_REM_ACCESS_ERR);
  CHECK(remote.canaries_intact());
  p.reconnect();
  REQUIRE(p.a.post_send(read_wr(4, remote), more) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_REM_ACCESS_ERR);
  CHECK(local.holds(7, 0, length));
  p.reconnect();
}

}  // namespace

TEST_CASE("case_036 a region is as large as registered, wherever it begins", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer local(p.a.pd.get(), 2 * kMiB + 2);
  for (const std::size_t offset : {0, 1, 4095}) {
    for (const std::size_t length : {std::size_t{1}, std::size_t{2}, std::size_t{4095},
                                     std::size_t{4096}, std::size_t{4097}, 2 * kMiB + 1}) {
      CAPTURE(loopback, offset, length);
      Buffer remote(p.b.pd.get(), length, kFullAccess, offset);
      check_bounds(p, local, remote, length);
      CHECK(remote.canaries_intact());
    }
  }
}

TEST_CASE("case_036 below its begin there is nothing", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer local(p.a.pd.get(), 64), remote(p.b.pd.get(), 4096, kFullAccess, 100);
  auto wr = write_wr(1, remote);
  wr.wr.rdma.remote_addr -= 1;
  REQUIRE(p.a.post_send(wr, std::array{local.sge(0, 64)}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_REM_ACCESS_ERR);
  CHECK(remote.canaries_intact());
  CHECK(remote.all(0, 0, 4096));
}

TEST_CASE("case_036 a local SGE is checked like a remote address", "[rc]") {
  const bool loopback = both_ways();
  const int kind = GENERATE(range(0, 4));
  Pair p(loopback);
  Buffer local(p.a.pd.get(), 64), remote(p.b.pd.get(), 128);
  Pd other(ibv_alloc_pd(p.a.ctx.get()));
  Buffer foreign(other.get(), 64);
  ibv_sge sge = kind == 3 ? foreign.sge(0, 64) : local.sge(0, 64);
  if (kind == 0) sge.length = 65;
  if (kind == 1) sge.addr -= 1;
  if (kind == 2) sge.addr = ~std::uint64_t{7};
  CAPTURE(loopback, kind);
  REQUIRE(p.a.post_send(write_wr(1, remote), std::array{sge}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_LOC_PROT_ERR);
  CHECK(remote.all(0, 0, 128));
}

TEST_CASE("case_036 a READ into memory that must not be written", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer local(p.a.pd.get(), 64, 0), remote(p.b.pd.get(), 64);
  remote.fill(1);
  REQUIRE(p.a.post_send(read_wr(1, remote), std::array{local.sge(0, 64)}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_LOC_PROT_ERR);
  CHECK(local.all(0, 0, 64));
}

TEST_CASE("case_038 an IOVA of one's own", "[rc]") {
  const bool loopback = both_ways();
  const std::uint64_t iova = GENERATE(as<std::uint64_t>{}, 0, 0x1000, 0x7777000000000123);
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 9000, iova), to(p.b.pd.get(), 9000, iova);
  from.fill(3);
  CAPTURE(loopback, iova);
  REQUIRE(from.addr() == iova);
  REQUIRE(p.a.post_send(write_wr(1, to, 100), std::array{from.sge(100, 8000)}) == 0);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  CHECK(to.holds(3, 100, 8000));
  CHECK(to.all(0, 0, 100));
  CHECK(to.canaries_intact());
  // The virtual address is no address of this MR.
  auto wr = write_wr(2, to);
  wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(to.data());
  REQUIRE(p.a.post_send(wr, std::array{from.sge(0, 8)}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_REM_ACCESS_ERR);
}

TEST_CASE("case_039 access flags", "[rc]") {
  End end(device_names().at(0));
  ibv_pd* const pd = end.pd.get();
  alignas(4096) static std::uint8_t memory[4096];
  CHECK(reg_errno(pd, memory, 4096, IBV_ACCESS_REMOTE_WRITE) == EINVAL);
  CHECK(reg_errno(pd, memory, 4096, IBV_ACCESS_REMOTE_ATOMIC) == EINVAL);
  CHECK(reg_errno(pd, memory, 4096, IBV_ACCESS_REMOTE_READ) == 0);
  CHECK(reg_errno(pd, memory, 4096, 0) == 0);
  CHECK(reg_errno(pd, memory, 4096, kFullAccess | IBV_ACCESS_RELAXED_ORDERING) == 0);
  for (int bit = 20; bit <= 29; ++bit) {  // the optional range
    CAPTURE(bit);
    CHECK(reg_errno(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE | 1 << bit) == 0);
  }
  CHECK(reg_errno(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE | 1 << 15) != 0);  // a mandatory one
}

TEST_CASE("case_039 read-only memory", "[rc]") {
  End end(device_names().at(0));
  void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  CHECK(reg_errno(end.pd.get(), page, 4096, IBV_ACCESS_REMOTE_READ) == 0);
  CHECK(reg_errno(end.pd.get(), page, 4096, IBV_ACCESS_LOCAL_WRITE) == EFAULT);
  ::munmap(page, 4096);
  CHECK(reg_errno(end.pd.get(), page, 4096, IBV_ACCESS_LOCAL_WRITE) == EFAULT);
}

TEST_CASE("case_040 transparent huge pages, filled in pieces", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  constexpr std::size_t kBytes = 4 * kMiB;
  void* const map = ::mmap(nullptr, kBytes + 2 * kMiB, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(map != MAP_FAILED);
  auto* const at = reinterpret_cast<std::uint8_t*>(
      (reinterpret_cast<std::uint64_t>(map) + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB));
  ::madvise(at, kBytes, MADV_HUGEPAGE);
  std::fill(at, at + kBytes, std::uint8_t{0});
  {
    Mr mr(ibv_reg_mr(p.b.pd.get(), at, kBytes, kFullAccess));
    REQUIRE(mr != nullptr);
    constexpr std::size_t kPiece = 70001;  // meets no page boundary
    Buffer from(p.a.pd.get(), kPiece);
    from.fill(5);
    for (std::size_t i = 0; i + kPiece <= kBytes; i += kPiece) {
      auto wr = write_wr(i, from);
      wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(at) + i;
      wr.wr.rdma.rkey = mr->rkey;
      REQUIRE(p.a.post_send(wr, std::array{from.sge(0, kPiece)}) == 0);
      REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
      CHECK(std::equal(from.data(), from.data() + kPiece, at + i));
    }
  }
  ::munmap(map, kBytes + 2 * kMiB);
}

TEST_CASE("case_042 a child that touches its copy does not part parent and NIC", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 100), to(p.b.pd.get(), 100, kFullAccess, 50);
  from.fill(1);
  for (int round = 0; round < 3; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      *(to.data() - 1) = 9;  // neighbours of the MR, in its page
      to.data()[100] = 9;
      ::_exit(0);
    }
    REQUIRE(child > 0);
    if (round == 1) {  // while the child may still live, and after it ended
      REQUIRE(::waitpid(child, nullptr, 0) == child);
    }
    to.data()[0] = static_cast<std::uint8_t>(round);  // copy on write hits the parent here
    REQUIRE(p.a.post_send(write_wr(1, to), std::array{from.sge(0, 100)}) == 0);
    REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
    CHECK(to.holds(1, 0, 100));
    CHECK(to.canaries_intact());
    if (round != 1) {
      REQUIRE(::waitpid(child, nullptr, 0) == child);
    }
  }
}

TEST_CASE("case_042 registering does not split mappings", "[rc]") {
  End end(device_names().at(0));
  Buffer buffer(end.pd.get(), kMiB);
  const std::size_t before = map_count();
  const std::size_t rounds = scale(1000, 5000, 70000);
  for (std::size_t i = 0; i < rounds; ++i) {
    Mr mr(ibv_reg_mr(end.pd.get(), buffer.data() + i % kMiB / 2, 4096, kFullAccess));
    REQUIRE(mr != nullptr);
  }
  CHECK(map_count() <= before + 4);
}

TEST_CASE("case_044 a key does not come back soon", "[rc]") {
  End end(device_names().at(0));
  Buffer memory(end.pd.get(), 4096);
  std::deque<std::uint32_t> order;
  std::set<std::uint32_t> recent;
  const std::size_t rounds = scale(2000, 10000, 100000);
  for (std::size_t i = 0; i < rounds; ++i) {
    Mr mr(ibv_reg_mr(end.pd.get(), memory.data(), 4096, kFullAccess));
    REQUIRE(mr != nullptr);
    REQUIRE(recent.insert(mr->rkey).second);
    order.push_back(mr->rkey);
    if (order.size() > 256) {
      recent.erase(order.front());
      order.pop_front();
    }
  }
}

TEST_CASE("case_044 a key is dead when dereg_mr returns", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  auto wr = write_wr(1, to);
  to.release_mr();
  REQUIRE(p.a.post_send(wr, std::array{from.sge(0, 64)}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_REM_ACCESS_ERR);
  CHECK(to.all(0, 0, 64));
}

TEST_CASE("case_045 memory windows and invalidation say that they are not there", "[rc]") {
  Pair p(true);
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(p.a.ctx.get(), &device) == 0);
  CHECK((device.device_cap_flags & (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A |
                                    IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS)) == 0);
  CHECK(device.max_mw == 0);
  for (const auto type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
    errno = 0;
    CHECK(ibv_alloc_mw(p.a.pd.get(), type) == nullptr);
    CHECK(errno == EOPNOTSUPP);
  }
  for (const auto opcode : {IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV, IBV_WR_TSO}) {
    auto wr = send_wr(1);
    wr.opcode = opcode;
    CAPTURE(opcode);
    CHECK(p.a.post_send(wr) == EOPNOTSUPP);
  }
  alignas(4096) static std::uint8_t memory[4096];
  CHECK(reg_errno(p.a.pd.get(), memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND) == EOPNOTSUPP);
}

TEST_CASE("case_046 the dma-buf probe of NCCL", "[rc]") {
  End end(device_names().at(0));
  errno = 0;
  CHECK(ibv_reg_dmabuf_mr(end.pd.get(), 0, 0, 0, -1, 0) == nullptr);
  // Unsupported, or supported and a bad descriptor; never an errno that programs do not know.
  const bool known = errno == EOPNOTSUPP || errno == EBADF;
  CAPTURE(errno);
  CHECK(known);
}

TEST_CASE("case_047 on-demand paging is neither advertised nor taken", "[rc]") {
  End end(device_names().at(0));
  ibv_device_attr_ex device{};
  REQUIRE(ibv_query_device_ex(end.ctx.get(), nullptr, &device) == 0);
  CHECK(device.odp_caps.general_caps == 0);
  alignas(4096) static std::uint8_t memory[4096];
  constexpr int kOnDemand = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
  CHECK(reg_errno(end.pd.get(), memory, 4096, kOnDemand) == EOPNOTSUPP);
  CHECK(reg_errno(end.pd.get(), nullptr, SIZE_MAX, kOnDemand) == EOPNOTSUPP);
  // Without the flag it is a region of no sane size, and no implicit one.
  CHECK(reg_errno(end.pd.get(), nullptr, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE) != 0);
}

TEST_CASE("case_048 a region of no bytes is refused", "[rc]") {
  End end(device_names().at(0));
  alignas(4096) static std::uint8_t memory[4096];
  CHECK(reg_errno(end.pd.get(), memory, 0, kFullAccess) == EINVAL);
  CHECK(reg_errno(end.pd.get(), memory, 0, 0) == EINVAL);
}
