// SPDX-License-Identifier: BSD-2-Clause
#include "command.hpp"

#include <algorithm>

#include "nic.hpp"

namespace ordma::twin {
namespace {

inline constexpr unsigned kCommandsPerStep = 32;
inline constexpr std::uint64_t kRingLogMax = 16;
inline constexpr std::uint64_t kPageLogMin = 12;
inline constexpr std::uint64_t kPageLogMax = 31;
inline constexpr std::uint64_t kEntryBytes = 8;

}  // namespace

bool set_queue_buf(QueueBuf& buf, std::uint64_t addr, std::uint64_t level, std::uint64_t page_log,
                   std::uint64_t bytes) {
  const bool direct = level == raw_value(hw::BufLevel::kDirect);
  if (level > raw_value(hw::BufLevel::kTree)) return false;
  // Entries are naturally aligned, so none crosses a page.
  if (addr % (direct ? hw::kWqeUnit : kEntryBytes) != 0 || addr == 0) return false;
  if (!direct && (page_log < kPageLogMin || page_log > kPageLogMax)) return false;
  buf = QueueBuf{};
  buf.addr = addr;
  buf.level = static_cast<hw::BufLevel>(level);
  buf.page_log = static_cast<std::uint8_t>(direct ? 0 : page_log);
  buf.pages = direct ? 1 : static_cast<std::uint32_t>(((bytes - 1) >> page_log) + 1);
  return true;
}

bool Commands::start() {
  const Registers& r = nic_.regs;
  if (r.cmd_log > kRingLogMax || r.rcmd_log > kRingLogMax || r.eq_log > kRingLogMax + 8) {
    return false;
  }
  cmd_ = {r.cmd_base, static_cast<std::uint32_t>(r.cmd_log), 0, 0};
  rcmd_ = {r.rcmd_base, static_cast<std::uint32_t>(r.rcmd_log), 0, 0};
  rsp_base_ = r.cmd_rsp;
  nic_.events.start(r.eq_base, static_cast<std::uint32_t>(r.eq_log));
  return true;
}

hw::DbErr Commands::ring(std::uint32_t index, bool recovery) {
  Ring& r = recovery ? rcmd_ : cmd_;
  const std::uint32_t size = 1u << r.log;
  if (seq_sub(index, r.pi) > size || seq_sub(index, r.ci) > size) return hw::DbErr::kBadIndex;
  r.pi = index;
  return hw::DbErr::kNone;
}

bool Commands::fetch(Ring& r, Bytes& cmd) {
  const std::uint64_t slot = r.ci & ((1u << r.log) - 1);
  if (!nic_.host.read(r.base + slot * hw::cmd::kBytes, cmd)) {
    nic_.fail(hw::Fatal::kDma);
    return false;
  }
  if (hw::get(cmd, hw::cmd::seq) != (r.ci & hw::mask(hw::cmd::seq.width))) {
    nic_.fail(hw::Fatal::kCmd);
    return false;
  }
  return true;
}

bool Commands::process() {
  Bytes cmd;
  bool any = false;
  for (unsigned n = 0; n < kCommandsPerStep && !nic_.fatal(); ++n) {
    // The recovery ring is emptied before a next command is taken: no QP is reset or recreated past
    // its recovery command.
    while (rcmd_.ci != rcmd_.pi) {
      if (!fetch(rcmd_, cmd)) return true;
      execute_recovery(cmd);
      rcmd_.ci = seq_add(rcmd_.ci, 1);
      any = true;
    }
    if (cmd_.ci == cmd_.pi) break;
    if (!fetch(cmd_, cmd)) return true;
    const Result result = execute(cmd);
    if (nic_.fatal()) return true;
    respond(cmd_.ci, cmd, result);
    cmd_.ci = seq_add(cmd_.ci, 1);
    any = true;
  }
  return any;
}

void Commands::respond(std::uint32_t index, const Bytes& cmd, const Result& result) {
  hw::rsp::Bytes raw{};
  const std::uint64_t seq = hw::get(cmd, hw::cmd::seq);
  hw::set(raw, hw::rsp::status, raw_value(result.status));
  hw::set(raw, hw::rsp::seq, seq);
  hw::set(raw, hw::rsp::result0, result.result0);
  hw::set(raw, hw::rsp::phase, ((index >> cmd_.log) & 1) == 0);
  const std::uint64_t slot = index & ((1u << cmd_.log) - 1);
  if (!nic_.host.write(rsp_base_ + slot * hw::rsp::kBytes, raw, WriteKind::kResponse)) {
    nic_.fail(hw::Fatal::kDma);
    return;
  }
  if (hw::get(cmd, hw::cmd::irq) != 0) {
    nic_.events.raise({.type = hw::EventType::kCmdDone,
                       .number = static_cast<std::uint32_t>(hw::get(cmd, hw::cmd::opcode)),
                       .log_index = static_cast<std::uint32_t>(seq)});
  }
}

Commands::Result Commands::execute(const Bytes& cmd) {
  using enum hw::CmdOp;
  const auto number = static_cast<std::uint32_t>(hw::get(cmd, hw::cmd::number));
  switch (static_cast<hw::CmdOp>(hw::get(cmd, hw::cmd::opcode))) {
    case kNop: return {};
    case kPageOpen: return page_open(number, cmd);
    case kPageClose: return page_close(number);
    case kMrCreate: return mr_create(number, cmd);
    case kMrDestroy: return mr_destroy(number);
    case kCqCreate: return cq_create(number, cmd);
    case kCqResize: return cq_resize(number, cmd);
    case kCqDestroy: return cq_destroy(number);
    case kSrqCreate: return srq_create(number, cmd);
    case kSrqLimit: return srq_limit(number, cmd);
    case kSrqDestroy: return srq_destroy(number);
    case kQpCreate: return qp_create(number, cmd);
    case kQpModify: return qp_modify(number, cmd);
    case kQpDestroy: return qp_destroy(number);
    case kQpQuery: return qp_query(number, cmd);
    case kGidSet: return gid_set(number, cmd);
    case kMcastAttach: return mcast(number, cmd, true);
    case kMcastDetach: return mcast(number, cmd, false);
    case kCounters: return counters(cmd);
    case kEthFilter: return eth_filter(number, cmd);
    default: return hw::CmdStatus::kUnsupported;
  }
}

void Commands::execute_recovery(const Bytes& cmd) {
  Qp* qp = nic_.qps.find(static_cast<std::uint32_t>(hw::get(cmd, hw::cmd::number)));
  if (qp == nullptr) return;
  const auto get = [&](hw::Field f) { return hw::get(cmd, f); };
  switch (static_cast<hw::CmdOp>(get(hw::cmd::opcode))) {
    case hw::CmdOp::kQpRewind:
      return nic_.requester.rewind(*qp, static_cast<std::uint32_t>(get(hw::cmd_rewind::log_index)),
                                   static_cast<std::uint32_t>(get(hw::cmd_rewind::psn)),
                                   get(hw::cmd_rewind::not_before));
    case hw::CmdOp::kQpFail:
      return nic_.requester.fail(*qp, static_cast<std::uint32_t>(get(hw::cmd_fail::psn)),
                                 static_cast<hw::WcStatus>(get(hw::cmd_fail::status)),
                                 static_cast<std::uint8_t>(get(hw::cmd_fail::vendor_err)));
    case hw::CmdOp::kQpSilence:
      return nic_.requester.set_silence(*qp, get(hw::cmd_silence::threshold));
    default: return;
  }
}

Commands::Result Commands::page_open(std::uint32_t number, const Bytes& cmd) {
  Page* page = nic_.doorbells.page(number);
  const auto uctx = hw::get(cmd, hw::cmd_page::uctx);
  const auto record = hw::get(cmd, hw::cmd_page::record);
  if (page == nullptr || number == hw::kDriverPage || uctx >= nic_.limits().max_uctx ||
      record % kEntryBytes != 0) {
    return hw::CmdStatus::kBadParam;
  }
  if (page->open) return hw::CmdStatus::kExists;
  nic_.doorbells.open(*page, static_cast<std::uint16_t>(uctx),
                      hw::get(cmd, hw::cmd_page::token) != 0, record);
  return {};
}

Commands::Result Commands::page_close(std::uint32_t number) {
  Page* page = nic_.doorbells.page(number);
  if (page == nullptr || number == hw::kDriverPage) return hw::CmdStatus::kBadParam;
  if (!page->open) return hw::CmdStatus::kNoObject;
  nic_.doorbells.close(*page);
  return {};
}

Commands::Result Commands::mr_create(std::uint32_t mkey, const Bytes& cmd) {
  namespace h = hw::cmd_mr;
  const auto get = [&](hw::Field f) { return hw::get(cmd, f); };
  constexpr std::uint64_t kAllAccess =
      access_bit(hw::Access::kLocalWrite) | access_bit(hw::Access::kRemoteWrite) |
      access_bit(hw::Access::kRemoteRead) | access_bit(hw::Access::kRemoteAtomic);
  Mr* slot = nic_.memory.slot(mkey);
  Mr mr;
  mr.key = mkey;
  mr.pd = static_cast<std::uint32_t>(get(h::pd));
  mr.access = static_cast<std::uint8_t>(get(h::access));
  mr.page_log = static_cast<std::uint8_t>(get(h::page_log));
  mr.level = static_cast<hw::BufLevel>(get(h::level));
  mr.iova = get(h::iova);
  mr.length = get(h::length);
  mr.addr = get(h::addr);
  mr.first_off = static_cast<std::uint32_t>(get(h::first_off));
  const bool list = mr.level != hw::BufLevel::kDirect;
  if (slot == nullptr || mkey == hw::kReservedLkey || (mr.access & ~kAllAccess) != 0 ||
      mr.level > hw::BufLevel::kTree || (mr.length != 0 && mr.length - 1 > ~mr.iova)) {
    return hw::CmdStatus::kBadParam;
  }
  if (list && (mr.page_log < kPageLogMin || mr.page_log > kPageLogMax ||
               mr.first_off >> mr.page_log != 0 || mr.addr % kEntryBytes != 0 ||
               mr.length > ~std::uint64_t{mr.first_off})) {
    return hw::CmdStatus::kBadParam;
  }
  if (!list && mr.length != 0 && mr.length - 1 > ~mr.addr) return hw::CmdStatus::kBadParam;
  if (slot->valid) return hw::CmdStatus::kExists;
  nic_.memory.create(*slot, mr);
  return {};
}

Commands::Result Commands::mr_destroy(std::uint32_t mkey) {
  Mr* slot = nic_.memory.slot(mkey);
  if (slot == nullptr) return hw::CmdStatus::kBadParam;
  if (!slot->valid || slot->key != mkey) return hw::CmdStatus::kNoObject;
  nic_.memory.destroy(*slot);
  return {};
}

Commands::Result Commands::cq_create(std::uint32_t number, const Bytes& cmd) {
  namespace h = hw::cmd_cq;
  std::unique_ptr<Cq>* slot = nic_.cqs.slot(number);
  const auto log = hw::get(cmd, h::log);
  const auto uctx = hw::get(cmd, h::uctx);
  const auto record = hw::get(cmd, h::record);
  auto cq = std::make_unique<Cq>();
  if (slot == nullptr || uctx >= nic_.limits().max_uctx ||
      log >= hw::kIndexBits || (std::uint64_t{1} << log) > nic_.limits().max_cqe ||
      record % kEntryBytes != 0 ||
      record == 0 ||
      !set_queue_buf(cq->ring, hw::get(cmd, h::addr), hw::get(cmd, h::level),
                     hw::get(cmd, h::page_log), hw::cqe::kBytes << log)) {
    return hw::CmdStatus::kBadParam;
  }
  if (*slot != nullptr) return hw::CmdStatus::kExists;
  cq->number = number;
  cq->uctx = static_cast<std::uint16_t>(uctx);
  cq->log = static_cast<std::uint8_t>(log);
  cq->vector = static_cast<std::uint8_t>(hw::get(cmd, h::vector_));
  cq->record = record;
  *slot = std::move(cq);
  return {};
}

Commands::Result Commands::cq_resize(std::uint32_t number, const Bytes& cmd) {
  namespace h = hw::cmd_cq;
  Cq* cq = nic_.cqs.find(number);
  if (cq == nullptr) return hw::CmdStatus::kNoObject;
  if (cq->error) return hw::CmdStatus::kBadState;
  const auto log = hw::get(cmd, h::log);
  const auto record = hw::get(cmd, h::record);
  QueueBuf ring;
  if (log >= hw::kIndexBits || (std::uint64_t{1} << log) > nic_.limits().max_cqe ||
      record % kEntryBytes != 0 ||
      record == 0 ||
      !set_queue_buf(ring, hw::get(cmd, h::addr), hw::get(cmd, h::level),
                     hw::get(cmd, h::page_log), hw::cqe::kBytes << log)) {
    return hw::CmdStatus::kBadParam;
  }
  Result result;
  result.result0 = cq->pi;
  cq->ring = ring;
  cq->log = static_cast<std::uint8_t>(log);
  cq->record = record;
  // What the old ring still holds is the provider's to drain; it arms with fire_now meanwhile.
  cq->pi = cq->ci = cq->seen = cq->qualified = 0;
  return result;
}

Commands::Result Commands::cq_destroy(std::uint32_t number) {
  std::unique_ptr<Cq>* slot = nic_.cqs.slot(number);
  if (slot == nullptr || *slot == nullptr) return hw::CmdStatus::kNoObject;
  if ((*slot)->users != 0) return hw::CmdStatus::kBadState;
  nic_.cqs.forget(**slot);
  slot->reset();
  return {};
}

Commands::Result Commands::srq_create(std::uint32_t number, const Bytes& cmd) {
  namespace h = hw::cmd_srq;
  std::unique_ptr<Srq>* slot = nic_.srqs.slot(number);
  const auto log = hw::get(cmd, h::log);
  const auto stride_log = hw::get(cmd, h::stride_log);
  const auto uctx = hw::get(cmd, h::uctx);
  const auto record = hw::get(cmd, h::record);
  const auto limit = hw::get(cmd, h::limit);
  auto srq = std::make_unique<Srq>();
  if (slot == nullptr || uctx >= nic_.limits().max_uctx || log >= hw::kIndexBits ||
      (std::uint64_t{1} << log) > nic_.limits().max_wr || stride_log < hw::kRqStrideLogMin ||
      stride_log > hw::kRqStrideLogMax || record % kEntryBytes != 0 || record == 0 ||
      limit > (std::uint64_t{1} << log) ||
      !set_queue_buf(srq->ring.buf, hw::get(cmd, h::addr), hw::get(cmd, h::level),
                     hw::get(cmd, h::page_log), std::uint64_t{1} << (log + stride_log))) {
    return hw::CmdStatus::kBadParam;
  }
  if (*slot != nullptr) return hw::CmdStatus::kExists;
  srq->number = number;
  srq->uctx = static_cast<std::uint16_t>(uctx);
  srq->pd = static_cast<std::uint32_t>(hw::get(cmd, h::pd));
  srq->ring.exists = true;
  srq->ring.log = static_cast<std::uint8_t>(log);
  srq->ring.stride_log = static_cast<std::uint8_t>(stride_log);
  srq->record = record;
  srq->limit = static_cast<std::uint32_t>(limit);
  *slot = std::move(srq);
  return {};
}

Commands::Result Commands::srq_limit(std::uint32_t number, const Bytes& cmd) {
  Srq* srq = nic_.srqs.find(number);
  if (srq == nullptr) return hw::CmdStatus::kNoObject;
  const auto limit = hw::get(cmd, hw::cmd_srq::limit);
  if (limit > srq->ring.size()) return hw::CmdStatus::kBadParam;
  srq->limit = static_cast<std::uint32_t>(limit);
  nic_.srqs.check_limit(*srq);
  return {};
}

Commands::Result Commands::srq_destroy(std::uint32_t number) {
  std::unique_ptr<Srq>* slot = nic_.srqs.slot(number);
  if (slot == nullptr || *slot == nullptr) return hw::CmdStatus::kNoObject;
  if ((*slot)->users != 0) return hw::CmdStatus::kBadState;
  slot->reset();
  return {};
}

Commands::Result Commands::gid_set(std::uint32_t number, const Bytes& cmd) {
  namespace h = hw::cmd_gid;
  if (number >= nic_.gids.size()) return hw::CmdStatus::kBadParam;
  GidEntry entry;
  entry.valid = hw::get(cmd, h::valid) != 0;
  if (entry.valid) {
    entry.ipv4 = hw::get(cmd, h::ipv4) != 0;
    if (hw::get(cmd, h::has_vlan) != 0) {
      entry.vlan = static_cast<std::uint16_t>(hw::get(cmd, h::vlan));
    }
    entry.mac = hw::get(cmd, h::mac);
    const auto gid = hw::raw(std::span<const std::byte>(cmd), h::gid);
    std::copy(gid.begin(), gid.end(), entry.gid.begin());
    if (entry.ipv4 != is_v4_mapped(entry.gid) || entry.vlan == 0 ||
        is_multicast(entry.gid)) {
      return hw::CmdStatus::kBadParam;
    }
  }
  nic_.gids[number] = entry;
  // Header templates built from the old entry are stale.
  ++nic_.gid_generation;
  return {};
}

Commands::Result Commands::counters(const Bytes& cmd) {
  const auto addr = hw::get(cmd, hw::cmd_out::addr);
  const std::size_t count =
      std::min<std::size_t>(hw::get(cmd, hw::cmd_out::count), nic_.counters.size());
  if (addr % kEntryBytes != 0) return hw::CmdStatus::kBadParam;
  std::array<std::byte, kCounters * 8> raw;
  for (std::size_t i = 0; i < count; ++i) hw::store_le64(raw, i * 8, nic_.counters[i]);
  if (!nic_.host.write(addr, std::span(raw).first(count * 8), WriteKind::kQuery)) {
    return hw::CmdStatus::kDma;
  }
  Result result;
  result.result0 = count;
  return result;
}

Commands::Result Commands::mcast(std::uint32_t number, const Bytes& cmd, bool attach) {
  Qp* qp = nic_.qps.find(number);
  if (qp == nullptr) return hw::CmdStatus::kNoObject;
  Gid gid;
  const auto raw = hw::raw(std::span<const std::byte>(cmd), hw::cmd_mcast::gid);
  std::copy(raw.begin(), raw.end(), gid.begin());
  if (qp->type != hw::QpType::kUd || !is_multicast(gid)) return hw::CmdStatus::kBadParam;
  return attach ? nic_.mcast.attach(gid, *qp) : nic_.mcast.detach(gid, *qp);
}

Commands::Result Commands::eth_filter(std::uint32_t number, const Bytes& cmd) {
  Qp* qp = nic_.qps.find(number);
  if (qp == nullptr) return hw::CmdStatus::kNoObject;
  if (qp->type != hw::QpType::kEth) return hw::CmdStatus::kBadParam;
  nic_.eth.filter = {hw::get(cmd, hw::cmd_eth::promisc) != 0,
                     hw::get(cmd, hw::cmd_eth::allmulti) != 0, hw::get(cmd, hw::cmd_eth::mac)};
  return {};
}

}  // namespace ordma::twin
