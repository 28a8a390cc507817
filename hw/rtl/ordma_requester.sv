// SPDX-License-Identifier: BSD-2-Clause
//
// Requester: serves one QP per visit. Fetches the WQE under the cursor, logs a message when it is first
// sent, cuts it into packets, translates their payload into pieces for the gather unit, and leaves
// after a quantum of packets so that other QPs get their turn.
// The cursor is (log index, PSN). Behind it everything was sent at least once; when it is not at the
// newest message (a rewind, or the quantum ended inside a message) the log entry says which WQE it is,
// and the WQE must still be the one that was logged.
module ordma_requester #(
  parameter int unsigned QUANTUM = 16,  // packets per visit
  parameter int unsigned ACK_EVERY_LOG = 5,  // an ACK is asked for at least every 32 PSNs
  parameter int unsigned IN_FLIGHT = 256     // packets of one QP without acknowledgement
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,
  input logic halt_i,

  input logic sched_valid_i,
  input logic [ordma_pkg::QpLog-1:0] sched_qp_i,
  output logic sched_pop_o,
  output logic again_o,           // more to do on qp_o
  output logic kick_o,            // the completer has to look at qp_o
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
  input logic [511:0] rd_rsp_data_i,
  input logic rd_rsp_last_i,
  input logic rd_rsp_err_i,
  output logic eg_valid_o,
  output ordma_pkg::eg_beat_t eg_o,
  input logic eg_ready_i,
  input logic [15:0] eg_enq_i,
  input logic [15:0] eg_out_i,

  // Outstanding READs and atomics: appended when sent, scanned after a rewind.
  output logic op_we_o,
  output logic [ordma_pkg::QpLog+ordma_pkg::RdLog-1:0] op_waddr_o,
  output ordma_pkg::rd_op_t op_o,
  output logic op_re_o,
  output logic [ordma_pkg::QpLog+ordma_pkg::RdLog-1:0] op_raddr_o,
  input ordma_pkg::rd_op_t op_i,

  output logic chunk_push_o,
  output ordma_pkg::chunk_t chunk_o,
  output logic chunk_commit_o,
  output logic chunk_abort_o,
  input logic chunk_full_i,
  output logic inl_push_o,
  output logic [511:0] inl_o,
  input logic inl_full_i,
  output logic desc_push_o,
  output ordma_pkg::tx_desc_t desc_o,
  input logic desc_full_i,

  // Unreliable QPs complete here, when the payload of the message was fetched.
  input logic [15:0] gather_in_i,
  input logic [15:0] gather_out_i,
  output logic post_valid_o,
  output ordma_pkg::cq_post_t post_o,
  input logic post_done_i,
  input logic post_overflow_i,
  input logic [(1<<ordma_pkg::GidLog)-1:0] gid_valid_i,
  input logic [(1<<ordma_pkg::GidLog)-1:0] gid_v4_i,
  output logic cnt_resent_o,
  output logic busy_o
);
  localparam logic [7:0] LocalWrite = ordma_hw_pkg::AccessLocalWrite;
  typedef enum logic [5:0] {
    Idle, Acquire, Begin, Scan, ScanWait, ScanTake, Cursor, Fence, LogRead, LogWait, LogCheck, WqeXlate, WqeRead, WqeWait, Check, Sum, Probe,
    Gate, Log, Packet, Size, Walk, Segment, Piece, Inline, InlineEnd, Commit, Fetched, Post, Next, Fail, Release
  } state_e;
  state_e state_q;

  logic [ordma_pkg::QpLog-1:0] qp_q;
  ordma_hw_pkg::qpc_t attr;
  logic [ordma_pkg::AttrW-1:0] attr_q;
  ordma_pkg::qp_ctl_t ctl_q;
  ordma_pkg::qp_sq_t sq_q;
  logic [23:0] pi_q;
  logic [15:0] fence_q;
  logic [4:0] sent_q;
  logic again_q, kick_q;
  logic [7:0] status_q;

  ordma_hw_pkg::log_entry_t entry_q, entry;
  logic resend;            // the message under the cursor is in the log
  logic [511:0] wqe_mem[0:7];
  logic [2:0] fill_q;
  ordma_hw_pkg::wqe_t wqe;
  logic [15:0] checksum;
  logic [19:0] sum20;

  logic [63:0] sq_off;
  logic [12:0] mtu;
  logic [31:0] off_q, total_q, left, skip_q;
  logic [4:0] sge_q, units;
  logic [31:0] sge_off_q, piece_left;
  ordma_hw_pkg::sge_t sge;
  logic [127:0] sge_raw;
  logic [511:0] sge_beat;
  logic [4:0] unit;
  logic [ordma_pkg::LenW-1:0] pkt_q, seg_q, xl_len;
  logic [63:0] xl_addr_q;
  logic [ordma_pkg::LenW-1:0] xl_len_q;
  logic first, last, sends, log_full, walked_q;
  logic [23:0] log_used, behind, into, pkts_last;
  logic [31:0] pkts;
  logic [2:0] inl_q;
  logic [8:0] inl_end;
  logic [23:0] next_psn, new_high, in_flight;
  logic is_rc, is_uc, is_ud, av_ok, over_q;
  logic [127:0] av_dgid;
  logic [15:0] gather_left;
  ordma_hw_pkg::av_t av;
  logic [511:0] wqe_raw;
  ordma_hw_pkg::cqe_t cqe;
  logic is_nop, is_read, is_atomic, is_op, known_op;
  logic [ordma_pkg::RdLog:0] scan_q, max_ops;
  logic [23:0] psns, psns_left, scan_ahead, outstanding;
  logic [4:0] max_sge;

  assign attr = {1024'd0, attr_q};
  assign wqe = wqe_mem[0];
  assign new_high = next_psn - sq_q.high_psn;
  assign busy_o = state_q != Idle;
  assign qp_o = qp_q;
  assign mtu = 13'd1 << attr.mtu_log;
  assign resend = sq_q.cur_log != sq_q.log_sent;
  assign log_used = sq_q.log_sent - sq_q.log_acked;
  assign log_full = ({1'b0, log_used} >> attr.log_log) != '0;
  assign behind = sq_q.cur_log - sq_q.log_acked;
  // PSNs that responses will use occupy no receive queue.
  assign in_flight = outstanding - sq_q.rd_psns;
  assign next_psn = sq_q.next_psn + psns_left;
  assign inl_end = off_q[8:0] + pkt_q[8:0] - 9'd1;
  assign is_rc = attr.type_ == ordma_hw_pkg::QpTypeRc;
  assign is_uc = attr.type_ == ordma_hw_pkg::QpTypeUc;
  assign is_ud = attr.type_ == ordma_hw_pkg::QpTypeUd || attr.type_ == ordma_hw_pkg::QpTypeGsi;
  assign wqe_raw = wqe_mem[0];
  assign av = wqe_raw[511:128];
  assign av_dgid = av.dgid;
  assign av_ok = av.sgid_index[7:ordma_pkg::GidLog] == '0 && gid_valid_i[av.sgid_index[ordma_pkg::GidLog-1:0]]
      && gid_v4_i[av.sgid_index[ordma_pkg::GidLog-1:0]] == (av_dgid[79:0] == '0 && av_dgid[95:80] == 16'hffff);
  assign gather_left = fence_q - gather_out_i;
  assign is_read = wqe.opcode == ordma_hw_pkg::WqeOpRead;
  assign is_atomic = wqe.opcode == ordma_hw_pkg::WqeOpCmpSwap || wqe.opcode == ordma_hw_pkg::WqeOpFetchAdd;
  assign is_op = is_read || is_atomic;
  // PSNs of the message, and of the packet at hand: a READ request covers those of its response.
  assign psns = pkts_last + 24'd1;
  assign psns_left = is_read ? psns - sq_q.cur_pkt : 24'd1;
  assign known_op = sq_q.rd_issued < sq_q.rd_count;
  assign max_ops = (attr.max_rd_atomic > (8'd1 << ordma_pkg::RdLog)) ? {1'b1, {ordma_pkg::RdLog{1'b0}}} : attr.max_rd_atomic[ordma_pkg::RdLog:0];
  assign outstanding = sq_q.next_psn - sq_q.una_psn;
  assign scan_ahead = op_i.log_index - sq_q.cur_log;
  assign op_re_o = state_q == Scan;
  assign op_raddr_o = {qp_q, sq_q.rd_head + scan_q[ordma_pkg::RdLog-1:0]};
  assign op_we_o = desc_push_o && is_op && !known_op;
  assign op_waddr_o = {qp_q, sq_q.rd_head + sq_q.rd_issued[ordma_pkg::RdLog-1:0]};
  always_comb begin
    op_o = '0;
    op_o.atomic = is_atomic;
    op_o.log_index = sq_q.cur_log;
    op_o.sq_index = sq_q.cur_sq;
    op_o.first_psn = sq_q.next_psn - sq_q.cur_pkt;
    op_o.psns = psns;
    op_o.length = wqe.length;
  end
  assign is_nop = wqe.opcode == ordma_hw_pkg::WqeOpNop;
  assign sq_off = {40'd0, sq_q.cur_sq & ~(24'hff_ffff << attr.sq_log)} << attr.sq_stride_log;

  // Packets of the message: ceil(length / MTU), at least one.
  assign pkts = (wqe.length + {19'd0, mtu} - 32'd1) >> attr.mtu_log;
  assign pkts_last = (wqe.length == '0) ? 24'd0 : pkts[23:0] - 24'd1;
  assign first = sq_q.cur_pkt == '0;
  assign left = wqe.length - off_q;
  assign last = left <= {19'd0, mtu};
  assign into = sq_q.next_psn - entry_q.first_psn;

  // SGEs lie 16 bytes apart behind the fixed part.
  assign unit = units + sge_q;
  assign units = is_ud ? 5'd4 : is_atomic ? 5'd3 : 5'd2;
  assign max_sge = (5'd1 << (attr.sq_stride_log[3:0] - 4'd4)) - units;
  always_comb begin
    sge_beat = '0;
    sge_raw = '0;
    if (state_q == Sum || state_q == Probe || state_q == Walk || state_q == Segment || state_q == Piece) begin
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
  assign piece_left = sge.length - sge_off_q;

  // Ones-complement sum of the first 32 bytes: what of a WQE may not change while it is outstanding.
  always_comb begin
    sum20 = '0;
    if (state_q == Check || state_q == Log) begin
      for (int unsigned i = 0; i < 16; i++) sum20 = sum20 + {4'd0, wqe_mem[0][16*i +: 16]};
      sum20 = {4'd0, sum20[15:0]} + {16'd0, sum20[19:16]};
      sum20 = {4'd0, sum20[15:0]} + {16'd0, sum20[19:16]};
    end
    checksum = sum20[15:0];
  end

  // ---------------------------------------------------------------- what goes out
  assign sched_pop_o = state_q == Idle && sched_valid_i && !halt_i;
  assign acq_valid_o = state_q == Acquire;
  always_comb begin
    rel_o = '0;
    if (state_q == Release) begin
      rel_o.valid = 1'b1;
      rel_o.we_sq = 1'b1;
      rel_o.we_ctl = over_q;
      rel_o.qp = qp_q;
      rel_o.ctl = ctl_q;
      rel_o.sq = sq_q;
    end
  end
  assign again_o = state_q == Release && rel_ready_i && again_q;
  assign kick_o = state_q == Release && rel_ready_i && kick_q;

  always_comb begin
    xl_valid_o = state_q == WqeXlate || state_q == Probe || (state_q == Segment && piece_left != '0);
    xl_req_o = '0;
    if (state_q == WqeXlate) begin
      xl_req_o.va = sq_off;
      xl_req_o.len = 32'd1 << attr.sq_stride_log;
      xl_req_o.addr = attr.sq_addr;
      xl_req_o.level = attr.sq_level;
      xl_req_o.page_log = attr.sq_page_log;
    end else if (xl_valid_o) begin
      // All that is left of the SGE is checked, so that a bad one fails before its first packet.
      xl_req_o.is_mr = 1'b1;
      xl_req_o.kernel = attr.uctx == ordma_hw_pkg::KernelUctx[15:0];
      xl_req_o.key = sge.lkey;
      xl_req_o.pd = attr.pd;
      xl_req_o.access = is_op ? LocalWrite : 8'd0;
      xl_req_o.va = sge.addr + {32'd0, (state_q == Probe) ? 32'd0 : sge_off_q};
      xl_req_o.len = (state_q == Probe) ? sge.length : piece_left;
    end
    rd_valid_o = state_q == LogRead || state_q == WqeRead;
    rd_req_o = '0;
    if (state_q == LogRead) begin
      rd_req_o.addr = attr.log_addr + {36'd0, sq_q.cur_log & ~(24'hff_ffff << attr.log_log), 4'd0};
      rd_req_o.len = 13'd16;
    end else begin
      rd_req_o.addr = xl_addr_q;
      rd_req_o.len = 13'd1 << attr.sq_stride_log;
    end
  end

  always_comb begin
    entry = '0;
    eg_valid_o = state_q == Log && !resend && is_rc && ctl_q.valid;
    eg_o = '0;
    if (state_q == Log) begin
      entry.sq_index = sq_q.cur_sq;
      entry.opcode = wqe.opcode;
      entry.checksum = checksum;
      entry.kind = ordma_hw_pkg::LogKindWqe;
      entry.signaled = wqe.signaled;
      entry.first_psn = sq_q.next_psn;
      entry.length = wqe.length;
      eg_o.addr = attr.log_addr + {36'd0, sq_q.cur_log & ~(24'hff_ffff << attr.log_log), 4'd0};
      eg_o.len = 13'd16;
      eg_o.kind = ordma_pkg::KindLog;
      eg_o.last = 1'b1;
      eg_o.data = {384'd0, entry};
    end
  end

  assign xl_len = (xl_len_q < seg_q) ? xl_len_q : seg_q;
  always_comb begin
    chunk_push_o = (state_q == Piece || state_q == InlineEnd) && !chunk_full_i;
    chunk_o = '0;
    chunk_o.addr = xl_addr_q;
    chunk_o.len = xl_len;
    chunk_o.last = xl_len == pkt_q;
    if (state_q == InlineEnd) begin
      chunk_o.inl = 1'b1;
      chunk_o.len = pkt_q;
      chunk_o.last = 1'b1;
    end
    chunk_abort_o = state_q == Fail;
    chunk_commit_o = state_q == Commit && !desc_full_i;
    desc_push_o = chunk_commit_o;
    cnt_resent_o = chunk_commit_o && sq_q.next_psn != sq_q.high_psn;
    // Inline data start in the middle of a beat.
    inl_push_o = state_q == Inline && !inl_full_i;
    inl_o = '0;
    if (state_q == Inline) inl_o = is_ud ? wqe_mem[inl_q + 3'd1] : {wqe_mem[inl_q + 3'd1][255:0], wqe_mem[inl_q][511:256]};
  end

  ordma_packetise u_packetise (
    .valid_i(state_q == Commit), .wqe_i(wqe), .attr_i(attr), .psn_i(sq_q.next_psn), .first_i(first), .last_i(last),
    .ack_req_i(last || is_op || (&sq_q.next_psn[ACK_EVERY_LOG-1:0])), .offset_i(off_q),
    .pay_len_i(is_op ? 13'd0 : last ? left[12:0] : mtu), .desc_o
  );

  // Operations of this QP type; the rest fails with LOC_QP_OP_ERR.
  always_comb begin
    sends = 1'b0;
    case (wqe.opcode)
      ordma_hw_pkg::WqeOpSend, ordma_hw_pkg::WqeOpSendImm, ordma_hw_pkg::WqeOpNop: sends = 1'b1;
      ordma_hw_pkg::WqeOpWrite, ordma_hw_pkg::WqeOpWriteImm: sends = is_rc || is_uc;
      ordma_hw_pkg::WqeOpSendInv, ordma_hw_pkg::WqeOpRead, ordma_hw_pkg::WqeOpCmpSwap,
      ordma_hw_pkg::WqeOpFetchAdd: sends = is_rc;
      default: ;
    endcase
  end

  always_comb begin
    cqe = '0;
    post_o = '0;
    post_valid_o = state_q == Post && wqe.signaled;
    if (post_valid_o) begin
      cqe.qpn = attr.qpn;
      cqe.opcode = (wqe.opcode == ordma_hw_pkg::WqeOpWrite || wqe.opcode == ordma_hw_pkg::WqeOpWriteImm)
          ? ordma_hw_pkg::WcOpRdmaWrite : ordma_hw_pkg::WcOpSend;
      cqe.wqe_index = sq_q.cur_sq[15:0];
      post_o.cqn = attr.scqn;
      post_o.cqe = cqe;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == WqeWait && rd_rsp_valid_i) wqe_mem[fill_q] <= rd_rsp_data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      qp_q <= '0;
      attr_q <= '0;
      ctl_q <= '0;
      sq_q <= '0;
      pi_q <= '0;
      fence_q <= '0;
      sent_q <= '0;
      again_q <= 1'b0;
      kick_q <= 1'b0;
      status_q <= '0;
      entry_q <= '0;
      fill_q <= '0;
      off_q <= '0;
      total_q <= '0;
      skip_q <= '0;
      sge_q <= '0;
      sge_off_q <= '0;
      pkt_q <= '0;
      seg_q <= '0;
      xl_addr_q <= '0;
      xl_len_q <= '0;
      walked_q <= 1'b0;
      inl_q <= '0;
      scan_q <= '0;
      over_q <= 1'b0;
    end else begin
      case (state_q)
        Idle: if (sched_pop_o) begin
          qp_q <= sched_qp_i;
          sent_q <= '0;
          again_q <= 1'b0;
          kick_q <= 1'b0;
          over_q <= 1'b0;
          state_q <= Acquire;
        end
        Acquire: if (gnt_i) begin
          attr_q <= ctx_i.attr;
          ctl_q <= ctx_i.ctl;
          sq_q <= ctx_i.sq;
          pi_q <= ctx_i.sq_pi;
          state_q <= Begin;
        end
        // May this QP send at all?
        Begin: begin
          state_q <= sq_q.rd_recount ? Scan : Cursor;
          scan_q <= '0;
          if (sq_q.rd_recount) begin
            sq_q.rd_issued <= '0;
            sq_q.rd_psns <= '0;
          end
          if (!ctl_q.valid || ctl_q.frozen || sq_q.fail_valid
              || (ctl_q.state != ordma_hw_pkg::QpStateRts[3:0] && ctl_q.state != ordma_hw_pkg::QpStateSqd[3:0])) begin
            state_q <= Release;
          end else if (sq_q.not_before != '0) begin
            if (time_i < sq_q.not_before) state_q <= Release;
            else sq_q.not_before <= '0;
          end
        end
        // READs before the cursor are still out; the one at the cursor and later ones are asked again.
        Scan: begin
          state_q <= ScanWait;
          if (scan_q == sq_q.rd_count) begin
            sq_q.rd_recount <= 1'b0;
            state_q <= Cursor;
          end
        end
        ScanWait: state_q <= ScanTake;
        ScanTake: begin
          scan_q <= scan_q + 1'b1;
          state_q <= Scan;
          if (scan_ahead[23]) begin
            sq_q.rd_issued <= scan_q + 1'b1;
            sq_q.rd_psns <= sq_q.rd_psns + op_i.psns - ((scan_q == '0) ? sq_q.rd_recv : 24'd0);
          end
        end
        // Find the message under the cursor.
        Cursor: begin
          walked_q <= 1'b0;
          if (behind[23]) begin
            // Acknowledged while it waited to be sent again.
            sq_q.cur_log <= sq_q.log_acked;
            sq_q.cur_sq <= sq_q.sq_ci;
            sq_q.next_psn <= sq_q.una_psn;
            sq_q.rd_issued <= '0;
            sq_q.rd_psns <= '0;
          end else if (!resend && (sq_q.cur_sq == pi_q || (ctl_q.state == ordma_hw_pkg::QpStateSqd[3:0] && (is_rc || sq_q.cur_pkt == '0))
                                   || (is_rc && log_full))) begin
            state_q <= Release;
          end else if (sent_q >= QUANTUM[4:0]) begin
            again_q <= 1'b1;
            state_q <= Release;
          end else if (resend) begin
            fence_q <= eg_enq_i;
            state_q <= Fence;
          end else begin
            if (is_rc) sq_q.cur_pkt <= '0;  // UC goes on inside its message
            state_q <= WqeXlate;
          end
          if (behind[23]) state_q <= Cursor;
        end
        // The entry may still be in the egress: a read follows what was written before.
        Fence: if (eg_out_i == fence_q || (fence_q - eg_out_i) > 16'h8000) state_q <= LogRead;
        LogRead: if (rd_ready_i) state_q <= LogWait;
        LogWait: if (rd_rsp_valid_i) begin
          entry_q <= rd_rsp_data_i[127:0];
          state_q <= LogCheck;
          if (rd_rsp_err_i) begin
            status_q <= ordma_hw_pkg::WcStatusFatalErr;
            state_q <= Fail;
          end
        end
        LogCheck: begin
          sq_q.cur_sq <= entry_q.sq_index;
          sq_q.cur_pkt <= into;
          state_q <= WqeXlate;
        end
        WqeXlate: if (xl_done_i) begin
          xl_addr_q <= xl_rsp_i.addr;
          fill_q <= '0;
          status_q <= ordma_hw_pkg::WcStatusLocQpOpErr;
          state_q <= (xl_rsp_i.err != ordma_pkg::XlOk || (32'd1 << attr.sq_stride_log) != {19'd0, xl_rsp_i.len}) ? Fail : WqeRead;
        end
        WqeRead: if (rd_ready_i) state_q <= WqeWait;
        WqeWait: if (rd_rsp_valid_i) begin
          fill_q <= fill_q + 1'b1;
          if (rd_rsp_last_i) state_q <= rd_rsp_err_i ? Fail : Check;
        end
        Check: begin
          sge_q <= '0;
          total_q <= '0;
          skip_q <= '0;
          state_q <= wqe.inline_ || is_nop ? Gate : Sum;
          if (!sends || (is_op && wqe.inline_) || (is_atomic && (wqe.num_sge != 8'd1 || wqe.length != 32'd8)) || wqe.index != sq_q.cur_sq[15:0] || wqe.length > 32'h8000_0000
              || (wqe.inline_ ? wqe.length > (32'd1 << attr.sq_stride_log) - (is_ud ? ordma_hw_pkg::WqeUdDataOff : ordma_hw_pkg::WqeDataOff)
                              : wqe.num_sge > {3'd0, max_sge})
              || (resend && (entry_q.checksum != checksum || entry_q.opcode != wqe.opcode
                             || entry_q.length != wqe.length || entry_q.kind != ordma_hw_pkg::LogKindWqe))
              || (resend && sq_q.cur_pkt > pkts_last) || (is_ud && !is_nop && !av_ok)) begin
            state_q <= Fail;
          end else if (is_ud && !is_nop && wqe.length > {19'd0, mtu}) begin
            status_q <= ordma_hw_pkg::WcStatusLocLenErr;
            state_q <= Fail;
          end
        end
        // The SGEs must add up to the length that the headers announce.
        Sum: begin
          if ({3'd0, sge_q} == wqe.num_sge) begin
            sge_q <= '0;
            state_q <= (total_q != wqe.length) ? Fail : Gate;
          end else if (sge.length == '0) begin
            sge_q <= sge_q + 1'b1;
          end else begin
            total_q <= total_q + sge.length;
            if (sge.length[31] || total_q > wqe.length) state_q <= Fail;
            else if (first) state_q <= Probe;
            else sge_q <= sge_q + 1'b1;
          end
        end
        // Nothing of a message leaves when one of its SGEs is bad.
        Probe: if (xl_done_i) begin
          sge_q <= sge_q + 1'b1;
          state_q <= Sum;
          if (xl_rsp_i.err != ordma_pkg::XlOk) begin
            status_q <= ordma_hw_pkg::WcStatusLocProtErr;
            state_q <= Fail;
          end
        end
        // What it has to wait for: earlier READs and atomics (fence), a place among those outstanding,
        // half of the PSN space. Whoever changes that wakes this QP.
        Gate: begin
          state_q <= Log;
          if (is_rc && !is_nop && ((wqe.fence && sq_q.rd_issued != '0) || (is_op && sq_q.rd_issued >= max_ops)
                          || outstanding + psns > 24'h80_0000)) begin
            state_q <= Release;
          end
        end
        Log: if (resend || !is_rc) begin
          state_q <= is_nop ? Next : Packet;
        end else if (eg_ready_i) begin
          sq_q.log_sent <= sq_q.log_sent + 24'd1;
          if (sq_q.una_psn == sq_q.high_psn) sq_q.progress <= time_i;
          if (is_nop) kick_q <= 1'b1;
          state_q <= is_nop ? Next : Packet;
        end
        // A closed window: the acknowledgement that opens it wakes this QP.
        Packet: if (is_rc && in_flight >= IN_FLIGHT[23:0]) begin
          state_q <= Release;
        end else begin
          off_q <= {8'd0, sq_q.cur_pkt} << attr.mtu_log;
          state_q <= Size;
        end
        Size: begin
          pkt_q <= last ? left[12:0] : mtu;
          inl_q <= off_q[8:6];
          skip_q <= off_q;
          walked_q <= 1'b1;
          if (left == '0 || is_op) state_q <= Commit;
          else if (wqe.inline_) state_q <= Inline;
          else state_q <= walked_q ? Segment : Walk;
          if (!walked_q) begin
            sge_q <= '0;
            sge_off_q <= '0;
          end
        end
        // To the SGE that holds the first byte of this packet.
        Walk: begin
          if (skip_q >= sge.length) begin
            skip_q <= skip_q - sge.length;
            sge_q <= sge_q + 1'b1;
          end else begin
            sge_off_q <= skip_q;
            state_q <= Segment;
          end
        end
        Segment: begin
          if (piece_left == '0) begin
            sge_q <= sge_q + 1'b1;
            sge_off_q <= '0;
          end else if (xl_done_i) begin
            xl_addr_q <= xl_rsp_i.addr;
            xl_len_q <= xl_rsp_i.len;
            seg_q <= (piece_left < {19'd0, pkt_q}) ? piece_left[12:0] : pkt_q;
            state_q <= Piece;
            if (xl_rsp_i.err != ordma_pkg::XlOk) begin
              status_q <= ordma_hw_pkg::WcStatusLocProtErr;
              state_q <= Fail;
            end
          end
        end
        Piece: if (!chunk_full_i) begin
          pkt_q <= pkt_q - xl_len;
          sge_off_q <= sge_off_q + {19'd0, xl_len};
          state_q <= (xl_len == pkt_q) ? Commit : Segment;
        end
        Inline: if (!inl_full_i) begin
          inl_q <= inl_q + 3'd1;
          if (inl_q == inl_end[8:6]) state_q <= InlineEnd;
        end
        InlineEnd: if (!chunk_full_i) state_q <= Commit;
        Commit: if (!desc_full_i) begin
          sq_q.next_psn <= next_psn;
          if (!is_rc) sq_q.una_psn <= next_psn;
          if (new_high != '0 && !new_high[23]) sq_q.high_psn <= next_psn;
          sent_q <= sent_q + 1'b1;
          if (is_op) begin
            sq_q.rd_issued <= sq_q.rd_issued + 1'b1;
            sq_q.rd_psns <= sq_q.rd_psns + psns_left;
            if (!known_op) sq_q.rd_count <= sq_q.rd_count + 1'b1;
            if (!known_op && sq_q.rd_count == '0) begin
              sq_q.rd_first <= sq_q.next_psn - sq_q.cur_pkt;
              sq_q.rd_recv <= '0;
            end
          end
          if (last || is_op) begin
            state_q <= Next;
          end else begin
            sq_q.cur_pkt <= sq_q.cur_pkt + 24'd1;
            state_q <= Packet;
            if (sent_q >= QUANTUM[4:0] - 5'd1) begin
              again_q <= 1'b1;
              state_q <= Release;
            end
          end
        end
        // Sent is complete, but the buffer is the user's again only when it was read.
        Fetched: if (gather_left == '0 || gather_left[15]) state_q <= Post;
        Post: if (post_done_i || !wqe.signaled) begin
          sq_q.sq_ci <= sq_q.cur_sq + 24'd1;
          if (post_done_i && post_overflow_i) begin
            ctl_q.state <= ordma_hw_pkg::QpStateErr[3:0];
            over_q <= 1'b1;
            kick_q <= 1'b1;
          end
          sq_q.cur_sq <= sq_q.cur_sq + 24'd1;
          sq_q.cur_pkt <= '0;
          state_q <= (post_done_i && post_overflow_i) ? Release : Cursor;
        end
        Next: if (!is_rc) begin
          fence_q <= gather_in_i;
          state_q <= Fetched;
        end else begin
          sq_q.cur_sq <= sq_q.cur_sq + 24'd1;
          sq_q.cur_log <= sq_q.cur_log + 24'd1;
          sq_q.cur_pkt <= '0;
          state_q <= Cursor;
        end
        Fail: begin
          sq_q.fail_valid <= 1'b1;
          sq_q.fail_at_una <= 1'b0;
          sq_q.fail_log <= sq_q.cur_log;
          sq_q.fail_status <= status_q;
          sq_q.fail_vendor <= '0;
          kick_q <= 1'b1;
          state_q <= Release;
        end
        default: if (rel_ready_i) state_q <= Idle;
      endcase
    end
  end
endmodule
