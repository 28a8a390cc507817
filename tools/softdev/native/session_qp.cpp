// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <cerrno>

#include "native/session.hpp"

namespace ordma::softdev {
namespace {

constexpr std::uint32_t kNoSrq = ~std::uint32_t{0};

std::uint64_t sq_bytes(const ordma_qp_init& init) {
  return init.sq_stride_log == 0 ? 0 : std::uint64_t{1} << (init.sq_log + init.sq_stride_log);
}

std::uint64_t rq_bytes(const ordma_qp_init& init) {
  return init.rq_stride_log == 0 ? 0 : std::uint64_t{1} << (init.rq_log + init.rq_stride_log);
}

// Programs may make what needs no privilege: GSI and raw Ethernet belong to the driver.
bool user_type(std::uint32_t type) {
  return type == ORDMA_QP_TYPE_RC || type == ORDMA_QP_TYPE_UC || type == ORDMA_QP_TYPE_UD;
}

ordma_qp_attr from_wire(const ordma_np_qp_attr& req) {
  ordma_qp_attr attr{};
  attr.qp_state = req.qp_state;
  attr.cur_qp_state = req.cur_qp_state;
  attr.path_mtu = req.path_mtu;
  attr.path_mig_state = req.path_mig_state;
  attr.qkey = req.qkey;
  attr.rq_psn = req.rq_psn;
  attr.sq_psn = req.sq_psn;
  attr.dest_qpn = req.dest_qp_num;
  attr.access_flags = req.qp_access_flags;
  attr.pkey_index = req.pkey_index;
  attr.port_num = req.port_num;
  attr.en_sqd_async_notify = req.en_sqd_async_notify;
  attr.max_rd_atomic = req.max_rd_atomic;
  attr.max_dest_rd_atomic = req.max_dest_rd_atomic;
  attr.min_rnr_timer = req.min_rnr_timer;
  attr.timeout = req.timeout;
  attr.retry_cnt = req.retry_cnt;
  attr.rnr_retry = req.rnr_retry;
  std::copy(std::begin(req.ah.dgid), std::end(req.ah.dgid), attr.ah.dgid);
  attr.ah.flow_label = req.ah.flow_label;
  attr.ah.sgid_index = req.ah.sgid_index;
  attr.ah.hop_limit = req.ah.hop_limit;
  attr.ah.traffic_class = req.ah.traffic_class;
  attr.ah.sl = req.ah.sl;
  attr.ah.is_global = req.ah.is_global;
  attr.ah.port_num = req.ah.port_num;
  attr.ah.static_rate = req.ah.static_rate;
  attr.ah.src_path_bits = req.ah.src_path_bits;
  return attr;
}

void to_wire(const ordma_qp_attr& attr, const ordma_qp_cap& cap, ordma_np_qp_attr* out) {
  out->qp_state = attr.qp_state;
  out->cur_qp_state = attr.cur_qp_state;
  out->path_mtu = attr.path_mtu;
  out->path_mig_state = attr.path_mig_state;
  out->qkey = attr.qkey;
  out->rq_psn = attr.rq_psn;
  out->sq_psn = attr.sq_psn;
  out->dest_qp_num = attr.dest_qpn;
  out->qp_access_flags = attr.access_flags;
  out->max_send_wr = cap.max_send_wr;
  out->max_recv_wr = cap.max_recv_wr;
  out->max_send_sge = cap.max_send_sge;
  out->max_recv_sge = cap.max_recv_sge;
  out->max_inline_data = cap.max_inline;
  out->pkey_index = attr.pkey_index;
  out->en_sqd_async_notify = attr.en_sqd_async_notify;
  out->sq_draining = attr.sq_draining;
  out->max_rd_atomic = attr.max_rd_atomic;
  out->max_dest_rd_atomic = attr.max_dest_rd_atomic;
  out->min_rnr_timer = attr.min_rnr_timer;
  out->port_num = attr.port_num;
  out->timeout = attr.timeout;
  out->retry_cnt = attr.retry_cnt;
  out->rnr_retry = attr.rnr_retry;
  std::copy(std::begin(attr.ah.dgid), std::end(attr.ah.dgid), out->ah.dgid);
  out->ah.flow_label = attr.ah.flow_label;
  out->ah.sgid_index = attr.ah.sgid_index;
  out->ah.hop_limit = attr.ah.hop_limit;
  out->ah.traffic_class = attr.ah.traffic_class;
  out->ah.sl = attr.ah.sl;
  out->ah.is_global = attr.ah.is_global;
  out->ah.port_num = attr.ah.port_num;
  out->ah.static_rate = attr.ah.static_rate;
  out->ah.src_path_bits = attr.ah.src_path_bits;
  std::copy(std::begin(attr.ah.dmac), std::end(attr.ah.dmac), out->ah.dmac);
}

Gid gid_of(const __u8 (&bytes)[16]) {
  Gid gid;
  std::copy(std::begin(bytes), std::end(bytes), gid.begin());
  return gid;
}

}  // namespace

int Session::check_qp(const ordma_np_create_qp& req, ordma_qp_init* init, Qp* qp) {
  qp->pd = pds_.find(req.pd);
  qp->send_cq = cqs_.find(req.scq);
  qp->recv_cq = cqs_.find(req.rcq);
  qp->srq = req.srq == kNoSrq ? nullptr : srqs_.find(req.srq);
  if (qp->pd == nullptr || qp->send_cq == nullptr || qp->recv_cq == nullptr) return ENOENT;
  if (req.srq != kNoSrq && qp->srq == nullptr) return ENOENT;
  if (req.drv.comp_mask != 0 || !user_type(req.type)) return EOPNOTSUPP;
  *init = {};
  init->type = static_cast<ordma_qp_type>(req.type);
  init->cap = {req.max_send_wr, req.max_recv_wr, req.max_send_sge, req.max_recv_sge,
               req.max_inline};
  init->uctx = client_;
  init->pdn = qp->pd->core.pdn;
  init->scqn = qp->send_cq->core.cqn;
  init->rcqn = qp->recv_cq->core.cqn;
  init->has_srq = qp->srq != nullptr;
  init->srqn = init->has_srq ? qp->srq->core.srqn : 0;
  if (req.drv.sq_va != 0) {
    init->sq_log = req.drv.sq_log;
    init->sq_stride_log = req.drv.sq_stride_log;
  }
  if (req.drv.rq_va != 0) {
    init->rq_log = req.drv.rq_log;
    init->rq_stride_log = req.drv.rq_stride_log;
  }
  return -ordma_qp_check_create(&nic_->core(), init);
}

// Takes what the QP needs, in the order in which release_qp() gives it back.
int Session::setup_qp(const ordma_np_create_qp& req, const ordma_qp_init& init, Qp* qp) {
  ordma_buf sq{};
  ordma_buf rq{};
  sq.page_log = rq.page_log = 12;
  sq.level = rq.level = ORDMA_BUF_LEVEL_DIRECT;
  std::uint32_t qpn = 0;
  std::uint64_t log_addr = 0;
  std::uint64_t atomic_addr = 0;
  int err = 0;
  if (sq_bytes(init) != 0) {
    err = pin(req.drv.sq_va, sq_bytes(init), host_page_size());
    if (err != 0) return err;
    sq.addr = dma(req.drv.sq_va);
  }
  if (rq_bytes(init) != 0) {
    err = pin(req.drv.rq_va, rq_bytes(init), host_page_size());
    if (err == 0) rq.addr = dma(req.drv.rq_va);
  }
  if (err == 0) err = nic_->allocate(ordma_qp_log_bytes(&init), &log_addr);
  if (err == 0) err = nic_->allocate(ordma_qp_atomic_bytes(&nic_->core(), &init), &atomic_addr);
  if (err == 0) err = pages_->get(2, &qp->doorbell);
  if (err == 0) err = nic_->get_number(ORDMA_IDS_QPN, &qpn);
  // Also after an error: from here on the record says what is to be given back.
  ordma_qp_setup(&qp->core, qpn, &init, &sq, &rq, log_addr, atomic_addr);
  return err;
}

void Session::release_qp(Qp* qp) {
  const ordma_qp_init& init = qp->core.init;
  if (qp->core.qpn != 0) nic_->put_number(ORDMA_IDS_QPN, qp->core.qpn);
  pages_->put(qp->doorbell);
  nic_->release(qp->core.atomic_addr, ordma_qp_atomic_bytes(&nic_->core(), &init));
  nic_->release(qp->core.log_addr, ordma_qp_log_bytes(&init));
  if (qp->core.rq.addr != 0) unpin(qp->core.rq.addr % ClientMemory::kVaEnd, rq_bytes(init));
  if (qp->core.sq.addr != 0) unpin(qp->core.sq.addr % ClientMemory::kVaEnd, sq_bytes(init));
}

int Session::create_qp(const ordma_np_create_qp& req, Reply& reply) {
  auto qp = std::make_unique<Qp>();
  qp->user_handle = req.user_handle;
  qp->async = async_.get();
  ordma_qp_init init;
  int err = check_qp(req, &init, qp.get());
  if (err != 0) return err;
  err = setup_qp(req, init, qp.get());
  if (err == 0) {
    ordma_cmd cmd;
    ordma_qp_create_cmd(&qp->core, reinterpret_cast<ordma_qpc*>(nic_->scratch()),
                        nic_->scratch_addr(), &cmd);
    err = nic_->execute(cmd);
  }
  if (err != 0) {
    release_qp(qp.get());
    return err;
  }
  ++qp->pd->refs;
  ++qp->send_cq->refs;
  ++qp->recv_cq->refs;
  if (qp->srq != nullptr) ++qp->srq->refs;
  nic_->watch_qp(qp.get());
  ordma_np_qp resp{};
  resp.drv.qpn = qp->core.qpn;
  resp.drv.sq_db.page = qp->doorbell.page;
  resp.drv.sq_db.slot = qp->doorbell.slot;
  resp.drv.rq_db.page = qp->doorbell.page;
  resp.drv.rq_db.slot = qp->doorbell.slot + 1;
  resp.handle = qps_.add(std::move(qp));
  reply.put(resp);
  return 0;
}

int Session::modify_qp(const ordma_np_qp_attr& req, Reply&) {
  Qp* const qp = qps_.find(req.handle);
  if (qp == nullptr) return ENOENT;
  ordma_qp_attr attr = from_wire(req);
  bool reachable = true;
  if ((req.mask & ORDMA_ATTR_AV) != 0 && req.ah.is_global != 0) {
    const auto mac = nic_->config().neighbours->resolve(gid_of(req.ah.dgid));
    reachable = mac.has_value();
    // A wrong attribute is reported before an unknown neighbour: any valid address serves here.
    const Mac use = mac.value_or(nic_->config().mac);
    std::copy(use.begin(), use.end(), attr.ah.dmac);
  }
  ordma_qp_modify modify{};
  int err = -ordma_qp_modify_check(&nic_->core(), &qp->core, &attr, req.mask, &modify);
  if (err == 0 && !reachable) err = EHOSTUNREACH;
  if (err != 0) return err;
  ordma_cmd cmd;
  ordma_qp_modify_cmd(&qp->core, &modify, reinterpret_cast<ordma_qpc*>(nic_->scratch()),
                      nic_->scratch_addr(), &cmd);
  err = nic_->execute(cmd);
  if (err == 0) ordma_qp_modify_done(&nic_->core(), &qp->core, &modify);
  return err;
}

int Session::query_qp(const ordma_np_handle& req, Reply& reply) {
  Qp* const qp = qps_.find(req.handle);
  if (qp == nullptr) return ENOENT;
  const auto* const progress = reinterpret_cast<const ordma_progress*>(nic_->scratch());
  ordma_cmd cmd;
  ordma_qp_query_cmd(&qp->core, nic_->scratch_addr(), &cmd);
  if (const int err = nic_->execute(cmd); err != 0) return err;
  ordma_qp_sync(&qp->core, progress);
  ordma_qp_attr attr{};
  ordma_qp_query(&qp->core, progress, &attr);
  ordma_np_qp_attr resp{};
  resp.handle = req.handle;
  to_wire(attr, qp->core.init.cap, &resp);
  reply.put(resp);
  return 0;
}

int Session::destroy_qp(const ordma_np_handle& req, Reply& reply) {
  const Qp* const qp = qps_.find(req.handle);
  if (qp == nullptr) return ENOENT;
  if (!qp->multicast.empty()) return EBUSY;
  reply.put(remove_qp(req.handle));
  return 0;
}

ordma_np_destroyed Session::remove_qp(std::uint32_t handle) {
  Qp* const qp = qps_.find(handle);
  ordma_cmd cmd;
  for (const Gid& gid : qp->multicast) {
    ordma_cmd_mcast(&cmd, &qp->core, gid.data(), false);
    nic_->execute_destroy(cmd);
  }
  ordma_cmd_qp_destroy(&cmd, &qp->core);
  nic_->execute_destroy(cmd);
  const ordma_np_destroyed read = nic_->unwatch_qp(qp);
  --qp->pd->refs;
  --qp->send_cq->refs;
  --qp->recv_cq->refs;
  if (qp->srq != nullptr) --qp->srq->refs;
  release_qp(qp);
  qps_.remove(handle);
  return read;
}

int Session::attach_mcast(const ordma_np_mcast& req, Reply&) {
  Qp* const qp = qps_.find(req.qp);
  if (qp == nullptr) return ENOENT;
  const Gid gid = gid_of(req.gid);
  int err = -ordma_mcast_check(&nic_->core(), &qp->core, gid.data());
  if (err != 0 || qp->multicast.contains(gid)) return err;
  ordma_cmd cmd;
  ordma_cmd_mcast(&cmd, &qp->core, gid.data(), true);
  err = nic_->execute(cmd);
  if (err == 0) qp->multicast.insert(gid);
  return err;
}

int Session::detach_mcast(const ordma_np_mcast& req, Reply&) {
  Qp* const qp = qps_.find(req.qp);
  if (qp == nullptr) return ENOENT;
  const Gid gid = gid_of(req.gid);
  if (!qp->multicast.contains(gid)) return EINVAL;
  ordma_cmd cmd;
  ordma_cmd_mcast(&cmd, &qp->core, gid.data(), false);
  nic_->execute_destroy(cmd);
  qp->multicast.erase(gid);
  return 0;
}

}  // namespace ordma::softdev
