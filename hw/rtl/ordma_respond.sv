// SPDX-License-Identifier: BSD-2-Clause
//
// Sends what the responder owes: READ responses packet by packet, atomic responses, and the ACK or NAK
// behind each, in the order of the requests. Serves one QP per visit, for a quantum of packets. Data is
// read only after every write that was in the egress when the visit began, so a READ sees what the
// peer wrote before it. An MR that went away under an accepted READ ends the QP with a NAK.
module ordma_respond #(
  parameter int unsigned QUANTUM = 16
) (
  input logic clk_i,
  input logic rst_ni,
  input logic halt_i,

  input logic pend_valid_i,
  input logic [ordma_pkg::QpLog-1:0] pend_qp_i,
  output logic pend_pop_o,
  output logic again_o,
  output logic kick_o,
  output logic [ordma_pkg::QpLog-1:0] qp_o,

  output logic acq_valid_o,
  input logic gnt_i,
  input ordma_pkg::qp_ctx_t ctx_i,
  output ordma_pkg::qp_rel_t rel_o,
  input logic rel_ready_i,

  output logic ring_re_o,
  output logic [ordma_pkg::QpLog+ordma_pkg::RdLog-1:0] ring_addr_o,
  input ordma_pkg::rs_op_t op_i,
  input ordma_pkg::rs_ack_t ack_i,
  output logic ring_we_o,
  output ordma_pkg::rs_op_t op_o,
  input logic ring_ready_i,

  output logic xl_valid_o,
  output ordma_pkg::xl_req_t xl_req_o,
  input logic xl_done_i,
  input ordma_pkg::xl_rsp_t xl_rsp_i,
  input logic [15:0] eg_enq_i,
  input logic [15:0] eg_out_i,

  output logic chunk_push_o,
  output ordma_pkg::chunk_t chunk_o,
  output logic chunk_commit_o,
  output logic chunk_abort_o,
  input logic chunk_full_i,
  output logic desc_push_o,
  output ordma_pkg::tx_desc_t desc_o,
  input logic desc_ready_i,

  output logic ev_valid_o,
  output ordma_pkg::event_t ev_o,
  input logic ev_ready_i,
  output logic cnt_access_o,
  output logic busy_o
);
  localparam logic [7:0] RemoteRead = ordma_hw_pkg::AccessRemoteRead;
  typedef enum logic [4:0] {
    Idle, Acquire, Begin, Fence, Load, LoadWait, Take, Packet, Xlate, Piece, Send, Step, Behind, Next, Save, Refuse,
    Async, Error, Release
  } state_e;
  state_e state_q;

  logic [ordma_pkg::QpLog-1:0] qp_q;
  ordma_hw_pkg::qpc_t attr;
  logic [ordma_pkg::AttrW-1:0] attr_q;
  ordma_pkg::qp_ctl_t ctl_q;
  ordma_pkg::qp_sq_t sq_q;
  ordma_pkg::qp_rq_t rq_q;
  ordma_pkg::rs_op_t op_q;
  ordma_pkg::rs_ack_t ack_q;
  logic [15:0] fence_q;
  logic [4:0] sent_q;
  logic again_q, kick_q, write_ctl_q;
  logic last, aeth, quiet;
  logic [12:0] mtu;
  logic [ordma_pkg::LenW-1:0] pay, pkt_q, xl_len;
  logic [63:0] addr_q, va_q;
  logic [ordma_pkg::LenW-1:0] xl_len_q;
  logic [4:0] base;

  assign attr = {1024'd0, attr_q};
  assign busy_o = state_q != Idle;
  assign qp_o = qp_q;
  assign mtu = 13'd1 << attr.mtu_log;
  assign last = op_q.packets == 24'd1;
  assign pay = last ? op_q.left[12:0] : mtu;
  assign quiet = op_q.dup || ctl_q.state == ordma_hw_pkg::QpStateErr[3:0];
  assign aeth = op_q.first || last;
  assign pend_pop_o = state_q == Idle && pend_valid_i && !halt_i;
  assign acq_valid_o = state_q == Acquire;
  assign ring_re_o = state_q == Load;
  assign ring_addr_o = {qp_q, rq_q.rs_head};
  assign ring_we_o = state_q == Save;
  assign op_o = op_q;
  assign xl_len = (xl_len_q < pkt_q) ? xl_len_q : pkt_q;
  assign again_o = state_q == Release && rel_ready_i && again_q;
  assign kick_o = state_q == Release && rel_ready_i && kick_q;
  assign cnt_access_o = state_q == Async && ev_ready_i;

  always_comb begin
    xl_valid_o = state_q == Xlate;
    xl_req_o = '0;
    xl_req_o.is_mr = 1'b1;
    xl_req_o.key = op_q.rkey;
    xl_req_o.pd = attr.pd;
    xl_req_o.access = RemoteRead;
    xl_req_o.va = va_q;
    xl_req_o.len = {19'd0, pkt_q};
    chunk_push_o = state_q == Piece && !chunk_full_i;
    chunk_o = '0;
    chunk_o.addr = addr_q;
    chunk_o.len = xl_len;
    chunk_o.last = xl_len == pkt_q;
    chunk_commit_o = state_q == Send && desc_ready_i;
    chunk_abort_o = state_q == Refuse;
    desc_push_o = (state_q == Send || state_q == Behind || (state_q == Refuse && !quiet)) && desc_ready_i;
  end

  always_comb begin
    case ({op_q.first, last})
      2'b10: base = ordma_hw_pkg::RoceOpRcReadRspFirst[4:0];
      2'b00: base = ordma_hw_pkg::RoceOpRcReadRspMiddle[4:0];
      2'b01: base = ordma_hw_pkg::RoceOpRcReadRspLast[4:0];
      default: base = ordma_hw_pkg::RoceOpRcReadRspOnly[4:0];
    endcase
    desc_o = '0;
    if (state_q == Send || state_q == Behind || state_q == Refuse) begin
      desc_o.dest_qpn = attr.dest_qpn;
      desc_o.gid = attr.sgid_index[ordma_pkg::GidLog-1:0];
      desc_o.dmac = attr.dmac;
      desc_o.dgid = attr.dgid;
      desc_o.hop_limit = attr.hop_limit;
      desc_o.tclass = attr.tclass;
      desc_o.flow_label = attr.flow_label;
      desc_o.sport = attr.sport;
      desc_o.psn = op_q.psn;
      if (state_q == Send && op_q.atomic) begin
        desc_o.opcode = ordma_hw_pkg::RoceOpRcAtomicAck;
        desc_o.ext_len = 5'd12;
        desc_o.ext = {ordma_hw_pkg::AethSyndromeAck, op_q.msn, op_q.va, 128'd0};
      end else if (state_q == Send) begin
        desc_o.opcode = {3'd0, base};
        desc_o.pay_len = pay;
        desc_o.ext_len = aeth ? 5'd4 : 5'd0;
        if (aeth) desc_o.ext = {ordma_hw_pkg::AethSyndromeAck, op_q.msn, 192'd0};
      end else begin
        desc_o.opcode = ordma_hw_pkg::RoceOpRcAck;
        desc_o.ext_len = 5'd4;
        desc_o.ext = {ack_q.syndrome, ack_q.msn, 192'd0};
        if (state_q == Behind) desc_o.psn = ack_q.psn;
        else desc_o.ext = {ordma_hw_pkg::AethSyndromeNakAccess, op_q.msn, 192'd0};
      end
    end
    rel_o = '0;
    if (state_q == Release) begin
      rel_o.valid = 1'b1;
      rel_o.we_ctl = write_ctl_q;
      rel_o.we_rq = 1'b1;
      rel_o.qp = qp_q;
      rel_o.ctl = ctl_q;
      rel_o.rq = rq_q;
    end
    ev_valid_o = (state_q == Async && !ctl_q.async_told) || (state_q == Error && !ctl_q.error_told);
    ev_o = '0;
    ev_o.number = attr.qpn;
    ev_o.psn = sq_q.una_psn;
    ev_o.log_index = sq_q.log_acked;
    ev_o.kind = (state_q == Async) ? ordma_hw_pkg::EventTypeQpAsync : ordma_hw_pkg::EventTypeQpError;
    ev_o.code = (state_q == Async) ? ordma_hw_pkg::AsyncCodeAccessErr : ordma_hw_pkg::WcStatusLocAccessErr;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      qp_q <= '0;
      attr_q <= '0;
      ctl_q <= '0;
      sq_q <= '0;
      rq_q <= '0;
      op_q <= '0;
      ack_q <= '0;
      fence_q <= '0;
      sent_q <= '0;
      again_q <= 1'b0;
      kick_q <= 1'b0;
      write_ctl_q <= 1'b0;
      pkt_q <= '0;
      addr_q <= '0;
      va_q <= '0;
      xl_len_q <= '0;
    end else begin
      case (state_q)
        Idle: if (pend_pop_o) begin
          qp_q <= pend_qp_i;
          sent_q <= '0;
          again_q <= 1'b0;
          kick_q <= 1'b0;
          write_ctl_q <= 1'b0;
          state_q <= Acquire;
        end
        Acquire: if (gnt_i) begin
          attr_q <= ctx_i.attr;
          ctl_q <= ctx_i.ctl;
          sq_q <= ctx_i.sq;
          rq_q <= ctx_i.rq;
          fence_q <= eg_enq_i;
          state_q <= Begin;
        end
        Begin: state_q <= (!ctl_q.valid || rq_q.rs_count == '0) ? Release : Fence;
        Fence: if (eg_out_i == fence_q || (fence_q - eg_out_i) > 16'h8000) state_q <= Load;
        Load: state_q <= LoadWait;
        LoadWait: begin
          op_q <= op_i;
          ack_q <= ack_i;
          state_q <= Take;
        end
        Take: begin
          state_q <= Packet;
          if (op_q.packets == '0) state_q <= ack_q.valid ? Behind : Next;
        end
        Packet: begin
          va_q <= op_q.va;
          pkt_q <= pay;
          state_q <= (op_q.atomic || pay == '0) ? Send : Xlate;
          if (sent_q >= QUANTUM[4:0]) begin
            again_q <= 1'b1;
            state_q <= Save;
          end
        end
        Xlate: if (xl_done_i) begin
          addr_q <= xl_rsp_i.addr;
          xl_len_q <= xl_rsp_i.len;
          state_q <= (xl_rsp_i.err == ordma_pkg::XlOk) ? Piece : Refuse;
        end
        Piece: if (!chunk_full_i) begin
          va_q <= va_q + {51'd0, xl_len};
          pkt_q <= pkt_q - xl_len;
          state_q <= (xl_len == pkt_q) ? Send : Xlate;
        end
        Send: if (desc_ready_i) begin
          sent_q <= sent_q + 1'b1;
          state_q <= Step;
        end
        Step: begin
          op_q.first <= 1'b0;
          op_q.psn <= op_q.psn + 24'd1;
          op_q.packets <= op_q.packets - 24'd1;
          if (!op_q.atomic) begin
            op_q.va <= op_q.va + {51'd0, pay};
            op_q.left <= op_q.left - {19'd0, pay};
          end
          state_q <= last ? (ack_q.valid ? Behind : Next) : Packet;
        end
        Behind: if (desc_ready_i) state_q <= Next;
        Next: begin
          rq_q.rs_head <= rq_q.rs_head + 1'b1;
          rq_q.rs_count <= rq_q.rs_count - 1'b1;
          if (op_q.dup) rq_q.rs_dups <= rq_q.rs_dups - 1'b1;
          if (rq_q.rs_count == {{ordma_pkg::RdLog{1'b0}}, 1'b1}) rq_q.rs_ack <= 1'b0;
          state_q <= (rq_q.rs_count == {{ordma_pkg::RdLog{1'b0}}, 1'b1}) ? Release : Load;
        end
        Save: if (ring_ready_i) state_q <= Release;
        // A late duplicate must not kill a QP whose peer was content long ago.
        Refuse: if (desc_ready_i || quiet) begin
          rq_q.rs_count <= '0;
          rq_q.rs_dups <= '0;
          rq_q.rs_ack <= 1'b0;
          state_q <= Async;
          if (quiet) state_q <= Release;
        end
        Async: if (ctl_q.async_told || ev_ready_i) state_q <= Error;
        Error: if (ctl_q.error_told || ev_ready_i) begin
          ctl_q.async_told <= 1'b1;
          ctl_q.error_told <= 1'b1;
          ctl_q.state <= ordma_hw_pkg::QpStateErr[3:0];
          write_ctl_q <= 1'b1;
          kick_q <= 1'b1;
          state_q <= Release;
        end
        default: if (rel_ready_i) state_q <= Idle;
      endcase
    end
  end
endmodule
