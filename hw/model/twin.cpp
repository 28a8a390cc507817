// SPDX-License-Identifier: BSD-2-Clause
// The engine interface on top of the blocks: registers, the step and time.
#include <algorithm>

#include "nic.hpp"

namespace ordma {
namespace twin {
namespace {

inline constexpr std::uint64_t kBuildNumber = 1;

constexpr std::uint64_t caps() {
  std::uint64_t v = 0;
  for (const hw::Cap c : {hw::Cap::kRc, hw::Cap::kUc, hw::Cap::kUd, hw::Cap::kSrq, hw::Cap::kRead,
                          hw::Cap::kAtomic, hw::Cap::kEth, hw::Cap::kMcast, hw::Cap::kResizeCq,
                          hw::Cap::kIpv6}) {
    v |= raw_value(c);
  }
  return v;
}

class Twin final : public Engine {
 public:
  Twin(const EngineConfig& config, HostPort& host) : nic_(config, host) {}

  std::string_view name() const override { return "twin"; }
  void register_write(std::uint32_t offset, std::uint64_t value) override;
  std::uint64_t register_read(std::uint32_t offset) const override;
  void doorbell(std::uint32_t page, std::uint32_t offset, std::uint64_t word,
                std::uint8_t strobes) override;
  void packet_in(Frame frame) override;
  bool step(unsigned budget) override;
  bool idle() const override;
  std::uint64_t next_timer_ns() const override;
  void set_time(std::uint64_t now_ns) override { nic_.now = std::max(nic_.now, now_ns); }
  std::uint64_t take_busy_ns() override { return std::exchange(nic_.busy_ns, 0); }
  std::vector<EngineCounter> internals() const override;

 private:
  [[nodiscard]] std::uint64_t identity(std::uint32_t offset) const;
  Nic nic_;
};

void Twin::register_write(std::uint32_t offset, std::uint64_t value) {
  Registers& r = nic_.regs;
  switch (offset) {
    case hw::reg::kReset: return nic_.reset(value);
    case hw::reg::kEnable: return nic_.set_enable(value);
    case hw::reg::kLinkCtrl: return nic_.set_link(value);
    case hw::reg::kCmdBase: r.cmd_base = value; return;
    case hw::reg::kCmdRsp: r.cmd_rsp = value; return;
    case hw::reg::kCmdLog: r.cmd_log = value; return;
    case hw::reg::kRcmdLog: r.rcmd_log = value; return;
    case hw::reg::kRcmdBase: r.rcmd_base = value; return;
    case hw::reg::kEqBase: r.eq_base = value; return;
    case hw::reg::kEqLog: r.eq_log = value; return;
    case hw::reg::kEqCi:
      r.eq_ci = value;
      if (nic_.running()) nic_.events.consumed(static_cast<std::uint32_t>(value));
      return;
    default: return;
  }
}

std::uint64_t Twin::identity(std::uint32_t offset) const {
  const EngineLimits& l = nic_.config.limits;
  switch (offset) {
    case hw::reg::kMagic: return hw::kMagic;
    case hw::reg::kVersion: return hw::kContractMajor << 16 | hw::kContractMinor;
    case hw::reg::kBuild: return raw_value(hw::Engine::kTwin) << 32 | kBuildNumber;
    case hw::reg::kCaps: return caps();
    case hw::reg::kMaxQp: return l.max_qp;
    case hw::reg::kMaxCq: return l.max_cq;
    case hw::reg::kMaxSrq: return l.max_srq;
    case hw::reg::kMaxMr: return l.max_mr;
    case hw::reg::kMaxPage: return l.max_page;
    case hw::reg::kMaxUctx: return l.max_uctx;
    case hw::reg::kMaxSge: return l.max_sge;
    case hw::reg::kMaxInline: return l.max_inline;
    case hw::reg::kMaxWr: return l.max_wr;
    case hw::reg::kMaxCqe: return l.max_cqe;
    case hw::reg::kMaxRdAtomic: return l.max_rd_atomic;
    case hw::reg::kMaxGid: return l.max_gid;
    case hw::reg::kMaxMcast: return l.max_mcast;
    case hw::reg::kPortMtu: return nic_.config.port_mtu;
    case hw::reg::kPortSpeed: return nic_.config.port_speed_mbps;
    case hw::reg::kMac: return nic_.config.mac;
    case hw::reg::kGuid: return nic_.config.guid;
    default: return 0;  // DATA_W: no data path; ASLEEP: the owner's
  }
}

std::uint64_t Twin::register_read(std::uint32_t offset) const {
  const Registers& r = nic_.regs;
  switch (offset) {
    case hw::reg::kStatus: return nic_.status();
    case hw::reg::kReset:
    case hw::reg::kResetEcho: return r.reset_echo;
    case hw::reg::kEnable: return r.enable;
    case hw::reg::kCmdBase: return r.cmd_base;
    case hw::reg::kCmdRsp: return r.cmd_rsp;
    case hw::reg::kCmdLog: return r.cmd_log;
    case hw::reg::kRcmdLog: return r.rcmd_log;
    case hw::reg::kRcmdBase: return r.rcmd_base;
    case hw::reg::kEqBase: return r.eq_base;
    case hw::reg::kEqLog: return r.eq_log;
    case hw::reg::kEqCi: return r.eq_ci;
    case hw::reg::kLinkCtrl: return r.link_ctrl;
    case hw::reg::kClock: return nic_.now;
    default: return identity(offset);
  }
}

void Twin::doorbell(std::uint32_t page, std::uint32_t offset, std::uint64_t word,
                    std::uint8_t strobes) {
  if (nic_.running()) nic_.doorbells.take(page, offset, word, strobes);
}

void Twin::packet_in(Frame frame) {
  if (!nic_.running() || !nic_.link_up()) return;
  ++nic_.stats.frames_in;
  nic_.receiver.enqueue(std::move(frame));
}

bool Twin::step(unsigned budget) {
  if (!nic_.running()) return false;
  ++nic_.stats.steps;
  bool any = nic_.commands.process();
  nic_.requester.sweep();
  nic_.doorbells.sweep();
  // Requests first, then what they ask for in one go: acknowledgements coalesce.
  any |= nic_.receiver.run(budget) != 0;
  any |= nic_.responder.run(budget) != 0;
  any |= nic_.requester.run(budget) != 0;
  nic_.cqs.settle();
  return nic_.running() && (any || !idle());
}

bool Twin::idle() const {
  return !nic_.running() ||
         (!nic_.receiver.busy() && !nic_.responder.busy() && !nic_.requester.busy() &&
          !nic_.commands.pending() && !nic_.cqs.unsettled() && next_timer_ns() > nic_.now);
}

std::uint64_t Twin::next_timer_ns() const {
  if (!nic_.running()) return kNever;
  return std::min(nic_.requester.next_timer(), nic_.doorbells.next_timer());
}

std::vector<EngineCounter> Twin::internals() const {
  return {{"steps", nic_.stats.steps},
          {"frames_in", nic_.stats.frames_in},
          {"frames_out", nic_.stats.frames_out},
          {"rewinds_ignored", nic_.stats.bad_rewinds}};
}

}  // namespace
}  // namespace twin

std::unique_ptr<Engine> make_twin(const EngineConfig& config, HostPort& host) {
  return std::make_unique<twin::Twin>(config, host);
}

}  // namespace ordma
