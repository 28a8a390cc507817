// SPDX-License-Identifier: BSD-2-Clause
//
// Receive engine: takes one packet at a time, in order of arrival, under the lock of its QP. Requests
// are checked, placed and answered; acknowledgements move una_psn and wake the completer. Payload is in
// the egress before its CQE is posted, and the CQE before the ACK. Nothing here waits for another QP.
module ordma_responder (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,
  input logic halt_i,

  input logic desc_valid_i,
  input ordma_pkg::rx_desc_t desc_i,
  output logic desc_pop_o,
  output logic [ordma_pkg::GidLog-1:0] gid_addr_o,
  input ordma_pkg::gid_t gid_i,

  output logic acq_valid_o,
  output logic [ordma_pkg::QpLog-1:0] qp_o,
  input logic gnt_i,
  input ordma_pkg::qp_ctx_t ctx_i,
  output ordma_pkg::qp_rel_t rel_o,
  input logic rel_ready_i,
  output logic kick_o,            // completer: the tail moved or the QP is in error
  output logic wake_o,            // requester: the window opened

  output logic xl_valid_o,
  output ordma_pkg::xl_req_t xl_req_o,
  input logic xl_done_i,
  input ordma_pkg::xl_rsp_t xl_rsp_i,
  output logic rd_valid_o,
  output ordma_pkg::rd_req_t rd_req_o,
  input logic rd_ready_i,
  input logic rd_rsp_valid_i,
  input logic [511:0] rd_rsp_data_i,
  input logic rd_rsp_last_i,
  input logic rd_rsp_err_i,

  output logic place_valid_o,
  output ordma_pkg::place_t place_o,
  input logic place_done_i,
  output logic post_valid_o,
  output ordma_pkg::cq_post_t post_o,
  input logic post_done_i,
  input logic post_overflow_i,
  output logic ev_valid_o,
  output ordma_pkg::event_t ev_o,
  input logic ev_ready_i,
  output logic ack_push_o,
  output ordma_pkg::tx_desc_t ack_o,
  input logic ack_full_i,

  output logic [ordma_pkg::NumCounter-1:0] cnt_o,
  output logic [ordma_pkg::LenW-1:0] cnt_bytes_o,
  output logic busy_o
);
  typedef enum logic [4:0] {
    Idle, Acquire, Check, Established, Ack, Psn, Request, RqeXlate, RqeRead, RqeWait, RqeCheck, RqeSum,
    Segment, Place, Finish, Post, Answer, Report, Release, Pop
  } state_e;
  state_e state_q;

  ordma_hw_pkg::qpc_t attr;
  logic [ordma_pkg::AttrW-1:0] attr_q;
  ordma_pkg::qp_ctl_t ctl_q;
  ordma_pkg::qp_sq_t sq_q;
  ordma_pkg::qp_rq_t rq_q;
  logic [23:0] rq_pi_q;
  logic more_q;                   // the requester has something to send
  logic drop, response;
  logic [15:0] drop_counter;
  logic we_ctl_q, we_sq_q, we_rq_q, kick_q, wake_q;

  // Decode of the opcode.
  logic [4:0] op;
  logic is_first, is_middle, is_last, is_only, is_send, is_write, has_imm, has_inv, begins, ends, needs_rqe;
  ordma_hw_pkg::reth_t reth;
  logic [31:0] imm, imm_raw;
  logic [7:0] syndrome;
  logic [12:0] mtu;
  logic [23:0] psn_diff, una_off, span;
  logic seq_bad, len_bad;

  // Receive WQE.
  logic [511:0] rqe_mem[0:7];
  logic [2:0] fill_q;
  ordma_hw_pkg::rqe_t rqe;
  ordma_hw_pkg::sge_t sge;
  logic [127:0] sge_raw;
  logic [511:0] sge_beat;
  logic [4:0] sge_q, fill_sge_q, unit;
  logic [31:0] sge_off_q, skip_q, sge_left;
  logic [32:0] cap_q;
  logic [63:0] addr_q;
  logic [5:0] max_sge;
  logic skipping_q;

  // What is left to place of this packet.
  logic [ordma_pkg::LenW-1:0] left_q, seg_q;
  logic [ordma_pkg::RxBufLog+ordma_pkg::BeatLog-1:0] from_q;

  // Verdict.
  logic answer_q, report_q, fatal_q;
  logic [7:0] syn_q, status_q, ev_kind_q, ev_code_q;
  logic [23:0] ack_psn_q;
  ordma_hw_pkg::cqe_t cqe;

  assign attr = {1024'd0, attr_q};
  assign busy_o = state_q != Idle;
  assign qp_o = desc_i.dest_qpn[ordma_pkg::QpLog-1:0];
  assign gid_addr_o = attr.sgid_index[ordma_pkg::GidLog-1:0];
  assign desc_pop_o = state_q == Pop;
  assign acq_valid_o = state_q == Acquire;

  ordma_rx_check u_check (
    .valid_i(state_q == Check), .desc_i, .attr_i(attr), .ctl_i(ctl_q), .gid_i,
    .drop_o(drop), .counter_o(drop_counter), .response_o(response)
  );

  assign op = desc_i.opcode[4:0];
  assign is_first = op == 5'h00 || op == 5'h06;
  assign is_middle = op == 5'h01 || op == 5'h07;
  assign is_last = op == 5'h02 || op == 5'h03 || op == 5'h08 || op == 5'h09 || op == 5'h16;
  assign is_only = op == 5'h04 || op == 5'h05 || op == 5'h0a || op == 5'h0b || op == 5'h17;
  assign is_write = op >= 5'h06 && op <= 5'h0b;
  assign is_send = op <= 5'h05 || op == 5'h16 || op == 5'h17;
  assign has_imm = op == 5'h03 || op == 5'h05 || op == 5'h09 || op == 5'h0b;
  assign has_inv = op == 5'h16 || op == 5'h17;
  assign begins = is_first || is_only;
  assign ends = is_last || is_only;
  assign needs_rqe = is_send || (is_write && ends && has_imm);
  assign reth = desc_i.ext[223:96];
  assign imm_raw = (op == 5'h0b) ? desc_i.ext[95:64] : desc_i.ext[223:192];
  // Raw bytes: the first on the wire is the lowest in memory. An rkey is a number.
  assign imm = has_inv ? imm_raw : {imm_raw[7:0], imm_raw[15:8], imm_raw[23:16], imm_raw[31:24]};
  assign syndrome = desc_i.ext[223:216];
  assign mtu = 13'd1 << attr.mtu_log;
  assign psn_diff = desc_i.psn - rq_q.epsn;
  assign una_off = desc_i.psn - sq_q.una_psn;
  assign span = sq_q.high_psn - sq_q.una_psn;

  // Order of the packets of a message, and their lengths.
  always_comb begin
    seq_bad = !(is_send || is_write) || has_inv || (rq_q.in_msg ? begins || is_write != rq_q.is_write : !begins);
    len_bad = 1'b0;
    if (is_first || is_middle) len_bad = desc_i.pay_len != mtu;
    else len_bad = desc_i.pay_len > mtu || (is_last && desc_i.pay_len == '0);
    if (is_write) begin
      if (is_only && reth.dma_len != {19'd0, desc_i.pay_len}) len_bad = 1'b1;
      if (is_first && reth.dma_len <= {19'd0, mtu}) len_bad = 1'b1;
      if (is_middle && rq_q.left <= {19'd0, mtu}) len_bad = 1'b1;
      if (is_last && rq_q.left != {19'd0, desc_i.pay_len}) len_bad = 1'b1;
    end
  end

  // ---------------------------------------------------------------- receive WQE
  assign rqe = rqe_mem[0][127:0];
  assign unit = sge_q + 5'd1;
  assign max_sge = (6'd1 << (attr.rq_stride_log - 4'd4)) - 6'd1;
  always_comb begin
    sge_beat = '0;
    sge_raw = '0;
    if (state_q == RqeSum || state_q == Segment || state_q == Place) begin
      sge_beat = rqe_mem[unit[4:2]];
      case (unit[1:0])
        2'd0: sge_raw = sge_beat[127:0];
        2'd1: sge_raw = sge_beat[255:128];
        2'd2: sge_raw = sge_beat[383:256];
        default: sge_raw = sge_beat[511:384];
      endcase
    end
  end
  assign sge = sge_raw;
  assign sge_left = sge.length - sge_off_q;

  always_comb begin
    xl_valid_o = state_q == RqeXlate || (state_q == Segment && left_q != '0 && (is_write || sge_left != '0));
    xl_req_o = '0;
    if (state_q == RqeXlate) begin
      xl_req_o.va = {40'd0, rq_q.ci & ~(24'hff_ffff << attr.rq_log)} << attr.rq_stride_log;
      xl_req_o.len = 32'd1 << attr.rq_stride_log;
      xl_req_o.addr = attr.rq_addr;
      xl_req_o.level = attr.rq_level;
      xl_req_o.page_log = attr.rq_page_log;
    end else if (xl_valid_o) begin
      xl_req_o.is_mr = 1'b1;
      xl_req_o.pd = attr.pd;
      if (is_write) begin
        // The whole rest of the message is checked, so a WRITE too long fails in its first packet.
        xl_req_o.key = rq_q.rkey;
        xl_req_o.access = ordma_hw_pkg::AccessRemoteWrite;
        xl_req_o.va = rq_q.va;
        xl_req_o.len = rq_q.left;
      end else begin
        xl_req_o.kernel = attr.uctx == ordma_hw_pkg::KernelUctx[15:0];
        xl_req_o.key = sge.lkey;
        xl_req_o.access = ordma_hw_pkg::AccessLocalWrite;
        xl_req_o.va = sge.addr + {32'd0, sge_off_q};
        xl_req_o.len = sge_left;
      end
    end
    rd_valid_o = state_q == RqeRead;
    rd_req_o = '0;
    rd_req_o.addr = addr_q;
    rd_req_o.len = 13'd1 << attr.rq_stride_log;
    place_valid_o = state_q == Place;
    place_o = '0;
    place_o.from = from_q;
    place_o.addr = addr_q;
    place_o.len = seg_q;
  end

  // ---------------------------------------------------------------- what goes out
  always_comb begin
    cqe = '0;
    post_o = '0;
    post_valid_o = state_q == Post;
    if (state_q == Post) begin
      cqe.wr_id = rqe.wr_id;
      cqe.qpn = attr.qpn;
      cqe.opcode = ordma_hw_pkg::WcOpRecv;
      cqe.wqe_index = rq_q.ci[15:0];
      cqe.status = status_q;
      cqe.is_recv = 1'b1;
      if (status_q == ordma_hw_pkg::WcStatusSuccess) begin
        if (is_write) cqe.opcode = ordma_hw_pkg::WcOpRecvRdmaWithImm;
        cqe.sl = {5'd0, desc_i.tclass[7:5]};
        cqe.byte_len = rq_q.placed;
        cqe.imm = (has_imm || has_inv) ? imm : 32'd0;
        cqe.has_imm = has_imm;
        cqe.has_inv = has_inv;
        cqe.solicited = desc_i.se;
      end
      post_o.cqn = attr.rcqn;
      post_o.special = desc_i.se || status_q != ordma_hw_pkg::WcStatusSuccess;
      post_o.cqe = cqe;
    end
    ev_valid_o = state_q == Report || state_q == Established;
    ev_o = '0;
    ev_o.kind = (state_q == Report) ? ev_kind_q : ordma_hw_pkg::EventTypeQpAsync;
    ev_o.code = (state_q == Report) ? ev_code_q : ordma_hw_pkg::AsyncCodeCommEst;
    ev_o.number = attr.qpn;
    ev_o.psn = sq_q.una_psn;
    ev_o.log_index = sq_q.log_acked;
    ack_push_o = state_q == Answer && !ack_full_i;
    ack_o = '0;
    if (state_q == Answer) begin
      ack_o.opcode = ordma_hw_pkg::RoceOpRcAck;
      ack_o.psn = ack_psn_q;
      ack_o.dest_qpn = attr.dest_qpn;
      ack_o.gid = attr.sgid_index[ordma_pkg::GidLog-1:0];
      ack_o.dmac = attr.dmac;
      ack_o.dgid = attr.dgid;
      ack_o.hop_limit = attr.hop_limit;
      ack_o.tclass = attr.tclass;
      ack_o.flow_label = attr.flow_label;
      ack_o.sport = attr.sport;
      ack_o.ext_len = 5'd4;
      ack_o.ext = {syn_q, rq_q.msn, 192'd0};
    end
    rel_o = '0;
    if (state_q == Release) begin
      rel_o.valid = 1'b1;
      rel_o.we_ctl = we_ctl_q;
      rel_o.we_sq = we_sq_q;
      rel_o.we_rq = we_rq_q;
      rel_o.qp = qp_o;
      rel_o.ctl = ctl_q;
      rel_o.sq = sq_q;
      rel_o.rq = rq_q;
    end
  end
  assign kick_o = state_q == Release && rel_ready_i && kick_q;
  assign wake_o = state_q == Release && rel_ready_i && wake_q && more_q;
  assign cnt_bytes_o = desc_i.pay_len;

  always_ff @(posedge clk_i) begin
    if (state_q == RqeWait && rd_rsp_valid_i) rqe_mem[fill_q] <= rd_rsp_data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      attr_q <= '0;
      ctl_q <= '0;
      sq_q <= '0;
      rq_q <= '0;
      rq_pi_q <= '0;
      more_q <= 1'b0;
      we_ctl_q <= 1'b0;
      we_sq_q <= 1'b0;
      we_rq_q <= 1'b0;
      kick_q <= 1'b0;
      wake_q <= 1'b0;
      fill_q <= '0;
      sge_q <= '0;
      fill_sge_q <= '0;
      sge_off_q <= '0;
      skip_q <= '0;
      cap_q <= '0;
      addr_q <= '0;
      skipping_q <= 1'b0;
      left_q <= '0;
      seg_q <= '0;
      from_q <= '0;
      answer_q <= 1'b0;
      report_q <= 1'b0;
      fatal_q <= 1'b0;
      syn_q <= '0;
      status_q <= '0;
      ev_kind_q <= '0;
      ev_code_q <= '0;
      ack_psn_q <= '0;
      cnt_o <= '0;
    end else begin
      cnt_o <= '0;
      case (state_q)
        Idle: if (desc_valid_i && !halt_i) begin
          we_ctl_q <= 1'b0;
          we_sq_q <= 1'b0;
          we_rq_q <= 1'b0;
          kick_q <= 1'b0;
          wake_q <= 1'b0;
          answer_q <= 1'b0;
              report_q <= 1'b0;
          fatal_q <= 1'b0;
          status_q <= ordma_hw_pkg::WcStatusSuccess;
          syn_q <= ordma_hw_pkg::AethSyndromeAck;
          ack_psn_q <= desc_i.psn;
          left_q <= desc_i.pay_len;
          from_q <= {desc_i.beat, 6'd0} + {8'd0, desc_i.pay_off};
          state_q <= Acquire;
          if (desc_i.dest_qpn[13:ordma_pkg::QpLog] != '0) begin
            cnt_o[ordma_hw_pkg::CounterDropNoQp[5:0]] <= 1'b1;
            state_q <= Pop;
          end
        end
        Acquire: if (gnt_i) begin
          attr_q <= ctx_i.attr;
          ctl_q <= ctx_i.ctl;
          sq_q <= ctx_i.sq;
          rq_q <= ctx_i.rq;
          rq_pi_q <= ctx_i.rq_pi;
          more_q <= ctx_i.sq.cur_sq != ctx_i.sq_pi || ctx_i.sq.cur_log != ctx_i.sq.log_sent;
          state_q <= Check;
        end
        Check: begin
          if (drop) begin
            cnt_o[drop_counter[5:0]] <= 1'b1;
            state_q <= Release;
          end else begin
            cnt_o[ordma_hw_pkg::CounterRxPackets[5:0]] <= 1'b1;
            state_q <= response ? Ack : Psn;
            if (ctl_q.state == ordma_hw_pkg::QpStateRtr[3:0] && !ctl_q.est_told) state_q <= Established;
          end
        end
        Established: if (ev_ready_i) begin
          ctl_q.est_told <= 1'b1;
          we_ctl_q <= 1'b1;
          state_q <= Psn;
        end
        // A PSN outside what is outstanding is old news or was never sent.
        Ack: begin
          state_q <= Release;
          if (op == ordma_hw_pkg::RoceOpRcAck[4:0] && una_off < span) begin
            we_sq_q <= 1'b1;
            we_ctl_q <= 1'b1;
            kick_q <= 1'b1;
            wake_q <= !ctl_q.frozen;
            if (syndrome[7:5] == 3'd0) begin
              sq_q.una_psn <= desc_i.psn + 24'd1;
              sq_q.progress <= time_i;
            end else begin
              sq_q.una_psn <= desc_i.psn;
              if (una_off != '0) sq_q.progress <= time_i;
              if (!ctl_q.frozen) begin
                ctl_q.frozen <= 1'b1;
                sq_q.evt_valid <= 1'b1;
                sq_q.evt_type <= (syndrome[7:5] == 3'd1) ? ordma_hw_pkg::EventTypeQpRnr : ordma_hw_pkg::EventTypeQpNak;
                sq_q.evt_code <= syndrome;
              end
              if (syndrome[7:5] == 3'd1) cnt_o[ordma_hw_pkg::CounterRnrNakRetryErr[5:0]] <= 1'b1;
              else if (syndrome == ordma_hw_pkg::AethSyndromeNakPsn) cnt_o[ordma_hw_pkg::CounterPacketSeqErr[5:0]] <= 1'b1;
              else if (syndrome == ordma_hw_pkg::AethSyndromeNakInvReq) cnt_o[ordma_hw_pkg::CounterReqRemoteInvalidRequest[5:0]] <= 1'b1;
              else if (syndrome == ordma_hw_pkg::AethSyndromeNakAccess) cnt_o[ordma_hw_pkg::CounterReqRemoteAccessErrors[5:0]] <= 1'b1;
            end
          end
        end
        Psn: begin
          state_q <= Request;
          if (psn_diff[23]) begin
            // Seen before: say again how far we are.
            cnt_o[ordma_hw_pkg::CounterDuplicateRequest[5:0]] <= 1'b1;
            ack_psn_q <= rq_q.epsn - 24'd1;
            state_q <= Answer;
          end else if (psn_diff != '0) begin
            cnt_o[ordma_hw_pkg::CounterOutOfSequence[5:0]] <= 1'b1;
            ack_psn_q <= rq_q.epsn;
            syn_q <= ordma_hw_pkg::AethSyndromeNakPsn;
            rq_q.nak_sent <= 1'b1;
            we_rq_q <= 1'b1;
            state_q <= rq_q.nak_sent ? Release : Answer;
          end
        end
        // The expected packet.
        Request: begin
          rq_q.nak_sent <= 1'b0;
          we_rq_q <= 1'b1;
          sge_q <= '0;
          cap_q <= '0;
          skip_q <= rq_q.placed;
          skipping_q <= 1'b1;
          if (begins) begin
            rq_q.placed <= '0;
            skip_q <= '0;
            rq_q.is_write <= is_write;
            rq_q.va <= reth.va;
            rq_q.rkey <= reth.rkey;
            rq_q.left <= is_write ? reth.dma_len : 32'd0;
          end
          state_q <= needs_rqe ? RqeXlate : Segment;
          if (seq_bad || len_bad || (is_write && (attr.access & ordma_hw_pkg::AccessRemoteWrite) == '0)) begin
            syn_q <= ordma_hw_pkg::AethSyndromeNakInvReq;
            ev_kind_q <= ordma_hw_pkg::EventTypeQpAsync;
            ev_code_q <= ordma_hw_pkg::AsyncCodeReqErr;
            fatal_q <= 1'b1;
            state_q <= Finish;
          end else if (needs_rqe && rq_q.ci == rq_pi_q) begin
            // Not ready: nothing of this packet has happened. What follows it is out of order on purpose.
            cnt_o[ordma_hw_pkg::CounterOutOfBuffer[5:0]] <= 1'b1;
            syn_q <= ordma_hw_pkg::AethSyndromeRnr | {3'd0, attr.min_rnr_timer};
            rq_q <= rq_q;
            rq_q.nak_sent <= 1'b1;
            state_q <= Answer;
          end
        end
        RqeXlate: if (xl_done_i) begin
          addr_q <= xl_rsp_i.addr;
          fill_q <= '0;
          state_q <= RqeRead;
          if (xl_rsp_i.err != ordma_pkg::XlOk || {19'd0, xl_rsp_i.len} != 32'd1 << attr.rq_stride_log) begin
            status_q <= ordma_hw_pkg::WcStatusLocQpOpErr;
            syn_q <= ordma_hw_pkg::AethSyndromeNakOp;
            state_q <= Finish;
          end
        end
        RqeRead: if (rd_ready_i) state_q <= RqeWait;
        RqeWait: if (rd_rsp_valid_i) begin
          fill_q <= fill_q + 1'b1;
          if (rd_rsp_last_i) begin
            state_q <= RqeCheck;
            if (rd_rsp_err_i) begin
              status_q <= ordma_hw_pkg::WcStatusLocQpOpErr;
              syn_q <= ordma_hw_pkg::AethSyndromeNakOp;
              state_q <= Finish;
            end
          end
        end
        RqeCheck: begin
          state_q <= is_write ? Segment : RqeSum;
          if (rqe.index != rq_q.ci[15:0] || {1'b0, rqe.num_sge} > {3'd0, max_sge}) begin
            status_q <= ordma_hw_pkg::WcStatusLocQpOpErr;
            syn_q <= ordma_hw_pkg::AethSyndromeNakOp;
            state_q <= Finish;
          end
        end
        // Find where this packet goes, and that all of it fits, before a byte is placed.
        RqeSum: begin
          if ({3'd0, sge_q} == rqe.num_sge) begin
            state_q <= Segment;
            sge_q <= fill_sge_q;
            if ({1'b0, rq_q.placed} + {20'd0, desc_i.pay_len} > cap_q) begin
              status_q <= ordma_hw_pkg::WcStatusLocLenErr;
              syn_q <= ordma_hw_pkg::AethSyndromeNakInvReq;
              cnt_o[ordma_hw_pkg::CounterRespLocalLengthError[5:0]] <= 1'b1;
              state_q <= Finish;
            end else if (desc_i.pay_len == '0) begin
              state_q <= Finish;
            end
          end else begin
            sge_q <= sge_q + 1'b1;
            cap_q <= cap_q + {1'b0, sge.length};
            if (skipping_q) begin
              if (skip_q >= sge.length) begin
                skip_q <= skip_q - sge.length;
              end else begin
                skipping_q <= 1'b0;
                fill_sge_q <= sge_q;
                sge_off_q <= skip_q;
              end
            end
          end
        end
        Segment: begin
          if (left_q == '0) begin
            state_q <= Finish;
          end else if (is_send && sge_left == '0) begin
            sge_q <= sge_q + 1'b1;
            sge_off_q <= '0;
          end else if (xl_done_i) begin
            addr_q <= xl_rsp_i.addr;
            seg_q <= (xl_rsp_i.len < left_q) ? xl_rsp_i.len : left_q;
            state_q <= Place;
            if (xl_rsp_i.err != ordma_pkg::XlOk) begin
              state_q <= Finish;
              if (is_write) begin
                syn_q <= ordma_hw_pkg::AethSyndromeNakAccess;
                ev_kind_q <= ordma_hw_pkg::EventTypeQpAsync;
                ev_code_q <= ordma_hw_pkg::AsyncCodeAccessErr;
                cnt_o[ordma_hw_pkg::CounterRespRemoteAccessErrors[5:0]] <= 1'b1;
                fatal_q <= 1'b1;
              end else begin
                syn_q <= ordma_hw_pkg::AethSyndromeNakOp;
                status_q <= ordma_hw_pkg::WcStatusLocProtErr;
              end
            end
          end
        end
        Place: if (place_done_i) begin
          from_q <= from_q + {2'd0, seg_q};
          left_q <= left_q - seg_q;
          sge_off_q <= sge_off_q + {19'd0, seg_q};
          if (is_write) begin
            rq_q.va <= rq_q.va + {51'd0, seg_q};
            rq_q.left <= rq_q.left - {19'd0, seg_q};
          end
          state_q <= Segment;
        end
        // Placed, or failed.
        Finish: begin
          state_q <= Answer;
          we_ctl_q <= 1'b1;
          if (fatal_q) begin
            // The peer's fault: no receive WQE is to blame.
            ctl_q.state <= ordma_hw_pkg::QpStateErr[3:0];
            kick_q <= 1'b1;
            answer_q <= 1'b1;
            report_q <= !ctl_q.async_told;
            ctl_q.async_told <= 1'b1;
          end else if (status_q != ordma_hw_pkg::WcStatusSuccess) begin
            ctl_q.state <= ordma_hw_pkg::QpStateErr[3:0];
            kick_q <= 1'b1;
            answer_q <= 1'b1;
            ev_kind_q <= ordma_hw_pkg::EventTypeQpError;
            ev_code_q <= status_q;
            report_q <= !ctl_q.error_told;
            ctl_q.error_told <= 1'b1;
            cnt_o[ordma_hw_pkg::CounterRespCqeError[5:0]] <= 1'b1;
            state_q <= Post;
          end else begin
            rq_q.epsn <= rq_q.epsn + 24'd1;
            rq_q.placed <= rq_q.placed + {19'd0, desc_i.pay_len};
            rq_q.in_msg <= !ends;
            if (ends) rq_q.msn <= rq_q.msn + 24'd1;
            answer_q <= desc_i.ack_req;
            cnt_o[ordma_hw_pkg::CounterRxBytes[5:0]] <= desc_i.pay_len != '0;
            if (is_write && begins) cnt_o[ordma_hw_pkg::CounterRxWriteRequests[5:0]] <= 1'b1;
            state_q <= (ends && needs_rqe) ? Post : (desc_i.ack_req ? Answer : Release);
          end
        end
        Post: if (post_done_i) begin
          rq_q.ci <= rq_q.ci + 24'd1;
          if (post_overflow_i) begin
            ctl_q.state <= ordma_hw_pkg::QpStateErr[3:0];
            kick_q <= 1'b1;
          end
          state_q <= answer_q ? Answer : Release;
        end
        Answer: if (!ack_full_i) state_q <= report_q ? Report : Release;
        Report: if (ev_ready_i) state_q <= Release;
        Release: if (rel_ready_i) state_q <= Pop;
        default: state_q <= Idle;
      endcase
    end
  end
endmodule
