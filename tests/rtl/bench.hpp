// SPDX-License-Identifier: BSD-2-Clause
// Two NICs, their hosts and the wire between them, driven through nothing but the contract: registers,
// command ring, doorbells, queue memory. The wire checks every frame by means of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "ordma_hw.hpp"

namespace ordma::bench {

// What an independent reader finds in a RoCEv2 frame.
struct Decoded {
  bool roce = false;
  bool icrc_ok = false;
  bool checksum_ok = false;  // IPv4 header, or UDP over IPv6
  std::uint8_t opcode = 0;
  bool solicited = false;
  bool ack_req = false;
  unsigned pad = 0;
  std::uint32_t dest_qpn = 0;
  std::uint32_t psn = 0;
  std::vector<std::uint8_t> body;  // behind the BTH, without pad and ICRC
};
Decoded decode(std::span<const std::uint8_t> frame);
std::uint32_t icrc_of(std::span<const std::uint8_t> frame);

struct Sge {
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t lkey;
};

struct Cqe {
  std::uint64_t wr_id;
  std::uint32_t qpn;
  hw::WcOp opcode;
  hw::WcStatus status;
  std::uint32_t wqe_index;
  std::uint32_t byte_len;
  std::uint32_t imm;
  bool is_recv;
  bool has_imm;
  bool solicited;
  std::uint8_t vendor_err;
  std::uint32_t src_qpn;
  bool has_grh;
  bool ipv4;
  std::uint64_t smac;
};

struct Event {
  hw::EventType type;
  std::uint8_t code;
  std::uint32_t number;
  std::uint32_t psn;
  std::uint32_t log_index;
};

class World;

// One host with its NIC: memory, driver and queues.
class Host final : public HostPort {
 public:
  static constexpr std::uint64_t kBase = 0x1000'0000;
  static constexpr std::uint64_t kBytes = 64u << 20;

  Host(World& world, int index, const EngineConfig& config);

  // HostPort
  bool read(std::uint64_t addr, std::span<std::byte> dst) override;
  bool write(std::uint64_t addr, std::span<const std::byte> src, WriteKind kind) override;
  void interrupt(unsigned vector) override { ++interrupts[vector]; }
  void packet_out(Frame frame) override;
  void register_changed(std::uint32_t offset, std::uint64_t value) override { regs[offset] = value; }
  void page_changed(std::uint32_t page, bool open, bool) override { pages[page] = open; }

  // Memory
  std::uint64_t alloc(std::uint64_t bytes, std::uint64_t align = 4096);
  std::span<std::byte> at(std::uint64_t addr, std::uint64_t bytes);
  void fill(std::uint64_t addr, std::uint64_t bytes, unsigned seed);
  void revoke(std::uint64_t addr, std::uint64_t bytes) { revoked.push_back({addr, bytes}); }

  // Driver
  void start();
  void ring(std::uint32_t page, hw::DbKind kind, std::uint32_t number, std::uint32_t index,
            std::uint64_t extra = 0);
  hw::CmdStatus command(hw::CmdOp op, std::uint32_t number,
                        const std::function<void(hw::cmd::Bytes&)>& args = {});
  void recover(hw::CmdOp op, std::uint32_t number, const std::function<void(hw::cmd::Bytes&)>& args);
  std::optional<Event> event();
  std::vector<std::uint64_t> counters();
  std::uint64_t counter(hw::Counter c) { return counters()[static_cast<std::size_t>(c)]; }

  World& world;
  int index;
  std::unique_ptr<Engine> engine;
  std::vector<std::byte> memory;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> revoked;
  std::vector<std::string> violations;
  std::map<unsigned, int> interrupts;
  std::map<std::uint32_t, std::uint64_t> regs;
  std::map<std::uint32_t, bool> pages;
  std::vector<std::pair<std::uint64_t, WriteKind>> writes;  // order of the egress, address and kind
  std::uint64_t result0 = 0;

 private:
  std::uint64_t next_ = kBase;
  std::uint64_t cmd_base_ = 0, rsp_base_ = 0, rcmd_base_ = 0, eq_base_ = 0;
  std::uint32_t cmd_pi_ = 0, rcmd_pi_ = 0, eq_ci_ = 0;
};

// What happens to a frame between the NICs.
using Filter = std::function<bool(int from, const Decoded&, Frame&)>;  // false: lost

class World {
 public:
  explicit World(const std::function<std::unique_ptr<Engine>(const EngineConfig&, HostPort&)>& make,
                 bool ipv6 = false, bool vlan = false);
  // Runs until `done`, at most `limit` rounds; false when it never became true.
  bool run(const std::function<bool()>& done, unsigned limit = 20000);
  void settle(unsigned limit = 20000);
  void carry(int from, Frame frame);
  void advance(std::uint64_t ns);

  std::function<std::unique_ptr<Engine>(const EngineConfig&, HostPort&)> make;
  std::vector<std::unique_ptr<Host>> hosts;
  Filter filter;
  std::uint64_t now = 0;
  std::uint64_t frames = 0;
  std::uint64_t bad_icrc = 0;
  std::uint64_t bad_checksum = 0;
  std::uint64_t not_roce = 0;
  std::vector<std::pair<int, Decoded>> log;
  bool ipv6 = false;
  bool vlan = false;

 private:
  std::deque<std::pair<int, Frame>> wire_;
};

struct Mr {
  std::uint32_t key;
  std::uint64_t addr;
  std::uint64_t bytes;
};

struct MrSpec {
  std::uint32_t key = 0;
  std::uint32_t pd = 7;
  std::uint8_t access = 0xf;
  hw::BufLevel level = hw::BufLevel::kDirect;
  std::uint64_t bytes = 0;
  std::uint64_t first_off = 0;
  bool zero_based = false;
};
// Registers fresh memory. With LIST and TREE the pages are scattered and `addr` is only the iova;
// reach the bytes with phys().
struct Region {
  std::uint32_t key = 0;
  std::uint64_t iova = 0;
  std::uint64_t bytes = 0;
  std::uint64_t first_off = 0;
  std::vector<std::uint64_t> pages;  // 4 KiB each

  [[nodiscard]] std::uint64_t phys(std::uint64_t off) const;
};
Region make_region(Host& host, const MrSpec& spec);
void put(Host& host, const Region& r, std::uint64_t off, std::span<const std::byte> data);
std::vector<std::byte> get(Host& host, const Region& r, std::uint64_t off, std::uint64_t bytes);
std::vector<std::byte> pattern(std::uint64_t bytes, unsigned seed);

class Cq {
 public:
  Cq(Host& host, std::uint32_t cqn, unsigned log, std::uint32_t page, std::uint16_t uctx,
     hw::BufLevel level = hw::BufLevel::kDirect);
  std::optional<Cqe> poll();
  std::optional<Cqe> wait(unsigned limit = 20000);
  void arm(bool solicited);
  void update_record();
  std::uint32_t number;
  std::uint32_t ci = 0;

 private:
  Host& host_;
  unsigned log_;
  std::uint32_t page_;
  std::uint64_t record_;
  std::vector<std::uint64_t> ring_pages_;
  std::uint32_t arm_seq_ = 0;
};

struct QpSpec {
  std::uint32_t qpn = 0;
  unsigned sq_log = 6, sq_stride_log = 8, rq_log = 6, rq_stride_log = 7, log_log = 6;
  unsigned mtu_log = 12;
  std::uint32_t pd = 7;
  std::uint16_t uctx = 1;
  std::uint32_t page = 1;
  std::uint8_t access = 0xf;
  std::uint64_t silence = 0;
  unsigned rd_atomic = 16;
  hw::QpType type = hw::QpType::kRc;
  std::uint32_t qkey = 0;
};

// Address vector of a datagram.
struct Av {
  const class Qp* to = nullptr;
  std::uint32_t qkey = 0;
  std::uint8_t sgid_index = 1;
  std::uint16_t sport = 0;
};

struct Send {
  hw::WqeOp op = hw::WqeOp::kSend;
  bool signaled = true;
  bool solicited = false;
  bool inlined = false;
  bool fence = false;
  std::vector<Sge> sges = {};
  std::vector<std::byte> data = {};  // inline
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;
  std::uint32_t imm = 0;
  std::uint64_t swap_add = 0, compare = 0;
  std::optional<Av> av = {};
  std::optional<std::uint32_t> length = {};  // default: what the SGEs say
};

class Qp {
 public:
  Qp(Host& host, const QpSpec& spec, Cq& scq, Cq& rcq);
  hw::CmdStatus modify(hw::QpState state, bool init_rq = false, bool init_sq = false);
  void connect(const Qp& peer, std::uint32_t sq_psn, std::uint32_t rq_psn);
  void post(const Send& send);
  void ring_sq();
  void post_recv(std::uint64_t wr_id, const std::vector<Sge>& sges);
  void ring_rq();
  hw::progress::Bytes query();

  QpSpec spec;
  hw::qpc::Bytes image{};
  std::uint32_t sq_pi = 0, rq_pi = 0;
  hw::CmdStatus created{};
  [[nodiscard]] Host& host() const { return host_; }
  std::uint64_t sq = 0, rq = 0, log = 0;

 private:
  Host& host_;
};

}  // namespace ordma::bench
