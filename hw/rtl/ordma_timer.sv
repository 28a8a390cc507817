// SPDX-License-Identifier: BSD-2-Clause
//
// Deadlines of the QPs. A sweep walks the armed QPs (32 per cycle are skipped when none is armed) and
// fires those that passed. next_o is the earliest deadline, valid when settled_o: a whole sweep went by
// without a change. A fired deadline is disarmed; the next release of the QP arms it again.
module ordma_timer (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,
  input logic valid_i,
  input logic [ordma_pkg::QpLog-1:0] qp_i,
  input logic arm_i,
  input logic [63:0] deadline_i,
  output logic fire_o,
  output logic [ordma_pkg::QpLog-1:0] fire_qp_o,
  output logic settled_o,
  output logic [63:0] next_o
);
  localparam int unsigned L = ordma_pkg::QpLog;
  localparam int unsigned Words = 1 << (L - 5);
  logic [63:0] mem[0:(1<<L)-1];
  logic [31:0] armed_q[0:Words-1];
  logic [L-1:0] at_q;
  logic [L-6:0] word;
  logic [63:0] min_q, due;
  logic [L:0] clean_q;   // QPs passed since the last change
  logic [Words-1:0] some_q;
  logic here, passed;

  assign word = at_q[L-1:5];
  assign here = armed_q[word][at_q[4:0]];
  assign due = mem[at_q];
  assign passed = here && time_i >= due;
  assign fire_o = passed;
  assign fire_qp_o = at_q;
  assign settled_o = clean_q[L] || some_q == '0;

  always_ff @(posedge clk_i) begin
    if (valid_i && arm_i) mem[qp_i] <= deadline_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      at_q <= '0;
      min_q <= '1;
      next_o <= '1;
      clean_q <= '0;
      some_q <= '0;
      for (int unsigned w = 0; w < Words; w++) armed_q[w] <= '0;
    end else begin
      if (some_q != '0) begin
        if (armed_q[word] == '0) begin
          at_q <= {word + 1'b1, 5'd0};
          some_q[word] <= 1'b0;
        end else begin
          at_q <= at_q + 1'b1;
        end
        if (passed) armed_q[word][at_q[4:0]] <= 1'b0;
        else if (here && due < min_q) min_q <= due;
        // The minimum counts when one whole turn was clean.
        if (passed) begin
          clean_q <= '0;
          min_q <= '1;
        end else if (!clean_q[L]) begin
          clean_q <= clean_q + (armed_q[word] == '0 ? {{(L-5){1'b0}}, 6'd32} - {{(L-4){1'b0}}, at_q[4:0]}
                                                    : {{L{1'b0}}, 1'b1});
        end
      end
      if (valid_i && (arm_i || armed_q[qp_i[L-1:5]][qp_i[4:0]])) begin
        armed_q[qp_i[L-1:5]][qp_i[4:0]] <= arm_i;
        if (arm_i) some_q[qp_i[L-1:5]] <= 1'b1;
        clean_q <= '0;
        min_q <= '1;
      end
      next_o <= (some_q == '0) ? '1 : min_q;
    end
  end
endmodule
