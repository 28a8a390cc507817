// SPDX-License-Identifier: BSD-2-Clause
//
// Answers "is everything that began before now over?" without stopping anything: every engine has been
// between two transactions at least once, then every payload piece committed by then has been fetched,
// then every write that had entered the egress by then has left it. Call protocol.
module ordma_quiesce #(
  parameter int unsigned N = 4
) (
  input logic clk_i,
  input logic rst_ni,
  input logic valid_i,
  output logic done_o,
  input logic [N-1:0] busy_i,
  // Packets with payload: committed and fetched, of requests and of responses. The two are taken in
  // turn, so a sum would count a later packet of one for an earlier packet of the other.
  input logic [15:0] req_in_i,
  input logic [15:0] req_out_i,
  input logic [15:0] res_in_i,
  input logic [15:0] res_out_i,
  input logic [15:0] eg_enq_i,
  input logic [15:0] eg_out_i
);
  typedef enum logic [2:0] { Idle, Engines, Gather, Egress, Done } state_e;
  state_e state_q;
  logic [N-1:0] passed_q;
  logic [15:0] mark_q, req_mark_q, res_mark_q, req_left, res_left, eg_left;

  assign req_left = req_mark_q - req_out_i;
  assign res_left = res_mark_q - res_out_i;
  assign eg_left = mark_q - eg_out_i;
  assign done_o = state_q == Done;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      passed_q <= '0;
      mark_q <= '0;
      req_mark_q <= '0;
      res_mark_q <= '0;
    end else begin
      case (state_q)
        Idle: if (valid_i) begin
          passed_q <= ~busy_i;
          state_q <= Engines;
        end
        Engines: begin
          passed_q <= passed_q | ~busy_i;
          if (&passed_q) begin
            req_mark_q <= req_in_i;
            res_mark_q <= res_in_i;
            state_q <= Gather;
          end
        end
        Gather: if ((req_left == '0 || req_left[15]) && (res_left == '0 || res_left[15])) begin
          mark_q <= eg_enq_i;
          state_q <= Egress;
        end
        Egress: if (eg_left == '0 || eg_left[15]) state_q <= Done;
        default: state_q <= Idle;
      endcase
    end
  end
endmodule
