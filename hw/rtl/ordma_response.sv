// SPDX-License-Identifier: BSD-2-Clause
//
// Requester side of the receive path: ACKs, NAKs and the responses to READs and atomics. What is
// cumulative is applied at once (una_psn) and the completer is woken; a NAK or a gap freezes the QP
// and is reported once the tail is completed. READ data is placed by the scatter list of its WQE.
module ordma_response (
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
  output logic kick_o,
  output logic wake_o,

  // Outstanding READs and atomics.
  output logic op_re_o,
  output logic [ordma_pkg::QpLog+ordma_pkg::RdLog-1:0] op_addr_o,
  input ordma_pkg::rd_op_t op_i,

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
  output logic eg_valid_o,       // the value of an atomic
  output ordma_pkg::eg_beat_t eg_o,
  input logic eg_ready_i,

  output logic [ordma_pkg::NumCounter-1:0] cnt_o,
  output logic [ordma_pkg::LenW-1:0] cnt_bytes_o,
  output logic busy_o
);
  localparam logic [7:0] LocalWrite = ordma_hw_pkg::AccessLocalWrite;
  typedef enum logic [4:0] {
    Idle, Acquire, Check, Ack, Match, OpWait, OpCheck, WqeXlate, WqeRead, WqeWait, WqeCheck, Walk, Segment, Place,
    Value, Placed, NextOp, NextWait, NextTake, Bad, Release, Pop
  } state_e;
  state_e state_q;

  ordma_hw_pkg::qpc_t attr;
  logic [ordma_pkg::AttrW-1:0] attr_q;
  ordma_pkg::qp_ctl_t ctl_q;
  ordma_pkg::qp_sq_t sq_q;
  ordma_pkg::rd_op_t op_q;
  logic more_q, write_q, kick_q, wake_q;
  logic drop, response;
  logic [15:0] drop_counter;

  logic [4:0] code;
  logic [7:0] syndrome;
  logic is_ack, is_atomic, is_nak, is_rnr;
  logic [23:0] una_off, span, up_to, limit, beyond, target, gain, want, gap;
  logic implied, in_window;
  logic [12:0] mtu;
  logic [31:0] done, left_in_op;
  logic is_last, says_last, len_ok;

  logic [511:0] wqe_mem[0:7];
  logic [2:0] fill_q;
  ordma_hw_pkg::wqe_t wqe;
  ordma_hw_pkg::sge_t sge;
  logic [127:0] sge_raw;
  logic [511:0] sge_beat;
  logic [4:0] sge_q, unit;
  logic [31:0] sge_off_q, skip_q, sge_left;
  logic [63:0] addr_q;
  logic [ordma_pkg::LenW-1:0] left_q, seg_q;
  logic [ordma_pkg::RxBufLog+ordma_pkg::BeatLog-1:0] from_q;
  logic [7:0] status_q;
  logic [63:0] value;

  assign attr = {1024'd0, attr_q};
  assign busy_o = state_q != Idle;
  assign qp_o = desc_i.dest_qpn[ordma_pkg::QpLog-1:0];
  assign gid_addr_o = attr.sgid_index[ordma_pkg::GidLog-1:0];
  assign desc_pop_o = state_q == Pop;
  assign acq_valid_o = state_q == Acquire;
  assign mtu = 13'd1 << attr.mtu_log;

  ordma_rx_check u_check (
    .valid_i(state_q == Check), .desc_i, .attr_i(attr), .ctl_i(ctl_q), .gid_i, .local_i(1'b0),
    .drop_o(drop), .counter_o(drop_counter), .response_o(response)
  );

  // ---------------------------------------------------------------- acknowledgement
  assign code = desc_i.opcode[4:0];
  assign is_ack = code == ordma_hw_pkg::RoceOpRcAck[4:0];
  assign is_atomic = code == ordma_hw_pkg::RoceOpRcAtomicAck[4:0];
  assign syndrome = desc_i.ext[223:216];
  assign is_rnr = syndrome[7:5] == 3'd1;
  assign is_nak = syndrome[7:5] != 3'd0;
  assign una_off = desc_i.psn - sq_q.una_psn;
  assign span = sq_q.high_psn - sq_q.una_psn;
  assign in_window = una_off < span;
  // An ACK covers its PSN; a NAK names the first that was not taken. Neither passes a READ or atomic
  // whose response is missing: that is a NAK by implication.
  assign up_to = is_nak ? desc_i.psn : desc_i.psn + 24'd1;
  assign limit = sq_q.rd_first + sq_q.rd_recv;
  assign beyond = up_to - limit;
  assign implied = sq_q.rd_count != '0 && beyond != '0 && !beyond[23];
  assign target = implied ? limit : up_to;
  assign gain = target - sq_q.una_psn;

  // ---------------------------------------------------------------- READ and atomic responses
  assign want = limit;
  assign gap = desc_i.psn - want;
  assign done = {8'd0, sq_q.rd_recv} << attr.mtu_log;
  assign left_in_op = op_q.length - done;
  assign is_last = sq_q.rd_recv + 24'd1 == op_q.psns;
  assign says_last = code == ordma_hw_pkg::RoceOpRcReadRspLast[4:0] || code == ordma_hw_pkg::RoceOpRcReadRspOnly[4:0]
                  || is_atomic;
  assign len_ok = op_q.atomic ? desc_i.pay_len == '0
                : is_last ? {19'd0, desc_i.pay_len} == left_in_op : desc_i.pay_len == mtu;
  assign op_re_o = state_q == Match || state_q == NextOp;
  assign op_addr_o = {qp_o, sq_q.rd_head};

  assign wqe = wqe_mem[0];
  assign unit = sge_q + (op_q.atomic ? 5'd3 : 5'd2);
  always_comb begin
    sge_beat = '0;
    sge_raw = '0;
    if (state_q == Walk || state_q == Segment || state_q == Place || state_q == Value) begin
      sge_beat = wqe_mem[unit[4:2]];
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
  // On the wire big endian, in memory a number of this host.
  assign value = desc_i.ext[191:128];

  always_comb begin
    xl_valid_o = state_q == WqeXlate || (state_q == Segment && left_q != '0 && sge_left != '0);
    xl_req_o = '0;
    if (state_q == WqeXlate) begin
      xl_req_o.va = {40'd0, op_q.sq_index & ~(24'hff_ffff << attr.sq_log)} << attr.sq_stride_log;
      xl_req_o.len = 32'd1 << attr.sq_stride_log;
      xl_req_o.addr = attr.sq_addr;
      xl_req_o.level = attr.sq_level;
      xl_req_o.page_log = attr.sq_page_log;
    end else if (xl_valid_o) begin
      xl_req_o.is_mr = 1'b1;
      xl_req_o.kernel = attr.uctx == ordma_hw_pkg::KernelUctx[15:0];
      xl_req_o.key = sge.lkey;
      xl_req_o.pd = attr.pd;
      xl_req_o.access = LocalWrite;
      xl_req_o.va = sge.addr + {32'd0, sge_off_q};
      xl_req_o.len = sge_left;
    end
    rd_valid_o = state_q == WqeRead;
    rd_req_o = '0;
    rd_req_o.addr = addr_q;
    rd_req_o.len = 13'd1 << attr.sq_stride_log;
    place_valid_o = state_q == Place;
    place_o = '0;
    place_o.from = from_q;
    place_o.addr = addr_q;
    place_o.len = seg_q;
    eg_valid_o = state_q == Value;
    eg_o = '0;
    eg_o.addr = addr_q;
    eg_o.len = seg_q;
    eg_o.kind = ordma_pkg::KindPayload;
    eg_o.last = 1'b1;
    eg_o.data = {448'd0, value >> {sge_off_q[2:0], 3'd0}};
    rel_o = '0;
    if (state_q == Release) begin
      rel_o.valid = 1'b1;
      rel_o.we_ctl = write_q;
      rel_o.we_sq = write_q;
      rel_o.qp = qp_o;
      rel_o.ctl = ctl_q;
      rel_o.sq = sq_q;
    end
  end
  assign kick_o = state_q == Release && rel_ready_i && kick_q;
  assign wake_o = state_q == Release && rel_ready_i && wake_q && more_q;
  assign cnt_bytes_o = desc_i.pay_len;

  always_ff @(posedge clk_i) begin
    if (state_q == WqeWait && rd_rsp_valid_i) wqe_mem[fill_q] <= rd_rsp_data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      attr_q <= '0;
      ctl_q <= '0;
      sq_q <= '0;
      op_q <= '0;
      more_q <= 1'b0;
      write_q <= 1'b0;
      kick_q <= 1'b0;
      wake_q <= 1'b0;
      fill_q <= '0;
      sge_q <= '0;
      sge_off_q <= '0;
      skip_q <= '0;
      addr_q <= '0;
      left_q <= '0;
      seg_q <= '0;
      from_q <= '0;
      status_q <= '0;
      cnt_o <= '0;
    end else begin
      cnt_o <= '0;
      case (state_q)
        Idle: if (desc_valid_i && !halt_i) begin
          write_q <= 1'b0;
          kick_q <= 1'b0;
          wake_q <= 1'b0;
          left_q <= (code == ordma_hw_pkg::RoceOpRcAtomicAck[4:0]) ? 13'd8 : desc_i.pay_len;
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
          more_q <= ctx_i.sq.cur_sq != ctx_i.sq_pi || ctx_i.sq.cur_log != ctx_i.sq.log_sent;
          state_q <= Check;
        end
        Check: begin
          if (drop) begin
            cnt_o[drop_counter[5:0]] <= 1'b1;
            state_q <= Release;
          end else begin
            cnt_o[ordma_hw_pkg::CounterRxPackets[5:0]] <= 1'b1;
            // Outside what is outstanding: old news, or never sent.
            state_q <= !in_window || !response ? Release : is_ack ? Ack : Match;
          end
        end
        Ack: begin
          write_q <= 1'b1;
          kick_q <= 1'b1;
          wake_q <= 1'b1;
          if (gain != '0 && !gain[23]) begin
            sq_q.una_psn <= target;
            sq_q.progress <= time_i;
          end
          state_q <= Release;
          if (implied) begin
            cnt_o[ordma_hw_pkg::CounterImpliedNakSeqErr[5:0]] <= 1'b1;
            if (!ctl_q.frozen) begin
              ctl_q.frozen <= 1'b1;
              sq_q.evt_valid <= 1'b1;
              sq_q.evt_type <= ordma_hw_pkg::EventTypeQpImpliedNak;
              sq_q.evt_code <= '0;
            end
          end else if (is_nak) begin
            if (!ctl_q.frozen) begin
              ctl_q.frozen <= 1'b1;
              sq_q.evt_valid <= 1'b1;
              sq_q.evt_type <= is_rnr ? ordma_hw_pkg::EventTypeQpRnr : ordma_hw_pkg::EventTypeQpNak;
              sq_q.evt_code <= syndrome;
            end else if (!is_rnr && syndrome != ordma_hw_pkg::AethSyndromeNakPsn) begin
              // The peer is in error and will not say so again.
              sq_q.late_valid <= 1'b1;
              sq_q.late_syn <= syndrome;
              sq_q.late_psn <= desc_i.psn;
            end
            if (is_rnr) cnt_o[ordma_hw_pkg::CounterRnrNakRetryErr[5:0]] <= 1'b1;
            else if (syndrome == ordma_hw_pkg::AethSyndromeNakPsn) cnt_o[ordma_hw_pkg::CounterPacketSeqErr[5:0]] <= 1'b1;
            else if (syndrome == ordma_hw_pkg::AethSyndromeNakInvReq) cnt_o[ordma_hw_pkg::CounterReqRemoteInvalidRequest[5:0]] <= 1'b1;
            else if (syndrome == ordma_hw_pkg::AethSyndromeNakAccess) cnt_o[ordma_hw_pkg::CounterReqRemoteAccessErrors[5:0]] <= 1'b1;
          end
        end
        // The response that continues the oldest READ or atomic; it also acknowledges all before it.
        Match: begin
          state_q <= OpWait;
          if (sq_q.rd_count == '0 || gap[23]) begin
            state_q <= Release;
          end else begin
            write_q <= 1'b1;
            kick_q <= 1'b1;
            wake_q <= 1'b1;
            // want is at or above una: what lies between was acknowledged by this response.
            if (want != sq_q.una_psn && !(want - sq_q.una_psn > 24'h7f_ffff)) begin
              sq_q.una_psn <= want;
              sq_q.progress <= time_i;
            end
            if (gap != '0) begin
              state_q <= Release;
              if (!ctl_q.frozen) begin
                cnt_o[ordma_hw_pkg::CounterImpliedNakSeqErr[5:0]] <= 1'b1;
                ctl_q.frozen <= 1'b1;
                sq_q.evt_valid <= 1'b1;
                sq_q.evt_type <= ordma_hw_pkg::EventTypeQpImpliedNak;
                sq_q.evt_code <= '0;
              end
            end
          end
        end
        OpWait: begin
          op_q <= op_i;
          state_q <= OpCheck;
        end
        OpCheck: begin
          status_q <= ordma_hw_pkg::WcStatusBadRespErr;
          state_q <= WqeXlate;
          if (op_q.atomic != is_atomic || is_last != says_last || !len_ok) state_q <= Bad;
          else if (left_q == '0) state_q <= Placed;
        end
        WqeXlate: if (xl_done_i) begin
          addr_q <= xl_rsp_i.addr;
          fill_q <= '0;
          status_q <= ordma_hw_pkg::WcStatusLocQpOpErr;
          state_q <= (xl_rsp_i.err != ordma_pkg::XlOk || {19'd0, xl_rsp_i.len} != 32'd1 << attr.sq_stride_log) ? Bad : WqeRead;
        end
        WqeRead: if (rd_ready_i) state_q <= WqeWait;
        WqeWait: if (rd_rsp_valid_i) begin
          fill_q <= fill_q + 1'b1;
          if (rd_rsp_last_i) state_q <= rd_rsp_err_i ? Bad : WqeCheck;
        end
        WqeCheck: begin
          sge_q <= '0;
          skip_q <= op_q.atomic ? 32'd0 : done;
          state_q <= (wqe.num_sge > {3'd0, 5'd28} || wqe.length != op_q.length) ? Bad : Walk;
        end
        // To the SGE that takes the first byte of this packet.
        Walk: begin
          if ({3'd0, sge_q} == wqe.num_sge) begin
            state_q <= Bad;
          end else if (skip_q >= sge.length) begin
            skip_q <= skip_q - sge.length;
            sge_q <= sge_q + 1'b1;
          end else begin
            sge_off_q <= skip_q;
            state_q <= Segment;
          end
        end
        Segment: begin
          if (left_q == '0) begin
            state_q <= Placed;
          end else if ({3'd0, sge_q} == wqe.num_sge) begin
            state_q <= Bad;
          end else if (sge_left == '0) begin
            sge_q <= sge_q + 1'b1;
            sge_off_q <= '0;
          end else if (xl_done_i) begin
            addr_q <= xl_rsp_i.addr;
            seg_q <= (xl_rsp_i.len < left_q) ? xl_rsp_i.len : left_q;
            state_q <= op_q.atomic ? Value : Place;
            if (xl_rsp_i.err != ordma_pkg::XlOk) begin
              status_q <= ordma_hw_pkg::WcStatusLocProtErr;
              state_q <= Bad;
            end
          end
        end
        Place: if (place_done_i) begin
          from_q <= from_q + {2'd0, seg_q};
          left_q <= left_q - seg_q;
          sge_off_q <= sge_off_q + {19'd0, seg_q};
          state_q <= Segment;
        end
        Value: if (eg_ready_i) begin
          left_q <= left_q - seg_q;
          sge_off_q <= sge_off_q + {19'd0, seg_q};
          state_q <= Segment;
        end
        // All of the packet is in the egress: now it counts.
        Placed: begin
          sq_q.una_psn <= desc_i.psn + 24'd1;
          sq_q.progress <= time_i;
          sq_q.rd_recv <= sq_q.rd_recv + 24'd1;
          if (sq_q.rd_psns != '0) sq_q.rd_psns <= sq_q.rd_psns - 24'd1;
          cnt_o[ordma_hw_pkg::CounterRxBytes[5:0]] <= desc_i.pay_len != '0;
          state_q <= Release;
          if (is_last) begin
            sq_q.rd_recv <= '0;
            sq_q.rd_head <= sq_q.rd_head + 1'b1;
            sq_q.rd_count <= sq_q.rd_count - 1'b1;
            if (sq_q.rd_issued != '0) sq_q.rd_issued <= sq_q.rd_issued - 1'b1;
            if (sq_q.rd_count != {{ordma_pkg::RdLog{1'b0}}, 1'b1}) state_q <= NextOp;
          end
        end
        NextOp: state_q <= NextWait;
        NextWait: begin
          op_q <= op_i;
          state_q <= NextTake;
        end
        NextTake: begin
          sq_q.rd_first <= op_q.first_psn;
          state_q <= Release;
        end
        // The message fails like one with a local fault: everything before it has completed.
        Bad: begin
          sq_q.fail_valid <= 1'b1;
          sq_q.fail_at_una <= 1'b0;
          sq_q.fail_log <= op_q.log_index;
          sq_q.fail_status <= status_q;
          sq_q.fail_vendor <= '0;
          state_q <= Release;
        end
        Release: if (rel_ready_i) state_q <= Pop;
        default: state_q <= Idle;
      endcase
    end
  end
endmodule
