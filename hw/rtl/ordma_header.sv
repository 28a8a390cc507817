// SPDX-License-Identifier: BSD-2-Clause
//
// Builds the headers of one packet in three cycles: fields, checksum, byte order. Addresses come from
// the GID table and the descriptor alone. hdr_o holds byte i of the frame at bits [8*i +: 8].
module ordma_header (
  input logic clk_i,
  input logic rst_ni,
  input logic start_i,
  input ordma_pkg::tx_desc_t desc_i,   // stable until done_o
  input ordma_pkg::gid_t gid_i,
  output logic done_o,
  output logic [1023:0] hdr_o,
  output logic [6:0] len_o
);
  localparam logic [7:0] ProtoUdp = 8'd17;
  localparam logic [7:0] DefaultHops = 8'd64;
  logic [1:0] step_q;
  ordma_hw_pkg::eth_t eth;
  ordma_hw_pkg::ipv4_t v4;
  ordma_hw_pkg::ipv6_t v6;
  ordma_hw_pkg::udp_t udp;
  ordma_hw_pkg::bth_t bth;
  logic [1:0] pad;
  logic [15:0] udp_len, ip_type;
  logic [19:0] sum;
  logic [15:0] sum_q;
  logic [127:0] sgid, dgid;
  logic [1023:0] wire_q;
  logic [223:0] tail;
  logic [7:0] hops;

  assign pad = 2'd0 - desc_i.pay_len[1:0];
  assign udp_len = 16'd24 + {11'd0, desc_i.ext_len} + {3'd0, desc_i.pay_len} + {14'd0, pad};
  assign ip_type = gid_i.ipv4 ? ordma_hw_pkg::EthertypeIpv4 : ordma_hw_pkg::EthertypeIpv6;
  assign hops = (desc_i.hop_limit == '0) ? DefaultHops : desc_i.hop_limit;
  assign done_o = step_q == 2'd3;

  // Raw byte order (first byte low) to wire order (first byte high).
  always_comb begin
    sgid = '0;
    dgid = '0;
    eth = '0;
    if (step_q == 2'd1 || start_i) begin
      for (int unsigned i = 0; i < 16; i++) begin
        sgid[8*(15-i) +: 8] = gid_i.gid[8*i +: 8];
        dgid[8*(15-i) +: 8] = desc_i.dgid[8*i +: 8];
      end
      eth.dst = {desc_i.dmac[7:0], desc_i.dmac[15:8], desc_i.dmac[23:16], desc_i.dmac[31:24],
                 desc_i.dmac[39:32], desc_i.dmac[47:40]};
      eth.src = {gid_i.mac[7:0], gid_i.mac[15:8], gid_i.mac[23:16], gid_i.mac[31:24],
                 gid_i.mac[39:32], gid_i.mac[47:40]};
      eth.type_ = gid_i.has_vlan ? ordma_hw_pkg::EthertypeVlan : ip_type;
    end
  end

  always_comb begin
    v4 = '0;
    v4.version = 4'd4;
    v4.ihl = 4'd5;
    v4.tos = desc_i.tclass;
    v4.length = udp_len + 16'd20;
    v4.flags = 3'd2;
    v4.ttl = hops;
    v4.protocol = ProtoUdp;
    v4.checksum = (step_q == 2'd1) ? ~sum_q : 16'd0;
    v4.src = sgid[31:0];
    v4.dst = dgid[31:0];
    sum = {4'd0, v4[159:144]} + {4'd0, v4[143:128]} + {4'd0, v4[127:112]} + {4'd0, v4[111:96]}
        + {4'd0, v4[95:80]} + {4'd0, v4[63:48]} + {4'd0, v4[47:32]} + {4'd0, v4[31:16]} + {4'd0, v4[15:0]};
    v6 = '0;
    v6.version = 4'd6;
    v6.tclass = desc_i.tclass;
    v6.flow_label = desc_i.flow_label;
    v6.length = udp_len;
    v6.next_header = ProtoUdp;
    v6.hop_limit = hops;
    {v6.src_hi, v6.src_lo} = sgid;
    {v6.dst_hi, v6.dst_lo} = dgid;
    udp = '0;
    udp.sport = desc_i.sport;
    udp.dport = ordma_hw_pkg::RocePort[15:0];
    udp.length = udp_len;
    bth = '0;
    bth.opcode = desc_i.opcode;
    bth.se = desc_i.se;
    bth.mig = 1'b1;
    bth.pad = pad;
    bth.pkey = ordma_hw_pkg::DefaultPkey[15:0];
    bth.dest_qpn = desc_i.dest_qpn;
    bth.ack_req = desc_i.ack_req;
    bth.psn = desc_i.psn;
  end
  assign tail = desc_i.ext;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      step_q <= '0;
      len_o <= '0;
      sum_q <= '0;
    end else begin
      case (step_q)
        2'd0: if (start_i) begin
          step_q <= 2'd1;
          sum_q <= sum[15:0] + {12'd0, sum[19:16]};
          if ({1'b0, sum[15:0]} + {13'd0, sum[19:16]} > 17'h0ffff) sum_q <= sum[15:0] + {12'd0, sum[19:16]} + 16'd1;
          len_o <= 7'd34 + (gid_i.ipv4 ? 7'd20 : 7'd40) + (gid_i.has_vlan ? 7'd4 : 7'd0) + {2'd0, desc_i.ext_len};
        end
        2'd1: step_q <= 2'd2;
        2'd2: step_q <= 2'd3;
        default: step_q <= 2'd0;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_q == 2'd1) begin
      if (gid_i.has_vlan) begin
        if (gid_i.ipv4) wire_q <= {eth, 4'd0, gid_i.vlan, ip_type, v4, udp, bth, tail, 336'd0};
        else wire_q <= {eth, 4'd0, gid_i.vlan, ip_type, v6, udp, bth, tail, 176'd0};
      end else begin
        if (gid_i.ipv4) wire_q <= {eth, v4, udp, bth, tail, 368'd0};
        else wire_q <= {eth, v6, udp, bth, tail, 208'd0};
      end
    end
    if (step_q == 2'd2) begin
      for (int unsigned i = 0; i < 128; i++) hdr_o[8*i +: 8] <= wire_q[8*(127-i) +: 8];
    end
  end
endmodule
