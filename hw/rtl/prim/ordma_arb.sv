// SPDX-License-Identifier: BSD-2-Clause
//
// Round-robin choice of one of N requests. The winner of the last accepted choice comes last next time.
module ordma_arb #(
  parameter int unsigned N = 4,
  parameter int unsigned W = 2
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [N-1:0] req_i,
  input logic accept_i,
  output logic valid_o,
  output logic [W-1:0] index_o
);
  logic [N-1:0] above_q;  // the requests behind the last winner
  logic [N-1:0] first, pick;

  assign first = req_i & above_q;
  assign pick = (first != '0) ? first : req_i;
  assign valid_o = req_i != '0;

  always_comb begin
    index_o = '0;
    if (valid_o) begin
      for (int unsigned i = N; i > 0; i--) begin
        if (pick[i-1]) index_o = i[W-1:0] - 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) above_q <= '0;
    else if (accept_i) above_q <= {N{1'b1}} << index_o << 1;
  end
endmodule
