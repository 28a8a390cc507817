// SPDX-License-Identifier: BSD-2-Clause
//
// MR table: one block RAM, read by the translation units in turn, written by the command processor.
// A read is answered two cycles after it is taken; rsp_valid_o names the client.
module ordma_mr_table #(
  parameter int unsigned N = 3,
  parameter int unsigned W = 2
) (
  input logic clk_i,
  input logic rst_ni,
  input logic we_i,
  input logic [ordma_pkg::MrLog-1:0] waddr_i,
  input ordma_pkg::mr_t wdata_i,
  input logic [N-1:0] valid_i,
  input logic [N*ordma_pkg::MrLog-1:0] addr_i,
  output logic [N-1:0] ready_o,
  output logic [N-1:0] rsp_valid_o,
  output ordma_pkg::mr_t rsp_o
);
  logic arb_valid;
  logic [W-1:0] arb_index;
  logic [ordma_pkg::MrW-1:0] rdata;
  // Validity is in registers: a reset clears all of it at once.
  logic [(1<<ordma_pkg::MrLog)-1:0] valid_q;
  logic rvalid_q;
  logic [ordma_pkg::MrLog-1:0] raddr;
  ordma_pkg::mr_t rsp;

  ordma_arb #(.N(N), .W(W)) u_arb (
    .clk_i, .rst_ni, .req_i(valid_i), .accept_i(arb_valid), .valid_o(arb_valid), .index_o(arb_index)
  );
  assign raddr = addr_i[arb_index*ordma_pkg::MrLog +: ordma_pkg::MrLog];

  always_comb begin
    ready_o = '0;
    if (arb_valid) ready_o[arb_index] = 1'b1;
  end

  ordma_ram #(.W(ordma_pkg::MrW), .Log(ordma_pkg::MrLog)) u_ram (
    .clk_i, .we_i, .waddr_i, .wdata_i, .re_i(arb_valid), .raddr_i(raddr), .rdata_o(rdata)
  );

  assign rsp = rdata;
  always_comb begin
    rsp_o = rsp;
    rsp_o.valid = rvalid_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
      rvalid_q <= 1'b0;
      rsp_valid_o <= '0;
    end else begin
      rsp_valid_o <= ready_o;
      if (arb_valid) rvalid_q <= valid_q[raddr];
      if (we_i) valid_q[waddr_i] <= wdata_i.valid;
    end
  end
endmodule
