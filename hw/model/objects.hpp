// SPDX-License-Identifier: BSD-2-Clause
// The contexts that the NIC holds: what a command created and what has moved since.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "list.hpp"
#include "wire.hpp"

namespace ordma::twin {

struct GidEntry {
  bool valid = false;
  bool ipv4 = false;
  std::uint16_t vlan = kNoVlan;
  Gid gid{};
  std::uint64_t mac = 0;
};

// Ring memory. The page list stays in host memory; one line of it is cached.
struct QueueBuf {
  std::uint64_t addr = 0;
  std::uint32_t pages = 0;
  hw::BufLevel level{};
  std::uint8_t page_log = 0;
  std::uint32_t line = ~0u;
  std::array<std::uint64_t, 8> entries{};
};

struct WorkRing {
  QueueBuf buf;
  bool exists = false;
  std::uint8_t log = 0;
  std::uint8_t stride_log = 0;
  std::uint32_t pi = 0;  // producer index seen

  [[nodiscard]] std::uint32_t size() const { return 1u << log; }
  [[nodiscard]] std::size_t stride() const { return std::size_t{1} << stride_log; }
  [[nodiscard]] std::uint64_t offset(std::uint32_t index) const {
    return std::uint64_t{index & (size() - 1)} << stride_log;
  }
};

struct Page {
  bool open = false;
  bool token = false;
  std::uint16_t uctx = 0;
  std::uint64_t record = 0;
  std::uint32_t consumed = 0;
  std::uint32_t reported = 0;  // consumed in the last record written
  std::uint32_t errors = 0;
  std::uint64_t bad_word = 0;
  hw::DbErr reason{};
  bool error_pending = false;
  std::uint32_t error_event = 0;
  std::uint64_t last_word_ns = 0;
  std::uint32_t number = 0;
  Link<Page> idle_link;
};

struct Mr {
  bool valid = false;
  std::uint8_t access = 0;
  std::uint8_t page_log = 0;
  hw::BufLevel level{};
  std::uint32_t key = 0;
  std::uint32_t pd = 0;
  std::uint32_t first_off = 0;
  std::uint32_t generation = 0;  // tags TLB lines
  std::uint64_t iova = 0;
  std::uint64_t length = 0;
  std::uint64_t addr = 0;
};

struct Cq {
  std::uint32_t number = 0;
  std::uint16_t uctx = 0;
  std::uint8_t log = 0;
  std::uint8_t vector = 0;
  QueueBuf ring;
  std::uint64_t record = 0;
  std::uint32_t pi = 0;
  std::uint32_t ci = 0;         // cached consumer index
  std::uint32_t seen = 0;       // index of the last arm
  std::uint32_t qualified = 0;  // index past the last solicited or error CQE
  bool armed = false;
  bool solicited_only = false;
  bool fire_now = false;  // the last arm asked for an event in any case
  bool error = false;
  std::uint32_t users = 0;
  std::optional<std::uint64_t> last_arm;
  Link<Cq> wait_link;

  [[nodiscard]] std::uint32_t size() const { return 1u << log; }
};

struct Srq {
  std::uint32_t number = 0;
  std::uint16_t uctx = 0;
  std::uint32_t pd = 0;
  WorkRing ring;
  std::uint64_t record = 0;
  std::uint32_t ci = 0;     // next to fetch
  std::uint32_t limit = 0;  // 0: disarmed
  bool error = false;
  std::uint32_t users = 0;
};

struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

// Position in a scatter/gather list.
struct SgeCursor {
  std::uint32_t sge = 0;
  std::uint32_t offset = 0;
};

inline constexpr std::size_t kWqeMax = std::size_t{1} << hw::kSqStrideLogMax;
inline constexpr std::size_t kSgeMax = (kWqeMax - hw::kRqeDataOff) / hw::sge::kBytes;

// A message whose first packet has left; indexed by order-log index.
struct SentMsg {
  std::uint32_t sq_index = 0;
  std::uint32_t first_psn = 0;
  std::uint32_t psns = 0;  // 0: NOP
  std::uint32_t length = 0;
  std::uint16_t checksum = 0;
  hw::WqeOp opcode{};
  bool signaled = false;
};

// A READ or atomic whose response is still due.
struct ReadOp {
  std::uint32_t log_index = 0;
  std::uint32_t first_psn = 0;
  std::uint32_t psns = 0;
  std::uint32_t received = 0;  // packets
  std::uint32_t length = 0;
  bool atomic = false;
  std::uint8_t num_sge = 0;
  SgeCursor cursor;
};

// The message at the send cursor.
struct TxMsg {
  bool active = false;
  bool inlined = false;
  bool solicited = false;
  bool signaled = false;
  hw::WqeOp opcode{};
  std::uint8_t num_sge = 0;
  std::uint16_t data_off = 0;
  std::uint32_t sq_index = 0;
  std::uint32_t first_psn = 0;
  std::uint32_t psns = 0;
  std::uint32_t packet = 0;  // next packet of the message
  std::uint32_t length = 0;
  std::uint16_t checksum = 0;
  SgeCursor cursor;
  const std::byte* wqe = nullptr;  // in the fetch buffer or in `copy`
  std::array<std::byte, kWqeMax> copy;
};

struct SqFault {
  bool active = false;
  std::uint32_t log_index = 0;
  std::uint32_t sq_index = 0;
  hw::WqeOp opcode{};
  hw::WcStatus status{};
};

enum class InMsg : std::uint8_t { kNone, kSend, kWrite };

// The receive WQE that a message is being placed into.
struct RecvWqe {
  bool active = false;
  std::uint8_t num_sge = 0;
  std::uint16_t index = 0;
  std::uint64_t wr_id = 0;
  std::uint64_t capacity = 0;
  std::uint64_t filled = 0;
  SgeCursor cursor;
  std::array<Sge, kSgeMax> sges;
};

struct Response {
  enum class Kind : std::uint8_t { kAck, kRead, kAtomic };
  Kind kind{};
  std::uint8_t syndrome = 0;
  bool duplicate = false;
  bool last = false;  // the QP is in error: nothing follows
  std::uint32_t psn = 0;  // READ: of the next response packet
  std::uint32_t sent = 0;  // READ: response packets before it
  std::uint32_t msn = 0;
  std::uint64_t va = 0;  // READ: next byte; atomic: the value
  std::uint32_t rkey = 0;
  std::uint32_t left = 0;
  std::uint32_t packets = 0;  // READ: left to send
  bool first = true;
};

enum Sticky : std::uint8_t {
  kStickyRecovery = 1,  // NAK, RNR, IMPLIED_NAK, SILENCE
  kStickyFault = 2,     // QP_ASYNC: FATAL, REQ_ERR, ACCESS_ERR
  kStickyEst = 4,       // QP_ASYNC: COMM_EST
  kStickyLast = 8,      // QP_ASYNC: LAST_WQE
  kStickyError = 16,    // QP_ERROR
  kStickyDrained = 32,  // SQ_DRAINED
};

// What software set; see struct qpc of the contract.
struct QpAttr {
  std::uint8_t access = 0;
  std::uint32_t dest_qpn = 0;
  std::uint8_t mtu_log = 0;
  std::uint8_t sgid_index = 0;
  std::uint8_t hop_limit = 0, tclass = 0, sl = 0;
  std::uint64_t dmac = 0;
  std::uint16_t sport = 0;
  Gid dgid{};
  std::uint32_t flow_label = 0, qkey = 0, sq_psn = 0, rq_psn = 0;
  std::uint8_t max_rd_atomic = 0, max_dest_rd_atomic = 0, min_rnr_timer = 0;
  std::uint64_t atomic_addr = 0;
  std::uint64_t silence = 0;
};

struct SendSide {
  std::uint32_t accepted = 0;  // send-queue index past the last WQE in the log
  std::uint32_t ci = 0;        // next WQE to complete
  std::uint32_t log_acked = 0, log_sent = 0, log_accepted = 0;
  std::uint32_t una = 0, tx_psn = 0, max_psn = 0;  // oldest unacked, send cursor, never sent
  std::uint32_t tx_log = 0;                        // message at the cursor
  bool frozen = false;
  hw::EventType frozen_by{};
  bool draining = false;
  bool implied_muted = false;
  bool read_probe = false;  // ask for the missing packet of a READ alone, see send_read()
  std::uint32_t late_psn = 0;  // last response that came behind a gap
  std::uint8_t late_nak = 0;  // fatal NAK that came while frozen, reported at the rewind
  std::uint32_t late_nak_psn = 0;
  std::uint64_t not_before = 0;
  std::uint64_t progress_time = 0;
  std::vector<SentMsg> msgs;
  std::vector<ReadOp> reads;  // ring
  std::vector<Sge> read_sges;
  std::uint32_t rd_head = 0, rd_count = 0, rd_issued = 0;
  TxMsg tx;
  SqFault fault;
};

struct RecvSide {
  std::uint32_t ci = 0;  // next receive WQE to fetch
  std::uint32_t epsn = 0, msn = 0;
  bool nak_sent = false;
  InMsg in = InMsg::kNone;
  std::uint64_t va = 0;
  std::uint32_t rkey = 0, left = 0, total = 0;
  RecvWqe wqe;
  bool has_read = false;  // a READ or atomic was executed; its last PSN:
  std::uint32_t read_psn = 0;
  std::uint32_t atomics = 0;  // entries of the result ring ever written
  std::vector<Response> queue;  // ring of power-of-two size
  std::uint32_t q_head = 0, q_count = 0, q_ops = 0;
};

struct Qp {
  std::uint32_t qpn = 0, index = 0;
  hw::QpType type{};
  hw::QpState state{};
  std::uint16_t uctx = 0;
  std::uint32_t pd = 0;
  Cq* scq = nullptr;
  Cq* rcq = nullptr;
  Srq* srq = nullptr;
  std::uint8_t log_log = 0;
  std::uint64_t log_addr = 0;
  QpAttr attr;
  std::uint8_t sticky = 0;
  WorkRing sq, rq;
  SendSide s;
  RecvSide r;
  HeaderTemplate headers;        // connected: to the peer; datagram: to the last address vector
  std::uint32_t headers_gid = 0;  // generation of the GID table it was built from
  std::array<std::byte, hw::av::kBytes> last_av{};
  Link<Qp> tx_link, resp_link, wait_link, pause_link;

  [[nodiscard]] bool kernel() const { return uctx == hw::kKernelUctx; }
  [[nodiscard]] bool connected() const {
    return type == hw::QpType::kRc || type == hw::QpType::kUc;
  }
  [[nodiscard]] bool datagram() const {
    return type == hw::QpType::kUd || type == hw::QpType::kGsi;
  }
  [[nodiscard]] bool receives() const {
    return state >= hw::QpState::kRtr && state <= hw::QpState::kSqe;
  }
  [[nodiscard]] std::uint32_t mtu() const { return 1u << attr.mtu_log; }
  [[nodiscard]] std::uint32_t log_mask() const {
    return static_cast<std::uint32_t>(s.msgs.size()) - 1;
  }
  [[nodiscard]] SentMsg& msg(std::uint32_t log_index) { return s.msgs[log_index & log_mask()]; }
};

}  // namespace ordma::twin
