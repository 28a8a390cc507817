// SPDX-License-Identifier: BSD-2-Clause
//
// One write port, one read port with registered output: a block RAM. A read of the address that is
// being written returns the old word.
module ordma_ram #(
  parameter int unsigned W = 8,
  parameter int unsigned Log = 4
) (
  input logic clk_i,
  input logic we_i,
  input logic [Log-1:0] waddr_i,
  input logic [W-1:0] wdata_i,
  input logic re_i,
  input logic [Log-1:0] raddr_i,
  output logic [W-1:0] rdata_o
);
  logic [W-1:0] mem[0:(1<<Log)-1];

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
    if (re_i) rdata_o <= mem[raddr_i];
  end
endmodule
