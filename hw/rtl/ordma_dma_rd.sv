// SPDX-License-Identifier: BSD-2-Clause
//
// DMA read port: many clients, one port. The tag is the client. Every client has reserved room for
// what it asks, so a response is never held back and no client can block another.
// Contract with the host side: responses of one tag come in the order of its requests, the beats of
// one response are contiguous, data is packed to lane 0. ok is sampled with the last beat.
module ordma_dma_rd #(
  parameter int unsigned N = ordma_pkg::NumRd,
  parameter int unsigned DATA_W = ordma_pkg::DataW
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [N-1:0] valid_i,
  input logic [N*ordma_pkg::RdReqW-1:0] req_i,
  output logic [N-1:0] ready_o,
  output logic [N-1:0] rsp_valid_o,
  output logic [DATA_W-1:0] rsp_data_o,
  output logic rsp_last_o,
  output logic rsp_err_o,

  output logic dma_valid_o,
  input logic dma_ready_i,
  output logic [ordma_pkg::RdTagW-1:0] dma_tag_o,
  output ordma_pkg::rd_req_t dma_req_o,
  input logic dma_rsp_valid_i,
  input logic [ordma_pkg::RdTagW-1:0] dma_rsp_tag_i,
  input logic [DATA_W-1:0] dma_rsp_data_i,
  input logic dma_rsp_last_i,
  input logic dma_rsp_ok_i,

  output logic busy_o
);
  logic arb_valid, accept;
  logic [ordma_pkg::RdTagW-1:0] arb_index;
  logic valid_q;
  logic [9:0] flying_q;  // requests on the port without their last beat

  assign dma_valid_o = valid_q;
  assign accept = arb_valid && (!valid_q || dma_ready_i);
  assign busy_o = valid_q || (flying_q != '0);

  ordma_arb #(.N(N), .W(ordma_pkg::RdTagW)) u_arb (
    .clk_i, .rst_ni, .req_i(valid_i), .accept_i(accept), .valid_o(arb_valid), .index_o(arb_index)
  );

  always_comb begin
    ready_o = '0;
    if (accept) ready_o[arb_index] = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      flying_q <= '0;
      dma_tag_o <= '0;
      dma_req_o <= '0;
    end else begin
      if (accept) begin
        valid_q <= 1'b1;
        dma_tag_o <= arb_index;
        dma_req_o <= req_i[arb_index*ordma_pkg::RdReqW +: ordma_pkg::RdReqW];
      end else if (dma_ready_i) begin
        valid_q <= 1'b0;
      end
      case ({valid_q && dma_ready_i, dma_rsp_valid_i && dma_rsp_last_i})
        2'b10: flying_q <= flying_q + 1'b1;
        2'b01: flying_q <= flying_q - 1'b1;
        default: ;
      endcase
    end
  end

  // One register stage: the port may be far away.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rsp_valid_o <= '0;
      rsp_last_o <= 1'b0;
      rsp_err_o <= 1'b0;
    end else begin
      rsp_valid_o <= '0;
      if (dma_rsp_valid_i) begin
        rsp_valid_o[dma_rsp_tag_i] <= 1'b1;
        rsp_last_o <= dma_rsp_last_i;
        rsp_err_o <= !dma_rsp_ok_i;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (dma_rsp_valid_i) rsp_data_o <= dma_rsp_data_i;
  end
endmodule
