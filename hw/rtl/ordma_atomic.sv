// SPDX-License-Identifier: BSD-2-Clause
//
// One atomic on host memory, or the result of one that was done before. Execute: read the word after
// every earlier write of this NIC has left, write the result ring, then the new value, and say the old
// one. Replay: look for the PSN in the result ring. Call protocol.
module ordma_atomic (
  input logic clk_i,
  input logic rst_ni,
  input logic valid_i,
  input logic replay_i,
  input logic add_i,
  input logic [63:0] addr_i,
  input logic [63:0] operand_i,
  input logic [63:0] compare_i,
  input logic [23:0] psn_i,
  input logic [63:0] ring_i,        // result ring
  input logic [7:0] depth_i,        // its entries before rounding up to a power of two
  input logic [23:0] written_i,     // entries ever written
  output logic done_o,
  output logic fail_o,              // execute: not readable; replay: not there
  output logic [63:0] old_o,

  output logic rd_valid_o,
  output ordma_pkg::rd_req_t rd_req_o,
  input logic rd_ready_i,
  input logic rd_rsp_valid_i,
  input logic [127:0] rd_rsp_data_i,
  input logic rd_rsp_err_i,
  output logic eg_valid_o,
  output ordma_pkg::eg_beat_t eg_o,
  input logic eg_ready_i,
  input logic [15:0] eg_enq_i,
  input logic [15:0] eg_out_i
);
  localparam int unsigned RL = ordma_pkg::RdLog;
  typedef enum logic [2:0] { Idle, Fence, Read, Wait, Log, Write, Done } state_e;
  state_e state_q;
  logic [15:0] fence_q;
  logic [63:0] old_q, fresh;
  logic [RL:0] entries, at_q, count;
  logic fail_q;
  ordma_hw_pkg::atomic_result_t result, found;

  always_comb begin
    entries = {{RL{1'b0}}, 1'b1};
    for (int unsigned i = 0; i < RL; i++) begin
      if (depth_i[RL:0] > entries) entries = entries << 1;
    end
  end
  assign count = (written_i < {{(23-RL){1'b0}}, entries}) ? written_i[RL:0] : entries;
  assign found = rd_rsp_data_i;
  assign fresh = add_i ? old_q + operand_i : (old_q == compare_i) ? operand_i : old_q;
  assign done_o = state_q == Done;
  assign fail_o = fail_q;
  assign old_o = old_q;

  always_comb begin
    rd_valid_o = state_q == Read;
    rd_req_o = '0;
    rd_req_o.addr = replay_i ? ring_i + {{(59-RL){1'b0}}, at_q, 4'd0} : addr_i;
    rd_req_o.len = replay_i ? 13'd16 : 13'd8;
    result = '0;
    result.value = old_q;
    result.psn = psn_i;
    result.valid = 1'b1;
    eg_valid_o = state_q == Log || state_q == Write;
    eg_o = '0;
    eg_o.last = 1'b1;
    if (state_q == Log) begin
      eg_o.addr = ring_i + {{(60-RL){1'b0}}, written_i[RL-1:0] & (entries[RL-1:0] - 1'b1), 4'd0};
      eg_o.len = 13'd16;
      eg_o.kind = ordma_pkg::KindAtomic;
      eg_o.data = {384'd0, result};
    end else begin
      eg_o.addr = addr_i;
      eg_o.len = 13'd8;
      eg_o.kind = ordma_pkg::KindPayload;
      eg_o.data = {448'd0, fresh};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      fence_q <= '0;
      old_q <= '0;
      at_q <= '0;
      fail_q <= 1'b0;
    end else begin
      case (state_q)
        Idle: if (valid_i) begin
          fence_q <= eg_enq_i;
          at_q <= '0;
          fail_q <= 1'b0;
          state_q <= Fence;
          if (replay_i && count == '0) begin
            fail_q <= 1'b1;
            state_q <= Done;
          end
        end
        Fence: if (eg_out_i == fence_q || (fence_q - eg_out_i) > 16'h8000) state_q <= Read;
        Read: if (rd_ready_i) state_q <= Wait;
        Wait: if (rd_rsp_valid_i) begin
          old_q <= replay_i ? found.value : rd_rsp_data_i[63:0];
          at_q <= at_q + 1'b1;
          if (!replay_i) begin
            fail_q <= rd_rsp_err_i;
            state_q <= rd_rsp_err_i ? Done : Log;
          end else if (!rd_rsp_err_i && found.valid && found.psn == psn_i) begin
            state_q <= Done;
          end else begin
            fail_q <= at_q + 1'b1 == count;
            state_q <= (at_q + 1'b1 == count) ? Done : Read;
          end
        end
        Log: if (eg_ready_i) state_q <= Write;
        Write: if (eg_ready_i) state_q <= Done;
        default: state_q <= Idle;
      endcase
    end
  end
endmodule
