// SPDX-License-Identifier: BSD-2-Clause
//
// Registers: memory semantics, no side effect of a read. Also the two ways to stop: ENABLE = 0 lets
// what has begun end and keeps all state; a new RESET nonce does the same and then clears everything.
// A host that no longer answers cannot hold a reset up: after 2^16 cycles it is done regardless.
module ordma_regs #(
  parameter int unsigned DATA_W = ordma_pkg::DataW
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [63:0] time_i,
  input logic [63:0] mac_i,
  input logic [63:0] guid_i,
  input logic [31:0] port_mtu_i,
  input logic [31:0] port_speed_i,
  input logic [7:0] engine_i,

  input logic we_i,
  input logic [ordma_hw_pkg::RegAddrW-1:0] waddr_i,
  input logic [63:0] wdata_i,
  input logic [ordma_hw_pkg::RegAddrW-1:0] raddr_i,
  output logic [63:0] rdata_o,

  input logic quiet_i,             // nothing is under way inside
  input logic fatal_i,
  input logic [7:0] fatal_reason_i,
  output logic halt_o,             // begin nothing new
  output logic clear_o,            // reset of everything behind the registers
  output logic [63:0] cmd_base_o,
  output logic [63:0] rsp_base_o,
  output logic [63:0] rcmd_base_o,
  output logic [63:0] eq_base_o,
  output logic [4:0] cmd_log_o,
  output logic [4:0] rcmd_log_o,
  output logic [4:0] eq_log_o,
  output logic [23:0] eq_ci_o,
  output logic start_o,            // ENABLE went to 1: rings begin anew
  output logic link_o,
  output logic ev_valid_o,         // PORT
  output ordma_pkg::event_t ev_o,
  input logic ev_ready_i,
  input logic [23:0] ev_index_i,
  output logic [63:0] status_o,
  output logic [63:0] reset_echo_o,
  output logic busy_o
);
  localparam logic [31:0] Caps = ordma_hw_pkg::CapRc | ordma_hw_pkg::CapUc | ordma_hw_pkg::CapUd | ordma_hw_pkg::CapRead | ordma_hw_pkg::CapAtomic | ordma_hw_pkg::CapIpv6;
  localparam logic [31:0] BuildNumber = 32'd1;
  typedef enum logic [1:0] { Run, Drain, Clear, Echo } state_e;
  state_e state_q;
  logic [63:0] reset_q, enable_q, link_q;
  logic [16:0] patience_q;
  logic ready_q, fatal_q;
  logic [7:0] reason_q;
  logic [63:0] cmd_base_q, rsp_base_q, rcmd_base_q, eq_base_q;
  logic [31:0] cmd_log_q, rcmd_log_q, eq_log_q, eq_ci_q;
  logic link_told_q, told_q;     // the link state last reported; its event is still unread
  logic [23:0] told_at_q, told_ago;

  assign halt_o = state_q != Run || !enable_q[0] || fatal_q;
  assign clear_o = state_q == Clear;
  assign eq_ci_o = eq_ci_q[23:0];
  assign link_o = link_q[0];
  assign told_ago = eq_ci_q[23:0] - told_at_q;
  assign ev_valid_o = !halt_o && ready_q && link_q[0] != link_told_q && (!told_q || (told_ago != '0 && !told_ago[23]));
  always_comb begin
    ev_o = '0;
    ev_o.kind = ordma_hw_pkg::EventTypePort;
  end
  assign busy_o = ev_valid_o || state_q != Run || ready_q != (enable_q[0] && !fatal_q);
  assign status_o = {48'd0, reason_q, 5'd0, link_q[0], fatal_q, ready_q};
  assign cmd_base_o = cmd_base_q;
  assign rsp_base_o = rsp_base_q;
  assign rcmd_base_o = rcmd_base_q;
  assign eq_base_o = eq_base_q;
  assign cmd_log_o = cmd_log_q[4:0];
  assign rcmd_log_o = rcmd_log_q[4:0];
  assign eq_log_o = eq_log_q[4:0];

  always_comb begin
    rdata_o = '0;
    case (raddr_i)
      ordma_hw_pkg::RegMagic: rdata_o = ordma_hw_pkg::Magic;
      ordma_hw_pkg::RegVersion: rdata_o = {32'd0, ordma_hw_pkg::ContractMajor[15:0], ordma_hw_pkg::ContractMinor[15:0]};
      ordma_hw_pkg::RegBuild: rdata_o = {24'd0, engine_i, BuildNumber};
      ordma_hw_pkg::RegCaps: rdata_o = {32'd0, Caps};
      ordma_hw_pkg::RegMaxQp: rdata_o = 64'd1 << ordma_pkg::QpLog;
      ordma_hw_pkg::RegMaxCq: rdata_o = 64'd1 << ordma_pkg::CqLog;
      ordma_hw_pkg::RegMaxMr: rdata_o = 64'd1 << ordma_pkg::MrLog;
      ordma_hw_pkg::RegMaxPage: rdata_o = 64'd1 << ordma_pkg::PageLog;
      ordma_hw_pkg::RegMaxUctx: rdata_o = {32'd0, ordma_pkg::MaxUctx};
      ordma_hw_pkg::RegMaxSge: rdata_o = {32'd0, ordma_pkg::MaxSge};
      ordma_hw_pkg::RegMaxInline: rdata_o = {32'd0, ordma_pkg::MaxInline};
      ordma_hw_pkg::RegMaxWr: rdata_o = 64'd1 << ordma_pkg::MaxWrLog;
      ordma_hw_pkg::RegMaxCqe: rdata_o = 64'd1 << ordma_pkg::MaxCqeLog;
      ordma_hw_pkg::RegMaxRdAtomic: rdata_o = 64'd1 << ordma_pkg::RdLog;
      ordma_hw_pkg::RegMaxGid: rdata_o = 64'd1 << ordma_pkg::GidLog;
      ordma_hw_pkg::RegDataW: rdata_o = {32'd0, DATA_W};
      ordma_hw_pkg::RegPortMtu: rdata_o = {32'd0, port_mtu_i};
      ordma_hw_pkg::RegPortSpeed: rdata_o = {32'd0, port_speed_i};
      ordma_hw_pkg::RegMac: rdata_o = mac_i;
      ordma_hw_pkg::RegGuid: rdata_o = guid_i;
      ordma_hw_pkg::RegStatus: rdata_o = status_o;
      ordma_hw_pkg::RegReset: rdata_o = reset_q;
      ordma_hw_pkg::RegResetEcho: rdata_o = reset_echo_o;
      ordma_hw_pkg::RegEnable: rdata_o = enable_q;
      ordma_hw_pkg::RegCmdBase: rdata_o = cmd_base_q;
      ordma_hw_pkg::RegCmdRsp: rdata_o = rsp_base_q;
      ordma_hw_pkg::RegCmdLog: rdata_o = {32'd0, cmd_log_q};
      ordma_hw_pkg::RegRcmdLog: rdata_o = {32'd0, rcmd_log_q};
      ordma_hw_pkg::RegRcmdBase: rdata_o = rcmd_base_q;
      ordma_hw_pkg::RegEqBase: rdata_o = eq_base_q;
      ordma_hw_pkg::RegEqLog: rdata_o = {32'd0, eq_log_q};
      ordma_hw_pkg::RegLinkCtrl: rdata_o = link_q;
      ordma_hw_pkg::RegEqCi: rdata_o = {32'd0, eq_ci_q};
      ordma_hw_pkg::RegClock: rdata_o = time_i;
      default: ;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Run;
      reset_q <= '0;
      reset_echo_o <= '0;
      enable_q <= '0;
      link_q <= '0;
      patience_q <= '0;
      ready_q <= 1'b0;
      fatal_q <= 1'b0;
      reason_q <= '0;
      cmd_base_q <= '0;
      rsp_base_q <= '0;
      rcmd_base_q <= '0;
      eq_base_q <= '0;
      cmd_log_q <= '0;
      rcmd_log_q <= '0;
      eq_log_q <= '0;
      eq_ci_q <= '0;
      link_told_q <= 1'b0;
      told_q <= 1'b0;
      told_at_q <= '0;
      start_o <= 1'b0;
    end else begin
      start_o <= 1'b0;
      if (we_i) begin
        case (waddr_i)
          ordma_hw_pkg::RegReset: reset_q <= wdata_i;
          ordma_hw_pkg::RegEnable: begin
            enable_q <= wdata_i;
            if (wdata_i[0] && !enable_q[0]) begin
              start_o <= 1'b1;
              eq_ci_q <= '0;
              told_q <= 1'b0;
              link_told_q <= link_q[0];
            end
          end
          ordma_hw_pkg::RegCmdBase: cmd_base_q <= wdata_i;
          ordma_hw_pkg::RegCmdRsp: rsp_base_q <= wdata_i;
          ordma_hw_pkg::RegCmdLog: cmd_log_q <= wdata_i[31:0];
          ordma_hw_pkg::RegRcmdLog: rcmd_log_q <= wdata_i[31:0];
          ordma_hw_pkg::RegRcmdBase: rcmd_base_q <= wdata_i;
          ordma_hw_pkg::RegEqBase: eq_base_q <= wdata_i;
          ordma_hw_pkg::RegEqLog: eq_log_q <= wdata_i[31:0];
          ordma_hw_pkg::RegLinkCtrl: link_q <= wdata_i;
          ordma_hw_pkg::RegEqCi: eq_ci_q <= wdata_i[31:0];
          default: ;
        endcase
      end
      if (fatal_i && !fatal_q && state_q == Run) begin
        fatal_q <= 1'b1;
        reason_q <= fatal_reason_i;
      end
      if (ev_valid_o && ev_ready_i) begin
        link_told_q <= link_q[0];
        told_q <= 1'b1;
        told_at_q <= ev_index_i;
      end
      if (!halt_o) ready_q <= 1'b1;
      else if (quiet_i) ready_q <= 1'b0;
      case (state_q)
        Run: if (reset_q != reset_echo_o && reset_q != '0) begin
          patience_q <= '0;
          state_q <= Drain;
        end
        Drain: begin
          patience_q <= patience_q + 1'b1;
          if (quiet_i || patience_q[16]) begin
            patience_q <= '0;
            state_q <= Clear;
          end
        end
        Clear: begin
          patience_q <= patience_q + 1'b1;
          if (patience_q[2]) state_q <= Echo;
        end
        default: begin
          reset_echo_o <= reset_q;
          enable_q <= '0;
          link_q <= '0;
          fatal_q <= 1'b0;
          reason_q <= '0;
          ready_q <= 1'b0;
          state_q <= Run;
        end
      endcase
    end
  end
endmodule
