// SPDX-License-Identifier: BSD-2-Clause
// A small machine around one or two engines: fake host memory with revocable ranges, the driver's
// command helper, queues as a provider would keep them, a wire with faults, and virtual time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
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

using Addr = std::uint64_t;
using Bytes = std::vector<std::byte>;

struct WriteRecord {
  WriteKind kind;
  Addr addr;
  std::size_t bytes;
};

class Memory final : public HostPort {
 public:
  static constexpr Addr kBase = 0x1'0000'0000;
  explicit Memory(std::size_t bytes);

  Addr alloc(std::size_t bytes, std::size_t align = 64);
  [[nodiscard]] std::span<std::byte> at(Addr addr, std::size_t bytes);
  void fill(Addr addr, std::size_t bytes, unsigned seed);
  [[nodiscard]] bool filled(Addr addr, std::size_t bytes, unsigned seed);
  [[nodiscard]] std::uint64_t load(Addr addr);
  void store(Addr addr, std::uint64_t value);
  // Any access from now on fails and is counted.
  void revoke(Addr addr, std::size_t bytes) { revoked_.push_back({addr, bytes}); }
  void restore() { revoked_.clear(); }

  bool read(std::uint64_t addr, std::span<std::byte> dst) override;
  bool write(std::uint64_t addr, std::span<const std::byte> src, WriteKind kind) override;
  void interrupt(unsigned vector) override { ++interrupts[vector]; }
  void packet_out(Frame frame) override { out(std::move(frame)); }
  void register_changed(std::uint32_t offset, std::uint64_t value) override {
    registers[offset] = value;
  }
  void page_changed(std::uint32_t page, bool open, bool token) override {
    pages[page] = {open, token};
  }

  std::function<void(Frame)> out = [](Frame) {};
  std::map<unsigned, unsigned> interrupts;
  std::map<std::uint32_t, std::uint64_t> registers;
  std::map<std::uint32_t, std::pair<bool, bool>> pages;
  bool trace = false;
  std::vector<WriteRecord> writes;
  std::uint64_t reads = 0;
  std::uint64_t violations = 0;

 private:
  struct Range {
    Addr addr;
    std::size_t bytes;
  };
  [[nodiscard]] bool allowed(Addr addr, std::size_t bytes);
  // Zero pages until touched: a test uses a fraction of it.
  std::unique_ptr<std::byte, void (*)(void*)> data_;
  std::size_t size_;
  Addr next_ = kBase;
  std::vector<Range> revoked_;
};

struct Mr {
  Addr addr = 0;  // host memory behind it
  std::uint64_t iova = 0;
  std::uint64_t length = 0;
  std::uint32_t key = 0;
};

struct Wc {
  std::uint64_t wr_id;
  std::uint32_t qpn;
  hw::WcOp opcode;
  hw::WcStatus status;
  std::uint32_t wqe_index;
  std::uint32_t vendor_err;
  std::uint32_t byte_len;
  std::uint32_t imm;
  std::uint32_t src_qpn;
  bool is_recv, has_imm, has_grh, ipv4, solicited;
  std::uint32_t sl;
  std::uint64_t smac;
  std::uint32_t vlan;
};

struct Event {
  hw::EventType type;
  std::uint32_t code, number, psn, log_index;
  std::uint64_t time;
};

class Node;

class Cq {
 public:
  std::optional<Wc> poll();
  std::vector<Wc> drain();
  void arm(bool solicited = false, bool fire_now = false);
  void publish();  // consumer record
  std::uint32_t number = 0;
  std::uint32_t log = 0;
  Addr ring = 0;
  Addr record = 0;
  std::uint32_t ci = 0;
  std::uint32_t arm_seq = 0;
  bool auto_publish = true;
  Node* node = nullptr;
  std::uint32_t page = 0;
};

struct Piece {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

struct Send {
  hw::WqeOp op = hw::WqeOp::kWrite;
  std::vector<Piece> sges;
  std::vector<std::byte> inline_data;
  bool inlined = false;
  bool signaled = true;
  bool fence = false;
  bool solicited = false;
  std::uint32_t imm = 0;
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;
  std::optional<std::uint32_t> length;      // lie about it
  std::optional<std::uint16_t> index;       // lie about it
  hw::av::Bytes av{};                       // UD
};

struct QpOptions {
  hw::QpType type = hw::QpType::kRc;
  std::uint32_t uctx = 1;
  std::uint32_t pd = 7;
  std::uint32_t page = 1;
  Cq* scq = nullptr;
  Cq* rcq = nullptr;
  std::optional<std::uint32_t> srqn;
  unsigned sq_log = 6, rq_log = 6, sq_stride_log = 9, rq_stride_log = 7;
  unsigned log_log = 6;
  unsigned mtu_log = 10;
  unsigned access = 15;
  unsigned max_rd_atomic = 8, max_dest_rd_atomic = 8;
  unsigned min_rnr_timer = 12;
  unsigned sgid_index = 0;
  unsigned hop_limit = 64, tclass = 0;
  std::uint32_t sq_psn = 0x100, rq_psn = 0x200;
  std::uint32_t qkey = 0x11111111;
  std::uint64_t silence = 0;
  std::uint16_t sport = 0;
  bool lists = false;  // rings through page lists instead of contiguous memory
};

class Qp {
 public:
  // Writes WQEs; ring() tells the NIC.
  std::uint32_t post(const Send& send);
  void post_recv(std::uint64_t wr_id, const std::vector<Piece>& sges);
  void ring();
  void ring_recv();
  void send(const Send& s) {
    post(s);
    ring();
  }
  void recv(std::uint64_t wr_id, const std::vector<Piece>& sges) {
    post_recv(wr_id, sges);
    ring_recv();
  }
  // QP_MODIFY along the usual path; `dgid`, `dmac` name the peer.
  hw::CmdStatus to(hw::QpState state, bool init_rq = false, bool init_sq = false);
  void connect(std::uint32_t dest_qpn, std::span<const std::byte> dgid, std::uint64_t dmac);
  [[nodiscard]] hw::progress::Bytes query();
  [[nodiscard]] std::uint64_t query(hw::Field f) {
    const auto raw = query();
    return hw::get(raw, f);
  }
  [[nodiscard]] Addr wqe(std::uint32_t index) const;
  [[nodiscard]] Addr log_entry(std::uint32_t index) const;

  Node* node = nullptr;
  QpOptions o;
  std::uint32_t qpn = 0;
  Addr sq = 0, rq = 0, log = 0, atomics = 0, image = 0;
  std::uint32_t sq_pi = 0, rq_pi = 0;
  hw::qpc::Bytes qpc{};
  std::vector<Addr> sq_pages, rq_pages;  // when behind a list
};

struct Srq {
  Node* node = nullptr;
  std::uint32_t number = 0;
  std::uint32_t log = 0, stride_log = 0, page = 0;
  Addr ring = 0, record = 0;
  std::uint32_t pi = 0;
  void post(std::uint64_t wr_id, const std::vector<Piece>& sges);
};

class Node {
 public:
  explicit Node(unsigned id, std::size_t memory = 48u << 20, EngineConfig config = {});

  // Driver.
  hw::CmdStatus command(hw::CmdOp op, std::uint32_t number,
                        const std::function<void(std::span<std::byte>)>& fill = {},
                        std::uint64_t* result0 = nullptr, bool irq = false);
  void recovery(hw::CmdOp op, std::uint32_t number,
                const std::function<void(std::span<std::byte>)>& fill);
  void rewind(std::uint32_t qpn, std::uint32_t log_index, std::uint32_t psn,
              std::uint64_t not_before = 0);
  void fail(std::uint32_t qpn, std::uint32_t psn, hw::WcStatus status, unsigned vendor_err = 0);
  hw::CmdStatus open_page(std::uint32_t page, std::uint32_t uctx, bool token = false);
  hw::CmdStatus set_gid(unsigned index, std::span<const std::byte> gid, std::uint64_t mac,
                        int vlan = -1);
  Mr reg_mr(std::uint64_t bytes, unsigned access = 15, std::uint32_t pd = 7);
  // Memory in pages of 4 KiB that are not neighbours; `tree` picks the two-level list.
  Mr reg_mr_list(std::uint64_t bytes, unsigned first_off, bool tree, unsigned access = 15,
                 std::uint32_t pd = 7);
  hw::CmdStatus create_mr(const Mr& mr, unsigned access, std::uint32_t pd);
  Cq create_cq(unsigned log, std::uint32_t uctx = 1, std::uint32_t page = 1, unsigned vector = 1);
  Srq create_srq(unsigned log, unsigned limit = 0, std::uint32_t pd = 7);
  Qp create_qp(const QpOptions& o);
  hw::CmdStatus destroy_qp(Qp& qp) { return command(hw::CmdOp::kQpDestroy, qp.qpn); }
  [[nodiscard]] std::vector<Event> events();
  [[nodiscard]] std::uint64_t counter(hw::Counter c);
  void doorbell(std::uint32_t page, hw::DbKind kind, std::uint32_t number, std::uint32_t index,
                std::uint64_t extra = 0);
  [[nodiscard]] Addr page_record(std::uint32_t page) const { return page_records_ + page * 32; }

  // Bytes of a paged MR, gathered and scattered by the test.
  void copy_in(const Mr& mr, std::uint64_t offset, std::span<const std::byte> data);
  [[nodiscard]] Bytes copy_out(const Mr& mr, std::uint64_t offset, std::size_t bytes);

  unsigned id;
  Memory mem;
  std::unique_ptr<Engine> nic;
  std::array<std::byte, 16> gid{};
  std::uint64_t mac = 0;
  std::uint32_t next_qpn = 0x12'0002;
  std::uint32_t next_cq = 3, next_srq = 2, next_key = 1;
  std::uint32_t cmd_pi = 0, rcmd_pi = 0, event_ci = 0;

  static constexpr unsigned kCmdLog = 6, kRcmdLog = 6, kEventLog = 10;

 private:
  Addr cmds_, rsps_, rcmds_, events_, page_records_, scratch_;
  std::map<std::uint32_t, std::vector<Addr>> paged_;  // by key
};

[[nodiscard]] std::array<std::byte, 16> v4_gid(unsigned a, unsigned b, unsigned c, unsigned d);
[[nodiscard]] std::array<std::byte, 16> v6_gid(unsigned id);

// Two nodes and a wire between them. A frame addressed to its own sender comes back, as a fabric
// port does it.
class Pair {
 public:
  struct Verdict {
    bool drop = false;
    bool duplicate = false;
    unsigned hold = 0;  // let this many later frames of the direction pass first
  };
  using Filter = std::function<Verdict(unsigned from, std::span<const std::byte> frame)>;

  explicit Pair(EngineConfig config = {}, std::size_t memory = 48u << 20);
  // Steps both engines until neither has anything to do now; `each` is called after every round.
  void run(const std::function<void()>& each = {});
  // Moves time and runs; timers in between fire in order.
  void advance(std::uint64_t ns, const std::function<void()>& each = {});
  // Two connected QPs, RTS, with default queues; a.qp[i] talks to b.qp[i].
  void connect(Qp& x, Qp& y);

  Node a, b;
  std::uint64_t now = 0;
  Filter filter;
  std::vector<Bytes> sent[2];  // frames as sent, when capture is set
  bool capture = false;

 private:
  struct Held {
    Frame frame;
    unsigned left;
  };
  void put(unsigned from, Frame frame);
  void deliver(unsigned from, Frame frame);
  Node& node(unsigned i) { return i == 0 ? a : b; }
  std::deque<Held> held_[2];
};

// The CPU's part of recovery at its simplest: rewinds on NAK, RNR, implied NAK and silence, with
// counters that progress resets, and fails the QP on a fatal NAK or when they run out.
class Cpu {
 public:
  explicit Cpu(Node& node) : node_(node) {}
  void handle(std::uint64_t now);
  unsigned retry_cnt = 7;
  unsigned rnr_retry = 7;  // 7: for ever
  std::uint64_t rnr_ns = 640'000;
  unsigned rewinds = 0;
  std::vector<Event> other;

 private:
  struct State {
    unsigned retries = 0, rnr = 0;
    std::uint32_t psn = ~0u;
  };
  Node& node_;
  std::map<std::uint32_t, State> state_;
};

}  // namespace ordma::bench
