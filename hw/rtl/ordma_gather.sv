// SPDX-License-Identifier: BSD-2-Clause
//
// Fetches the pieces of payloads, in order, and packs them without gaps: beats of 64 bytes, the last
// beat of a packet shorter. Room for an answer is reserved before a read is issued, so reads of many
// pieces are in flight at once. A packet is offered (pkt_o) when all of it is here; pkt_err_o says
// that a read failed.
module ordma_gather #(
  parameter int unsigned FifoLog = 7  // beats; one packet of 4 KiB is 64
) (
  input logic clk_i,
  input logic rst_ni,
  input logic chunk_valid_i,
  input ordma_pkg::chunk_t chunk_i,
  output logic chunk_pop_o,
  input logic inl_valid_i,
  input logic [511:0] inl_data_i,
  output logic inl_pop_o,

  output logic rd_valid_o,
  output ordma_pkg::rd_req_t rd_req_o,
  input logic rd_ready_i,
  input logic rd_rsp_valid_i,
  input logic [511:0] rd_rsp_data_i,
  input logic rd_rsp_last_i,
  input logic rd_rsp_err_i,

  output logic pkt_o,
  output logic pkt_err_o,
  output logic [511:0] data_o,
  output logic [6:0] count_o,
  output logic last_o,
  input logic pop_i,
  output logic packed_o,     // the last piece of a packet was fetched
  output logic busy_o
);
  localparam int unsigned OrderW = 2 + ordma_pkg::LenW;
  localparam int unsigned OrderLog = 5;

  // ---------------------------------------------------------------- issue
  logic [FifoLog:0] reserved_q;     // beats asked for and not yet packed
  logic [6:0] chunk_beats;
  logic [12:0] chunk_up;
  logic room, order_push, order_pop, order_full, order_empty;
  logic [OrderW-1:0] order_r;
  logic [OrderLog:0] order_count;

  assign chunk_up = chunk_i.len + 13'd63;
  assign chunk_beats = chunk_up[12:6];
  assign room = {1'b0, reserved_q} + {{(FifoLog-5){1'b0}}, chunk_beats} <= {2'b01, {FifoLog{1'b0}}};
  assign rd_valid_o = chunk_valid_i && !chunk_i.inl && room && !order_full;
  assign chunk_pop_o = chunk_valid_i && !order_full && (chunk_i.inl || (room && rd_ready_i));
  assign order_push = chunk_pop_o;
  always_comb begin
    rd_req_o = '0;
    rd_req_o.addr = chunk_i.addr;
    rd_req_o.len = chunk_i.len;
  end

  ordma_fifo #(.W(OrderW), .Log(OrderLog)) u_order (
    .clk_i, .rst_ni, .push_i(order_push), .data_i({chunk_i.inl, chunk_i.last, chunk_i.len}),
    .full_o(order_full), .pop_i(order_pop), .data_o(order_r), .empty_o(order_empty), .count_o(order_count)
  );

  // ---------------------------------------------------------------- answers
  logic rsp_full, rsp_empty, rsp_pop;
  logic [512:0] rsp_r;
  logic [FifoLog:0] rsp_count;
  ordma_fifo #(.W(513), .Log(FifoLog)) u_rsp (
    .clk_i, .rst_ni, .push_i(rd_rsp_valid_i), .data_i({rd_rsp_err_i && rd_rsp_last_i, rd_rsp_data_i}),
    .full_o(rsp_full), .pop_i(rsp_pop), .data_o(rsp_r), .empty_o(rsp_empty), .count_o(rsp_count)
  );

  // ---------------------------------------------------------------- pack
  logic busy_chunk_q, inl_q, last_q;
  logic [ordma_pkg::LenW-1:0] left_q;
  logic [511:0] acc_q, src, low, high;
  logic [5:0] fill_q;
  logic flush_q, err_q;
  logic take, src_ok, src_end;
  logic [6:0] n, sum;
  logic out_push, out_full, out_empty, out_last;
  logic [6:0] out_n;
  logic [511:0] out_data;
  logic [519:0] out_r;
  logic [FifoLog:0] out_count;

  assign src_ok = inl_q ? inl_valid_i : !rsp_empty;
  assign take = busy_chunk_q && src_ok && !out_full && !flush_q;
  assign n = (left_q > 13'd64) ? 7'd64 : left_q[6:0];
  assign src_end = left_q <= 13'd64;
  assign sum = {1'b0, fill_q} + n;
  assign inl_pop_o = take && inl_q;
  assign rsp_pop = take && !inl_q;
  assign order_pop = !order_empty && (!busy_chunk_q || (take && src_end));

  always_comb begin
    src = '0;
    low = '0;
    high = '0;
    if (take) begin
      src = inl_q ? inl_data_i : rsp_r[511:0];
      if (n != 7'd64) src = src & ~({512{1'b1}} << {n, 3'd0});
      if (fill_q == '0) begin
        low = src;
      end else begin
        low = acc_q | (src << {fill_q, 3'd0});
        if (sum > 7'd64) high = src >> {7'd64 - {1'b0, fill_q}, 3'd0};
      end
    end
  end

  always_comb begin
    out_push = 1'b0;
    out_data = low;
    out_n = 7'd64;
    out_last = 1'b0;
    if (flush_q) begin
      out_push = !out_full;
      out_data = acc_q;
      out_n = {1'b0, fill_q};
      out_last = 1'b1;
    end else if (take && sum >= 7'd64) begin
      out_push = 1'b1;
      out_last = src_end && last_q && sum == 7'd64;
    end else if (take && src_end && last_q) begin
      out_push = 1'b1;
      out_n = sum;
      out_last = 1'b1;
    end
  end

  ordma_fifo #(.W(520), .Log(FifoLog)) u_out (
    .clk_i, .rst_ni, .push_i(out_push), .data_i({out_last, out_n, out_data}), .full_o(out_full),
    .pop_i, .data_o(out_r), .empty_o(out_empty), .count_o(out_count)
  );
  assign {last_o, count_o, data_o} = out_r;

  // One flag per whole packet.
  logic done_empty, done_full;
  logic [FifoLog:0] done_count;
  ordma_fifo #(.W(1), .Log(FifoLog)) u_done (
    .clk_i, .rst_ni, .push_i(out_push && out_last),
    .data_i(err_q || (rsp_pop && rsp_r[512])), .full_o(done_full),
    .pop_i(pop_i && last_o), .data_o(pkt_err_o), .empty_o(done_empty), .count_o(done_count)
  );
  assign pkt_o = !done_empty;
  assign packed_o = out_push && out_last;
  assign busy_o = chunk_valid_i || !order_empty || busy_chunk_q || flush_q || !out_empty;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reserved_q <= '0;
      busy_chunk_q <= 1'b0;
      inl_q <= 1'b0;
      last_q <= 1'b0;
      left_q <= '0;
      fill_q <= '0;
      flush_q <= 1'b0;
      err_q <= 1'b0;
    end else begin
      reserved_q <= reserved_q
          + ((chunk_pop_o && !chunk_i.inl) ? {{(FifoLog-6){1'b0}}, chunk_beats} : '0)
          - {{FifoLog{1'b0}}, rsp_pop};
      if (order_pop) begin
        busy_chunk_q <= 1'b1;
        {inl_q, last_q, left_q} <= order_r;
      end else if (take) begin
        left_q <= left_q - 13'd64;
        if (src_end) busy_chunk_q <= 1'b0;
      end
      if (flush_q) begin
        if (!out_full) begin
          flush_q <= 1'b0;
          fill_q <= '0;
        end
      end else if (take) begin
        fill_q <= sum[5:0];
        if (src_end && last_q) begin
          // What is above the full beat leaves as a beat of its own.
          flush_q <= sum > 7'd64;
          if (sum <= 7'd64) fill_q <= '0;
        end
      end
      if (out_push && out_last) err_q <= 1'b0;
      else if (rsp_pop && rsp_r[512]) err_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) acc_q <= (sum >= 7'd64) ? high : low;
  end

  logic unused_levels;
  assign unused_levels = ^{order_count, rsp_full, rsp_count, out_count, done_full, done_count};
endmodule
