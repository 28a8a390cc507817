// SPDX-License-Identifier: BSD-2-Clause
// The send side: order log, scheduling, packets, acknowledgement, completion, and what the CPU
// decides about it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "memory.hpp"
#include "objects.hpp"

namespace ordma::twin {

struct Nic;

class Requester {
 public:
  explicit Requester(Nic& nic) : nic_(nic) {}

  // Takes WQEs that were rung into the order log, as far as it has room.
  void accept(Qp& qp);
  void kick(Qp& qp) { ready_.push(qp); }
  void unlink(Qp& qp);
  // Sends for up to `budget` packets; returns how many were sent.
  unsigned run(unsigned budget);
  [[nodiscard]] bool busy() const { return !ready_.empty(); }

  // State machine.
  void abandon(Qp& qp);
  void leave_sqe(Qp& qp);
  void start_drain(Qp& qp);

  // Recovery ring.
  void rewind(Qp& qp, std::uint32_t log_index, std::uint32_t psn, std::uint64_t not_before);
  void fail(Qp& qp, std::uint32_t psn, hw::WcStatus status, std::uint8_t vendor_err);
  void set_silence(Qp& qp, std::uint64_t threshold);

  // Response packets of an RC QP.
  void on_ack(Qp& qp, const Packet& packet);
  void on_read_response(Qp& qp, const Packet& packet);
  void on_atomic_response(Qp& qp, const Packet& packet);

  void sweep();
  [[nodiscard]] std::uint64_t next_timer() const;

 private:
  // WQEs of one QP, read ahead during one turn.
  struct Fetch {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::array<std::byte, 4096> data;
  };

  // requester.cpp
  unsigned serve(Qp& qp, unsigned quota);
  [[nodiscard]] const std::byte* wqe_at(Qp& qp, std::uint32_t index, unsigned ahead);
  [[nodiscard]] bool may_send(const Qp& qp) const;
  [[nodiscard]] bool next_message(Qp& qp, unsigned quota);
  [[nodiscard]] bool gates(const Qp& qp, const TxMsg& tx, bool fence) const;
  [[nodiscard]] static bool issued(const SendSide& s);
  void write_waiting(const Qp& qp, std::uint32_t count);
  unsigned flush(Qp& qp, unsigned quota);
  unsigned flush_receive(Qp& qp, unsigned quota);
  void track(Qp& qp);

  // message.cpp
  [[nodiscard]] hw::WcStatus parse(const Qp& qp, const std::byte* wqe, std::uint32_t index,
                                   TxMsg& tx) const;
  [[nodiscard]] hw::WcStatus check_sges(const Qp& qp, const TxMsg& tx) const;
  [[nodiscard]] hw::WcStatus check_datagram(const Qp& qp, const TxMsg& tx) const;
  [[nodiscard]] bool same_as_logged(const TxMsg& tx, const SentMsg& msg) const;
  void log_sent(Qp& qp, const TxMsg& tx);

  // packetize.cpp
  unsigned send_packets(Qp& qp, unsigned quota);
  bool send_one(Qp& qp);
  void lose_one(Qp& qp);
  bool send_data(Qp& qp, const HeaderTemplate& headers);
  void send_read(Qp& qp, const HeaderTemplate& headers);
  void send_atomic(Qp& qp, const HeaderTemplate& headers);
  bool send_datagram(Qp& qp);
  bool send_raw(Qp& qp);
  [[nodiscard]] const HeaderTemplate* datagram_headers(Qp& qp);
  void push_read(Qp& qp, bool atomic);
  void packet_sent(Qp& qp, std::uint32_t psns, std::uint64_t payload);
  [[nodiscard]] Fault gather(const Qp& qp, TxMsg& tx, std::span<std::byte> dst);
  void seek(TxMsg& tx, std::uint64_t offset) const;

  // completion.cpp
  void complete(Qp& qp, const SentMsg& msg, hw::WcStatus status, std::uint8_t vendor_err);
  void retire(Qp& qp);
  void retired(Qp& qp);
  void fault(Qp& qp, std::uint32_t log_index, std::uint32_t sq_index, hw::WqeOp opcode,
             hw::WcStatus status);
  void settle_fault(Qp& qp);
  void error_cqe(Qp& qp, std::uint32_t sq_index, hw::WqeOp opcode, hw::WcStatus status,
                 std::uint8_t vendor_err);

  // ack.cpp
  [[nodiscard]] ReadOp* oldest_read(Qp& qp);
  [[nodiscard]] bool acknowledge(Qp& qp, std::uint32_t up_to);
  void advance(Qp& qp, std::uint32_t una);
  void implied_nak(Qp& qp);
  void on_nak(Qp& qp, const Packet& packet, std::uint8_t syndrome);
  [[nodiscard]] ReadOp* match_read(Qp& qp, const Packet& packet, bool atomic);
  [[nodiscard]] Fault scatter(const Qp& qp, ReadOp& op, std::span<const std::byte> src);
  void bad_response(Qp& qp, const ReadOp& op, hw::WcStatus status);
  void finish_read(Qp& qp);
  [[nodiscard]] std::uint32_t read_psns(const Qp& qp) const;
  void skip_forward(Qp& qp);

  // recovery.cpp
  void freeze(Qp& qp, hw::EventType type, std::uint8_t code);
  void set_cursor(Qp& qp, std::uint32_t log_index, std::uint32_t psn);

  Nic& nic_;
  List<Qp, &Qp::tx_link> ready_;
  List<Qp, &Qp::wait_link> waiting_;   // unacknowledged data: watched for silence
  List<Qp, &Qp::pause_link> paused_;   // not_before in the future
  std::uint64_t silence_due_ = ~std::uint64_t{0};
  std::uint64_t pause_due_ = ~std::uint64_t{0};
  Fetch fetch_;
  const Qp* fetch_qp_ = nullptr;
};

}  // namespace ordma::twin
