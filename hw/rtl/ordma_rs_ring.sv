// SPDX-License-Identifier: BSD-2-Clause
//
// Waiting responses of all QPs: per QP a ring of READs and atomics, each with room for the newest ACK
// or NAK behind it. The responder appends, the respond unit reads the head and writes its progress back;
// both hold the QP, so they never mean the same entry. The responder's write goes first.
module ordma_rs_ring (
  input logic clk_i,
  input logic op_we_i,           // responder: new entry, nothing behind it
  input logic ack_we_i,          // responder: what is behind the youngest
  input logic [ordma_pkg::QpLog+ordma_pkg::RdLog-1:0] waddr_i,
  input ordma_pkg::rs_op_t op_i,
  input ordma_pkg::rs_ack_t ack_i,
  input logic step_we_i,         // respond unit: progress of the head
  input logic [ordma_pkg::QpLog+ordma_pkg::RdLog-1:0] step_addr_i,
  input ordma_pkg::rs_op_t step_i,
  output logic step_ready_o,
  input logic re_i,
  input logic [ordma_pkg::QpLog+ordma_pkg::RdLog-1:0] raddr_i,
  output ordma_pkg::rs_op_t op_o,
  output ordma_pkg::rs_ack_t ack_o
);
  localparam int unsigned L = ordma_pkg::QpLog + ordma_pkg::RdLog;
  logic [ordma_pkg::RsOpW-1:0] op_r;
  logic [ordma_pkg::RsAckW-1:0] ack_r;

  assign step_ready_o = !op_we_i;
  assign op_o = op_r;
  assign ack_o = ack_r;
  ordma_ram #(.W(ordma_pkg::RsOpW), .Log(L)) u_op (
    .clk_i, .we_i(op_we_i || step_we_i), .waddr_i(op_we_i ? waddr_i : step_addr_i), .wdata_i(op_we_i ? op_i : step_i),
    .re_i, .raddr_i, .rdata_o(op_r)
  );
  ordma_ram #(.W(ordma_pkg::RsAckW), .Log(L)) u_ack (
    .clk_i, .we_i(op_we_i || ack_we_i), .waddr_i, .wdata_i(op_we_i ? {ordma_pkg::RsAckW{1'b0}} : ack_i),
    .re_i, .raddr_i, .rdata_o(ack_r)
  );
endmodule
