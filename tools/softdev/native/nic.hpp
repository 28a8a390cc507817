// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.hpp"
#include "base/shared_memory.hpp"
#include "device/addresses.hpp"
#include "device/attachment.hpp"
#include "device/clock.hpp"
#include "device/doorbell_scanner.hpp"
#include "device/public_page.hpp"
#include "native/arena.hpp"
#include "native/client_memory.hpp"
#include "native/dma_watch.hpp"
#include "native/objects.hpp"
#include "native_proto.h"
#include "ordma_alloc.h"
#include "ordma_cmd.h"
#include "ordma_core.h"

namespace ordma::softdev {

struct NativeNicConfig {
  std::string name;
  Mac mac{};
  std::vector<Gid> gids;
  const Neighbours* neighbours = nullptr;
  std::function<void()> step_engines;  // makes progress while a command is waited for
  HostTime host = host_time_ns;
  Random32 random = system_random();
  DmaWatch* watch = nullptr;
};

// What the kernel module is for a card, for native clients: the driver core with its rings, numbers
// and events, and the memory domain of the NIC. Clients' objects live in their Session.
class NativeNic final : public Attachment {
 public:
  explicit NativeNic(NativeNicConfig config);
  ~NativeNic() override;

  // ---- Attachment
  void bind(Engine& engine) override;  // throws std::runtime_error when the driver cannot start
  void shutdown() override;
  [[nodiscard]] bool read(std::uint64_t addr, std::span<std::byte> dst) override;
  [[nodiscard]] bool write(std::uint64_t addr, std::span<const std::byte> src,
                           WriteKind kind) override;
  void interrupt(unsigned vector) override;
  void register_changed(std::uint32_t offset, std::uint64_t value) override;
  void page_changed(std::uint32_t page, bool open, bool token) override;
  [[nodiscard]] bool scan() override;
  [[nodiscard]] bool service(std::uint64_t now_ns) override;
  [[nodiscard]] std::uint64_t next_timer_ns() const override;
  [[nodiscard]] bool tokens_open() const override { return scanner_.tokens_open(); }
  void publish_asleep(bool asleep) override { public_page_.set_asleep(asleep); }
  void publish_clock(std::uint64_t now_ns) override { public_page_.set_clock(now_ns); }
  void append_counters(std::string_view scope, std::string* text) override;

  // ---- for sessions
  [[nodiscard]] const NativeNicConfig& config() const { return config_; }
  [[nodiscard]] ordma_core& core() { return core_; }
  [[nodiscard]] bool dead() const { return ordma_core_dead(&core_); }
  [[nodiscard]] const SharedMemory& public_memory() const { return public_memory_; }

  // Runs a command to its end. 0 or a positive errno.
  [[nodiscard]] int execute(const ordma_cmd& cmd, ordma_rsp_result* result = nullptr);
  // A device counter; 0 from a dead device.
  [[nodiscard]] std::uint64_t counter(ordma_counter which);
  // A destroy: when this returns, the NIC touches nothing of the object any more.
  void execute_destroy(const ordma_cmd& cmd);

  // 0 or ENOMEM.
  [[nodiscard]] int get_number(ordma_ids_kind kind, std::uint32_t* number);
  void put_number(ordma_ids_kind kind, std::uint32_t number);

  // Memory of client 0. *addr stays 0 for no bytes. 0 or ENOMEM.
  [[nodiscard]] int allocate(std::size_t bytes, std::uint64_t* addr);
  void release(std::uint64_t addr, std::size_t bytes);
  // One page for context images and query results of the command that runs now.
  [[nodiscard]] std::byte* scratch() { return arena_.at(scratch_, Arena::kGrain).data(); }
  [[nodiscard]] std::uint64_t scratch_addr() const { return scratch_; }

  void add_client(std::uint32_t client, ClientMemory* memory, EventSink* async);
  void remove_client(std::uint32_t client);
  void granted(std::uint64_t addr, std::uint64_t bytes);
  void revoked(std::uint64_t addr, std::uint64_t bytes);

  // Zeroed doorbell page of a client; opened by the PAGE_OPEN command.
  [[nodiscard]] SharedMemory* add_page(std::uint32_t page);
  void remove_page(std::uint32_t page) { pages_.erase(page); }
  void clear_slot(std::uint32_t page, std::uint32_t slot) { scanner_.clear_slot(page, slot); }

  void watch_cq(Cq* cq) { cqs_[cq->core.cqn] = cq; }
  ordma_np_destroyed unwatch_cq(Cq* cq);
  void watch_srq(Srq* srq) { srqs_[srq->core.srqn] = srq; }
  ordma_np_destroyed unwatch_srq(Srq* srq);
  void watch_qp(Qp* qp) { qps_[qp->core.qpn] = qp; }
  ordma_np_destroyed unwatch_qp(Qp* qp);
  void post_async(EventSink* sink, std::uint64_t element, std::uint32_t type);
  void forget_sink(EventSink* sink) { waiting_.erase(sink); }

 private:
  struct Ids {
    ordma_ids ids{};
    std::vector<std::byte> memory;
  };
  struct Client {
    ClientMemory* memory = nullptr;
    EventSink* async = nullptr;
  };
  friend struct NativeNicOps;

  // Host time without progress, and steps, after which a command is given up.
  static constexpr std::uint64_t kCommandHostNs = 10'000'000'000;
  static constexpr std::uint64_t kCommandSteps = 1'000'000;
  static constexpr std::uint64_t kCommandStepsMax = 50'000'000;
  static constexpr std::uint64_t kCheckNs = 1'000'000'000;
  // How long a full completion channel waits for room: its reader is slow, so is this.
  static constexpr std::uint64_t kRetryNs = 5'000'000;
  static constexpr std::size_t kArenaBytes = std::size_t{2} << 30;
  static constexpr unsigned kEventBudget = 64;

  void start_driver();
  void make_rings();
  void make_ids();
  void set_gids();
  // Steps until `done` gives something else than -EINPROGRESS; -EIO when that takes too long.
  template <typename Done>
  [[nodiscard]] int wait_for(const char* what, Done done);
  void post(EventSink* sink, std::span<const std::byte> record);
  void on_fatal(const char* reason);
  void check_device();
  [[nodiscard]] bool flush_waiting(std::uint64_t now_ns);

  NativeNicConfig config_;
  Engine* engine_ = nullptr;
  Arena arena_;
  SharedMemory public_memory_;
  PublicPage public_page_;
  DoorbellScanner scanner_;
  std::unordered_map<std::uint32_t, SharedMemory> pages_;

  ordma_core core_{};
  std::vector<Ids> ids_;
  std::uint64_t scratch_ = 0;
  bool started_ = false;
  bool dma_off_ = false;
  bool fatal_told_ = false;

  std::vector<Client> clients_;
  std::unordered_map<std::uint32_t, Cq*> cqs_;
  std::unordered_map<std::uint32_t, Srq*> srqs_;
  std::unordered_map<std::uint32_t, Qp*> qps_;
  std::set<EventSink*> waiting_;
  std::uint64_t retry_at_ = 0;
  std::uint64_t attended_ns_ = 0;
  std::uint64_t last_host_ns_ = 0;
  std::uint64_t page_errors_ = 0;
};

}  // namespace ordma::softdev
