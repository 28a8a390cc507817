// SPDX-License-Identifier: BSD-2-Clause
#include "qp.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "nic.hpp"

namespace ordma::twin {
namespace {

namespace q = hw::qpc;
using State = hw::QpState;

inline constexpr std::uint8_t kMtuLogMin = 8;
inline constexpr std::uint8_t kMtuLogMax = 12;
inline constexpr std::uint64_t kRingPageLogMin = 12;
inline constexpr std::uint64_t kLogLogMax = 15;

// Bytes that RoCEv2 puts around a payload inside the Ethernet frame, at most: what a request with
// RETH and immediate needs over IPv6.
inline constexpr std::uint32_t kOverhead = hw::ipv6::kBytes + hw::udp::kBytes + hw::bth::kBytes +
                                           hw::reth::kBytes + hw::immdt::kBytes + 4;
// What the kernel reckons with when it derives the path MTU from the interface's.
inline constexpr std::uint32_t kKernelOverhead = 96;

bool may_change(hw::QpType type, State from, State to) {
  if (to == State::kReset || to == State::kErr) return true;
  switch (to) {
    case State::kInit: return from == State::kReset || from == State::kInit;
    case State::kRtr: return from == State::kInit;
    case State::kRts:
      return from == State::kRtr || from == State::kRts || from == State::kSqd ||
             (from == State::kSqe && type != hw::QpType::kRc);
    case State::kSqd: return from == State::kRts || from == State::kSqd;
    default: return false;
  }
}

// What QP_MODIFY may not change.
bool same_identity(const Qp& a, const Qp& b) {
  const auto same_ring = [](const WorkRing& x, const WorkRing& y) {
    return x.exists == y.exists && x.log == y.log && x.stride_log == y.stride_log &&
           x.buf.addr == y.buf.addr && x.buf.level == y.buf.level &&
           x.buf.page_log == y.buf.page_log;
  };
  return a.type == b.type && a.uctx == b.uctx && a.pd == b.pd && a.scq == b.scq &&
         a.rcq == b.rcq && a.srq == b.srq && a.log_log == b.log_log && a.log_addr == b.log_addr &&
         same_ring(a.sq, b.sq) && same_ring(a.rq, b.rq);
}

bool load_ring(WorkRing& ring, std::uint64_t addr, std::uint64_t log, std::uint64_t stride_log,
               std::uint64_t page_log, std::uint64_t level, std::uint64_t stride_min,
               std::uint32_t max_wr) {
  ring = WorkRing{};
  if (stride_log == 0) return true;
  if (stride_log < stride_min || stride_log > hw::kSqStrideLogMax || log >= hw::kIndexBits - 1 ||
      (std::uint64_t{1} << log) > max_wr) {
    return false;
  }
  ring.exists = true;
  ring.log = static_cast<std::uint8_t>(log);
  ring.stride_log = static_cast<std::uint8_t>(stride_log);
  return set_queue_buf(ring.buf, addr, level, page_log, std::uint64_t{1} << (log + stride_log));
}

}  // namespace

void QpTable::reset() {
  for (auto& qp : qps_) {
    if (qp != nullptr) destroy(*qp);
  }
}

bool QpTable::load_rings(Qp& qp, const Image& im) const {
  const auto get = [&](hw::Field f) { return hw::get(im, f); };
  qp.type = static_cast<hw::QpType>(get(q::type_));
  qp.uctx = static_cast<std::uint16_t>(get(q::uctx));
  qp.pd = static_cast<std::uint32_t>(get(q::pd));
  qp.scq = nic_.cqs.find(static_cast<std::uint32_t>(get(q::scqn)));
  qp.rcq = nic_.cqs.find(static_cast<std::uint32_t>(get(q::rcqn)));
  const bool has_srq = get(q::has_srq) != 0;
  qp.srq = has_srq ? nic_.srqs.find(static_cast<std::uint32_t>(get(q::srqn))) : nullptr;
  qp.log_log = static_cast<std::uint8_t>(get(q::log_log));
  qp.log_addr = get(q::log_addr);
  if (qp.scq == nullptr || qp.rcq == nullptr || (has_srq && qp.srq == nullptr) ||
      qp.uctx >= nic_.limits().max_uctx) {
    return false;
  }
  switch (qp.type) {
    case hw::QpType::kRc:
      // Only what can be sent again needs an order log.
      if (qp.log_addr == 0 || qp.log_addr % hw::log_entry::kBytes != 0 ||
          qp.log_log > kLogLogMax) {
        return false;
      }
      break;
    case hw::QpType::kUc:
    case hw::QpType::kUd: break;
    case hw::QpType::kGsi:
    case hw::QpType::kEth:
      if (!qp.kernel()) return false;
      break;
    default: return false;
  }
  const std::uint32_t max_wr = nic_.limits().max_wr;
  return load_ring(qp.sq, get(q::sq_addr), get(q::sq_log), get(q::sq_stride_log),
                   get(q::sq_page_log), get(q::sq_level), hw::kSqStrideLogMin, max_wr) &&
         load_ring(qp.rq, get(q::rq_addr), get(q::rq_log), get(q::rq_stride_log),
                   get(q::rq_page_log), get(q::rq_level), hw::kRqStrideLogMin, max_wr) &&
         !(has_srq && qp.rq.exists);
}

bool QpTable::load_attr(const Qp& qp, QpAttr& a, const Image& im) const {
  const auto get = [&](hw::Field f) { return hw::get(im, f); };
  const auto u8 = [&](hw::Field f) { return static_cast<std::uint8_t>(hw::get(im, f)); };
  const auto u32 = [&](hw::Field f) { return static_cast<std::uint32_t>(hw::get(im, f)); };
  a.access = u8(q::access);
  a.dest_qpn = u32(q::dest_qpn);
  a.mtu_log = u8(q::mtu_log);
  a.sgid_index = u8(q::sgid_index);
  a.hop_limit = u8(q::hop_limit);
  a.tclass = u8(q::tclass);
  a.sl = u8(q::sl);
  a.dmac = get(q::dmac);
  a.sport = static_cast<std::uint16_t>(get(q::sport));
  const auto gid = hw::raw(std::span<const std::byte>(im), q::dgid);
  std::copy(gid.begin(), gid.end(), a.dgid.begin());
  a.flow_label = u32(q::flow_label);
  a.qkey = u32(q::qkey);
  a.sq_psn = u32(q::sq_psn);
  a.rq_psn = u32(q::rq_psn);
  a.max_rd_atomic = u8(q::max_rd_atomic);
  a.max_dest_rd_atomic = u8(q::max_dest_rd_atomic);
  a.min_rnr_timer = u8(q::min_rnr_timer);
  a.atomic_addr = get(q::atomic_addr);
  a.silence = get(q::silence);
  if (qp.datagram() && a.mtu_log == 0) {
    // A datagram QP has no path MTU: the port's counts.
    a.mtu_log = kMtuLogMax;
    while (a.mtu_log > kMtuLogMin &&
           (1u << a.mtu_log) + kKernelOverhead > nic_.config.port_mtu) {
      --a.mtu_log;
    }
  }
  if (qp.type == hw::QpType::kGsi) a.qkey = hw::kGsiQkey;
  return a.max_rd_atomic <= nic_.limits().max_rd_atomic &&
         a.max_dest_rd_atomic <= nic_.limits().max_rd_atomic;
}

bool QpTable::check_path(const Qp& qp, const QpAttr& a) const {
  if (qp.type == hw::QpType::kEth) return true;
  if (a.mtu_log < kMtuLogMin || a.mtu_log > kMtuLogMax ||
      (1u << a.mtu_log) + kOverhead > nic_.config.port_mtu) {
    return false;
  }
  if (qp.datagram()) return true;
  if (a.sgid_index >= nic_.gids.size() || !nic_.gids[a.sgid_index].valid ||
      nic_.gids[a.sgid_index].ipv4 != is_v4_mapped(a.dgid) || is_multicast(a.dgid)) {
    return false;
  }
  const bool atomics = qp.type == hw::QpType::kRc && a.max_dest_rd_atomic != 0 &&
                       (a.access & access_bit(hw::Access::kRemoteAtomic)) != 0;
  return !atomics || (a.atomic_addr != 0 && a.atomic_addr % hw::kAtomicResBytes == 0);
}

hw::CmdStatus QpTable::create(std::uint32_t qpn, const Image& image) {
  const std::uint32_t index = qpn & ((1u << hw::kQpnIndexBits) - 1);
  auto qp = std::make_unique<Qp>();
  // QPNs 0 and 1 are fixed and 0xffffff means multicast on the wire.
  const bool gsi = qpn == hw::kGsiQpn;
  if (index >= qps_.size() || qpn >> hw::kPsnBits != 0 || qpn == hw::kMcastQpn ||
      (!gsi && index <= hw::kGsiQpn) || hw::get(image, q::qpn) != qpn) {
    return hw::CmdStatus::kBadParam;
  }
  if (qps_[index] != nullptr) return hw::CmdStatus::kExists;
  qp->qpn = qpn;
  qp->index = index;
  if (!load_rings(*qp, image) || !load_attr(*qp, qp->attr, image) ||
      gsi != (qp->type == hw::QpType::kGsi)) {
    return hw::CmdStatus::kBadParam;
  }
  if (qp->type == hw::QpType::kEth) {
    if (nic_.eth.qp != nullptr) return hw::CmdStatus::kExists;
    nic_.eth.qp = qp.get();
  }
  if (qp->type == hw::QpType::kRc) qp->s.msgs.resize(std::size_t{1} << qp->log_log);
  ++qp->scq->users;
  ++qp->rcq->users;
  if (qp->srq != nullptr) ++qp->srq->users;
  qps_[index] = std::move(qp);
  return hw::CmdStatus::kOk;
}

hw::CmdStatus QpTable::modify(Qp& qp, State state, bool init_rq, bool init_sq,
                              const Image& image) {
  if (state > State::kErr || hw::get(image, q::qpn) != qp.qpn) return hw::CmdStatus::kBadParam;
  if (!may_change(qp.type, qp.state, state)) return hw::CmdStatus::kBadState;
  Qp next;
  QpAttr attr;
  next.qpn = qp.qpn;
  if (!load_rings(next, image) || !same_identity(qp, next) || !load_attr(qp, attr, image)) {
    return hw::CmdStatus::kBadParam;
  }
  const bool path = state == State::kRtr || state == State::kRts || state == State::kSqd;
  if (path && !check_path(qp, attr)) return hw::CmdStatus::kBadParam;
  const State from = qp.state;
  // A PSN may only be loaded where no packet can have used it.
  if ((init_rq && state != State::kRtr) ||
      (init_sq && !(from == State::kRtr && state == State::kRts))) {
    return hw::CmdStatus::kBadParam;
  }
  // A changed destination takes effect with the next packet.
  qp.attr = attr;
  qp.headers.size = 0;
  if (state == State::kReset) {
    clear(qp);
  } else if (state == State::kErr) {
    enter_error(qp);
  } else {
    qp.state = state;
    if (state == State::kRtr) init_receive(qp, init_rq);
    if (from == State::kRtr && state == State::kRts) init_send(qp, init_sq);
    if (from == State::kSqe) nic_.requester.leave_sqe(qp);
    if (state == State::kSqd && from == State::kRts) nic_.requester.start_drain(qp);
    if (state == State::kRts) {
      qp.sticky = static_cast<std::uint8_t>(qp.sticky & ~kStickyDrained);
      qp.s.draining = false;
      nic_.requester.accept(qp);
    }
  }
  return hw::CmdStatus::kOk;
}

void QpTable::init_receive(Qp& qp, bool load_psn) {
  if (load_psn) qp.r.epsn = qp.attr.rq_psn;
  qp.r.msn = 0;
  qp.r.nak_sent = false;
  qp.r.in = InMsg::kNone;
  qp.r.has_read = false;
  qp.r.atomics = 0;
  if (qp.type != hw::QpType::kRc) return;
  // An operation may leave an ACK behind it, and a NAK closes the row.
  const std::uint32_t depth = 2u * qp.attr.max_dest_rd_atomic + 2;
  qp.r.queue.assign(std::bit_ceil(depth), Response{});
  qp.r.q_head = qp.r.q_count = qp.r.q_ops = 0;
}

void QpTable::init_send(Qp& qp, bool load_psn) {
  SendSide& s = qp.s;
  if (load_psn) s.una = s.tx_psn = s.max_psn = qp.attr.sq_psn;
  s.progress_time = nic_.now;
  if (qp.type != hw::QpType::kRc) return;
  s.reads.assign(std::bit_ceil(std::max(1u, unsigned{qp.attr.max_rd_atomic})), ReadOp{});
  s.read_sges.assign(s.reads.size() * kSgeMax, Sge{});
  s.rd_head = s.rd_count = s.rd_issued = 0;
}

void QpTable::unlink(Qp& qp) {
  nic_.requester.unlink(qp);
  nic_.responder.discard(qp);
}

void QpTable::clear(Qp& qp) {
  unlink(qp);
  std::vector<SentMsg> msgs = std::move(qp.s.msgs);
  qp.s = SendSide{};
  qp.s.msgs = std::move(msgs);
  qp.r = RecvSide{};
  // A queue never repeats an index, because its doorbell slot is polled for change.
  qp.s.ci = qp.s.accepted = qp.sq.pi;
  qp.r.ci = qp.rq.pi;
  qp.sticky = 0;
  qp.state = State::kReset;
}

void QpTable::destroy(Qp& qp) {
  unlink(qp);
  nic_.mcast.forget(qp);
  if (nic_.eth.qp == &qp) nic_.eth.qp = nullptr;
  --qp.scq->users;
  --qp.rcq->users;
  if (qp.srq != nullptr) --qp.srq->users;
  qps_[qp.index].reset();
}

void QpTable::enter_error(Qp& qp, bool keep_responses) {
  if (qp.state == State::kErr) return;
  qp.state = State::kErr;
  qp.r.in = InMsg::kNone;
  if (!keep_responses) nic_.responder.discard(qp);
  nic_.requester.abandon(qp);
  nic_.requester.kick(qp);
}

void QpTable::enter_sqe(Qp& qp) {
  qp.state = State::kSqe;
  nic_.requester.abandon(qp);
  nic_.requester.kick(qp);
}

const HeaderTemplate* QpTable::headers(Qp& qp) {
  if (qp.headers.size != 0 && qp.headers_gid == nic_.gid_generation) return &qp.headers;
  const QpAttr& a = qp.attr;
  const GidEntry& source = nic_.gids[a.sgid_index];
  if (!source.valid || source.ipv4 != is_v4_mapped(a.dgid)) return nullptr;
  qp.headers = make_template({.smac = source.mac, .dmac = a.dmac, .sgid = source.gid,
                              .dgid = a.dgid, .ipv4 = source.ipv4, .vlan = source.vlan,
                              .hop_limit = a.hop_limit, .tclass = a.tclass, .sl = a.sl,
                              .flow_label = a.flow_label,
                              .sport = a.sport != 0 ? a.sport
                                                    : derive_sport(qp.qpn, a.dest_qpn)});
  qp.headers_gid = nic_.gid_generation;
  return &qp.headers;
}

void QpTable::query(const Qp& qp, hw::progress::Bytes& out) const {
  namespace p = hw::progress;
  const SendSide& s = qp.s;
  out = {};
  hw::set(out, p::una_psn, s.una);
  hw::set(out, p::next_psn, s.max_psn);
  hw::set(out, p::epsn, qp.r.epsn);
  hw::set(out, p::msn, qp.r.msn);
  hw::set(out, p::log_acked, s.log_acked);
  hw::set(out, p::log_sent, s.log_sent);
  hw::set(out, p::log_accepted, s.log_accepted);
  hw::set(out, p::state, raw_value(qp.state));
  hw::set(out, p::frozen, s.frozen);
  hw::set(out, p::draining, s.draining && s.log_acked != s.log_sent);
  hw::set(out, p::sq_pi, qp.sq.pi);
  hw::set(out, p::sq_ci, s.ci);
  hw::set(out, p::rq_pi, qp.rq.pi);
  hw::set(out, p::rq_ci, qp.r.ci);
  hw::set(out, p::progress_time, s.progress_time);
}

}  // namespace ordma::twin
