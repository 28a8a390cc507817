/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs: creation checks, the state machine of ibv_modify_qp, query.
 *
 * Locks. The caller's QP mutex covers create, modify (check, command, completion, done), query and
 * destroy. The QP lock (a spinlock, what ops->qp_find() takes) covers ordma_qp_modify_done(),
 * ordma_qp_sync() and everything that ordma_core_poll_events() does to the QP; it is held for a few
 * instructions only. ordma_qp_modify_check() and _cmd() need it too, because the device may move
 * `state` to ERR or SQE at any time and because recovery is armed before the device can send.
 *
 * Modify, in the caller, with the QP mutex held:
 * - lock; ordma_qp_modify_check(core, qp, attr, mask, &mod); if 0, ordma_qp_modify_cmd(qp, &mod,
 * image, image_dma, &cmd); unlock
 * - submit, wait, complete; ordma_status_to_errno(status)
 * - if 0: lock; ordma_qp_modify_done(core, qp, &mod); unlock
 *
 * An error at any point leaves the QP and its attributes as they were.
 */
#ifndef ORDMA_QP_H
#define ORDMA_QP_H

#include "ordma_core.h"
#include "ordma_obj.h"
#include "recovery.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Same bits as enum ibv_qp_attr_mask. */
#define ORDMA_ATTR_STATE (1u << 0)
#define ORDMA_ATTR_CUR_STATE (1u << 1)
#define ORDMA_ATTR_EN_SQD_ASYNC_NOTIFY (1u << 2)
#define ORDMA_ATTR_ACCESS_FLAGS (1u << 3)
#define ORDMA_ATTR_PKEY_INDEX (1u << 4)
#define ORDMA_ATTR_PORT (1u << 5)
#define ORDMA_ATTR_QKEY (1u << 6)
#define ORDMA_ATTR_AV (1u << 7)
#define ORDMA_ATTR_PATH_MTU (1u << 8)
#define ORDMA_ATTR_TIMEOUT (1u << 9)
#define ORDMA_ATTR_RETRY_CNT (1u << 10)
#define ORDMA_ATTR_RNR_RETRY (1u << 11)
#define ORDMA_ATTR_RQ_PSN (1u << 12)
#define ORDMA_ATTR_MAX_RD_ATOMIC (1u << 13) /* IBV_QP_MAX_QP_RD_ATOMIC */
#define ORDMA_ATTR_ALT_PATH (1u << 14)
#define ORDMA_ATTR_MIN_RNR_TIMER (1u << 15)
#define ORDMA_ATTR_SQ_PSN (1u << 16)
#define ORDMA_ATTR_MAX_DEST_RD_ATOMIC (1u << 17)
#define ORDMA_ATTR_PATH_MIG_STATE (1u << 18)
#define ORDMA_ATTR_CAP (1u << 19)
#define ORDMA_ATTR_DEST_QPN (1u << 20)
#define ORDMA_ATTR_RATE_LIMIT (1u << 25)

struct ordma_qp_cap {
	u32 max_send_wr, max_recv_wr;
	u32 max_send_sge, max_recv_sge;
	u32 max_inline;
};

/* ibv_ah_attr, flat. */
struct ordma_ah_attr {
	u8 dgid[16];
	u32 flow_label;
	u8 sgid_index, hop_limit, traffic_class, sl;
	u8 is_global, port_num, static_rate, src_path_bits;
	u8 dmac[6]; /* resolved by the caller before the check */
	u16 udp_sport; /* 0: derived from flow label and QPNs */
};

/* ibv_qp_attr, flat; values are those of the ibv enums. */
struct ordma_qp_attr {
	u32 qp_state, cur_qp_state; /* enum ordma_qp_state */
	u32 path_mtu; /* enum ibv_mtu */
	u32 path_mig_state;
	u32 qkey, rq_psn, sq_psn, dest_qpn, access_flags;
	u32 pkey_index, port_num;
	u32 en_sqd_async_notify, sq_draining;
	u32 max_rd_atomic, max_dest_rd_atomic, min_rnr_timer;
	u32 timeout, retry_cnt, rnr_retry;
	struct ordma_ah_attr ah;
};

struct ordma_qp_init {
	enum ordma_qp_type type;
	struct ordma_qp_cap cap; /* asked; kept for query */
	u32 uctx, pdn, scqn, rcqn;
	u32 srqn;
	bool has_srq;
	bool privileged; /* may set a Q_Key with bit 31 */
	u32 sq_log, sq_stride_log; /* stride 0: no such queue */
	u32 rq_log, rq_stride_log;
};

struct ordma_qp {
	/* set at creation */
	u32 qpn;
	struct ordma_qp_init init;
	struct ordma_buf sq, rq;
	u64 log_addr, atomic_addr;
	u32 log_log;

	/* QP lock */
	u32 state; /* enum ordma_qp_state as the driver knows it; ordma_qp_sync() corrects it */
	struct ordma_qp_attr attr; /* what the user set */
	struct ordma_recovery rec;
	u32 first_event; /* events before this ring index belong to an earlier life */
	u32 errors; /* times the device moved it to ERR or SQE */
	bool sqd_notify; /* SQ_DRAINED was asked for and not yet told */
};

/* One modify in flight; caller's memory (stack). */
struct ordma_qp_modify {
	struct ordma_qp_attr attr; /* complete new set */
	u32 from, to;
	u32 errors;
	u8 mtu_log;
	bool init_rq, init_sq;
};

/* ---- creation ---- */

/*
 * Smallest geometry for the asked capabilities, for queues that the caller lays out itself (kernel
 * verbs). Fills sq_log .. of init and raises init->cap to what the geometry holds. Errors as
 * check_create.
 */
int ordma_qp_geometry(const struct ordma_core *core, struct ordma_qp_init *init);
/*
 * ibv_create_qp: -EOPNOTSUPP: type not in this engine; -EINVAL: capability beyond the limits or the
 * rings, inconsistent queues.
 */
int ordma_qp_check_create(const struct ordma_core *core, const struct ordma_qp_init *init);
/*
 * Contiguous zeroed driver memory, 64-byte aligned: the order log (one entry per WQE of the send
 * queue) and the atomic result ring. 0: none.
 */
size_t ordma_qp_log_bytes(const struct ordma_qp_init *init);
size_t ordma_qp_atomic_bytes(const struct ordma_core *core, const struct ordma_qp_init *init);
/* Fills qp (state RESET). Buffers of absent queues are ignored; addresses of absent rings are 0. */
void ordma_qp_setup(struct ordma_qp *qp, u32 qpn, const struct ordma_qp_init *init,
		    const struct ordma_buf *sq, const struct ordma_buf *rq, u64 log_addr,
		    u64 atomic_addr);
/*
 * QP_CREATE with the image of a QP in RESET. image: 256 bytes of DMA memory that stay until
 * completion.
 */
void ordma_qp_create_cmd(const struct ordma_qp *qp, struct ordma_qpc *image, u64 image_dma,
			 struct ordma_cmd *cmd);

/* ---- modify ---- */

/*
 * The man page's table: which masks each transition needs and allows, and the ranges. 0 or:
 * -EINVAL; -EOPNOTSUPP: alternate paths; -EPERM: Q_Key with bit 31 on an unprivileged QP. PSNs and
 * the flow label are masked to their width.
 */
int ordma_qp_modify_check(const struct ordma_core *core, const struct ordma_qp *qp,
			  const struct ordma_qp_attr *attr, u32 mask, struct ordma_qp_modify *mod);
void ordma_qp_modify_cmd(struct ordma_qp *qp, const struct ordma_qp_modify *mod,
			 struct ordma_qpc *image, u64 image_dma, struct ordma_cmd *cmd);
void ordma_qp_modify_done(const struct ordma_core *core, struct ordma_qp *qp,
			  const struct ordma_qp_modify *mod);

/* ---- query ---- */

/* QP_QUERY into 64 bytes of DMA memory. */
void ordma_qp_query_cmd(const struct ordma_qp *qp, u64 progress_dma, struct ordma_cmd *cmd);
/* Takes the state over from a fresh progress record: the device is the authority on ERR and SQE. */
void ordma_qp_sync(struct ordma_qp *qp, const struct ordma_progress *progress);
/*
 * What the user set, the state, and (with a record) whether the send queue still drains.
 * Capabilities are qp->init.cap.
 */
void ordma_qp_query(const struct ordma_qp *qp, const struct ordma_progress *progress,
		    struct ordma_qp_attr *out);

/* QP lock: used by the event dispatch; also for a caller that flushes all QPs of a dead device. */
void ordma_qp_to_error(struct ordma_qp *qp, enum ordma_qp_state state);

#ifdef __cplusplus
}
#endif

#endif /* ORDMA_QP_H */
