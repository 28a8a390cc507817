// SPDX-License-Identifier: BSD-2-Clause
//
// Types and sizes inside the NIC. What crosses the contract is in ordma_hw_pkg; what is here is
// between two blocks and may change at will. Table sizes are build parameters; registers report them.
package ordma_pkg;
  localparam int unsigned DataW = 512;     // one beat: a WQE, a CQE, a command
  localparam int unsigned BeatBytes = 64;
  localparam int unsigned BeatLog = 6;

  localparam int unsigned QpLog = 8;
  localparam int unsigned CqLog = 8;
  localparam int unsigned MrLog = 10;
  localparam int unsigned PageLog = 6;
  localparam int unsigned GidLog = 4;
  localparam int unsigned RdLog = 4;       // READs and atomics outstanding per QP, either direction
  localparam int unsigned MaxUctx = 64;
  localparam int unsigned MaxSge = 16;
  localparam int unsigned MaxInline = 448;
  localparam int unsigned MaxWrLog = 14;
  localparam int unsigned MaxCqeLog = 18;

  // ---------------------------------------------------------------- host port
  localparam int unsigned LenW = 13;       // 1..4096 bytes, never across a 4 KiB page
  typedef struct packed {
    logic [63:0] addr;
    logic [LenW-1:0] len;
  } rd_req_t;
  localparam int unsigned RdReqW = 64 + LenW;

  // Same numbers as WriteKind in hw/engine; Intr is an interrupt that travels in the write stream.
  localparam logic [3:0] KindPayload = 4'd0;
  localparam logic [3:0] KindCqe = 4'd1;
  localparam logic [3:0] KindEvent = 4'd2;
  localparam logic [3:0] KindRecord = 4'd3;
  localparam logic [3:0] KindResponse = 4'd5;
  localparam logic [3:0] KindLog = 4'd6;
  localparam logic [3:0] KindAtomic = 4'd7;
  localparam logic [3:0] KindQuery = 4'd8;
  localparam logic [3:0] KindIntr = 4'd15;

  // One beat of the ordered egress. addr, len and kind are the same in all beats of a write; data
  // is packed to lane 0. Intr: addr is the vector, len 0, one beat.
  typedef struct packed {
    logic [63:0] addr;
    logic [LenW-1:0] len;
    logic [3:0] kind;
    logic last;
    logic [DataW-1:0] data;
  } eg_beat_t;
  localparam int unsigned EgBeatW = 64 + LenW + 5 + DataW;

  // Clients of the DMA read port (the tag on the port).
  localparam int unsigned RdCmd = 0;
  localparam int unsigned RdReq = 1;
  localparam int unsigned RdReqXl = 2;
  localparam int unsigned RdRx = 3;
  localparam int unsigned RdRxXl = 4;
  localparam int unsigned RdCpl = 5;
  localparam int unsigned RdCplXl = 6;
  localparam int unsigned RdCq = 7;
  localparam int unsigned RdCqXl = 8;
  localparam int unsigned RdGather = 9;
  localparam int unsigned RdRsp = 10;
  localparam int unsigned RdRspXl = 11;
  localparam int unsigned RdResXl = 12;
  localparam int unsigned NumRd = 13;
  localparam int unsigned RdTagW = 4;

  // ---------------------------------------------------------------- translation
  typedef struct packed {
    logic is_mr;            // va is a virtual address of `key`; otherwise a byte offset in the list below
    logic kernel;           // the queue belongs to KERNEL_UCTX: RESERVED_LKEY is allowed
    logic [31:0] key;
    logic [23:0] pd;
    logic [7:0] access;     // access bits the MR must have
    logic [63:0] va;
    logic [31:0] len;       // all of [va, va + len) is checked; the answer covers its first piece
    logic [63:0] addr;
    logic [1:0] level;
    logic [4:0] page_log;
  } xl_req_t;
  localparam logic [1:0] XlOk = 2'd0;
  localparam logic [1:0] XlProt = 2'd1;    // key, range, access or protection domain
  localparam logic [1:0] XlDma = 2'd2;     // the page list is not readable
  typedef struct packed {
    logic [1:0] err;
    logic [63:0] addr;
    logic [LenW-1:0] len;   // contiguous bytes, inside one 4 KiB page
  } xl_rsp_t;
  typedef struct packed {
    logic valid;
    logic [31:0] key;
    logic [23:0] pd;
    logic [7:0] access;
    logic [4:0] page_log;
    logic [1:0] level;
    logic [31:0] first_off;
    logic [63:0] iova;
    logic [63:0] length;
    logic [63:0] addr;
  } mr_t;
  localparam int unsigned MrW = 296;

  // ---------------------------------------------------------------- GID table
  typedef struct packed {
    logic valid;
    logic ipv4;
    logic has_vlan;
    logic [11:0] vlan;
    logic [127:0] gid;      // raw: first byte in the low bits
    logic [47:0] mac;
  } gid_t;
  localparam int unsigned GidW = 191;

  // ---------------------------------------------------------------- QP state that moves
  // Attributes are words 0..15 of the contract's context image.
  localparam int unsigned AttrW = 1024;
  typedef struct packed {
    logic valid;
    logic frozen;           // waits for QP_REWIND or QP_FAIL
    logic drained;          // SQ_DRAINED was reported
    logic error_told;       // QP_ERROR was reported
    logic async_told;       // a fatal QP_ASYNC was reported
    logic est_told;         // COMM_EST was reported
    logic [3:0] state;
  } qp_ctl_t;
  localparam int unsigned QpCtlW = 10;
  // Requester: the cursor (what is sent next) and the tail (what is acknowledged).
  typedef struct packed {
    logic [23:0] next_psn;  // PSN under the cursor
    logic [23:0] high_psn;  // first PSN never sent
    logic [23:0] una_psn;   // oldest unacknowledged PSN
    logic [23:0] cur_sq;    // SQ index under the cursor
    logic [23:0] cur_log;   // order-log index under the cursor
    logic [23:0] cur_pkt;   // packets of that message before the cursor
    logic [23:0] log_sent;  // first log index never written
    logic [23:0] log_acked; // oldest log index not completed
    logic [23:0] sq_ci;     // next send WQE to complete
    logic head_valid;       // the oldest log entry is cached:
    logic head_signaled;
    logic [7:0] head_opcode;
    logic [23:0] head_last; // its last PSN
    logic [23:0] head_sq;
    logic [31:0] head_len;
    logic fail_valid;       // the message fail_log fails once all before it are complete
    logic fail_at_una;      // ... or the message that holds una_psn
    logic [23:0] fail_log;
    logic [7:0] fail_status;
    logic [7:0] fail_vendor;
    logic evt_valid;        // a freezing event waits for the tail to be completed up to una_psn
    logic [7:0] evt_type;
    logic [7:0] evt_code;
    logic [63:0] progress;  // device time of the last progress
    logic [63:0] not_before;
    logic [63:0] silence;
    // READs and atomics without their response, oldest at rd_head; those before the cursor are issued.
    logic [RdLog-1:0] rd_head;
    logic [RdLog:0] rd_count;
    logic [RdLog:0] rd_issued;
    logic rd_recount;       // the cursor moved: count the issued ones again
    logic [23:0] rd_first;  // first PSN of the oldest
    logic [23:0] rd_recv;   // packets of its response so far
    logic [23:0] rd_psns;   // PSNs of issued ones still to come
    logic late_valid;       // a fatal NAK that came while frozen: told after the rewind
    logic [7:0] late_syn;
    logic [23:0] late_psn;
  } qp_sq_t;
  localparam int unsigned QpSqW = 24*9 + 1+1+8+24+24+32 + 1+1+24+8+8 + 1+8+8 + 64*3
                                + 3*RdLog + 2 + 1 + 24*3 + 1+8+24;
  typedef struct packed {
    logic atomic;
    logic [23:0] log_index;
    logic [23:0] sq_index;
    logic [23:0] first_psn;
    logic [23:0] psns;
    logic [31:0] length;
  } rd_op_t;
  localparam int unsigned RdOpW = 129;
  // Responder.
  typedef struct packed {
    logic [23:0] epsn;
    logic [23:0] msn;
    logic [23:0] ci;        // next receive WQE to consume
    logic nak_sent;         // a sequence NAK is out; none again before epsn arrives
    logic in_msg;           // between a FIRST and its LAST
    logic is_write;
    logic [63:0] va;        // WRITE: where the next payload byte goes
    logic [31:0] rkey;
    logic [31:0] left;      // WRITE: bytes still to come
    logic [31:0] placed;    // bytes of the message so far
    logic rqe_active;       // a receive WQE is taken and kept on chip:
    logic [63:0] rqe_wr_id;
    logic [15:0] rqe_index;
    // Responses that wait: READs and atomics, each with the newest ACK or NAK behind it.
    logic [RdLog-1:0] rs_head;
    logic [RdLog:0] rs_count;
    logic [RdLog:0] rs_dups;  // of them for duplicate requests
    logic rs_ack;             // the youngest has an ACK behind it, for rs_ack_psn
    logic [23:0] rs_ack_psn;
    logic has_read;           // a READ or atomic was executed; its last PSN:
    logic [23:0] read_psn;
    logic [23:0] atomics;     // entries of the result ring ever written
  } qp_rq_t;
  localparam int unsigned QpRqW = 24*3 + 3 + 64 + 32*3 + 1+64+16 + 3*RdLog + 2 + 1+24 + 1+24+24;
  typedef struct packed {
    logic atomic;
    logic dup;
    logic first;            // no packet of the response has left
    logic [23:0] psn;
    logic [23:0] msn;
    logic [63:0] va;        // READ: next byte; atomic: the value
    logic [31:0] rkey;
    logic [31:0] left;
    logic [23:0] packets;
  } rs_op_t;
  localparam int unsigned RsOpW = 3 + 24 + 24 + 64 + 32 + 32 + 24;
  typedef struct packed {
    logic valid;
    logic [7:0] syndrome;
    logic [23:0] psn;
    logic [23:0] msn;
  } rs_ack_t;
  localparam int unsigned RsAckW = 57;
  typedef struct packed {
    logic valid;
    logic we_ctl;
    logic we_sq;
    logic we_rq;
    logic we_attr;
    logic [QpLog-1:0] qp;
    qp_ctl_t ctl;
    qp_sq_t sq;
    qp_rq_t rq;
  } qp_rel_t;
  typedef struct packed {
    logic [23:0] sq_pi;
    logic [23:0] rq_pi;
    qp_ctl_t ctl;
    qp_sq_t sq;
    qp_rq_t rq;
    logic [AttrW-1:0] attr;
  } qp_ctx_t;
  localparam int unsigned QpReq = 0;
  localparam int unsigned QpRx = 1;
  localparam int unsigned QpCpl = 2;
  localparam int unsigned QpCmd = 3;
  localparam int unsigned QpRsp = 4;
  localparam int unsigned QpRes = 5;
  localparam int unsigned NumQpClient = 6;

  // ---------------------------------------------------------------- completion and events
  typedef struct packed {
    logic [23:0] cqn;
    logic special;          // solicited or error: satisfies a solicited arm
    logic [511:0] cqe;      // phase and timestamp are filled in by the CQ block
  } cq_post_t;
  localparam int unsigned CqPostW = 24 + 1 + 512;
  typedef struct packed {
    logic [7:0] kind;
    logic [7:0] code;
    logic [23:0] number;
    logic [23:0] psn;
    logic [23:0] log_index;
    logic [7:0] vec;
  } event_t;
  localparam int unsigned EventW = 96;
  typedef struct packed {
    logic valid;
    logic [15:0] uctx;
    logic [4:0] log;
    logic [4:0] page_log;
    logic [1:0] level;
    logic [7:0] vec;
    logic [63:0] addr;
    logic [63:0] record;
    logic [23:0] cqn;
  } cq_cfg_t;
  localparam int unsigned CqCfgW = 1 + 16 + 5 + 5 + 2 + 8 + 128 + 24;

  // ---------------------------------------------------------------- packets
  localparam int unsigned ExtW = 224;      // 28 bytes: the longest extended header
  typedef struct packed {
    logic [7:0] opcode;
    logic [23:0] psn;
    logic [23:0] dest_qpn;
    logic ack_req;
    logic se;
    logic [LenW-1:0] pay_len;
    logic [GidLog-1:0] gid;
    logic [47:0] dmac;
    logic [127:0] dgid;
    logic [7:0] hop_limit;
    logic [7:0] tclass;
    logic [19:0] flow_label;
    logic [15:0] sport;
    logic [4:0] ext_len;
    logic [ExtW-1:0] ext;   // first transmitted byte in the top bits
  } tx_desc_t;
  localparam int unsigned TxDescW = 8+24+24+2+LenW+GidLog+48+128+8+8+20+16+5+ExtW;
  // Piece of a payload: host memory, or the inline queue.
  typedef struct packed {
    logic inl;
    logic last;             // of its packet
    logic [63:0] addr;
    logic [LenW-1:0] len;
  } chunk_t;
  localparam int unsigned ChunkW = 2 + 64 + LenW;

  localparam int unsigned RxBufLog = 9;    // beats of the receive ring
  typedef struct packed {
    logic [7:0] opcode;
    logic se;
    logic [15:0] pkey;
    logic [23:0] dest_qpn;
    logic ack_req;
    logic [23:0] psn;
    logic ipv4;
    logic has_vlan;
    logic [11:0] vlan;
    logic [7:0] tclass;
    logic [127:0] sgid;
    logic [127:0] dgid;
    logic [47:0] smac;
    logic [ExtW-1:0] ext;   // the 28 bytes behind the BTH, first byte in the top bits
    logic [LenW-1:0] pay_len;
    logic [RxBufLog-1:0] beat;   // first beat of the frame in the receive ring
    logic [6:0] pay_off;    // byte offset of the payload in the frame
    logic [RxBufLog-1:0] beats;  // beats of the frame
  } rx_desc_t;
  localparam int unsigned RxDescW = 8+1+16+24+1+24+1+13+8+128+128+48+ExtW+LenW+2*RxBufLog+7;

  // Receive ring byte range -> one egress write.
  typedef struct packed {
    logic grh;              // the first byte becomes the next_header of a GRH
    logic [RxBufLog+BeatLog-1:0] from;
    logic [63:0] addr;
    logic [LenW-1:0] len;
  } place_t;

  // ---------------------------------------------------------------- doorbell stage configuration
  typedef struct packed {
    logic valid;
    logic token;
    logic [15:0] uctx;
    logic [63:0] record;
  } page_t;
  localparam int unsigned PageW = 82;
  typedef struct packed {
    logic valid;
    logic [23:0] number;
    logic [15:0] uctx;
    logic [4:0] sq_log;
    logic [4:0] rq_log;
    logic has_sq;
    logic has_rq;
  } dbobj_t;
  localparam int unsigned DbObjW = 53;

  localparam int unsigned NumCounter = 42;
  localparam int unsigned CntLog = 6;
endpackage
