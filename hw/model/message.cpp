// SPDX-License-Identifier: BSD-2-Clause
// What a send WQE must be before its first packet leaves, and its entry in the order log.
#include <algorithm>
#include <cstring>

#include "nic.hpp"
#include "requester.hpp"

namespace ordma::twin {
namespace {

using Op = hw::WqeOp;
using Status = hw::WcStatus;

bool op_allowed(hw::QpType type, Op op) {
  switch (op) {
    case Op::kNop: return true;
    case Op::kSend:
    case Op::kSendImm: return type != hw::QpType::kEth;
    case Op::kWrite:
    case Op::kWriteImm: return type == hw::QpType::kRc || type == hw::QpType::kUc;
    case Op::kSendInv:
    case Op::kRead:
    case Op::kCmpSwap:
    case Op::kFetchAdd: return type == hw::QpType::kRc;
    case Op::kEth: return type == hw::QpType::kEth;
  }
  return false;
}

bool is_atomic(Op op) { return op == Op::kCmpSwap || op == Op::kFetchAdd; }

// Ones-complement sum of the sixteen 16-bit units of the first 32 bytes.
std::uint16_t control_checksum(const std::byte* wqe) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < 32; i += 2) {
    std::uint16_t unit;
    std::memcpy(&unit, wqe + i, 2);
    sum += unit;
  }
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

std::uint32_t psns_of(Op op, std::uint32_t length, std::uint8_t mtu_log) {
  if (op == Op::kNop) return 0;
  if (length == 0 || is_atomic(op) || op == Op::kEth) return 1;
  return ((length - 1) >> mtu_log) + 1;
}

}  // namespace

hw::WcStatus Requester::parse(const Qp& qp, const std::byte* wqe, std::uint32_t index,
                              TxMsg& tx) const {
  const auto head = std::span<const std::byte>(wqe, hw::wqe::kBytes);
  const std::uint64_t w0 = hw::load_le64(head, 0);
  static_assert(hw::wqe::opcode.word == 0 && hw::wqe::index.word == 0);
  tx.wqe = wqe;
  tx.sq_index = index;
  tx.opcode = static_cast<Op>(hw::wget(w0, hw::wqe::opcode));
  tx.signaled = hw::wget(w0, hw::wqe::signaled) != 0;
  tx.solicited = hw::wget(w0, hw::wqe::solicited) != 0;
  tx.inlined = hw::wget(w0, hw::wqe::inline_) != 0;
  tx.num_sge = static_cast<std::uint8_t>(hw::wget(w0, hw::wqe::num_sge));
  tx.length = static_cast<std::uint32_t>(hw::get(head, hw::wqe::length));
  tx.checksum = control_checksum(wqe);
  tx.cursor = {};
  tx.packet = 0;
  tx.psns = 0;
  const bool atomic = is_atomic(tx.opcode);
  tx.data_off = static_cast<std::uint16_t>(qp.datagram() ? hw::kWqeUdDataOff
                                           : atomic      ? hw::kWqeAtomicDataOff
                                                         : hw::kWqeDataOff);
  if (hw::wget(w0, hw::wqe::index) != (index & hw::mask(hw::wqe::index.width)) ||
      !op_allowed(qp.type, tx.opcode)) {
    return Status::kLocQpOpErr;
  }
  if (tx.opcode == Op::kNop) return Status::kSuccess;
  if (tx.length > 1u << hw::kMaxMsgLog) return Status::kLocLenErr;
  tx.psns = psns_of(tx.opcode, tx.length, qp.attr.mtu_log);
  const std::size_t stride = qp.sq.stride();
  if (tx.inlined) {
    if (tx.opcode == Op::kRead || atomic || tx.num_sge != 0 ||
        tx.length > nic_.limits().max_inline || tx.data_off + tx.length > stride) {
      return Status::kLocQpOpErr;
    }
  } else {
    if (tx.num_sge > nic_.limits().max_sge || tx.num_sge > kSgeMax ||
        tx.data_off + tx.num_sge * hw::sge::kBytes > stride ||
        (atomic && (tx.num_sge != 1 || tx.length != hw::atomicack::kBytes))) {
      return Status::kLocQpOpErr;
    }
    const Status status = check_sges(qp, tx);
    if (status != Status::kSuccess) return status;
  }
  return qp.datagram() ? check_datagram(qp, tx) : Status::kSuccess;
}

// All of them before anything is sent: a bad one leaves nothing on the wire.
hw::WcStatus Requester::check_sges(const Qp& qp, const TxMsg& tx) const {
  const bool writes = tx.opcode == Op::kRead || is_atomic(tx.opcode);
  const Rights rights{qp.pd, writes ? access_bit(hw::Access::kLocalWrite) : kNoAccess,
                      qp.kernel()};
  std::uint64_t sum = 0;
  bool bad = false;
  for (unsigned i = 0; i < tx.num_sge; ++i) {
    const auto raw = std::span<const std::byte>(tx.wqe + tx.data_off + i * hw::sge::kBytes,
                                                hw::sge::kBytes);
    const auto length = static_cast<std::uint32_t>(hw::get(raw, hw::sge::length));
    sum += length;
    const auto lkey = static_cast<std::uint32_t>(hw::get(raw, hw::sge::lkey));
    bad = bad || nic_.memory.check(lkey, rights, hw::get(raw, hw::sge::addr), length) !=
                     Fault::kNone;
  }
  if (sum != tx.length) return Status::kLocQpOpErr;
  return bad ? Status::kLocProtErr : Status::kSuccess;
}

hw::WcStatus Requester::check_datagram(const Qp& qp, const TxMsg& tx) const {
  if (tx.length > qp.mtu()) return Status::kLocLenErr;
  const auto av = std::span<const std::byte>(tx.wqe + 16, hw::av::kBytes);
  const auto index = hw::get(av, hw::av::sgid_index);
  if (index >= nic_.gids.size() || !nic_.gids[index].valid) return Status::kLocQpOpErr;
  Gid dgid;
  const auto raw = hw::raw(av, hw::av::dgid);
  std::copy(raw.begin(), raw.end(), dgid.begin());
  return nic_.gids[index].ipv4 == is_v4_mapped(dgid) ? Status::kSuccess : Status::kLocQpOpErr;
}

bool Requester::same_as_logged(const TxMsg& tx, const SentMsg& msg) const {
  return tx.opcode == msg.opcode && tx.length == msg.length && tx.checksum == msg.checksum;
}

// The message's first packet is about to leave.
void Requester::log_sent(Qp& qp, const TxMsg& tx) {
  SendSide& s = qp.s;
  if (qp.type == hw::QpType::kRc) {
    qp.msg(s.log_sent) = {tx.sq_index, tx.first_psn, tx.psns,    tx.length,
                          tx.checksum, tx.opcode,    tx.signaled};
    namespace h = hw::log_entry;
    h::Bytes raw;
    hw::store_le64(raw, 0, hw::place(h::sq_index, tx.sq_index) |
                               hw::place(h::opcode, raw_value(tx.opcode)) |
                               hw::place(h::checksum, tx.checksum));
    hw::store_le64(raw, 8, hw::place(h::kind, raw_value(hw::LogKind::kWqe)) |
                               hw::place(h::signaled, tx.signaled) |
                               hw::place(h::first_psn, tx.first_psn) |
                               hw::place(h::length, tx.length));
    const std::uint64_t slot = s.log_sent & qp.log_mask();
    if (!nic_.host.write(qp.log_addr + slot * h::kBytes, raw, WriteKind::kLog)) {
      nic_.fail(hw::Fatal::kDma);
    }
  }
  s.log_sent = seq_add(s.log_sent, 1);
}

}  // namespace ordma::twin
