// SPDX-License-Identifier: BSD-2-Clause
// Events: from the driver core to the clients that they concern.
#include <rdma/ib_user_verbs.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "native/nic.hpp"
#include "native/nic_ops.hpp"
#include "native/port.hpp"

namespace ordma::softdev {
namespace {

// enum ibv_event_type; those of QPs come from the core as they are.
constexpr std::uint32_t kEventCqError = 0;
constexpr std::uint32_t kEventDeviceFatal = 8;
constexpr std::uint32_t kEventPortActive = 9;
constexpr std::uint32_t kEventPortError = 10;
constexpr std::uint32_t kEventSrqError = 14;
constexpr std::uint32_t kEventSrqLimit = 15;

template <typename T>
T* find(const std::unordered_map<std::uint32_t, T*>& table, std::uint32_t number) {
  const auto it = table.find(number);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace

struct NativeNicOps {
  static NativeNic& nic(void* ctx) { return *static_cast<NativeNic*>(ctx); }

  static void reg_write32(void* ctx, u32 offset, u32 value) {
    nic(ctx).engine_->register_write(offset, value);
  }
  static void reg_write64(void* ctx, u32 offset, u64 value) {
    nic(ctx).engine_->register_write(offset, value);
  }
  static u32 reg_read32(void* ctx, u32 offset) {
    return static_cast<u32>(nic(ctx).engine_->register_read(offset));
  }
  static u64 reg_read64(void* ctx, u32 offset) {
    // The clock is the soft-device's: an idle RTL engine is not clocked and would seem to stand.
    if (offset == hw::reg::kClock) return nic(ctx).public_page_.clock();
    return nic(ctx).engine_->register_read(offset);
  }
  static void doorbell(void* ctx, u32 slot, u64 word) {
    nic(ctx).engine_->doorbell(hw::kDriverPage, slot * 8, word);
  }
  static u32 random32(void* ctx) { return nic(ctx).config_.random(); }

  static void cmd_done(void*, u32) {}  // commands are polled
  static void cq_event(void* ctx, u32 cqn) {
    Cq* const cq = find(nic(ctx).cqs_, cqn);
    if (cq == nullptr || cq->channel == nullptr) return;
    ib_uverbs_comp_event_desc desc{};
    desc.cq_handle = cq->user_handle;
    ++cq->comp_events;
    nic(ctx).post(cq->channel.get(), std::as_bytes(std::span(&desc, 1)));
  }
  static void cq_error(void* ctx, u32 cqn) {
    if (Cq* const cq = find(nic(ctx).cqs_, cqn)) {
      ++cq->async_events;
      nic(ctx).post_async(cq->async, cq->user_handle, kEventCqError);
    }
  }
  static void qp_async(void* ctx, u32 qpn, enum ordma_async async) {
    if (Qp* const qp = find(nic(ctx).qps_, qpn)) {
      ++qp->async_events;
      nic(ctx).post_async(qp->async, qp->user_handle, async);
    }
  }
  static void srq_limit(void* ctx, u32 srqn) {
    Srq* const srq = find(nic(ctx).srqs_, srqn);
    if (srq == nullptr) return;
    ordma_srq_limit_fired(&srq->core);
    ++srq->async_events;
    nic(ctx).post_async(srq->async, srq->user_handle, kEventSrqLimit);
  }
  static void srq_error(void* ctx, u32 srqn) {
    if (Srq* const srq = find(nic(ctx).srqs_, srqn)) {
      ++srq->async_events;
      nic(ctx).post_async(srq->async, srq->user_handle, kEventSrqError);
    }
  }
  static void page_error(void* ctx, u32 page, enum ordma_db_err reason) {
    ++nic(ctx).page_errors_;
    log_debug("{}: word refused on doorbell page {}: reason {}", nic(ctx).config_.name, page,
              static_cast<unsigned>(reason));
  }
  static void port_event(void* ctx, bool link_up) {
    for (const auto& client : nic(ctx).clients_) {
      if (client.async == nullptr) continue;
      nic(ctx).post_async(client.async, kPortNumber, link_up ? kEventPortActive : kEventPortError);
    }
  }
  static void fatal(void* ctx, enum ordma_fatal reason) {
    log_error("{}: device fatal, reason {}", nic(ctx).config_.name, static_cast<unsigned>(reason));
    nic(ctx).on_fatal("engine reports a fatal error");
  }

  static struct ordma_qp* qp_find(void* ctx, u32 qpn) {
    Qp* const qp = find(nic(ctx).qps_, qpn);
    return qp == nullptr ? nullptr : &qp->core;
  }
  static void qp_put(void*, struct ordma_qp*) {}  // one thread: nothing to lock or count
};

const ordma_core_ops* native_nic_ops() {
  using Ops = NativeNicOps;
  static const ordma_core_ops ops = {
      .reg_write32 = Ops::reg_write32,
      .reg_write64 = Ops::reg_write64,
      .reg_read32 = Ops::reg_read32,
      .reg_read64 = Ops::reg_read64,
      .doorbell = Ops::doorbell,
      .random32 = Ops::random32,
      .cmd_done = Ops::cmd_done,
      .cq_event = Ops::cq_event,
      .cq_error = Ops::cq_error,
      .qp_async = Ops::qp_async,
      .srq_limit = Ops::srq_limit,
      .srq_error = Ops::srq_error,
      .page_error = Ops::page_error,
      .port_event = Ops::port_event,
      .fatal = Ops::fatal,
      .qp_find = Ops::qp_find,
      .qp_put = Ops::qp_put,
  };
  return &ops;
}

void NativeNic::on_fatal(const char* reason) {
  if (fatal_told_) return;
  fatal_told_ = true;
  log_error("{}: {}; all objects are in error", config_.name, reason);
  // From here on the clients' memory is theirs alone, whatever the engine still does.
  dma_off_ = true;
  for (const auto& client : clients_) {
    if (client.async != nullptr) post_async(client.async, 0, kEventDeviceFatal);
  }
}

void NativeNic::add_client(std::uint32_t client, ClientMemory* memory, EventSink* async) {
  clients_[client] = {memory, async};
}

void NativeNic::remove_client(std::uint32_t client) { clients_[client] = {}; }

ordma_np_destroyed NativeNic::unwatch_cq(Cq* cq) {
  ordma_np_destroyed read{cq->comp_events, cq->async_events};
  cqs_.erase(cq->core.cqn);
  if (cq->comp_events != 0) {
    read.comp_events -= static_cast<std::uint32_t>(cq->channel->cancel(cq->user_handle));
  }
  if (cq->channel.use_count() == 1) forget_sink(cq->channel.get());
  if (cq->async_events != 0) {
    read.async_events -= static_cast<std::uint32_t>(cq->async->cancel(cq->user_handle));
  }
  return read;
}

ordma_np_destroyed NativeNic::unwatch_srq(Srq* srq) {
  ordma_np_destroyed read{0, srq->async_events};
  srqs_.erase(srq->core.srqn);
  if (srq->async_events != 0) {
    read.async_events -= static_cast<std::uint32_t>(srq->async->cancel(srq->user_handle));
  }
  return read;
}

ordma_np_destroyed NativeNic::unwatch_qp(Qp* qp) {
  ordma_np_destroyed read{0, qp->async_events};
  qps_.erase(qp->core.qpn);
  if (qp->async_events != 0) {
    read.async_events -= static_cast<std::uint32_t>(qp->async->cancel(qp->user_handle));
  }
  return read;
}

void NativeNic::post_async(EventSink* sink, std::uint64_t element, std::uint32_t type) {
  ib_uverbs_async_event_desc desc{};
  desc.element = element;
  desc.event_type = type;
  post(sink, std::as_bytes(std::span(&desc, 1)));
}

void NativeNic::post(EventSink* sink, std::span<const std::byte> record) {
  sink->post(record);
  if (sink->waiting()) waiting_.insert(sink);
}

bool NativeNic::flush_waiting(std::uint64_t now_ns) {
  if (waiting_.empty() || now_ns < retry_at_) return false;
  retry_at_ = now_ns + kRetryNs;
  bool wrote = false;
  for (EventSink* const sink : waiting_) wrote |= sink->flush();
  std::erase_if(waiting_, [](const EventSink* sink) { return !sink->waiting(); });
  return wrote;
}

bool NativeNic::service(std::uint64_t now_ns) {
  check_device();
  bool worked = flush_waiting(now_ns);
  if (!dead() && ordma_core_events_pending(&core_)) {
    worked |= ordma_core_poll_events(&core_, kEventBudget) != 0;
  }
  return worked;
}

std::uint64_t NativeNic::next_timer_ns() const {
  return waiting_.empty() ? ~std::uint64_t{0} : retry_at_;
}

void NativeNic::check_device() {
  const std::uint64_t host = config_.host();
  if (host - last_host_ns_ < kCheckNs) return;
  // Time in which this process did not run (stopped, starved) proves nothing about the engine.
  attended_ns_ += std::min(host - last_host_ns_, 2 * kCheckNs);
  last_host_ns_ = host;
  if (started_ && !dead()) (void)ordma_core_check(&core_, attended_ns_);
}

}  // namespace ordma::softdev
