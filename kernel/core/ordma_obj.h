/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Objects without a state machine: PD, MR, CQ, SRQ, and how their memory is described. The caller
 * embeds or allocates them, counts references (EBUSY is the caller's decision: the core's destroy
 * cannot fail) and holds the object's mutex around check - command - done. Checks change nothing
 * and return what the man page of the verb says.
 */
#ifndef ORDMA_OBJ_H
#define ORDMA_OBJ_H

#include "ordma_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Same bits as enum ibv_access_flags and enum ib_access_flags. */
#define ORDMA_IB_ACCESS_LOCAL_WRITE (1u << 0)
#define ORDMA_IB_ACCESS_REMOTE_WRITE (1u << 1)
#define ORDMA_IB_ACCESS_REMOTE_READ (1u << 2)
#define ORDMA_IB_ACCESS_REMOTE_ATOMIC (1u << 3)
#define ORDMA_IB_ACCESS_MW_BIND (1u << 4)
#define ORDMA_IB_ACCESS_ZERO_BASED (1u << 5)
#define ORDMA_IB_ACCESS_ON_DEMAND (1u << 6)
#define ORDMA_IB_ACCESS_HUGETLB (1u << 7)
/* Hints that a driver may ignore and never refuses (relaxed ordering is one). */
#define ORDMA_IB_ACCESS_OPTIONAL (0x3ffu << 20)

#define ORDMA_MAX_MR_SIZE (1ULL << 40)

/*
 * Memory as the device sees it. DIRECT: addr is the first byte. LIST: addr is a contiguous array of
 * le64 page addresses. TREE: addr is a contiguous array of le64 addresses of 4 KiB leaves with 512
 * page addresses each.
 */
struct ordma_buf {
	u64 addr;
	u8 page_log; /* log2 of the page size, 12..31; DIRECT: 12 */
	u8 level; /* enum ordma_buf_level */
};

/* What the caller must allocate to describe npages (> 0) pages. */
struct ordma_pbl {
	u32 level; /* LIST up to 512 pages, TREE beyond */
	u64 pages;
	u32 leaves; /* 4 KiB blocks; 0 for LIST */
	u64 top_bytes; /* contiguous block that ordma_buf.addr names: the list itself, or the array
			  of leaf addresses */
};

/* -EINVAL: no pages, or more than ORDMA_MAX_MR_SIZE in 4 KiB pages. */
int ordma_pbl_plan(struct ordma_pbl *pbl, u64 npages);
/* Entry i of a list or leaf. */
static inline void ordma_pbl_set(void *block, u32 i, u64 addr)
{
	ordma_write_le64((__le64 *)block + i, addr);
}
/* -EINVAL: page size, level or alignment that the device does not take. */
int ordma_buf_check(const struct ordma_buf *buf);

struct ordma_pd {
	u32 pdn;
};

struct ordma_mr {
	u32 mkey; /* lkey and rkey */
	u32 pdn;
	u32 access; /* ORDMA_IB_ACCESS_* as the user gave them */
	u64 iova;
	u64 length;
	struct ordma_buf buf;
	u32 first_off; /* offset of iova inside the first page; 0 if DIRECT */
};

/*
 * ibv_reg_mr and relatives. -EINVAL: length 0 (a zero-length MR is refused), wrap-around, remote
 * write or atomic without local write, unknown bits; -EOPNOTSUPP: on-demand, memory windows;
 * -ENOMEM: longer than ORDMA_MAX_MR_SIZE.
 */
int ordma_mr_check(const struct ordma_core *core, u64 iova, u64 length, u32 access);
/* For rereg: IBV_REREG_MR is destroy + create with a new key; the core has no in-place change. */

struct ordma_cq {
	u32 cqn;
	u32 uctx;
	u32 vector;
	u32 log; /* log2 of the ring */
	struct ordma_buf buf;
	u64 record; /* DMA address of struct ordma_cq_record */
};

/* Smallest ring for cqe entries, or -EINVAL (cqe 0 or beyond the limit). */
int ordma_cq_log(const struct ordma_core *core, u32 cqe);
/*
 * ibv_create_cq, ibv_resize_cq: -EINVAL as above, for a ring that does not hold cqe, for a vector
 * that is not there.
 */
int ordma_cq_check(const struct ordma_core *core, u32 cqe, u32 ring_log, u32 vector);
/* ibv_resize_cq: also -EOPNOTSUPP without the capability. */
int ordma_cq_resize_check(const struct ordma_core *core, u32 cqe, u32 ring_log);
/*
 * After a successful CQ_RESIZE; the old ring may then be freed, and result0 of the response is
 * where it ended.
 */
void ordma_cq_resize_done(struct ordma_cq *cq, u32 log, const struct ordma_buf *buf, u64 record);

struct ordma_srq {
	u32 srqn;
	u32 pdn;
	u32 uctx;
	u32 log, stride_log;
	struct ordma_buf buf;
	u64 record; /* DMA address of struct ordma_srq_record */
	u32 max_wr, max_sge;
	u32 limit; /* armed limit; 0 after it fired */
	u32 fired, fired_before; /* limit events, and how many when the limit was last set */
};

#define ORDMA_SRQ_MAX_WR (1u << 0) /* IBV_SRQ_MAX_WR */
#define ORDMA_SRQ_LIMIT (1u << 1) /* IBV_SRQ_LIMIT */

/*
 * Smallest geometry for a shared or plain receive queue, for queues that the caller lays out
 * itself.
 */
int ordma_rq_geometry(const struct ordma_core *core, u32 max_wr, u32 max_sge, u32 *log,
		      u32 *stride_log);
int ordma_srq_check(const struct ordma_core *core, u32 max_wr, u32 max_sge, u32 limit, u32 log,
		    u32 stride_log);
/*
 * -EINVAL: unknown mask, limit above max_wr; -EOPNOTSUPP: resize (the device does not report
 * IBV_DEVICE_SRQ_RESIZE).
 */
int ordma_srq_modify_check(const struct ordma_core *core, const struct ordma_srq *srq, u32 mask,
			   u32 limit);
void ordma_srq_modify_done(struct ordma_srq *srq, u32 limit);
/* From ops->srq_limit(): the limit is disarmed. One word, no lock. */
void ordma_srq_limit_fired(struct ordma_srq *srq);

#ifdef __cplusplus
}
#endif

#endif /* ORDMA_OBJ_H */
