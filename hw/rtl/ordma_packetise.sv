// SPDX-License-Identifier: BSD-2-Clause
//
// One packet of a message: opcode and extended headers from the WQE, the rest from the QP. Combinational.
module ordma_packetise (
  input logic valid_i,
  input ordma_hw_pkg::wqe_t wqe_i,
  input ordma_hw_pkg::qpc_t attr_i,
  input logic [23:0] psn_i,
  input logic first_i,
  input logic last_i,
  input logic ack_req_i,
  input logic [31:0] offset_i,        // READ: bytes of the message before this request
  input logic [ordma_pkg::LenW-1:0] pay_len_i,
  output ordma_pkg::tx_desc_t desc_o
);
  logic is_ud;
  logic [511:0] raw;
  ordma_hw_pkg::av_t av;
  logic [31:0] qkey, mixed;
  logic [15:0] sport, flow;
  logic [23:0] dest;
  logic is_write, is_send, has_imm, has_inv;
  logic [4:0] base;
  logic is_read, is_swap, is_add;
  logic [127:0] reth;
  logic [31:0] imm, ieth;

  assign is_send = wqe_i.opcode == ordma_hw_pkg::WqeOpSend || wqe_i.opcode == ordma_hw_pkg::WqeOpSendImm
                || wqe_i.opcode == ordma_hw_pkg::WqeOpSendInv;
  assign is_read = wqe_i.opcode == ordma_hw_pkg::WqeOpRead;
  assign is_swap = wqe_i.opcode == ordma_hw_pkg::WqeOpCmpSwap;
  assign is_add = wqe_i.opcode == ordma_hw_pkg::WqeOpFetchAdd;
  assign is_write = !is_send && !is_read && !is_swap && !is_add;
  assign has_imm = last_i && (wqe_i.opcode == ordma_hw_pkg::WqeOpSendImm || wqe_i.opcode == ordma_hw_pkg::WqeOpWriteImm);
  assign has_inv = last_i && wqe_i.opcode == ordma_hw_pkg::WqeOpSendInv;
  assign reth = {wqe_i.remote_addr + {32'd0, offset_i}, wqe_i.rkey, wqe_i.length - offset_i};
  // Immediate data are four raw bytes: the first on the wire is the lowest in memory.
  assign imm = {wqe_i.imm[7:0], wqe_i.imm[15:8], wqe_i.imm[23:16], wqe_i.imm[31:24]};
  assign ieth = wqe_i.imm;

  // A flow whose owner named no source port gets one from its two QPNs.
  assign is_ud = attr_i.type_ == ordma_hw_pkg::QpTypeUd || attr_i.type_ == ordma_hw_pkg::QpTypeGsi;
  assign raw = wqe_i;
  assign av = raw[511:128];
  assign dest = is_ud ? av.dest_qpn : attr_i.dest_qpn;
  assign sport = is_ud ? av.sport : attr_i.sport;
  assign mixed = ({8'd0, attr_i.qpn} * 32'h9e3779b1) ^ ({8'd0, dest} * 32'h85ebca77);
  assign flow = (sport != '0) ? sport : {2'b11, mixed[29:16]};
  // A privileged Q_Key from a user queue means the QP's own.
  assign qkey = (av.qkey[31] && attr_i.uctx != ordma_hw_pkg::KernelUctx[15:0]) ? attr_i.qkey : av.qkey;

  // Within an operation the opcodes are FIRST, MIDDLE, LAST, LAST_IMM, ONLY, ONLY_IMM.
  always_comb begin
    case ({first_i, last_i})
      2'b10: base = 5'd0;
      2'b00: base = 5'd1;
      2'b01: base = has_imm ? 5'd3 : 5'd2;
      default: base = has_imm ? 5'd5 : 5'd4;
    endcase
    if (is_write) base = base + 5'd6;
    if (has_inv) base = first_i ? ordma_hw_pkg::RoceOpRcSendOnlyInv[4:0] : ordma_hw_pkg::RoceOpRcSendLastInv[4:0];
  end

  always_comb begin
    desc_o = '0;
    if (valid_i) begin
      desc_o.opcode = {(attr_i.type_ == ordma_hw_pkg::QpTypeUc) ? 3'd1 : 3'd0, base};
      desc_o.psn = psn_i;
      desc_o.dest_qpn = attr_i.dest_qpn;
      desc_o.ack_req = ack_req_i;
      desc_o.se = last_i && wqe_i.solicited;
      desc_o.pay_len = pay_len_i;
      desc_o.gid = attr_i.sgid_index[ordma_pkg::GidLog-1:0];
      desc_o.dmac = attr_i.dmac;
      desc_o.dgid = attr_i.dgid;
      desc_o.hop_limit = attr_i.hop_limit;
      desc_o.tclass = attr_i.tclass;
      desc_o.flow_label = attr_i.flow_label;
      desc_o.sport = flow;
      if (is_ud) begin
        desc_o.opcode = has_imm ? ordma_hw_pkg::RoceOpUdSendOnlyImm : ordma_hw_pkg::RoceOpUdSendOnly;
        desc_o.dest_qpn = av.dest_qpn;
        desc_o.ack_req = 1'b0;
        desc_o.gid = av.sgid_index[ordma_pkg::GidLog-1:0];
        desc_o.dmac = av.dmac;
        desc_o.dgid = av.dgid;
        desc_o.hop_limit = av.hop_limit;
        desc_o.tclass = av.tclass;
        desc_o.flow_label = av.flow_label;
        desc_o.ext = {qkey, 8'd0, attr_i.qpn, has_imm ? imm : 32'd0, 128'd0};
        desc_o.ext_len = has_imm ? 5'd12 : 5'd8;
      end else if (is_read) begin
        desc_o.opcode = ordma_hw_pkg::RoceOpRcReadReq;
        desc_o.ext = {reth, 96'd0};
        desc_o.ext_len = 5'd16;
      end else if (is_swap || is_add) begin
        desc_o.opcode = is_swap ? ordma_hw_pkg::RoceOpRcCmpSwap : ordma_hw_pkg::RoceOpRcFetchAdd;
        desc_o.ext = {wqe_i.remote_addr, wqe_i.rkey, wqe_i.swap_add, is_swap ? wqe_i.compare : 64'd0};
        desc_o.ext_len = 5'd28;
      end else if (is_write && first_i) begin
        desc_o.ext = has_imm ? {reth, imm, 64'd0} : {reth, 96'd0};
        desc_o.ext_len = has_imm ? 5'd20 : 5'd16;
      end else if (has_imm || has_inv) begin
        desc_o.ext = {has_inv ? ieth : imm, 192'd0};
        desc_o.ext_len = 5'd4;
      end
    end
  end
endmodule
