// SPDX-License-Identifier: BSD-2-Clause
// Send completions in posting order, and local faults, which wait for their turn.
#include "nic.hpp"
#include "requester.hpp"

namespace ordma::twin {
namespace {

hw::WcOp completed_op(hw::WqeOp op) {
  switch (op) {
    case hw::WqeOp::kWrite:
    case hw::WqeOp::kWriteImm: return hw::WcOp::kRdmaWrite;
    case hw::WqeOp::kRead: return hw::WcOp::kRdmaRead;
    case hw::WqeOp::kCmpSwap: return hw::WcOp::kCompSwap;
    case hw::WqeOp::kFetchAdd: return hw::WcOp::kFetchAdd;
    default: return hw::WcOp::kSend;
  }
}

std::uint32_t completed_len(hw::WqeOp op, std::uint32_t length) {
  switch (op) {
    case hw::WqeOp::kRead:
    case hw::WqeOp::kCmpSwap:
    case hw::WqeOp::kFetchAdd: return length;
    default: return 0;
  }
}

}  // namespace

void Requester::complete(Qp& qp, const SentMsg& msg, hw::WcStatus status,
                         std::uint8_t vendor_err) {
  if (status != hw::WcStatus::kSuccess) {
    return error_cqe(qp, msg.sq_index, msg.opcode, status, vendor_err);
  }
  if (!msg.signaled) return;
  nic_.cqs.push(*qp.scq, {.qpn = qp.qpn, .opcode = completed_op(msg.opcode),
                          .wqe_index = msg.sq_index,
                          .byte_len = completed_len(msg.opcode, msg.length)});
}

void Requester::error_cqe(Qp& qp, std::uint32_t sq_index, hw::WqeOp opcode, hw::WcStatus status,
                          std::uint8_t vendor_err) {
  nic_.count(hw::Counter::kReqCqeError);
  nic_.cqs.push(*qp.scq, {.qpn = qp.qpn, .opcode = completed_op(opcode), .status = status,
                          .wqe_index = sq_index, .vendor_err = vendor_err});
}

void Requester::retire(Qp& qp) {
  SendSide& s = qp.s;
  bool any = false;
  while (s.log_acked != s.log_sent) {
    // A message at the cursor is not over, even a NOP.
    if (s.log_acked == s.tx_log) break;
    const SentMsg& msg = qp.msg(s.log_acked);
    if (seq_diff(s.una, seq_add(msg.first_psn, msg.psns)) < 0) break;
    // The index moves first: the slot may be posted to as soon as the CQE is seen.
    s.ci = seq_add(msg.sq_index, 1);
    s.log_acked = seq_add(s.log_acked, 1);
    any = true;
    complete(qp, msg, hw::WcStatus::kSuccess, 0);
  }
  if (any) retired(qp);
}

void Requester::retired(Qp& qp) {
  SendSide& s = qp.s;
  if (s.fault.active) return settle_fault(qp);
  if (s.draining && qp.state == hw::QpState::kSqd && s.log_acked == s.log_sent) {
    nic_.events.raise_qp(qp, kStickyDrained, hw::EventType::kSqDrained, 0);
  }
  if (s.accepted != qp.sq.pi) accept(qp);
}

// The WQE has its status only after everything before it has completed.
void Requester::fault(Qp& qp, std::uint32_t log_index, std::uint32_t sq_index, hw::WqeOp opcode,
                      hw::WcStatus status) {
  SendSide& s = qp.s;
  s.tx.active = false;
  s.fault = {true, log_index, sq_index, opcode, status};
  settle_fault(qp);
}

void Requester::settle_fault(Qp& qp) {
  SendSide& s = qp.s;
  const SqFault fault = s.fault;
  if (!fault.active || s.log_acked != fault.log_index) return;
  s.ci = seq_add(fault.sq_index, 1);
  error_cqe(qp, fault.sq_index, fault.opcode, fault.status, 0);
  if (qp.type == hw::QpType::kRc) {
    nic_.qps.enter_error(qp);
  } else {
    nic_.qps.enter_sqe(qp);
  }
  nic_.events.raise_qp(qp, kStickyError, hw::EventType::kQpError,
                       static_cast<std::uint8_t>(fault.status));
}

}  // namespace ordma::twin
