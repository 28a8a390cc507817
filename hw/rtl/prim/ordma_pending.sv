// SPDX-License-Identifier: BSD-2-Clause
//
// A set of indices with a fair pick. Members are served in order of index from a snapshot of 32, so
// that one that is set again at once cannot starve its neighbours. A pick clears its bit in the same
// cycle; a set in that cycle wins, so a request made while its holder is served is never lost.
module ordma_pending #(
  parameter int unsigned Log = 8,   // at least 6
  parameter int unsigned N = 2
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [N-1:0] set_i,
  input logic [N*Log-1:0] index_i,
  output logic valid_o,
  output logic [Log-1:0] index_o,
  input logic pop_i,
  output logic any_o
);
  localparam int unsigned Words = 1 << (Log - 5);
  localparam int unsigned WL = Log - 5;

  logic [31:0] bits_q[0:Words-1];
  logic [WL-1:0] word_q;
  logic [31:0] snap_q;
  logic [15:0] h16;
  logic [7:0] h8;
  logic [3:0] h4;
  logic [1:0] h2;
  logic [4:0] low;
  logic [Words-1:0] some_q;

  assign any_o = (some_q != '0) || valid_o;
  assign valid_o = snap_q != '0;

  // Index of the lowest set bit of the snapshot.
  always_comb begin
    low[4] = snap_q[15:0] == '0;
    h16 = low[4] ? snap_q[31:16] : snap_q[15:0];
    low[3] = h16[7:0] == '0;
    h8 = low[3] ? h16[15:8] : h16[7:0];
    low[2] = h8[3:0] == '0;
    h4 = low[2] ? h8[7:4] : h8[3:0];
    low[1] = h4[1:0] == '0;
    h2 = low[1] ? h4[3:2] : h4[1:0];
    low[0] = !h2[0];
  end

  assign index_o = {word_q, low};

  // some_q is a superset: a word is cleared from it when it is found empty.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      word_q <= '0;
      snap_q <= '0;
      some_q <= '0;
      for (int unsigned w = 0; w < Words; w++) bits_q[w] <= '0;
    end else begin
      if (valid_o) begin
        if (pop_i) begin
          snap_q[low] <= 1'b0;
          bits_q[word_q][low] <= 1'b0;
        end
      end else if (some_q != '0) begin
        snap_q <= bits_q[word_q + 1'b1];
        word_q <= word_q + 1'b1;
        if (bits_q[word_q + 1'b1] == '0) some_q[word_q + 1'b1] <= 1'b0;
      end
      for (int unsigned s = 0; s < N; s++) begin
        if (set_i[s]) begin
          bits_q[index_i[s*Log+5 +: WL]][index_i[s*Log +: 5]] <= 1'b1;
          some_q[index_i[s*Log+5 +: WL]] <= 1'b1;
        end
      end
    end
  end
endmodule
