// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <stdexcept>

#include "bench.hpp"

namespace ordma::bench {
namespace {

void put_sges(std::span<std::byte> at, const std::vector<Piece>& sges) {
  for (std::size_t i = 0; i < sges.size(); ++i) {
    const auto raw = at.subspan(i * hw::sge::kBytes, hw::sge::kBytes);
    hw::set(raw, hw::sge::addr, sges[i].addr);
    hw::set(raw, hw::sge::length, sges[i].length);
    hw::set(raw, hw::sge::lkey, sges[i].lkey);
  }
}

void put_rqe(std::span<std::byte> raw, std::uint64_t wr_id, std::uint32_t index,
             const std::vector<Piece>& sges) {
  std::fill(raw.begin(), raw.end(), std::byte{0});
  hw::set(raw, hw::rqe::wr_id, wr_id);
  hw::set(raw, hw::rqe::num_sge, sges.size());
  hw::set(raw, hw::rqe::index, index);
  put_sges(raw.subspan(hw::kRqeDataOff), sges);
}

// Ring memory, contiguous or behind a list of pages in reverse order.
Addr ring_memory(Node& n, std::size_t bytes, bool list, std::vector<Addr>& pages) {
  if (!list) return n.mem.alloc(bytes, 4096);
  const std::size_t count = (bytes + 4095) / 4096;
  const Addr pool = n.mem.alloc(count * 4096, 4096);
  const Addr table = n.mem.alloc(count * 8);
  for (std::size_t i = 0; i < count; ++i) {
    pages.push_back(pool + (count - 1 - i) * 4096);
    n.mem.store(table + i * 8, pages.back());
  }
  return table;
}

Addr slot(const std::vector<Addr>& pages, Addr base, std::uint64_t offset) {
  return pages.empty() ? base + offset : pages[offset / 4096] + offset % 4096;
}

}  // namespace

Qp Node::create_qp(const QpOptions& o) {
  Qp qp;
  qp.node = this;
  qp.o = o;
  qp.qpn = o.type == hw::QpType::kGsi ? hw::kGsiQpn : next_qpn;
  next_qpn += 0x4001;
  qp.sq = ring_memory(*this, std::size_t{1} << (o.sq_log + o.sq_stride_log), o.lists, qp.sq_pages);
  qp.rq = ring_memory(*this, std::size_t{1} << (o.rq_log + o.rq_stride_log), o.lists, qp.rq_pages);
  qp.log = mem.alloc(hw::log_entry::kBytes << o.log_log);
  qp.atomics = mem.alloc(hw::atomic_result::kBytes * 128);
  qp.image = mem.alloc(hw::qpc::kBytes);
  namespace q = hw::qpc;
  const auto set = [&](hw::Field f, std::uint64_t v) { hw::set(qp.qpc, f, v); };
  set(q::qpn, qp.qpn);
  set(q::type_, static_cast<std::uint64_t>(o.type));
  set(q::access, o.access);
  set(q::uctx, o.uctx);
  set(q::pd, o.pd);
  set(q::has_srq, o.srqn.has_value());
  set(q::srqn, o.srqn.value_or(0));
  set(q::scqn, o.scq->number);
  set(q::rcqn, o.rcq->number);
  const auto level = static_cast<std::uint64_t>(o.lists ? hw::BufLevel::kList
                                                        : hw::BufLevel::kDirect);
  set(q::sq_addr, qp.sq);
  set(q::sq_log, o.sq_log);
  set(q::sq_stride_log, o.sq_stride_log);
  set(q::sq_page_log, 12);
  set(q::sq_level, level);
  if (!o.srqn) {
    set(q::rq_addr, qp.rq);
    set(q::rq_log, o.rq_log);
    set(q::rq_stride_log, o.rq_stride_log);
    set(q::rq_page_log, 12);
    set(q::rq_level, level);
  }
  set(q::mtu_log, o.mtu_log);
  set(q::sgid_index, o.sgid_index);
  set(q::hop_limit, o.hop_limit);
  set(q::tclass, o.tclass);
  set(q::sport, o.sport);
  set(q::qkey, o.qkey);
  set(q::sq_psn, o.sq_psn);
  set(q::rq_psn, o.rq_psn);
  set(q::max_rd_atomic, o.max_rd_atomic);
  set(q::max_dest_rd_atomic, o.max_dest_rd_atomic);
  set(q::min_rnr_timer, o.min_rnr_timer);
  set(q::log_log, o.log_log);
  set(q::log_addr, qp.log);
  set(q::atomic_addr, qp.atomics);
  set(q::silence, o.silence);
  std::copy(qp.qpc.begin(), qp.qpc.end(), mem.at(qp.image, hw::qpc::kBytes).begin());
  const auto status = command(hw::CmdOp::kQpCreate, qp.qpn, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_qp::image, qp.image);
  });
  if (status != hw::CmdStatus::kOk) {
    throw std::runtime_error("bench: no QP, status " +
                             std::to_string(static_cast<unsigned>(status)));
  }
  return qp;
}

void Qp::connect(std::uint32_t dest_qpn, std::span<const std::byte> dgid, std::uint64_t dmac) {
  hw::set(qpc, hw::qpc::dest_qpn, dest_qpn);
  hw::set(qpc, hw::qpc::dmac, dmac);
  std::copy(dgid.begin(), dgid.end(),
            hw::raw(std::span<std::byte>(qpc), hw::qpc::dgid).begin());
}

hw::CmdStatus Qp::to(hw::QpState state, bool init_rq, bool init_sq) {
  std::copy(qpc.begin(), qpc.end(), node->mem.at(image, hw::qpc::kBytes).begin());
  return node->command(hw::CmdOp::kQpModify, qpn, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_qp::state, static_cast<std::uint64_t>(state));
    hw::set(raw, hw::cmd_qp::init_rq, init_rq);
    hw::set(raw, hw::cmd_qp::init_sq, init_sq);
    hw::set(raw, hw::cmd_qp::image, image);
  });
}

hw::progress::Bytes Qp::query() {
  const Addr at = node->mem.alloc(hw::progress::kBytes);
  const auto status = node->command(hw::CmdOp::kQpQuery, qpn, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_qp::image, at);
  });
  if (status != hw::CmdStatus::kOk) throw std::runtime_error("bench: cannot query");
  hw::progress::Bytes out;
  const auto raw = node->mem.at(at, out.size());
  std::copy(raw.begin(), raw.end(), out.begin());
  return out;
}

Addr Qp::wqe(std::uint32_t index) const {
  return slot(sq_pages, sq, std::uint64_t{index & ((1u << o.sq_log) - 1)} << o.sq_stride_log);
}

Addr Qp::log_entry(std::uint32_t index) const {
  return log + std::uint64_t{index & ((1u << o.log_log) - 1)} * hw::log_entry::kBytes;
}

std::uint32_t Qp::post(const Send& s) {
  namespace w = hw::wqe;
  const auto raw = node->mem.at(wqe(sq_pi), std::size_t{1} << o.sq_stride_log);
  std::fill(raw.begin(), raw.begin() + 64, std::byte{0});
  const bool ud = o.type == hw::QpType::kUd || o.type == hw::QpType::kGsi;
  const bool atomic = s.op == hw::WqeOp::kCmpSwap || s.op == hw::WqeOp::kFetchAdd;
  std::uint64_t length = s.inline_data.size();
  for (const Piece& p : s.sges) length += p.length;
  hw::set(raw, w::opcode, static_cast<std::uint64_t>(s.op));
  hw::set(raw, w::signaled, s.signaled);
  hw::set(raw, w::fence, s.fence);
  hw::set(raw, w::solicited, s.solicited);
  const bool inlined = s.inlined || !s.inline_data.empty();
  hw::set(raw, w::inline_, inlined);
  hw::set(raw, w::num_sge, s.sges.size());
  hw::set(raw, w::index, s.index.value_or(static_cast<std::uint16_t>(sq_pi)));
  hw::set(raw, w::length, s.length.value_or(static_cast<std::uint32_t>(length)));
  hw::set(raw, w::imm, s.imm);
  std::size_t data = hw::kWqeDataOff;
  if (ud) {
    std::copy(s.av.begin(), s.av.end(), raw.begin() + 16);
    data = hw::kWqeUdDataOff;
  } else {
    hw::set(raw, w::remote_addr, s.remote_addr);
    hw::set(raw, w::rkey, s.rkey);
    if (atomic) {
      hw::set(raw, w::swap_add, s.swap_add);
      hw::set(raw, w::compare, s.compare);
      data = hw::kWqeAtomicDataOff;
    }
  }
  if (inlined) {
    std::copy(s.inline_data.begin(), s.inline_data.end(),
              raw.begin() + static_cast<std::ptrdiff_t>(data));
  } else {
    put_sges(raw.subspan(data), s.sges);
  }
  const std::uint32_t index = sq_pi;
  sq_pi = (sq_pi + 1) & 0xffffff;
  return index;
}

void Qp::post_recv(std::uint64_t wr_id, const std::vector<Piece>& sges) {
  const std::uint64_t offset = std::uint64_t{rq_pi & ((1u << o.rq_log) - 1)} << o.rq_stride_log;
  put_rqe(node->mem.at(slot(rq_pages, rq, offset), std::size_t{1} << o.rq_stride_log), wr_id, rq_pi,
          sges);
  rq_pi = (rq_pi + 1) & 0xffffff;
}

void Qp::ring() { node->doorbell(o.page, hw::DbKind::kSq, qpn, sq_pi); }
void Qp::ring_recv() { node->doorbell(o.page, hw::DbKind::kRq, qpn, rq_pi); }

void Srq::post(std::uint64_t wr_id, const std::vector<Piece>& sges) {
  const std::uint64_t offset = std::uint64_t{pi & ((1u << log) - 1)} << stride_log;
  put_rqe(node->mem.at(ring + offset, std::size_t{1} << stride_log), wr_id, pi, sges);
  pi = (pi + 1) & 0xffffff;
  node->doorbell(page, hw::DbKind::kSrq, number, pi);
}

}  // namespace ordma::bench
