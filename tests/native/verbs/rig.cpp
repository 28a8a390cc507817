// SPDX-License-Identifier: BSD-2-Clause
#include "rig.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace ordma::test {
namespace {

constexpr std::size_t kCanary = 64;
constexpr std::uint8_t kCanaryByte = 0xc5;
constexpr std::size_t kPage = 4096;

void require(bool ok, const char* what) {
  if (!ok) {
    throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  }
}

std::uint8_t pattern(std::uint8_t seed, std::size_t i) {
  return static_cast<std::uint8_t>(seed + i * 131 + (i >> 8) * 7);
}

}  // namespace

std::vector<std::string> device_names() {
  const char* env = std::getenv("ORDMA_TEST_DEVS");
  std::string list = env != nullptr ? env : "ordma0,ordma1";
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    names.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

Context open_device(const std::string& name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  require(list != nullptr, "ibv_get_device_list");
  Context ctx;
  for (int i = 0; i < count; ++i) {
    if (name == ibv_get_device_name(list[i])) {
      ctx.reset(ibv_open_device(list[i]));
    }
  }
  ibv_free_device_list(list);
  require(ctx != nullptr, ("open " + name).c_str());
  return ctx;
}

void Buffer::Unmap::operator()(std::uint8_t* p) const { ::munmap(p, length); }

Buffer::Buffer(ibv_pd* pd, std::size_t bytes, int access, std::size_t page_offset) : bytes_(bytes) {
  const std::size_t length = (bytes + 3 * kPage + page_offset) / kPage * kPage;
  void* p = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(p != MAP_FAILED, "mmap");
  map_ = {static_cast<std::uint8_t*>(p), Unmap{length}};
  std::memset(p, kCanaryByte, length);
  data_ = map_.get() + kPage + page_offset;
  std::memset(data_, 0, bytes);
  mr_.reset(ibv_reg_mr(pd, data_, bytes, access));
  require(mr_ != nullptr, "ibv_reg_mr");
}

ibv_sge Buffer::sge(std::size_t at, std::size_t length) const {
  return {addr(at), static_cast<std::uint32_t>(length), mr_->lkey};
}

void Buffer::fill(std::uint8_t seed) {
  for (std::size_t i = 0; i < bytes_; ++i) {
    data_[i] = pattern(seed, i);
  }
}

bool Buffer::holds(std::uint8_t seed, std::size_t at, std::size_t length) const {
  for (std::size_t i = at; i < at + length; ++i) {
    if (data_[i] != pattern(seed, i)) {
      return false;
    }
  }
  return true;
}

bool Buffer::all(std::uint8_t value, std::size_t at, std::size_t length) const {
  for (std::size_t i = at; i < at + length; ++i) {
    if (data_[i] != value) {
      return false;
    }
  }
  return true;
}

bool Buffer::canaries_intact() const {
  for (std::size_t i = 1; i <= kCanary; ++i) {
    if (*(data_ - i) != kCanaryByte || data_[bytes_ + i - 1] != kCanaryByte) {
      return false;
    }
  }
  return true;
}

namespace {

ibv_qp* create_qp(End& end, const EndOptions& o) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = o.type;
  attr.send_cq = end.scq.get();
  attr.recv_cq = end.rcq.get();
  attr.srq = end.srq.get();
  attr.sq_sig_all = o.sig_all;
  attr.cap = {o.send_wr, end.srq ? 0 : o.recv_wr, o.send_sge, end.srq ? 0 : o.recv_sge, o.inline_data};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = end.pd.get();
  if (o.send_ops != 0) {
    attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = o.send_ops;
  }
  return ibv_create_qp_ex(end.ctx.get(), &attr);
}

}  // namespace

End::End(const std::string& device, const EndOptions& o) : ctx(open_device(device)) {
  pd.reset(ibv_alloc_pd(ctx.get()));
  require(pd != nullptr, "ibv_alloc_pd");
  if (o.channel) {
    channel.reset(ibv_create_comp_channel(ctx.get()));
    require(channel != nullptr, "ibv_create_comp_channel");
  }
  scq.reset(ibv_create_cq(ctx.get(), o.cqe, this, channel.get(), 0));
  rcq.reset(ibv_create_cq(ctx.get(), o.cqe, this, channel.get(), 0));
  require(scq != nullptr && rcq != nullptr, "ibv_create_cq");
  if (o.use_srq) {
    ibv_srq_init_attr attr{};
    attr.attr = {o.recv_wr, o.recv_sge, 0};
    srq.reset(ibv_create_srq(pd.get(), &attr));
    require(srq != nullptr, "ibv_create_srq");
  }
  qp.reset(create_qp(*this, o));
  require(qp != nullptr, "ibv_create_qp");
}

ibv_gid End::gid(int index) const {
  ibv_gid g{};
  require(ibv_query_gid(ctx.get(), 1, index, &g) == 0, "ibv_query_gid");
  return g;
}

int End::to_init(int access, std::uint32_t qkey) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(access);
  attr.qkey = qkey;
  const int own = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own);
}

int End::to_rtr(const End& peer, const Link& link, std::uint32_t rq_psn) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  if (qp->qp_type == IBV_QPT_UD) {
    return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE);
  }
  attr.path_mtu = link.mtu;
  attr.dest_qp_num = peer.qp->qp_num;
  attr.rq_psn = rq_psn;
  attr.max_dest_rd_atomic = link.rd_atomic;
  attr.min_rnr_timer = link.min_rnr;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = peer.gid(link.gid_index);
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(link.gid_index);
  attr.ah_attr.grh.hop_limit = 64;
  const int rc = qp->qp_type == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
  return ibv_modify_qp(qp.get(), &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | rc);
}

int End::to_rts(const Link& link, std::uint32_t sq_psn) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = sq_psn;
  attr.timeout = link.timeout;
  attr.retry_cnt = link.retry;
  attr.rnr_retry = link.rnr_retry;
  attr.max_rd_atomic = link.rd_atomic;
  const int rc = qp->qp_type == IBV_QPT_RC ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
  return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | rc);
}

int End::to_error() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE);
}

ibv_qp_state End::state() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  require(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
  return attr.qp_state;
}

int End::post_recv(std::uint64_t wr_id, std::span<const ibv_sge> sges) {
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  wr.wr_id = wr_id;
  wr.sg_list = const_cast<ibv_sge*>(sges.data());
  wr.num_sge = static_cast<int>(sges.size());
  return srq ? ibv_post_srq_recv(srq.get(), &wr, &bad) : ibv_post_recv(qp.get(), &wr, &bad);
}

int End::post_send(ibv_send_wr wr, std::span<const ibv_sge> sges) {
  ibv_send_wr* bad = nullptr;
  wr.sg_list = const_cast<ibv_sge*>(sges.data());
  wr.num_sge = static_cast<int>(sges.size());
  return ibv_post_send(qp.get(), &wr, &bad);
}

std::optional<ibv_wc> wait_cq(ibv_cq* cq, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  ibv_wc wc{};
  do {
    const int n = ibv_poll_cq(cq, 1, &wc);
    require(n >= 0, "ibv_poll_cq");
    if (n == 1) {
      return wc;
    }
    // The soft-device may share our core.
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return std::nullopt;
}

std::optional<ibv_wc> End::wait_send(std::chrono::milliseconds limit) { return wait_cq(scq.get(), limit); }
std::optional<ibv_wc> End::wait_recv(std::chrono::milliseconds limit) { return wait_cq(rcq.get(), limit); }

Pair::Pair(bool loopback, const EndOptions& options, const Link& l, bool connect_now)
    : link(l), a(device_names().at(0), options), b(device_names().at(loopback ? 0 : 1), options) {
  if (connect_now) {
    connect();
  }
}

void Pair::connect() {
  require(a.to_init(link.access) == 0 && b.to_init(link.access) == 0, "INIT");
  require(a.to_rtr(b, link, link.psn_b) == 0 && b.to_rtr(a, link, link.psn_a) == 0, "RTR");
  require(a.to_rts(link, link.psn_a) == 0 && b.to_rts(link, link.psn_b) == 0, "RTS");
}

ibv_send_wr write_wr(std::uint64_t wr_id, const Buffer& to, std::size_t at, unsigned flags) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = flags;
  wr.wr.rdma.remote_addr = to.addr(at);
  wr.wr.rdma.rkey = to.rkey();
  return wr;
}

ibv_send_wr read_wr(std::uint64_t wr_id, const Buffer& from, std::size_t at, unsigned flags) {
  ibv_send_wr wr = write_wr(wr_id, from, at, flags);
  wr.opcode = IBV_WR_RDMA_READ;
  return wr;
}

ibv_send_wr send_wr(std::uint64_t wr_id, unsigned flags) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = flags;
  return wr;
}

std::optional<ibv_event_type> wait_async(ibv_context* ctx, std::chrono::milliseconds limit) {
  pollfd p{ctx->async_fd, POLLIN, 0};
  if (::poll(&p, 1, static_cast<int>(limit.count())) != 1) {
    return std::nullopt;
  }
  ibv_async_event event{};
  require(ibv_get_async_event(ctx, &event) == 0, "ibv_get_async_event");
  ibv_ack_async_event(&event);
  return event.event_type;
}

}  // namespace ordma::test
