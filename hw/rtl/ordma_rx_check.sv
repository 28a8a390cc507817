// SPDX-License-Identifier: BSD-2-Clause
//
// May this packet touch this QP? Combinational; the first rule that is broken names the counter.
module ordma_rx_check (
  input logic valid_i,
  input ordma_pkg::rx_desc_t desc_i,
  input ordma_hw_pkg::qpc_t attr_i,
  input ordma_pkg::qp_ctl_t ctl_i,
  input ordma_pkg::gid_t gid_i,      // of attr_i.sgid_index
  input logic local_i,               // the destination is one of our addresses
  output logic drop_o,
  output logic [15:0] counter_o,
  output logic response_o            // ACK or response: for the requester side
);
  logic receives, sends, op_ok, datagram, address_ok, qkey_ok;
  logic [4:0] op;
  logic [31:0] qkey;

  assign op = desc_i.opcode[4:0];
  assign datagram = attr_i.type_ == ordma_hw_pkg::QpTypeUd || attr_i.type_ == ordma_hw_pkg::QpTypeGsi;
  assign receives = ctl_i.state >= ordma_hw_pkg::QpStateRtr[3:0] && ctl_i.state <= ordma_hw_pkg::QpStateSqe[3:0];
  assign sends = ctl_i.state == ordma_hw_pkg::QpStateRts[3:0] || ctl_i.state == ordma_hw_pkg::QpStateSqd[3:0];
  // Connected: both ends as the QP has them. Datagram: any of our addresses, and the Q_Key.
  assign address_ok = datagram ? local_i
      : gid_i.valid && desc_i.dgid == gid_i.gid && desc_i.sgid == attr_i.dgid && desc_i.has_vlan == gid_i.has_vlan
        && (!gid_i.has_vlan || desc_i.vlan == gid_i.vlan);
  assign qkey = (attr_i.type_ == ordma_hw_pkg::QpTypeGsi) ? ordma_hw_pkg::GsiQkey[31:0] : attr_i.qkey;
  assign qkey_ok = !datagram || desc_i.ext[223:192] == qkey;
  assign response_o = desc_i.opcode[7:5] == 3'd0 && op >= ordma_hw_pkg::RoceOpRcReadRspFirst[4:0] && op <= ordma_hw_pkg::RoceOpRcAtomicAck[4:0];
  always_comb begin
    case (attr_i.type_)
      ordma_hw_pkg::QpTypeRc: op_ok = desc_i.opcode[7:5] == 3'd0 && op != 5'h15 && op <= ordma_hw_pkg::RoceOpRcSendOnlyInv[4:0];
      ordma_hw_pkg::QpTypeUc: op_ok = desc_i.opcode[7:5] == 3'd1 && op <= ordma_hw_pkg::RoceOpUcWriteOnlyImm[4:0];
      ordma_hw_pkg::QpTypeUd, ordma_hw_pkg::QpTypeGsi:
        op_ok = desc_i.opcode == ordma_hw_pkg::RoceOpUdSendOnly || desc_i.opcode == ordma_hw_pkg::RoceOpUdSendOnlyImm;
      default: op_ok = 1'b0;
    endcase
  end

  always_comb begin
    drop_o = 1'b0;
    counter_o = '0;
    if (valid_i) begin
      drop_o = 1'b1;
      if (!ctl_i.valid || attr_i.qpn != desc_i.dest_qpn) begin
        counter_o = ordma_hw_pkg::CounterDropNoQp;
      end else if (!op_ok) begin
        counter_o = ordma_hw_pkg::CounterDropOpcode;
      end else if (response_o ? !sends : !receives) begin
        counter_o = ordma_hw_pkg::CounterDropState;
      end else if (desc_i.pkey[14:0] != ordma_hw_pkg::DefaultPkey[14:0]) begin
        counter_o = ordma_hw_pkg::CounterDropPkey;
      end else if (!address_ok) begin
        counter_o = ordma_hw_pkg::CounterDropAddress;
      end else if (!qkey_ok) begin
        counter_o = ordma_hw_pkg::CounterDropQkey;
      end else begin
        drop_o = 1'b0;
      end
    end
  end
endmodule
