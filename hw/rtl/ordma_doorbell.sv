// SPDX-License-Identifier: BSD-2-Clause
//
// Doorbell stage: one word at a time, always drains (what it waits for, the egress and the event ring,
// drains always). Checks the page and that page and object have one owner, then writes the producer
// index and wakes who works on it. Index words are absolute and idempotent: one that is behind the
// known index is an old one and is ignored. A refused word is counted, reported once per page by
// event, and written to the page record.
module ordma_doorbell (
  input logic clk_i,
  input logic rst_ni,
  input logic db_valid_i,
  output logic db_ready_o,
  input logic [15:0] db_page_i,
  input logic [11:0] db_offset_i,
  input logic [63:0] db_word_i,
  input logic [7:0] db_strobe_i,

  // Configuration by the command processor. A write of an object clears its indices.
  input logic page_we_i,
  input logic [ordma_pkg::PageLog-1:0] page_addr_i,
  input ordma_pkg::page_t page_i,
  input logic qp_we_i,
  input logic qp_clear_i,
  input logic [ordma_pkg::QpLog-1:0] qp_addr_i,
  input ordma_pkg::dbobj_t qp_i,
  input logic cq_we_i,
  input logic [ordma_pkg::CqLog-1:0] cq_addr_i,
  input ordma_pkg::dbobj_t cq_i,

  // Producer indices.
  output logic pi_we_o,
  output logic pi_rq_o,
  output logic [ordma_pkg::QpLog-1:0] pi_qp_o,
  output logic [23:0] pi_o,
  output logic pi_clear_o,
  output logic sq_wake_o,
  output logic rq_wake_o,
  output logic arm_we_o,
  output logic [ordma_pkg::CqLog-1:0] arm_cq_o,
  output ordma_hw_pkg::db_t arm_o,
  output logic [23:0] cmd_pi_o,
  output logic [23:0] rcmd_pi_o,

  input logic start_i,               // the command rings begin anew
  input logic [23:0] eq_ci_i,
  input logic [23:0] ev_index_i,
  output logic ev_valid_o,
  output ordma_pkg::event_t ev_o,
  input logic ev_ready_i,
  output logic eg_valid_o,
  output ordma_pkg::eg_beat_t eg_o,
  input logic eg_ready_i,
  output logic cnt_word_o,
  output logic cnt_refused_o,
  output logic busy_o
);
  localparam int unsigned PL = ordma_pkg::PageLog;
  localparam int unsigned QL = ordma_pkg::QpLog;
  localparam int unsigned CL = ordma_pkg::CqLog;
  localparam int unsigned StatW = 8 + 64 + 32 + 32;
  typedef enum logic [2:0] { Idle, Page, Object, Check, Event, Record } state_e;
  state_e state_q;

  logic [15:0] page_q;
  logic [2:0] low_q;
  ordma_hw_pkg::db_t word_q;
  logic [7:0] strobe_q;
  logic [(1<<PL)-1:0] page_valid_q, told_q;
  logic [PL-1:0] page_idx;
  logic [ordma_pkg::PageW-1:0] page_r;
  ordma_pkg::page_t page, page_entry_q;
  logic [ordma_pkg::DbObjW-1:0] qp_r, cq_r;
  ordma_pkg::dbobj_t qp, cq;
  logic [(1<<QL)-1:0] qp_valid_q;
  logic [(1<<CL)-1:0] cq_valid_q;
  logic [23:0] sq_pi_r, rq_pi_r, known, ahead;
  logic [24:0] size;
  logic [7:0] reason, reason_q;
  logic [StatW-1:0] stat_r;
  logic [31:0] consumed, errors, consumed_q, errors_q;
  logic [63:0] bad_q;
  logic [7:0] bad_reason_q;
  logic fresh, is_sq, is_rq;
  logic batch, check, tell;
  logic [23:0] told_at[0:(1<<PL)-1];  // the PAGE_ERROR that was not read yet
  logic [23:0] told_ago;
  ordma_hw_pkg::page_record_t record;
  logic [QL-1:0] clear_addr;

  // A change of the tables has the right of way: it may clear what this word is about to set.
  assign check = state_q == Check && !page_we_i && !qp_we_i && !cq_we_i;
  assign told_ago = eq_ci_i - told_at[page_idx];
  // Told again when the driver has read the last one.
  assign tell = !told_q[page_idx] || (told_ago != '0 && !told_ago[23]);
  assign page_idx = page_q[PL-1:0];
  assign db_ready_o = state_q == Idle && !page_we_i && !qp_we_i && !cq_we_i;
  assign busy_o = state_q != Idle;
  assign page = page_r;
  assign qp = qp_r;
  assign cq = cq_r;
  assign is_sq = word_q.kind == ordma_hw_pkg::DbKindSq;
  assign is_rq = word_q.kind == ordma_hw_pkg::DbKindRq;

  ordma_ram #(.W(ordma_pkg::PageW), .Log(PL)) u_page (
    .clk_i, .we_i(page_we_i), .waddr_i(page_addr_i), .wdata_i(page_i),
    .re_i(state_q == Page), .raddr_i(page_idx), .rdata_o(page_r)
  );
  // reason, last refused word, errors, consumed
  ordma_ram #(.W(StatW), .Log(PL)) u_stat (
    .clk_i, .we_i(page_we_i || check), .waddr_i(page_we_i ? page_addr_i : page_idx),
    .wdata_i(page_we_i ? {StatW{1'b0}} :
             (reason == ordma_hw_pkg::DbErrNone) ? {stat_r[StatW-1:64], errors, consumed}
                                                 : {reason, word_q, errors, consumed}),
    .re_i(state_q == Page), .raddr_i(page_idx), .rdata_o(stat_r)
  );
  ordma_ram #(.W(ordma_pkg::DbObjW), .Log(QL)) u_qp (
    .clk_i, .we_i(qp_we_i), .waddr_i(qp_addr_i), .wdata_i(qp_i),
    .re_i(state_q == Page), .raddr_i(word_q.number[QL-1:0]), .rdata_o(qp_r)
  );
  ordma_ram #(.W(ordma_pkg::DbObjW), .Log(CL)) u_cq (
    .clk_i, .we_i(cq_we_i), .waddr_i(cq_addr_i), .wdata_i(cq_i),
    .re_i(state_q == Page), .raddr_i(word_q.number[CL-1:0]), .rdata_o(cq_r)
  );
  assign clear_addr = qp_we_i ? qp_addr_i : pi_qp_o;
  ordma_ram #(.W(24), .Log(QL)) u_sq_pi (
    .clk_i, .we_i(pi_clear_o || (pi_we_o && !pi_rq_o)), .waddr_i(clear_addr),
    .wdata_i(pi_clear_o ? 24'd0 : pi_o), .re_i(state_q == Page), .raddr_i(word_q.number[QL-1:0]), .rdata_o(sq_pi_r)
  );
  ordma_ram #(.W(24), .Log(QL)) u_rq_pi (
    .clk_i, .we_i(pi_clear_o || (pi_we_o && pi_rq_o)), .waddr_i(clear_addr),
    .wdata_i(pi_clear_o ? 24'd0 : pi_o), .re_i(state_q == Page), .raddr_i(word_q.number[QL-1:0]), .rdata_o(rq_pi_r)
  );

  assign known = is_rq ? rq_pi_r : sq_pi_r;
  assign ahead = word_q.index - known;
  assign size = 25'd1 << (is_rq ? qp.rq_log : qp.sq_log);
  assign fresh = ahead != '0 && !ahead[23];
  assign consumed = stat_r[31:0] + 32'd1;
  assign errors = stat_r[63:32] + {31'd0, reason != ordma_hw_pkg::DbErrNone};
  assign batch = consumed % ordma_hw_pkg::PageCreditBatch == '0;

  // Verdict on the word, in state Check: the first rule that is broken names it.
  always_comb begin
    reason = ordma_hw_pkg::DbErrNone;
    if (check) begin
      if (strobe_q != 8'hff || low_q != '0 || word_q.lap_lo || word_q.lap_hi) begin
        reason = ordma_hw_pkg::DbErrMalformed;
      end else if (is_sq || is_rq) begin
        if (word_q.number[13:QL] != '0 || !qp_valid_q[word_q.number[QL-1:0]] || qp.number != word_q.number
            || (is_sq ? !qp.has_sq : !qp.has_rq)) begin
          reason = ordma_hw_pkg::DbErrNoObject;
        end else if (qp.uctx != page_entry_q.uctx) begin
          reason = ordma_hw_pkg::DbErrNotOwner;
        end else if (fresh && {1'b0, ahead} > size) begin
          reason = ordma_hw_pkg::DbErrBadIndex;
        end
      end else if (word_q.kind == ordma_hw_pkg::DbKindCqArm) begin
        if (word_q.number[23:CL] != '0 || !cq_valid_q[word_q.number[CL-1:0]]) begin
          reason = ordma_hw_pkg::DbErrNoObject;
        end else if (cq.uctx != page_entry_q.uctx) begin
          reason = ordma_hw_pkg::DbErrNotOwner;
        end
      end else if ((word_q.kind != ordma_hw_pkg::DbKindCmd && word_q.kind != ordma_hw_pkg::DbKindRcmd)
                   || page_q != ordma_hw_pkg::DriverPage[15:0]) begin
        reason = ordma_hw_pkg::DbErrMalformed;
      end
    end
  end

  assign cnt_word_o = check;
  assign cnt_refused_o = check && reason != ordma_hw_pkg::DbErrNone;
  assign pi_clear_o = qp_we_i && qp_clear_i;
  assign pi_qp_o = qp_we_i ? qp_addr_i : word_q.number[QL-1:0];
  assign pi_rq_o = is_rq;
  assign pi_o = word_q.index;
  assign arm_cq_o = word_q.number[CL-1:0];
  assign arm_o = word_q;

  always_comb begin
    pi_we_o = 1'b0;
    sq_wake_o = 1'b0;
    rq_wake_o = 1'b0;
    arm_we_o = 1'b0;
    if (check && reason == ordma_hw_pkg::DbErrNone) begin
      pi_we_o = (is_sq || is_rq) && fresh;
      sq_wake_o = is_sq && fresh;
      rq_wake_o = is_rq && fresh;
      arm_we_o = word_q.kind == ordma_hw_pkg::DbKindCqArm;
    end
  end

  always_comb begin
    record = '0;
    record.consumed = consumed_q;
    record.errors = errors_q;
    record.bad_word = bad_q;
    record.reason = bad_reason_q;
    eg_valid_o = state_q == Record;
    eg_o = '0;
    eg_o.addr = page_entry_q.record;
    eg_o.len = 13'd32;
    eg_o.kind = ordma_pkg::KindRecord;
    eg_o.last = 1'b1;
    eg_o.data = {256'd0, record};
    ev_valid_o = state_q == Event;
    ev_o = '0;
    ev_o.kind = ordma_hw_pkg::EventTypePageError;
    ev_o.code = reason_q;
    ev_o.number = {8'd0, page_q};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      page_q <= '0;
      low_q <= '0;
      word_q <= '0;
      strobe_q <= '0;
      page_valid_q <= '0;
      told_q <= '0;
      qp_valid_q <= '0;
      cq_valid_q <= '0;
      page_entry_q <= '0;
      reason_q <= '0;
      consumed_q <= '0;
      errors_q <= '0;
      bad_q <= '0;
      bad_reason_q <= '0;
      cmd_pi_o <= '0;
      rcmd_pi_o <= '0;
    end else begin
      if (page_we_i) begin
        page_valid_q[page_addr_i] <= page_i.valid;
        told_q[page_addr_i] <= 1'b0;
      end
      if (qp_we_i) qp_valid_q[qp_addr_i] <= qp_i.valid;
      if (cq_we_i) cq_valid_q[cq_addr_i] <= cq_i.valid;
      case (state_q)
        Idle: if (db_valid_i && db_ready_o) begin
          page_q <= db_page_i;
          low_q <= db_offset_i[2:0];
          word_q <= db_word_i;
          strobe_q <= db_strobe_i;
          state_q <= Page;
        end
        Page: begin
          state_q <= Object;
          // A page that is not open belongs to nobody: nothing to check, nobody to tell.
          if (page_q[15:PL] != '0 || (page_q != '0 && !page_valid_q[page_idx])) state_q <= Idle;
        end
        Object: begin
          page_entry_q <= page;
          if (page_q == '0) page_entry_q <= '0;
          state_q <= Check;
        end
        Check: if (check) begin
          reason_q <= reason;
          consumed_q <= consumed;
          errors_q <= errors;
          bad_q <= (reason == ordma_hw_pkg::DbErrNone) ? stat_r[127:64] : word_q;
          bad_reason_q <= (reason == ordma_hw_pkg::DbErrNone) ? stat_r[135:128] : reason;
          state_q <= Idle;
          if (reason == ordma_hw_pkg::DbErrNone) begin
            if (word_q.kind == ordma_hw_pkg::DbKindCmd) cmd_pi_o <= word_q.index;
            if (word_q.kind == ordma_hw_pkg::DbKindRcmd) rcmd_pi_o <= word_q.index;
            if (batch && page_entry_q.record != '0) state_q <= Record;
          end else if (tell) begin
            told_q[page_idx] <= 1'b1;
            state_q <= Event;
          end else if (page_entry_q.record != '0) begin
            state_q <= Record;
          end
        end
        Event: if (ev_ready_i) begin
          told_at[page_idx] <= ev_index_i;
          state_q <= (page_entry_q.record != '0) ? Record : Idle;
        end
        default: if (eg_ready_i) state_q <= Idle;
      endcase
      if (start_i) begin
        cmd_pi_o <= '0;
        rcmd_pi_o <= '0;
      end
    end
  end
endmodule
