// SPDX-License-Identifier: BSD-2-Clause
//
// FIFO whose writer decides late: entries become visible with commit_i and vanish with abort_i.
// commit_i covers an entry pushed in the same cycle.
module ordma_fifo_commit #(
  parameter int unsigned W = 8,
  parameter int unsigned Log = 2
) (
  input logic clk_i,
  input logic rst_ni,
  input logic push_i,
  input logic [W-1:0] data_i,
  input logic commit_i,
  input logic abort_i,
  output logic full_o,
  input logic pop_i,
  output logic [W-1:0] data_o,
  output logic empty_o
);
  logic [W-1:0] mem[0:(1<<Log)-1];
  logic [Log:0] wptr_q, cptr_q, rptr_q;
  logic [Log:0] wnext, used;

  assign used = wptr_q - rptr_q;
  assign wnext = push_i ? wptr_q + 1'b1 : wptr_q;
  assign full_o = used[Log];
  assign empty_o = cptr_q == rptr_q;
  assign data_o = mem[rptr_q[Log-1:0]];

  always_ff @(posedge clk_i) begin
    if (push_i) mem[wptr_q[Log-1:0]] <= data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      cptr_q <= '0;
      rptr_q <= '0;
    end else begin
      wptr_q <= abort_i ? cptr_q : wnext;
      if (commit_i) cptr_q <= wnext;
      if (pop_i) rptr_q <= rptr_q + 1'b1;
    end
  end
endmodule
