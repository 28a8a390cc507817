// SPDX-License-Identifier: BSD-2-Clause
#include "native/nic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/log.hpp"
#include "native/nic_ops.hpp"
#include "native/port.hpp"

namespace ordma::softdev {
namespace {

constexpr ordma_ids_kind kKinds[] = {ORDMA_IDS_QPN, ORDMA_IDS_MKEY, ORDMA_IDS_CQN, ORDMA_IDS_SRQN,
                                     ORDMA_IDS_PDN, ORDMA_IDS_PAGE, ORDMA_IDS_UCTX};

SharedMemory make_public_memory() {
  auto memory = SharedMemory::create("ordma-public", host_page_size(),
                                     SharedMemory::Others::kReadOnly);
  if (!memory) throw std::runtime_error(std::string("memfd: ") + std::strerror(errno));
  return std::move(*memory);
}

}  // namespace

NativeNic::NativeNic(NativeNicConfig config)
    : config_(std::move(config)),
      arena_(kArenaBytes),
      public_memory_(make_public_memory()),
      public_page_(public_memory_.data()) {}

NativeNic::~NativeNic() = default;

void NativeNic::bind(Engine& engine) {
  engine_ = &engine;
  last_host_ns_ = config_.host();
  std::array<char, 160> message{};
  if (ordma_core_probe(&core_, native_nic_ops(), this, message.data(), message.size()) != 0) {
    throw std::runtime_error(config_.name + ": " + message.data());
  }
  clients_.resize(core_.caps.max_uctx);
  make_ids();
  make_rings();
  start_driver();
  set_gids();
}

void NativeNic::make_ids() {
  ids_.resize(std::size(kKinds));
  for (const ordma_ids_kind kind : kKinds) {
    Ids& entry = ids_[kind];
    entry.memory.resize(ordma_ids_bytes(&core_, kind));
    if (ordma_ids_init(&entry.ids, &core_, kind, entry.memory.data(), entry.memory.size()) != 0) {
      throw std::runtime_error(config_.name + ": cannot set up number tables");
    }
  }
}

void NativeNic::make_rings() {
  const auto make = [this](std::size_t bytes) {
    std::uint64_t addr = 0;
    if (allocate(bytes, &addr) != 0) throw std::runtime_error(config_.name + ": no memory");
    return ordma_mem{arena_.at(addr, bytes).data(), addr, bytes};
  };
  ordma_core_rings rings{};
  rings.cmd = make(ordma_core_cmd_bytes(&core_));
  rings.rsp = make(ordma_core_rsp_bytes(&core_));
  rings.rcmd = make(ordma_core_rcmd_bytes(&core_));
  rings.eq = make(ordma_core_eq_bytes(&core_));
  scratch_ = make(Arena::kGrain).dma;
  if (ordma_core_set_rings(&core_, &rings) != 0) {
    throw std::runtime_error(config_.name + ": the driver core refuses its rings");
  }
}

void NativeNic::start_driver() {
  ordma_core_reset_begin(&core_);
  if (wait_for("reset", [this] { return ordma_core_reset_done(&core_); }) != 0 ||
      ordma_core_start(&core_) != 0 ||
      wait_for("start", [this] { return ordma_core_start_done(&core_); }) != 0) {
    throw std::runtime_error(config_.name + ": the engine does not start");
  }
  started_ = true;
  ordma_core_set_vectors(&core_, kCompVectors);
  ordma_core_set_active_mtu(&core_, active_mtu_of(core_.caps.port_mtu));
  ordma_core_set_link(&core_, true);
}

void NativeNic::set_gids() {
  for (std::size_t i = 0; i < config_.gids.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    ordma_gid_entry entry{};
    std::copy(config_.gids[i].begin(), config_.gids[i].end(), entry.gid);
    std::copy(config_.mac.begin(), config_.mac.end(), entry.mac);
    entry.valid = true;
    ordma_cmd cmd;
    ordma_cmd_gid_set(&cmd, index, &entry);
    if (ordma_gid_check(&core_, index, &entry) != 0 || execute(cmd) != 0) {
      throw std::runtime_error(fmt::format("{}: cannot set GID {}", config_.name, i));
    }
    ordma_core_gid_note(&core_, index, true, ordma_gid_is_ipv4(entry.gid));
  }
}

void NativeNic::shutdown() {
  if (!started_) return;
  ordma_core_stop(&core_);
  if (wait_for("stop", [this] { return ordma_core_stop_done(&core_); }) != 0) {
    log_warn("{}: the engine does not stop; its memory is cut off", config_.name);
  }
  dma_off_ = true;
  started_ = false;
}

// ---------------------------------------------------------------------------------- host port

bool NativeNic::read(std::uint64_t addr, std::span<std::byte> dst) {
  if (dma_off_) return false;
  if (config_.watch != nullptr) config_.watch->accessed(addr, dst.size(), false);
  const std::uint64_t client = addr / ClientMemory::kVaEnd;
  const std::uint64_t va = addr % ClientMemory::kVaEnd;
  if (client == 0) {
    const auto bytes = arena_.at(va, dst.size());
    if (bytes.size() != dst.size()) return false;
    std::copy(bytes.begin(), bytes.end(), dst.begin());
    return true;
  }
  ClientMemory* const memory = client < clients_.size() ? clients_[client].memory : nullptr;
  return memory != nullptr && memory->read(va, dst);
}

bool NativeNic::write(std::uint64_t addr, std::span<const std::byte> src, WriteKind) {
  if (dma_off_) return false;
  if (config_.watch != nullptr) config_.watch->accessed(addr, src.size(), true);
  const std::uint64_t client = addr / ClientMemory::kVaEnd;
  const std::uint64_t va = addr % ClientMemory::kVaEnd;
  if (client == 0) {
    const auto bytes = arena_.at(va, src.size());
    if (bytes.size() != src.size()) return false;
    std::copy(src.begin(), src.end(), bytes.begin());
    return true;
  }
  ClientMemory* const memory = client < clients_.size() ? clients_[client].memory : nullptr;
  return memory != nullptr && memory->write(va, src);
}

// service() looks at the event ring itself.
void NativeNic::interrupt(unsigned) {}

// The core reads registers from the engine; ASLEEP and CLOCK are published by the owner of time.
void NativeNic::register_changed(std::uint32_t, std::uint64_t) {}

void NativeNic::page_changed(std::uint32_t page, bool open, bool token) {
  if (!open) {
    scanner_.close(page);
    return;
  }
  // DRIVER_PAGE has no memory here: the core rings the engine directly.
  if (const auto it = pages_.find(page); it != pages_.end()) {
    scanner_.open(page, it->second.data(), token);
  }
}

bool NativeNic::scan() { return scanner_.scan(*engine_); }

SharedMemory* NativeNic::add_page(std::uint32_t page) {
  assert(!pages_.contains(page));
  auto memory = SharedMemory::create("ordma-doorbells", DoorbellScanner::kPageBytes);
  if (!memory) return nullptr;
  return &pages_.emplace(page, std::move(*memory)).first->second;
}

// ---------------------------------------------------------------------------------- commands

template <typename Done>
int NativeNic::wait_for(const char* what, Done done) {
  const std::uint64_t begin = config_.host();
  for (std::uint64_t steps = 0;; ++steps) {
    const int result = done();
    if (result != -EINPROGRESS) return result;
    const bool late = steps > kCommandSteps && steps % 1024 == 0 &&
                      config_.host() - begin > kCommandHostNs;
    if (late || steps > kCommandStepsMax) break;
    config_.step_engines();
  }
  log_error("{}: no answer to {}: the engine is given up", config_.name, what);
  ordma_core_mark_dead(&core_);
  on_fatal("command timed out");
  return -EIO;
}

int NativeNic::execute(const ordma_cmd& cmd, ordma_rsp_result* result) {
  std::uint32_t ticket = 0;
  int err = ordma_cmd_submit(&core_, &cmd, false, &ticket);
  ordma_rsp_result response{};
  if (err == 0) {
    err = wait_for("command", [&] { return ordma_cmd_complete(&core_, ticket, &response); });
  }
  if (dead()) on_fatal("a command found the device dead");
  if (err != 0) return -err;
  if (result != nullptr) *result = response;
  return -ordma_status_to_errno(response.status);
}

void NativeNic::execute_destroy(const ordma_cmd& cmd) {
  std::uint32_t ticket = 0;
  // One command at a time: the ring has room.
  const int err = ordma_cmd_submit_destroy(&core_, &cmd, false, &ticket);
  if (err == 0) {
    (void)wait_for("destroy", [&] { return ordma_cmd_destroy_complete(&core_, ticket); });
  }
  // A device that did not obey may still use the memory that is freed next.
  if (dead()) on_fatal("a destroy found the device dead");
}

int NativeNic::get_number(ordma_ids_kind kind, std::uint32_t* number) {
  return -ordma_ids_get(&ids_[kind].ids, number);
}

void NativeNic::put_number(ordma_ids_kind kind, std::uint32_t number) {
  [[maybe_unused]] const bool was_out = ordma_ids_put(&ids_[kind].ids, number);
  assert(was_out);
}

int NativeNic::allocate(std::size_t bytes, std::uint64_t* addr) {
  *addr = 0;
  if (bytes == 0) return 0;
  const auto got = arena_.allocate(bytes);
  if (!got) return ENOMEM;
  *addr = *got;
  granted(*addr, bytes);
  return 0;
}

void NativeNic::release(std::uint64_t addr, std::size_t bytes) {
  if (addr == 0) return;
  revoked(addr, bytes);
  arena_.free(addr);
}

void NativeNic::granted(std::uint64_t addr, std::uint64_t bytes) {
  if (config_.watch != nullptr && bytes != 0) config_.watch->granted(addr, bytes);
}

void NativeNic::revoked(std::uint64_t addr, std::uint64_t bytes) {
  if (config_.watch != nullptr && bytes != 0) config_.watch->revoked(addr, bytes);
}

std::uint64_t NativeNic::counter(ordma_counter which) {
  ordma_cmd cmd;
  ordma_cmd_counters(&cmd, scratch_, ORDMA_NUM_COUNTERS);
  if (dead() || execute(cmd) != 0) return 0;
  return hw::load_le64(std::span<const std::byte>(scratch(), Arena::kGrain),
                       which * std::size_t{8});
}

void NativeNic::append_counters(std::string_view scope, std::string* text) {
  const auto line = [&](std::string_view name, std::uint64_t value) {
    fmt::format_to(std::back_inserter(*text), "{} {} {}\n", scope, name, value);
  };
  ordma_cmd cmd;
  ordma_cmd_counters(&cmd, scratch_, ORDMA_NUM_COUNTERS);
  if (!dead() && execute(cmd) == 0) {
    for (unsigned i = 0; i < ORDMA_NUM_COUNTERS; ++i) {
      const std::span<const std::byte> values(scratch(), Arena::kGrain);
      line(ordma_counter_name(i), hw::load_le64(values, i * std::size_t{8}));
    }
  }
  line("core_events", core_.stats.events);
  line("core_events_bad", core_.stats.events_bad);
  line("core_events_stale", core_.stats.events_stale);
  line("core_recovery_events", core_.stats.recovery_events);
  line("core_rewinds", core_.stats.rewinds);
  line("core_fails", core_.stats.fails);
  line("core_destroy_errors", core_.stats.destroy_errors);
  line("doorbell_words", scanner_.words());
  line("page_errors", page_errors_);
  line("objects_qp", qps_.size());
  line("objects_cq", cqs_.size());
  line("objects_srq", srqs_.size());
  line("driver_memory_bytes", arena_.used_bytes());
}

}  // namespace ordma::softdev
