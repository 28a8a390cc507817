// SPDX-License-Identifier: BSD-2-Clause
#include "rtl_engine.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "Vordma_nic.h"
#include "ordma_hw.hpp"
#include "verilated.h"
#ifdef ORDMA_RTL_TRACE
#include "verilated_fst_c.h"
#else
class VerilatedFstC {};
#endif

namespace ordma::rtl {
namespace {

constexpr std::uint64_t kCycleNs = 4;        // 250 MHz
constexpr std::uint64_t kReadLatency = 24;   // cycles from a read request to its first beat
constexpr unsigned kCyclesPerUnit = 16;      // of step()'s budget
constexpr std::size_t kBeat = 64;
constexpr std::size_t kFrameQueue = 4096;    // frames waiting at the MAC
constexpr std::size_t kDoorbellQueue = 256;
constexpr std::uint8_t kKindInterrupt = 15;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

}  // namespace

RtlEngine::RtlEngine(const EngineConfig& config, HostPort& host)
    : host_(host),
      context_(std::make_unique<VerilatedContext>()),
      top_(std::make_unique<Vordma_nic>(context_.get(), "nic")) {
#ifdef ORDMA_RTL_TRACE
  if (!config.waves.empty()) {
    context_->traceEverOn(true);
    waves_ = std::make_unique<VerilatedFstC>();
    top_->trace(waves_.get(), 99);
    waves_->open(config.waves.c_str());
  }
#else
  if (!config.waves.empty()) {
    throw std::runtime_error("rtl engine: built without waves; configure with -DORDMA_RTL_TRACE=ON");
  }
#endif
  top_->mac_i = config.mac;
  top_->guid_i = config.guid;
  top_->port_mtu_i = config.port_mtu;
  top_->port_speed_i = config.port_speed_mbps;
  top_->engine_i = static_cast<std::uint8_t>(hw::Engine::kRtlSim);
  top_->wr_ready_i = 1;
  top_->tx_ready_i = 1;
  top_->rd_ready_i = 1;
  top_->rst_ni = 0;
  for (int i = 0; i < 4; ++i) tick();
  top_->rst_ni = 1;
  for (int i = 0; i < 4; ++i) tick();
  busy_ns_ = 0;
}

RtlEngine::~RtlEngine() {
#ifdef ORDMA_RTL_TRACE
  if (waves_) waves_->close();
#endif
  top_->final();
}

void RtlEngine::register_write(std::uint32_t offset, std::uint64_t value) {
  top_->reg_we_i = 1;
  top_->reg_waddr_i = static_cast<std::uint16_t>(offset);
  top_->reg_wdata_i = value;
  tick();
  top_->reg_we_i = 0;
  tick();
  report_registers();
}

std::uint64_t RtlEngine::register_read(std::uint32_t offset) const {
  top_->reg_raddr_i = static_cast<std::uint16_t>(offset);
  top_->eval();
  return top_->reg_rdata_o;
}

void RtlEngine::doorbell(std::uint32_t page, std::uint32_t offset, std::uint64_t word,
                         std::uint8_t strobes) {
  while (doorbells_.size() >= kDoorbellQueue) tick();
  doorbells_.push_back({static_cast<std::uint16_t>(page), static_cast<std::uint16_t>(offset & 0xfff),
                        word, strobes});
}

void RtlEngine::packet_in(Frame frame) {
  if (frames_.size() >= kFrameQueue || frame.empty()) {
    ++overruns_;
    ++dropped_frames_;
    return;
  }
  frames_.push_back(std::move(frame));
}

bool RtlEngine::inputs_pending() const {
  return !doorbells_.empty() || !frames_.empty() || !reads_.empty() || read_active_ ||
         overruns_ != 0;
}

bool RtlEngine::idle() const {
  return !inputs_pending() && top_->idle_o != 0 && now_ns_ < next_timer_ns();
}

std::uint64_t RtlEngine::next_timer_ns() const {
  const std::uint64_t next = top_->next_timer_o;
  return next == 0 ? kNever : next;
}

bool RtlEngine::step(unsigned budget) {
  bool any = false;
  for (std::uint64_t n = std::uint64_t{budget} * kCyclesPerUnit; n != 0 && !idle(); --n) {
    tick();
    any = true;
  }
  report_registers();
  return any;
}

void RtlEngine::tick() {
  drive_doorbell();
  drive_packet();
  drive_read_response();
  top_->rx_overrun_i = overruns_ != 0;
  if (overruns_ != 0) --overruns_;
  top_->time_i = now_ns_;
  top_->clk_i = 0;
  top_->eval();
#ifdef ORDMA_RTL_TRACE
  if (waves_) waves_->dump(cycles_ * kCycleNs);
#endif
  // Outputs and handshakes are those before the edge.
  take_outputs();
  top_->clk_i = 1;
  top_->eval();
#ifdef ORDMA_RTL_TRACE
  if (waves_) waves_->dump(cycles_ * kCycleNs + kCycleNs / 2);
#endif
  ++cycles_;
  now_ns_ += kCycleNs;
  busy_ns_ += kCycleNs;
}

void RtlEngine::drive_doorbell() {
  top_->db_valid_i = !doorbells_.empty();
  if (doorbells_.empty()) return;
  const Doorbell& d = doorbells_.front();
  top_->db_page_i = d.page;
  top_->db_offset_i = d.offset;
  top_->db_word_i = d.word;
  top_->db_strobe_i = d.strobes;
}

void RtlEngine::drive_packet() {
  top_->rx_valid_i = !frames_.empty();
  if (frames_.empty()) return;
  const auto bytes = frames_.front().bytes().subspan(frame_at_);
  const std::size_t n = std::min(bytes.size(), kBeat);
  std::memcpy(top_->rx_data_i.data(), bytes.data(), n);
  std::memset(reinterpret_cast<std::byte*>(top_->rx_data_i.data()) + n, 0, kBeat - n);
  top_->rx_count_i = static_cast<std::uint8_t>(n);
  top_->rx_last_i = n == bytes.size();
}

void RtlEngine::drive_read_response() {
  top_->rd_rsp_valid_i = 0;
  if (reads_.empty()) return;
  const Read& r = reads_.front();
  if (!read_active_) {
    if (cycles_ < r.due) return;
    // The host is asked now: what the NIC wrote before it asked has been applied.
    read_ok_ = host_.read(r.addr, std::span(read_data_).first(r.len));
    read_at_ = 0;
    read_active_ = true;
  }
  const std::size_t n = std::min<std::size_t>(kBeat, r.len - read_at_);
  std::memcpy(top_->rd_rsp_data_i.data(), read_data_.data() + read_at_, n);
  std::memset(reinterpret_cast<std::byte*>(top_->rd_rsp_data_i.data()) + n, 0, kBeat - n);
  read_at_ += n;
  top_->rd_rsp_valid_i = 1;
  top_->rd_rsp_tag_i = r.tag;
  top_->rd_rsp_ok_i = read_ok_;
  top_->rd_rsp_last_i = read_at_ == r.len;
  if (read_at_ == r.len) {
    read_active_ = false;
    reads_.pop_front();
  }
}

void RtlEngine::take_outputs() {
  if (top_->db_valid_i && top_->db_ready_o) doorbells_.pop_front();
  if (top_->rx_valid_i && top_->rx_ready_o) {
    frame_at_ += top_->rx_count_i;
    if (top_->rx_last_i) {
      frames_.pop_front();
      frame_at_ = 0;
    }
  }
  if (top_->rd_valid_o) {
    reads_.push_back({cycles_ + kReadLatency, top_->rd_addr_o,
                      std::min<std::uint16_t>(top_->rd_len_o, read_data_.size()), top_->rd_tag_o});
  }
  if (top_->wr_valid_o) take_write();
  if (top_->tx_valid_o) take_packet();
  if (top_->page_changed_o) {
    const std::uint32_t page = top_->page_number_o;
    if (pages_.size() <= page) pages_.resize(page + 1);
    pages_[page] = static_cast<std::uint8_t>(top_->page_open_o | top_->page_token_o << 1);
    host_.page_changed(page, top_->page_open_o, top_->page_token_o);
  }
}

void RtlEngine::take_write() {
  const std::uint8_t kind = top_->wr_kind_o;
  if (kind == kKindInterrupt) {
    host_.interrupt(static_cast<unsigned>(top_->wr_addr_o));
    return;
  }
  const std::size_t len = top_->wr_len_o;
  const std::size_t n = std::min(kBeat, len - write_data_.size());
  const auto* data = reinterpret_cast<const std::byte*>(top_->wr_data_o.data());
  write_data_.insert(write_data_.end(), data, data + n);
  if (!top_->wr_last_o) return;
  // Posted: like on PCIe the NIC does not learn of a failure.
  if (!host_.write(top_->wr_addr_o, write_data_, static_cast<WriteKind>(kind))) ++failed_writes_;
  write_data_.clear();
}

void RtlEngine::take_packet() {
  const auto* data = reinterpret_cast<const std::uint8_t*>(top_->tx_data_o.data());
  packet_data_.insert(packet_data_.end(), data, data + top_->tx_count_o);
  if (!top_->tx_last_o) return;
  host_.packet_out(Frame::copy_of(packet_data_));
  packet_data_.clear();
}

void RtlEngine::report_registers() {
  if (top_->reg_reset_echo_o != reset_echo_) {
    reset_echo_ = top_->reg_reset_echo_o;
    for (std::uint32_t page = 0; page < pages_.size(); ++page) {
      if (pages_[page] & 1) host_.page_changed(page, false, (pages_[page] & 2) != 0);
    }
    pages_.clear();
    host_.register_changed(hw::reg::kResetEcho, reset_echo_);
  }
  if (top_->reg_status_o != status_) {
    status_ = top_->reg_status_o;
    host_.register_changed(hw::reg::kStatus, status_);
  }
}

void RtlEngine::set_time(std::uint64_t now_ns) { now_ns_ = std::max(now_ns_, now_ns); }

std::uint64_t RtlEngine::take_busy_ns() { return std::exchange(busy_ns_, 0); }

std::vector<EngineCounter> RtlEngine::internals() const {
  return {{"cycles", cycles_}, {"failed_writes", failed_writes_}, {"dropped_frames", dropped_frames_}};
}

}  // namespace ordma::rtl

namespace ordma {

std::unique_ptr<Engine> make_rtl(const EngineConfig& config, HostPort& host) {
  return std::make_unique<rtl::RtlEngine>(config, host);
}

}  // namespace ordma
