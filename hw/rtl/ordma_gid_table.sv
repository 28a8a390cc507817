// SPDX-License-Identifier: BSD-2-Clause
//
// GID table: the only source of our addresses. Small enough for registers; two combinational read
// ports (frame builder, receive check).
module ordma_gid_table (
  input logic clk_i,
  input logic rst_ni,
  input logic we_i,
  input logic [ordma_pkg::GidLog-1:0] waddr_i,
  input ordma_pkg::gid_t wdata_i,
  input logic [ordma_pkg::GidLog-1:0] tx_addr_i,
  output ordma_pkg::gid_t tx_gid_o,
  input logic [ordma_pkg::GidLog-1:0] rx_addr_i,
  output ordma_pkg::gid_t rx_gid_o
);
  localparam int unsigned Num = 1 << ordma_pkg::GidLog;
  logic [ordma_pkg::GidW-1:0] mem[0:Num-1];
  logic [Num-1:0] valid_q;
  ordma_pkg::gid_t tx, rx;

  assign tx = mem[tx_addr_i];
  assign rx = mem[rx_addr_i];

  always_comb begin
    tx_gid_o = tx;
    tx_gid_o.valid = valid_q[tx_addr_i];
    rx_gid_o = rx;
    rx_gid_o.valid = valid_q[rx_addr_i];
  end

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= '0;
    else if (we_i) valid_q[waddr_i] <= wdata_i.valid;
  end
endmodule
