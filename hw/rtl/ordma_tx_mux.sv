// SPDX-License-Identifier: BSD-2-Clause
//
// Requests and responses into one stream of packets, in turn, each whole: its descriptor to the frame
// builder, its pieces to the gather unit in the same order.
module ordma_tx_mux (
  input logic clk_i,
  input logic rst_ni,
  input logic [1:0] desc_valid_i,
  input ordma_pkg::tx_desc_t desc0_i,
  input ordma_pkg::tx_desc_t desc1_i,
  output logic [1:0] desc_pop_o,
  input logic [1:0] chunk_valid_i,
  input ordma_pkg::chunk_t chunk0_i,
  input ordma_pkg::chunk_t chunk1_i,
  output logic [1:0] chunk_pop_o,

  output logic desc_push_o,
  output ordma_pkg::tx_desc_t desc_o,
  input logic desc_full_i,
  output logic chunk_valid_o,
  output ordma_pkg::chunk_t chunk_o,
  input logic chunk_pop_i,
  input logic packed_i,          // the gather unit has all of the oldest packet
  output logic [1:0] packed_o,   // ... and whose it was
  output logic busy_o
);
  logic turn_q, which_q, pieces_q, pick;
  logic take, owner_push, owner, owners_full, owners_empty;
  logic [6:0] owners;

  assign pick = desc_valid_i[turn_q] ? turn_q : !turn_q;
  assign take = !pieces_q && !desc_full_i && !owners_full && desc_valid_i != '0;
  assign owner_push = take && desc_o.pay_len != '0;
  assign packed_o = {packed_i && owner, packed_i && !owner};

  ordma_fifo #(.W(1), .Log(6)) u_owners (
    .clk_i, .rst_ni, .push_i(owner_push), .data_i(pick), .full_o(owners_full), .pop_i(packed_i), .data_o(owner),
    .empty_o(owners_empty), .count_o(owners)
  );
  assign busy_o = pieces_q || desc_valid_i != '0;
  assign desc_push_o = take;
  assign chunk_valid_o = pieces_q && chunk_valid_i[which_q];

  always_comb begin
    desc_pop_o = '0;
    chunk_pop_o = '0;
    desc_o = '0;
    chunk_o = '0;
    if (take) begin
      desc_pop_o[pick] = 1'b1;
      desc_o = pick ? desc1_i : desc0_i;
    end
    if (pieces_q) begin
      chunk_o = which_q ? chunk1_i : chunk0_i;
      chunk_pop_o[which_q] = chunk_pop_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      turn_q <= 1'b0;
      which_q <= 1'b0;
      pieces_q <= 1'b0;
    end else begin
      if (take) begin
        turn_q <= !pick;
        which_q <= pick;
        pieces_q <= desc_o.pay_len != '0;
      end
      if (pieces_q && chunk_pop_i && chunk_o.last) pieces_q <= 1'b0;
    end
  end

  logic unused_owners;
  assign unused_owners = ^{owners, owners_empty};
endmodule
