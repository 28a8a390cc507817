// SPDX-License-Identifier: BSD-2-Clause
//
// Receive port: stores each frame in the receive ring, checks layout and ICRC while it passes, and
// hands on a descriptor with every header field. What fails is forgotten by not moving the write
// pointer. A frame is taken only when the ring has room for the largest one; the MAC in front decides
// what happens to frames that have to wait. One beat per cycle, 2 cycles between frames.
module ordma_rx_parse (
  input logic clk_i,
  input logic rst_ni,
  input logic i_valid_i,
  output logic i_ready_o,
  input logic [511:0] i_data_i,
  input logic [6:0] i_count_i,   // bytes in this beat, 64 but for the last
  input logic i_last_i,

  output logic desc_valid_o,
  output ordma_pkg::rx_desc_t desc_o,
  input logic desc_pop_i,        // also frees the frame's beats

  input logic ring_re_i,
  input logic [ordma_pkg::RxBufLog-1:0] ring_addr_i,
  output logic [511:0] ring_data_o,

  output logic cnt_malformed_o,
  output logic cnt_icrc_o,
  output logic cnt_other_o,
  output logic busy_o
);
  localparam int unsigned BL = ordma_pkg::RxBufLog;
  localparam logic [31:0] Residue = 32'hdebb20e3;
  localparam logic [7:0] ProtoUdp = 8'd17;
  localparam int unsigned MaxBeats = 145;  // 9216 bytes and a beat to spare
  typedef enum logic [1:0] { Take, Check, Decide } state_e;
  state_e state_q;

  logic [BL-1:0] start_q, write_q, beats_q;
  logic [BL:0] used_q;
  logic [1023:0] hdr_q;
  logic [14:0] bytes_q;
  logic first_q, second_q, bad_q;
  logic take;
  logic [6:0] count;
  logic [511:0] data;
  logic [31:0] crc;

  assign i_ready_o = state_q == Take && (!first_q || ({1'b0, used_q} <= (1 << BL) - MaxBeats[BL+1:0] && !desc_full));
  assign take = i_valid_i && i_ready_o;

  // Ethernet pads short frames: what lies behind the IP packet is not part of the ICRC.
  logic [15:0] type0, type1, total0;
  logic vlan0;
  assign type0 = {i_data_i[8*12 +: 8], i_data_i[8*13 +: 8]};
  assign vlan0 = type0 == ordma_hw_pkg::EthertypeVlan;
  assign type1 = vlan0 ? {i_data_i[8*16 +: 8], i_data_i[8*17 +: 8]} : type0;
  assign total0 = vlan0 ? {i_data_i[8*20 +: 8], i_data_i[8*21 +: 8]} + 16'd18
                        : {i_data_i[8*16 +: 8], i_data_i[8*17 +: 8]} + 16'd14;
  always_comb begin
    count = i_count_i;
    if (take && first_q && i_last_i && type1 == ordma_hw_pkg::EthertypeIpv4 && total0 < {9'd0, i_count_i}) begin
      count = total0[6:0];
    end
    data = i_data_i;
    if (take && count != 7'd64) data = i_data_i & ~({512{1'b1}} << {count, 3'd0});
  end

  ordma_ram #(.W(512), .Log(BL)) u_ring (
    .clk_i, .we_i(take), .waddr_i(write_q), .wdata_i(data),
    .re_i(ring_re_i), .raddr_i(ring_addr_i), .rdata_o(ring_data_o)
  );
  ordma_icrc u_icrc (
    .clk_i, .valid_i(take), .first_i(first_q), .last_i(i_last_i), .count_i(count), .data_i(data), .crc_o(crc)
  );

  // ---------------------------------------------------------------- parse, once per frame
  logic vlan, v6, v4;
  logic [1023:0] wire_hdr;
  logic [879:0] l3;             // from the IP header on, first byte in the top bits
  logic [639:0] l4;             // from the UDP header on
  ordma_hw_pkg::ipv4_t ip4;
  ordma_hw_pkg::ipv6_t ip6;
  ordma_hw_pkg::udp_t udp;
  ordma_hw_pkg::bth_t bth;
  logic [15:0] ethertype, l3_len, udp_len;
  logic [14:0] frame_len;
  logic [4:0] ext_len;
  logic [6:0] l2_len, l4_off;
  logic roce, shape_ok;
  logic [15:0] fixed;
  ordma_pkg::rx_desc_t d, d_q;
  logic roce_q, shape_q;
  logic push, desc_full, desc_empty;
  logic [2:0] desc_count;

  always_comb begin
    wire_hdr = '0;
    if (state_q == Check) begin
      for (int unsigned i = 0; i < 128; i++) wire_hdr[8*(127-i) +: 8] = hdr_q[8*i +: 8];
    end
    vlan = wire_hdr[927:912] == ordma_hw_pkg::EthertypeVlan;
    ethertype = vlan ? wire_hdr[895:880] : wire_hdr[927:912];
    l2_len = vlan ? 7'd18 : 7'd14;
    l3 = vlan ? wire_hdr[879:0] : wire_hdr[911:32];
    v4 = ethertype == ordma_hw_pkg::EthertypeIpv4;
    v6 = ethertype == ordma_hw_pkg::EthertypeIpv6;
    ip4 = l3[879:720];
    ip6 = l3[879:560];
    l4 = v6 ? {l3[559:0], 80'd0} : l3[719:80];
    l4_off = l2_len + (v6 ? 7'd40 : 7'd20);
    udp = l4[639:576];
    bth = l4[575:480];
    l3_len = v6 ? ip6.length + 16'd40 : ip4.length;
    udp_len = v6 ? ip6.length : ip4.length - 16'd20;
    frame_len = {8'd0, l2_len} + l3_len[14:0];
  end

  // Bytes behind the BTH that belong to the opcode. RC and UC share the low five bits.
  always_comb begin
    ext_len = 5'd0;
    case (bth.opcode)
      8'h03, 8'h05, 8'h23, 8'h25, 8'h09, 8'h29, 8'h16, 8'h17: ext_len = 5'd4;  // ImmDt or IETH
      8'h06, 8'h0a, 8'h26, 8'h2a, 8'h0c: ext_len = 5'd16;                       // RETH
      8'h0b, 8'h2b: ext_len = 5'd20;                                           // RETH, ImmDt
      8'h0d, 8'h0f, 8'h10, 8'h11: ext_len = 5'd4;                               // AETH
      8'h12: ext_len = 5'd12;                                                  // AETH, AtomicAckETH
      8'h13, 8'h14: ext_len = 5'd28;                                           // AtomicETH
      8'h64: ext_len = 5'd8;                                                   // DETH
      8'h65: ext_len = 5'd12;                                                  // DETH, ImmDt
      default: ext_len = 5'd0;
    endcase
    fixed = 16'd24 + {11'd0, ext_len} + {14'd0, bth.pad};
    roce = 1'b0;
    shape_ok = 1'b0;
    d = '0;
    if (state_q == Check) begin
      roce = ((v4 && ip4.version == 4'd4 && ip4.protocol == ProtoUdp && ip4.ihl == 4'd5
               && !ip4.flags[0] && ip4.frag_off == '0 && ip4.length >= 16'd28)
              || (v6 && ip6.version == 4'd6 && ip6.next_header == ProtoUdp && ip6.length >= 16'd8))
             && udp.dport == ordma_hw_pkg::RocePort[15:0] && bytes_q >= frame_len && !l3_len[15];
      shape_ok = udp.length == udp_len && bth.tver == '0 && udp_len >= fixed && bytes_q == frame_len && !bad_q
                 && udp_len - fixed <= 16'd4096;
      d.opcode = bth.opcode;
      d.se = bth.se;
      d.pkey = bth.pkey;
      d.dest_qpn = bth.dest_qpn;
      d.ack_req = bth.ack_req;
      d.psn = bth.psn;
      d.ipv4 = v4;
      // VLAN 0 is a priority tag and no VLAN.
      d.has_vlan = vlan && wire_hdr[907:896] != '0;
      d.vlan = vlan ? wire_hdr[907:896] : 12'd0;
      d.tclass = v6 ? ip6.tclass : ip4.tos;
      for (int unsigned i = 0; i < 16; i++) begin
        d.sgid[8*i +: 8] = v6 ? l3[879-64-8*i -: 8] : 8'd0;
        d.dgid[8*i +: 8] = v6 ? l3[879-192-8*i -: 8] : 8'd0;
      end
      if (!v6) begin
        d.sgid[95:80] = 16'hffff;
        d.dgid[95:80] = 16'hffff;
        for (int unsigned i = 0; i < 4; i++) begin
          d.sgid[8*(12+i) +: 8] = ip4.src[8*(3-i) +: 8];
          d.dgid[8*(12+i) +: 8] = ip4.dst[8*(3-i) +: 8];
        end
      end
      d.smac = {wire_hdr[935:928], wire_hdr[943:936], wire_hdr[951:944], wire_hdr[959:952],
                wire_hdr[967:960], wire_hdr[975:968]};
      d.ext = l4[479:256];
      d.pay_len = udp_len[12:0] - fixed[12:0];
      d.pay_off = l4_off + 7'd20 + {2'd0, ext_len};
      d.beat = start_q;
      d.beats = beats_q;
    end
  end

  assign push = state_q == Decide && roce_q && shape_q && crc == Residue;
  assign cnt_other_o = state_q == Decide && !roce_q;
  assign cnt_malformed_o = state_q == Decide && roce_q && !shape_q;
  assign cnt_icrc_o = state_q == Decide && roce_q && shape_q && crc != Residue;
  assign desc_valid_o = !desc_empty;
  assign busy_o = !desc_empty || state_q != Take || !first_q;

  ordma_fifo #(.W(ordma_pkg::RxDescW), .Log(2)) u_desc (
    .clk_i, .rst_ni, .push_i(push), .data_i(d_q), .full_o(desc_full), .pop_i(desc_pop_i),
    .data_o(desc_o), .empty_o(desc_empty), .count_o(desc_count)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Take;
      start_q <= '0;
      write_q <= '0;
      beats_q <= '0;
      used_q <= '0;
      bytes_q <= '0;
      first_q <= 1'b1;
      second_q <= 1'b0;
      bad_q <= 1'b0;
      hdr_q <= '0;
      d_q <= '0;
      roce_q <= 1'b0;
      shape_q <= 1'b0;
    end else begin
      case (state_q)
        Take: if (take) begin
          write_q <= write_q + 1'b1;
          beats_q <= first_q ? {{(BL-1){1'b0}}, 1'b1} : beats_q + 1'b1;
          bytes_q <= (first_q ? 15'd0 : bytes_q) + {8'd0, count};
          // A frame above the largest keeps coming: it is counted and dropped, not stored over others.
          if (beats_q >= MaxBeats[BL-1:0] - 1'b1 && !first_q) begin
            bad_q <= 1'b1;
            write_q <= write_q;
            beats_q <= beats_q;
            bytes_q <= bytes_q;
          end
          if (first_q) begin
            hdr_q <= {512'd0, data};
            bad_q <= 1'b0;
          end
          if (second_q) hdr_q[1023:512] <= data;
          second_q <= first_q && !i_last_i;
          first_q <= 1'b0;
          if (i_last_i) begin
            first_q <= 1'b1;
            second_q <= 1'b0;
            state_q <= Check;
          end
        end
        Check: begin
          d_q <= d;
          roce_q <= roce;
          shape_q <= shape_ok;
          state_q <= Decide;
        end
        default: begin
          if (push) start_q <= write_q;
          else write_q <= start_q;
          state_q <= Take;
        end
      endcase
      used_q <= used_q + (push ? {1'b0, beats_q} : '0) - (desc_pop_i ? {1'b0, desc_o.beats} : '0);
    end
  end

  logic unused_count;
  assign unused_count = ^desc_count;
endmodule
