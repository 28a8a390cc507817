// SPDX-License-Identifier: BSD-2-Clause
//
// Completer: the tail of a send queue. Completes messages below the oldest unacknowledged PSN in order,
// then reports what froze the QP, fails the message that failed, and flushes both queues of a QP in
// ERR. Works from the order log, so an ACK costs nothing but a PSN and a wake-up, and ACKs merge.
module ordma_complete #(
  parameter int unsigned QUANTUM = 32  // CQEs per visit
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,
  input logic halt_i,

  input logic pend_valid_i,
  input logic [ordma_pkg::QpLog-1:0] pend_qp_i,
  output logic pend_pop_o,
  output logic again_o,
  output logic wake_o,            // the requester may go on with qp_o
  output logic [ordma_pkg::QpLog-1:0] qp_o,

  output logic acq_valid_o,
  input logic gnt_i,
  input ordma_pkg::qp_ctx_t ctx_i,
  output ordma_pkg::qp_rel_t rel_o,
  input logic rel_ready_i,

  output logic xl_valid_o,
  output ordma_pkg::xl_req_t xl_req_o,
  input logic xl_done_i,
  input ordma_pkg::xl_rsp_t xl_rsp_i,
  output logic rd_valid_o,
  output ordma_pkg::rd_req_t rd_req_o,
  input logic rd_ready_i,
  input logic rd_rsp_valid_i,
  input logic [127:0] rd_rsp_data_i,
  input logic rd_rsp_err_i,
  input logic [15:0] eg_enq_i,
  input logic [15:0] eg_out_i,

  output logic post_valid_o,
  output ordma_pkg::cq_post_t post_o,
  input logic post_done_i,
  input logic post_overflow_i,
  output logic ev_valid_o,
  output ordma_pkg::event_t ev_o,
  input logic ev_ready_i,
  output logic cnt_silence_o,
  output logic cnt_error_o,
  output logic cnt_flush_o,
  output logic cnt_rflush_o,
  output logic busy_o
);
  typedef enum logic [4:0] {
    Idle, Acquire, Begin, Tail, Fence, LogRead, LogWait, Success, Advance, Failure, Errored, Freeze,
    Flush, FlushSq, FlushRq, RqeXlate, RqeRead, RqeWait, RqePost, Drained, Release
  } state_e;
  state_e state_q;

  logic [ordma_pkg::QpLog-1:0] qp_q;
  ordma_hw_pkg::qpc_t attr;
  logic [ordma_pkg::AttrW-1:0] attr_q;
  ordma_pkg::qp_ctl_t ctl_q;
  ordma_pkg::qp_sq_t sq_q;
  ordma_pkg::qp_rq_t rq_q;
  logic [23:0] sq_pi_q, rq_pi_q;
  logic [15:0] fence_q;
  logic [5:0] posts_q;
  logic again_q, wake_q;
  ordma_hw_pkg::log_entry_t entry;
  logic [23:0] acked_past, msg_psns, pkts24;
  logic [31:0] pkts;
  logic [63:0] silent, addr_q, wr_id_q;
  logic outstanding, failing_here, in_err, in_sqe, sends_state;
  ordma_hw_pkg::cqe_t cqe;
  logic [7:0] wc_op;
  logic [23:0] fail_sq;

  assign attr = {1024'd0, attr_q};
  assign busy_o = state_q != Idle;
  assign qp_o = qp_q;
  assign outstanding = sq_q.log_acked != sq_q.log_sent;
  assign in_err = ctl_q.state == ordma_hw_pkg::QpStateErr[3:0];
  assign in_sqe = ctl_q.state == ordma_hw_pkg::QpStateSqe[3:0];
  assign sends_state = ctl_q.state == ordma_hw_pkg::QpStateRts[3:0] || ctl_q.state == ordma_hw_pkg::QpStateSqd[3:0];
  assign acked_past = sq_q.una_psn - sq_q.head_last;
  assign failing_here = sq_q.fail_valid && (sq_q.fail_at_una || sq_q.fail_log == sq_q.log_acked);
  assign silent = time_i - sq_q.progress;
  assign entry = rd_rsp_data_i;
  assign pkts = (entry.length + (32'd1 << attr.mtu_log) - 32'd1) >> attr.mtu_log;
  assign pkts24 = pkts[23:0];
  assign fail_sq = sq_q.head_valid ? sq_q.head_sq : sq_q.sq_ci;

  // PSNs of the logged message; a NOP has none.
  always_comb begin
    msg_psns = (entry.length == '0) ? 24'd1 : pkts24;
    if (entry.opcode == ordma_hw_pkg::WqeOpNop) msg_psns = '0;
  end

  always_comb begin
    case (sq_q.head_opcode)
      ordma_hw_pkg::WqeOpWrite, ordma_hw_pkg::WqeOpWriteImm: wc_op = ordma_hw_pkg::WcOpRdmaWrite;
      ordma_hw_pkg::WqeOpRead: wc_op = ordma_hw_pkg::WcOpRdmaRead;
      ordma_hw_pkg::WqeOpCmpSwap: wc_op = ordma_hw_pkg::WcOpCompSwap;
      ordma_hw_pkg::WqeOpFetchAdd: wc_op = ordma_hw_pkg::WcOpFetchAdd;
      default: wc_op = ordma_hw_pkg::WcOpSend;
    endcase
  end

  assign pend_pop_o = state_q == Idle && pend_valid_i && !halt_i;
  assign acq_valid_o = state_q == Acquire;
  always_comb begin
    rel_o = '0;
    if (state_q == Release) begin
      rel_o.valid = 1'b1;
      rel_o.we_ctl = 1'b1;
      rel_o.we_sq = 1'b1;
      rel_o.we_rq = in_err;
      rel_o.qp = qp_q;
      rel_o.ctl = ctl_q;
      rel_o.sq = sq_q;
      rel_o.rq = rq_q;
    end
  end
  assign again_o = state_q == Release && rel_ready_i && again_q;
  assign wake_o = state_q == Release && rel_ready_i && wake_q && sq_q.cur_sq != sq_pi_q;

  always_comb begin
    rd_valid_o = state_q == LogRead || state_q == RqeRead;
    rd_req_o = '0;
    rd_req_o.len = 13'd16;
    rd_req_o.addr = (state_q == LogRead)
        ? attr.log_addr + {36'd0, sq_q.log_acked & ~(24'hff_ffff << attr.log_log), 4'd0} : addr_q;
    xl_valid_o = state_q == RqeXlate;
    xl_req_o = '0;
    xl_req_o.va = {40'd0, rq_q.ci & ~(24'hff_ffff << attr.rq_log)} << attr.rq_stride_log;
    xl_req_o.len = 32'd16;
    xl_req_o.addr = attr.rq_addr;
    xl_req_o.level = attr.rq_level;
    xl_req_o.page_log = attr.rq_page_log;
  end

  always_comb begin
    post_valid_o = 1'b0;
    cqe = '0;
    post_o = '0;
    if (state_q == Success || state_q == Failure || state_q == FlushSq || state_q == RqePost) begin
      post_valid_o = 1'b1;
      cqe.qpn = attr.qpn;
      cqe.opcode = wc_op;
      cqe.wqe_index = sq_q.head_sq[15:0];
      if (state_q == Success && (wc_op == ordma_hw_pkg::WcOpRdmaRead || wc_op == ordma_hw_pkg::WcOpCompSwap
                                 || wc_op == ordma_hw_pkg::WcOpFetchAdd)) cqe.byte_len = sq_q.head_len;
      if (state_q == Failure) begin
        cqe.status = sq_q.fail_status;
        cqe.vendor_err = sq_q.fail_vendor;
        cqe.wqe_index = fail_sq[15:0];
        if (!sq_q.head_valid) cqe.opcode = ordma_hw_pkg::WcOpSend;
      end else if (state_q == FlushSq) begin
        cqe.status = ordma_hw_pkg::WcStatusWrFlushErr;
        cqe.wqe_index = sq_q.sq_ci[15:0];
        cqe.opcode = ordma_hw_pkg::WcOpSend;
      end else if (state_q == RqePost) begin
        cqe.status = ordma_hw_pkg::WcStatusWrFlushErr;
        cqe.wr_id = rq_q.rqe_active ? rq_q.rqe_wr_id : wr_id_q;
        cqe.wqe_index = rq_q.rqe_active ? rq_q.rqe_index : rq_q.ci[15:0];
        cqe.opcode = ordma_hw_pkg::WcOpRecv;
        cqe.is_recv = 1'b1;
      end
      post_o.cqn = (state_q == RqePost) ? attr.rcqn : attr.scqn;
      post_o.special = state_q != Success;
      post_o.cqe = cqe;
    end
  end

  always_comb begin
    ev_valid_o = (state_q == Freeze && sq_q.evt_valid) || (state_q == Errored && !ctl_q.error_told && !sq_q.fail_at_una) || state_q == Drained;
    ev_o = '0;
    ev_o.number = attr.qpn;
    ev_o.psn = sq_q.una_psn;
    ev_o.log_index = sq_q.log_acked;
    if (state_q == Freeze) begin
      ev_o.kind = sq_q.evt_type;
      ev_o.code = sq_q.evt_code;
    end else if (state_q == Errored) begin
      ev_o.kind = ordma_hw_pkg::EventTypeQpError;
      ev_o.code = sq_q.fail_status;
    end else begin
      ev_o.kind = ordma_hw_pkg::EventTypeSqDrained;
    end
  end
  assign cnt_error_o = state_q == Failure && post_done_i;
  assign cnt_flush_o = state_q == FlushSq && post_done_i;
  assign cnt_rflush_o = state_q == RqePost && post_done_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      qp_q <= '0;
      attr_q <= '0;
      ctl_q <= '0;
      sq_q <= '0;
      rq_q <= '0;
      sq_pi_q <= '0;
      rq_pi_q <= '0;
      fence_q <= '0;
      posts_q <= '0;
      again_q <= 1'b0;
      wake_q <= 1'b0;
      addr_q <= '0;
      wr_id_q <= '0;
      cnt_silence_o <= 1'b0;
    end else begin
      cnt_silence_o <= 1'b0;
      case (state_q)
        Idle: if (pend_pop_o) begin
          qp_q <= pend_qp_i;
          posts_q <= '0;
          again_q <= 1'b0;
          wake_q <= 1'b0;
          state_q <= Acquire;
        end
        Acquire: if (gnt_i) begin
          attr_q <= ctx_i.attr;
          ctl_q <= ctx_i.ctl;
          sq_q <= ctx_i.sq;
          rq_q <= ctx_i.rq;
          sq_pi_q <= ctx_i.sq_pi;
          rq_pi_q <= ctx_i.rq_pi;
          state_q <= Begin;
        end
        Begin: begin
          state_q <= Tail;
          if (!ctl_q.valid || ctl_q.state == ordma_hw_pkg::QpStateReset[3:0]
              || ctl_q.state == ordma_hw_pkg::QpStateInit[3:0]) begin
            state_q <= Release;
          end else if (sends_state && !ctl_q.frozen && sq_q.not_before == '0 && sq_q.silence != '0
                       && sq_q.una_psn != sq_q.high_psn && silent >= sq_q.silence) begin
            ctl_q.frozen <= 1'b1;
            sq_q.evt_valid <= 1'b1;
            sq_q.evt_type <= ordma_hw_pkg::EventTypeQpSilence;
            sq_q.evt_code <= '0;
            cnt_silence_o <= 1'b1;
          end
        end
        Tail: begin
          state_q <= Freeze;
          if (posts_q >= QUANTUM[5:0]) begin
            again_q <= 1'b1;
            state_q <= Release;
          end else if (outstanding && !sq_q.head_valid) begin
            fence_q <= eg_enq_i;
            state_q <= Fence;
          end else if (outstanding && acked_past != '0 && !acked_past[23]) begin
            state_q <= sq_q.head_signaled ? Success : Advance;
          end else if (!in_err && !in_sqe && failing_here) begin
            // A failure by PSN blames the message that holds it, or the first that was never sent.
            state_q <= (outstanding || sq_q.sq_ci != sq_pi_q) ? Failure : Errored;
          end
        end
        Fence: if (eg_out_i == fence_q || (fence_q - eg_out_i) > 16'h8000) state_q <= LogRead;
        LogRead: if (rd_ready_i) state_q <= LogWait;
        LogWait: if (rd_rsp_valid_i) begin
          sq_q.head_valid <= 1'b1;
          sq_q.head_signaled <= entry.signaled;
          sq_q.head_opcode <= entry.opcode;
          sq_q.head_last <= entry.first_psn + msg_psns - 24'd1;
          sq_q.head_sq <= entry.sq_index;
          sq_q.head_len <= entry.length;
          state_q <= Tail;
          if (rd_rsp_err_i) begin
            // Memory of the driver that went away takes the QP with it.
            sq_q.head_valid <= 1'b0;
            sq_q.fail_valid <= 1'b1;
            sq_q.fail_log <= sq_q.log_acked;
            sq_q.fail_status <= ordma_hw_pkg::WcStatusFatalErr;
            state_q <= Failure;
          end
        end
        Success: if (post_done_i) begin
          if (post_overflow_i) ctl_q.state <= ordma_hw_pkg::QpStateErr[3:0];
          posts_q <= posts_q + 6'd1;
          state_q <= Advance;
        end
        Advance: begin
          sq_q.log_acked <= sq_q.log_acked + 24'd1;
          sq_q.sq_ci <= sq_q.head_sq + 24'd1;
          sq_q.head_valid <= 1'b0;
          wake_q <= 1'b1;
          state_q <= Tail;
        end
        Failure: if (post_done_i) begin
          sq_q.sq_ci <= fail_sq + 24'd1;
          sq_q.cur_sq <= fail_sq + 24'd1;
          sq_q.cur_pkt <= '0;
          state_q <= Errored;
        end
        // QP_FAIL knows what it did; only an error found here is reported.
        Errored: if (ctl_q.error_told || sq_q.fail_at_una || ev_ready_i) begin
          ctl_q.error_told <= ctl_q.error_told || !sq_q.fail_at_una;
          // An unreliable QP loses its send side alone.
          ctl_q.state <= (attr.type_ == ordma_hw_pkg::QpTypeRc) ? ordma_hw_pkg::QpStateErr[3:0] : ordma_hw_pkg::QpStateSqe[3:0];
          sq_q.fail_valid <= 1'b0;
          sq_q.evt_valid <= 1'b0;
          state_q <= Flush;
        end
        Freeze: if (!sq_q.evt_valid || ev_ready_i) begin
          sq_q.evt_valid <= 1'b0;
          state_q <= Release;
          if (in_err || in_sqe) state_q <= Flush;
          else if (ctl_q.state == ordma_hw_pkg::QpStateSqd[3:0] && !outstanding && !ctl_q.drained) state_q <= Drained;
        end
        // In ERR nothing is outstanding any more: what was sent is flushed like what was not.
        Flush: begin
          ctl_q.frozen <= 1'b0;
          sq_q.log_acked <= sq_q.log_sent;
          sq_q.cur_log <= sq_q.log_sent;
          sq_q.head_valid <= 1'b0;
          sq_q.una_psn <= sq_q.high_psn;
          sq_q.next_psn <= sq_q.high_psn;
          sq_q.fail_valid <= 1'b0;
          sq_q.late_valid <= 1'b0;
          sq_q.rd_count <= '0;
          sq_q.rd_issued <= '0;
          sq_q.rd_psns <= '0;
          if (in_err) rq_q.in_msg <= 1'b0;
          state_q <= Release;
          if (posts_q >= QUANTUM[5:0]) again_q <= 1'b1;
          else if (sq_q.sq_ci != sq_pi_q) state_q <= FlushSq;
          else if (in_err && rq_q.rqe_active) state_q <= RqePost;
          else if (in_err && !attr.has_srq && attr.rq_stride_log != '0 && rq_q.ci != rq_pi_q) state_q <= FlushRq;
        end
        FlushSq: if (post_done_i) begin
          sq_q.sq_ci <= sq_q.sq_ci + 24'd1;
          sq_q.cur_sq <= sq_q.sq_ci + 24'd1;
          sq_q.cur_pkt <= '0;
          posts_q <= posts_q + 6'd1;
          state_q <= Flush;
        end
        FlushRq: state_q <= RqeXlate;
        RqeXlate: if (xl_done_i) begin
          addr_q <= xl_rsp_i.addr;
          wr_id_q <= '0;
          state_q <= (xl_rsp_i.err == ordma_pkg::XlOk) ? RqeRead : RqePost;
        end
        RqeRead: if (rd_ready_i) state_q <= RqeWait;
        RqeWait: if (rd_rsp_valid_i) begin
          if (!rd_rsp_err_i) wr_id_q <= rd_rsp_data_i[63:0];
          state_q <= RqePost;
        end
        RqePost: if (post_done_i) begin
          if (rq_q.rqe_active) rq_q.rqe_active <= 1'b0;
          else rq_q.ci <= rq_q.ci + 24'd1;
          posts_q <= posts_q + 6'd1;
          state_q <= Flush;
        end
        Drained: if (ev_ready_i) begin
          ctl_q.drained <= 1'b1;
          state_q <= Release;
        end
        default: if (rel_ready_i) state_q <= Idle;
      endcase
    end
  end
endmodule
