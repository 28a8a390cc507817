// SPDX-License-Identifier: BSD-2-Clause
// Both forms of the CRC side by side: the one that is simulated and the one that is synthesised.
module crc_forms (
  input logic [511:0] data_i,
  output logic [31:0] table_o,
  output logic [31:0] mask_o
);
  ordma_crc32 #(.DATA_W(512), .TABLE(1'b1)) u_table (.valid_i(1'b1), .data_i, .crc_o(table_o));
  ordma_crc32 #(.DATA_W(512), .TABLE(1'b0)) u_mask (.valid_i(1'b1), .data_i, .crc_o(mask_o));
endmodule
