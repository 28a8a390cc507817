// SPDX-License-Identifier: BSD-2-Clause
//
// Device counters in the order of enum counter. Blocks pulse their counters; the two byte counters
// add a length. One register file; the command processor reads it word by word.
module ordma_counters (
  input logic clk_i,
  input logic rst_ni,
  input logic [ordma_pkg::NumCounter-1:0] pulse_i,
  input logic [ordma_pkg::LenW-1:0] tx_bytes_i,
  input logic [ordma_pkg::LenW-1:0] rx_bytes_i,
  input logic [ordma_pkg::CntLog-1:0] raddr_i,
  output logic [63:0] rdata_o
);
  localparam int unsigned TxBytes = {16'd0, ordma_hw_pkg::CounterTxBytes};
  localparam int unsigned RxBytes = {16'd0, ordma_hw_pkg::CounterRxBytes};
  logic [63:0] cnt_q[0:ordma_pkg::NumCounter-1];

  assign rdata_o = cnt_q[raddr_i];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < ordma_pkg::NumCounter; i++) cnt_q[i] <= '0;
    end else if (pulse_i != '0) begin
      for (int unsigned i = 0; i < ordma_pkg::NumCounter; i++) begin
        if (pulse_i[i]) begin
          if (i == TxBytes) cnt_q[i] <= cnt_q[i] + {51'd0, tx_bytes_i};
          else if (i == RxBytes) cnt_q[i] <= cnt_q[i] + {51'd0, rx_bytes_i};
          else cnt_q[i] <= cnt_q[i] + 64'd1;
        end
      end
    end
  end
endmodule
