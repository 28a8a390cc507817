// SPDX-License-Identifier: BSD-2-Clause
// Messages into packets: gather, headers, PSNs.
#include <algorithm>
#include <cstring>

#include "nic.hpp"
#include "requester.hpp"

namespace ordma::twin {
namespace {

using Op = hw::WqeOp;
using Roce = hw::RoceOp;

// At least every so many PSNs an acknowledgement is asked for, well inside the in-flight limit.
inline constexpr std::uint32_t kAckEvery = 32;
inline constexpr std::size_t kEthMinBytes = 60;

bool is_write(Op op) { return op == Op::kWrite || op == Op::kWriteImm; }

// Opcode by place in the message; UC adds a constant.
Roce data_opcode(Op op, bool uc, bool first, bool last) {
  Roce r{};
  if (is_write(op)) {
    const bool imm = op == Op::kWriteImm;
    r = first ? (last ? (imm ? Roce::kRcWriteOnlyImm : Roce::kRcWriteOnly) : Roce::kRcWriteFirst)
              : (last ? (imm ? Roce::kRcWriteLastImm : Roce::kRcWriteLast) : Roce::kRcWriteMiddle);
  } else if (op == Op::kSendInv && last) {
    r = first ? Roce::kRcSendOnlyInv : Roce::kRcSendLastInv;
  } else {
    const bool imm = op == Op::kSendImm;
    r = first ? (last ? (imm ? Roce::kRcSendOnlyImm : Roce::kRcSendOnly) : Roce::kRcSendFirst)
              : (last ? (imm ? Roce::kRcSendLastImm : Roce::kRcSendLast) : Roce::kRcSendMiddle);
  }
  constexpr auto kUc = raw_value(Roce::kUcSendFirst) - raw_value(Roce::kRcSendFirst);
  return uc ? static_cast<Roce>(raw_value(r) + kUc) : r;
}

std::span<const std::byte> head_of(const TxMsg& tx) { return {tx.wqe, hw::wqe::kBytes}; }

// Immediate data is raw wire bytes; an rkey is a number.
void put_raw32(std::byte* at, std::uint64_t value) {
  const auto v = static_cast<std::uint32_t>(value);
  std::memcpy(at, &v, 4);
}

}  // namespace

Fault Requester::gather(const Qp& qp, TxMsg& tx, std::span<std::byte> dst) {
  if (tx.inlined) {
    std::memcpy(dst.data(), tx.wqe + tx.data_off + tx.cursor.offset, dst.size());
    tx.cursor.offset += static_cast<std::uint32_t>(dst.size());
    return Fault::kNone;
  }
  const Rights rights{qp.pd, kNoAccess, qp.kernel()};
  while (!dst.empty()) {
    if (tx.cursor.sge >= tx.num_sge) return Fault::kRange;
    const auto raw = std::span<const std::byte>(
        tx.wqe + tx.data_off + tx.cursor.sge * hw::sge::kBytes, hw::sge::kBytes);
    const auto length = static_cast<std::uint32_t>(hw::get(raw, hw::sge::length));
    const std::size_t n = std::min<std::size_t>(length - tx.cursor.offset, dst.size());
    if (n != 0) {
      nic_.spend(Cost::kDma);
      const Fault fault = nic_.memory.read(
          static_cast<std::uint32_t>(hw::get(raw, hw::sge::lkey)), rights,
          hw::get(raw, hw::sge::addr) + tx.cursor.offset, dst.first(n));
      if (fault != Fault::kNone) return fault;
    }
    dst = dst.subspan(n);
    tx.cursor.offset += static_cast<std::uint32_t>(n);
    if (tx.cursor.offset == length) tx.cursor = {tx.cursor.sge + 1, 0};
  }
  return Fault::kNone;
}

void Requester::seek(TxMsg& tx, std::uint64_t offset) const {
  tx.cursor = {};
  if (tx.inlined) {
    tx.cursor.offset = static_cast<std::uint32_t>(offset);
    return;
  }
  while (offset != 0 && tx.cursor.sge < tx.num_sge) {
    const auto raw = std::span<const std::byte>(
        tx.wqe + tx.data_off + tx.cursor.sge * hw::sge::kBytes, hw::sge::kBytes);
    const std::uint64_t length = hw::get(raw, hw::sge::length);
    if (offset < length) {
      tx.cursor.offset = static_cast<std::uint32_t>(offset);
      return;
    }
    offset -= length;
    ++tx.cursor.sge;
  }
}

unsigned Requester::send_packets(Qp& qp, unsigned quota) {
  SendSide& s = qp.s;
  TxMsg& tx = s.tx;
  unsigned sent = 0;
  if (tx.psns == 0) {
    // A NOP has no packet; it completes behind everything before it.
    if (qp.type != hw::QpType::kRc) {
      packet_sent(qp, 0, 0);
      return 0;
    }
    tx.active = false;
    s.tx_log = seq_add(s.tx_log, 1);
    retire(qp);
    return 0;
  }
  while (sent < quota && tx.active) {
    if (sent != 0 && !gates(qp, tx, false)) break;
    if (!send_one(qp)) break;
    ++sent;
  }
  return sent;
}

// False when nothing left: the QP faulted or its source address is gone.
bool Requester::send_one(Qp& qp) {
  TxMsg& tx = qp.s.tx;
  if (qp.datagram()) return send_datagram(qp);
  if (qp.type == hw::QpType::kEth) return send_raw(qp);
  const HeaderTemplate* headers = nic_.qps.headers(qp);
  if (headers == nullptr) {
    lose_one(qp);
    return true;
  }
  switch (tx.opcode) {
    case Op::kRead: send_read(qp, *headers); return true;
    case Op::kCmpSwap:
    case Op::kFetchAdd: send_atomic(qp, *headers); return true;
    default: return send_data(qp, *headers);
  }
}

// The QP's source address is gone: as with a pulled cable the packet is lost and silence will tell.
void Requester::lose_one(Qp& qp) {
  TxMsg& tx = qp.s.tx;
  nic_.count(hw::Counter::kDropAddress);
  const bool atomic = tx.opcode == Op::kCmpSwap || tx.opcode == Op::kFetchAdd;
  const bool read = tx.opcode == Op::kRead || atomic;
  if (read) push_read(qp, atomic);
  const std::uint32_t psns = read ? tx.psns - tx.packet : 1;
  seek(tx, std::uint64_t{tx.packet + psns} << qp.attr.mtu_log);
  packet_sent(qp, psns, 0);
}

bool Requester::send_data(Qp& qp, const HeaderTemplate& headers) {
  TxMsg& tx = qp.s.tx;
  const bool first = tx.packet == 0;
  const bool last = tx.packet + 1 == tx.psns;
  const std::uint64_t done = std::uint64_t{tx.packet} << qp.attr.mtu_log;
  const std::size_t payload = std::min<std::uint64_t>(tx.length - done, qp.mtu());
  const std::uint32_t psn = qp.s.tx_psn;
  const bool reth = first && is_write(tx.opcode);
  const bool tail = last && (tx.opcode == Op::kSendImm || tx.opcode == Op::kWriteImm ||
                             tx.opcode == Op::kSendInv);
  const bool rc = qp.type == hw::QpType::kRc;
  PacketBuilder packet(headers, {.opcode = data_opcode(tx.opcode, !rc, first, last),
                                 .solicited = last && tx.solicited,
                                 .ack_req = rc && (last || psn % kAckEvery == kAckEvery - 1),
                                 .dest_qpn = qp.attr.dest_qpn,
                                 .psn = psn,
                                 .ext = (reth ? hw::reth::kBytes : 0) +
                                        (tail ? hw::immdt::kBytes : 0),
                                 .payload = payload});
  std::byte* ext = packet.ext();
  if (reth) {
    poke<hw::reth::va>(ext, hw::get(head_of(tx), hw::wqe::remote_addr));
    poke<hw::reth::rkey>(ext, hw::get(head_of(tx), hw::wqe::rkey));
    poke<hw::reth::dma_len>(ext, tx.length);
    ext += hw::reth::kBytes;
  }
  if (tail) {
    const std::uint64_t imm = hw::get(head_of(tx), hw::wqe::imm);
    if (tx.opcode == Op::kSendInv) {
      poke<hw::ieth::rkey>(ext, imm);
    } else {
      put_raw32(ext, imm);
    }
  }
  if (gather(qp, tx, packet.payload()) != Fault::kNone) {
    fault(qp, qp.s.tx_log, tx.sq_index, tx.opcode, hw::WcStatus::kLocProtErr);
    return false;
  }
  nic_.transmit(packet.seal(), payload);
  packet_sent(qp, 1, payload);
  return true;
}

// Sent again a READ starts at the first packet that is still missing. When the gap was in its
// responses, that packet is asked for alone and the rest once it is there: asking for everything at
// once would repeat the same burst, and what hits bursts periodically would hit it for ever.
void Requester::send_read(Qp& qp, const HeaderTemplate& headers) {
  SendSide& s = qp.s;
  TxMsg& tx = s.tx;
  const std::uint64_t done = std::uint64_t{tx.packet} << qp.attr.mtu_log;
  const std::uint64_t left = tx.length - done;
  const bool probe = s.read_probe && s.tx_psn == s.una && left > qp.mtu();
  PacketBuilder packet(headers, {.opcode = Roce::kRcReadReq, .ack_req = true,
                                 .dest_qpn = qp.attr.dest_qpn, .psn = qp.s.tx_psn,
                                 .ext = hw::reth::kBytes});
  poke<hw::reth::va>(packet.ext(), hw::get(head_of(tx), hw::wqe::remote_addr) + done);
  poke<hw::reth::rkey>(packet.ext(), hw::get(head_of(tx), hw::wqe::rkey));
  poke<hw::reth::dma_len>(packet.ext(), probe ? qp.mtu() : left);
  nic_.transmit(packet.seal(), 0);
  push_read(qp, false);
  packet_sent(qp, probe ? 1 : tx.psns - tx.packet, 0);
}

void Requester::send_atomic(Qp& qp, const HeaderTemplate& headers) {
  const TxMsg& tx = qp.s.tx;
  const auto head = head_of(tx);
  const bool swap = tx.opcode == Op::kCmpSwap;
  PacketBuilder packet(headers, {.opcode = swap ? Roce::kRcCmpSwap : Roce::kRcFetchAdd,
                                 .ack_req = true, .dest_qpn = qp.attr.dest_qpn,
                                 .psn = qp.s.tx_psn, .ext = hw::atomiceth::kBytes});
  std::byte* ext = packet.ext();
  poke<hw::atomiceth::va>(ext, hw::get(head, hw::wqe::remote_addr));
  poke<hw::atomiceth::rkey>(ext, hw::get(head, hw::wqe::rkey));
  poke<hw::atomiceth::swap_add>(ext, hw::get(head, hw::wqe::swap_add));
  poke<hw::atomiceth::compare>(ext, swap ? hw::get(head, hw::wqe::compare) : 0);
  nic_.transmit(packet.seal(), 0);
  push_read(qp, true);
  packet_sent(qp, 1, 0);
}

// The response needs the scatter list after the WQE has left the fetch buffer.
void Requester::push_read(Qp& qp, bool atomic) {
  SendSide& s = qp.s;
  if (issued(s)) return;  // the rest of one that was asked for in part
  const auto mask = static_cast<std::uint32_t>(s.reads.size()) - 1;
  const std::uint32_t at = (s.rd_head + s.rd_issued) & mask;
  ++s.rd_issued;
  if (s.rd_issued <= s.rd_count) return;  // sent again: the list is there
  ++s.rd_count;
  const TxMsg& tx = s.tx;
  s.reads[at] = {.log_index = s.tx_log, .first_psn = tx.first_psn, .psns = tx.psns,
                 .length = tx.length, .atomic = atomic, .num_sge = tx.num_sge};
  for (unsigned i = 0; i < tx.num_sge; ++i) {
    const auto raw = std::span<const std::byte>(tx.wqe + tx.data_off + i * hw::sge::kBytes,
                                                hw::sge::kBytes);
    s.read_sges[at * kSgeMax + i] = {
        hw::get(raw, hw::sge::addr), static_cast<std::uint32_t>(hw::get(raw, hw::sge::length)),
        static_cast<std::uint32_t>(hw::get(raw, hw::sge::lkey))};
  }
}

void Requester::packet_sent(Qp& qp, std::uint32_t psns, std::uint64_t payload) {
  SendSide& s = qp.s;
  TxMsg& tx = s.tx;
  nic_.count(hw::Counter::kTxBytes, payload);
  if (s.tx_psn != s.max_psn) {
    nic_.count(hw::Counter::kRetransmittedPackets);
  }
  s.tx_psn = seq_add(s.tx_psn, psns);
  tx.packet += psns;
  if (seq_diff(s.tx_psn, s.max_psn) > 0) s.max_psn = s.tx_psn;
  if (tx.packet >= tx.psns) {
    tx.active = false;
    s.tx_log = seq_add(s.tx_log, 1);
  }
  if (qp.type == hw::QpType::kRc) return track(qp);
  // Unreliable: sent is complete.
  s.una = s.max_psn;
  if (tx.active) return;
  SentMsg msg{.sq_index = tx.sq_index, .opcode = tx.opcode, .signaled = tx.signaled};
  s.log_acked = s.log_sent;
  s.ci = seq_add(tx.sq_index, 1);
  complete(qp, msg, hw::WcStatus::kSuccess, 0);
  retired(qp);
}

bool Requester::send_raw(Qp& qp) {
  TxMsg& tx = qp.s.tx;
  if (tx.length < hw::eth::kBytes || tx.length > nic_.config.port_mtu + hw::eth::kBytes + 4) {
    fault(qp, qp.s.tx_log, tx.sq_index, tx.opcode, hw::WcStatus::kLocLenErr);
    return false;
  }
  Frame frame(std::max<std::size_t>(tx.length, kEthMinBytes));
  const auto bytes = std::as_writable_bytes(frame.writable());
  std::memset(bytes.data() + tx.length, 0, bytes.size() - tx.length);
  if (gather(qp, tx, bytes.first(tx.length)) != Fault::kNone) {
    fault(qp, qp.s.tx_log, tx.sq_index, tx.opcode, hw::WcStatus::kLocProtErr);
    return false;
  }
  nic_.count(hw::Counter::kEthTx);
  nic_.send_frame(std::move(frame));
  packet_sent(qp, tx.psns, 0);
  return true;
}

}  // namespace ordma::twin
