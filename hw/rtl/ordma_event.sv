// SPDX-License-Identifier: BSD-2-Clause
//
// Event ring: takes one event at a time, writes it and then its interrupt into the egress, so that
// the interrupt finds the event and everything before it in host memory. No consumer index: the ring
// is as large as the sum of its sources, each of which keeps its own sticky bit; only
// CQ_FIRE, which users re-arm, looks at crowded_o first.
module ordma_event #(
  parameter int unsigned N = 5,
  parameter int unsigned W = 3
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,
  input logic [63:0] eq_base_i,
  input logic [4:0] eq_log_i,
  input logic [23:0] eq_ci_i,       // events below it were read
  input logic start_i,              // the ring begins anew
  input logic [N-1:0] valid_i,
  input logic [N*ordma_pkg::EventW-1:0] event_i,
  output logic [N-1:0] ready_o,
  output logic eg_valid_o,
  output ordma_pkg::eg_beat_t eg_o,
  input logic eg_ready_i,
  output logic [23:0] index_o,      // of the event that is taken
  output logic crowded_o,           // more than half full: users' notifications wait
  output logic cnt_event_o,
  output logic busy_o
);
  typedef enum logic [1:0] { Idle, Write, Intr } state_e;
  state_e state_q;
  logic arb_valid, take;
  logic [W-1:0] arb_index;
  ordma_pkg::event_t ev_q;
  logic [63:0] time_q;
  logic [23:0] wptr_q;
  ordma_hw_pkg::event_t rec;
  logic [23:0] slot, fill;

  assign take = state_q == Idle && arb_valid;
  assign busy_o = state_q != Idle;
  assign cnt_event_o = take;
  assign index_o = wptr_q;
  assign fill = wptr_q - eq_ci_i;
  assign crowded_o = {1'b0, fill} > (25'd1 << eq_log_i >> 1);
  assign slot = wptr_q & ~(24'hff_ffff << eq_log_i);

  ordma_arb #(.N(N), .W(W)) u_arb (
    .clk_i, .rst_ni, .req_i(valid_i), .accept_i(take), .valid_o(arb_valid), .index_o(arb_index)
  );
  always_comb begin
    ready_o = '0;
    if (take) ready_o[arb_index] = 1'b1;
  end

  always_comb begin
    rec = '0;
    eg_o = '0;
    eg_valid_o = state_q != Idle;
    if (state_q == Write) begin
      // "type" is a keyword; the generated field carries an underscore.
      rec.type_ = ev_q.kind;
      rec.code = ev_q.code;
      rec.number = ev_q.number;
      rec.psn = ev_q.psn;
      rec.log_index = ev_q.log_index;
      rec.time_ = time_q;
      rec.phase = !(((wptr_q >> eq_log_i) & 24'd1) == 24'd1);
      eg_o.addr = eq_base_i + {35'd0, slot, 5'd0};
      eg_o.len = 13'd32;
      eg_o.kind = ordma_pkg::KindEvent;
      eg_o.data = {256'd0, rec};
      eg_o.last = 1'b1;
    end else if (state_q == Intr) begin
      eg_o.addr = {56'd0, ev_q.vec};
      eg_o.kind = ordma_pkg::KindIntr;
      eg_o.last = 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      ev_q <= '0;
      time_q <= '0;
      wptr_q <= '0;
    end else begin
      case (state_q)
        Idle: if (take) begin
          ev_q <= event_i[arb_index*ordma_pkg::EventW +: ordma_pkg::EventW];
          time_q <= time_i;
          state_q <= Write;
        end
        Write: if (eg_ready_i) begin
          wptr_q <= wptr_q + 1'b1;
          state_q <= Intr;
        end
        default: if (eg_ready_i) state_q <= Idle;
      endcase
      if (start_i) wptr_q <= '0;
    end
  end
endmodule
