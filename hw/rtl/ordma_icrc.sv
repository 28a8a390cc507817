// SPDX-License-Identifier: BSD-2-Clause
//
// ICRC state of a frame, one beat per cycle. Input starts at the Ethernet header; bytes behind count_i
// are zero. The fields that routers change are masked to ones by position, the Ethernet header to
// zeros (leading zeros are free), and the eight FF bytes in front of the IP header are a constant seed.
// Built for beats of 64 bytes: the fields to mask lie in the first two.
// crc_o is the state after the last beat, one cycle later. The ICRC on the wire is its complement, low
// byte first; over a frame that includes its ICRC the state is the constant residue.
module ordma_icrc (
  input logic clk_i,
  input logic valid_i,
  input logic first_i,
  input logic last_i,
  input logic [6:0] count_i,
  input logic [511:0] data_i,
  output logic [31:0] crc_o
);
  localparam logic [31:0] Seed = 32'hdebb20e3;
  logic [31:0] crc_q, crc, state;
  logic second_q, second_v6_q, second_vlan_q;
  logic vlan, v6;
  logic [15:0] type0, type1;
  logic [511:0] masked, mixed;

  assign crc_o = crc_q;
  assign type0 = {data_i[8*12 +: 8], data_i[8*13 +: 8]};
  assign type1 = {data_i[8*16 +: 8], data_i[8*17 +: 8]};
  assign vlan = type0 == ordma_hw_pkg::EthertypeVlan;
  assign v6 = (vlan ? type1 : type0) == ordma_hw_pkg::EthertypeIpv6;

  always_comb begin
    masked = data_i;
    if (valid_i && first_i) begin
      masked[111:0] = '0;
      if (!vlan && !v6) begin
        masked[8*15 +: 8] = 8'hff;
        masked[8*22 +: 8] = 8'hff;
        masked[8*24 +: 16] = 16'hffff;
        masked[8*40 +: 16] = 16'hffff;
        masked[8*46 +: 8] = 8'hff;
        masked[8*14 +: 32] = masked[8*14 +: 32] ^ Seed;
      end else if (!vlan) begin
        masked[8*14 +: 4] = 4'hf;
        masked[8*15 +: 24] = 24'hffffff;
        masked[8*21 +: 8] = 8'hff;
        masked[8*60 +: 16] = 16'hffff;
        masked[8*14 +: 32] = masked[8*14 +: 32] ^ Seed;
      end else begin
        masked[143:112] = '0;
        if (!v6) begin
          masked[8*19 +: 8] = 8'hff;
          masked[8*26 +: 8] = 8'hff;
          masked[8*28 +: 16] = 16'hffff;
          masked[8*44 +: 16] = 16'hffff;
          masked[8*50 +: 8] = 8'hff;
        end else begin
          masked[8*18 +: 4] = 4'hf;
          masked[8*19 +: 24] = 24'hffffff;
          masked[8*25 +: 8] = 8'hff;
        end
        masked[8*18 +: 32] = masked[8*18 +: 32] ^ Seed;
      end
    end
    if (valid_i && second_q && second_v6_q) begin
      if (second_vlan_q) begin
        masked[15:0] = 16'hffff;
        masked[8*6 +: 8] = 8'hff;
      end else begin
        masked[8*2 +: 8] = 8'hff;
      end
    end
  end

  // A short last beat moves to the top. The state then reaches beyond a beat of two bytes; what it
  // would have mixed into bytes that do not exist stays.
  assign state = first_i ? 32'd0 : crc_q;
  always_comb begin
    mixed = masked;
    mixed[31:0] = masked[31:0] ^ state;
    if (valid_i && last_i && count_i != 7'd64) mixed = mixed << {7'd64 - count_i, 3'd0};
  end

  ordma_crc32 #(.DATA_W(512)) u_crc (.valid_i, .data_i(mixed), .crc_o(crc));

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      crc_q <= (last_i && count_i < 7'd4) ? crc ^ (state >> {count_i[1:0], 3'd0}) : crc;
      second_q <= first_i;
      second_v6_q <= v6;
      second_vlan_q <= vlan;
    end
  end
endmodule
