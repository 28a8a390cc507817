// SPDX-License-Identifier: BSD-2-Clause
// The VM attachment with this test as the guest: it speaks QEMU's side of ivshmem and runs the real
// driver core on BAR2 and a RAM file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>

#include "base/event_loop.hpp"
#include "device/addresses.hpp"
#include "device/network.hpp"
#include "ordma_cmd.h"
#include "ordma_core.h"
#include "ordma_hw.hpp"
#include "vm/vm_attachment.hpp"

using namespace ordma;
using namespace ordma::softdev;

namespace {

constexpr std::size_t kRamBytes = std::size_t{64} << 20;

struct Files {
  Files() {
    char name[] = "/tmp/ordma-test-XXXXXX";
    dir = ::mkdtemp(name);
  }
  ~Files() { std::filesystem::remove_all(dir); }
  [[nodiscard]] std::string socket() const { return dir + "/nic"; }
  [[nodiscard]] std::string ram() const { return dir + "/ram"; }
  std::string dir;
};

struct Host {
  explicit Host(const Files& files) : network({}, 1, [this] { return host_ns; }) {
    auto attachment = std::make_unique<VmAttachment>(loop, "ordma0", files.ram());
    vm = attachment.get();
    EngineConfig config;
    config.mac = mac_to_register(nic_mac(0));
    config.guid = guid_of(nic_mac(0));
    REQUIRE(network.add_nic("ordma0", config, make_twin, std::move(attachment)));
    REQUIRE(vm->listen(files.socket()).empty());
  }
  void settle() {
    for (int quiet = 0, passes = 0; quiet < 3; ++passes) {
      REQUIRE(passes < 100'000);
      const bool handled = loop.wait(0) != 0;
      quiet = network.step() || handled ? 0 : quiet + 1;
    }
  }
  std::uint64_t host_ns = 1;
  EventLoop loop;
  Network network;
  VmAttachment* vm = nullptr;
};

// QEMU and the guest's driver.
class Guest {
 public:
  Guest(Host& host, const Files& files, bool make_ram = true) : host_(host) {
    if (make_ram) {
      const Fd file(::open(files.ram().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      REQUIRE(::ftruncate(file.get(), kRamBytes) == 0);
      ram_ = *Mapping::map_fd(file.get(), kRamBytes);
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    files.socket().copy(address.sun_path, sizeof address.sun_path - 1);
    socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    host_.settle();
    Fd fd;
    REQUIRE(receive(&fd) == 0);   // protocol version
    REQUIRE(receive(&fd) == 1);   // our id
    REQUIRE(receive(&fd) == -1);  // shared memory
    struct stat info {};
    REQUIRE(::fstat(fd.get(), &info) == 0);
    REQUIRE((info.st_size & (info.st_size - 1)) == 0);
    bar_ = *Mapping::map_fd(fd.get(), static_cast<std::size_t>(info.st_size));
    REQUIRE(receive(&kick) == 0);
    for (Fd& vector : vectors) REQUIRE(receive(&vector) == 1);
    ops_ = make_ops();
  }

  std::int64_t receive(Fd* fd) {
    std::int64_t number = -99;
    iovec io{&number, sizeof number};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &io;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    if (::recvmsg(socket_.get(), &header, MSG_DONTWAIT) != sizeof number) return -99;
    if (const cmsghdr* cmsg = CMSG_FIRSTHDR(&header)) {
      int value;
      std::memcpy(&value, CMSG_DATA(cmsg), sizeof value);
      fd->reset(value);
    }
    return number;
  }

  int probe() {
    std::array<char, 160> message{};
    return ordma_core_probe(&core, &ops_, this, message.data(), message.size());
  }
  // Rings at the start of RAM.
  int start() {
    ordma_core_rings rings{};
    next_ = 4096;
    rings.cmd = memory(ordma_core_cmd_bytes(&core));
    rings.rsp = memory(ordma_core_rsp_bytes(&core));
    rings.rcmd = memory(ordma_core_rcmd_bytes(&core));
    rings.eq = memory(ordma_core_eq_bytes(&core));
    if (ordma_core_set_rings(&core, &rings) != 0) return -1;
    ordma_core_reset_begin(&core);
    host_.settle();
    if (const int err = ordma_core_reset_done(&core); err != 0) return err;
    if (const int err = ordma_core_start(&core); err != 0) return err;
    host_.settle();
    return ordma_core_start_done(&core);
  }
  int command(const ordma_cmd& cmd, ordma_rsp_result* result) {
    std::uint32_t ticket = 0;
    if (const int err = ordma_cmd_submit(&core, &cmd, true, &ticket); err != 0) return err;
    host_.settle();
    return ordma_cmd_complete(&core, ticket, result);
  }
  ordma_mem memory(std::size_t bytes) {
    const std::uint64_t at = next_;
    next_ += round_to_pages(bytes);
    return {ram_.data() + at, at, bytes};
  }
  [[nodiscard]] std::uint64_t interrupts(unsigned vector) const {
    std::uint64_t count = 0;
    ::fcntl(vectors[vector].get(), F_SETFL, O_NONBLOCK);
    return ::read(vectors[vector].get(), &count, sizeof count) == sizeof count ? count : 0;
  }
  [[nodiscard]] std::byte* bar() const { return bar_.data(); }
  std::span<std::byte> ram() { return ram_.bytes(); }

  ordma_core core{};
  Fd kick;
  std::array<Fd, VmAttachment::kVectors> vectors;

 private:
  static Guest& self(void* ctx) { return *static_cast<Guest*>(ctx); }
  template <typename T>
  static T* reg(void* ctx, std::uint32_t offset) {
    return reinterpret_cast<T*>(self(ctx).bar_.data() + offset);
  }
  static ordma_core_ops make_ops() {
    ordma_core_ops ops{};
    ops.reg_write32 = [](void* c, u32 o, u32 v) {
      __atomic_store_n(reg<u32>(c, o), v, __ATOMIC_RELEASE);
    };
    ops.reg_write64 = [](void* c, u32 o, u64 v) {
      __atomic_store_n(reg<u64>(c, o), v, __ATOMIC_RELEASE);
    };
    ops.reg_read32 = [](void* c, u32 o) {
      return __atomic_load_n(reg<u32>(c, o), __ATOMIC_ACQUIRE);
    };
    ops.reg_read64 = [](void* c, u32 o) {
      return __atomic_load_n(reg<u64>(c, o), __ATOMIC_ACQUIRE);
    };
    ops.doorbell = [](void* c, u32 slot, u64 word) {
      auto* const page = reg<u64>(c, static_cast<u32>(VmAttachment::page_offset(hw::kDriverPage)));
      __atomic_store_n(page + slot, word, __ATOMIC_RELEASE);
    };
    ops.random32 = [](void*) { static u32 value = 77; return value += 1001; };
    ops.cmd_done = [](void*, u32) {};
    ops.cq_event = ops.cq_error = ops.srq_limit = ops.srq_error = [](void*, u32) {};
    ops.qp_async = [](void*, u32, enum ordma_async) {};
    ops.page_error = [](void*, u32, enum ordma_db_err) {};
    ops.port_event = [](void*, bool) {};
    ops.fatal = [](void*, enum ordma_fatal) {};
    ops.qp_find = [](void*, u32) -> struct ordma_qp* { return nullptr; };
    ops.qp_put = [](void*, struct ordma_qp*) {};
    return ops;
  }

  Host& host_;
  Fd socket_;
  Mapping ram_, bar_;
  std::uint64_t next_ = 0;
  ordma_core_ops ops_{};
};

ordma_cmd nop() {
  ordma_cmd cmd;
  ordma_cmd_nop(&cmd);
  return cmd;
}

}  // namespace

TEST_CASE("a guest's driver finds the NIC, starts it and runs commands", "[vm]") {
  const Files files;
  Host host(files);
  Guest guest(host, files);
  REQUIRE(guest.probe() == 0);
  CHECK(guest.core.caps.mac == mac_to_register(nic_mac(0)));
  REQUIRE(guest.start() == 0);
  ordma_rsp_result result{};
  for (int i = 0; i < 600; ++i) {
    REQUIRE(guest.command(nop(), &result) == 0);
    REQUIRE(result.status == ORDMA_CMD_STATUS_OK);
    REQUIRE(ordma_core_poll_events(&guest.core, 8) == 1);
  }
  CHECK(guest.interrupts(0) >= 1);

  // Doorbell pages live behind the registers, at DB_STRIDE.
  ordma_cmd cmd;
  ordma_cmd_page_open(&cmd, 5, 3, false, 0);
  REQUIRE(guest.command(cmd, &result) == 0);
  REQUIRE(result.status == ORDMA_CMD_STATUS_OK);
  const std::uint64_t before = host.network.engine(0).register_read(hw::reg::kStatus);
  auto* const word = reinterpret_cast<std::uint64_t*>(guest.bar() + VmAttachment::page_offset(5));
  __atomic_store_n(word + 9, std::uint64_t{1} << 59, __ATOMIC_RELEASE);  // an SQ that is not there
  host.settle();
  CHECK(host.network.engine(0).register_read(hw::reg::kStatus) == before);
  std::string text;
  host.vm->append_counters("ordma0", &text);
  CHECK(text.find("ordma0 vm_connected 1\n") != text.npos);
}

TEST_CASE("a restarted driver is not hidden by what the first one left", "[vm]") {
  const Files files;
  Host host(files);
  Guest guest(host, files);
  for (int life = 0; life < 4; ++life) {
    // The same values, the same single command: nothing in BAR2 but the nonce differs.
    REQUIRE(guest.probe() == 0);
    REQUIRE(guest.start() == 0);
    ordma_rsp_result result{};
    REQUIRE(guest.command(nop(), &result) == 0);
    CHECK(result.status == ORDMA_CMD_STATUS_OK);
  }
  ordma_core_stop(&guest.core);
  host.settle();
  CHECK(ordma_core_stop_done(&guest.core) == 0);
}

TEST_CASE("DMA beyond the guest's memory fails in the NIC", "[vm]") {
  const Files files;
  Host host(files);
  Guest guest(host, files);
  REQUIRE(guest.probe() == 0);
  REQUIRE(guest.start() == 0);
  ordma_rsp_result result{};
  ordma_cmd cmd;
  ordma_cmd_counters(&cmd, kRamBytes - 64, ORDMA_NUM_COUNTERS);
  REQUIRE(guest.command(cmd, &result) == 0);
  CHECK(result.status == ORDMA_CMD_STATUS_DMA);
  ordma_cmd_counters(&cmd, ~std::uint64_t{4095}, ORDMA_NUM_COUNTERS);
  REQUIRE(guest.command(cmd, &result) == 0);
  CHECK(result.status == ORDMA_CMD_STATUS_DMA);
  const auto room = guest.memory(4096);
  ordma_cmd_counters(&cmd, room.dma, ORDMA_NUM_COUNTERS);
  REQUIRE(guest.command(cmd, &result) == 0);
  CHECK(result.status == ORDMA_CMD_STATUS_OK);
}

TEST_CASE("without a RAM file the NIC reports a DMA fault and lives", "[vm]") {
  const Files files;
  Host host(files);
  {
    Guest guest(host, files, false);
    auto* const nonce = reinterpret_cast<std::uint64_t*>(guest.bar() + hw::reg::kReset);
    __atomic_store_n(nonce, std::uint64_t{5}, __ATOMIC_RELEASE);
    host.settle();
    auto* const echo = reinterpret_cast<std::uint64_t*>(guest.bar() + hw::reg::kResetEcho);
    CHECK(__atomic_load_n(echo, __ATOMIC_ACQUIRE) == 5);
    auto* const base = reinterpret_cast<std::uint64_t*>(guest.bar() + hw::reg::kCmdBase);
    *base = 4096;
    auto* const enable = reinterpret_cast<std::uint64_t*>(guest.bar() + hw::reg::kEnable);
    __atomic_store_n(enable, std::uint64_t{1}, __ATOMIC_RELEASE);
    host.settle();
  }
  host.settle();
  Guest next(host, files);
  REQUIRE(next.probe() == 0);
  REQUIRE(next.start() == 0);
}

TEST_CASE("one guest at a time; a next one finds a fresh device", "[vm]") {
  const Files files;
  Host host(files);
  {
    Guest first(host, files);
    REQUIRE(first.probe() == 0);
    REQUIRE(first.start() == 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    files.socket().copy(address.sun_path, sizeof address.sun_path - 1);
    const Fd second(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(second.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    host.settle();
    char byte;
    CHECK(::recv(second.get(), &byte, 1, MSG_DONTWAIT) == 0);
  }
  host.settle();
  Guest next(host, files);
  REQUIRE(next.probe() == 0);
  REQUIRE(next.start() == 0);
  ordma_rsp_result result{};
  REQUIRE(next.command(nop(), &result) == 0);
}

TEST_CASE("the guest's kick is noticed", "[vm]") {
  const Files files;
  Host host(files);
  Guest guest(host, files);
  const std::uint64_t one = 1;
  REQUIRE(::write(guest.kick.get(), &one, sizeof one) == sizeof one);
  CHECK(host.loop.wait(1'000'000'000) == 1);
}
