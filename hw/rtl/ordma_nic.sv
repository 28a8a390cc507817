// SPDX-License-Identifier: BSD-2-Clause
//
// The NIC: wires the blocks together and decides nothing. Ports are those of a board wrapper (PCIe,
// MAC) or of the Verilated engine; both drive the same ones.
module ordma_nic #(
  parameter int unsigned DATA_W = ordma_pkg::DataW
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,           // device clock, ns
  // Identity, constant.
  input logic [63:0] mac_i,
  input logic [63:0] guid_i,
  input logic [31:0] port_mtu_i,
  input logic [31:0] port_speed_i,
  input logic [7:0] engine_i,

  input logic reg_we_i,
  input logic [ordma_hw_pkg::RegAddrW-1:0] reg_waddr_i,
  input logic [63:0] reg_wdata_i,
  input logic [ordma_hw_pkg::RegAddrW-1:0] reg_raddr_i,
  output logic [63:0] reg_rdata_o,
  output logic [63:0] reg_status_o,
  output logic [63:0] reg_reset_echo_o,

  input logic db_valid_i,
  output logic db_ready_o,
  input logic [15:0] db_page_i,
  input logic [11:0] db_offset_i,
  input logic [63:0] db_word_i,
  input logic [7:0] db_strobe_i,

  output logic rd_valid_o,
  input logic rd_ready_i,
  output logic [ordma_pkg::RdTagW-1:0] rd_tag_o,
  output logic [63:0] rd_addr_o,
  output logic [ordma_pkg::LenW-1:0] rd_len_o,
  input logic rd_rsp_valid_i,
  input logic [ordma_pkg::RdTagW-1:0] rd_rsp_tag_i,
  input logic [DATA_W-1:0] rd_rsp_data_i,
  input logic rd_rsp_last_i,
  input logic rd_rsp_ok_i,

  output logic wr_valid_o,
  input logic wr_ready_i,
  output logic [63:0] wr_addr_o,
  output logic [ordma_pkg::LenW-1:0] wr_len_o,
  output logic [3:0] wr_kind_o,
  output logic wr_last_o,
  output logic [DATA_W-1:0] wr_data_o,

  input logic rx_valid_i,
  output logic rx_ready_o,
  input logic [DATA_W-1:0] rx_data_i,
  input logic [6:0] rx_count_i,
  input logic rx_last_i,
  input logic rx_overrun_i,            // the MAC dropped a frame that found no room
  output logic tx_valid_o,
  input logic tx_ready_i,
  output logic [DATA_W-1:0] tx_data_o,
  output logic [6:0] tx_count_o,
  output logic tx_last_o,

  output logic page_changed_o,
  output logic [15:0] page_number_o,
  output logic page_open_o,
  output logic page_token_o,
  output logic idle_o,                 // nothing to do before an input or next_timer_o
  output logic [63:0] next_timer_o
);
  localparam int unsigned QL = ordma_pkg::QpLog;
  localparam int unsigned NumEg = 8;
  localparam int unsigned NumEv = 7;

  generate
    if (DATA_W != 512) begin : gen_width
      // One beat holds a WQE, a CQE and the headers' masked fields; other widths are not built yet.
      initial $fatal(1, "ordma_nic: DATA_W must be 512");
    end
  endgenerate

  // ---------------------------------------------------------------- registers and reset
  logic halt, clear, quiet, regs_busy, fatal, rst_n;
  logic [7:0] fatal_reason;
  logic [63:0] cmd_base, rsp_base, rcmd_base, eq_base;
  logic [4:0] cmd_log, rcmd_log, eq_log;
  logic [23:0] eq_ci, ev_index;
  logic start, link, ev_crowded;
  ordma_pkg::event_t ev_regs;
  logic [NumEv-1:0] ev_valid, ev_ready;

  ordma_regs #(.DATA_W(DATA_W)) u_regs (
    .clk_i, .rst_ni, .time_i, .mac_i, .guid_i, .port_mtu_i, .port_speed_i, .engine_i,
    .we_i(reg_we_i), .waddr_i(reg_waddr_i), .wdata_i(reg_wdata_i), .raddr_i(reg_raddr_i), .rdata_o(reg_rdata_o),
    .quiet_i(quiet), .fatal_i(fatal), .fatal_reason_i(fatal_reason), .halt_o(halt), .clear_o(clear),
    .cmd_base_o(cmd_base), .rsp_base_o(rsp_base), .rcmd_base_o(rcmd_base), .eq_base_o(eq_base),
    .cmd_log_o(cmd_log), .rcmd_log_o(rcmd_log), .eq_log_o(eq_log), .eq_ci_o(eq_ci), .start_o(start), .link_o(link),
    .ev_valid_o(ev_valid[5]), .ev_o(ev_regs), .ev_ready_i(ev_ready[5]), .ev_index_i(ev_index),
    .status_o(reg_status_o), .reset_echo_o(reg_reset_echo_o), .busy_o(regs_busy)
  );
  // Reset net of everything behind the registers; registered, so it is free of glitches.
  logic clear_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) clear_q <= 1'b1;
    else clear_q <= clear;
  end
  assign rst_n = !clear_q;

  // ---------------------------------------------------------------- host read port
  logic [ordma_pkg::NumRd-1:0] rd_valid, rd_ready, rd_rsp;
  logic [511:0] rd_data;
  logic rd_last, rd_err, rd_busy;
  ordma_pkg::rd_req_t rq_cmd, rq_req, rq_reqxl, rq_rx, rq_rxxl, rq_cpl, rq_cplxl, rq_cq, rq_cqxl, rq_gather, rq_rsp, rq_rspxl, rq_resxl, rd_port;
  ordma_dma_rd #(.DATA_W(DATA_W)) u_dma_rd (
    .clk_i, .rst_ni(rst_n), .valid_i(rd_valid),
    .req_i({rq_resxl, rq_rspxl, rq_rsp, rq_gather, rq_cqxl, rq_cq, rq_cplxl, rq_cpl, rq_rxxl, rq_rx, rq_reqxl, rq_req, rq_cmd}),
    .ready_o(rd_ready), .rsp_valid_o(rd_rsp), .rsp_data_o(rd_data), .rsp_last_o(rd_last), .rsp_err_o(rd_err),
    .dma_valid_o(rd_valid_o), .dma_ready_i(rd_ready_i), .dma_tag_o(rd_tag_o), .dma_req_o(rd_port),
    .dma_rsp_valid_i(rd_rsp_valid_i), .dma_rsp_tag_i(rd_rsp_tag_i), .dma_rsp_data_i(rd_rsp_data_i),
    .dma_rsp_last_i(rd_rsp_last_i), .dma_rsp_ok_i(rd_rsp_ok_i), .busy_o(rd_busy)
  );
  assign rd_addr_o = rd_port.addr;
  assign rd_len_o = rd_port.len;

  // ---------------------------------------------------------------- egress
  logic [NumEg-1:0] eg_valid, eg_ready;
  ordma_pkg::eg_beat_t eg_place, eg_cq, eg_event, eg_cmd, eg_req, eg_db, eg_rx, eg_rsp, wr_beat;
  logic [15:0] eg_enq, eg_out;
  logic eg_busy;
  ordma_egress #(.N(NumEg), .W(3)) u_egress (
    .clk_i, .rst_ni(rst_n), .valid_i(eg_valid), .beat_i({eg_rsp, eg_rx, eg_db, eg_req, eg_cmd, eg_event, eg_cq, eg_place}),
    .ready_o(eg_ready), .wr_valid_o, .wr_ready_i, .wr_beat_o(wr_beat), .enq_o(eg_enq), .out_o(eg_out), .busy_o(eg_busy)
  );
  assign wr_addr_o = wr_beat.addr;
  assign wr_len_o = wr_beat.len;
  assign wr_kind_o = wr_beat.kind;
  assign wr_last_o = wr_beat.last;
  assign wr_data_o = wr_beat.data;

  // ---------------------------------------------------------------- events
  ordma_pkg::event_t ev_db, ev_cq, ev_cpl, ev_rx, ev_cmd, ev_res;
  logic ev_busy, cnt_event;
  ordma_event #(.N(NumEv), .W(3)) u_event (
    .clk_i, .rst_ni(rst_n), .time_i, .eq_base_i(eq_base), .eq_log_i(eq_log), .eq_ci_i(eq_ci), .start_i(start),
    .valid_i(ev_valid), .event_i({ev_res, ev_regs, ev_cmd, ev_rx, ev_cpl, ev_cq, ev_db}), .ready_o(ev_ready),
    .eg_valid_o(eg_valid[2]), .eg_o(eg_event), .eg_ready_i(eg_ready[2]),
    .index_o(ev_index), .crowded_o(ev_crowded), .cnt_event_o(cnt_event), .busy_o(ev_busy)
  );

  // ---------------------------------------------------------------- tables
  logic [4:0] mr_valid, mr_ready, mr_rsp_valid;
  logic [ordma_pkg::MrLog-1:0] mr_req_idx, mr_rx_idx, mr_cmd_idx, mr_rsp_idx, mr_res_idx;
  logic mr_we;
  ordma_pkg::mr_t mr_w, mr_rsp;
  ordma_mr_table #(.N(5), .W(3)) u_mr (
    .clk_i, .rst_ni(rst_n), .we_i(mr_we), .waddr_i(mr_cmd_idx), .wdata_i(mr_w), .valid_i(mr_valid),
    .addr_i({mr_res_idx, mr_rsp_idx, mr_cmd_idx, mr_rx_idx, mr_req_idx}), .ready_o(mr_ready),
    .rsp_valid_o(mr_rsp_valid), .rsp_o(mr_rsp)
  );

  logic gid_we;
  logic [ordma_pkg::GidLog-1:0] gid_waddr, gid_tx_addr, gid_rx_addr, gid_req_addr, gid_rsp_addr;
  ordma_pkg::gid_t gid_w, gid_tx, gid_rx;
  logic gid_match, gid_local;
  logic [(1<<ordma_pkg::GidLog)-1:0] gid_valid, gid_v4;
  ordma_pkg::rx_desc_t rx_desc;
  ordma_gid_table u_gid (
    .clk_i, .rst_ni(rst_n), .we_i(gid_we), .waddr_i(gid_waddr), .wdata_i(gid_w),
    .tx_addr_i(gid_tx_addr), .tx_gid_o(gid_tx), .rx_addr_i(gid_rx_addr), .rx_gid_o(gid_rx),
    .match_i(gid_match), .match_gid_i(rx_desc.dgid), .match_vlan_i(rx_desc.has_vlan), .match_id_i(rx_desc.vlan), .match_o(gid_local),
    .valid_o(gid_valid), .ipv4_o(gid_v4)
  );

  logic [ordma_pkg::NumQpClient-1:0] acq, gnt, rel_ready;
  logic [QL-1:0] qp_req, qp_rx, qp_cpl, qp_cmd, sched_qp, pend_qp, tmr_qp, fire_qp, db_qp, qp_rsp, qp_res, res_qp;
  ordma_pkg::qp_ctx_t ctx;
  ordma_pkg::qp_rel_t rel_req, rel_rx, rel_cpl, rel_cmd, rel_rsp, rel_res;
  logic [ordma_pkg::AttrW-1:0] rel_attr;
  logic pi_we, pi_rq, pi_clear, tmr_valid, tmr_arm, table_busy;
  logic [23:0] pi;
  logic [63:0] tmr_deadline;
  logic [(1<<QL)-1:0] in_err;
  ordma_qp_table u_qp (
    .clk_i, .rst_ni(rst_n), .acq_valid_i(acq), .acq_qp_i({qp_res, qp_rsp, qp_cmd, qp_cpl, qp_rx, qp_req}), .gnt_o(gnt), .ctx_o(ctx),
    .rel_req_i(rel_req), .rel_rx_i(rel_rx), .rel_cpl_i(rel_cpl), .rel_cmd_i(rel_cmd), .rel_rsp_i(rel_rsp),
    .rel_res_i(rel_res), .rel_attr_i(rel_attr),
    .rel_ready_o(rel_ready), .pi_we_i(pi_we), .pi_rq_i(pi_rq), .pi_qp_i(db_qp), .pi_i(pi), .pi_clear_i(pi_clear),
    .err_o(in_err), .tmr_valid_o(tmr_valid), .tmr_qp_o(tmr_qp), .tmr_arm_o(tmr_arm), .tmr_deadline_o(tmr_deadline),
    .busy_o(table_busy)
  );

  logic tmr_fire, tmr_settled;
  ordma_timer u_timer (
    .clk_i, .rst_ni(rst_n), .time_i, .valid_i(tmr_valid), .qp_i(tmr_qp), .arm_i(tmr_arm), .deadline_i(tmr_deadline),
    .fire_o(tmr_fire), .fire_qp_o(fire_qp), .settled_o(tmr_settled), .next_o(next_timer_o)
  );

  // ---------------------------------------------------------------- doorbells
  logic page_we, dbqp_we, dbqp_clear, dbcq_we, sq_ring, rq_ring, arm_we, db_busy, cnt_db, cnt_refused;
  logic [ordma_pkg::PageLog-1:0] page_addr;
  ordma_pkg::page_t page;
  ordma_pkg::dbobj_t dbqp, dbcq;
  logic [ordma_pkg::CqLog-1:0] arm_cq;
  ordma_hw_pkg::db_t arm;
  logic [23:0] cmd_pi, rcmd_pi;
  ordma_doorbell u_doorbell (
    .clk_i, .rst_ni(rst_n), .db_valid_i, .db_ready_o, .db_page_i, .db_offset_i, .db_word_i, .db_strobe_i,
    .page_we_i(page_we), .page_addr_i(page_addr), .page_i(page), .qp_we_i(dbqp_we), .qp_clear_i(dbqp_clear),
    .qp_addr_i(qp_cmd), .qp_i(dbqp), .cq_we_i(dbcq_we), .cq_addr_i(dbcq.number[ordma_pkg::CqLog-1:0]), .cq_i(dbcq),
    .pi_we_o(pi_we), .pi_rq_o(pi_rq), .pi_qp_o(db_qp), .pi_o(pi), .pi_clear_o(pi_clear),
    .sq_wake_o(sq_ring), .rq_wake_o(rq_ring), .arm_we_o(arm_we), .arm_cq_o(arm_cq), .arm_o(arm),
    .cmd_pi_o(cmd_pi), .rcmd_pi_o(rcmd_pi), .start_i(start), .eq_ci_i(eq_ci), .ev_index_i(ev_index),
    .ev_valid_o(ev_valid[0]), .ev_o(ev_db), .ev_ready_i(ev_ready[0]),
    .eg_valid_o(eg_valid[5]), .eg_o(eg_db), .eg_ready_i(eg_ready[5]),
    .cnt_word_o(cnt_db), .cnt_refused_o(cnt_refused), .busy_o(db_busy)
  );
  assign page_changed_o = page_we;
  assign page_number_o = {{(16-ordma_pkg::PageLog){1'b0}}, page_addr};
  assign page_open_o = page.valid;
  assign page_token_o = page.token;

  // ---------------------------------------------------------------- commands
  logic quiesce, quiesced, list_flush, cmd_busy, cmd_kick, cmd_wake, cnt_rewind, cqc_valid, cqc_ready;
  ordma_pkg::cq_cfg_t cqc;
  logic [(1<<ordma_pkg::CqLog)-1:0] cq_exists;
  logic [ordma_pkg::CntLog-1:0] cnt_addr;
  logic [63:0] cnt_data;
  ordma_cmd u_cmd (
    .clk_i, .rst_ni(rst_n), .time_i, .halt_i(halt), .start_i(start), .cmd_base_i(cmd_base), .rsp_base_i(rsp_base), .cmd_log_i(cmd_log),
    .rcmd_base_i(rcmd_base), .rcmd_log_i(rcmd_log), .cmd_pi_i(cmd_pi), .rcmd_pi_i(rcmd_pi), .max_mtu_i(max_mtu),
    .rd_valid_o(rd_valid[ordma_pkg::RdCmd]), .rd_req_o(rq_cmd), .rd_ready_i(rd_ready[ordma_pkg::RdCmd]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdCmd]), .rd_rsp_data_i(rd_data), .rd_rsp_last_i(rd_last), .rd_rsp_err_i(rd_err),
    .eg_valid_o(eg_valid[3]), .eg_o(eg_cmd), .eg_ready_i(eg_ready[3]),
    .ev_valid_o(ev_valid[4]), .ev_o(ev_cmd), .ev_ready_i(ev_ready[4]),
    .page_we_o(page_we), .page_addr_o(page_addr), .page_o(page), .dbqp_we_o(dbqp_we), .dbqp_clear_o(dbqp_clear),
    .dbqp_o(dbqp), .dbcq_we_o(dbcq_we), .dbcq_o(dbcq), .mr_we_o(mr_we), .mr_o(mr_w), .mr_valid_o(mr_valid[2]),
    .mr_index_o(mr_cmd_idx), .mr_ready_i(mr_ready[2]), .mr_rsp_valid_i(mr_rsp_valid[2]), .mr_rsp_i(mr_rsp),
    .cq_valid_o(cqc_valid), .cq_o(cqc), .cq_ready_i(cqc_ready), .cq_exists_i(cq_exists),
    .gid_we_o(gid_we), .gid_addr_o(gid_waddr), .gid_o(gid_w), .gid_valid_i(gid_valid), .gid_v4_i(gid_v4),
    .acq_valid_o(acq[ordma_pkg::QpCmd]), .qp_o(qp_cmd), .gnt_i(gnt[ordma_pkg::QpCmd]), .ctx_i(ctx), .rel_o(rel_cmd),
    .rel_attr_o(rel_attr), .rel_ready_i(rel_ready[ordma_pkg::QpCmd]), .kick_o(cmd_kick), .wake_o(cmd_wake),
    .quiesce_o(quiesce), .quiesced_i(quiesced), .flush_o(list_flush), .cnt_addr_o(cnt_addr), .cnt_data_i(cnt_data),
    .cnt_rewind_o(cnt_rewind), .fatal_o(fatal), .fatal_reason_o(fatal_reason), .busy_o(cmd_busy)
  );
  // Largest payload that fits the port with the longest headers around it (96 bytes).
  logic [12:0] max_mtu;
  assign max_mtu = (port_mtu_i >= 32'd4192) ? 13'd4096 : (port_mtu_i < 32'd352) ? 13'd256 : port_mtu_i[12:0] - 13'd96;

  logic req_busy, rx_busy, cpl_busy, cq_busy, packed_pulse;
  logic [15:0] req_in_q, req_out_q, res_in_q, res_out_q;
  logic [1:0] packed_by;
  logic rsp_busy, res_busy;
  ordma_quiesce #(.N(6)) u_quiesce (
    .clk_i, .rst_ni(rst_n), .valid_i(quiesce), .done_o(quiesced), .busy_i({res_busy, rsp_busy, cq_busy, cpl_busy, rx_busy, req_busy}),
    .req_in_i(req_in_q), .req_out_i(req_out_q), .res_in_i(res_in_q), .res_out_i(res_out_q), .eg_enq_i(eg_enq), .eg_out_i(eg_out)
  );

  // ---------------------------------------------------------------- completion queues
  logic [2:0] post_valid, post_done;
  ordma_pkg::cq_post_t post_rx, post_cpl, post_req;
  logic post_overflow, cnt_overflow, cqxl_valid, cqxl_done;
  ordma_pkg::xl_req_t cqxl_req;
  ordma_pkg::xl_rsp_t cqxl_rsp;
  ordma_cq u_cq (
    .clk_i, .rst_ni(rst_n), .time_i, .post_valid_i(post_valid), .post0_i(post_rx), .post1_i(post_cpl), .post2_i(post_req),
    .post_done_o(post_done), .overflow_o(post_overflow), .cfg_valid_i(cqc_valid), .cfg_i(cqc), .cfg_ready_o(cqc_ready),
    .exists_o(cq_exists), .arm_we_i(arm_we), .arm_cq_i(arm_cq), .arm_i(arm),
    .xl_valid_o(cqxl_valid), .xl_req_o(cqxl_req), .xl_done_i(cqxl_done), .xl_rsp_i(cqxl_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdCq]), .rd_req_o(rq_cq), .rd_ready_i(rd_ready[ordma_pkg::RdCq]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdCq]), .rd_rsp_data_i(rd_data[63:0]), .rd_rsp_err_i(rd_err),
    .eg_valid_o(eg_valid[1]), .eg_o(eg_cq), .eg_ready_i(eg_ready[1]),
    .ev_valid_o(ev_valid[1]), .ev_o(ev_cq), .ev_ready_i(ev_ready[1]), .ev_crowded_i(ev_crowded), .cnt_overflow_o(cnt_overflow), .busy_o(cq_busy)
  );
  logic unused_cqxl_mr;
  logic [ordma_pkg::MrLog-1:0] unused_cqxl_idx;
  ordma_xlate u_cq_xlate (
    .clk_i, .rst_ni(rst_n), .valid_i(cqxl_valid), .req_i(cqxl_req), .done_o(cqxl_done), .rsp_o(cqxl_rsp),
    .mr_valid_o(unused_cqxl_mr), .mr_index_o(unused_cqxl_idx), .mr_ready_i(1'b0), .mr_rsp_valid_i(1'b0), .mr_rsp_i(mr_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdCqXl]), .rd_req_o(rq_cqxl), .rd_ready_i(rd_ready[ordma_pkg::RdCqXl]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdCqXl]), .rd_rsp_data_i(rd_data[63:0]), .rd_rsp_err_i(rd_err), .flush_i(list_flush)
  );

  // ---------------------------------------------------------------- who has work
  logic sched_valid, sched_pop, sched_any, pend_valid, pend_pop, pend_any;
  logic req_again, req_kick, rx_kick, rx_respond, rsp_kick, rsp_wake, cpl_again, cpl_wake, res_valid, res_pop, res_any, res_again, res_kick;
  ordma_pending #(.Log(QL), .N(6)) u_sched (
    .clk_i, .rst_ni(rst_n), .set_i({tmr_fire, cmd_wake, cpl_wake, rsp_wake, req_again, sq_ring}),
    .index_i({fire_qp, qp_cmd, qp_cpl, qp_rsp, qp_req, db_qp}),
    .valid_o(sched_valid), .index_o(sched_qp), .pop_i(sched_pop), .any_o(sched_any)
  );
  ordma_pending #(.Log(QL), .N(2)) u_res_pend (
    .clk_i, .rst_ni(rst_n), .set_i({res_again, rx_respond}), .index_i({qp_res, qp_rx}),
    .valid_o(res_valid), .index_o(res_qp), .pop_i(res_pop), .any_o(res_any)
  );
  ordma_pending #(.Log(QL), .N(8)) u_pend (
    .clk_i, .rst_ni(rst_n), .set_i({res_kick, rsp_kick, tmr_fire, cmd_kick, cpl_again, rx_kick, req_kick, (sq_ring || rq_ring) && in_err[db_qp]}),
    .index_i({qp_res, qp_rsp, fire_qp, qp_cmd, qp_cpl, qp_rx, qp_req, db_qp}),
    .valid_o(pend_valid), .index_o(pend_qp), .pop_i(pend_pop), .any_o(pend_any)
  );

  // ---------------------------------------------------------------- requester
  logic rqxl_valid, rqxl_done, ch_push, ch_commit, ch_abort, ch_full, ch_empty, ch_pop, inl_push, inl_full, inl_empty, inl_pop;
  logic d_push, d_full, d_empty, d_pop, cnt_resent;
  ordma_pkg::xl_req_t rqxl_req;
  ordma_pkg::xl_rsp_t rqxl_rsp;
  ordma_pkg::chunk_t ch, ch_r;
  logic [511:0] inl, inl_r;
  ordma_pkg::tx_desc_t d, d_r;
  logic [2:0] d_count;
  logic [4:0] inl_count;
  logic op_we, op_re0, op_re1;
  logic [QL+ordma_pkg::RdLog-1:0] op_waddr, op_raddr0, op_raddr1;
  ordma_pkg::rd_op_t op_w, op_r0, op_r1;
  logic [ordma_pkg::RdOpW-1:0] op_raw0, op_raw1;
  assign op_r0 = op_raw0;
  assign op_r1 = op_raw1;
  ordma_ram #(.W(ordma_pkg::RdOpW), .Log(QL + ordma_pkg::RdLog)) u_ops0 (
    .clk_i, .we_i(op_we), .waddr_i(op_waddr), .wdata_i(op_w), .re_i(op_re0), .raddr_i(op_raddr0), .rdata_o(op_raw0)
  );
  ordma_ram #(.W(ordma_pkg::RdOpW), .Log(QL + ordma_pkg::RdLog)) u_ops1 (
    .clk_i, .we_i(op_we), .waddr_i(op_waddr), .wdata_i(op_w), .re_i(op_re1), .raddr_i(op_raddr1), .rdata_o(op_raw1)
  );
  ordma_requester u_requester (
    .clk_i, .rst_ni(rst_n), .time_i, .halt_i(halt), .sched_valid_i(sched_valid), .sched_qp_i(sched_qp), .sched_pop_o(sched_pop),
    .again_o(req_again), .kick_o(req_kick), .qp_o(qp_req), .acq_valid_o(acq[ordma_pkg::QpReq]),
    .gnt_i(gnt[ordma_pkg::QpReq]), .ctx_i(ctx), .rel_o(rel_req), .rel_ready_i(rel_ready[ordma_pkg::QpReq]),
    .xl_valid_o(rqxl_valid), .xl_req_o(rqxl_req), .xl_done_i(rqxl_done), .xl_rsp_i(rqxl_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdReq]), .rd_req_o(rq_req), .rd_ready_i(rd_ready[ordma_pkg::RdReq]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdReq]), .rd_rsp_data_i(rd_data), .rd_rsp_last_i(rd_last), .rd_rsp_err_i(rd_err),
    .eg_valid_o(eg_valid[4]), .eg_o(eg_req), .eg_ready_i(eg_ready[4]), .eg_enq_i(eg_enq), .eg_out_i(eg_out),
    .op_we_o(op_we), .op_waddr_o(op_waddr), .op_o(op_w), .op_re_o(op_re0), .op_raddr_o(op_raddr0), .op_i(op_r0),
    .chunk_push_o(ch_push), .chunk_o(ch), .chunk_commit_o(ch_commit), .chunk_abort_o(ch_abort), .chunk_full_i(ch_full),
    .inl_push_o(inl_push), .inl_o(inl), .inl_full_i(inl_full), .desc_push_o(d_push), .desc_o(d), .desc_full_i(d_full),
    .gather_in_i(req_in_q), .gather_out_i(req_out_q), .post_valid_o(post_valid[2]), .post_o(post_req), .post_done_i(post_done[2]),
    .post_overflow_i(post_overflow), .gid_valid_i(gid_valid), .gid_v4_i(gid_v4), .cnt_resent_o(cnt_resent), .busy_o(req_busy)
  );
  ordma_xlate u_req_xlate (
    .clk_i, .rst_ni(rst_n), .valid_i(rqxl_valid), .req_i(rqxl_req), .done_o(rqxl_done), .rsp_o(rqxl_rsp),
    .mr_valid_o(mr_valid[0]), .mr_index_o(mr_req_idx), .mr_ready_i(mr_ready[0]), .mr_rsp_valid_i(mr_rsp_valid[0]), .mr_rsp_i(mr_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdReqXl]), .rd_req_o(rq_reqxl), .rd_ready_i(rd_ready[ordma_pkg::RdReqXl]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdReqXl]), .rd_rsp_data_i(rd_data[63:0]), .rd_rsp_err_i(rd_err), .flush_i(list_flush)
  );

  // ---------------------------------------------------------------- payload and frames
  ordma_fifo_commit #(.W(ordma_pkg::ChunkW), .Log(6)) u_chunks (
    .clk_i, .rst_ni(rst_n), .push_i(ch_push), .data_i(ch), .commit_i(ch_commit), .abort_i(ch_abort), .full_o(ch_full),
    .pop_i(ch_pop), .data_o(ch_r), .empty_o(ch_empty)
  );
  ordma_fifo #(.W(512), .Log(4)) u_inline (
    .clk_i, .rst_ni(rst_n), .push_i(inl_push), .data_i(inl), .full_o(inl_full), .pop_i(inl_pop), .data_o(inl_r),
    .empty_o(inl_empty), .count_o(inl_count)
  );
  ordma_fifo #(.W(ordma_pkg::TxDescW), .Log(2)) u_descs (
    .clk_i, .rst_ni(rst_n), .push_i(d_push), .data_i(d), .full_o(d_full), .pop_i(d_pop), .data_o(d_r), .empty_o(d_empty),
    .count_o(d_count)
  );

  // Responses: ACKs of the responder and packets of the respond unit, in one queue.
  logic a_push, r_push, r_ready, a_full, a_empty, rc_push, rc_commit, rc_abort, rc_full, rc_empty, mx_busy;
  logic [1:0] mx_d_pop, mx_c_pop;
  logic mx_push, mx_full, mx_empty, mx_pop, mx_ch_valid, mx_ch_pop;
  logic [2:0] a_count, mx_count;
  ordma_pkg::tx_desc_t a, r, a_r, mx, mx_r;
  ordma_pkg::chunk_t rc, rc_r, mx_ch;
  assign r_ready = !a_full && !a_push;
  ordma_fifo #(.W(ordma_pkg::TxDescW), .Log(2)) u_answers (
    .clk_i, .rst_ni(rst_n), .push_i(a_push || r_push), .data_i(a_push ? a : r), .full_o(a_full), .pop_i(mx_d_pop[1]),
    .data_o(a_r), .empty_o(a_empty), .count_o(a_count)
  );
  ordma_fifo_commit #(.W(ordma_pkg::ChunkW), .Log(5)) u_answer_chunks (
    .clk_i, .rst_ni(rst_n), .push_i(rc_push), .data_i(rc), .commit_i(rc_commit), .abort_i(rc_abort), .full_o(rc_full),
    .pop_i(mx_c_pop[1]), .data_o(rc_r), .empty_o(rc_empty)
  );
  ordma_tx_mux u_mux (
    .clk_i, .rst_ni(rst_n), .desc_valid_i({!a_empty, !d_empty}), .desc0_i(d_r), .desc1_i(a_r), .desc_pop_o(mx_d_pop),
    .chunk_valid_i({!rc_empty, !ch_empty}), .chunk0_i(ch_r), .chunk1_i(rc_r), .chunk_pop_o(mx_c_pop),
    .desc_push_o(mx_push), .desc_o(mx), .desc_full_i(mx_full), .chunk_valid_o(mx_ch_valid), .chunk_o(mx_ch),
    .chunk_pop_i(mx_ch_pop), .packed_i(packed_pulse), .packed_o(packed_by), .busy_o(mx_busy)
  );
  assign d_pop = mx_d_pop[0];
  assign ch_pop = mx_c_pop[0];
  ordma_fifo #(.W(ordma_pkg::TxDescW), .Log(2)) u_packets (
    .clk_i, .rst_ni(rst_n), .push_i(mx_push), .data_i(mx), .full_o(mx_full), .pop_i(mx_pop), .data_o(mx_r),
    .empty_o(mx_empty), .count_o(mx_count)
  );

  logic pay_pkt, pay_err, pay_last, pay_pop, gather_busy, frame_busy;
  logic [511:0] pay_data;
  logic [6:0] pay_count;
  ordma_gather u_gather (
    .clk_i, .rst_ni(rst_n), .chunk_valid_i(mx_ch_valid), .chunk_i(mx_ch), .chunk_pop_o(mx_ch_pop), .inl_valid_i(!inl_empty),
    .inl_data_i(inl_r), .inl_pop_o(inl_pop), .rd_valid_o(rd_valid[ordma_pkg::RdGather]), .rd_req_o(rq_gather),
    .rd_ready_i(rd_ready[ordma_pkg::RdGather]), .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdGather]), .rd_rsp_data_i(rd_data),
    .rd_rsp_last_i(rd_last), .rd_rsp_err_i(rd_err), .pkt_o(pay_pkt), .pkt_err_o(pay_err), .data_o(pay_data),
    .count_o(pay_count), .last_o(pay_last), .pop_i(pay_pop), .packed_o(packed_pulse), .busy_o(gather_busy)
  );
  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) begin
      req_in_q <= '0;
      req_out_q <= '0;
      res_in_q <= '0;
      res_out_q <= '0;
    end else begin
      if (d_push && d.pay_len != '0) req_in_q <= req_in_q + 1'b1;
      if (r_push && r.pay_len != '0) res_in_q <= res_in_q + 1'b1;
      if (packed_by[0]) req_out_q <= req_out_q + 1'b1;
      if (packed_by[1]) res_out_q <= res_out_q + 1'b1;
    end
  end

  // Link down: frames are lost whole, in both directions.
  logic frame_valid, frame_ready, tx_mid_q, tx_lost_q, tx_lost, rx_mid_q, rx_lost_q, rx_lost, parse_ready;
  assign tx_lost = tx_mid_q ? tx_lost_q : !link;
  assign rx_lost = rx_mid_q ? rx_lost_q : !link;
  assign tx_valid_o = frame_valid && !tx_lost;
  assign frame_ready = tx_ready_i || tx_lost;
  assign rx_ready_o = rx_lost || parse_ready;
  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) begin
      tx_mid_q <= 1'b0;
      tx_lost_q <= 1'b0;
      rx_mid_q <= 1'b0;
      rx_lost_q <= 1'b0;
    end else begin
      if (frame_valid && frame_ready) begin
        tx_mid_q <= !tx_last_o;
        tx_lost_q <= tx_lost;
      end
      if (rx_valid_i && rx_ready_o) begin
        rx_mid_q <= !rx_last_i;
        rx_lost_q <= rx_lost;
      end
    end
  end

  logic cnt_tx;
  logic [ordma_pkg::LenW-1:0] cnt_tx_bytes;
  ordma_frame u_frame (
    .clk_i, .rst_ni(rst_n), .req_valid_i(!mx_empty), .req_i(mx_r), .req_pop_o(mx_pop), .gid_addr_o(gid_tx_addr), .gid_i(gid_tx), .pay_pkt_i(pay_pkt), .pay_err_i(pay_err),
    .pay_data_i(pay_data), .pay_count_i(pay_count), .pay_last_i(pay_last), .pay_pop_o(pay_pop),
    .o_valid_o(frame_valid), .o_ready_i(frame_ready), .o_data_o(tx_data_o), .o_count_o(tx_count_o), .o_last_o(tx_last_o),
    .cnt_packet_o(cnt_tx), .cnt_bytes_o(cnt_tx_bytes), .busy_o(frame_busy)
  );

  // ---------------------------------------------------------------- receive
  logic rd_desc_valid, rd_desc_pop, ring_re, parse_busy, cnt_malformed, cnt_icrc, cnt_other;
  logic [ordma_pkg::RxBufLog-1:0] ring_addr;
  logic [511:0] ring_data;
  ordma_rx_parse u_parse (
    .clk_i, .rst_ni(rst_n), .i_valid_i(rx_valid_i && !rx_lost), .i_ready_o(parse_ready), .i_data_i(rx_data_i), .i_count_i(rx_count_i),
    .i_last_i(rx_last_i), .desc_valid_o(rd_desc_valid), .desc_o(rx_desc), .desc_pop_i(rd_desc_pop),
    .ring_re_i(ring_re), .ring_addr_i(ring_addr), .ring_data_o(ring_data),
    .cnt_malformed_o(cnt_malformed), .cnt_icrc_o(cnt_icrc), .cnt_other_o(cnt_other), .busy_o(parse_busy)
  );

  // Responses to what this side asked, and requests of the peer, in the order of arrival.
  logic rx_is_rsp, rq_pop, rsp_pop, rx_place_valid, rsp_place_valid;
  ordma_pkg::place_t rx_place, rsp_place;
  assign rx_is_rsp = rx_desc.opcode[7:5] == 3'd0 && rx_desc.opcode[4:0] >= 5'h0d && rx_desc.opcode[4:0] <= 5'h12;
  assign gid_rx_addr = rx_is_rsp ? gid_rsp_addr : gid_req_addr;
  assign rd_desc_pop = rq_pop || rsp_pop;
  assign place_valid = rx_is_rsp ? rsp_place_valid : rx_place_valid;
  assign place = rx_is_rsp ? rsp_place : rx_place;

  logic rxxl_valid, rxxl_done, place_valid, place_done;
  ordma_pkg::xl_req_t rxxl_req;
  ordma_pkg::xl_rsp_t rxxl_rsp;
  ordma_pkg::place_t place;
  logic [ordma_pkg::NumCounter-1:0] cnt_rx, cnt_rsp;
  logic [ordma_pkg::LenW-1:0] cnt_rx_bytes, cnt_rsp_bytes;
  logic rs_op_we, rs_ack_we;
  logic [QL+ordma_pkg::RdLog-1:0] rs_waddr;
  ordma_pkg::rs_op_t rs_op;
  ordma_pkg::rs_ack_t rs_ack;
  ordma_responder u_responder (
    .clk_i, .rst_ni(rst_n), .halt_i(halt), .desc_valid_i(rd_desc_valid && !rx_is_rsp), .desc_i(rx_desc), .desc_pop_o(rq_pop),
    .gid_addr_o(gid_req_addr), .gid_i(gid_rx), .match_o(gid_match), .local_i(gid_local), .acq_valid_o(acq[ordma_pkg::QpRx]), .qp_o(qp_rx), .gnt_i(gnt[ordma_pkg::QpRx]),
    .ctx_i(ctx), .rel_o(rel_rx), .rel_ready_i(rel_ready[ordma_pkg::QpRx]), .kick_o(rx_kick), .respond_o(rx_respond),
    .xl_valid_o(rxxl_valid), .xl_req_o(rxxl_req), .xl_done_i(rxxl_done), .xl_rsp_i(rxxl_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdRx]), .rd_req_o(rq_rx), .rd_ready_i(rd_ready[ordma_pkg::RdRx]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdRx]), .rd_rsp_data_i(rd_data), .rd_rsp_last_i(rd_last), .rd_rsp_err_i(rd_err),
    .place_valid_o(rx_place_valid), .place_o(rx_place), .place_done_i(place_done && !rx_is_rsp), .eg_valid_o(eg_valid[6]), .eg_o(eg_rx),
    .eg_ready_i(eg_ready[6]), .eg_enq_i(eg_enq), .eg_out_i(eg_out), .post_valid_o(post_valid[0]), .post_o(post_rx),
    .post_done_i(post_done[0]), .post_overflow_i(post_overflow), .ev_valid_o(ev_valid[3]), .ev_o(ev_rx), .ev_ready_i(ev_ready[3]),
    .ack_push_o(a_push), .ack_o(a), .ack_full_i(a_full), .rs_op_we_o(rs_op_we), .rs_ack_we_o(rs_ack_we), .rs_addr_o(rs_waddr),
    .rs_op_o(rs_op), .rs_ack_o(rs_ack), .cnt_o(cnt_rx), .cnt_bytes_o(cnt_rx_bytes), .busy_o(rx_busy)
  );
  ordma_xlate u_rx_xlate (
    .clk_i, .rst_ni(rst_n), .valid_i(rxxl_valid), .req_i(rxxl_req), .done_o(rxxl_done), .rsp_o(rxxl_rsp),
    .mr_valid_o(mr_valid[1]), .mr_index_o(mr_rx_idx), .mr_ready_i(mr_ready[1]), .mr_rsp_valid_i(mr_rsp_valid[1]), .mr_rsp_i(mr_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdRxXl]), .rd_req_o(rq_rxxl), .rd_ready_i(rd_ready[ordma_pkg::RdRxXl]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdRxXl]), .rd_rsp_data_i(rd_data[63:0]), .rd_rsp_err_i(rd_err), .flush_i(list_flush)
  );
  // ---------------------------------------------------------------- what the responder owes
  logic rs_re, rs_step_we, rs_step_ready, rsxl_valid, rsxl_done, cnt_res_access;
  logic [QL+ordma_pkg::RdLog-1:0] rs_raddr;
  ordma_pkg::rs_op_t rs_op_r, rs_step;
  ordma_pkg::rs_ack_t rs_ack_r;
  ordma_pkg::xl_req_t rsxl_req;
  ordma_pkg::xl_rsp_t rsxl_rsp;
  ordma_rs_ring u_rs_ring (
    .clk_i, .op_we_i(rs_op_we), .ack_we_i(rs_ack_we), .waddr_i(rs_waddr), .op_i(rs_op), .ack_i(rs_ack), .step_we_i(rs_step_we),
    .step_addr_i(rs_raddr), .step_i(rs_step), .step_ready_o(rs_step_ready), .re_i(rs_re), .raddr_i(rs_raddr), .op_o(rs_op_r), .ack_o(rs_ack_r)
  );
  ordma_respond u_respond (
    .clk_i, .rst_ni(rst_n), .halt_i(halt), .pend_valid_i(res_valid), .pend_qp_i(res_qp), .pend_pop_o(res_pop), .again_o(res_again),
    .kick_o(res_kick), .qp_o(qp_res), .acq_valid_o(acq[ordma_pkg::QpRes]), .gnt_i(gnt[ordma_pkg::QpRes]), .ctx_i(ctx),
    .rel_o(rel_res), .rel_ready_i(rel_ready[ordma_pkg::QpRes]), .ring_re_o(rs_re), .ring_addr_o(rs_raddr), .op_i(rs_op_r),
    .ack_i(rs_ack_r), .ring_we_o(rs_step_we), .op_o(rs_step), .ring_ready_i(rs_step_ready),
    .xl_valid_o(rsxl_valid), .xl_req_o(rsxl_req), .xl_done_i(rsxl_done), .xl_rsp_i(rsxl_rsp), .eg_enq_i(eg_enq), .eg_out_i(eg_out),
    .chunk_push_o(rc_push), .chunk_o(rc), .chunk_commit_o(rc_commit), .chunk_abort_o(rc_abort), .chunk_full_i(rc_full),
    .desc_push_o(r_push), .desc_o(r), .desc_ready_i(r_ready), .ev_valid_o(ev_valid[6]), .ev_o(ev_res), .ev_ready_i(ev_ready[6]),
    .cnt_access_o(cnt_res_access), .busy_o(res_busy)
  );
  ordma_xlate u_res_xlate (
    .clk_i, .rst_ni(rst_n), .valid_i(rsxl_valid), .req_i(rsxl_req), .done_o(rsxl_done), .rsp_o(rsxl_rsp),
    .mr_valid_o(mr_valid[4]), .mr_index_o(mr_res_idx), .mr_ready_i(mr_ready[4]), .mr_rsp_valid_i(mr_rsp_valid[4]), .mr_rsp_i(mr_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdResXl]), .rd_req_o(rq_resxl), .rd_ready_i(rd_ready[ordma_pkg::RdResXl]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdResXl]), .rd_rsp_data_i(rd_data[63:0]), .rd_rsp_err_i(rd_err), .flush_i(list_flush)
  );

  // ---------------------------------------------------------------- responses to this side
  logic spxl_valid, spxl_done;
  ordma_pkg::xl_req_t spxl_req;
  ordma_pkg::xl_rsp_t spxl_rsp;
  ordma_response u_response (
    .clk_i, .rst_ni(rst_n), .time_i, .halt_i(halt), .desc_valid_i(rd_desc_valid && rx_is_rsp), .desc_i(rx_desc), .desc_pop_o(rsp_pop),
    .gid_addr_o(gid_rsp_addr), .gid_i(gid_rx), .acq_valid_o(acq[ordma_pkg::QpRsp]), .qp_o(qp_rsp), .gnt_i(gnt[ordma_pkg::QpRsp]),
    .ctx_i(ctx), .rel_o(rel_rsp), .rel_ready_i(rel_ready[ordma_pkg::QpRsp]), .kick_o(rsp_kick), .wake_o(rsp_wake),
    .op_re_o(op_re1), .op_addr_o(op_raddr1), .op_i(op_r1),
    .xl_valid_o(spxl_valid), .xl_req_o(spxl_req), .xl_done_i(spxl_done), .xl_rsp_i(spxl_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdRsp]), .rd_req_o(rq_rsp), .rd_ready_i(rd_ready[ordma_pkg::RdRsp]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdRsp]), .rd_rsp_data_i(rd_data), .rd_rsp_last_i(rd_last), .rd_rsp_err_i(rd_err),
    .place_valid_o(rsp_place_valid), .place_o(rsp_place), .place_done_i(place_done && rx_is_rsp),
    .eg_valid_o(eg_valid[7]), .eg_o(eg_rsp), .eg_ready_i(eg_ready[7]), .cnt_o(cnt_rsp), .cnt_bytes_o(cnt_rsp_bytes), .busy_o(rsp_busy)
  );
  ordma_xlate u_rsp_xlate (
    .clk_i, .rst_ni(rst_n), .valid_i(spxl_valid), .req_i(spxl_req), .done_o(spxl_done), .rsp_o(spxl_rsp),
    .mr_valid_o(mr_valid[3]), .mr_index_o(mr_rsp_idx), .mr_ready_i(mr_ready[3]), .mr_rsp_valid_i(mr_rsp_valid[3]), .mr_rsp_i(mr_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdRspXl]), .rd_req_o(rq_rspxl), .rd_ready_i(rd_ready[ordma_pkg::RdRspXl]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdRspXl]), .rd_rsp_data_i(rd_data[63:0]), .rd_rsp_err_i(rd_err), .flush_i(list_flush)
  );

  ordma_place u_place (
    .clk_i, .rst_ni(rst_n), .valid_i(place_valid), .cmd_i(place), .done_o(place_done), .ring_re_o(ring_re),
    .ring_addr_o(ring_addr), .ring_data_i(ring_data), .eg_valid_o(eg_valid[0]), .eg_o(eg_place), .eg_ready_i(eg_ready[0])
  );

  // ---------------------------------------------------------------- completer
  logic cpxl_valid, cpxl_done, cnt_silence, cnt_serr, cnt_sflush, cnt_rflush;
  ordma_pkg::xl_req_t cpxl_req;
  ordma_pkg::xl_rsp_t cpxl_rsp;
  ordma_complete u_complete (
    .clk_i, .rst_ni(rst_n), .time_i, .halt_i(halt), .pend_valid_i(pend_valid), .pend_qp_i(pend_qp), .pend_pop_o(pend_pop),
    .again_o(cpl_again), .wake_o(cpl_wake), .qp_o(qp_cpl), .acq_valid_o(acq[ordma_pkg::QpCpl]), .gnt_i(gnt[ordma_pkg::QpCpl]),
    .ctx_i(ctx), .rel_o(rel_cpl), .rel_ready_i(rel_ready[ordma_pkg::QpCpl]),
    .xl_valid_o(cpxl_valid), .xl_req_o(cpxl_req), .xl_done_i(cpxl_done), .xl_rsp_i(cpxl_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdCpl]), .rd_req_o(rq_cpl), .rd_ready_i(rd_ready[ordma_pkg::RdCpl]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdCpl]), .rd_rsp_data_i(rd_data[127:0]), .rd_rsp_err_i(rd_err), .eg_enq_i(eg_enq), .eg_out_i(eg_out),
    .post_valid_o(post_valid[1]), .post_o(post_cpl), .post_done_i(post_done[1]), .post_overflow_i(post_overflow),
    .ev_valid_o(ev_valid[2]), .ev_o(ev_cpl), .ev_ready_i(ev_ready[2]),
    .cnt_silence_o(cnt_silence), .cnt_error_o(cnt_serr), .cnt_flush_o(cnt_sflush), .cnt_rflush_o(cnt_rflush), .busy_o(cpl_busy)
  );
  logic unused_cpxl_mr;
  logic [ordma_pkg::MrLog-1:0] unused_cpxl_idx;
  ordma_xlate u_cpl_xlate (
    .clk_i, .rst_ni(rst_n), .valid_i(cpxl_valid), .req_i(cpxl_req), .done_o(cpxl_done), .rsp_o(cpxl_rsp),
    .mr_valid_o(unused_cpxl_mr), .mr_index_o(unused_cpxl_idx), .mr_ready_i(1'b0), .mr_rsp_valid_i(1'b0), .mr_rsp_i(mr_rsp),
    .rd_valid_o(rd_valid[ordma_pkg::RdCplXl]), .rd_req_o(rq_cplxl), .rd_ready_i(rd_ready[ordma_pkg::RdCplXl]),
    .rd_rsp_valid_i(rd_rsp[ordma_pkg::RdCplXl]), .rd_rsp_data_i(rd_data[63:0]), .rd_rsp_err_i(rd_err), .flush_i(list_flush)
  );

  // ---------------------------------------------------------------- counters and idle
  logic [ordma_pkg::NumCounter-1:0] pulse;
  always_comb begin
    pulse = cnt_rx | cnt_rsp;
    pulse[ordma_hw_pkg::CounterRespRemoteAccessErrors[5:0]] = cnt_rx[ordma_hw_pkg::CounterRespRemoteAccessErrors[5:0]] || cnt_res_access;
    pulse[ordma_hw_pkg::CounterTxPackets[5:0]] = cnt_tx;
    pulse[ordma_hw_pkg::CounterTxBytes[5:0]] = cnt_tx && cnt_tx_bytes != '0;
    pulse[ordma_hw_pkg::CounterLocalAckTimeoutErr[5:0]] = cnt_silence;
    pulse[ordma_hw_pkg::CounterReqCqeError[5:0]] = cnt_serr;
    pulse[ordma_hw_pkg::CounterReqCqeFlushError[5:0]] = cnt_sflush;
    pulse[ordma_hw_pkg::CounterRespCqeFlushError[5:0]] = cnt_rflush;
    pulse[ordma_hw_pkg::CounterRxIcrcEncapsulated[5:0]] = cnt_icrc;
    pulse[ordma_hw_pkg::CounterRetransmittedPackets[5:0]] = cnt_resent;
    pulse[ordma_hw_pkg::CounterDropMalformed[5:0]] = cnt_malformed;
    pulse[ordma_hw_pkg::CounterDropOverrun[5:0]] = rx_overrun_i;
    pulse[ordma_hw_pkg::CounterDbWords[5:0]] = cnt_db;
    pulse[ordma_hw_pkg::CounterDbRefused[5:0]] = cnt_refused;
    pulse[ordma_hw_pkg::CounterCqOverflows[5:0]] = cnt_overflow;
    pulse[ordma_hw_pkg::CounterEvents[5:0]] = cnt_event;
    pulse[ordma_hw_pkg::CounterEthDrop[5:0]] = cnt_other;
    pulse[ordma_hw_pkg::CounterRewinds[5:0]] = cnt_rewind;
  end
  ordma_counters u_counters (
    .clk_i, .rst_ni(rst_n), .pulse_i(pulse), .tx_bytes_i(cnt_tx_bytes), .rx_bytes_i(cnt_rsp[ordma_hw_pkg::CounterRxBytes[5:0]] ? cnt_rsp_bytes : cnt_rx_bytes), .raddr_i(cnt_addr),
    .rdata_o(cnt_data)
  );

  logic moving;  // inside an engine or on a port
  assign moving = rd_busy || eg_busy || ev_busy || table_busy || db_busy || req_busy || rx_busy || cpl_busy
               || gather_busy || frame_busy || mx_busy || !mx_empty || rsp_busy || res_busy || quiesce;
  assign quiet = halt && !moving && !cq_busy && !cmd_busy;
  assign idle_o = !moving && !cq_busy && !regs_busy && tmr_settled
               && (halt || (!cmd_busy && !sched_any && !pend_any && !res_any && !parse_busy));

  logic unused_levels;
  assign unused_levels = ^{d_count, a_count, mx_count, inl_count, unused_cqxl_mr, unused_cqxl_idx, unused_cpxl_mr, unused_cpxl_idx};
endmodule
