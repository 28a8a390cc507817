// SPDX-License-Identifier: BSD-2-Clause
#include "rig.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
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

void require_step(int err, const char* what) {
  errno = err;
  require(err == 0, what);
}

std::uint8_t pattern(std::uint8_t seed, std::size_t i) {
  return static_cast<std::uint8_t>(seed + i * 131 + (i >> 8) * 7);
}

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0 ? value : otherwise;
}

int refused = 0;

}  // namespace

void note_destroy(int result, const char* what) {
  if (result != 0) {
    std::fprintf(stderr, "destroy of %s: %s\n", what, std::strerror(result > 0 ? result : errno));
    ++refused;
  }
}

int destroy_failures() { return refused; }

std::vector<std::string> device_names() {
  const std::string list = environment("ORDMA_TEST_DEVS", "ordma0,ordma1");
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    names.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

int default_gid_index() {
  static const int index = std::stoi(environment("ORDMA_TEST_GID", "1"));
  return index;
}

std::size_t scale(std::size_t fast, std::size_t check, std::size_t soak) {
  static const std::string tier = environment("ORDMA_TEST_SCALE", "fast");
  return tier == "soak" ? soak : tier == "check" ? check : fast;
}

std::optional<std::uint64_t> counter(std::size_t device, const std::string& name) {
  const std::string command = environment("ORDMA_TEST_STAT", "");
  if (command.empty()) {
    return std::nullopt;
  }
  const std::string scope = device_names().at(device);
  std::FILE* out = ::popen(command.c_str(), "r");
  require(out != nullptr, "ORDMA_TEST_STAT");
  std::optional<std::uint64_t> value;
  char a[64], b[64];
  unsigned long long number = 0;
  std::string line;
  for (int c = std::fgetc(out); c != EOF; c = std::fgetc(out)) {
    line += static_cast<char>(c);
    if (c != '\n') {
      continue;
    }
    if (std::sscanf(line.c_str(), "%63s %63s %llu", a, b, &number) == 3 && a == scope && b == name) {
      value = number;
    }
    line.clear();
  }
  ::pclose(out);
  if (!value) {
    throw std::runtime_error("no counter " + scope + " " + name);
  }
  return value;
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

void Buffer::map(std::size_t bytes, std::size_t page_offset) {
  const std::size_t length = (bytes + 3 * kPage + page_offset) / kPage * kPage;
  void* p = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(p != MAP_FAILED, "mmap");
  map_ = {static_cast<std::uint8_t*>(p), Unmap{length}};
  std::memset(p, kCanaryByte, length);
  data_ = map_.get() + kPage + page_offset;
  bytes_ = bytes;
  clear();
}

Buffer::Buffer(ibv_pd* pd, std::size_t bytes, int access, std::size_t page_offset) {
  map(bytes, page_offset);
  iova_ = reinterpret_cast<std::uint64_t>(data_);
  mr_.reset(ibv_reg_mr(pd, data_, bytes, access));
  require(mr_ != nullptr, "ibv_reg_mr");
}

Buffer::Buffer(ibv_pd* pd, std::size_t bytes, std::uint64_t iova) : iova_(iova) {
  map(bytes, iova % kPage);
  mr_.reset(ibv_reg_mr_iova(pd, data_, bytes, iova, kFullAccess));
  require(mr_ != nullptr, "ibv_reg_mr_iova");
}

ibv_sge Buffer::sge(std::size_t at, std::size_t length) const {
  return {addr(at), static_cast<std::uint32_t>(length), mr_->lkey};
}

void Buffer::fill(std::uint8_t seed) {
  for (std::size_t i = 0; i < bytes_; ++i) {
    data_[i] = pattern(seed, i);
  }
}

void Buffer::clear() { std::memset(data_, 0, bytes_); }

bool Buffer::holds(std::uint8_t seed, std::size_t at, std::size_t length) const {
  for (std::size_t i = at; i < at + length; ++i) {
    if (data_[i] != pattern(seed, i)) {
      return false;
    }
  }
  return true;
}

bool Buffer::all(std::uint8_t value, std::size_t at, std::size_t length) const {
  return std::all_of(data_ + at, data_ + at + length, [&](std::uint8_t b) { return b == value; });
}

bool Buffer::canaries_intact() const {
  const auto whole = [](const std::uint8_t* from) {
    return std::all_of(from, from + kCanary, [](std::uint8_t b) { return b == kCanaryByte; });
  };
  return whole(data_ - kCanary) && whole(data_ + bytes_);
}

int set_init(ibv_qp* qp, const Link& link) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(link.access);
  attr.qkey = link.qkey;
  const int own = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own);
}

ibv_qp_attr rtr_attr(const Link& link, std::uint32_t dest_qpn, const ibv_gid& dgid,
                     std::uint32_t rq_psn) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = link.mtu;
  attr.dest_qp_num = dest_qpn;
  attr.rq_psn = rq_psn;
  attr.max_dest_rd_atomic = link.rd_atomic;
  attr.min_rnr_timer = link.min_rnr;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = dgid;
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(link.gid_index);
  attr.ah_attr.grh.hop_limit = link.hop_limit;
  attr.ah_attr.grh.traffic_class = link.traffic_class;
  return attr;
}

int rtr_mask(ibv_qp_type type) {
  constexpr int kConnected = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  return type == IBV_QPT_UD   ? IBV_QP_STATE
         : type == IBV_QPT_UC ? kConnected
                              : kConnected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int set_rtr(ibv_qp* qp, const Link& link, std::uint32_t dest_qpn, const ibv_gid& dgid,
            std::uint32_t rq_psn) {
  ibv_qp_attr attr = rtr_attr(link, dest_qpn, dgid, rq_psn);
  return ibv_modify_qp(qp, &attr, rtr_mask(qp->qp_type));
}

ibv_qp_attr rts_attr(const Link& link, std::uint32_t sq_psn) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = sq_psn;
  attr.timeout = link.timeout;
  attr.retry_cnt = link.retry;
  attr.rnr_retry = link.rnr_retry;
  attr.max_rd_atomic = link.rd_atomic;
  return attr;
}

int rts_mask(ibv_qp_type type) {
  constexpr int kReliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return IBV_QP_STATE | IBV_QP_SQ_PSN | (type == IBV_QPT_RC ? kReliable : 0);
}

int set_rts(ibv_qp* qp, const Link& link, std::uint32_t sq_psn) {
  ibv_qp_attr attr = rts_attr(link, sq_psn);
  return ibv_modify_qp(qp, &attr, rts_mask(qp->qp_type));
}

int set_state(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

ibv_qp_attr query(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  constexpr int kAll = (IBV_QP_RATE_LIMIT << 1) - 1;
  require_step(ibv_query_qp(qp, &attr, kAll, &init), "ibv_query_qp");
  return attr;
}

ibv_gid gid_of(ibv_context* ctx, int index) {
  ibv_gid g{};
  require(ibv_query_gid(ctx, 1, index, &g) == 0, "ibv_query_gid");
  return g;
}

void connect(ibv_qp* a, ibv_qp* b, const Link& link) {
  const ibv_gid gid_a = gid_of(a->context, link.gid_index);
  const ibv_gid gid_b = gid_of(b->context, link.gid_index);
  require_step(set_init(a, link), "INIT of A");
  require_step(set_init(b, link), "INIT of B");
  require_step(set_rtr(a, link, b->qp_num, gid_b, link.psn_b), "RTR of A");
  require_step(set_rtr(b, link, a->qp_num, gid_a, link.psn_a), "RTR of B");
  require_step(set_rts(a, link, link.psn_a), "RTS of A");
  require_step(set_rts(b, link, link.psn_b), "RTS of B");
}

namespace {

Qp create_qp(const End& end, const EndOptions& o) {
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
  Qp qp(ibv_create_qp_ex(end.ctx.get(), &attr));
  require(qp != nullptr, "ibv_create_qp_ex");
  return qp;
}

Cq create_cq(const End& end, const EndOptions& o, ibv_cq_ex** extended) {
  if (!o.timestamps) {
    Cq cq(ibv_create_cq(end.ctx.get(), o.cqe, nullptr, end.channel.get(), 0));
    require(cq != nullptr, "ibv_create_cq");
    return cq;
  }
  ibv_cq_init_attr_ex attr{};
  attr.cqe = static_cast<std::uint32_t>(o.cqe);
  attr.channel = end.channel.get();
  attr.wc_flags = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  *extended = ibv_create_cq_ex(end.ctx.get(), &attr);
  require(*extended != nullptr, "ibv_create_cq_ex");
  return Cq(ibv_cq_ex_to_cq(*extended));
}

}  // namespace

End::End(const std::string& device, const EndOptions& o) : ctx(open_device(device)) {
  pd.reset(ibv_alloc_pd(ctx.get()));
  require(pd != nullptr, "ibv_alloc_pd");
  if (o.channel) {
    channel.reset(ibv_create_comp_channel(ctx.get()));
    require(channel != nullptr, "ibv_create_comp_channel");
  }
  scq = create_cq(*this, o, &scq_ex);
  rcq = create_cq(*this, o, &rcq_ex);
  if (o.use_srq) {
    ibv_srq_init_attr attr{};
    attr.attr = {o.recv_wr, o.recv_sge, 0};
    srq.reset(ibv_create_srq(pd.get(), &attr));
    require(srq != nullptr, "ibv_create_srq");
  }
  qp = create_qp(*this, o);
}

Qp End::make_qp(const EndOptions& options) const { return create_qp(*this, options); }

int End::post_recv(std::uint64_t wr_id, std::span<const ibv_sge> sges) {
  if (srq == nullptr) {
    return test::post_recv(qp.get(), wr_id, sges);
  }
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  wr.wr_id = wr_id;
  wr.sg_list = const_cast<ibv_sge*>(sges.data());
  wr.num_sge = static_cast<int>(sges.size());
  return ibv_post_srq_recv(srq.get(), &wr, &bad);
}

int End::post_send(ibv_send_wr wr, std::span<const ibv_sge> sges) {
  return test::post_send(qp.get(), wr, sges);
}

int post_send(ibv_qp* qp, ibv_send_wr wr, std::span<const ibv_sge> sges) {
  ibv_send_wr* bad = nullptr;
  wr.sg_list = const_cast<ibv_sge*>(sges.data());
  wr.num_sge = static_cast<int>(sges.size());
  return ibv_post_send(qp, &wr, &bad);
}

int post_recv(ibv_qp* qp, std::uint64_t wr_id, std::span<const ibv_sge> sges) {
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  wr.wr_id = wr_id;
  wr.sg_list = const_cast<ibv_sge*>(sges.data());
  wr.num_sge = static_cast<int>(sges.size());
  return ibv_post_recv(qp, &wr, &bad);
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

std::optional<TimedWc> wait_timed(ibv_cq_ex* cq, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  ibv_poll_cq_attr attr{};
  do {
    const int err = ibv_start_poll(cq, &attr);
    if (err == 0) {
      const TimedWc wc{cq->status, cq->wr_id, ibv_wc_read_completion_ts(cq)};
      ibv_end_poll(cq);
      return wc;
    }
    errno = err;
    require(err == ENOENT, "ibv_start_poll");
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return std::nullopt;
}

std::optional<ibv_wc> End::wait_send(std::chrono::milliseconds limit) { return wait_cq(scq.get(), limit); }
std::optional<ibv_wc> End::wait_recv(std::chrono::milliseconds limit) { return wait_cq(rcq.get(), limit); }

Pair::Pair(bool loopback, const EndOptions& options, const Link& l, bool connect_now)
    : link(l), a(device_names().at(0), options), b(device_names().at(loopback ? 0 : 1), options) {
  if (connect_now) {
    connect(a.qp.get(), b.qp.get(), link);
  }
}

void Pair::reconnect() {
  require_step(set_state(a.qp.get(), IBV_QPS_RESET), "RESET of A");
  require_step(set_state(b.qp.get(), IBV_QPS_RESET), "RESET of B");
  connect(a.qp.get(), b.qp.get(), link);
}

ibv_send_wr send_wr(std::uint64_t wr_id, unsigned flags) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = flags;
  return wr;
}

ibv_send_wr write_wr(std::uint64_t wr_id, const Buffer& to, std::size_t at, unsigned flags) {
  ibv_send_wr wr = send_wr(wr_id, flags);
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = to.addr(at);
  wr.wr.rdma.rkey = to.rkey();
  return wr;
}

ibv_send_wr read_wr(std::uint64_t wr_id, const Buffer& from, std::size_t at, unsigned flags) {
  ibv_send_wr wr = write_wr(wr_id, from, at, flags);
  wr.opcode = IBV_WR_RDMA_READ;
  return wr;
}

ibv_send_wr fetch_add_wr(std::uint64_t wr_id, const Buffer& at, std::uint64_t add, std::size_t offset) {
  ibv_send_wr wr = send_wr(wr_id);
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.atomic.remote_addr = at.addr(offset);
  wr.wr.atomic.rkey = at.rkey();
  wr.wr.atomic.compare_add = add;
  return wr;
}

ibv_send_wr cmp_swap_wr(std::uint64_t wr_id, const Buffer& at, std::uint64_t compare,
                        std::uint64_t swap, std::size_t offset) {
  ibv_send_wr wr = fetch_add_wr(wr_id, at, compare, offset);
  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic.swap = swap;
  return wr;
}

namespace {

bool readable(int fd, std::chrono::milliseconds limit) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, static_cast<int>(limit.count())) == 1;
}

}  // namespace

std::optional<ibv_async_event> wait_async(ibv_context* ctx, std::chrono::milliseconds limit) {
  if (!readable(ctx->async_fd, limit)) {
    return std::nullopt;
  }
  ibv_async_event event{};
  require(ibv_get_async_event(ctx, &event) == 0, "ibv_get_async_event");
  ibv_ack_async_event(&event);
  return event;
}

ibv_cq* wait_event(ibv_comp_channel* channel, std::chrono::milliseconds limit) {
  if (!readable(channel->fd, limit)) {
    return nullptr;
  }
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  require(ibv_get_cq_event(channel, &cq, &context) == 0, "ibv_get_cq_event");
  return cq;
}

Ah make_ah(ibv_pd* pd, const ibv_gid& dgid, const Link& link) {
  ibv_ah_attr attr = rtr_attr(link, 0, dgid, 0).ah_attr;
  return Ah(ibv_create_ah(pd, &attr));
}

}  // namespace ordma::test
