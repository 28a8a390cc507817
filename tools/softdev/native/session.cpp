// SPDX-License-Identifier: BSD-2-Clause
#include "native/session.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "native/port.hpp"

namespace ordma::softdev {

void Reply::append(std::string_view text) {
  const auto* const data = reinterpret_cast<const std::byte*>(text.data());
  bytes_.insert(bytes_.end(), data, data + text.size());
}

// One row per operation: the exact length of its request and what answers it.
struct SessionOps {
  using Handler = int (*)(Session&, std::span<const std::byte>, Reply&);
  struct Row {
    std::uint16_t op = 0;
    std::size_t bytes = 0;
    std::size_t fds_max = 0;
    bool needs_hello = true;
    Handler handler = nullptr;
  };

  template <auto Method>
  static constexpr Row row(std::uint16_t op, bool needs_hello = true, std::size_t fds_max = 0) {
    return make_row(op, needs_hello, fds_max, Bound<Method>());
  }

 private:
  template <auto Method>
  struct Bound;
  template <typename Req, int (Session::*Method)(const Req&, Reply&)>
  struct Bound<Method> {
    static constexpr std::size_t kBytes = sizeof(Req);
    static int call(Session& session, std::span<const std::byte> body, Reply& reply) {
      Req req;
      std::memcpy(&req, body.data(), sizeof req);
      return (session.*Method)(req, reply);
    }
  };
  template <int (Session::*Method)(Reply&)>
  struct Bound<Method> {
    static constexpr std::size_t kBytes = 0;
    static int call(Session& session, std::span<const std::byte>, Reply& reply) {
      return (session.*Method)(reply);
    }
  };
  template <typename B>
  static constexpr Row make_row(std::uint16_t op, bool needs_hello, std::size_t fds_max, B) {
    return {op, B::kBytes, fds_max, needs_hello, &B::call};
  }

 public:
  static const Row* find(std::uint16_t op);
};

const SessionOps::Row* SessionOps::find(std::uint16_t op) {
  using S = Session;
  static constexpr Row kRows[] = {
      row<&S::hello>(ORDMA_NP_HELLO, false),
      row<&S::buf_alloc>(ORDMA_NP_BUF_ALLOC),
      row<&S::buf_map>(ORDMA_NP_BUF_MAP),
      row<&S::buf_free>(ORDMA_NP_BUF_FREE),
      row<&S::page_fd>(ORDMA_NP_PAGE_FD),
      row<&S::query_port>(ORDMA_NP_QUERY_PORT),
      row<&S::query_gid>(ORDMA_NP_QUERY_GID),
      row<&S::alloc_pd>(ORDMA_NP_ALLOC_PD),
      row<&S::dealloc_pd>(ORDMA_NP_DEALLOC_PD),
      row<&S::reg_mr>(ORDMA_NP_REG_MR),
      row<&S::dereg_mr>(ORDMA_NP_DEREG_MR),
      row<&S::create_cq>(ORDMA_NP_CREATE_CQ, true, 1),
      row<&S::resize_cq>(ORDMA_NP_RESIZE_CQ),
      row<&S::destroy_cq>(ORDMA_NP_DESTROY_CQ),
      row<&S::create_srq>(ORDMA_NP_CREATE_SRQ),
      row<&S::modify_srq>(ORDMA_NP_MODIFY_SRQ),
      row<&S::query_srq>(ORDMA_NP_QUERY_SRQ),
      row<&S::destroy_srq>(ORDMA_NP_DESTROY_SRQ),
      row<&S::create_qp>(ORDMA_NP_CREATE_QP),
      row<&S::modify_qp>(ORDMA_NP_MODIFY_QP),
      row<&S::query_qp>(ORDMA_NP_QUERY_QP),
      row<&S::destroy_qp>(ORDMA_NP_DESTROY_QP),
      row<&S::attach_mcast>(ORDMA_NP_ATTACH_MCAST),
      row<&S::detach_mcast>(ORDMA_NP_DETACH_MCAST),
      row<&S::resolve_gid>(ORDMA_NP_RESOLVE_GID),
      row<&S::query_device>(ORDMA_NP_QUERY_DEVICE),
      row<&S::counters>(ORDMA_NP_COUNTERS, false),
      row<&S::create_channel>(ORDMA_NP_CREATE_CHANNEL),
      row<&S::destroy_channel>(ORDMA_NP_DESTROY_CHANNEL),
  };
  static_assert(std::size(kRows) == ORDMA_NP_DESTROY_CHANNEL, "every operation has its row");
  const auto* const it =
      std::find_if(std::begin(kRows), std::end(kRows), [op](const Row& r) { return r.op == op; });
  return it == std::end(kRows) ? nullptr : it;
}

Session::~Session() { tear_down(); }

bool Session::handle(std::span<const std::byte> message, std::vector<Fd> fds,
                     std::vector<std::byte>* reply, Reply* body) {
  ordma_np_hdr header{};
  bool keep = false;
  int err = EPROTO;
  if (message.size() >= sizeof header) {
    std::memcpy(&header, message.data(), sizeof header);
    const auto request = message.subspan(sizeof header);
    const SessionOps::Row* const row = SessionOps::find(header.op);
    if (header.version != ORDMA_NP_VERSION) {
      err = EPROTONOSUPPORT;
    } else if (row != nullptr && header.len == request.size() && row->bytes == request.size()) {
      keep = true;
      incoming_ = std::move(fds);
      if (row->needs_hello && nic_ == nullptr) {
        err = ENOTCONN;
      } else if (incoming_.size() > row->fds_max) {
        err = EINVAL;
      } else {
        // As on a bus: what was posted before this request reaches the NIC before its command.
        if (nic_ != nullptr) (void)nic_->scan();
        err = row->handler(*this, request, *body);
      }
      incoming_.clear();
    }
  }
  if (err != 0) *body = Reply();
  header.version = ORDMA_NP_VERSION;
  header.err = err;
  header.len = static_cast<std::uint32_t>(body->bytes().size());
  reply->resize(sizeof header);
  std::memcpy(reply->data(), &header, sizeof header);
  reply->insert(reply->end(), body->bytes().begin(), body->bytes().end());
  return keep;
}

void Session::tear_down() {
  if (nic_ == nullptr) return;
  while (!qps_.empty()) remove_qp(qps_.first());
  while (!srqs_.empty()) remove_srq(srqs_.first());
  while (!cqs_.empty()) remove_cq(cqs_.first());
  while (!channels_.empty()) {
    nic_->forget_sink(channels_.find(channels_.first())->sink.get());
    channels_.remove(channels_.first());
  }
  while (!mrs_.empty()) destroy_mr(mrs_.first());
  while (!pds_.empty()) {
    nic_->put_number(ORDMA_IDS_PDN, pds_.find(pds_.first())->core.pdn);
    pds_.remove(pds_.first());
  }
  pages_.reset();
  nic_->forget_sink(async_.get());
  nic_->remove_client(client_);
  nic_->put_number(ORDMA_IDS_UCTX, client_);
  nic_ = nullptr;
}

int Session::hello(const ordma_np_hello& req, Reply& reply) {
  if (nic_ != nullptr) return EEXIST;
  if (req.nic >= host_.nics.size() || host_.nics[req.nic] == nullptr) return ENODEV;
  if (req.reserved != 0) return EINVAL;
  NativeNic& nic = *host_.nics[req.nic];
  if (nic.dead()) return EIO;
  Fd async_read;
  auto async = EventSink::make_pipe(&async_read);
  Fd kick(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Fd public_page = nic.public_memory().read_only_fd();
  if (async == nullptr || !kick || !public_page) return EMFILE;
  const int err = nic.get_number(ORDMA_IDS_UCTX, &client_);
  if (err != 0) return err;
  nic_ = &nic;
  async_ = std::move(async);
  kick_ = std::move(kick);
  memory_ = std::make_unique<ClientMemory>(pid_);
  pages_ = std::make_unique<DoorbellPages>(nic, client_);
  nic.add_client(client_, memory_.get(), async_.get());

  const ordma_caps& caps = nic.core().caps;
  ordma_np_hello_resp resp{};
  ordma_np_device device;
  fill_device(nic.core(), &device);
  resp.client = client_;
  resp.num_comp_vectors = device.num_comp_vectors;
  resp.ctx.contract_version = std::uint32_t{caps.major} << 16 | caps.minor;
  resp.ctx.uctx = client_;
  resp.ctx.caps = caps.bits;
  resp.ctx.max_wr = caps.max_wr;
  resp.ctx.max_sge = caps.max_sge;
  resp.ctx.max_inline = caps.max_inline;
  resp.ctx.max_cqe = caps.max_cqe;
  resp.ctx.max_srq_wr = caps.max_wr;
  resp.ctx.max_rd_atomic = caps.max_rd_atomic;
  reply.put(resp);
  reply.give(std::move(public_page));
  reply.lend(kick_.get());
  reply.give(std::move(async_read));
  return 0;
}

int Session::query_port(Reply& reply) {
  ordma_np_port port;
  fill_port(nic_->core(), &port);
  port.qkey_viol = static_cast<std::uint32_t>(nic_->counter(ORDMA_COUNTER_DROP_QKEY));
  reply.put(port);
  return 0;
}

int Session::query_gid(const ordma_np_gid_req& req, Reply& reply) {
  if (req.index >= nic_->core().caps.max_gid) return EINVAL;
  ordma_np_gid gid{};
  const auto& gids = nic_->config().gids;
  if (req.index < gids.size()) {
    std::copy(gids[req.index].begin(), gids[req.index].end(), gid.gid);
    gid.valid = 1;
    gid.type = 2;
  }
  reply.put(gid);
  return 0;
}

int Session::query_device(Reply& reply) {
  ordma_np_device device;
  fill_device(nic_->core(), &device);
  reply.put(device);
  return 0;
}

int Session::resolve_gid(const ordma_np_resolve& req, Reply& reply) {
  if (!ordma_core_gid_ok(&nic_->core(), req.sgid_index)) return EINVAL;
  Gid gid;
  std::copy(std::begin(req.dgid), std::end(req.dgid), gid.begin());
  const auto mac = nic_->config().neighbours->resolve(gid);
  if (!mac) return EHOSTUNREACH;
  ordma_np_mac resp{};
  std::copy(mac->begin(), mac->end(), resp.mac);
  reply.put(resp);
  return 0;
}

int Session::counters(const ordma_np_counters_req& req, Reply& reply) {
  constexpr std::size_t kPiece =
      ORDMA_NP_MAX_MSG - sizeof(ordma_np_hdr) - sizeof(ordma_np_counters_resp);
  if (req.offset == 0) counters_text_ = host_.counters();
  if (req.offset > counters_text_.size()) return EINVAL;
  const auto piece = std::string_view(counters_text_).substr(req.offset, kPiece);
  ordma_np_counters_resp resp{};
  resp.total = static_cast<std::uint32_t>(counters_text_.size());
  resp.len = static_cast<std::uint32_t>(piece.size());
  reply.put(resp);
  reply.append(piece);
  return 0;
}

int Session::page_fd(const ordma_np_handle& req, Reply& reply) {
  const int fd = pages_->fd_of(req.handle);
  if (fd < 0) return ENOENT;
  reply.lend(fd);
  return 0;
}

std::uint64_t Session::dma(std::uint64_t va) const {
  return std::uint64_t{client_} * ClientMemory::kVaEnd + va;
}

int Session::pin(std::uint64_t va, std::uint64_t bytes, std::uint64_t align) {
  if (va % align != 0 || va >= ClientMemory::kVaEnd) return EINVAL;
  if (!memory_->pin(va, bytes)) return EFAULT;
  nic_->granted(dma(va), bytes);
  return 0;
}

void Session::unpin(std::uint64_t va, std::uint64_t bytes) {
  nic_->revoked(dma(va), bytes);
  memory_->unpin(va);
}

}  // namespace ordma::softdev
