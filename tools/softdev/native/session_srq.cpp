// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include "native/session.hpp"

namespace ordma::softdev {
namespace {

constexpr std::uint64_t kRecordAlign = 64;

std::uint64_t ring_bytes(const ordma_srq& srq) {
  return std::uint64_t{1} << (srq.log + srq.stride_log);
}

}  // namespace

int Session::create_srq(const ordma_np_create_srq& req, Reply& reply) {
  Pd* const pd = pds_.find(req.pd);
  if (pd == nullptr) return ENOENT;
  if (req.drv.comp_mask != 0) return EOPNOTSUPP;
  int err = -ordma_srq_check(&nic_->core(), req.max_wr, req.max_sge, req.srq_limit,
                             req.drv.ring_log, req.drv.stride_log);
  if (err != 0) return err;

  auto srq = std::make_unique<Srq>();
  srq->pd = pd;
  srq->user_handle = req.user_handle;
  srq->async = async_.get();
  srq->core.pdn = pd->core.pdn;
  srq->core.uctx = client_;
  srq->core.log = req.drv.ring_log;
  srq->core.stride_log = req.drv.stride_log;
  srq->core.buf.addr = dma(req.drv.ring_va);
  srq->core.buf.page_log = 12;
  srq->core.buf.level = ORDMA_BUF_LEVEL_DIRECT;
  srq->core.record = dma(req.drv.record_va);
  srq->core.max_wr = req.max_wr;
  srq->core.max_sge = req.max_sge;
  srq->core.limit = req.srq_limit;

  err = pin(req.drv.ring_va, ring_bytes(srq->core), host_page_size());
  if (err != 0) return err;
  err = pin(req.drv.record_va, sizeof(ordma_srq_record), kRecordAlign);
  if (err != 0) {
    unpin(req.drv.ring_va, ring_bytes(srq->core));
    return err;
  }
  err = pages_->get(1, &srq->doorbell);
  if (err == 0) err = nic_->get_number(ORDMA_IDS_SRQN, &srq->core.srqn);
  if (err == 0) {
    ordma_cmd cmd;
    ordma_cmd_srq_create(&cmd, &srq->core);
    err = nic_->execute(cmd);
    if (err != 0) nic_->put_number(ORDMA_IDS_SRQN, srq->core.srqn);
  }
  if (err != 0) {
    pages_->put(srq->doorbell);
    unpin(req.drv.ring_va, ring_bytes(srq->core));
    unpin(req.drv.record_va, sizeof(ordma_srq_record));
    return err;
  }
  ++pd->refs;
  nic_->watch_srq(srq.get());
  ordma_np_srq resp{};
  resp.drv.srqn = srq->core.srqn;
  resp.drv.db.slot = srq->doorbell.slot;
  resp.drv.db.page = srq->doorbell.page;
  resp.handle = srqs_.add(std::move(srq));
  reply.put(resp);
  return 0;
}

int Session::modify_srq(const ordma_np_modify_srq& req, Reply&) {
  Srq* const srq = srqs_.find(req.handle);
  if (srq == nullptr) return ENOENT;
  int err = -ordma_srq_modify_check(&nic_->core(), &srq->core, req.mask, req.srq_limit);
  if (err != 0 || (req.mask & ORDMA_SRQ_LIMIT) == 0) return err;
  ordma_cmd cmd;
  ordma_cmd_srq_limit(&cmd, &srq->core, req.srq_limit);
  err = nic_->execute(cmd);
  if (err == 0) ordma_srq_modify_done(&srq->core, req.srq_limit);
  return err;
}

int Session::query_srq(const ordma_np_handle& req, Reply& reply) {
  const Srq* const srq = srqs_.find(req.handle);
  if (srq == nullptr) return ENOENT;
  ordma_np_srq_attr resp{};
  resp.max_wr = srq->core.max_wr;
  resp.max_sge = srq->core.max_sge;
  resp.srq_limit = srq->core.limit;
  reply.put(resp);
  return 0;
}

int Session::destroy_srq(const ordma_np_handle& req, Reply& reply) {
  const Srq* const srq = srqs_.find(req.handle);
  if (srq == nullptr) return ENOENT;
  if (srq->refs != 0) return EBUSY;
  reply.put(remove_srq(req.handle));
  return 0;
}

ordma_np_destroyed Session::remove_srq(std::uint32_t handle) {
  Srq* const srq = srqs_.find(handle);
  ordma_cmd cmd;
  ordma_cmd_srq_destroy(&cmd, &srq->core);
  nic_->execute_destroy(cmd);
  const ordma_np_destroyed read = nic_->unwatch_srq(srq);
  nic_->put_number(ORDMA_IDS_SRQN, srq->core.srqn);
  pages_->put(srq->doorbell);
  unpin(srq->core.buf.addr % ClientMemory::kVaEnd, ring_bytes(srq->core));
  unpin(srq->core.record % ClientMemory::kVaEnd, sizeof(ordma_srq_record));
  --srq->pd->refs;
  srqs_.remove(handle);
  return read;
}

}  // namespace ordma::softdev
