// SPDX-License-Identifier: BSD-2-Clause
//
// Completion queues: contexts, the CQE writer and notification. A post is answered when its CQE is in
// the egress (or dropped: overflow_o). The consumer index is cached; only when the ring looks full the
// consumer record is read. Arms are a mailbox per CQ, latest wins, so the doorbell stage never waits.
module ordma_cq (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,

  // Posts: 0 responder, 1 completer, 2 requester (unreliable QPs). Held until done, one cycle.
  input logic [2:0] post_valid_i,
  input ordma_pkg::cq_post_t post0_i,
  input ordma_pkg::cq_post_t post1_i,
  input ordma_pkg::cq_post_t post2_i,
  output logic [2:0] post_done_o,
  output logic overflow_o,

  // Command processor: create (cfg.valid) or destroy, accepted between two posts.
  input logic cfg_valid_i,
  input ordma_pkg::cq_cfg_t cfg_i,
  output logic cfg_ready_o,
  output logic [(1<<ordma_pkg::CqLog)-1:0] exists_o,

  input logic arm_we_i,
  input logic [ordma_pkg::CqLog-1:0] arm_cq_i,
  input ordma_hw_pkg::db_t arm_i,

  output logic xl_valid_o,
  output ordma_pkg::xl_req_t xl_req_o,
  input logic xl_done_i,
  input ordma_pkg::xl_rsp_t xl_rsp_i,
  output logic rd_valid_o,
  output ordma_pkg::rd_req_t rd_req_o,
  input logic rd_ready_i,
  input logic rd_rsp_valid_i,
  input logic [63:0] rd_rsp_data_i,
  input logic rd_rsp_err_i,
  output logic eg_valid_o,
  output ordma_pkg::eg_beat_t eg_o,
  input logic eg_ready_i,
  output logic ev_valid_o,
  output ordma_pkg::event_t ev_o,
  input logic ev_ready_i,
  input logic ev_crowded_i,      // CQ_FIRE waits: the CQ stays armed and owes it
  output logic cnt_overflow_o,
  output logic busy_o
);
  localparam int unsigned L = ordma_pkg::CqLog;
  typedef struct packed {
    logic error;
    logic owed;            // armed and qualified, but the event ring was crowded
    logic armed;
    logic armed_sol;
    logic special_any;
    logic [23:0] special;  // index behind the newest solicited or error CQE
    logic [23:0] pi;
    logic [23:0] ci;       // what the consumer was last known to have reached
  } dyn_t;
  localparam int unsigned DynW = 77;
  typedef enum logic [3:0] { Idle, Load, Look, Rec, RecWait, Full, Xlate, Write, Fire, Over, Save, Done } state_e;
  state_e state_q;

  logic [(1<<L)-1:0] valid_q;
  logic [L-1:0] cq_q, arm_idx;
  logic [ordma_pkg::CqCfgW-1:0] cfg_r;
  logic [DynW-1:0] dyn_r;
  logic [63:0] arm_r;
  ordma_pkg::cq_cfg_t cfg_q;
  dyn_t dyn_q;
  ordma_hw_pkg::db_t arm;
  logic is_owed_q, owed_pick, owed_any, owed_pop, defer;
  logic [L-1:0] owed_idx;
  logic is_arm_q, overflow_q, looked_q;
  logic arm_pick, arm_any, arm_pop;
  ordma_pkg::cq_post_t post;
  ordma_hw_pkg::cqe_t cqe;
  ordma_hw_pkg::cq_record_t rec;
  logic [24:0] size;
  logic [23:0] used, slot, unseen, special_ahead;
  logic full;
  logic [63:0] addr_q;
  logic [1:0] which_q, post_pick;
  logic post_any, post_take;

  assign busy_o = state_q != Idle || arm_any || (owed_any && !ev_crowded_i);
  assign defer = state_q == Fire && ev_crowded_i;
  assign exists_o = valid_q;
  assign post_take = state_q == Idle && !cfg_valid_i && post_any;
  ordma_arb #(.N(3), .W(2)) u_posts (
    .clk_i, .rst_ni, .req_i(post_valid_i), .accept_i(post_take), .valid_o(post_any), .index_o(post_pick)
  );
  always_comb begin
    case (which_q)
      2'd0: post = post0_i;
      2'd1: post = post1_i;
      default: post = post2_i;
    endcase
  end
  assign size = 25'd1 << cfg_q.log;
  assign used = dyn_q.pi - dyn_q.ci;
  assign full = {1'b0, used} >= size;
  assign slot = dyn_q.pi & ~(24'hff_ffff << cfg_q.log);
  assign arm = arm_r;
  assign unseen = dyn_q.pi - arm.index;
  assign special_ahead = dyn_q.special - arm.index;
  assign rec = rd_rsp_data_i;
  assign cfg_ready_o = state_q == Idle && cfg_valid_i;
  assign arm_pop = state_q == Idle && !cfg_valid_i && post_valid_i == '0 && arm_pick;

  assign owed_pop = state_q == Idle && !cfg_valid_i && post_valid_i == '0 && !arm_pick && owed_pick && !ev_crowded_i;
  ordma_pending #(.Log(L), .N(1)) u_owed (
    .clk_i, .rst_ni, .set_i(defer), .index_i(cq_q), .valid_o(owed_pick), .index_o(owed_idx), .pop_i(owed_pop), .any_o(owed_any)
  );
  ordma_pending #(.Log(L), .N(1)) u_arms (
    .clk_i, .rst_ni, .set_i(arm_we_i), .index_i(arm_cq_i), .valid_o(arm_pick), .index_o(arm_idx),
    .pop_i(arm_pop), .any_o(arm_any)
  );
  ordma_ram #(.W(64), .Log(L)) u_arm (
    .clk_i, .we_i(arm_we_i), .waddr_i(arm_cq_i), .wdata_i(arm_i),
    .re_i(state_q == Load), .raddr_i(cq_q), .rdata_o(arm_r)
  );
  ordma_ram #(.W(ordma_pkg::CqCfgW), .Log(L)) u_cfg (
    .clk_i, .we_i(cfg_ready_o), .waddr_i(cfg_i.cqn[L-1:0]), .wdata_i(cfg_i),
    .re_i(state_q == Load), .raddr_i(cq_q), .rdata_o(cfg_r)
  );
  ordma_ram #(.W(DynW), .Log(L)) u_dyn (
    .clk_i, .we_i(cfg_ready_o || state_q == Save), .waddr_i(cfg_ready_o ? cfg_i.cqn[L-1:0] : cq_q),
    .wdata_i(cfg_ready_o ? {DynW{1'b0}} : dyn_q),
    .re_i(state_q == Load), .raddr_i(cq_q), .rdata_o(dyn_r)
  );

  assign post_done_o = (state_q == Done && !is_arm_q && !is_owed_q) ? 3'd1 << which_q : 3'd0;
  assign overflow_o = overflow_q;
  assign cnt_overflow_o = state_q == Over && ev_ready_i;

  always_comb begin
    xl_valid_o = state_q == Xlate;
    xl_req_o = '0;
    xl_req_o.level = cfg_q.level;
    xl_req_o.page_log = cfg_q.page_log;
    xl_req_o.addr = cfg_q.addr;
    xl_req_o.va = {34'd0, slot, 6'd0};
    xl_req_o.len = 32'd64;
    rd_valid_o = state_q == Rec;
    rd_req_o = '0;
    rd_req_o.addr = cfg_q.record;
    rd_req_o.len = 13'd8;
  end

  always_comb begin
    eg_valid_o = state_q == Write;
    eg_o = '0;
    cqe = '0;
    if (state_q == Write) begin
      cqe = post.cqe;
      cqe.timestamp = time_i;
      cqe.phase = ((dyn_q.pi >> cfg_q.log) & 24'd1) == '0;
      eg_o.addr = addr_q;
      eg_o.len = 13'd64;
      eg_o.kind = ordma_pkg::KindCqe;
      eg_o.last = 1'b1;
      eg_o.data = cqe;
    end
    ev_valid_o = (state_q == Fire && !ev_crowded_i) || state_q == Over;
    ev_o = '0;
    ev_o.kind = (state_q == Fire) ? ordma_hw_pkg::EventTypeCqFire : ordma_hw_pkg::EventTypeCqError;
    ev_o.number = cfg_q.cqn;
    ev_o.vec = (state_q == Fire) ? cfg_q.vec : 8'd0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      valid_q <= '0;
      cq_q <= '0;
      cfg_q <= '0;
      dyn_q <= '0;
      is_arm_q <= 1'b0;
      is_owed_q <= 1'b0;
      which_q <= '0;
      overflow_q <= 1'b0;
      looked_q <= 1'b0;
      addr_q <= '0;
    end else begin
      case (state_q)
        Idle: begin
          overflow_q <= 1'b0;
          looked_q <= 1'b0;
          if (cfg_valid_i) begin
            valid_q[cfg_i.cqn[L-1:0]] <= cfg_i.valid;
          end else if (post_valid_i != '0) begin
            which_q <= post_pick;
            cq_q <= (post_pick == 2'd0) ? post0_i.cqn[L-1:0] : (post_pick == 2'd1) ? post1_i.cqn[L-1:0] : post2_i.cqn[L-1:0];
            is_arm_q <= 1'b0;
            is_owed_q <= 1'b0;
            state_q <= Load;
          end else if (arm_pick) begin
            cq_q <= arm_idx;
            is_arm_q <= 1'b1;
            is_owed_q <= 1'b0;
            state_q <= Load;
          end else if (owed_pop) begin
            cq_q <= owed_idx;
            is_arm_q <= 1'b0;
            is_owed_q <= 1'b1;
            state_q <= Load;
          end
        end
        Load: state_q <= Look;
        Look: begin
          cfg_q <= cfg_r;
          dyn_q <= dyn_r;
          state_q <= Full;
          if (!valid_q[cq_q]) state_q <= Done;
        end
        // What to do, now that the context is here (again after a look at the consumer record).
        Full: begin
          if (is_owed_q) begin
            state_q <= dyn_q.owed ? Fire : Done;
          end else if (is_arm_q) begin
            dyn_q.owed <= 1'b0;
            dyn_q.armed <= 1'b0;
            state_q <= Fire;
            if (!(arm.fire_now || dyn_q.error
                  || (arm.solicited ? dyn_q.special_any && special_ahead != '0 && !special_ahead[23]
                                    : unseen != '0))) begin
              dyn_q.armed <= 1'b1;
              dyn_q.armed_sol <= arm.solicited;
              state_q <= Save;
            end
          end else if (dyn_q.error) begin
            overflow_q <= 1'b1;
            state_q <= Done;
          end else if (!full) begin
            state_q <= Xlate;
          end else if (!looked_q && cfg_q.record != '0) begin
            state_q <= Rec;
          end else begin
            dyn_q.error <= 1'b1;
            overflow_q <= 1'b1;
            state_q <= Over;
          end
        end
        Rec: if (rd_ready_i) state_q <= RecWait;
        RecWait: if (rd_rsp_valid_i) begin
          looked_q <= 1'b1;
          if (!rd_rsp_err_i) dyn_q.ci <= rec.ci;
          state_q <= Full;
        end
        Xlate: if (xl_done_i) begin
          addr_q <= xl_rsp_i.addr;
          state_q <= Write;
          if (xl_rsp_i.err != ordma_pkg::XlOk) begin
            dyn_q.error <= 1'b1;
            overflow_q <= 1'b1;
            state_q <= Over;
          end
        end
        Write: if (eg_ready_i) begin
          dyn_q.pi <= dyn_q.pi + 1'b1;
          if (post.special) begin
            dyn_q.special_any <= 1'b1;
            dyn_q.special <= dyn_q.pi + 1'b1;
          end
          state_q <= Save;
          if (dyn_q.armed && !dyn_q.owed && (!dyn_q.armed_sol || post.special)) begin
            state_q <= Fire;
          end
        end
        Fire: if (ev_ready_i || ev_crowded_i) begin
          dyn_q.armed <= ev_crowded_i;
          dyn_q.owed <= ev_crowded_i;
          state_q <= Save;
        end
        Over: if (ev_ready_i) state_q <= Save;
        Save: state_q <= Done;
        default: state_q <= Idle;
      endcase
    end
  end
endmodule
