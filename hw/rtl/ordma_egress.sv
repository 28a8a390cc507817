// SPDX-License-Identifier: BSD-2-Clause
//
// The one ordered stream from the NIC to the host: payload, CQEs, records, events, interrupts.
// A write enters whole, so order of entry is the order the host observes. enq_o and out_o count
// writes that entered and that left, modulo 2^16: who must read what was written before waits until
// out_o has passed the enq_o of that moment (a read does not pass earlier writes on the host port).
module ordma_egress #(
  parameter int unsigned N = 6,
  parameter int unsigned W = 3,
  parameter int unsigned Log = 4
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [N-1:0] valid_i,
  input logic [N*ordma_pkg::EgBeatW-1:0] beat_i,
  output logic [N-1:0] ready_o,

  output logic wr_valid_o,
  input logic wr_ready_i,
  output ordma_pkg::eg_beat_t wr_beat_o,

  output logic [15:0] enq_o,
  output logic [15:0] out_o,
  output logic busy_o
);
  logic arb_valid, accept, lock_q, push, full, empty;
  logic [W-1:0] arb_index, index, lock_index_q;
  logic [Log:0] count;
  ordma_pkg::eg_beat_t beat;

  // A write of several beats keeps the port until its last beat.
  assign index = lock_q ? lock_index_q : arb_index;
  assign push = !full && (lock_q ? valid_i[lock_index_q] : arb_valid);
  assign accept = push && !lock_q;
  assign busy_o = !empty || lock_q;
  assign wr_valid_o = !empty;

  ordma_arb #(.N(N), .W(W)) u_arb (
    .clk_i, .rst_ni, .req_i(valid_i), .accept_i(accept), .valid_o(arb_valid), .index_o(arb_index)
  );

  always_comb begin
    ready_o = '0;
    beat = '0;
    if (push) begin
      ready_o[index] = 1'b1;
      beat = beat_i[index*ordma_pkg::EgBeatW +: ordma_pkg::EgBeatW];
    end
  end

  ordma_fifo #(.W(ordma_pkg::EgBeatW), .Log(Log)) u_fifo (
    .clk_i, .rst_ni, .push_i(push), .data_i(beat), .full_o(full),
    .pop_i(wr_valid_o && wr_ready_i), .data_o(wr_beat_o), .empty_o(empty), .count_o(count)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lock_q <= 1'b0;
      lock_index_q <= '0;
      enq_o <= '0;
      out_o <= '0;
    end else begin
      if (push) begin
        lock_q <= !beat.last;
        lock_index_q <= index;
        if (beat.last) enq_o <= enq_o + 1'b1;
      end
      if (wr_valid_o && wr_ready_i && wr_beat_o.last) out_o <= out_o + 1'b1;
    end
  end

  // The arbiter's depth is the FIFO's: its fill level is only of interest to a waveform.
  logic unused_count;
  assign unused_count = ^count;
endmodule
