// SPDX-License-Identifier: BSD-2-Clause
//
// Command processor: reads commands of the recovery ring, then of the command ring, one at a time and
// in order, and owns the writes of every object table. A destroy answers when the object is quiescent.
module ordma_cmd (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,
  input logic halt_i,
  input logic start_i,            // both rings begin anew
  input logic [63:0] cmd_base_i,
  input logic [63:0] rsp_base_i,
  input logic [4:0] cmd_log_i,
  input logic [63:0] rcmd_base_i,
  input logic [4:0] rcmd_log_i,
  input logic [23:0] cmd_pi_i,
  input logic [23:0] rcmd_pi_i,
  input logic [12:0] max_mtu_i,

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
  output logic ev_valid_o,
  output ordma_pkg::event_t ev_o,
  input logic ev_ready_i,

  output logic page_we_o,
  output logic [ordma_pkg::PageLog-1:0] page_addr_o,
  output ordma_pkg::page_t page_o,
  output logic dbqp_we_o,
  output logic dbqp_clear_o,
  output ordma_pkg::dbobj_t dbqp_o,
  output logic dbcq_we_o,
  output ordma_pkg::dbobj_t dbcq_o,

  output logic mr_we_o,
  output ordma_pkg::mr_t mr_o,
  output logic mr_valid_o,
  output logic [ordma_pkg::MrLog-1:0] mr_index_o,
  input logic mr_ready_i,
  input logic mr_rsp_valid_i,
  input ordma_pkg::mr_t mr_rsp_i,

  output logic cq_valid_o,
  output ordma_pkg::cq_cfg_t cq_o,
  input logic cq_ready_i,
  input logic [(1<<ordma_pkg::CqLog)-1:0] cq_exists_i,

  output logic gid_we_o,
  output logic [ordma_pkg::GidLog-1:0] gid_addr_o,
  output ordma_pkg::gid_t gid_o,
  input logic [(1<<ordma_pkg::GidLog)-1:0] gid_valid_i,
  input logic [(1<<ordma_pkg::GidLog)-1:0] gid_v4_i,

  output logic acq_valid_o,
  output logic [ordma_pkg::QpLog-1:0] qp_o,
  input logic gnt_i,
  input ordma_pkg::qp_ctx_t ctx_i,
  output ordma_pkg::qp_rel_t rel_o,
  output logic [ordma_pkg::AttrW-1:0] rel_attr_o,
  input logic rel_ready_i,
  output logic kick_o,
  output logic wake_o,

  output logic quiesce_o,
  input logic quiesced_i,
  output logic flush_o,           // page lists may have changed
  output logic [ordma_pkg::CntLog-1:0] cnt_addr_o,
  input logic [63:0] cnt_data_i,
  output logic cnt_rewind_o,
  output logic fatal_o,
  output logic [7:0] fatal_reason_o,
  output logic busy_o
);
  typedef enum logic [4:0] {
    Idle, Fetch, FetchWait, Decode, MrRead, MrWait, MrGone, Cq, Image, ImageWait, Lock, Update, Unlock, Query,
    Counters, Quiesce, Respond, Event, Dead
  } state_e;
  state_e state_q;

  logic rec_q;                 // the command is of the recovery ring
  logic [23:0] ci_q, rci_q;
  logic [511:0] cmd_q;
  ordma_hw_pkg::cmd_t head;
  ordma_hw_pkg::cmd_page_t page;
  ordma_hw_pkg::cmd_mr_t mr;
  ordma_hw_pkg::cmd_cq_t cq;
  ordma_hw_pkg::cmd_qp_t qp;
  ordma_hw_pkg::cmd_gid_t gid;
  ordma_hw_pkg::cmd_out_t out;
  ordma_hw_pkg::rsp_t rsp;
  ordma_hw_pkg::progress_t prog;
  logic [7:0] status_q, status;
  logic [63:0] result_q;
  logic [(1<<ordma_pkg::PageLog)-1:0] pages_q;
  logic [(1<<ordma_pkg::MrLog)-1:0] mrs_q;
  logic [1023:0] image_q;
  logic image_half_q;
  ordma_hw_pkg::qpc_t image;
  ordma_pkg::qp_ctx_t ctx_q;
  logic [15:0] count_q;
  logic is_qp, is_destroy, page_ok, mr_ok, cq_ok, gid_ok, gid_v4;
  logic [127:0] image_dgid;

  logic [7:0] up_status;
  logic up_write, up_kick, up_wake, up_rewound;
  ordma_pkg::qp_ctl_t up_ctl, ctl_q;
  ordma_pkg::qp_sq_t up_sq, sq_q;
  ordma_pkg::qp_rq_t up_rq, rq_q;
  logic write_q, kick_q, wake_q, cqs_exist, sgid_ok;

  // A datagram QP has no path MTU: the port's counts. It is put into the image that is kept.
  logic [4:0] port_mtu_log;
  logic [1023:0] image_raw;
  ordma_hw_pkg::qpc_t image_in;
  logic datagram;

  assign head = cmd_q;
  assign page = cmd_q;
  assign mr = cmd_q;
  assign cq = cmd_q;
  assign qp = cmd_q;
  assign gid = cmd_q;
  assign out = cmd_q;
  assign image_in = {1024'd0, image_q};
  assign datagram = image_in.type_ == ordma_hw_pkg::QpTypeUd || image_in.type_ == ordma_hw_pkg::QpTypeGsi;
  assign port_mtu_log = max_mtu_i[12] ? 5'd12 : max_mtu_i[11] ? 5'd11 : max_mtu_i[10] ? 5'd10 : max_mtu_i[9] ? 5'd9 : 5'd8;
  always_comb begin
    image_raw = image_q;
    if (datagram && image_in.mtu_log == '0) image_raw[ordma_hw_pkg::QpcMtuLogLsb +: 5] = port_mtu_log;
  end
  assign image = {1024'd0, image_raw};
  assign busy_o = (state_q != Idle && state_q != Dead) || (!halt_i && (ci_q != cmd_pi_i || rci_q != rcmd_pi_i));
  assign is_qp = head.opcode == ordma_hw_pkg::CmdOpQpCreate || head.opcode == ordma_hw_pkg::CmdOpQpModify;
  assign is_destroy = head.opcode == ordma_hw_pkg::CmdOpQpDestroy || head.opcode == ordma_hw_pkg::CmdOpMrDestroy
                   || head.opcode == ordma_hw_pkg::CmdOpCqDestroy;

  // ---------------------------------------------------------------- checks of the simple objects
  assign page_ok = head.number[31:ordma_pkg::PageLog] == '0 && head.number[ordma_pkg::PageLog-1:0] != '0;
  always_comb begin
    mr_ok = 1'b0;
    cq_ok = 1'b0;
    if (state_q == Decode) begin
      mr_ok = head.number[15:ordma_pkg::MrLog] == '0 && head.number != ordma_hw_pkg::ReservedLkey
          && head.number[ordma_pkg::MrLog-1:0] != '0 && mr.access[7:4] == '0 && mr.level != 2'd3
          && mr.length != '0 && mr.iova + mr.length - 64'd1 >= mr.iova
          && (mr.level == ordma_hw_pkg::BufLevelDirect
              || (mr.page_log >= 6'd12 && mr.page_log <= 6'd31 && mr.addr[2:0] == '0
                  && mr.first_off >> mr.page_log[4:0] == '0));
      cq_ok = head.number[31:ordma_pkg::CqLog] == '0 && cq.log <= ordma_pkg::MaxCqeLog[4:0] && cq.level != 2'd3
          && cq.addr != '0 && cq.uctx < ordma_pkg::MaxUctx[15:0] && cq.record[2:0] == '0 && cq.record != '0
          && (cq.level == ordma_hw_pkg::BufLevelDirect ? cq.addr[5:0] == '0
              : cq.page_log >= 6'd12 && cq.page_log <= 6'd31 && cq.addr[2:0] == '0);
    end
  end
  // ::ffff:a.b.c.d, raw bytes.
  assign gid_v4 = gid.gid[79:0] == '0 && gid.gid[95:80] == 16'hffff;
  assign gid_ok = head.number[31:ordma_pkg::GidLog] == '0 && (!gid.valid || gid.ipv4 == gid_v4);
  assign image_dgid = image.dgid;
  assign cqs_exist = image.scqn[23:ordma_pkg::CqLog] == '0 && cq_exists_i[image.scqn[ordma_pkg::CqLog-1:0]]
                  && image.rcqn[23:ordma_pkg::CqLog] == '0 && cq_exists_i[image.rcqn[ordma_pkg::CqLog-1:0]];
  assign sgid_ok = image.sgid_index[7:ordma_pkg::GidLog] == '0
      && gid_valid_i[image.sgid_index[ordma_pkg::GidLog-1:0]]
      && gid_v4_i[image.sgid_index[ordma_pkg::GidLog-1:0]]
         == (image_dgid[79:0] == '0 && image_dgid[95:80] == 16'hffff);

  ordma_qp_update u_update (
    .valid_i(state_q == Update), .cmd_i(cmd_q), .image_i(image), .ctx_i(ctx_q), .time_i, .cqs_exist_i(cqs_exist),
    .sgid_ok_i(sgid_ok), .max_mtu_i, .status_o(up_status), .write_o(up_write), .ctl_o(up_ctl), .sq_o(up_sq),
    .rq_o(up_rq), .kick_o(up_kick), .wake_o(up_wake), .rewound_o(up_rewound)
  );

  // ---------------------------------------------------------------- tables
  always_comb begin
    page_we_o = state_q == Decode && status == ordma_hw_pkg::CmdStatusOk
        && (head.opcode == ordma_hw_pkg::CmdOpPageOpen || head.opcode == ordma_hw_pkg::CmdOpPageClose);
    page_addr_o = head.number[ordma_pkg::PageLog-1:0];
    page_o = '0;
    page_o.valid = head.opcode == ordma_hw_pkg::CmdOpPageOpen;
    page_o.uctx = page.uctx;
    page_o.record = page.record;
    gid_we_o = state_q == Decode && status == ordma_hw_pkg::CmdStatusOk && head.opcode == ordma_hw_pkg::CmdOpGidSet;
    gid_addr_o = head.number[ordma_pkg::GidLog-1:0];
    gid_o = '0;
    gid_o.valid = gid.valid;
    gid_o.ipv4 = gid.ipv4;
    gid_o.has_vlan = gid.has_vlan;
    gid_o.vlan = gid.vlan;
    gid_o.gid = gid.gid;
    gid_o.mac = gid.mac;
    mr_we_o = (state_q == Decode && status == ordma_hw_pkg::CmdStatusOk && head.opcode == ordma_hw_pkg::CmdOpMrCreate)
        || state_q == MrGone;
    mr_o = '0;
    mr_o.valid = state_q == Decode;
    mr_o.key = head.number;
    mr_o.pd = mr.pd;
    mr_o.access = mr.access;
    mr_o.page_log = mr.page_log[4:0];
    mr_o.level = mr.level;
    mr_o.first_off = mr.first_off;
    mr_o.iova = mr.iova;
    mr_o.length = mr.length;
    mr_o.addr = mr.addr;
    mr_valid_o = state_q == MrRead;
    mr_index_o = head.number[ordma_pkg::MrLog-1:0];
    cq_valid_o = state_q == Cq;
    cq_o = '0;
    cq_o.valid = head.opcode == ordma_hw_pkg::CmdOpCqCreate;
    cq_o.uctx = cq.uctx;
    cq_o.log = cq.log;
    cq_o.page_log = cq.page_log[4:0];
    cq_o.level = cq.level;
    cq_o.vec = cq.vector_;
    cq_o.addr = cq.addr;
    cq_o.record = cq.record;
    cq_o.cqn = head.number[23:0];
    dbcq_o = '0;
    dbcq_o.valid = cq_o.valid;
    dbcq_o.number = head.number[23:0];
    dbcq_o.uctx = cq.uctx;
  end

  assign dbcq_we_o = cq_valid_o && cq_ready_i;

  always_comb begin
    acq_valid_o = state_q == Lock;
    qp_o = head.number[ordma_pkg::QpLog-1:0];
    rel_o = '0;
    rel_attr_o = image_raw;
    if (state_q == Unlock) begin
      rel_o.valid = 1'b1;
      rel_o.we_ctl = write_q;
      rel_o.we_sq = write_q;
      rel_o.we_rq = write_q;
      rel_o.we_attr = write_q && is_qp;
      rel_o.qp = qp_o;
      rel_o.ctl = ctl_q;
      rel_o.sq = sq_q;
      rel_o.rq = rq_q;
    end
    // The doorbell stage learns of a QP before, and forgets it before, anyone can work on it.
    dbqp_we_o = state_q == Unlock && rel_ready_i && write_q
        && (head.opcode == ordma_hw_pkg::CmdOpQpCreate || head.opcode == ordma_hw_pkg::CmdOpQpDestroy);
    dbqp_clear_o = head.opcode == ordma_hw_pkg::CmdOpQpCreate;
    dbqp_o = '0;
    dbqp_o.valid = head.opcode == ordma_hw_pkg::CmdOpQpCreate;
    dbqp_o.number = head.number[23:0];
    dbqp_o.uctx = image.uctx;
    dbqp_o.sq_log = image.sq_log;
    dbqp_o.rq_log = image.rq_log;
    dbqp_o.has_sq = image.sq_stride_log != '0;
    dbqp_o.has_rq = image.rq_stride_log != '0;
  end
  assign kick_o = state_q == Unlock && rel_ready_i && kick_q;
  assign wake_o = state_q == Unlock && rel_ready_i && wake_q;
  assign quiesce_o = state_q == Quiesce;
  assign flush_o = state_q == Decode && is_destroy;
  assign fatal_o = state_q == Dead;

  // ---------------------------------------------------------------- host memory
  always_comb begin
    rd_valid_o = state_q == Fetch || state_q == Image;
    rd_req_o = '0;
    rd_req_o.len = 13'd64;
    rd_req_o.addr = rec_q ? rcmd_base_i + {34'd0, rci_q & ~(24'hff_ffff << rcmd_log_i), 6'd0}
                          : cmd_base_i + {34'd0, ci_q & ~(24'hff_ffff << cmd_log_i), 6'd0};
    if (state_q == Image) begin
      rd_req_o.addr = qp.image;
      rd_req_o.len = 13'd128;
    end
  end

  always_comb begin
    rsp = '0;
    prog = '0;
    eg_valid_o = state_q == Respond || state_q == Query || (state_q == Counters && count_q != '0);
    eg_o = '0;
    eg_o.last = 1'b1;
    cnt_addr_o = result_q[ordma_pkg::CntLog-1:0];
    case (state_q)
      Respond: begin
        rsp.status = status_q;
        rsp.seq = head.seq;
        rsp.result0 = result_q;
        rsp.phase = ((ci_q >> cmd_log_i) & 24'd1) == '0;
        eg_o.addr = rsp_base_i + {35'd0, ci_q & ~(24'hff_ffff << cmd_log_i), 5'd0};
        eg_o.len = 13'd32;
        eg_o.kind = ordma_pkg::KindResponse;
        eg_o.data = {256'd0, rsp};
      end
      Query: begin
        prog.una_psn = ctx_q.sq.una_psn;
        prog.next_psn = ctx_q.sq.high_psn;
        prog.epsn = ctx_q.rq.epsn;
        prog.msn = ctx_q.rq.msn;
        prog.log_acked = ctx_q.sq.log_acked;
        prog.log_sent = ctx_q.sq.log_sent;
        prog.log_accepted = ctx_q.sq.log_sent;
        prog.state = {4'd0, ctx_q.ctl.state};
        prog.frozen = ctx_q.ctl.frozen;
        prog.draining = ctx_q.ctl.state == ordma_hw_pkg::QpStateSqd[3:0] && ctx_q.sq.log_acked != ctx_q.sq.log_sent;
        prog.sq_pi = ctx_q.sq_pi;
        prog.sq_ci = ctx_q.sq.sq_ci;
        prog.rq_pi = ctx_q.rq_pi;
        prog.rq_ci = ctx_q.rq.ci;
        prog.progress_time = ctx_q.sq.progress;
        eg_o.addr = qp.image;
        eg_o.len = 13'd64;
        eg_o.kind = ordma_pkg::KindQuery;
        eg_o.data = prog;
      end
      Counters: begin
        eg_o.addr = out.addr + {45'd0, result_q[15:0], 3'd0};
        eg_o.len = 13'd8;
        eg_o.kind = ordma_pkg::KindQuery;
        eg_o.data = {448'd0, cnt_data_i};
      end
      default: ;
    endcase
    ev_valid_o = state_q == Event;
    ev_o = '0;
    ev_o.kind = ordma_hw_pkg::EventTypeCmdDone;
    ev_o.number = {16'd0, head.opcode};
    ev_o.log_index = {8'd0, head.seq};
  end

  // ---------------------------------------------------------------- verdict on what needs no context
  always_comb begin
    status = ordma_hw_pkg::CmdStatusOk;
    case (head.opcode)
      ordma_hw_pkg::CmdOpPageOpen: begin
        if (!page_ok || page.uctx >= ordma_pkg::MaxUctx[15:0] || page.record[2:0] != '0) status = ordma_hw_pkg::CmdStatusBadParam;
        else if (pages_q[page_addr_o]) status = ordma_hw_pkg::CmdStatusExists;
        else if (page.token) status = ordma_hw_pkg::CmdStatusUnsupported;
      end
      ordma_hw_pkg::CmdOpPageClose: begin
        if (!page_ok) status = ordma_hw_pkg::CmdStatusBadParam;
        else if (!pages_q[page_addr_o]) status = ordma_hw_pkg::CmdStatusNoObject;
      end
      ordma_hw_pkg::CmdOpMrCreate: begin
        if (!mr_ok) status = ordma_hw_pkg::CmdStatusBadParam;
        else if (mrs_q[mr_index_o]) status = ordma_hw_pkg::CmdStatusExists;
      end
      ordma_hw_pkg::CmdOpMrDestroy: begin
        if (head.number[15:ordma_pkg::MrLog] != '0 || !mrs_q[mr_index_o]) status = ordma_hw_pkg::CmdStatusNoObject;
      end
      ordma_hw_pkg::CmdOpCqCreate: begin
        if (!cq_ok) status = ordma_hw_pkg::CmdStatusBadParam;
        else if (cq_exists_i[head.number[ordma_pkg::CqLog-1:0]]) status = ordma_hw_pkg::CmdStatusExists;
      end
      ordma_hw_pkg::CmdOpCqDestroy: begin
        if (head.number[31:ordma_pkg::CqLog] != '0 || !cq_exists_i[head.number[ordma_pkg::CqLog-1:0]]) begin
          status = ordma_hw_pkg::CmdStatusNoObject;
        end
      end
      ordma_hw_pkg::CmdOpGidSet: if (!gid_ok) status = ordma_hw_pkg::CmdStatusBadParam;
      ordma_hw_pkg::CmdOpCounters: if (out.addr[2:0] != '0) status = ordma_hw_pkg::CmdStatusBadParam;
      ordma_hw_pkg::CmdOpNop, ordma_hw_pkg::CmdOpQpCreate, ordma_hw_pkg::CmdOpQpModify,
      ordma_hw_pkg::CmdOpQpDestroy, ordma_hw_pkg::CmdOpQpQuery: ;
      default: status = ordma_hw_pkg::CmdStatusUnsupported;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      rec_q <= 1'b0;
      ci_q <= '0;
      rci_q <= '0;
      cmd_q <= '0;
      status_q <= '0;
      result_q <= '0;
      pages_q <= '0;
      mrs_q <= '0;
      image_q <= '0;
      image_half_q <= 1'b0;
      ctx_q <= '0;
      count_q <= '0;
      ctl_q <= '0;
      sq_q <= '0;
      rq_q <= '0;
      write_q <= 1'b0;
      kick_q <= 1'b0;
      wake_q <= 1'b0;
      fatal_reason_o <= '0;
      cnt_rewind_o <= 1'b0;
    end else begin
      cnt_rewind_o <= 1'b0;
      case (state_q)
        Idle: if (!halt_i && (rci_q != rcmd_pi_i || ci_q != cmd_pi_i)) begin
          rec_q <= rci_q != rcmd_pi_i;
          result_q <= '0;
          state_q <= Fetch;
        end
        Fetch: if (rd_ready_i) state_q <= FetchWait;
        FetchWait: if (rd_rsp_valid_i) begin
          cmd_q <= rd_rsp_data_i;
          state_q <= Decode;
          if (rd_rsp_err_i) begin
            fatal_reason_o <= ordma_hw_pkg::FatalDma;
            state_q <= Dead;
          end
        end
        Decode: begin
          status_q <= status;
          state_q <= Respond;
          image_half_q <= 1'b0;
          count_q <= (out.count > ordma_pkg::NumCounter[15:0]) ? ordma_pkg::NumCounter[15:0] : out.count;
          if (head.seq != (rec_q ? rci_q[15:0] : ci_q[15:0])) begin
            fatal_reason_o <= ordma_hw_pkg::FatalCmd;
            state_q <= Dead;
          end else if (rec_q) begin
            // Anything else in the recovery ring is nothing.
            state_q <= (head.opcode == ordma_hw_pkg::CmdOpQpRewind || head.opcode == ordma_hw_pkg::CmdOpQpFail
                        || head.opcode == ordma_hw_pkg::CmdOpQpSilence) && head.number[13:ordma_pkg::QpLog] == '0 ? Lock : Idle;
            if (!((head.opcode == ordma_hw_pkg::CmdOpQpRewind || head.opcode == ordma_hw_pkg::CmdOpQpFail
                   || head.opcode == ordma_hw_pkg::CmdOpQpSilence) && head.number[13:ordma_pkg::QpLog] == '0)) begin
              rci_q <= rci_q + 24'd1;
            end
          end else if (status == ordma_hw_pkg::CmdStatusOk) begin
            case (head.opcode)
              ordma_hw_pkg::CmdOpPageOpen: pages_q[page_addr_o] <= 1'b1;
              ordma_hw_pkg::CmdOpPageClose: pages_q[page_addr_o] <= 1'b0;
              ordma_hw_pkg::CmdOpMrCreate: mrs_q[mr_index_o] <= 1'b1;
              ordma_hw_pkg::CmdOpMrDestroy: state_q <= MrRead;
              ordma_hw_pkg::CmdOpCqCreate, ordma_hw_pkg::CmdOpCqDestroy: state_q <= Cq;
              ordma_hw_pkg::CmdOpCounters: state_q <= Counters;
              ordma_hw_pkg::CmdOpQpCreate, ordma_hw_pkg::CmdOpQpModify: state_q <= Image;
              ordma_hw_pkg::CmdOpQpDestroy, ordma_hw_pkg::CmdOpQpQuery: begin
                state_q <= Lock;
                if (head.number[13:ordma_pkg::QpLog] != '0) begin
                  status_q <= ordma_hw_pkg::CmdStatusNoObject;
                  state_q <= Respond;
                end
              end
              default: ;
            endcase
          end
        end
        MrRead: if (mr_ready_i) state_q <= MrWait;
        MrWait: if (mr_rsp_valid_i) begin
          state_q <= MrGone;
          if (mr_rsp_i.key != head.number) begin
            status_q <= ordma_hw_pkg::CmdStatusNoObject;
            state_q <= Respond;
          end
        end
        MrGone: begin
          mrs_q[mr_index_o] <= 1'b0;
          state_q <= Quiesce;
        end
        Cq: if (cq_ready_i) state_q <= (head.opcode == ordma_hw_pkg::CmdOpCqDestroy) ? Quiesce : Respond;
        Image: if (rd_ready_i) state_q <= ImageWait;
        ImageWait: if (rd_rsp_valid_i) begin
          image_half_q <= 1'b1;
          if (image_half_q) image_q[1023:512] <= rd_rsp_data_i;
          else image_q[511:0] <= rd_rsp_data_i;
          if (rd_rsp_last_i) begin
            state_q <= Lock;
            if (rd_rsp_err_i) begin
              status_q <= ordma_hw_pkg::CmdStatusDma;
              state_q <= Respond;
            end
          end
        end
        Lock: if (gnt_i) begin
          ctx_q <= ctx_i;
          state_q <= Update;
        end
        Update: begin
          status_q <= up_status;
          write_q <= up_write;
          kick_q <= up_kick;
          wake_q <= up_wake;
          ctl_q <= up_ctl;
          sq_q <= up_sq;
          rq_q <= up_rq;
          cnt_rewind_o <= up_rewound;
          state_q <= Unlock;
        end
        Unlock: if (rel_ready_i) begin
          state_q <= Respond;
          if (rec_q) begin
            rci_q <= rci_q + 24'd1;
            state_q <= Idle;
          end else if (head.opcode == ordma_hw_pkg::CmdOpQpQuery && status_q == ordma_hw_pkg::CmdStatusOk) begin
            state_q <= Query;
          end else if (write_q && (is_destroy || (head.opcode == ordma_hw_pkg::CmdOpQpModify
                                                  && qp.state == ordma_hw_pkg::QpStateReset))) begin
            state_q <= Quiesce;
          end
        end
        Query: if (eg_ready_i) state_q <= Respond;
        Counters: begin
          if (count_q == '0) begin
            state_q <= Respond;
          end else if (eg_ready_i) begin
            count_q <= count_q - 16'd1;
            result_q <= result_q + 64'd1;
          end
        end
        Quiesce: if (quiesced_i) state_q <= Respond;
        Respond: if (eg_ready_i) begin
          state_q <= head.irq ? Event : Idle;
          if (!head.irq) ci_q <= ci_q + 24'd1;
        end
        Event: if (ev_ready_i) begin
          ci_q <= ci_q + 24'd1;
          state_q <= Idle;
        end
        default: ;
      endcase
      if (start_i) begin
        ci_q <= '0;
        rci_q <= '0;
      end
    end
  end
endmodule
