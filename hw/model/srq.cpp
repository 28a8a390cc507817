// SPDX-License-Identifier: BSD-2-Clause
#include "srq.hpp"

#include <algorithm>

#include "nic.hpp"

namespace ordma::twin {

void SharedQueues::check_limit(Srq& srq) {
  if (srq.limit == 0 || seq_sub(srq.ring.pi, srq.ci) >= srq.limit) return;
  srq.limit = 0;
  nic_.events.raise({.type = hw::EventType::kSrqLimit, .number = srq.number});
}

bool ReceiveQueues::load(RecvWqe& wqe, std::span<const std::byte> raw,
                         std::uint32_t index) const {
  wqe.wr_id = hw::get(raw, hw::rqe::wr_id);
  wqe.index = static_cast<std::uint16_t>(index);
  wqe.num_sge = static_cast<std::uint8_t>(hw::get(raw, hw::rqe::num_sge));
  wqe.capacity = wqe.filled = 0;
  wqe.cursor = {};
  wqe.active = true;
  const bool fresh = hw::get(raw, hw::rqe::index) == (index & hw::mask(hw::rqe::index.width));
  const std::size_t room = (raw.size() - hw::kRqeDataOff) / hw::sge::kBytes;
  if (!fresh || wqe.num_sge > room || wqe.num_sge > nic_.limits().max_sge ||
      wqe.num_sge > wqe.sges.size()) {
    return false;
  }
  for (unsigned i = 0; i < wqe.num_sge; ++i) {
    const auto sge = raw.subspan(hw::kRqeDataOff + i * hw::sge::kBytes, hw::sge::kBytes);
    wqe.sges[i] = {hw::get(sge, hw::sge::addr),
                   static_cast<std::uint32_t>(hw::get(sge, hw::sge::length)),
                   static_cast<std::uint32_t>(hw::get(sge, hw::sge::lkey))};
    wqe.capacity += wqe.sges[i].length;
  }
  return true;
}

TakeResult ReceiveQueues::take(Qp& qp) {
  nic_.spend(Cost::kFetch);
  if (qp.srq != nullptr) return take_shared(qp, *qp.srq);
  RecvSide& r = qp.r;
  if (!qp.rq.exists || r.ci == qp.rq.pi) return TakeResult::kNone;
  std::array<std::byte, std::size_t{1} << hw::kRqStrideLogMax> raw;
  const auto bytes = std::span(raw).first(qp.rq.stride());
  const std::uint32_t index = r.ci;
  if (!nic_.memory.read_queue(qp.rq.buf, qp.rq.offset(index), bytes)) return TakeResult::kBad;
  r.ci = seq_add(r.ci, 1);
  return load(r.wqe, bytes, index) ? TakeResult::kOk : TakeResult::kBad;
}

TakeResult ReceiveQueues::take_shared(Qp& qp, Srq& srq) {
  if (srq.error || srq.ci == srq.ring.pi) return TakeResult::kNone;
  std::array<std::byte, std::size_t{1} << hw::kRqStrideLogMax> raw;
  const auto bytes = std::span(raw).first(srq.ring.stride());
  const std::uint32_t index = srq.ci;
  bool ok = nic_.memory.read_queue(srq.ring.buf, srq.ring.offset(index), bytes);
  if (ok) {
    srq.ci = seq_add(srq.ci, 1);
    hw::srq_record::Bytes record{};
    hw::set(record, hw::srq_record::consumed, srq.ci);
    hw::set(record, hw::srq_record::count, srq.ci);
    // Before the CQE: who sees the completion may post into the slot.
    ok = nic_.host.write(srq.record, record, WriteKind::kRecord) &&
         load(qp.r.wqe, bytes, index);
    nic_.srqs.check_limit(srq);
  }
  if (ok) return TakeResult::kOk;
  srq.error = true;
  nic_.events.raise({.type = hw::EventType::kSrqError, .number = srq.number});
  return TakeResult::kBad;
}

Fault ReceiveQueues::scatter(const Qp& qp, RecvWqe& wqe, std::span<const std::byte> src) {
  // A shared queue's buffers belong to its own protection domain.
  const std::uint32_t pd = qp.srq != nullptr ? qp.srq->pd : qp.pd;
  const Rights rights{pd, access_bit(hw::Access::kLocalWrite), qp.kernel()};
  wqe.filled += src.size();
  while (!src.empty()) {
    if (wqe.cursor.sge >= wqe.num_sge) return Fault::kRange;
    const Sge& sge = wqe.sges[wqe.cursor.sge];
    const std::size_t n = std::min<std::size_t>(sge.length - wqe.cursor.offset, src.size());
    if (n != 0) {
      nic_.spend(Cost::kDma);
      const Fault fault =
          nic_.memory.write(sge.lkey, rights, sge.addr + wqe.cursor.offset, src.first(n));
      if (fault != Fault::kNone) return fault;
    }
    src = src.subspan(n);
    wqe.cursor.offset += static_cast<std::uint32_t>(n);
    if (wqe.cursor.offset == sge.length) wqe.cursor = {wqe.cursor.sge + 1, 0};
  }
  return Fault::kNone;
}

}  // namespace ordma::twin
