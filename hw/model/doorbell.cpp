// SPDX-License-Identifier: BSD-2-Clause
#include "doorbell.hpp"

#include "nic.hpp"

namespace ordma::twin {
namespace {

// A token page without a word for this long is idle and gets its record.
inline constexpr std::uint64_t kPageIdleNs = 10'000;

// A producer index may move forward, and never further than the ring has free slots.
bool in_ring(const WorkRing& ring, std::uint32_t index, std::uint32_t consumed) {
  return seq_sub(index, ring.pi) <= ring.size() && seq_sub(index, consumed) <= ring.size();
}

}  // namespace

Doorbells::Doorbells(Nic& nic, std::uint32_t max_page) : nic_(nic), pages_(max_page) {
  for (std::uint32_t i = 0; i < max_page; ++i) pages_[i].number = i;
}

void Doorbells::reset() {
  for (Page& page : pages_) {
    if (page.open && page.number != hw::kDriverPage) close(page);
  }
  Page& driver = pages_[hw::kDriverPage];
  unreported_.remove(driver);
  const std::uint32_t number = driver.number;
  driver = Page{};
  driver.number = number;
  driver.open = true;
  driver.uctx = hw::kKernelUctx;
}

void Doorbells::open(Page& page, std::uint16_t uctx, bool token, std::uint64_t record) {
  const std::uint32_t number = page.number;
  page = Page{};
  page.number = number;
  page.open = true;
  page.token = token;
  page.uctx = uctx;
  page.record = record;
  nic_.host.page_changed(number, true, token);
}

void Doorbells::close(Page& page) {
  unreported_.remove(page);
  const bool token = page.token;
  page.open = false;
  nic_.host.page_changed(page.number, false, token);
}

void Doorbells::take(std::uint32_t number, std::uint32_t offset, std::uint64_t word,
                     std::uint8_t strobes) {
  nic_.count(hw::Counter::kDbWords);
  Page* p = page(number);
  if (p == nullptr || !p->open) {
    nic_.count(hw::Counter::kDbRefused);
    return;
  }
  ++p->consumed;
  hw::DbErr why = check(*p, offset, word, strobes);
  if (why == hw::DbErr::kNone) why = ring(*p, word);
  if (why != hw::DbErr::kNone) return refuse(*p, word, why);
  if (!p->token) return;
  p->last_word_ns = nic_.now;
  if (p->consumed - p->reported >= hw::kPageCreditBatch) {
    write_record(*p);
  } else {
    // To the end of the list: it stays sorted by last word.
    unreported_.remove(*p);
    unreported_.push(*p);
  }
}

hw::DbErr Doorbells::check(const Page& page, std::uint32_t offset, std::uint64_t word,
                           std::uint8_t strobes) const {
  using enum hw::DbKind;
  if (strobes != 0xff || offset % 8 != 0 || offset >= hw::kPageSlots * 8) {
    return hw::DbErr::kMalformed;
  }
  const auto lo = hw::wget(word, hw::db::lap_lo);
  const auto hi = hw::wget(word, hw::db::lap_hi);
  if (lo != hi || (!page.token && lo != 0)) return hw::DbErr::kMalformed;
  bool allowed = false;
  switch (static_cast<hw::DbKind>(hw::wget(word, hw::db::kind))) {
    case kSq: allowed = true; break;
    case kRq:
    case kSrq:
    case kCqArm: allowed = !page.token; break;
    case kCmd:
    case kRcmd: allowed = page.number == hw::kDriverPage; break;
    case kToken: allowed = page.token; break;
    case kInvalid: break;
  }
  return allowed ? hw::DbErr::kNone : hw::DbErr::kMalformed;
}

hw::DbErr Doorbells::ring(const Page& page, std::uint64_t word) {
  using enum hw::DbKind;
  const auto number = static_cast<std::uint32_t>(hw::wget(word, hw::db::number));
  const auto index = static_cast<std::uint32_t>(hw::wget(word, hw::db::index));
  switch (static_cast<hw::DbKind>(hw::wget(word, hw::db::kind))) {
    case kSq: return ring_sq(page, number, index);
    case kRq: return ring_rq(page, number, index);
    case kSrq: return ring_srq(page, number, index);
    case kCqArm: return ring_cq(page, number, word);
    case kCmd: return nic_.commands.ring(index, false);
    case kRcmd: return nic_.commands.ring(index, true);
    case kToken:
      // No token context exists in this engine.
      nic_.count(hw::Counter::kTokenRefused);
      return hw::DbErr::kNoObject;
    case kInvalid: break;
  }
  return hw::DbErr::kMalformed;
}

hw::DbErr Doorbells::ring_sq(const Page& page, std::uint32_t number, std::uint32_t index) {
  using enum hw::QpState;
  Qp* qp = nic_.qps.find(number);
  if (qp == nullptr || !qp->sq.exists) return hw::DbErr::kNoObject;
  if (qp->uctx != page.uctx) return hw::DbErr::kNotOwner;
  if (qp->state == kReset) {
    // Indices outlive the reset: whatever the queue last said is where it goes on.
    qp->sq.pi = qp->s.ci = qp->s.accepted = index;
    return hw::DbErr::kNone;
  }
  if (qp->state < kRts) return hw::DbErr::kState;
  if (!in_ring(qp->sq, index, qp->s.ci)) return hw::DbErr::kBadIndex;
  qp->sq.pi = index;
  nic_.requester.accept(*qp);
  return hw::DbErr::kNone;
}

hw::DbErr Doorbells::ring_rq(const Page& page, std::uint32_t number, std::uint32_t index) {
  Qp* qp = nic_.qps.find(number);
  if (qp == nullptr || !qp->rq.exists) return hw::DbErr::kNoObject;
  if (qp->uctx != page.uctx) return hw::DbErr::kNotOwner;
  if (qp->state == hw::QpState::kReset) {
    qp->rq.pi = qp->r.ci = index;
    return hw::DbErr::kNone;
  }
  if (!in_ring(qp->rq, index, qp->r.ci)) return hw::DbErr::kBadIndex;
  qp->rq.pi = index;
  if (qp->state == hw::QpState::kErr) nic_.requester.kick(*qp);
  return hw::DbErr::kNone;
}

hw::DbErr Doorbells::ring_srq(const Page& page, std::uint32_t number, std::uint32_t index) {
  Srq* srq = nic_.srqs.find(number);
  if (srq == nullptr) return hw::DbErr::kNoObject;
  if (srq->uctx != page.uctx) return hw::DbErr::kNotOwner;
  if (!in_ring(srq->ring, index, srq->ci)) return hw::DbErr::kBadIndex;
  srq->ring.pi = index;
  return hw::DbErr::kNone;
}

hw::DbErr Doorbells::ring_cq(const Page& page, std::uint32_t number, std::uint64_t word) {
  Cq* cq = nic_.cqs.find(number);
  if (cq == nullptr) return hw::DbErr::kNoObject;
  if (cq->uctx != page.uctx) return hw::DbErr::kNotOwner;
  const auto ci = static_cast<std::uint32_t>(hw::wget(word, hw::db::index));
  if (seq_sub(cq->pi, ci) > cq->size()) return hw::DbErr::kBadIndex;
  nic_.cqs.arm(*cq, word);
  return hw::DbErr::kNone;
}

void Doorbells::refuse(Page& page, std::uint64_t word, hw::DbErr why) {
  nic_.count(hw::Counter::kDbRefused);
  ++page.errors;
  page.bad_word = word;
  page.reason = why;
  write_record(page);
  if (page.error_pending && !nic_.events.passed(page.error_event)) return;
  page.error_pending = true;
  page.error_event = nic_.events.raise({.type = hw::EventType::kPageError,
                                        .code = static_cast<std::uint8_t>(why),
                                        .number = page.number});
}

void Doorbells::write_record(Page& page) {
  unreported_.remove(page);
  page.reported = page.consumed;
  if (page.record == 0) return;
  hw::page_record::Bytes raw{};
  hw::set(raw, hw::page_record::consumed, page.consumed);
  hw::set(raw, hw::page_record::errors, page.errors);
  hw::set(raw, hw::page_record::bad_word, page.bad_word);
  hw::set(raw, hw::page_record::reason, raw_value(page.reason));
  if (!nic_.host.write(page.record, raw, WriteKind::kRecord)) nic_.fail(hw::Fatal::kDma);
}

void Doorbells::sweep() {
  while (Page* page = unreported_.front()) {
    if (nic_.now - page->last_word_ns < kPageIdleNs) break;
    write_record(*page);
  }
}

std::uint64_t Doorbells::next_timer() const {
  const Page* page = unreported_.front();
  return page == nullptr ? kNever : page->last_word_ns + kPageIdleNs;
}

}  // namespace ordma::twin
