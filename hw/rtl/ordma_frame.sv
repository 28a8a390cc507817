// SPDX-License-Identifier: BSD-2-Clause
//
// Puts frames together: headers, payload, pad, ICRC. A frame starts only when its payload is here, so the wire never waits inside a frame;
// a payload that could not be read is dropped with its headers.
// Per frame: 6 cycles for the headers, one per beat, 4 for the tail. A frame over IPv6 leaves when its
// UDP checksum, which covers everything up to the ICRC, is known and patched into the first beats.
module ordma_frame (
  input logic clk_i,
  input logic rst_ni,
  input logic req_valid_i,
  input ordma_pkg::tx_desc_t req_i,
  output logic req_pop_o,

  output logic [ordma_pkg::GidLog-1:0] gid_addr_o,
  input ordma_pkg::gid_t gid_i,

  input logic pay_pkt_i,
  input logic pay_err_i,
  input logic [511:0] pay_data_i,
  input logic [6:0] pay_count_i,
  input logic pay_last_i,
  output logic pay_pop_o,

  output logic o_valid_o,
  input logic o_ready_i,
  output logic [511:0] o_data_o,
  output logic [6:0] o_count_o,
  output logic o_last_o,
  output logic cnt_packet_o,
  output logic [ordma_pkg::LenW-1:0] cnt_bytes_o,
  output logic busy_o
);
  localparam int unsigned FifoLog = 8;  // beats; two frames of 4 KiB and their headers
  typedef enum logic [3:0] { Idle, Build, Head, Pay, Pad, Last, Seal, Spill, Sum, Drop } state_e;
  state_e state_q;

  ordma_pkg::tx_desc_t d_q;
  logic start_q, hdr_done;
  logic [1023:0] hdr;
  logic [6:0] hdr_len;
  logic [511:0] acc_q, low, high;
  logic [6:0] fill_q, sum;   // bytes in acc, 1..64
  logic [1:0] pad;
  logic req_turn, space;

  // Beat on its way: counted into the CRC now, sent in the next cycle.
  logic e_valid, e_first, e_last;
  logic [6:0] e_count;
  logic [511:0] e_data;
  logic hold_q;
  logic [511:0] hold_data_q;
  logic first_q;
  logic [31:0] crc, icrc;
  logic [543:0] sealed;
  logic [6:0] seal_count_q;

  logic out_push, out_last;
  logic [511:0] out_data;
  logic [6:0] out_count;
  logic out_full, out_empty;
  logic [519:0] out_r;
  logic [FifoLog:0] out_used;

  assign req_turn = req_valid_i && (req_i.pay_len == '0 || pay_pkt_i);
  assign space = !out_used[FifoLog] && out_used < 9'd180 && !tok_full;
  assign req_pop_o = state_q == Idle && space && req_turn;
  assign gid_addr_o = d_q.gid;
  assign pad = 2'd0 - d_q.pay_len[1:0];
  assign busy_o = state_q != Idle || !out_empty || hold_q || sum_done_q;
  assign cnt_packet_o = state_q == Last;
  assign cnt_bytes_o = d_q.pay_len;

  ordma_header u_header (
    .clk_i, .rst_ni, .start_i(start_q), .desc_i(d_q), .gid_i, .done_o(hdr_done), .hdr_o(hdr), .len_o(hdr_len)
  );

  assign sum = fill_q + pay_count_i;
  assign pay_pop_o = state_q == Pay || state_q == Drop;
  always_comb begin
    low = '0;
    high = '0;
    if (state_q == Pay) begin
      low = acc_q | ((fill_q == 7'd64) ? 512'd0 : pay_data_i << {fill_q, 3'd0});
      if (fill_q == 7'd64) high = pay_data_i;
      else if (sum > 7'd64) high = pay_data_i >> {7'd64 - fill_q, 3'd0};
    end
  end

  always_comb begin
    e_valid = 1'b0;
    e_data = '0;
    e_count = 7'd64;
    e_last = 1'b0;
    e_first = first_q;
    case (state_q)
      Head: if (hdr_len > 7'd64) begin
        e_valid = 1'b1;
        e_data = hdr[511:0];
      end
      Pay: if (sum > 7'd64) begin
        e_valid = 1'b1;
        e_data = low;
      end
      Pad: if (fill_q + {5'd0, pad} > 7'd64) begin
        e_valid = 1'b1;
        e_data = acc_q;
      end
      Last: begin
        e_valid = 1'b1;
        e_data = acc_q;
        e_count = fill_q;
        e_last = 1'b1;
      end
      default: ;
    endcase
  end

  ordma_icrc u_icrc (
    .clk_i, .valid_i(e_valid), .first_i(e_first), .last_i(e_last), .count_i(e_count), .data_i(e_data), .crc_o(crc)
  );
  assign icrc = ~crc;

  // The ICRC may straddle two beats.
  always_comb begin
    sealed = {32'd0, hold_data_q};
    if (state_q == Seal) sealed = {32'd0, hold_data_q} | ({512'd0, icrc} << {seal_count_q, 3'd0});
    out_push = hold_q || state_q == Spill;
    out_data = sealed[511:0];
    out_count = 7'd64;
    out_last = 1'b0;
    if (state_q == Seal) begin
      out_count = (seal_count_q > 7'd60) ? 7'd64 : seal_count_q + 7'd4;
      out_last = seal_count_q <= 7'd60;
    end else if (state_q == Spill) begin
      out_count = seal_count_q - 7'd60;
      out_last = 1'b1;
    end
  end

  ordma_fifo #(.W(520), .Log(FifoLog)) u_out (
    .clk_i, .rst_ni, .push_i(out_push), .data_i({out_last, out_count, out_data}), .full_o(out_full),
    .pop_i(o_valid_o && o_ready_i), .data_o(out_r), .empty_o(out_empty), .count_o(out_used)
  );
  assign {o_last_o, o_count_o, out_word} = out_r;
  assign o_valid_o = !out_empty && !tok_empty;

  // ---------------------------------------------------------------- UDP checksum, IPv6 only
  // A frame leaves when its token is there: at its first beat over IPv4, over IPv6 when the checksum
  // of everything from the addresses to the ICRC is known. Sums are in memory byte order throughout.
  logic [511:0] out_word, summed;
  logic [16:0] tok_r;
  logic tok_push, tok_full, tok_empty, sum_first_q, sum_done_q, out_second_q, out_start_q;
  logic [7:0] tok_count;
  logic [31:0] sum_q, beat_sum;
  logic [19:0] fold;
  logic [15:0] udp_len, csum;

  assign udp_len = 16'd24 + {11'd0, d_q.ext_len} + {3'd0, d_q.pay_len} + {14'd0, pad} + 16'd17;
  always_comb begin
    summed = '0;
    beat_sum = '0;
    if (out_push && !gid_i.ipv4) begin
      summed = out_data;
      // Up to and including the hop limit.
      if (sum_first_q) summed[175:0] = '0;
      if (sum_first_q && gid_i.has_vlan) summed[207:176] = '0;
      for (int unsigned i = 0; i < 32; i++) beat_sum = beat_sum + {16'd0, summed[16*i +: 16]};
    end
    fold = '0;
    if (sum_done_q) begin
      fold = {4'd0, sum_q[15:0]} + {4'd0, sum_q[31:16]} + {4'd0, udp_len[7:0], udp_len[15:8]};
      fold = {4'd0, fold[15:0]} + {16'd0, fold[19:16]};
      fold = {4'd0, fold[15:0]} + {16'd0, fold[19:16]};
    end
    csum = (fold[15:0] == 16'hffff) ? 16'hffff : ~fold[15:0];
  end
  assign tok_push = gid_i.ipv4 ? out_push && sum_first_q : sum_done_q;
  ordma_fifo #(.W(17), .Log(7)) u_tokens (
    .clk_i, .rst_ni, .push_i(tok_push), .data_i({gid_i.has_vlan && !gid_i.ipv4, gid_i.ipv4 ? 16'd0 : csum}),
    .full_o(tok_full), .pop_i(o_valid_o && o_ready_i && o_last_o), .data_o(tok_r), .empty_o(tok_empty), .count_o(tok_count)
  );
  // The checksum ends the first beat, or begins the second behind a VLAN tag.
  always_comb begin
    o_data_o = out_word;
    if (out_start_q && !tok_r[16] && tok_r[15:0] != '0) o_data_o[511:480] = {out_word[511:496], tok_r[15:0]};
    if (out_second_q && tok_r[16]) o_data_o[15:0] = tok_r[15:0];
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sum_first_q <= 1'b1;
      sum_done_q <= 1'b0;
      sum_q <= '0;
      out_start_q <= 1'b1;
      out_second_q <= 1'b0;
    end else begin
      sum_done_q <= out_push && out_last && !gid_i.ipv4;
      if (out_push) begin
        sum_first_q <= out_last;
        sum_q <= (sum_first_q ? 32'd0 : sum_q) + beat_sum;
      end
      if (o_valid_o && o_ready_i) begin
        out_start_q <= o_last_o;
        out_second_q <= out_start_q && !o_last_o;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      d_q <= '0;
      start_q <= 1'b0;
      fill_q <= '0;
      first_q <= 1'b0;
      hold_q <= 1'b0;
      seal_count_q <= '0;
    end else begin
      start_q <= 1'b0;
      hold_q <= e_valid;
      if (e_valid) first_q <= 1'b0;
      case (state_q)
        Idle: if (space && req_turn) begin
          d_q <= req_i;
          start_q <= 1'b1;
          first_q <= 1'b1;
          state_q <= Build;
          if (req_i.pay_len != '0 && pay_err_i) begin
            start_q <= 1'b0;
            state_q <= Drop;
          end
        end
        // Without a source address there is no packet.
        Build: if (hdr_done) state_q <= gid_i.valid ? Head : (d_q.pay_len != '0) ? Drop : Idle;
        Head: begin
          fill_q <= (hdr_len > 7'd64) ? hdr_len - 7'd64 : hdr_len;
          state_q <= (d_q.pay_len != '0) ? Pay : Pad;
        end
        Pay: begin
          fill_q <= (sum > 7'd64) ? sum - 7'd64 : sum;
          if (pay_last_i) state_q <= Pad;
        end
        Pad: begin
          fill_q <= (fill_q + {5'd0, pad} > 7'd64) ? fill_q + {5'd0, pad} - 7'd64 : fill_q + {5'd0, pad};
          state_q <= Last;
        end
        Last: begin
          seal_count_q <= fill_q;
          state_q <= Seal;
        end
        Seal: state_q <= (seal_count_q > 7'd60) ? Spill : Sum;
        Spill: state_q <= Sum;
        Drop: if (pay_last_i) state_q <= Idle;
        default: state_q <= Idle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (e_valid) hold_data_q <= e_data;
    case (state_q)
      Head: acc_q <= (hdr_len > 7'd64) ? hdr[1023:512] : hdr[511:0];
      Pay: acc_q <= (sum > 7'd64) ? high : low;
      Pad: if (fill_q + {5'd0, pad} > 7'd64) acc_q <= '0;
      Seal: hold_data_q <= {480'd0, sealed[543:512]};
      default: ;
    endcase
  end

  logic unused_full;
  assign unused_full = ^{out_full, tok_count};
endmodule
