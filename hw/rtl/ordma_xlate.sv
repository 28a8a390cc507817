// SPDX-License-Identifier: BSD-2-Clause
//
// Translation: (key, virtual address) or (ring, byte offset) -> device address of the first piece.
// One unit per engine, so that a miss waits for the page list of its own engine only. Words of page
// lists are cached (direct mapped, by their address); flush_i empties the cache, also of a word that
// is on its way. Call protocol: valid_i and req_i are held until done_o, which is one cycle long.
module ordma_xlate #(
  parameter int unsigned CacheLog = 3
) (
  input logic clk_i,
  input logic rst_ni,
  input logic valid_i,
  input ordma_pkg::xl_req_t req_i,
  output logic done_o,
  output ordma_pkg::xl_rsp_t rsp_o,

  output logic mr_valid_o,
  output logic [ordma_pkg::MrLog-1:0] mr_index_o,
  input logic mr_ready_i,
  input logic mr_rsp_valid_i,
  input ordma_pkg::mr_t mr_rsp_i,

  output logic rd_valid_o,
  output ordma_pkg::rd_req_t rd_req_o,
  input logic rd_ready_i,
  input logic rd_rsp_valid_i,
  input logic [63:0] rd_rsp_data_i,
  input logic rd_rsp_err_i,

  input logic flush_i
);
  localparam int unsigned Num = 1 << CacheLog;
  typedef enum logic [3:0] {
    Idle, MrReq, MrWait, Range, Index, Probe, Fetch, Wait, Word, Final, Done
  } state_e;
  state_e state_q;

  logic [63:0] base_q, off_q, pos_q, list_q, word_q;
  logic [1:0] level_q, err_q;
  logic [4:0] page_log_q;
  logic leaf_q;           // TREE: the word on its way is a leaf's
  logic nofill_q;
  logic [64:0] end_in_mr;
  logic [63:0] page_mask, phys_q;
  logic [31:0] in_page;
  logic [31:0] room;
  ordma_pkg::mr_t mr_q;

  logic [Num-1:0] cv_q;
  logic [63:0] ctag[0:Num-1];
  logic [63:0] cword[0:Num-1];
  logic [CacheLog-1:0] cidx;

  assign cidx = list_q[3 +: CacheLog];
  assign end_in_mr = {1'b0, off_q} + {33'd0, req_i.len};
  assign page_mask = ~(64'hffff_ffff_ffff_ffff << page_log_q);
  assign in_page = pos_q[31:0] & page_mask[31:0];
  // Bytes to the end of the page of the list; a page of 2^31 bytes is the largest.
  assign room = (level_q == ordma_hw_pkg::BufLevelDirect) ? 32'h1000 : (32'd1 << page_log_q) - in_page;

  assign mr_valid_o = state_q == MrReq;
  assign mr_index_o = req_i.key[ordma_pkg::MrLog-1:0];
  assign rd_valid_o = state_q == Fetch;
  assign done_o = state_q == Done;

  always_comb begin
    rd_req_o = '0;
    rd_req_o.addr = list_q;
    rd_req_o.len = 13'd8;
    rsp_o = '0;
    if (state_q == Done) begin
      rsp_o.err = err_q;
      rsp_o.addr = phys_q;
      rsp_o.len = 13'h1000 - {1'b0, phys_q[11:0]};
      if (room < {19'd0, rsp_o.len}) rsp_o.len = room[12:0];
      if (req_i.len < {19'd0, rsp_o.len}) rsp_o.len = req_i.len[12:0];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      base_q <= '0;
      off_q <= '0;
      pos_q <= '0;
      list_q <= '0;
      word_q <= '0;
      level_q <= '0;
      err_q <= '0;
      page_log_q <= '0;
      leaf_q <= 1'b0;
      nofill_q <= 1'b0;
      phys_q <= '0;
      mr_q <= '0;
      cv_q <= '0;
    end else begin
      if (flush_i) nofill_q <= 1'b1;
      case (state_q)
        Idle: if (valid_i) begin
          err_q <= ordma_pkg::XlOk;
          leaf_q <= 1'b0;
          base_q <= req_i.addr;
          off_q <= req_i.va;
          level_q <= req_i.level;
          page_log_q <= req_i.page_log;
          if (!req_i.is_mr) begin
            pos_q <= req_i.va;
            state_q <= Index;
          end else if (req_i.key == ordma_hw_pkg::ReservedLkey) begin
            // The local-DMA key is an identity map, for kernel queues, never for the peer.
            level_q <= ordma_hw_pkg::BufLevelDirect;
            base_q <= '0;
            pos_q <= req_i.va;
            state_q <= Index;
            if (!req_i.kernel || (req_i.access & 8'h0e) != '0) begin
              err_q <= ordma_pkg::XlProt;
              state_q <= Done;
            end
          end else if (req_i.key[15:ordma_pkg::MrLog] != '0) begin
            err_q <= ordma_pkg::XlProt;
            state_q <= Done;
          end else begin
            state_q <= MrReq;
          end
        end
        MrReq: if (mr_ready_i) state_q <= MrWait;
        MrWait: if (mr_rsp_valid_i) begin
          mr_q <= mr_rsp_i;
          off_q <= req_i.va - mr_rsp_i.iova;
          state_q <= Range;
        end
        Range: begin
          base_q <= mr_q.addr;
          level_q <= mr_q.level;
          page_log_q <= mr_q.page_log;
          pos_q <= off_q + {32'd0, mr_q.first_off};
          state_q <= Index;
          if (!mr_q.valid || mr_q.key != req_i.key || mr_q.pd != req_i.pd
              || (req_i.access & ~mr_q.access) != '0 || req_i.va < mr_q.iova
              || end_in_mr > {1'b0, mr_q.length}) begin
            err_q <= ordma_pkg::XlProt;
            state_q <= Done;
          end
        end
        Index: begin
          state_q <= Probe;
          if (level_q == ordma_hw_pkg::BufLevelDirect) begin
            phys_q <= base_q + off_q;
            state_q <= Done;
          end else if (level_q == ordma_hw_pkg::BufLevelList) begin
            list_q <= base_q + ((pos_q >> page_log_q) << 3);
          end else if (!leaf_q) begin
            list_q <= base_q + ((pos_q >> page_log_q >> ordma_hw_pkg::PblLeafLog) << 3);
          end else begin
            list_q <= base_q + (((pos_q >> page_log_q) & 64'd511) << 3);
          end
        end
        Probe: begin
          nofill_q <= flush_i;
          word_q <= cword[cidx];
          state_q <= (cv_q[cidx] && ctag[cidx] == list_q) ? Word : Fetch;
        end
        Fetch: if (rd_ready_i) state_q <= Wait;
        Wait: if (rd_rsp_valid_i) begin
          word_q <= rd_rsp_data_i;
          state_q <= Word;
          if (rd_rsp_err_i) begin
            err_q <= ordma_pkg::XlDma;
            state_q <= Done;
          end else if (!nofill_q && !flush_i) begin
            cv_q[cidx] <= 1'b1;
            ctag[cidx] <= list_q;
            cword[cidx] <= rd_rsp_data_i;
          end
        end
        Word: begin
          state_q <= Final;
          if (level_q == ordma_hw_pkg::BufLevelTree && !leaf_q) begin
            leaf_q <= 1'b1;
            base_q <= word_q;
            state_q <= Index;
          end
        end
        Final: begin
          phys_q <= (word_q & ~page_mask) + {32'd0, in_page};
          state_q <= Done;
        end
        default: state_q <= Idle;
      endcase
      if (flush_i) cv_q <= '0;
    end
  end
endmodule
