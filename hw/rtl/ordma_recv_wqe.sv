// SPDX-License-Identifier: BSD-2-Clause
//
// The receive WQE of the packet at hand. Take fetches it from the receive queue and keeps a copy on
// chip, because its slot may be posted to again as soon as it counts as consumed; Load gets that copy
// back for the next packet of the message. Seek finds where byte `skip` goes and whether `need` more
// bytes fit. Then the list is offered piece by piece. Calls are held until done_o.
module ordma_recv_wqe (
  input logic clk_i,
  input logic rst_ni,
  input logic [ordma_pkg::QpLog-1:0] qp_i,
  // Ring of the queue, and the index to take.
  input logic [63:0] ring_addr_i,
  input logic [1:0] ring_level_i,
  input logic [4:0] ring_page_log_i,
  input logic [4:0] ring_log_i,
  input logic [3:0] stride_log_i,
  input logic [23:0] index_i,

  input logic take_i,
  input logic load_i,
  input logic seek_i,
  input logic [31:0] skip_i,
  input logic [31:0] need_i,
  output logic done_o,
  output logic bad_o,            // take: not readable or not a WQE for index_i
  output logic fits_o,           // seek
  output logic [63:0] wr_id_o,

  output logic seg_valid_o,
  output ordma_hw_pkg::sge_t seg_o,  // what is left of the current SGE
  input logic advance_i,
  input logic [ordma_pkg::LenW-1:0] advance_len_i,

  output logic xl_valid_o,
  output ordma_pkg::xl_req_t xl_req_o,
  input logic xl_done_i,
  input ordma_pkg::xl_rsp_t xl_rsp_i,
  output logic rd_valid_o,
  output ordma_pkg::rd_req_t rd_req_o,
  input logic rd_ready_i,
  input logic rd_rsp_valid_i,
  input logic [511:0] rd_rsp_data_i,
  input logic rd_rsp_last_i,
  input logic rd_rsp_err_i
);
  typedef enum logic [3:0] { Idle, Xlate, Read, Wait, Verify, Copy, Sum, Done, Segment } state_e;
  state_e state_q;
  logic [511:0] mem[0:7];
  logic [511:0] store_r, sge_beat;
  logic [2:0] fill_q, last_beat;
  logic copy_q;
  ordma_hw_pkg::rqe_t rqe;
  ordma_hw_pkg::sge_t sge;
  logic [127:0] sge_raw;
  logic [4:0] sge_q, at_q, unit;
  logic [5:0] max_sge;
  logic [31:0] off_q, skip_q;
  logic [33:0] cap_q;
  logic found_q, bad_q, fits_q;
  logic [63:0] addr_q;
  logic [31:0] stride;

  assign stride = 32'd1 << stride_log_i;
  assign last_beat = (stride_log_i < 4'd6) ? 3'd0 : stride[8:6] - 3'd1;
  assign rqe = mem[0][127:0];
  assign wr_id_o = rqe.wr_id;
  assign max_sge = (stride_log_i == 4'd9) ? 6'd31 : (6'd1 << (stride_log_i - 4'd4)) - 6'd1;
  assign unit = sge_q + 5'd1;
  assign done_o = state_q == Done;
  assign bad_o = bad_q;
  assign fits_o = fits_q;

  always_comb begin
    sge_beat = '0;
    sge_raw = '0;
    if (state_q == Sum || state_q == Segment) begin
      sge_beat = mem[unit[4:2]];
      case (unit[1:0])
        2'd0: sge_raw = sge_beat[127:0];
        2'd1: sge_raw = sge_beat[255:128];
        2'd2: sge_raw = sge_beat[383:256];
        default: sge_raw = sge_beat[511:384];
      endcase
    end
  end
  assign sge = sge_raw;
  always_comb begin
    seg_o = sge;
    seg_o.addr = sge.addr + {32'd0, off_q};
    seg_o.length = sge.length - off_q;
    seg_valid_o = state_q == Segment && seg_o.length != '0;
  end

  always_comb begin
    xl_valid_o = state_q == Xlate;
    xl_req_o = '0;
    xl_req_o.va = {40'd0, index_i & ~(24'hff_ffff << ring_log_i)} << stride_log_i;
    xl_req_o.len = stride;
    xl_req_o.addr = ring_addr_i;
    xl_req_o.level = ring_level_i;
    xl_req_o.page_log = ring_page_log_i;
    rd_valid_o = state_q == Read;
    rd_req_o = '0;
    rd_req_o.addr = addr_q;
    rd_req_o.len = stride[12:0];
  end

  ordma_ram #(.W(512), .Log(ordma_pkg::QpLog + 3)) u_store (
    .clk_i, .we_i(state_q == Wait && rd_rsp_valid_i), .waddr_i({qp_i, fill_q}), .wdata_i(rd_rsp_data_i),
    .re_i((state_q == Idle && load_i) || state_q == Copy), .raddr_i({qp_i, fill_q}), .rdata_o(store_r)
  );
  always_ff @(posedge clk_i) begin
    if (state_q == Wait && rd_rsp_valid_i) mem[fill_q] <= rd_rsp_data_i;
    if (state_q == Copy && copy_q) mem[fill_q - 3'd1] <= store_r;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      fill_q <= '0;
      copy_q <= 1'b0;
      sge_q <= '0;
      at_q <= '0;
      off_q <= '0;
      skip_q <= '0;
      cap_q <= '0;
      found_q <= 1'b0;
      bad_q <= 1'b0;
      fits_q <= 1'b0;
      addr_q <= '0;
    end else begin
      case (state_q)
        // Segment is where a list is offered; any call may follow.
        Idle, Segment: begin
          fill_q <= '0;
          copy_q <= 1'b0;
          if (take_i) begin
            bad_q <= 1'b0;
            state_q <= Xlate;
          end else if (load_i) begin
            bad_q <= 1'b0;
            state_q <= Copy;
          end else if (seek_i) begin
            sge_q <= '0;
            skip_q <= skip_i;
            cap_q <= '0;
            found_q <= 1'b0;
            state_q <= Sum;
          end else if (state_q == Segment) begin
            if (advance_i) off_q <= off_q + {19'd0, advance_len_i};
            else if (!seg_valid_o && {3'd0, sge_q} < rqe.num_sge) begin
              sge_q <= sge_q + 1'b1;
              off_q <= '0;
            end
          end
        end
        Xlate: if (xl_done_i) begin
          addr_q <= xl_rsp_i.addr;
          state_q <= Read;
          if (xl_rsp_i.err != ordma_pkg::XlOk || {19'd0, xl_rsp_i.len} != stride) begin
            bad_q <= 1'b1;
            state_q <= Done;
          end
        end
        Read: if (rd_ready_i) state_q <= Wait;
        Wait: if (rd_rsp_valid_i) begin
          fill_q <= fill_q + 3'd1;
          if (rd_rsp_last_i) begin
            state_q <= Verify;
            if (rd_rsp_err_i) begin
              bad_q <= 1'b1;
              state_q <= Done;
            end
          end
        end
        Verify: begin
          bad_q <= rqe.index != index_i[15:0] || rqe.num_sge > {2'd0, max_sge}
                || rqe.num_sge > ordma_pkg::MaxSge[7:0];
          state_q <= Done;
        end
        Copy: begin
          copy_q <= 1'b1;
          fill_q <= fill_q + 3'd1;
          if (copy_q && fill_q - 3'd1 == last_beat) state_q <= Done;
        end
        Sum: begin
          if ({3'd0, sge_q} == rqe.num_sge) begin
            fits_q <= {2'd0, skip_i} + {2'd0, need_i} <= cap_q;
            sge_q <= found_q ? at_q : sge_q;
            state_q <= Done;
          end else begin
            sge_q <= sge_q + 1'b1;
            cap_q <= cap_q + {2'd0, sge.length};
            if (!found_q) begin
              if (skip_q >= sge.length) begin
                skip_q <= skip_q - sge.length;
              end else begin
                found_q <= 1'b1;
                at_q <= sge_q;
                off_q <= skip_q;
              end
            end
          end
        end
        // A list is at hand after a seek; after a take or load it only rests in mem.
        default: state_q <= seek_i ? Segment : Idle;
      endcase
    end
  end
endmodule
