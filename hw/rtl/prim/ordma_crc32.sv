// SPDX-License-Identifier: BSD-2-Clause
//
// CRC-32 (reflected 0x04C11DB7) of one beat, start state 0, byte 0 first. Leading zero bytes are free,
// so a state is applied by XOR to the first four bytes, and a short beat is moved to the top bytes.
// Two forms of the same function: parity masks for synthesis, byte tables for simulation speed.
module ordma_crc32 #(
  parameter int unsigned DATA_W = 512,
`ifdef VERILATOR
  parameter bit TABLE = 1'b1
`else
  parameter bit TABLE = 1'b0
`endif
) (
  input logic valid_i,
  input logic [DATA_W-1:0] data_i,
  output logic [31:0] crc_o
);
  localparam int unsigned Bytes = DATA_W / 8;
  localparam logic [31:0] Poly = 32'hedb88320;

  // Which data bits toggle bit r of the CRC.
  function automatic [DATA_W-1:0] row(input integer r);
    logic [31:0] c;
    integer k;
    integer b;
    integer s;
    for (b = 0; b < 8; b = b + 1) begin
      c = 32'd1 << b;
      for (k = Bytes - 1; k >= 0; k = k - 1) begin
        for (s = 0; s < 8; s = s + 1) c = (c >> 1) ^ (c[0] ? Poly : 32'd0);
        row[k*8 + b] = c[r];
      end
    end
  endfunction

  generate
    if (TABLE) begin : gen_table
      logic [31:0] tab[0:Bytes*256-1];

      initial begin : fill
        logic [31:0] c;
        for (int unsigned b = 0; b < 256; b++) begin
          c = b;
          for (int unsigned s = 0; s < 8; s++) c = (c >> 1) ^ (c[0] ? Poly : 32'd0);
          tab[(Bytes-1)*256 + b] = c;
        end
        for (int unsigned k = Bytes - 1; k > 0; k--) begin
          for (int unsigned b = 0; b < 256; b++) begin
            c = tab[k*256 + b];
            tab[(k-1)*256 + b] = (c >> 8) ^ tab[(Bytes-1)*256 + {24'd0, c[7:0]}];
          end
        end
      end

      always_comb begin
        crc_o = '0;
        if (valid_i) begin
          for (int unsigned k = 0; k < Bytes; k++) crc_o = crc_o ^ tab[k*256 + {24'd0, data_i[8*k +: 8]}];
        end
      end
    end else begin : gen_mask
      for (genvar r = 0; r < 32; r++) begin : gen_row
        localparam logic [DATA_W-1:0] Row = row(r);
        assign crc_o[r] = valid_i && ^(data_i & Row);
      end
    end
  endgenerate
endmodule
