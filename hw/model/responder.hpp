// SPDX-License-Identifier: BSD-2-Clause
// The receive side of connected QPs: PSN check, placement, READ, atomics, ACK and NAK generation.
#pragma once

#include <cstdint>
#include <span>

#include "memory.hpp"
#include "objects.hpp"

namespace ordma::twin {

struct Nic;

// What a request opcode says, the same for RC and UC.
struct RequestOp {
  enum class Kind : std::uint8_t { kNone, kSend, kWrite, kRead, kAtomic };
  Kind kind = Kind::kNone;
  bool first = false;
  bool last = false;
  bool imm = false;
  bool inv = false;
  std::size_t ext = 0;  // bytes of extension headers
};
[[nodiscard]] RequestOp request_op(std::uint8_t opcode);

class Responder {
 public:
  explicit Responder(Nic& nic) : nic_(nic) {}

  void on_request(Qp& qp, const Packet& packet, const RequestOp& op);    // RC
  void on_unreliable(Qp& qp, const Packet& packet, const RequestOp& op);  // UC

  // Sends queued responses, up to `budget` packets; returns how many.
  unsigned run(unsigned budget);
  [[nodiscard]] bool busy() const { return !ready_.empty(); }
  // Drops what is queued.
  void discard(Qp& qp);

 private:
  enum class Step : std::uint8_t { kDone, kRnr, kFailed };

  // responder.cpp
  void duplicate(Qp& qp, const Packet& packet, const RequestOp& op);
  void duplicate_read(Qp& qp, const Packet& packet);
  void duplicate_atomic(Qp& qp, const Packet& packet);
  [[nodiscard]] bool well_formed(const Qp& qp, const Packet& packet, const RequestOp& op) const;
  void out_of_sequence(Qp& qp);
  void rnr(Qp& qp);
  // Answers with a NAK and takes the QP to ERR.
  Step refuse(Qp& qp, const Packet& packet, hw::AethSyndrome why);
  Step fail_receive(Qp& qp, const Packet& packet, hw::WcStatus status, hw::AethSyndrome why);

  // place.cpp
  Step place_send(Qp& qp, const Packet& packet, const RequestOp& op);
  Step place_write(Qp& qp, const Packet& packet, const RequestOp& op);
  Step start_write(Qp& qp, const Packet& packet, const RequestOp& op, std::size_t payload);
  Step read_request(Qp& qp, const Packet& packet);
  Step atomic(Qp& qp, const Packet& packet);
  Step take_wqe(Qp& qp, const Packet& packet);
  void complete_receive(Qp& qp, const Packet& packet, const RequestOp& op, hw::WcOp opcode,
                        std::uint32_t bytes);
  [[nodiscard]] std::uint64_t result_slot(const Qp& qp, std::uint32_t n) const;

  // respond.cpp
  void push_ack(Qp& qp, std::uint32_t psn, std::uint8_t syndrome, bool last = false);
  [[nodiscard]] bool push(Qp& qp, const Response& response);
  [[nodiscard]] Response* tail(Qp& qp);
  [[nodiscard]] bool make_room(Qp& qp);
  void pop(Qp& qp);
  unsigned emit(Qp& qp, unsigned quota);
  bool emit_read(Qp& qp, Response& response, const HeaderTemplate& headers);
  void emit_short(Qp& qp, const Response& response, const HeaderTemplate& headers);
  void read_failed(Qp& qp, const Response& response, Fault fault);

  Nic& nic_;
  List<Qp, &Qp::resp_link> ready_;
};

}  // namespace ordma::twin
