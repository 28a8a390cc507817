// SPDX-License-Identifier: BSD-2-Clause
#include "bench.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace ordma::bench {
namespace {

inline constexpr std::size_t kPageBytes = 4096;

[[noreturn]] void broken(const std::string& what) { throw std::runtime_error("bench: " + what); }

std::byte pattern(std::size_t i, unsigned seed) {
  std::uint32_t x = static_cast<std::uint32_t>(i) * 2654435761u + seed * 40503u + 1;
  x ^= x >> 15;
  x *= 2246822519u;
  return static_cast<std::byte>(x >> 24);
}

}  // namespace

Memory::Memory(std::size_t bytes)
    : data_(static_cast<std::byte*>(std::calloc(bytes, 1)), std::free), size_(bytes) {
  if (data_ == nullptr) broken("no memory");
}

Addr Memory::alloc(std::size_t bytes, std::size_t align) {
  next_ = (next_ + align - 1) / align * align;
  const Addr addr = next_;
  next_ += bytes;
  if (next_ - kBase > size_) broken("out of fake host memory");
  return addr;
}

std::span<std::byte> Memory::at(Addr addr, std::size_t bytes) {
  if (addr < kBase || addr - kBase > size_ || size_ - (addr - kBase) < bytes) {
    broken("address outside of fake host memory");
  }
  return {data_.get() + (addr - kBase), bytes};
}

void Memory::fill(Addr addr, std::size_t bytes, unsigned seed) {
  auto p = at(addr, bytes);
  for (std::size_t i = 0; i < bytes; ++i) p[i] = pattern(i, seed);
}

bool Memory::filled(Addr addr, std::size_t bytes, unsigned seed) {
  const auto p = at(addr, bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (p[i] != pattern(i, seed)) return false;
  }
  return true;
}

std::uint64_t Memory::load(Addr addr) { return hw::load_le64(at(addr, 8), 0); }
void Memory::store(Addr addr, std::uint64_t value) { hw::store_le64(at(addr, 8), 0, value); }

bool Memory::allowed(Addr addr, std::size_t bytes) {
  for (const Range& r : revoked_) {
    if (addr < r.addr + r.bytes && r.addr < addr + bytes) {
      ++violations;
      return false;
    }
  }
  return addr >= kBase && addr - kBase <= size_ && size_ - (addr - kBase) >= bytes;
}

bool Memory::read(std::uint64_t addr, std::span<std::byte> dst) {
  ++reads;
  if (!allowed(addr, dst.size())) return false;
  std::memcpy(dst.data(), data_.get() + (addr - kBase), dst.size());
  return true;
}

bool Memory::write(std::uint64_t addr, std::span<const std::byte> src, WriteKind kind) {
  if (!allowed(addr, src.size())) return false;
  if (trace) writes.push_back({kind, addr, src.size()});
  std::memcpy(data_.get() + (addr - kBase), src.data(), src.size());
  return true;
}

void Cq::publish() { node->mem.store(record, ci & 0xffffff); }

std::optional<Wc> Cq::poll() {
  namespace h = hw::cqe;
  const auto raw = node->mem.at(ring + (ci & ((1u << log) - 1)) * h::kBytes, h::kBytes);
  const bool valid = hw::get(raw, h::phase) == (((ci >> log) & 1) == 0 ? 1u : 0u);
  if (!valid) return std::nullopt;
  const auto g = [&](hw::Field f) { return static_cast<std::uint32_t>(hw::get(raw, f)); };
  Wc wc{hw::get(raw, h::wr_id), g(h::qpn), static_cast<hw::WcOp>(g(h::opcode)),
        static_cast<hw::WcStatus>(g(h::status)), g(h::wqe_index), g(h::vendor_err),
        g(h::byte_len), g(h::imm), g(h::src_qpn), g(h::is_recv) != 0, g(h::has_imm) != 0,
        g(h::has_grh) != 0, g(h::ipv4) != 0, g(h::solicited) != 0, g(h::sl),
        hw::get(raw, h::smac), g(h::vlan)};
  ci = (ci + 1) & 0xffffff;
  if (auto_publish) publish();
  return wc;
}

std::vector<Wc> Cq::drain() {
  std::vector<Wc> all;
  while (auto wc = poll()) all.push_back(*wc);
  return all;
}

void Cq::arm(bool solicited, bool fire_now) {
  const std::uint64_t extra = hw::place(hw::db::arm_seq, ++arm_seq) |
                              hw::place(hw::db::solicited, solicited) |
                              hw::place(hw::db::fire_now, fire_now);
  node->doorbell(page, hw::DbKind::kCqArm, number, ci, extra);
}

std::array<std::byte, 16> v4_gid(unsigned a, unsigned b, unsigned c, unsigned d) {
  std::array<std::byte, 16> gid{};
  gid[10] = gid[11] = std::byte{0xff};
  gid[12] = static_cast<std::byte>(a);
  gid[13] = static_cast<std::byte>(b);
  gid[14] = static_cast<std::byte>(c);
  gid[15] = static_cast<std::byte>(d);
  return gid;
}

std::array<std::byte, 16> v6_gid(unsigned id) {
  std::array<std::byte, 16> gid{};
  gid[0] = std::byte{0xfd};
  gid[15] = static_cast<std::byte>(id);
  return gid;
}

Node::Node(unsigned id_in, std::size_t memory, EngineConfig config) : id(id_in), mem(memory) {
  mac = 0x0200'0000'0002ull | std::uint64_t{id} << 40;
  config.mac = mac;
  config.guid = 0x1234'5678'0000ull + id;
  nic = make_twin(config, mem);
  gid = v4_gid(10, 0, 0, id + 1);
  cmds_ = mem.alloc(hw::cmd::kBytes << kCmdLog);
  rsps_ = mem.alloc(hw::rsp::kBytes << kCmdLog);
  rcmds_ = mem.alloc(hw::cmd::kBytes << kRcmdLog);
  events_ = mem.alloc(hw::event::kBytes << kEventLog);
  page_records_ = mem.alloc(32 * 1024);
  scratch_ = mem.alloc(4096, 4096);
  using namespace hw;
  nic->register_write(reg::kReset, 0x5eed + id);
  nic->register_write(reg::kCmdBase, cmds_);
  nic->register_write(reg::kCmdRsp, rsps_);
  nic->register_write(reg::kCmdLog, kCmdLog);
  nic->register_write(reg::kRcmdBase, rcmds_);
  nic->register_write(reg::kRcmdLog, kRcmdLog);
  nic->register_write(reg::kEqBase, events_);
  nic->register_write(reg::kEqLog, kEventLog);
  nic->register_write(reg::kEnable, 1);
  nic->register_write(reg::kLinkCtrl, 1);
  if (open_page(1, 1) != CmdStatus::kOk) broken("no doorbell page");
  if (set_gid(0, gid, mac) != CmdStatus::kOk) broken("no GID");
  (void)events();
}

void Node::doorbell(std::uint32_t page, hw::DbKind kind, std::uint32_t number,
                    std::uint32_t index, std::uint64_t extra) {
  const std::uint64_t word = hw::place(hw::db::index, index) | hw::place(hw::db::number, number) |
                             hw::place(hw::db::kind, static_cast<std::uint64_t>(kind)) | extra;
  nic->doorbell(page, (number % hw::kPageSlots) * 8, word);
}

hw::CmdStatus Node::command(hw::CmdOp op, std::uint32_t number,
                            const std::function<void(std::span<std::byte>)>& fill,
                            std::uint64_t* result0, bool irq) {
  const std::uint32_t slot = cmd_pi & ((1u << kCmdLog) - 1);
  auto raw = mem.at(cmds_ + slot * hw::cmd::kBytes, hw::cmd::kBytes);
  std::fill(raw.begin(), raw.end(), std::byte{0});
  hw::set(raw, hw::cmd::opcode, static_cast<std::uint64_t>(op));
  hw::set(raw, hw::cmd::irq, irq);
  hw::set(raw, hw::cmd::seq, cmd_pi);
  hw::set(raw, hw::cmd::number, number);
  if (fill) fill(raw);
  const bool phase = ((cmd_pi >> kCmdLog) & 1) == 0;
  cmd_pi = (cmd_pi + 1) & 0xffffff;
  doorbell(hw::kDriverPage, hw::DbKind::kCmd, 0, cmd_pi);
  for (unsigned i = 0; i < 100; ++i) {
    nic->step(64);
    const auto rsp = mem.at(rsps_ + slot * hw::rsp::kBytes, hw::rsp::kBytes);
    if (hw::get(rsp, hw::rsp::phase) != (phase ? 1u : 0u)) continue;
    if (hw::get(rsp, hw::rsp::seq) != hw::get(raw, hw::cmd::seq)) broken("response out of order");
    if (result0 != nullptr) *result0 = hw::get(rsp, hw::rsp::result0);
    return static_cast<hw::CmdStatus>(hw::get(rsp, hw::rsp::status));
  }
  broken("command without response");
}

void Node::recovery(hw::CmdOp op, std::uint32_t number,
                    const std::function<void(std::span<std::byte>)>& fill) {
  const std::uint32_t slot = rcmd_pi & ((1u << kRcmdLog) - 1);
  auto raw = mem.at(rcmds_ + slot * hw::cmd::kBytes, hw::cmd::kBytes);
  std::fill(raw.begin(), raw.end(), std::byte{0});
  hw::set(raw, hw::cmd::opcode, static_cast<std::uint64_t>(op));
  hw::set(raw, hw::cmd::seq, rcmd_pi);
  hw::set(raw, hw::cmd::number, number);
  fill(raw);
  rcmd_pi = (rcmd_pi + 1) & 0xffffff;
  doorbell(hw::kDriverPage, hw::DbKind::kRcmd, 0, rcmd_pi);
}

void Node::rewind(std::uint32_t qpn, std::uint32_t log_index, std::uint32_t psn,
                  std::uint64_t not_before) {
  recovery(hw::CmdOp::kQpRewind, qpn, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_rewind::log_index, log_index);
    hw::set(raw, hw::cmd_rewind::psn, psn);
    hw::set(raw, hw::cmd_rewind::not_before, not_before);
  });
}

void Node::fail(std::uint32_t qpn, std::uint32_t psn, hw::WcStatus status, unsigned vendor_err) {
  recovery(hw::CmdOp::kQpFail, qpn, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_fail::psn, psn);
    hw::set(raw, hw::cmd_fail::status, static_cast<std::uint64_t>(status));
    hw::set(raw, hw::cmd_fail::vendor_err, vendor_err);
  });
}

hw::CmdStatus Node::open_page(std::uint32_t page, std::uint32_t uctx, bool token) {
  return command(hw::CmdOp::kPageOpen, page, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_page::uctx, uctx);
    hw::set(raw, hw::cmd_page::token, token);
    hw::set(raw, hw::cmd_page::record, page_record(page));
  });
}

hw::CmdStatus Node::set_gid(unsigned index, std::span<const std::byte> g, std::uint64_t m,
                            int vlan) {
  return command(hw::CmdOp::kGidSet, index, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_gid::valid, 1);
    hw::set(raw, hw::cmd_gid::ipv4, g[10] == std::byte{0xff} && g[0] == std::byte{0});
    hw::set(raw, hw::cmd_gid::has_vlan, vlan >= 0);
    hw::set(raw, hw::cmd_gid::vlan, vlan >= 0 ? static_cast<unsigned>(vlan) : 0);
    hw::set(raw, hw::cmd_gid::mac, m);
    std::copy(g.begin(), g.end(), hw::raw(raw, hw::cmd_gid::gid).begin());
  });
}

hw::CmdStatus Node::create_mr(const Mr& mr, unsigned access, std::uint32_t pd) {
  return command(hw::CmdOp::kMrCreate, mr.key, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_mr::pd, pd);
    hw::set(raw, hw::cmd_mr::access, access);
    hw::set(raw, hw::cmd_mr::iova, mr.iova);
    hw::set(raw, hw::cmd_mr::length, mr.length);
    hw::set(raw, hw::cmd_mr::addr, mr.addr);
  });
}

Mr Node::reg_mr(std::uint64_t bytes, unsigned access, std::uint32_t pd) {
  Mr mr;
  mr.addr = mem.alloc(bytes + 128, 4096) + 64;
  mr.length = bytes;
  mr.iova = 0x7f00'0000'0000ull + mr.addr;
  mr.key = 0xabc0'0000u + 2 + next_key++;
  if (create_mr(mr, access, pd) != hw::CmdStatus::kOk) broken("no MR");
  return mr;
}

Mr Node::reg_mr_list(std::uint64_t bytes, unsigned first_off, bool tree, unsigned access,
                     std::uint32_t pd) {
  Mr mr;
  mr.length = bytes;
  mr.iova = 0x5500'0000'0000ull + next_key * 0x1000'0000ull + first_off;
  mr.key = 0xdef0'0000u + 2 + next_key++;
  const std::size_t pages = (first_off + bytes + kPageBytes - 1) / kPageBytes;
  std::vector<Addr> list;
  const Addr pool = mem.alloc(pages * 2 * kPageBytes, kPageBytes);
  // Every second page, backwards in pairs: no two list neighbours are memory neighbours.
  for (std::size_t i = 0; i < pages; ++i) {
    list.push_back(pool + (2 * (i ^ 1) % (2 * pages)) * kPageBytes);
  }
  for (std::size_t i = 0; i < pages; ++i) {
    if ((i ^ 1) >= pages) list[i] = pool + 2 * i * kPageBytes;
  }
  const std::size_t leaves = (pages + hw::kPblLeafEntries - 1) / hw::kPblLeafEntries;
  const Addr flat = mem.alloc(leaves * kPageBytes, kPageBytes);
  for (std::size_t i = 0; i < pages; ++i) mem.store(flat + i * 8, list[i]);
  Addr root = flat;
  if (tree) {
    root = mem.alloc(leaves * 8, 4096);
    for (std::size_t i = 0; i < leaves; ++i) mem.store(root + i * 8, flat + i * kPageBytes);
  }
  const auto status = command(hw::CmdOp::kMrCreate, mr.key, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_mr::pd, pd);
    hw::set(raw, hw::cmd_mr::access, access);
    hw::set(raw, hw::cmd_mr::page_log, 12);
    hw::set(raw, hw::cmd_mr::level,
            static_cast<std::uint64_t>(tree ? hw::BufLevel::kTree : hw::BufLevel::kList));
    hw::set(raw, hw::cmd_mr::iova, mr.iova);
    hw::set(raw, hw::cmd_mr::length, mr.length);
    hw::set(raw, hw::cmd_mr::addr, root);
    hw::set(raw, hw::cmd_mr::first_off, first_off);
  });
  if (status != hw::CmdStatus::kOk) broken("no paged MR");
  mr.addr = first_off;  // offset into the first page; the pages are in paged_
  paged_[mr.key] = list;
  return mr;
}

void Node::copy_in(const Mr& mr, std::uint64_t offset, std::span<const std::byte> data) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::uint64_t at = mr.addr + offset + i;
    mem.at(paged_.at(mr.key)[at / kPageBytes] + at % kPageBytes, 1)[0] = data[i];
  }
}

Bytes Node::copy_out(const Mr& mr, std::uint64_t offset, std::size_t bytes) {
  Bytes out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::uint64_t at = mr.addr + offset + i;
    out[i] = mem.at(paged_.at(mr.key)[at / kPageBytes] + at % kPageBytes, 1)[0];
  }
  return out;
}

Cq Node::create_cq(unsigned log, std::uint32_t uctx, std::uint32_t page, unsigned vector) {
  Cq cq;
  cq.node = this;
  cq.number = next_cq++;
  cq.log = log;
  cq.page = page;
  cq.ring = mem.alloc(hw::cqe::kBytes << log);
  cq.record = mem.alloc(8);
  const auto status = command(hw::CmdOp::kCqCreate, cq.number, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_cq::uctx, uctx);
    hw::set(raw, hw::cmd_cq::log, log);
    hw::set(raw, hw::cmd_cq::vector_, vector);
    hw::set(raw, hw::cmd_cq::addr, cq.ring);
    hw::set(raw, hw::cmd_cq::record, cq.record);
  });
  if (status != hw::CmdStatus::kOk) broken("no CQ");
  return cq;
}

Srq Node::create_srq(unsigned log, unsigned limit, std::uint32_t pd) {
  Srq srq;
  srq.node = this;
  srq.number = next_srq++;
  srq.log = log;
  srq.stride_log = 6;
  srq.page = 1;
  srq.ring = mem.alloc(std::size_t{1} << (log + srq.stride_log));
  srq.record = mem.alloc(8);
  const auto status = command(hw::CmdOp::kSrqCreate, srq.number, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_srq::uctx, 1);
    hw::set(raw, hw::cmd_srq::log, log);
    hw::set(raw, hw::cmd_srq::stride_log, srq.stride_log);
    hw::set(raw, hw::cmd_srq::addr, srq.ring);
    hw::set(raw, hw::cmd_srq::record, srq.record);
    hw::set(raw, hw::cmd_srq::pd, pd);
    hw::set(raw, hw::cmd_srq::limit, limit);
  });
  if (status != hw::CmdStatus::kOk) broken("no SRQ");
  return srq;
}

std::vector<Event> Node::events() {
  namespace h = hw::event;
  std::vector<Event> all;
  for (;;) {
    const auto raw =
        mem.at(events_ + (event_ci & ((1u << kEventLog) - 1)) * h::kBytes, h::kBytes);
    if (hw::get(raw, h::phase) != (((event_ci >> kEventLog) & 1) == 0 ? 1u : 0u)) break;
    const auto g = [&](hw::Field f) { return static_cast<std::uint32_t>(hw::get(raw, f)); };
    all.push_back({static_cast<hw::EventType>(g(h::type_)), g(h::code), g(h::number), g(h::psn),
                   g(h::log_index), hw::get(raw, h::time_)});
    event_ci = (event_ci + 1) & 0xffffff;
  }
  if (!all.empty()) nic->register_write(hw::reg::kEqCi, event_ci);
  return all;
}

std::uint64_t Node::counter(hw::Counter c) {
  const auto status = command(hw::CmdOp::kCounters, 0, [&](std::span<std::byte> raw) {
    hw::set(raw, hw::cmd_out::addr, scratch_);
    hw::set(raw, hw::cmd_out::count, hw::kCounterTable.size());
  });
  if (status != hw::CmdStatus::kOk) broken("no counters");
  return mem.load(scratch_ + static_cast<std::uint64_t>(c) * 8);
}

Pair::Pair(EngineConfig config, std::size_t memory) : a(0, memory, config), b(1, memory, config) {
  a.mem.out = [this](Frame f) { put(0, std::move(f)); };
  b.mem.out = [this](Frame f) { put(1, std::move(f)); };
}

void Pair::put(unsigned from, Frame frame) {
  const auto bytes = std::as_bytes(frame.bytes());
  if (capture) sent[from].emplace_back(bytes.begin(), bytes.end());
  const Verdict v = filter ? filter(from, bytes) : Verdict{};
  if (v.drop) return;
  Frame copy = v.duplicate ? frame.share() : Frame();
  if (v.hold != 0) {
    held_[from].push_back({std::move(frame), v.hold});
  } else {
    deliver(from, std::move(frame));
    for (Held& h : held_[from]) --h.left;
    while (!held_[from].empty() && held_[from].front().left == 0) {
      Frame late = std::move(held_[from].front().frame);
      held_[from].pop_front();
      deliver(from, std::move(late));
    }
  }
  if (v.duplicate) deliver(from, std::move(copy));
}

void Pair::deliver(unsigned from, Frame frame) {
  std::uint64_t to = 0;
  std::memcpy(&to, frame.bytes().data(), 6);
  const unsigned target = to == node(from).mac ? from : 1 - from;
  node(target).nic->packet_in(std::move(frame));
}

void Pair::run(const std::function<void()>& each) {
  for (unsigned rounds = 0; rounds < 10'000'000; ++rounds) {
    a.nic->set_time(now);
    b.nic->set_time(now);
    const bool x = a.nic->step(64);
    const bool y = b.nic->step(64);
    if (each) each();
    if (!x && !y && a.nic->idle() && b.nic->idle()) {
      // A quiet wire lets go of what a filter held back.
      bool any = false;
      for (unsigned i = 0; i < 2; ++i) {
        while (!held_[i].empty()) {
          Frame f = std::move(held_[i].front().frame);
          held_[i].pop_front();
          deliver(i, std::move(f));
          any = true;
        }
      }
      if (!any) return;
    }
  }
  broken("engines never become idle");
}

void Pair::advance(std::uint64_t ns, const std::function<void()>& each) {
  const std::uint64_t end = now + ns;
  for (;;) {
    run(each);
    if (now >= end) return;
    const std::uint64_t timer = std::min(a.nic->next_timer_ns(), b.nic->next_timer_ns());
    now = std::clamp(timer, now + 1, end);
  }
}

void Pair::connect(Qp& x, Qp& y) {
  x.connect(y.qpn, y.node->gid, y.node->mac);
  y.connect(x.qpn, x.node->gid, x.node->mac);
  for (Qp* qp : {&x, &y}) {
    hw::set(qp->qpc, hw::qpc::rq_psn, qp == &x ? y.o.sq_psn : x.o.sq_psn);
    if (qp->to(hw::QpState::kInit) != hw::CmdStatus::kOk ||
        qp->to(hw::QpState::kRtr, true) != hw::CmdStatus::kOk ||
        qp->to(hw::QpState::kRts, false, true) != hw::CmdStatus::kOk) {
      broken("cannot connect");
    }
  }
}

void Cpu::handle(std::uint64_t now) {
  for (const Event& e : node_.events()) {
    const bool nak = e.type == hw::EventType::kQpNak;
    const bool rnr = e.type == hw::EventType::kQpRnr;
    const bool loss = e.type == hw::EventType::kQpImpliedNak ||
                      e.type == hw::EventType::kQpSilence ||
                      (nak && e.code == static_cast<unsigned>(hw::AethSyndrome::kNakPsn));
    if (!nak && !rnr && !loss) {
      other.push_back(e);
      continue;
    }
    State& s = state_[e.number];
    if (s.psn != e.psn) s = {0, 0, e.psn};
    if (nak && !loss) {
      const auto status = e.code == static_cast<unsigned>(hw::AethSyndrome::kNakInvReq)
                              ? hw::WcStatus::kRemInvReqErr
                          : e.code == static_cast<unsigned>(hw::AethSyndrome::kNakAccess)
                              ? hw::WcStatus::kRemAccessErr
                              : hw::WcStatus::kRemOpErr;
      node_.fail(e.number, e.psn, status, e.code);
    } else if (rnr) {
      if (rnr_retry != 7 && s.rnr++ >= rnr_retry) {
        node_.fail(e.number, e.psn, hw::WcStatus::kRnrRetryExcErr, e.code);
      } else {
        ++rewinds;
        node_.rewind(e.number, e.log_index, e.psn, now + rnr_ns);
      }
    } else if (s.retries++ >= retry_cnt) {
      node_.fail(e.number, e.psn, hw::WcStatus::kRetryExcErr);
    } else {
      ++rewinds;
      node_.rewind(e.number, e.log_index, e.psn);
    }
  }
}

}  // namespace ordma::bench
