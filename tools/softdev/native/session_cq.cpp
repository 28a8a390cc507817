// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include "native/session.hpp"

namespace ordma::softdev {
namespace {

constexpr std::uint64_t kRecordAlign = 64;

std::uint64_t ring_bytes(std::uint32_t log) { return std::uint64_t{sizeof(ordma_cqe)} << log; }

}  // namespace

int Session::create_cq(const ordma_np_create_cq& req, Reply& reply) {
  if (req.drv.comp_mask != 0) return EOPNOTSUPP;
  if (req.drv.reserved != 0 || req.has_channel > 1) return EINVAL;
  if (req.has_channel != incoming_.size()) return EINVAL;
  int err = -ordma_cq_check(&nic_->core(), req.cqe, req.drv.ring_log, req.comp_vector);
  if (err != 0) return err;

  auto cq = std::make_unique<Cq>();
  cq->cqe = req.cqe;
  cq->user_handle = req.user_handle;
  cq->async = async_.get();
  if (req.has_channel != 0) {
    cq->channel = EventSink::adopt(std::move(incoming_.front()), &err);
    if (cq->channel == nullptr) return err;
  } else if (req.channel != 0) {
    const Channel* const channel = channels_.find(req.channel);
    if (channel == nullptr) return ENOENT;
    cq->channel = channel->sink;
  }
  cq->core.uctx = client_;
  cq->core.vector = req.comp_vector;
  cq->core.log = req.drv.ring_log;
  cq->core.buf.addr = dma(req.drv.ring_va);
  cq->core.buf.page_log = 12;
  cq->core.buf.level = ORDMA_BUF_LEVEL_DIRECT;
  cq->core.record = dma(req.drv.record_va);

  err = pin(req.drv.ring_va, ring_bytes(req.drv.ring_log), host_page_size());
  if (err != 0) return err;
  err = pin(req.drv.record_va, sizeof(ordma_cq_record), kRecordAlign);
  if (err != 0) {
    unpin(req.drv.ring_va, ring_bytes(req.drv.ring_log));
    return err;
  }
  err = pages_->get(1, &cq->doorbell);
  if (err == 0) err = nic_->get_number(ORDMA_IDS_CQN, &cq->core.cqn);
  if (err == 0) {
    ordma_cmd cmd;
    ordma_cmd_cq_create(&cmd, &cq->core);
    err = nic_->execute(cmd);
    if (err != 0) nic_->put_number(ORDMA_IDS_CQN, cq->core.cqn);
  }
  if (err != 0) {
    pages_->put(cq->doorbell);
    unpin(req.drv.ring_va, ring_bytes(req.drv.ring_log));
    unpin(req.drv.record_va, sizeof(ordma_cq_record));
    return err;
  }
  nic_->watch_cq(cq.get());
  ordma_np_cq resp{};
  resp.drv.cqn = cq->core.cqn;
  resp.drv.arm_db.slot = cq->doorbell.slot;
  resp.drv.arm_db.page = cq->doorbell.page;
  resp.handle = cqs_.add(std::move(cq));
  reply.put(resp);
  return 0;
}

int Session::resize_cq(const ordma_np_resize_cq& req, Reply& reply) {
  Cq* const cq = cqs_.find(req.handle);
  if (cq == nullptr) return ENOENT;
  if (req.drv.comp_mask != 0) return EOPNOTSUPP;
  if (req.drv.reserved != 0) return EINVAL;
  int err = -ordma_cq_resize_check(&nic_->core(), req.cqe, req.drv.ring_log);
  if (err != 0) return err;
  err = pin(req.drv.ring_va, ring_bytes(req.drv.ring_log), host_page_size());
  if (err != 0) return err;
  err = pin(req.drv.record_va, sizeof(ordma_cq_record), kRecordAlign);
  if (err != 0) {
    unpin(req.drv.ring_va, ring_bytes(req.drv.ring_log));
    return err;
  }
  ordma_buf buf{};
  buf.addr = dma(req.drv.ring_va);
  buf.page_log = 12;
  buf.level = ORDMA_BUF_LEVEL_DIRECT;
  ordma_cmd cmd;
  ordma_cmd_cq_resize(&cmd, &cq->core, req.drv.ring_log, &buf, dma(req.drv.record_va));
  ordma_rsp_result result{};
  err = nic_->execute(cmd, &result);
  if (err != 0) {
    unpin(req.drv.ring_va, ring_bytes(req.drv.ring_log));
    unpin(req.drv.record_va, sizeof(ordma_cq_record));
    return err;
  }
  unpin(cq->core.buf.addr % ClientMemory::kVaEnd, ring_bytes(cq->core.log));
  unpin(cq->core.record % ClientMemory::kVaEnd, sizeof(ordma_cq_record));
  ordma_cq_resize_done(&cq->core, req.drv.ring_log, &buf, dma(req.drv.record_va));
  cq->cqe = req.cqe;
  ordma_np_resize_cq_resp resp{};
  resp.drv.old_pi = static_cast<std::uint32_t>(result.result0);
  reply.put(resp);
  return 0;
}

int Session::create_channel(Reply& reply) {
  Fd read_end;
  auto channel = std::make_unique<Channel>();
  channel->sink = EventSink::make_pipe(&read_end);
  if (channel->sink == nullptr) return EMFILE;
  ordma_np_handle resp{};
  resp.handle = channels_.add(std::move(channel));
  reply.put(resp);
  reply.give(std::move(read_end));
  return 0;
}

int Session::destroy_channel(const ordma_np_handle& req, Reply&) {
  const Channel* const channel = channels_.find(req.handle);
  if (channel == nullptr) return ENOENT;
  if (channel->sink.use_count() > 1) return EBUSY;
  nic_->forget_sink(channel->sink.get());
  channels_.remove(req.handle);
  return 0;
}

int Session::destroy_cq(const ordma_np_handle& req, Reply& reply) {
  const Cq* const cq = cqs_.find(req.handle);
  if (cq == nullptr) return ENOENT;
  if (cq->refs != 0) return EBUSY;
  reply.put(remove_cq(req.handle));
  return 0;
}

ordma_np_destroyed Session::remove_cq(std::uint32_t handle) {
  Cq* const cq = cqs_.find(handle);
  ordma_cmd cmd;
  ordma_cmd_cq_destroy(&cmd, &cq->core);
  nic_->execute_destroy(cmd);
  const ordma_np_destroyed read = nic_->unwatch_cq(cq);
  nic_->put_number(ORDMA_IDS_CQN, cq->core.cqn);
  pages_->put(cq->doorbell);
  unpin(cq->core.buf.addr % ClientMemory::kVaEnd, ring_bytes(cq->core.log));
  unpin(cq->core.record % ClientMemory::kVaEnd, sizeof(ordma_cq_record));
  cqs_.remove(handle);
  return read;
}

}  // namespace ordma::softdev
