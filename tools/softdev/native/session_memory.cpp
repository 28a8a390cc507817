// SPDX-License-Identifier: BSD-2-Clause
// Buffers, PDs and MRs of a client.
#include <cerrno>

#include "base/log.hpp"
#include "native/session.hpp"

namespace ordma::softdev {

int Session::buf_alloc(const ordma_np_buf_alloc& req, Reply& reply) {
  ordma_np_buf_resp resp{};
  if (const int err = memory_->allocate(req.len, &resp.buf); err != 0) return err;
  reply.put(resp);
  reply.lend(memory_->fd_of(resp.buf));
  return 0;
}

int Session::buf_map(const ordma_np_buf_map& req, Reply&) {
  return memory_->map(req.buf, req.va);
}

int Session::buf_free(const ordma_np_handle& req, Reply&) { return memory_->release(req.handle); }

int Session::alloc_pd(Reply& reply) {
  auto pd = std::make_unique<Pd>();
  if (const int err = nic_->get_number(ORDMA_IDS_PDN, &pd->core.pdn); err != 0) return err;
  ordma_np_handle resp{};
  resp.handle = pds_.add(std::move(pd));
  reply.put(resp);
  return 0;
}

int Session::dealloc_pd(const ordma_np_handle& req, Reply&) {
  const Pd* const pd = pds_.find(req.handle);
  if (pd == nullptr) return ENOENT;
  if (pd->refs != 0) return EBUSY;
  nic_->put_number(ORDMA_IDS_PDN, pd->core.pdn);
  pds_.remove(req.handle);
  return 0;
}

int Session::reg_mr(const ordma_np_reg_mr& req, Reply& reply) {
  Pd* const pd = pds_.find(req.pd);
  if (pd == nullptr) return ENOENT;
  int err = -ordma_mr_check(&nic_->core(), req.iova, req.len, req.access);
  if (err != 0) return err;
  const bool writable = (req.access & ORDMA_IB_ACCESS_LOCAL_WRITE) != 0;
  err = memory_->check_access(req.va, req.len, writable);
  if (err == EPERM) {
    log_warn("client {}: process {} may not be read or written; see "
             "/proc/sys/kernel/yama/ptrace_scope and that both run as the same user",
             client_, pid_);
  }
  if (err != 0) return err;
  auto mr = std::make_unique<Mr>();
  err = nic_->get_number(ORDMA_IDS_MKEY, &mr->core.mkey);
  if (err != 0) return err;
  mr->pd = pd;
  mr->core.pdn = pd->core.pdn;
  mr->core.access = req.access;
  mr->core.iova = req.iova;
  mr->core.length = req.len;
  mr->core.buf.addr = dma(req.va);
  mr->core.buf.page_log = 12;
  mr->core.buf.level = ORDMA_BUF_LEVEL_DIRECT;
  ordma_cmd cmd;
  ordma_cmd_mr_create(&cmd, &mr->core);
  nic_->granted(mr->core.buf.addr, mr->core.length);
  err = nic_->execute(cmd);
  if (err != 0) {
    nic_->revoked(mr->core.buf.addr, mr->core.length);
    nic_->put_number(ORDMA_IDS_MKEY, mr->core.mkey);
    return err;
  }
  ++pd->refs;
  ordma_np_mr resp{};
  resp.lkey = mr->core.mkey;
  resp.rkey = mr->core.mkey;
  resp.handle = mrs_.add(std::move(mr));
  reply.put(resp);
  return 0;
}

int Session::dereg_mr(const ordma_np_handle& req, Reply&) {
  if (mrs_.find(req.handle) == nullptr) return ENOENT;
  destroy_mr(req.handle);
  return 0;
}

void Session::destroy_mr(std::uint32_t handle) {
  Mr* const mr = mrs_.find(handle);
  ordma_cmd cmd;
  ordma_cmd_mr_destroy(&cmd, &mr->core);
  nic_->execute_destroy(cmd);
  nic_->revoked(mr->core.buf.addr, mr->core.length);
  nic_->put_number(ORDMA_IDS_MKEY, mr->core.mkey);
  --mr->pd->refs;
  mrs_.remove(handle);
}

}  // namespace ordma::softdev
