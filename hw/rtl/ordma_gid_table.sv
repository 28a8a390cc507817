// SPDX-License-Identifier: BSD-2-Clause
//
// GID table: the only source of our addresses. Small enough for registers; two combinational read
// ports (frame builder, receive check).
module ordma_gid_table #(
  parameter int unsigned Num = 1 << ordma_pkg::GidLog
) (
  input logic clk_i,
  input logic rst_ni,
  input logic we_i,
  input logic [ordma_pkg::GidLog-1:0] waddr_i,
  input ordma_pkg::gid_t wdata_i,
  input logic [ordma_pkg::GidLog-1:0] tx_addr_i,
  output ordma_pkg::gid_t tx_gid_o,
  input logic [ordma_pkg::GidLog-1:0] rx_addr_i,
  output ordma_pkg::gid_t rx_gid_o,
  // Is this address one of ours? Datagrams name no entry.
  input logic match_i,
  input logic [127:0] match_gid_i,
  input logic match_vlan_i,
  input logic [11:0] match_id_i,
  output logic match_o,
  output logic [Num-1:0] valid_o,
  output logic [Num-1:0] ipv4_o
);
  logic [ordma_pkg::GidW-1:0] mem[0:Num-1];
  logic [Num-1:0] valid_q, ipv4_q;
  ordma_pkg::gid_t tx, rx, one;

  assign tx = mem[tx_addr_i];
  assign rx = mem[rx_addr_i];

  always_comb begin
    tx_gid_o = tx;
    tx_gid_o.valid = valid_q[tx_addr_i];
    rx_gid_o = rx;
    rx_gid_o.valid = valid_q[rx_addr_i];
  end

  assign valid_o = valid_q;
  assign ipv4_o = ipv4_q;
  always_comb begin
    match_o = 1'b0;
    one = '0;
    if (match_i) begin
      for (int unsigned i = 0; i < Num; i++) begin
        one = mem[i];
        if (valid_q[i] && one.gid == match_gid_i && one.has_vlan == match_vlan_i
            && (!match_vlan_i || one.vlan == match_id_i)) match_o = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
      ipv4_q <= '0;
    end else if (we_i) begin
      valid_q[waddr_i] <= wdata_i.valid;
      ipv4_q[waddr_i] <= wdata_i.ipv4;
    end
  end
endmodule
