// SPDX-License-Identifier: BSD-2-Clause
//
// Moves a byte range of the receive ring into the egress as one write, shifted to lane 0.
// Call protocol: valid_i and cmd_i are held until done_o. 3 cycles and two per beat.
module ordma_place (
  input logic clk_i,
  input logic rst_ni,
  input logic valid_i,
  input ordma_pkg::place_t cmd_i,
  output logic done_o,
  output logic ring_re_o,
  output logic [ordma_pkg::RxBufLog-1:0] ring_addr_o,
  input logic [511:0] ring_data_i,
  output logic eg_valid_o,
  output ordma_pkg::eg_beat_t eg_o,
  input logic eg_ready_i
);
  localparam int unsigned BL = ordma_pkg::RxBufLog;
  typedef enum logic [2:0] { Idle, First, Second, Out, Next, Done } state_e;
  state_e state_q;
  logic [BL-1:0] at_q;
  logic [511:0] low_q, high_q, data;
  logic [ordma_pkg::LenW-1:0] left_q;
  logic [5:0] shift;

  assign shift = cmd_i.from[5:0];
  assign done_o = state_q == Done;
  assign ring_re_o = state_q == Idle ? valid_i : (state_q == First || (state_q == Out && eg_ready_i));
  assign ring_addr_o = (state_q == Idle) ? cmd_i.from[BL+5:6] : at_q;

  always_comb begin
    data = '0;
    eg_valid_o = state_q == Out;
    eg_o = '0;
    if (state_q == Out) begin
      data = (shift == '0) ? low_q : (low_q >> {shift, 3'd0}) | (high_q << {7'd64 - {1'b0, shift}, 3'd0});
      if (cmd_i.grh && left_q == cmd_i.len) data[7:0] = 8'd27;
      eg_o.addr = cmd_i.addr;
      eg_o.len = cmd_i.len;
      eg_o.kind = ordma_pkg::KindPayload;
      eg_o.last = left_q <= 13'd64;
      eg_o.data = data;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      at_q <= '0;
      left_q <= '0;
    end else begin
      case (state_q)
        Idle: if (valid_i) begin
          at_q <= cmd_i.from[BL+5:6] + 1'b1;
          left_q <= cmd_i.len;
          state_q <= First;
        end
        First: begin
          at_q <= at_q + 1'b1;
          state_q <= Second;
        end
        Second: state_q <= Out;
        Out: if (eg_ready_i) begin
          left_q <= left_q - 13'd64;
          at_q <= at_q + 1'b1;
          state_q <= (left_q <= 13'd64) ? Done : Next;
        end
        Next: state_q <= Out;
        default: state_q <= Idle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    case (state_q)
      First: low_q <= ring_data_i;
      Second: high_q <= ring_data_i;
      Next: begin
        low_q <= high_q;
        high_q <= ring_data_i;
      end
      default: ;
    endcase
  end
endmodule
