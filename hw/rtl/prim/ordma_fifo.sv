// SPDX-License-Identifier: BSD-2-Clause
//
// Show-ahead FIFO. Pushing when full and popping when empty are the caller's errors.
module ordma_fifo #(
  parameter int unsigned W = 8,
  parameter int unsigned Log = 2
) (
  input logic clk_i,
  input logic rst_ni,
  input logic push_i,
  input logic [W-1:0] data_i,
  output logic full_o,
  input logic pop_i,
  output logic [W-1:0] data_o,
  output logic empty_o,
  output logic [Log:0] count_o
);
  logic [W-1:0] mem[0:(1<<Log)-1];
  logic [Log:0] wptr_q, rptr_q;

  assign count_o = wptr_q - rptr_q;
  assign empty_o = wptr_q == rptr_q;
  assign full_o = count_o[Log];
  assign data_o = mem[rptr_q[Log-1:0]];

  always_ff @(posedge clk_i) begin
    if (push_i) mem[wptr_q[Log-1:0]] <= data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
    end else begin
      if (push_i) wptr_q <= wptr_q + 1'b1;
      if (pop_i) rptr_q <= rptr_q + 1'b1;
    end
  end

`ifdef FORMAL
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(push_i && full_o));
      assert (!(pop_i && empty_o));
    end
  end
`endif
endmodule
