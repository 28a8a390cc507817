/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Native attachment: control verbs between the provider and the soft-device over a SOCK_SEQPACKET UNIX socket, one
 * connection per ibv_context. One request message, one reply message, in order; fds travel as SCM_RIGHTS. Private to one
 * build of ordma (ORDMA_NP_VERSION must be equal on both sides). The soft-device believes nothing it reads here.
 *
 * Memory: the soft-device makes and seals memfds for queues, records and doorbell pages and passes the fds; the client maps
 * them and says where (BUF_MAP). From then on a DMA address is client << 48 | va for queue and payload alike:
 * inside a mapped buffer it is shared memory, anywhere else process_vm_readv/writev.
 */
#ifndef ORDMA_NATIVE_PROTO_H
#define ORDMA_NATIVE_PROTO_H

#include <linux/types.h>
#include <rdma/ordma-abi.h>

#define ORDMA_NP_VERSION 1
#define ORDMA_NP_MAX_MSG 4096
#define ORDMA_NP_MAX_FDS 4

/* Environment that `ordma run` sets for its command. */
#define ORDMA_NP_ENV_SOCKET "ORDMA_SOCKET"	/* path of the network's socket */
#define ORDMA_NP_ENV_PRELOAD "ORDMA_PRELOAD"	/* path of the preload library, for messages only */

/*
 * request -> reply body. A refused request gets the header alone with err set; a message whose version or length does not
 * fit ends the connection after that reply. QUERY_DEVICE, QUERY_PORT and QUERY_GID need a HELLO before; COUNTERS does not.
 */
enum ordma_np_op {
	ORDMA_NP_HELLO = 1,	/* hello -> hello_resp; fds: public page, kick eventfd, async read end */
	ORDMA_NP_BUF_ALLOC,	/* buf_alloc -> buf_resp; fd: memfd, zeroed */
	ORDMA_NP_BUF_MAP,	/* buf_map -> nothing; once per buffer */
	ORDMA_NP_BUF_FREE,	/* handle (buf) -> nothing; EBUSY while a queue lies in it */
	ORDMA_NP_PAGE_FD,	/* handle (ordma_abi_db.page) -> nothing; fd: memfd of a doorbell page of this context */
	ORDMA_NP_QUERY_PORT,	/* nothing -> port */
	ORDMA_NP_QUERY_GID,	/* gid_req -> gid; EINVAL beyond the table, valid = 0 for an empty entry */
	ORDMA_NP_ALLOC_PD,	/* nothing -> handle */
	ORDMA_NP_DEALLOC_PD,	/* handle -> nothing */
	ORDMA_NP_REG_MR,	/* reg_mr -> mr */
	ORDMA_NP_DEREG_MR,	/* handle -> nothing */
	ORDMA_NP_CREATE_CQ,	/* create_cq -> cq; the request may carry the write end of a completion channel (FIFO or socket) */
	ORDMA_NP_RESIZE_CQ,	/* resize_cq -> resize_cq_resp */
	ORDMA_NP_DESTROY_CQ,	/* handle -> destroyed; no event of the CQ is written after the reply, unread ones are taken back */
	ORDMA_NP_CREATE_SRQ,	/* create_srq -> srq */
	ORDMA_NP_MODIFY_SRQ,	/* modify_srq -> nothing */
	ORDMA_NP_QUERY_SRQ,	/* handle -> srq_attr */
	ORDMA_NP_DESTROY_SRQ,	/* handle -> destroyed; as DESTROY_CQ */
	ORDMA_NP_CREATE_QP,	/* create_qp -> qp */
	ORDMA_NP_MODIFY_QP,	/* qp_attr -> nothing; ah.dmac is ignored: the soft-device resolves dgid */
	ORDMA_NP_QUERY_QP,	/* handle -> qp_attr (mask 0) */
	ORDMA_NP_DESTROY_QP,	/* handle -> destroyed; as DESTROY_CQ */
	ORDMA_NP_ATTACH_MCAST,	/* mcast -> nothing */
	ORDMA_NP_DETACH_MCAST,	/* mcast -> nothing */
	ORDMA_NP_RESOLVE_GID,	/* resolve -> mac: destination MAC for an AH; EHOSTUNREACH if nobody is known */
	ORDMA_NP_QUERY_DEVICE,	/* nothing -> device */
	ORDMA_NP_COUNTERS,	/* counters_req -> counters_resp with text behind it; fd-less clients (ordma stat) too */
	ORDMA_NP_CREATE_CHANNEL, /* nothing -> handle; fd: read end of a completion channel, at its end when the soft-device dies */
	ORDMA_NP_DESTROY_CHANNEL, /* handle -> nothing; EBUSY while a CQ reports to it */
};

struct ordma_np_hdr {
	__u16 op;
	__u16 version;		/* ORDMA_NP_VERSION */
	__u32 seq;		/* echoed */
	__s32 err;		/* reply: 0 or positive errno */
	__u32 len;		/* bytes that follow the header */
};

struct ordma_np_hello {
	__u32 nic;		/* index of the NIC: 0 = ordma0 */
	__u32 reserved;
};
/* Replies to HELLO: struct ordma_np_hello_resp; fds: public page (r/o memfd), kick (eventfd), async (read end). */
struct ordma_np_hello_resp {
	struct ordma_abi_alloc_ucontext_resp ctx;
	__u32 client;		/* client id: bits 63:48 of its DMA addresses */
	__u32 num_comp_vectors;
};

struct ordma_np_buf_alloc { __aligned_u64 len; };		/* rounded up to pages, bounded */
struct ordma_np_buf_resp { __u32 buf; __u32 reserved; };
struct ordma_np_buf_map { __u32 buf; __u32 reserved; __aligned_u64 va; };
struct ordma_np_handle { __u32 handle; __u32 reserved; };	/* generic: BUF_FREE, DEALLOC_PD, DEREG_MR, DESTROY_*, PAGE_FD(page) */

struct ordma_np_port {
	__u32 state, phys_state, max_mtu, active_mtu;		/* ibv enums */
	__u32 gid_tbl_len, pkey_tbl_len, active_width, active_speed;
	__u32 port_cap_flags, max_msg_sz, flags, qkey_viol;	/* qkey_viol: packets dropped for their Q_Key */
};
struct ordma_np_gid_req { __u32 index; __u32 reserved; };
struct ordma_np_gid { __u8 gid[16]; __u32 valid; __u32 type; };	/* type: 2 = RoCE v2 */

struct ordma_np_device {
	__aligned_u64 fw_ver;		/* major << 32 | minor << 16 | sub */
	__aligned_u64 node_guid, sys_image_guid, max_mr_size, page_size_cap;
	__aligned_u64 caps;		/* IBV_DEVICE_*: device_cap_flags; the CAPS register is in the HELLO reply */
	__u32 vendor_id, vendor_part_id, hw_ver, max_qp, max_qp_wr, max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd;
	__u32 max_qp_rd_atom, max_qp_init_rd_atom, max_res_rd_atom, max_srq, max_srq_wr, max_srq_sge, max_ah;
	__u32 max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach, max_pkeys, local_ca_ack_delay, phys_port_cnt;
	__u32 atomic_cap, num_comp_vectors, clock_khz, reserved;
};

struct ordma_np_reg_mr { __u32 pd; __u32 access; __aligned_u64 va, len, iova; };	/* access: IBV_ACCESS_* */
struct ordma_np_mr { __u32 handle, lkey, rkey, reserved; };

struct ordma_np_create_cq {
	__aligned_u64 user_handle;	/* written to the completion channel as the event's cq_handle */
	__u32 cqe, comp_vector, has_channel;	/* has_channel: the request carries a write end */
	__u32 channel;			/* handle of a channel, 0 none */
	struct ordma_abi_create_cq_req drv;
};
struct ordma_np_cq { __u32 handle, reserved; struct ordma_abi_create_cq_resp drv; };
/* Events of the object that its owner has read, and so must acknowledge before the memory behind user_handle goes. */
struct ordma_np_destroyed { __u32 comp_events, async_events; };
struct ordma_np_resize_cq { __u32 handle, cqe; struct ordma_abi_resize_cq_req drv; };
struct ordma_np_resize_cq_resp { struct ordma_abi_resize_cq_resp drv; };

struct ordma_np_create_srq {
	__aligned_u64 user_handle;	/* element of async events */
	__u32 pd, max_wr, max_sge, srq_limit;
	struct ordma_abi_create_srq_req drv;
};
struct ordma_np_srq { __u32 handle, reserved; struct ordma_abi_create_srq_resp drv; };
struct ordma_np_modify_srq { __u32 handle, mask, max_wr, srq_limit; };
struct ordma_np_srq_attr { __u32 max_wr, max_sge, srq_limit, reserved; };

struct ordma_np_create_qp {
	__aligned_u64 user_handle;	/* element of async events */
	__u32 pd, scq, rcq, srq;	/* handles; srq ~0 none */
	__u32 type;			/* IBV_QPT_* */
	__u32 max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	struct ordma_abi_create_qp_req drv;
};
struct ordma_np_qp { __u32 handle, reserved; struct ordma_abi_create_qp_resp drv; };

/* Address handle attributes: ibv_ah_attr, flat. */
struct ordma_np_ah {
	__u8 dgid[16];
	__u32 flow_label;
	__u8 sgid_index, hop_limit, traffic_class, sl;
	__u8 is_global, port_num, static_rate, src_path_bits;
	__u8 dmac[6];
	__u8 reserved[2];
};
/* ibv_qp_attr, flat; mask has the IBV_QP_* bits. */
struct ordma_np_qp_attr {
	__u32 handle, mask;
	__u32 qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags;
	__u32 max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
	__u32 pkey_index, en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num;
	__u32 timeout, retry_cnt, rnr_retry, rate_limit, reserved;
	struct ordma_np_ah ah;
};
struct ordma_np_mcast { __u32 qp; __u32 lid; __u8 gid[16]; };
struct ordma_np_resolve { __u8 dgid[16]; __u32 sgid_index; __u32 reserved; };
struct ordma_np_mac { __u8 mac[6]; __u8 reserved[2]; };

/*
 * Counters of the whole network as lines "scope name value" (scope: ordma0, engine.ordma0, fabric, path.0, port.ordma0 ...).
 * Long texts come in pieces: offset 0 takes the snapshot, later offsets read on in it.
 */
struct ordma_np_counters_req { __u32 offset; __u32 reserved; };
struct ordma_np_counters_resp { __u32 total; __u32 len; };	/* len bytes of text follow, offset + len == total: the end */

#endif /* ORDMA_NATIVE_PROTO_H */
