// SPDX-License-Identifier: BSD-2-Clause
#include "bench.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace ordma::bench {
namespace {

constexpr unsigned kCmdLog = 4;
constexpr unsigned kEqLog = 10;
constexpr unsigned kPage = 4096;

std::uint16_t be16(const std::uint8_t* p) { return static_cast<std::uint16_t>(p[0] << 8 | p[1]); }

std::uint32_t sum16(std::span<const std::uint8_t> p, std::uint32_t sum) {
  for (std::size_t i = 0; i + 1 < p.size(); i += 2) sum += be16(&p[i]);
  if (p.size() % 2 != 0) sum += static_cast<std::uint32_t>(p.back()) << 8;
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

std::size_t l3_of(std::span<const std::uint8_t> f) { return be16(&f[12]) == 0x8100 ? 18 : 14; }

std::uint64_t mac_of(int index) { return 0x0000'0000'0002ull | static_cast<std::uint64_t>(index + 1) << 40; }

std::array<std::byte, 16> gid_of(int index, bool ipv6) {
  std::array<std::byte, 16> g{};
  if (ipv6) {
    g[0] = std::byte{0xfe};
    g[1] = std::byte{0x80};
    g[8] = std::byte{0x12};
  } else {
    g[10] = g[11] = std::byte{0xff};
    g[12] = std::byte{10};
  }
  g[15] = static_cast<std::byte>(index + 1);
  return g;
}

}  // namespace

// Written from the description of the ICRC, bit by bit apart from the CRC itself (zlib).
std::uint32_t icrc_of(std::span<const std::uint8_t> f) {
  const std::size_t l3 = l3_of(f);
  std::vector<std::uint8_t> p(f.begin() + static_cast<std::ptrdiff_t>(l3), f.end() - 4);
  std::size_t udp;
  if (p[0] >> 4 == 4) {
    p[1] = p[8] = p[10] = p[11] = 0xff;
    udp = 20;
  } else {
    p[0] |= 0x0f;
    p[1] = p[2] = p[3] = p[7] = 0xff;
    udp = 40;
  }
  p[udp + 6] = p[udp + 7] = 0xff;
  p[udp + 12] = 0xff;
  const std::uint8_t ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};
  auto crc = static_cast<std::uint32_t>(crc32(0, ones, 8));
  return static_cast<std::uint32_t>(crc32(crc, p.data(), static_cast<uInt>(p.size())));
}

Decoded decode(std::span<const std::uint8_t> f) {
  Decoded d;
  if (f.size() < 14 + 20 + 8 + 12 + 4) return d;
  const std::size_t l3 = l3_of(f);
  const bool v4 = f[l3] >> 4 == 4;
  const std::size_t udp = l3 + (v4 ? 20 : 40);
  if (f[l3 + (v4 ? 9 : 6)] != 17 || be16(&f[udp + 2]) != 4791) return d;
  const std::size_t total = v4 ? be16(&f[l3 + 2]) : be16(&f[l3 + 4]) + 40u;
  if (l3 + total != f.size() || be16(&f[udp + 4]) != f.size() - udp) return d;
  d.roce = true;
  if (v4) {
    d.checksum_ok = sum16(f.subspan(l3, 20), 0) == 0xffff;
  } else {
    std::uint32_t sum = static_cast<std::uint32_t>(f.size() - udp) + 17;
    sum = sum16(f.subspan(l3 + 8, 32), sum);
    d.checksum_ok = be16(&f[udp + 6]) != 0 && sum16(f.subspan(udp), sum) == 0xffff;
  }
  const std::uint8_t* b = &f[udp + 8];
  d.opcode = b[0];
  d.solicited = b[1] >> 7;
  d.pad = b[1] >> 4 & 3;
  d.dest_qpn = static_cast<std::uint32_t>(b[5] << 16 | b[6] << 8 | b[7]);
  d.ack_req = b[8] >> 7;
  d.psn = static_cast<std::uint32_t>(b[9] << 16 | b[10] << 8 | b[11]);
  std::uint32_t sent;
  std::memcpy(&sent, &f[f.size() - 4], 4);
  d.icrc_ok = sent == icrc_of(f);
  d.body.assign(b + 12, f.data() + f.size() - 4 - d.pad);
  return d;
}

// ---------------------------------------------------------------- host

Host::Host(World& w, int i, const EngineConfig& config)
    : world(w), index(i), memory(kBytes) {
  engine = w.make(config, *this);
}

bool Host::read(std::uint64_t addr, std::span<std::byte> dst) {
  for (const auto& [a, n] : revoked) {
    if (addr < a + n && a < addr + dst.size()) violations.push_back("read of revoked memory");
  }
  if (addr < kBase || addr + dst.size() > kBase + kBytes) return false;
  if ((addr & ~std::uint64_t{4095}) != ((addr + dst.size() - 1) & ~std::uint64_t{4095})) {
    violations.push_back("read across a 4 KiB page");
  }
  std::memcpy(dst.data(), &memory[addr - kBase], dst.size());
  return true;
}

bool Host::write(std::uint64_t addr, std::span<const std::byte> src, WriteKind kind) {
  for (const auto& [a, n] : revoked) {
    if (addr < a + n && a < addr + src.size()) violations.push_back("write to revoked memory");
  }
  writes.emplace_back(addr, kind);
  if (addr < kBase || addr + src.size() > kBase + kBytes) return false;
  if (src.empty() || (addr & ~std::uint64_t{4095}) != ((addr + src.size() - 1) & ~std::uint64_t{4095})) {
    violations.push_back("write across a 4 KiB page");
  }
  std::memcpy(&memory[addr - kBase], src.data(), src.size());
  return true;
}

void Host::packet_out(Frame frame) { world.carry(index, std::move(frame)); }

std::uint64_t Host::alloc(std::uint64_t bytes, std::uint64_t align) {
  next_ = (next_ + align - 1) / align * align;
  const std::uint64_t addr = next_;
  next_ += bytes;
  if (next_ > kBase + kBytes) throw std::runtime_error("bench: out of memory");
  return addr;
}

std::span<std::byte> Host::at(std::uint64_t addr, std::uint64_t bytes) {
  return std::span(memory).subspan(addr - kBase, bytes);
}

void Host::fill(std::uint64_t addr, std::uint64_t bytes, unsigned seed) {
  const auto p = pattern(bytes, seed);
  std::memcpy(at(addr, bytes).data(), p.data(), bytes);
}

void Host::start() {
  namespace r = hw::reg;
  cmd_base_ = alloc(kPage);
  rsp_base_ = alloc(kPage);
  rcmd_base_ = alloc(kPage);
  eq_base_ = alloc(32u << kEqLog);
  engine->register_write(r::kReset, 0x1234 + static_cast<unsigned>(index));
  if (!world.run([&] { return engine->register_read(r::kResetEcho) == 0x1234u + static_cast<unsigned>(index); })) {
    throw std::runtime_error("bench: no reset echo");
  }
  engine->register_write(r::kCmdBase, cmd_base_);
  engine->register_write(r::kCmdRsp, rsp_base_);
  engine->register_write(r::kCmdLog, kCmdLog);
  engine->register_write(r::kRcmdBase, rcmd_base_);
  engine->register_write(r::kRcmdLog, kCmdLog);
  engine->register_write(r::kEqBase, eq_base_);
  engine->register_write(r::kEqLog, kEqLog);
  engine->register_write(r::kLinkCtrl, 1);
  engine->register_write(r::kEnable, 1);
  if (!world.run([&] { return (engine->register_read(r::kStatus) & 1) != 0; })) {
    throw std::runtime_error("bench: not ready");
  }
  // What the link raised, if it did, is not of interest.
  world.settle();
  while (event()) {
  }
  namespace g = hw::cmd_gid;
  const auto gid = gid_of(index, world.ipv6);
  const auto status = command(hw::CmdOp::kGidSet, 1, [&](auto& c) {
    hw::set(c, g::valid, 1);
    hw::set(c, g::ipv4, !world.ipv6);
    std::copy(gid.begin(), gid.end(), hw::raw(std::span<std::byte>(c), g::gid).begin());
    hw::set(c, g::has_vlan, world.vlan);
    hw::set(c, g::vlan, 77);
    hw::set(c, g::mac, mac_of(index));
  });
  if (status != hw::CmdStatus::kOk) throw std::runtime_error("bench: GID_SET failed");
}

void Host::ring(std::uint32_t page, hw::DbKind kind, std::uint32_t number, std::uint32_t i,
                std::uint64_t extra) {
  const std::uint64_t word = hw::place(hw::db::index, i) | hw::place(hw::db::number, number) |
                             hw::place(hw::db::kind, static_cast<std::uint64_t>(kind)) | extra;
  engine->doorbell(page, (number % 512) * 8, word, 0xff);
}

hw::CmdStatus Host::command(hw::CmdOp op, std::uint32_t number,
                            const std::function<void(hw::cmd::Bytes&)>& args) {
  hw::cmd::Bytes c{};
  hw::set(c, hw::cmd::opcode, static_cast<std::uint64_t>(op));
  hw::set(c, hw::cmd::number, number);
  if (args) args(c);
  hw::set(c, hw::cmd::seq, cmd_pi_);
  const std::uint32_t slot = cmd_pi_ & ((1u << kCmdLog) - 1);
  std::memcpy(at(cmd_base_ + slot * 64, 64).data(), c.data(), 64);
  const bool phase = (cmd_pi_ >> kCmdLog & 1) == 0;
  ++cmd_pi_;
  ring(0, hw::DbKind::kCmd, 0, cmd_pi_);
  const auto rsp = at(rsp_base_ + slot * 32, 32);
  if (!world.run([&] { return (hw::get(rsp, hw::rsp::phase) != 0) == phase &&
                              hw::get(rsp, hw::rsp::seq) == ((cmd_pi_ - 1) & 0xffff); })) {
    throw std::runtime_error("bench: command got no answer");
  }
  result0 = hw::get(rsp, hw::rsp::result0);
  return static_cast<hw::CmdStatus>(hw::get(rsp, hw::rsp::status));
}

void Host::recover(hw::CmdOp op, std::uint32_t number, const std::function<void(hw::cmd::Bytes&)>& args) {
  hw::cmd::Bytes c{};
  hw::set(c, hw::cmd::opcode, static_cast<std::uint64_t>(op));
  hw::set(c, hw::cmd::number, number);
  args(c);
  hw::set(c, hw::cmd::seq, rcmd_pi_);
  std::memcpy(at(rcmd_base_ + (rcmd_pi_ & ((1u << kCmdLog) - 1)) * 64, 64).data(), c.data(), 64);
  ++rcmd_pi_;
  ring(0, hw::DbKind::kRcmd, 0, rcmd_pi_);
}

std::optional<Event> Host::event() {
  const auto e = at(eq_base_ + (eq_ci_ & ((1u << kEqLog) - 1)) * 32, 32);
  const bool phase = (eq_ci_ >> kEqLog & 1) == 0;
  if ((hw::get(e, hw::event::phase) != 0) != phase) return std::nullopt;
  ++eq_ci_;
  engine->register_write(hw::reg::kEqCi, eq_ci_);
  namespace h = hw::event;
  return Event{static_cast<hw::EventType>(hw::get(e, h::type_)), static_cast<std::uint8_t>(hw::get(e, h::code)),
               static_cast<std::uint32_t>(hw::get(e, h::number)), static_cast<std::uint32_t>(hw::get(e, h::psn)),
               static_cast<std::uint32_t>(hw::get(e, h::log_index))};
}

std::vector<std::uint64_t> Host::counters() {
  const std::size_t n = 42;
  const std::uint64_t out = alloc(n * 8);
  command(hw::CmdOp::kCounters, 0, [&](auto& c) {
    hw::set(c, hw::cmd_out::addr, out);
    hw::set(c, hw::cmd_out::count, n);
  });
  std::vector<std::uint64_t> v(n);
  std::memcpy(v.data(), at(out, n * 8).data(), n * 8);
  return v;
}

// ---------------------------------------------------------------- world

World::World(const std::function<std::unique_ptr<Engine>(const EngineConfig&, HostPort&)>& m, bool v6, bool tagged)
    : make(m), ipv6(v6), vlan(tagged) {
  for (int i = 0; i < 2; ++i) {
    EngineConfig config;
    config.mac = mac_of(i);
    config.guid = 0x100u + static_cast<unsigned>(i);
    hosts.push_back(std::make_unique<Host>(*this, i, config));
  }
  for (auto& h : hosts) h->start();
}

void World::carry(int from, Frame frame) {
  Decoded d = decode(frame.bytes());
  ++frames;
  if (!d.roce) ++not_roce;
  if (d.roce && !d.icrc_ok) ++bad_icrc;
  if (d.roce && !d.checksum_ok) ++bad_checksum;
  const bool pass = !filter || filter(from, d, frame);
  log.emplace_back(from, std::move(d));
  if (pass) wire_.emplace_back(1 - from, std::move(frame));
}

void World::advance(std::uint64_t ns) {
  now += ns;
  for (auto& h : hosts) h->engine->set_time(now);
}

bool World::run(const std::function<bool()>& done, unsigned limit) {
  for (unsigned n = 0; n < limit; ++n) {
    if (done()) return true;
    bool any = false;
    std::uint64_t busy = 0;
    for (auto& h : hosts) {
      any = h->engine->step(8) || any;
      busy = std::max(busy, h->engine->take_busy_ns());
    }
    for (std::size_t k = wire_.size(); k != 0; --k) {
      auto [to, frame] = std::move(wire_.front());
      wire_.pop_front();
      hosts[static_cast<std::size_t>(to)]->engine->packet_in(std::move(frame));
      any = true;
    }
    advance(busy);
    if (!any) {
      // Nothing moves: time passes up to the next timer.
      std::uint64_t next = ~std::uint64_t{0};
      for (auto& h : hosts) next = std::min(next, h->engine->next_timer_ns());
      if (next == ~std::uint64_t{0}) return done();
      if (next > now) advance(next - now);
    }
  }
  return done();
}

void World::settle(unsigned limit) {
  run([&] {
    return wire_.empty() && std::all_of(hosts.begin(), hosts.end(), [](auto& h) { return h->engine->idle(); });
  }, limit);
}

// ---------------------------------------------------------------- memory regions

std::uint64_t Region::phys(std::uint64_t off) const {
  const std::uint64_t pos = first_off + off;
  return pages[pos / kPage] + pos % kPage;
}

std::vector<std::byte> pattern(std::uint64_t bytes, unsigned seed) {
  std::vector<std::byte> v(bytes);
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
  for (auto& b : v) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    b = static_cast<std::byte>(x >> 24);
  }
  return v;
}

Region make_region(Host& host, const MrSpec& spec) {
  Region r;
  r.key = spec.key;
  r.bytes = spec.bytes;
  r.first_off = spec.first_off;
  const std::uint64_t n = (spec.first_off + spec.bytes + kPage - 1) / kPage;
  std::uint64_t addr = 0;
  if (spec.level == hw::BufLevel::kDirect) {
    addr = host.alloc(n * kPage);
    for (std::uint64_t i = 0; i < n; ++i) r.pages.push_back(addr + i * kPage);
    addr += spec.first_off;
  } else {
    // Every other page, backwards: nothing is contiguous.
    const std::uint64_t base = host.alloc(2 * n * kPage);
    for (std::uint64_t i = 0; i < n; ++i) r.pages.push_back(base + 2 * (n - 1 - i) * kPage);
    const std::uint64_t leaves = (n + 511) / 512;
    const std::uint64_t list = host.alloc(leaves * kPage);
    std::memcpy(host.at(list, n * 8).data(), r.pages.data(), n * 8);
    addr = list;
    if (spec.level == hw::BufLevel::kTree) {
      addr = host.alloc(leaves * 8);
      for (std::uint64_t i = 0; i < leaves; ++i) hw::store_le64(host.at(addr, leaves * 8), i * 8, list + i * kPage);
    }
  }
  r.iova = spec.zero_based ? 0 : 0x7f00'0000'0000ull + spec.key * 0x1'0000'0000ull + spec.first_off;
  namespace m = hw::cmd_mr;
  const auto status = host.command(hw::CmdOp::kMrCreate, spec.key, [&](auto& c) {
    hw::set(c, m::pd, spec.pd);
    hw::set(c, m::access, spec.access);
    hw::set(c, m::page_log, 12);
    hw::set(c, m::level, static_cast<std::uint64_t>(spec.level));
    hw::set(c, m::iova, r.iova);
    hw::set(c, m::length, spec.bytes);
    hw::set(c, m::addr, addr);
    hw::set(c, m::first_off, spec.level == hw::BufLevel::kDirect ? 0 : spec.first_off);
  });
  if (status != hw::CmdStatus::kOk) throw std::runtime_error("bench: MR_CREATE failed");
  return r;
}

void put(Host& host, const Region& r, std::uint64_t off, std::span<const std::byte> data) {
  for (std::size_t i = 0; i < data.size(); ++i) host.at(r.phys(off + i), 1)[0] = data[i];
}

std::vector<std::byte> get(Host& host, const Region& r, std::uint64_t off, std::uint64_t bytes) {
  std::vector<std::byte> v(bytes);
  for (std::size_t i = 0; i < bytes; ++i) v[i] = host.at(r.phys(off + i), 1)[0];
  return v;
}

// ---------------------------------------------------------------- queues

Cq::Cq(Host& host, std::uint32_t cqn, unsigned log, std::uint32_t page, std::uint16_t uctx, hw::BufLevel level)
    : number(cqn), host_(host), log_(log), page_(page), record_(host.alloc(64, 64)) {
  const std::uint64_t bytes = std::uint64_t{64} << log;
  const std::uint64_t n = (bytes + kPage - 1) / kPage;
  const std::uint64_t base = host.alloc(2 * n * kPage);
  std::uint64_t addr = base;
  for (std::uint64_t i = 0; i < n; ++i) {
    ring_pages_.push_back(base + (level == hw::BufLevel::kDirect ? i : 2 * (n - 1 - i)) * kPage);
  }
  if (level != hw::BufLevel::kDirect) {
    const std::uint64_t list = host.alloc(kPage);
    std::memcpy(host.at(list, n * 8).data(), ring_pages_.data(), n * 8);
    addr = list;
    if (level == hw::BufLevel::kTree) {
      addr = host.alloc(8, 8);
      hw::store_le64(host.at(addr, 8), 0, list);
    }
  }
  namespace c = hw::cmd_cq;
  const auto status = host.command(hw::CmdOp::kCqCreate, cqn, [&](auto& cmd) {
    hw::set(cmd, c::uctx, uctx);
    hw::set(cmd, c::log, log);
    hw::set(cmd, c::page_log, 12);
    hw::set(cmd, c::level, static_cast<std::uint64_t>(level));
    hw::set(cmd, c::vector_, 3);
    hw::set(cmd, c::addr, addr);
    hw::set(cmd, c::record, record_);
  });
  if (status != hw::CmdStatus::kOk) throw std::runtime_error("bench: CQ_CREATE failed");
}

std::optional<Cqe> Cq::poll() {
  const std::uint64_t off = std::uint64_t{ci & ((1u << log_) - 1)} * 64;
  const auto raw = host_.at(ring_pages_[off / kPage] + off % kPage, 64);
  namespace c = hw::cqe;
  if ((hw::get(raw, c::phase) != 0) != ((ci >> log_ & 1) == 0)) return std::nullopt;
  ci = (ci + 1) & 0xffffff;
  const auto u32 = [&](hw::Field f) { return static_cast<std::uint32_t>(hw::get(raw, f)); };
  return Cqe{hw::get(raw, c::wr_id), u32(c::qpn), static_cast<hw::WcOp>(u32(c::opcode)),
             static_cast<hw::WcStatus>(u32(c::status)), u32(c::wqe_index), u32(c::byte_len), u32(c::imm),
             u32(c::is_recv) != 0, u32(c::has_imm) != 0, u32(c::solicited) != 0,
             static_cast<std::uint8_t>(u32(c::vendor_err)), u32(c::src_qpn), u32(c::has_grh) != 0, u32(c::ipv4) != 0,
             hw::get(raw, c::smac)};
}

std::optional<Cqe> Cq::wait(unsigned limit) {
  std::optional<Cqe> c;
  host_.world.run([&] { return (c = poll()).has_value(); }, limit);
  return c;
}

void Cq::update_record() { hw::store_le64(host_.at(record_, 8), 0, ci); }

void Cq::arm(bool solicited) {
  ++arm_seq_;
  host_.ring(page_, hw::DbKind::kCqArm, number, ci,
             hw::place(hw::db::arm_seq, arm_seq_) | hw::place(hw::db::solicited, solicited));
}

Qp::Qp(Host& host, const QpSpec& s, Cq& scq, Cq& rcq) : spec(s), host_(host) {
  namespace q = hw::qpc;
  sq = host.alloc(std::max<std::uint64_t>(kPage, 1ull << (s.sq_log + s.sq_stride_log)));
  rq = host.alloc(std::max<std::uint64_t>(kPage, 1ull << (s.rq_log + s.rq_stride_log)));
  log = host.alloc(std::max<std::uint64_t>(kPage, 16ull << s.log_log));
  const auto set = [&](hw::Field f, std::uint64_t v) { hw::set(image, f, v); };
  set(q::qpn, s.qpn);
  set(q::type_, static_cast<std::uint64_t>(s.type));
  set(q::access, s.access);
  set(q::uctx, s.uctx);
  set(q::pd, s.pd);
  set(q::scqn, scq.number);
  set(q::rcqn, rcq.number);
  set(q::sq_addr, sq);
  set(q::rq_addr, rq);
  set(q::sq_log, s.sq_log);
  set(q::sq_stride_log, s.sq_stride_log);
  set(q::rq_log, s.rq_log);
  set(q::rq_stride_log, s.rq_stride_log);
  set(q::log_log, s.log_log);
  set(q::log_addr, log);
  set(q::mtu_log, s.mtu_log);
  set(q::sgid_index, 1);
  set(q::hop_limit, 64);
  set(q::sport, 0xc000 + s.qpn % 0x3fff);
  set(q::min_rnr_timer, 12);
  set(q::silence, s.silence);
  set(q::qkey, s.qkey);
  set(q::max_rd_atomic, s.rd_atomic);
  set(q::max_dest_rd_atomic, s.rd_atomic);
  set(q::atomic_addr, host.alloc(4096));
  const std::uint64_t at = host.alloc(256, 256);
  std::memcpy(host.at(at, 256).data(), image.data(), 256);
  created = host.command(hw::CmdOp::kQpCreate, s.qpn, [&](auto& c) { hw::set(c, hw::cmd_qp::image, at); });
}

hw::CmdStatus Qp::modify(hw::QpState state, bool init_rq, bool init_sq) {
  const std::uint64_t at = host_.alloc(256, 256);
  std::memcpy(host_.at(at, 256).data(), image.data(), 256);
  return host_.command(hw::CmdOp::kQpModify, spec.qpn, [&](auto& c) {
    hw::set(c, hw::cmd_qp::image, at);
    hw::set(c, hw::cmd_qp::state, static_cast<std::uint64_t>(state));
    hw::set(c, hw::cmd_qp::init_rq, init_rq);
    hw::set(c, hw::cmd_qp::init_sq, init_sq);
  });
}

void Qp::connect(const Qp& peer, std::uint32_t sq_psn, std::uint32_t rq_psn) {
  namespace q = hw::qpc;
  const auto gid = gid_of(peer.host_.index, host_.world.ipv6);
  hw::set(image, q::dest_qpn, peer.spec.qpn);
  hw::set(image, q::dmac, mac_of(peer.host_.index));
  std::copy(gid.begin(), gid.end(), hw::raw(std::span<std::byte>(image), q::dgid).begin());
  hw::set(image, q::sq_psn, sq_psn);
  hw::set(image, q::rq_psn, rq_psn);
  const auto check = [](hw::CmdStatus s) {
    if (s != hw::CmdStatus::kOk) throw std::runtime_error("bench: QP_MODIFY failed");
  };
  check(modify(hw::QpState::kInit));
  check(modify(hw::QpState::kRtr, true));
  check(modify(hw::QpState::kRts, false, true));
}

void Qp::post(const Send& s) {
  namespace w = hw::wqe;
  const std::uint64_t stride = 1ull << spec.sq_stride_log;
  const auto raw = host_.at(sq + (sq_pi & ((1u << spec.sq_log) - 1)) * stride, stride);
  std::fill(raw.begin(), raw.end(), std::byte{0xee});
  for (std::size_t i = 0; i < 8; ++i) hw::store_le64(raw, i * 8, 0);
  std::uint64_t total = s.data.size();
  for (const Sge& g : s.sges) total += g.length;
  hw::set(raw, w::opcode, static_cast<std::uint64_t>(s.op));
  hw::set(raw, w::signaled, s.signaled);
  hw::set(raw, w::solicited, s.solicited);
  hw::set(raw, w::inline_, s.inlined);
  hw::set(raw, w::fence, s.fence);
  hw::set(raw, w::num_sge, s.sges.size());
  hw::set(raw, w::index, sq_pi);
  hw::set(raw, w::length, s.length.value_or(static_cast<std::uint32_t>(total)));
  hw::set(raw, w::imm, s.imm);
  hw::set(raw, w::remote_addr, s.remote_addr);
  hw::set(raw, w::rkey, s.rkey);
  const bool atomic = s.op == hw::WqeOp::kCmpSwap || s.op == hw::WqeOp::kFetchAdd;
  if (atomic) {
    hw::set(raw, w::swap_add, s.swap_add);
    hw::set(raw, w::compare, s.compare);
  }
  std::size_t at = atomic ? hw::kWqeAtomicDataOff : hw::kWqeDataOff;
  if (s.av) {
    namespace a = hw::av;
    at = hw::kWqeUdDataOff;
    const auto av = raw.subspan(16, a::kBytes);
    std::fill(av.begin(), av.end(), std::byte{});
    const Host& peer = s.av->to->host();
    const auto gid = gid_of(peer.index, peer.world.ipv6);
    hw::set(av, a::dest_qpn, s.av->to->spec.qpn);
    hw::set(av, a::sgid_index, s.av->sgid_index);
    hw::set(av, a::qkey, s.av->qkey);
    hw::set(av, a::dmac, mac_of(peer.index));
    hw::set(av, a::sport, s.av->sport);
    std::copy(gid.begin(), gid.end(), hw::raw(av, a::dgid).begin());
  }
  for (const Sge& g : s.sges) {
    hw::store_le64(raw, at, g.addr);
    hw::store_le64(raw, at + 8, hw::place(hw::sge::length, g.length) | hw::place(hw::sge::lkey, g.lkey));
    at += 16;
  }
  if (!s.data.empty()) std::memcpy(raw.data() + at, s.data.data(), s.data.size());
  sq_pi = (sq_pi + 1) & 0xffffff;
}

void Qp::ring_sq() { host_.ring(spec.page, hw::DbKind::kSq, spec.qpn, sq_pi); }

void Qp::post_recv(std::uint64_t wr_id, const std::vector<Sge>& sges) {
  const std::uint64_t stride = 1ull << spec.rq_stride_log;
  const auto raw = host_.at(rq + (rq_pi & ((1u << spec.rq_log) - 1)) * stride, stride);
  std::fill(raw.begin(), raw.end(), std::byte{0xdd});
  hw::store_le64(raw, 0, wr_id);
  hw::store_le64(raw, 8, hw::place(hw::rqe::num_sge, sges.size()) | hw::place(hw::rqe::index, rq_pi));
  std::size_t at = hw::kRqeDataOff;
  for (const Sge& g : sges) {
    hw::store_le64(raw, at, g.addr);
    hw::store_le64(raw, at + 8, hw::place(hw::sge::length, g.length) | hw::place(hw::sge::lkey, g.lkey));
    at += 16;
  }
  rq_pi = (rq_pi + 1) & 0xffffff;
}

void Qp::ring_rq() { host_.ring(spec.page, hw::DbKind::kRq, spec.qpn, rq_pi); }

hw::progress::Bytes Qp::query() {
  const std::uint64_t out = host_.alloc(64, 64);
  host_.command(hw::CmdOp::kQpQuery, spec.qpn, [&](auto& c) { hw::set(c, hw::cmd_qp::image, out); });
  hw::progress::Bytes p;
  std::memcpy(p.data(), host_.at(out, 64).data(), 64);
  return p;
}

}  // namespace ordma::bench
