// SPDX-License-Identifier: BSD-2-Clause
//
// Responder: takes one request packet at a time, in order of arrival, under the lock of its QP. Checks
// it, places it and answers it. Payload is in the egress before its CQE is posted, the CQE before the
// ACK leaves. READs and atomics are queued for the respond unit; ACKs behind them wait there too, so
// answers leave in the order of the requests. Nothing here waits for another QP.
module ordma_responder (
  input logic clk_i,
  input logic rst_ni,
  input logic halt_i,

  input logic desc_valid_i,
  input ordma_pkg::rx_desc_t desc_i,
  output logic desc_pop_o,
  output logic [ordma_pkg::GidLog-1:0] gid_addr_o,
  input ordma_pkg::gid_t gid_i,
  output logic match_o,
  input logic local_i,

  output logic acq_valid_o,
  output logic [ordma_pkg::QpLog-1:0] qp_o,
  input logic gnt_i,
  input ordma_pkg::qp_ctx_t ctx_i,
  output ordma_pkg::qp_rel_t rel_o,
  input logic rel_ready_i,
  output logic kick_o,            // completer: the QP is in error
  output logic respond_o,         // respond unit: there is something to send

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
  output logic eg_valid_o,
  output ordma_pkg::eg_beat_t eg_o,
  input logic eg_ready_i,
  input logic [15:0] eg_enq_i,
  input logic [15:0] eg_out_i,
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
  output logic rs_op_we_o,
  output logic rs_ack_we_o,
  output logic [ordma_pkg::QpLog+ordma_pkg::RdLog-1:0] rs_addr_o,
  output ordma_pkg::rs_op_t rs_op_o,
  output ordma_pkg::rs_ack_t rs_ack_o,

  output logic [ordma_pkg::NumCounter-1:0] cnt_o,
  output logic [ordma_pkg::LenW-1:0] cnt_bytes_o,
  output logic busy_o
);
  localparam logic [7:0] RemoteWrite = ordma_hw_pkg::AccessRemoteWrite;
  localparam logic [7:0] RemoteRead = ordma_hw_pkg::AccessRemoteRead;
  localparam logic [7:0] RemoteAtomic = ordma_hw_pkg::AccessRemoteAtomic;
  localparam logic [7:0] LocalWrite = ordma_hw_pkg::AccessLocalWrite;
  typedef enum logic [4:0] {
    Idle, Acquire, Check, Established, Psn, Dup, Request, Take, Load, Seek, Segment, Place, Finish, Post, Answer,
    Report, Error, Grant, Queue, Atomic, Release, Pop
  } state_e;
  state_e state_q;

  ordma_hw_pkg::qpc_t attr;
  logic [ordma_pkg::AttrW-1:0] attr_q;
  ordma_pkg::qp_ctl_t ctl_q;
  ordma_pkg::qp_sq_t sq_q;
  ordma_pkg::qp_rq_t rq_q;
  logic [23:0] rq_pi_q;
  logic drop, response;
  logic [15:0] drop_counter;
  logic we_ctl_q, we_rq_q, kick_q, respond_q;

  // Decode of the opcode.
  logic [4:0] op;
  logic is_first, is_middle, is_last, is_only, is_send, is_write, is_read, is_atomic, has_imm, has_inv;
  logic begins, ends, needs_rqe, is_ud, is_rc;
  // UD: the network header goes in front of the payload, an IPv4 header at the end of its 40 bytes.
  logic [1:0] part_q;
  logic [6:0] l3_off;
  logic [31:0] wqe_skip, wqe_need;
  ordma_hw_pkg::reth_t reth;
  ordma_hw_pkg::atomiceth_t ath;
  logic [31:0] imm_raw;
  logic [12:0] mtu;
  logic [23:0] psn_diff, read_between, rd_end;
  logic [31:0] rd_pkts;
  logic [23:0] rd_packets;
  logic seq_bad, len_bad, denied, full, full_new;

  // Receive WQE.
  logic wqe_done, wqe_bad, wqe_fits, seg_valid, wqe_xl_valid;
  ordma_pkg::xl_req_t wqe_xl_req;
  ordma_hw_pkg::sge_t seg;
  logic [63:0] wr_id;
  logic wqe_rd_valid;
  ordma_pkg::rd_req_t wqe_rd_req;

  // What is left to place of this packet.
  logic [ordma_pkg::LenW-1:0] left_q, seg_q;
  logic [ordma_pkg::RxBufLog+ordma_pkg::BeatLog-1:0] from_q;
  logic [63:0] addr_q;

  // Verdict.
  logic answer_q, report_q, error_q, fatal_q, dup_q;
  logic [7:0] syn_q, status_q, async_q;
  logic [23:0] ack_psn_q;
  ordma_hw_pkg::cqe_t cqe;

  logic atom_done, atom_fail, atom_rd_valid;
  logic [63:0] atom_old, old_q;
  ordma_pkg::rd_req_t atom_rd_req;
  logic [23:0] newer;

  assign attr = {1024'd0, attr_q};
  assign busy_o = state_q != Idle;
  assign qp_o = desc_i.dest_qpn[ordma_pkg::QpLog-1:0];
  assign gid_addr_o = attr.sgid_index[ordma_pkg::GidLog-1:0];
  assign desc_pop_o = state_q == Pop;
  assign acq_valid_o = state_q == Acquire;

  ordma_rx_check u_check (
    .valid_i(state_q == Check), .desc_i, .attr_i(attr), .ctl_i(ctl_q), .gid_i, .local_i,
    .drop_o(drop), .counter_o(drop_counter), .response_o(response)
  );

  assign match_o = state_q == Check;
  assign is_ud = attr.type_ == ordma_hw_pkg::QpTypeUd || attr.type_ == ordma_hw_pkg::QpTypeGsi;
  assign is_rc = attr.type_ == ordma_hw_pkg::QpTypeRc;
  // UD is SEND_ONLY or SEND_ONLY_IMM under a prefix of its own: same low bits.
  assign op = desc_i.opcode[4:0];
  assign is_first = op == 5'h00 || op == 5'h06;
  assign is_middle = op == 5'h01 || op == 5'h07;
  assign is_last = op == 5'h02 || op == 5'h03 || op == 5'h08 || op == 5'h09 || op == 5'h16;
  assign is_only = op == 5'h04 || op == 5'h05 || op == 5'h0a || op == 5'h0b || op == 5'h17;
  assign is_write = op >= 5'h06 && op <= 5'h0b;
  assign is_send = op <= 5'h05 || op == 5'h16 || op == 5'h17;
  assign is_read = op == ordma_hw_pkg::RoceOpRcReadReq[4:0];
  assign is_atomic = op == ordma_hw_pkg::RoceOpRcCmpSwap[4:0] || op == ordma_hw_pkg::RoceOpRcFetchAdd[4:0];
  assign has_imm = op == 5'h03 || op == 5'h05 || op == 5'h09 || op == 5'h0b;
  assign has_inv = op == 5'h16 || op == 5'h17;
  assign begins = is_first || is_only || is_read || is_atomic;
  assign ends = is_last || is_only;
  assign needs_rqe = is_send || (is_write && ends && has_imm);
  assign reth = desc_i.ext[223:96];
  assign ath = desc_i.ext;
  assign l3_off = desc_i.pay_off - (desc_i.ipv4 ? 7'd40 : 7'd60) - (has_imm ? 7'd12 : 7'd8);
  assign wqe_skip = is_ud ? (desc_i.ipv4 ? 32'd20 : 32'd0) : rq_q.placed;
  assign wqe_need = {19'd0, desc_i.pay_len} + (is_ud ? (desc_i.ipv4 ? 32'd20 : 32'd40) : 32'd0);
  assign imm_raw = is_ud ? desc_i.ext[159:128] : (op == 5'h0b) ? desc_i.ext[95:64] : desc_i.ext[223:192];
  assign mtu = 13'd1 << attr.mtu_log;
  assign psn_diff = desc_i.psn - rq_q.epsn;
  assign read_between = rq_q.read_psn - desc_i.psn;
  assign rd_pkts = (reth.dma_len + {19'd0, mtu} - 32'd1) >> attr.mtu_log;
  assign rd_packets = is_atomic || reth.dma_len == '0 ? 24'd1 : rd_pkts[23:0];
  assign rd_end = desc_i.psn + rd_packets - rq_q.epsn;

  // Order of the packets of a message, their lengths, and what the QP lets the peer do.
  always_comb begin
    seq_bad = !(is_send || is_write || is_read || is_atomic) || has_inv
        || (rq_q.in_msg ? begins || is_write != rq_q.is_write : !begins);
    len_bad = 1'b0;
    if (is_read || is_atomic) len_bad = desc_i.pay_len != '0;
    else if (is_first || is_middle) len_bad = desc_i.pay_len != mtu;
    else len_bad = desc_i.pay_len > mtu || (is_last && desc_i.pay_len == '0);
    if (is_write) begin
      if (is_only && reth.dma_len != {19'd0, desc_i.pay_len}) len_bad = 1'b1;
      if (is_first && reth.dma_len <= {19'd0, mtu}) len_bad = 1'b1;
      if (is_middle && rq_q.left <= {19'd0, mtu}) len_bad = 1'b1;
      if (is_last && rq_q.left != {19'd0, desc_i.pay_len}) len_bad = 1'b1;
    end
    if ((is_read || (is_write && begins)) && reth.dma_len > 32'h8000_0000) len_bad = 1'b1;
    if (is_atomic && ath.va[2:0] != '0) len_bad = 1'b1;
    denied = (is_write && (attr.access & RemoteWrite) == '0) || (is_read && (attr.access & RemoteRead) == '0)
        || (is_atomic && (attr.access & RemoteAtomic) == '0);
    // Duplicates hold no right to a place.
    full = rq_q.rs_count >= attr.max_dest_rd_atomic[ordma_pkg::RdLog:0] || rq_q.rs_count[ordma_pkg::RdLog];
    full_new = rq_q.rs_count - rq_q.rs_dups >= attr.max_dest_rd_atomic[ordma_pkg::RdLog:0];
  end

  ordma_recv_wqe u_wqe (
    .clk_i, .rst_ni, .qp_i(qp_o), .ring_addr_i(attr.rq_addr), .ring_level_i(attr.rq_level),
    .ring_page_log_i(attr.rq_page_log), .ring_log_i(attr.rq_log), .stride_log_i(attr.rq_stride_log), .index_i(rq_q.ci),
    .take_i(state_q == Take), .load_i(state_q == Load), .seek_i(state_q == Seek), .skip_i(wqe_skip),
    .need_i(wqe_need), .done_o(wqe_done), .bad_o(wqe_bad), .fits_o(wqe_fits), .wr_id_o(wr_id),
    .seg_valid_o(seg_valid), .seg_o(seg), .advance_i(state_q == Place && place_done_i && is_send), .advance_len_i(seg_q),
    .xl_valid_o(wqe_xl_valid), .xl_req_o(wqe_xl_req), .xl_done_i, .xl_rsp_i,
    .rd_valid_o(wqe_rd_valid), .rd_req_o(wqe_rd_req), .rd_ready_i, .rd_rsp_valid_i, .rd_rsp_data_i, .rd_rsp_last_i, .rd_rsp_err_i
  );

  // ---------------------------------------------------------------- memory
  always_comb begin
    xl_valid_o = wqe_xl_valid || state_q == Grant || (state_q == Segment && left_q != '0 && (is_write || seg_valid));
    xl_req_o = wqe_xl_req;
    if (!wqe_xl_valid && xl_valid_o) begin
      xl_req_o = '0;
      xl_req_o.is_mr = 1'b1;
      xl_req_o.pd = attr.pd;
      if (state_q == Grant) begin
        xl_req_o.key = is_atomic ? ath.rkey : reth.rkey;
        xl_req_o.access = is_atomic ? RemoteAtomic : RemoteRead;
        xl_req_o.va = is_atomic ? ath.va : reth.va;
        xl_req_o.len = is_atomic ? 32'd8 : reth.dma_len;
      end else if (is_write) begin
        // The whole rest of the message is checked, so a WRITE too long fails in its first packet.
        xl_req_o.key = rq_q.rkey;
        xl_req_o.access = RemoteWrite;
        xl_req_o.va = rq_q.va;
        xl_req_o.len = rq_q.left;
      end else begin
        xl_req_o.kernel = attr.uctx == ordma_hw_pkg::KernelUctx[15:0];
        xl_req_o.key = seg.lkey;
        xl_req_o.access = LocalWrite;
        xl_req_o.va = seg.addr;
        xl_req_o.len = seg.length;
      end
    end
    place_valid_o = state_q == Place;
    place_o = '0;
    place_o.grh = part_q == 2'd1 && left_q == 13'd34;
    place_o.from = from_q;
    place_o.addr = addr_q;
    place_o.len = seg_q;
  end

  ordma_atomic u_atomic (
    .clk_i, .rst_ni, .valid_i(state_q == Atomic), .replay_i(dup_q), .add_i(op == ordma_hw_pkg::RoceOpRcFetchAdd[4:0]),
    .addr_i(addr_q), .operand_i(ath.swap_add), .compare_i(ath.compare), .psn_i(desc_i.psn), .ring_i(attr.atomic_addr),
    .depth_i(attr.max_dest_rd_atomic), .written_i(rq_q.atomics), .done_o(atom_done), .fail_o(atom_fail), .old_o(atom_old),
    .rd_valid_o(atom_rd_valid), .rd_req_o(atom_rd_req), .rd_ready_i, .rd_rsp_valid_i, .rd_rsp_data_i(rd_rsp_data_i[127:0]),
    .rd_rsp_err_i, .eg_valid_o, .eg_o, .eg_ready_i, .eg_enq_i, .eg_out_i
  );
  assign rd_valid_o = wqe_rd_valid || atom_rd_valid;
  assign rd_req_o = atom_rd_valid ? atom_rd_req : wqe_rd_req;

  // ---------------------------------------------------------------- answers
  assign newer = ack_psn_q - rq_q.rs_ack_psn;
  always_comb begin
    rs_op_we_o = state_q == Queue;
    rs_op_o = '0;
    rs_op_o.atomic = is_atomic;
    rs_op_o.dup = dup_q;
    rs_op_o.first = 1'b1;
    rs_op_o.psn = desc_i.psn;
    rs_op_o.msn = dup_q ? rq_q.msn : rq_q.msn + 24'd1;
    rs_op_o.va = is_atomic ? old_q : reth.va;
    rs_op_o.rkey = reth.rkey;
    rs_op_o.left = is_atomic ? 32'd0 : reth.dma_len;
    rs_op_o.packets = rd_packets;
    rs_ack_we_o = state_q == Answer && rq_q.rs_count != '0 && (!rq_q.rs_ack || !newer[23] || error_q);
    rs_ack_o = '0;
    rs_ack_o.valid = 1'b1;
    rs_ack_o.syndrome = syn_q;
    rs_ack_o.psn = ack_psn_q;
    rs_ack_o.msn = rq_q.msn;
    rs_addr_o = {qp_o, rq_q.rs_head + rq_q.rs_count[ordma_pkg::RdLog-1:0] - ((state_q == Queue) ? {ordma_pkg::RdLog{1'b0}}
                                                                         : {{(ordma_pkg::RdLog-1){1'b0}}, 1'b1})};
    ack_push_o = state_q == Answer && rq_q.rs_count == '0 && !ack_full_i;
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
  end

  always_comb begin
    cqe = '0;
    post_o = '0;
    post_valid_o = state_q == Post;
    if (state_q == Post) begin
      cqe.wr_id = rq_q.rqe_wr_id;
      cqe.qpn = attr.qpn;
      cqe.opcode = ordma_hw_pkg::WcOpRecv;
      cqe.wqe_index = rq_q.rqe_index;
      cqe.status = status_q;
      cqe.is_recv = 1'b1;
      if (status_q == ordma_hw_pkg::WcStatusSuccess) begin
        if (is_write) cqe.opcode = ordma_hw_pkg::WcOpRecvRdmaWithImm;
        cqe.sl = {5'd0, desc_i.tclass[7:5]};
        cqe.byte_len = is_ud ? {19'd0, desc_i.pay_len} + ordma_hw_pkg::GrhBytes : rq_q.placed;
        if (is_ud) begin
          cqe.src_qpn = desc_i.ext[183:160];
          cqe.has_grh = 1'b1;
          cqe.ipv4 = desc_i.ipv4;
        end
        if (attr.type_ == ordma_hw_pkg::QpTypeGsi) begin
          cqe.smac = desc_i.smac;
          cqe.vlan = desc_i.has_vlan ? {4'd0, desc_i.vlan} : 16'hffff;
        end
        // Raw bytes: the first on the wire is the lowest in memory.
        if (has_imm) cqe.imm = {imm_raw[7:0], imm_raw[15:8], imm_raw[23:16], imm_raw[31:24]};
        cqe.has_imm = has_imm;
        cqe.solicited = desc_i.se;
      end
      post_o.cqn = attr.rcqn;
      post_o.special = desc_i.se || status_q != ordma_hw_pkg::WcStatusSuccess;
      post_o.cqe = cqe;
    end
    ev_valid_o = state_q == Established || (state_q == Report && !ctl_q.async_told) || (state_q == Error && !ctl_q.error_told);
    ev_o = '0;
    ev_o.kind = (state_q == Error) ? ordma_hw_pkg::EventTypeQpError : ordma_hw_pkg::EventTypeQpAsync;
    ev_o.code = (state_q == Error) ? status_q : (state_q == Report) ? async_q : ordma_hw_pkg::AsyncCodeCommEst;
    ev_o.number = attr.qpn;
    ev_o.psn = sq_q.una_psn;
    ev_o.log_index = sq_q.log_acked;
    rel_o = '0;
    if (state_q == Release) begin
      rel_o.valid = 1'b1;
      rel_o.we_ctl = we_ctl_q;
      rel_o.we_rq = we_rq_q;
      rel_o.qp = qp_o;
      rel_o.ctl = ctl_q;
      rel_o.rq = rq_q;
    end
  end
  assign kick_o = state_q == Release && rel_ready_i && kick_q;
  assign respond_o = state_q == Release && rel_ready_i && respond_q;
  assign cnt_bytes_o = desc_i.pay_len;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      attr_q <= '0;
      ctl_q <= '0;
      sq_q <= '0;
      rq_q <= '0;
      rq_pi_q <= '0;
      we_ctl_q <= 1'b0;
      we_rq_q <= 1'b0;
      kick_q <= 1'b0;
      respond_q <= 1'b0;
      left_q <= '0;
      seg_q <= '0;
      from_q <= '0;
      addr_q <= '0;
      answer_q <= 1'b0;
      report_q <= 1'b0;
      error_q <= 1'b0;
      fatal_q <= 1'b0;
      dup_q <= 1'b0;
      part_q <= '0;
      syn_q <= '0;
      status_q <= '0;
      async_q <= '0;
      ack_psn_q <= '0;
      old_q <= '0;
      cnt_o <= '0;
    end else begin
      cnt_o <= '0;
      case (state_q)
        Idle: if (desc_valid_i && !halt_i) begin
          we_ctl_q <= 1'b0;
          we_rq_q <= 1'b0;
          kick_q <= 1'b0;
          respond_q <= 1'b0;
          answer_q <= 1'b0;
          report_q <= 1'b0;
          error_q <= 1'b0;
          fatal_q <= 1'b0;
          dup_q <= 1'b0;
          part_q <= '0;
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
          state_q <= Check;
        end
        Check: begin
          if (drop) begin
            cnt_o[drop_counter[5:0]] <= 1'b1;
            state_q <= Release;
          end else begin
            cnt_o[ordma_hw_pkg::CounterRxPackets[5:0]] <= 1'b1;
            state_q <= response ? Release : Psn;
            if (is_rc && ctl_q.state == ordma_hw_pkg::QpStateRtr[3:0] && !ctl_q.est_told) state_q <= Established;
          end
        end
        Established: if (ev_ready_i) begin
          ctl_q.est_told <= 1'b1;
          we_ctl_q <= 1'b1;
          state_q <= Psn;
        end
        Psn: begin
          state_q <= Request;
          if (is_ud) begin
            state_q <= rq_q.rqe_active ? Load : Take;
            if (!rq_q.rqe_active && rq_q.ci == rq_pi_q) begin
              cnt_o[ordma_hw_pkg::CounterOutOfBuffer[5:0]] <= 1'b1;
              state_q <= Release;
            end
          end else if (!is_rc) begin
            // UC: what was begun is lost with a gap; its receive WQE serves the next message.
            if (psn_diff != '0) cnt_o[ordma_hw_pkg::CounterOutOfSequence[5:0]] <= 1'b1;
            if (psn_diff != '0 || begins) rq_q.in_msg <= 1'b0;
            rq_q.epsn <= desc_i.psn;
          end else if (psn_diff[23]) begin
            cnt_o[ordma_hw_pkg::CounterDuplicateRequest[5:0]] <= 1'b1;
            state_q <= Dup;
          end else if (psn_diff != '0) begin
            cnt_o[ordma_hw_pkg::CounterOutOfSequence[5:0]] <= 1'b1;
            ack_psn_q <= rq_q.epsn;
            syn_q <= ordma_hw_pkg::AethSyndromeNakPsn;
            // One NAK per gap: whatever follows says the same.
            rq_q.nak_sent <= 1'b1;
            we_rq_q <= 1'b1;
            state_q <= rq_q.nak_sent ? Release : Answer;
          end
        end
        // Seen before. SEND and WRITE: say again how far we are, but not across a READ or atomic whose
        // response the peer may have lost. READ: do it again. Atomic: repeat the result.
        Dup: begin
          dup_q <= 1'b1;
          if (is_read) begin
            state_q <= (full || !(rd_end[23] || rd_end == '0)) ? Release : Grant;
          end else if (is_atomic) begin
            state_q <= full ? Release : Atomic;
          end else begin
            if (!(rq_q.has_read && read_between != '0 && !read_between[23])) ack_psn_q <= rq_q.epsn - 24'd1;
            we_rq_q <= 1'b1;
            state_q <= Answer;
          end
        end
        // The expected packet.
        Request: begin
          rq_q.nak_sent <= 1'b0;
          we_rq_q <= 1'b1;
          if (begins && !is_read && !is_atomic) begin
            rq_q.placed <= '0;
            rq_q.is_write <= is_write;
            rq_q.va <= reth.va;
            rq_q.rkey <= reth.rkey;
            rq_q.left <= is_write ? reth.dma_len : 32'd0;
          end
          if (is_read) cnt_o[ordma_hw_pkg::CounterRxReadRequests[5:0]] <= 1'b1;
          if (is_atomic) cnt_o[ordma_hw_pkg::CounterRxAtomicRequests[5:0]] <= 1'b1;
          state_q <= (is_read || is_atomic) ? Grant : !needs_rqe ? Segment : rq_q.rqe_active ? Load : Take;
          if (!is_rc && (seq_bad || len_bad || denied)) begin
            rq_q.epsn <= rq_q.epsn + 24'd1;
            rq_q.in_msg <= 1'b0;
            state_q <= Release;
          end else if (seq_bad || len_bad || denied || ((is_read || is_atomic) && full_new)) begin
            syn_q <= ordma_hw_pkg::AethSyndromeNakInvReq;
            status_q <= ordma_hw_pkg::WcStatusRemInvReqErr;
            async_q <= ordma_hw_pkg::AsyncCodeReqErr;
            fatal_q <= 1'b1;
            state_q <= Finish;
          end else if ((is_read || is_atomic) && full) begin
            // Duplicates hold the places: as if it had been lost.
            rq_q <= rq_q;
            state_q <= Release;
          end else if (needs_rqe && !rq_q.rqe_active && rq_q.ci == rq_pi_q) begin
            // Not ready: nothing of this packet has happened. What follows it is out of order on purpose.
            cnt_o[ordma_hw_pkg::CounterOutOfBuffer[5:0]] <= 1'b1;
            syn_q <= ordma_hw_pkg::AethSyndromeRnr | {3'd0, attr.min_rnr_timer};
            rq_q <= rq_q;
            rq_q.nak_sent <= 1'b1;
            state_q <= Answer;
            if (!is_rc) begin
              rq_q.epsn <= rq_q.epsn + 24'd1;
              rq_q.in_msg <= 1'b0;
              state_q <= Release;
            end
          end
        end
        Take: if (wqe_done) begin
          we_rq_q <= 1'b1;
          state_q <= is_write ? Segment : Seek;
          rq_q.ci <= rq_q.ci + 24'd1;
          rq_q.rqe_active <= 1'b1;
          rq_q.rqe_wr_id <= wr_id;
          rq_q.rqe_index <= rq_q.ci[15:0];
          if (wqe_bad) begin
            status_q <= ordma_hw_pkg::WcStatusLocQpOpErr;
            syn_q <= ordma_hw_pkg::AethSyndromeNakOp;
            state_q <= Finish;
          end
        end
        Load: if (wqe_done) state_q <= is_write ? Segment : Seek;
        // All of the packet fits, or none of it is placed.
        Seek: if (wqe_done) begin
          state_q <= Segment;
          we_rq_q <= 1'b1;
          if (is_ud) begin
            left_q <= desc_i.ipv4 ? 13'd20 : 13'd6;
            from_q <= {desc_i.beat, 6'd0} + {8'd0, l3_off};
          end
          if (!wqe_fits) begin
            status_q <= ordma_hw_pkg::WcStatusLocLenErr;
            syn_q <= ordma_hw_pkg::AethSyndromeNakInvReq;
            cnt_o[ordma_hw_pkg::CounterRespLocalLengthError[5:0]] <= 1'b1;
            state_q <= Finish;
          end
        end
        Segment: begin
          if (left_q == '0 && is_ud && part_q != 2'd2) begin
            // Behind the first six bytes of an IPv6 header comes the next_header of a GRH.
            part_q <= (part_q == '0 && !desc_i.ipv4) ? 2'd1 : 2'd2;
            left_q <= (part_q == '0 && !desc_i.ipv4) ? 13'd34 : desc_i.pay_len;
            from_q <= (part_q == '0 && !desc_i.ipv4) ? from_q : {desc_i.beat, 6'd0} + {8'd0, desc_i.pay_off};
          end else if (left_q == '0) begin
            state_q <= Finish;
          end else if (xl_done_i) begin
            addr_q <= xl_rsp_i.addr;
            seg_q <= (xl_rsp_i.len < left_q) ? xl_rsp_i.len : left_q;
            state_q <= Place;
            if (xl_rsp_i.err != ordma_pkg::XlOk) begin
              state_q <= Finish;
              if (is_write && !is_rc) begin
                // UC: nobody is told; the message is over.
                rq_q.epsn <= rq_q.epsn + 24'd1;
                rq_q.in_msg <= 1'b0;
                state_q <= Release;
              end else if (is_write) begin
                syn_q <= ordma_hw_pkg::AethSyndromeNakAccess;
                status_q <= ordma_hw_pkg::WcStatusLocAccessErr;
                async_q <= ordma_hw_pkg::AsyncCodeAccessErr;
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
          if (is_write) begin
            rq_q.va <= rq_q.va + {51'd0, seg_q};
            rq_q.left <= rq_q.left - {19'd0, seg_q};
          end
          state_q <= Segment;
        end
        // READ and atomic: the right to the memory.
        Grant: if (xl_done_i || (is_read && reth.dma_len == '0)) begin
          addr_q <= xl_rsp_i.addr;
          state_q <= is_atomic ? Atomic : Queue;
          if (xl_done_i && xl_rsp_i.err != ordma_pkg::XlOk) begin
            syn_q <= ordma_hw_pkg::AethSyndromeNakAccess;
            status_q <= ordma_hw_pkg::WcStatusLocAccessErr;
            async_q <= ordma_hw_pkg::AsyncCodeAccessErr;
            fatal_q <= 1'b1;
            state_q <= Finish;
            if (dup_q) state_q <= Release;
            else cnt_o[ordma_hw_pkg::CounterRespRemoteAccessErrors[5:0]] <= 1'b1;
          end
        end
        Atomic: if (atom_done) begin
          old_q <= atom_old;
          state_q <= Queue;
          if (!dup_q) rq_q.atomics <= rq_q.atomics + 24'd1;
          if (atom_fail && dup_q) begin
            state_q <= Release;
          end else if (atom_fail) begin
            rq_q.atomics <= rq_q.atomics;
            syn_q <= ordma_hw_pkg::AethSyndromeNakOp;
            status_q <= ordma_hw_pkg::WcStatusGeneralErr;
            async_q <= ordma_hw_pkg::AsyncCodeFatal;
            fatal_q <= 1'b1;
            state_q <= Finish;
          end
        end
        Queue: begin
          rq_q.rs_count <= rq_q.rs_count + 1'b1;
          rq_q.rs_ack <= 1'b0;
          respond_q <= 1'b1;
          we_rq_q <= 1'b1;
          if (dup_q) begin
            rq_q.rs_dups <= rq_q.rs_dups + 1'b1;
          end else begin
            rq_q.epsn <= rq_q.epsn + rd_packets;
            rq_q.msn <= rq_q.msn + 24'd1;
            rq_q.has_read <= 1'b1;
            rq_q.read_psn <= rq_q.epsn + rd_packets - 24'd1;
          end
          state_q <= Release;
        end
        // Placed, or failed.
        Finish: begin
          state_q <= Release;
          if (fatal_q || status_q != ordma_hw_pkg::WcStatusSuccess) begin
            ctl_q.state <= ordma_hw_pkg::QpStateErr[3:0];
            we_ctl_q <= 1'b1;
            kick_q <= 1'b1;
            error_q <= 1'b1;
            answer_q <= is_rc;
            // The peer's fault blames no receive WQE; a fault of ours blames the one at hand.
            report_q <= fatal_q;
            if (!fatal_q) cnt_o[ordma_hw_pkg::CounterRespCqeError[5:0]] <= 1'b1;
            state_q <= fatal_q ? Answer : Post;
          end else begin
            if (!is_ud) rq_q.epsn <= rq_q.epsn + 24'd1;
            rq_q.placed <= rq_q.placed + {19'd0, desc_i.pay_len};
            rq_q.in_msg <= !ends;
            if (ends) rq_q.msn <= rq_q.msn + 24'd1;
            answer_q <= is_rc && desc_i.ack_req;
            cnt_o[ordma_hw_pkg::CounterRxBytes[5:0]] <= desc_i.pay_len != '0;
            if (is_write && begins) cnt_o[ordma_hw_pkg::CounterRxWriteRequests[5:0]] <= 1'b1;
            if (ends && needs_rqe) state_q <= Post;
            else if (is_rc && desc_i.ack_req) state_q <= Answer;
          end
        end
        Post: if (post_done_i) begin
          rq_q.rqe_active <= 1'b0;
          if (post_overflow_i) begin
            ctl_q.state <= ordma_hw_pkg::QpStateErr[3:0];
            we_ctl_q <= 1'b1;
            kick_q <= 1'b1;
          end
          state_q <= answer_q ? Answer : error_q ? Error : Release;
        end
        Answer: if (rq_q.rs_count != '0 || !ack_full_i) begin
          state_q <= report_q ? Report : error_q ? Error : Release;
          if (rs_ack_we_o) begin
            rq_q.rs_ack <= 1'b1;
            rq_q.rs_ack_psn <= ack_psn_q;
            we_rq_q <= 1'b1;
          end
        end
        Report: if (ctl_q.async_told || ev_ready_i) begin
          ctl_q.async_told <= 1'b1;
          state_q <= Error;
        end
        Error: if (ctl_q.error_told || ev_ready_i) begin
          ctl_q.error_told <= 1'b1;
          state_q <= Release;
        end
        Release: if (rel_ready_i) state_q <= Pop;
        default: state_q <= Idle;
      endcase
    end
  end

endmodule
