// SPDX-License-Identifier: BSD-2-Clause
//
// QP contexts and their locks. An engine works on one QP at a time: acquire gives it the whole
// context, release writes back the parts it changed. Two engines never hold the same QP, so every
// visit is atomic; different QPs proceed in parallel. Producer indices are apart: the doorbell stage
// writes them without a lock (it must always drain), an engine sees those of the moment it acquired.
//
// acquire: valid and qp are held until gnt (one cycle, ctx_o is valid in it). release: valid is held
// until ready. Acquire takes 2 cycles when nobody holds the QP, release 1.
module ordma_qp_table (
  input logic clk_i,
  input logic rst_ni,
  input logic [ordma_pkg::NumQpClient-1:0] acq_valid_i,
  input logic [ordma_pkg::NumQpClient*ordma_pkg::QpLog-1:0] acq_qp_i,
  output logic [ordma_pkg::NumQpClient-1:0] gnt_o,
  output ordma_pkg::qp_ctx_t ctx_o,

  input ordma_pkg::qp_rel_t rel_req_i,
  input ordma_pkg::qp_rel_t rel_rx_i,
  input ordma_pkg::qp_rel_t rel_cpl_i,
  input ordma_pkg::qp_rel_t rel_cmd_i,
  input ordma_pkg::qp_rel_t rel_rsp_i,
  input ordma_pkg::qp_rel_t rel_res_i,
  input logic [ordma_pkg::AttrW-1:0] rel_attr_i,
  output logic [ordma_pkg::NumQpClient-1:0] rel_ready_o,

  // Producer indices from the doorbell stage.
  input logic pi_we_i,
  input logic pi_rq_i,
  input logic [ordma_pkg::QpLog-1:0] pi_qp_i,
  input logic [23:0] pi_i,
  input logic pi_clear_i,  // both indices of pi_qp_i, together with the reset of the QP

  // QPs in ERR or SQE: a doorbell there wakes the completer.
  output logic [(1<<ordma_pkg::QpLog)-1:0] err_o,

  // Deadline of the QP that was just released.
  output logic tmr_valid_o,
  output logic [ordma_pkg::QpLog-1:0] tmr_qp_o,
  output logic tmr_arm_o,
  output logic [63:0] tmr_deadline_o,
  output logic busy_o
);
  localparam int unsigned N = ordma_pkg::NumQpClient;
  localparam int unsigned L = ordma_pkg::QpLog;

  logic [N-1:0] held_q, want, gnt_q;
  logic [N*L-1:0] held_qp_q;
  logic arb_valid;
  logic [2:0] arb_index;
  logic [L-1:0] raddr;
  logic [(1<<L)-1:0] valid_q;
  logic rvalid_q;
  ordma_pkg::qp_rel_t rel;
  logic [2:0] rel_index;
  logic [ordma_pkg::QpCtlW-1:0] ctl_r;
  logic [ordma_pkg::QpSqW-1:0] sq_r;
  logic [ordma_pkg::QpRqW-1:0] rq_r;
  logic [ordma_pkg::AttrW-1:0] attr_r;
  logic [23:0] sq_pi_r, rq_pi_r;
  ordma_pkg::qp_ctl_t ctl;
  logic outstanding;

  assign gnt_o = gnt_q;
  assign busy_o = held_q != '0;

  always_comb begin
    want = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (acq_valid_i[i] && !held_q[i]) begin
        want[i] = 1'b1;
        for (int unsigned j = 0; j < N; j++) begin
          if (held_q[j] && held_qp_q[j*L +: L] == acq_qp_i[i*L +: L]) want[i] = 1'b0;
        end
      end
    end
  end

  ordma_arb #(.N(N), .W(3)) u_arb (
    .clk_i, .rst_ni, .req_i(want), .accept_i(arb_valid), .valid_o(arb_valid), .index_o(arb_index)
  );
  assign raddr = acq_qp_i[arb_index*L +: L];

  always_comb begin
    rel_ready_o = '0;
    rel_index = 3'd3;
    rel = rel_cmd_i;
    if (rel_rx_i.valid) begin
      rel_index = 3'd1;
      rel = rel_rx_i;
    end else if (rel_rsp_i.valid) begin
      rel_index = 3'd4;
      rel = rel_rsp_i;
    end else if (rel_req_i.valid) begin
      rel_index = 3'd0;
      rel = rel_req_i;
    end else if (rel_res_i.valid) begin
      rel_index = 3'd5;
      rel = rel_res_i;
    end else if (rel_cpl_i.valid) begin
      rel_index = 3'd2;
      rel = rel_cpl_i;
    end
    rel_ready_o[rel_index] = rel.valid;
  end

  ordma_ram #(.W(ordma_pkg::QpCtlW), .Log(L)) u_ctl (
    .clk_i, .we_i(rel.valid && rel.we_ctl), .waddr_i(rel.qp), .wdata_i(rel.ctl),
    .re_i(arb_valid), .raddr_i(raddr), .rdata_o(ctl_r)
  );
  ordma_ram #(.W(ordma_pkg::QpSqW), .Log(L)) u_sq (
    .clk_i, .we_i(rel.valid && rel.we_sq), .waddr_i(rel.qp), .wdata_i(rel.sq),
    .re_i(arb_valid), .raddr_i(raddr), .rdata_o(sq_r)
  );
  ordma_ram #(.W(ordma_pkg::QpRqW), .Log(L)) u_rq (
    .clk_i, .we_i(rel.valid && rel.we_rq), .waddr_i(rel.qp), .wdata_i(rel.rq),
    .re_i(arb_valid), .raddr_i(raddr), .rdata_o(rq_r)
  );
  ordma_ram #(.W(ordma_pkg::AttrW), .Log(L)) u_attr (
    .clk_i, .we_i(rel.valid && rel.we_attr), .waddr_i(rel.qp), .wdata_i(rel_attr_i),
    .re_i(arb_valid), .raddr_i(raddr), .rdata_o(attr_r)
  );
  ordma_ram #(.W(24), .Log(L)) u_sq_pi (
    .clk_i, .we_i(pi_clear_i || (pi_we_i && !pi_rq_i)), .waddr_i(pi_qp_i), .wdata_i(pi_clear_i ? 24'd0 : pi_i),
    .re_i(arb_valid), .raddr_i(raddr), .rdata_o(sq_pi_r)
  );
  ordma_ram #(.W(24), .Log(L)) u_rq_pi (
    .clk_i, .we_i(pi_clear_i || (pi_we_i && pi_rq_i)), .waddr_i(pi_qp_i), .wdata_i(pi_clear_i ? 24'd0 : pi_i),
    .re_i(arb_valid), .raddr_i(raddr), .rdata_o(rq_pi_r)
  );

  assign ctl = ctl_r;
  always_comb begin
    ctx_o = '0;
    if (gnt_q != '0) begin
      ctx_o.sq_pi = sq_pi_r;
      ctx_o.rq_pi = rq_pi_r;
      ctx_o.ctl = ctl;
      ctx_o.ctl.valid = rvalid_q;
      ctx_o.sq = sq_r;
      ctx_o.rq = rq_r;
      ctx_o.attr = attr_r;
    end
  end

  // A QP has a deadline while data is unacknowledged (silence) or a rewind has to wait (not_before).
  assign outstanding = rel.sq.una_psn != rel.sq.high_psn;
  always_comb begin
    tmr_valid_o = rel.valid && rel.we_sq;
    tmr_qp_o = rel.qp;
    tmr_arm_o = 1'b0;
    tmr_deadline_o = rel.sq.progress + rel.sq.silence;
    if (tmr_valid_o && rel.ctl.valid && !rel.ctl.frozen
        && rel.ctl.state != ordma_hw_pkg::QpStateErr[3:0] && rel.ctl.state != ordma_hw_pkg::QpStateReset[3:0]) begin
      if (rel.sq.not_before != '0) begin
        tmr_arm_o = 1'b1;
        tmr_deadline_o = rel.sq.not_before;
      end else begin
        tmr_arm_o = outstanding && rel.sq.silence != '0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      held_q <= '0;
      held_qp_q <= '0;
      gnt_q <= '0;
      valid_q <= '0;
      rvalid_q <= 1'b0;
      err_o <= '0;
    end else begin
      gnt_q <= '0;
      if (arb_valid) begin
        gnt_q[arb_index] <= 1'b1;
        held_q[arb_index] <= 1'b1;
        held_qp_q[arb_index*L +: L] <= raddr;
        rvalid_q <= valid_q[raddr];
      end
      if (rel.valid) begin
        held_q[rel_index] <= 1'b0;
        if (rel.we_ctl) begin
          valid_q[rel.qp] <= rel.ctl.valid;
          err_o[rel.qp] <= rel.ctl.valid && (rel.ctl.state == ordma_hw_pkg::QpStateErr[3:0]
                                                || rel.ctl.state == ordma_hw_pkg::QpStateSqe[3:0]);
        end
      end
    end
  end
endmodule
