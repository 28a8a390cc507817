// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/event_loop.hpp"
#include "base/shared_memory.hpp"
#include "device/attachment.hpp"
#include "device/doorbell_scanner.hpp"
#include "device/public_page.hpp"
#include "ordma_hw.hpp"
#include "vm/guest_memory.hpp"
#include "vm/ivshmem_server.hpp"

namespace ordma::softdev {

// A NIC of a QEMU guest, driven by the kernel module in there: BAR2 is plain shared memory that
// holds registers, public page and doorbell pages, as the contract allows ("memory semantics").
// Nothing of the driver runs here.
class VmAttachment final : public Attachment {
 public:
  // MSI-X vectors given to the guest; the device's property `vectors` must be at least this.
  static constexpr unsigned kVectors = 2;

  VmAttachment(EventLoop& loop, std::string name, const std::string& ram_path);
  ~VmAttachment() override;

  // After bind(). Empty on success, else why not.
  [[nodiscard]] std::string listen(const std::string& path);
  // BAR2, for tests that play the guest.
  [[nodiscard]] const SharedMemory& bar() const { return bar_; }
  [[nodiscard]] static std::size_t page_offset(std::uint32_t page) {
    return (kFirstDoorbellPage + std::size_t{page}) * hw::kDbStride;
  }

  void bind(Engine& engine) override;
  void shutdown() override;
  [[nodiscard]] bool read(std::uint64_t addr, std::span<std::byte> dst) override;
  [[nodiscard]] bool write(std::uint64_t addr, std::span<const std::byte> src,
                           WriteKind kind) override;
  void interrupt(unsigned vector) override;
  void register_changed(std::uint32_t offset, std::uint64_t value) override;
  void page_changed(std::uint32_t page, bool open, bool token) override;
  [[nodiscard]] bool scan() override;
  [[nodiscard]] bool service(std::uint64_t now_ns) override;
  [[nodiscard]] std::uint64_t next_timer_ns() const override { return poll_at_ns_; }
  [[nodiscard]] bool tokens_open() const override { return scanner_.tokens_open(); }
  void publish_asleep(bool asleep) override;
  void publish_clock(std::uint64_t now_ns) override;
  void append_counters(std::string_view scope, std::string* text) override;

 private:
  // Pages 0 and 1 are the registers and the public registers.
  static constexpr std::size_t kFirstDoorbellPage = 2;
  // Before the driver runs nothing tells it to kick after a register write.
  static constexpr std::uint64_t kProbePollNs = 5'000'000;

  void make_bar();
  void mirror_registers();
  void start_afresh();
  [[nodiscard]] std::uint64_t load(const hw::RegInfo& reg) const;
  void store(const hw::RegInfo& reg, std::uint64_t value);
  [[nodiscard]] bool scan_registers();
  void before_reset();
  void guest_gone();

  std::string name_;
  Engine* engine_ = nullptr;
  GuestMemory memory_;
  SharedMemory bar_;
  DoorbellScanner scanner_;
  IvshmemServer server_;
  std::array<std::uint64_t, hw::kRegs.size()> shadow_{};
  std::uint64_t poll_at_ns_ = ~std::uint64_t{0};
  std::uint64_t interrupts_ = 0;
  std::uint64_t kicks_ = 0;
  std::uint64_t refused_dma_ = 0;
};

}  // namespace ordma::softdev
