// SPDX-License-Identifier: BSD-2-Clause
//
// What a command does to a QP: the checks of QP_CREATE and QP_MODIFY, and the new state that CREATE,
// MODIFY, DESTROY, REWIND, FAIL and SILENCE leave. Combinational; the command processor holds the lock.
module ordma_qp_update (
  input logic valid_i,
  input logic [511:0] cmd_i,
  input ordma_hw_pkg::qpc_t image_i,      // the new image
  input ordma_pkg::qp_ctx_t ctx_i,        // the QP as it is
  input logic [63:0] time_i,
  input logic cqs_exist_i,                // both CQs of the image
  input logic sgid_ok_i,                  // the GID of the image fits its destination
  input logic [12:0] max_mtu_i,           // largest payload that the port carries
  output logic [7:0] status_o,
  output logic write_o,
  output ordma_pkg::qp_ctl_t ctl_o,
  output ordma_pkg::qp_sq_t sq_o,
  output ordma_pkg::qp_rq_t rq_o,
  output logic kick_o,
  output logic wake_o,
  output logic rewound_o
);
  ordma_hw_pkg::cmd_t head;
  ordma_hw_pkg::cmd_qp_t qp;
  ordma_hw_pkg::cmd_rewind_t rewind;
  ordma_hw_pkg::cmd_fail_t fail;
  ordma_hw_pkg::cmd_silence_t silence;
  ordma_hw_pkg::qpc_t old;
  logic [3:0] from, to;
  logic shape_ok, path_ok, allowed, same, exists, sends, gsi, rc, datagram, old_rc;
  logic [23:0] index_diff, psn_diff, span, in_log;
  logic stale, rewind_ok;
  localparam logic [7:0] RemoteAtomic = ordma_hw_pkg::AccessRemoteAtomic;
  logic [23:0] limit, fail_beyond;

  assign head = cmd_i;
  assign qp = cmd_i;
  assign rewind = cmd_i;
  assign fail = cmd_i;
  assign silence = cmd_i;
  assign old = {1024'd0, ctx_i.attr};
  assign from = ctx_i.ctl.state;
  assign to = qp.state[3:0];
  assign exists = ctx_i.ctl.valid && old.qpn == head.number[23:0] && head.number[31:24] == '0;
  assign sends = from == ordma_hw_pkg::QpStateRts[3:0] || from == ordma_hw_pkg::QpStateSqd[3:0];
  assign old_rc = old.type_ == ordma_hw_pkg::QpTypeRc;
  assign rc = image_i.type_ == ordma_hw_pkg::QpTypeRc;
  assign datagram = image_i.type_ == ordma_hw_pkg::QpTypeUd || image_i.type_ == ordma_hw_pkg::QpTypeGsi;
  assign gsi = head.number == ordma_hw_pkg::GsiQpn;

  // The image alone: rings, log, numbers.
  always_comb begin
    shape_ok = 1'b0;
    if (valid_i) begin
      shape_ok = image_i.qpn == head.number[23:0] && head.number[31:24] == '0 && cqs_exist_i
          && image_i.uctx < ordma_pkg::MaxUctx[15:0] && image_i.qpn != ordma_hw_pkg::McastQpn[23:0]
          && (image_i.sq_stride_log == '0
              || ({3'd0, image_i.sq_stride_log} >= ordma_hw_pkg::SqStrideLogMin[6:0]
                  && {3'd0, image_i.sq_stride_log} <= ordma_hw_pkg::SqStrideLogMax[6:0]
                  && {2'd0, image_i.sq_log} <= ordma_pkg::MaxWrLog[6:0] && image_i.sq_level != 2'd3))
          && (image_i.rq_stride_log == '0
              || ({3'd0, image_i.rq_stride_log} >= ordma_hw_pkg::RqStrideLogMin[6:0]
                  && {3'd0, image_i.rq_stride_log} <= ordma_hw_pkg::RqStrideLogMax[6:0]
                  && {2'd0, image_i.rq_log} <= ordma_pkg::MaxWrLog[6:0] && image_i.rq_level != 2'd3))
          && (!rc || (image_i.log_addr != '0 && image_i.log_addr[3:0] == '0 && image_i.log_log <= 5'd15))
          && image_i.type_ >= ordma_hw_pkg::QpTypeGsi && image_i.type_ <= ordma_hw_pkg::QpTypeUd
          && gsi == (image_i.type_ == ordma_hw_pkg::QpTypeGsi)
          && (!gsi || image_i.uctx == ordma_hw_pkg::KernelUctx[15:0]);
    end
  end
  assign limit = ctx_i.sq.rd_first + ctx_i.sq.rd_recv;
  assign fail_beyond = fail.psn - limit;
  assign path_ok = image_i.max_rd_atomic <= (8'd1 << ordma_pkg::RdLog) && image_i.max_dest_rd_atomic <= (8'd1 << ordma_pkg::RdLog)
                && (image_i.max_dest_rd_atomic == '0 || (image_i.access & RemoteAtomic) == '0
                    || !rc || (image_i.atomic_addr != '0 && image_i.atomic_addr[3:0] == '0))
                && image_i.mtu_log >= 5'd8 && image_i.mtu_log <= 5'd12 && (sgid_ok_i || datagram)
                && (13'd1 << image_i.mtu_log) <= max_mtu_i;
  assign same = image_i.type_ == old.type_ && image_i.uctx == old.uctx && image_i.pd == old.pd
      && image_i.scqn == old.scqn && image_i.rcqn == old.rcqn && image_i.sq_addr == old.sq_addr
      && image_i.rq_addr == old.rq_addr && image_i.sq_log == old.sq_log && image_i.rq_log == old.rq_log
      && image_i.sq_stride_log == old.sq_stride_log && image_i.rq_stride_log == old.rq_stride_log
      && image_i.log_addr == old.log_addr && image_i.log_log == old.log_log
      && image_i.sq_level == old.sq_level && image_i.rq_level == old.rq_level
      && image_i.has_srq == old.has_srq && image_i.srqn == old.srqn;

  always_comb begin
    case (to)
      ordma_hw_pkg::QpStateReset[3:0], ordma_hw_pkg::QpStateErr[3:0]: allowed = 1'b1;
      ordma_hw_pkg::QpStateInit[3:0]: allowed = from == ordma_hw_pkg::QpStateReset[3:0] || from == to;
      ordma_hw_pkg::QpStateRtr[3:0]: allowed = from == ordma_hw_pkg::QpStateInit[3:0];
      ordma_hw_pkg::QpStateRts[3:0]: allowed = from == ordma_hw_pkg::QpStateRtr[3:0] || sends
                                                    || (from == ordma_hw_pkg::QpStateSqe[3:0] && !rc);
      ordma_hw_pkg::QpStateSqd[3:0]: allowed = sends;
      default: allowed = 1'b0;
    endcase
    if (qp.state[7:4] != '0) allowed = 1'b0;
  end

  // Where a rewind may point: into what is sent and not acknowledged. What was acknowledged since
  // software looked moves it forward.
  assign span = ctx_i.sq.high_psn - ctx_i.sq.una_psn;
  assign psn_diff = rewind.psn - ctx_i.sq.una_psn;
  assign index_diff = rewind.log_index - ctx_i.sq.log_acked;
  assign in_log = ctx_i.sq.log_sent - ctx_i.sq.log_acked;
  assign stale = psn_diff[23] || index_diff[23];
  assign rewind_ok = stale || (psn_diff <= span && index_diff <= in_log);

  always_comb begin
    status_o = ordma_hw_pkg::CmdStatusOk;
    write_o = 1'b0;
    ctl_o = ctx_i.ctl;
    sq_o = ctx_i.sq;
    rq_o = ctx_i.rq;
    kick_o = 1'b0;
    wake_o = 1'b0;
    rewound_o = 1'b0;
    if (valid_i) begin
      case (head.opcode)
        ordma_hw_pkg::CmdOpQpCreate: begin
          if (head.number[13:ordma_pkg::QpLog] != '0 || head.number[31:24] != '0
              || head.number[ordma_pkg::QpLog-1:0] == '0
              || (head.number[ordma_pkg::QpLog-1:0] == ordma_hw_pkg::GsiQpn[ordma_pkg::QpLog-1:0] && !gsi)) begin
            status_o = ordma_hw_pkg::CmdStatusBadParam;
          end else if (ctx_i.ctl.valid) begin
            status_o = ordma_hw_pkg::CmdStatusExists;
          end else if (image_i.has_srq || image_i.type_ == ordma_hw_pkg::QpTypeEth) begin
            status_o = ordma_hw_pkg::CmdStatusUnsupported;
          end else if (!shape_ok) begin
            status_o = ordma_hw_pkg::CmdStatusBadParam;
          end else begin
            write_o = 1'b1;
            ctl_o = '0;
            ctl_o.valid = 1'b1;
            sq_o = '0;
            rq_o = '0;
          end
        end
        ordma_hw_pkg::CmdOpQpModify: begin
          if (!exists) begin
            status_o = ordma_hw_pkg::CmdStatusNoObject;
          end else if (qp.state > ordma_hw_pkg::QpStateErr || !shape_ok || !same) begin
            status_o = ordma_hw_pkg::CmdStatusBadParam;
          end else if (!allowed) begin
            status_o = ordma_hw_pkg::CmdStatusBadState;
          end else if ((to >= ordma_hw_pkg::QpStateRtr[3:0] && to <= ordma_hw_pkg::QpStateSqd[3:0] && !path_ok)
                       || (qp.init_rq && to != ordma_hw_pkg::QpStateRtr[3:0])
                       || (qp.init_sq && !(from == ordma_hw_pkg::QpStateRtr[3:0] && to == ordma_hw_pkg::QpStateRts[3:0]))) begin
            status_o = ordma_hw_pkg::CmdStatusBadParam;
          end else begin
            write_o = 1'b1;
            ctl_o.state = to;
            sq_o.silence = image_i.silence;
            kick_o = to == ordma_hw_pkg::QpStateErr[3:0] || to == ordma_hw_pkg::QpStateSqd[3:0];
            wake_o = to == ordma_hw_pkg::QpStateRts[3:0];
            if (to == ordma_hw_pkg::QpStateRts[3:0]) ctl_o.drained = 1'b0;
            if (from == ordma_hw_pkg::QpStateSqe[3:0]) ctl_o.error_told = 1'b0;
            if (to == ordma_hw_pkg::QpStateErr[3:0]) begin
              sq_o.evt_valid = 1'b0;
              rq_o.rs_count = '0;
              rq_o.rs_dups = '0;
              rq_o.rs_ack = 1'b0;
            end
            if (to == ordma_hw_pkg::QpStateReset[3:0]) begin
              ctl_o = '0;
              ctl_o.valid = 1'b1;
              sq_o = '0;
              rq_o = '0;
            end
            // In RESET nothing is consumed, so whatever was rung there is behind the consumer.
            if (to == ordma_hw_pkg::QpStateReset[3:0] || from == ordma_hw_pkg::QpStateReset[3:0]) begin
              sq_o.sq_ci = ctx_i.sq_pi;
              sq_o.cur_sq = ctx_i.sq_pi;
              rq_o.ci = ctx_i.rq_pi;
            end
            if (to == ordma_hw_pkg::QpStateRtr[3:0]) begin
              rq_o.msn = '0;
              rq_o.nak_sent = 1'b0;
              rq_o.in_msg = 1'b0;
              rq_o.has_read = 1'b0;
              rq_o.atomics = '0;
              if (qp.init_rq) rq_o.epsn = image_i.rq_psn;
            end
            if (qp.init_sq) begin
              sq_o.next_psn = image_i.sq_psn;
              sq_o.high_psn = image_i.sq_psn;
              sq_o.una_psn = image_i.sq_psn;
            end
            if (from == ordma_hw_pkg::QpStateRtr[3:0]) sq_o.progress = time_i;
          end
        end
        ordma_hw_pkg::CmdOpQpDestroy: begin
          if (!exists) begin
            status_o = ordma_hw_pkg::CmdStatusNoObject;
          end else begin
            write_o = 1'b1;
            ctl_o = '0;
          end
        end
        ordma_hw_pkg::CmdOpQpQuery: if (!exists) status_o = ordma_hw_pkg::CmdStatusNoObject;
        ordma_hw_pkg::CmdOpQpRewind: if (exists && old_rc && sends && rewind_ok) begin
          write_o = 1'b1;
          rewound_o = 1'b1;
          wake_o = 1'b1;
          kick_o = 1'b1;
          ctl_o.frozen = 1'b0;
          sq_o.fail_valid = 1'b0;
          sq_o.evt_valid = 1'b0;
          sq_o.cur_log = stale ? ctx_i.sq.log_acked : rewind.log_index;
          sq_o.next_psn = stale ? ctx_i.sq.una_psn : rewind.psn;
          sq_o.cur_pkt = '0;
          if (rewind.log_index == ctx_i.sq.log_sent && !stale) sq_o.next_psn = ctx_i.sq.high_psn;
          sq_o.not_before = (rewind.not_before > time_i) ? rewind.not_before : '0;
          sq_o.progress = (rewind.not_before > time_i) ? rewind.not_before : time_i;
          sq_o.rd_recount = 1'b1;
          // The fatal NAK that came while frozen; the peer will not say it again.
          sq_o.late_valid = 1'b0;
          if (ctx_i.sq.late_valid && ctx_i.sq.late_psn == ctx_i.sq.una_psn) begin
            ctl_o.frozen = 1'b1;
            sq_o.evt_valid = 1'b1;
            sq_o.evt_type = ordma_hw_pkg::EventTypeQpNak;
            sq_o.evt_code = ctx_i.sq.late_syn;
          end
        end
        ordma_hw_pkg::CmdOpQpFail: if (exists && old_rc && sends) begin
          write_o = 1'b1;
          kick_o = 1'b1;
          // Never past a READ whose response is missing.
          if (fail.psn - ctx_i.sq.una_psn <= span) begin
            sq_o.una_psn = (ctx_i.sq.rd_count != '0 && fail_beyond != '0 && !fail_beyond[23]) ? limit : fail.psn;
          end
          rq_o.rs_count = '0;
          rq_o.rs_dups = '0;
          rq_o.rs_ack = 1'b0;
          ctl_o.frozen = 1'b0;
          sq_o.evt_valid = 1'b0;
          sq_o.not_before = '0;
          sq_o.fail_valid = 1'b1;
          sq_o.fail_at_una = 1'b1;
          sq_o.fail_status = fail.status;
          sq_o.fail_vendor = fail.vendor_err;
        end
        ordma_hw_pkg::CmdOpQpSilence: if (exists) begin
          write_o = 1'b1;
          sq_o.silence = silence.threshold;
        end
        default: ;
      endcase
    end
  end
endmodule
