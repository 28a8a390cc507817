// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Checks of memory regions, completion queues, shared receive queues and the memory behind them. */
#include "ordma_obj.h"

#define PAGE_LOG_MIN 12
#define PAGE_LOG_MAX 31

#define ACCESS_REMOTE_CHANGES (ORDMA_IB_ACCESS_REMOTE_WRITE | ORDMA_IB_ACCESS_REMOTE_ATOMIC)
#define ACCESS_TAKEN                                                   \
	(ORDMA_IB_ACCESS_LOCAL_WRITE | ORDMA_IB_ACCESS_REMOTE_WRITE |  \
	 ORDMA_IB_ACCESS_REMOTE_READ | ORDMA_IB_ACCESS_REMOTE_ATOMIC | \
	 ORDMA_IB_ACCESS_ZERO_BASED | ORDMA_IB_ACCESS_HUGETLB | ORDMA_IB_ACCESS_OPTIONAL)
/* Known to verbs, not to this device: windows, on-demand paging, flush. */
#define ACCESS_UNSUPPORTED (ORDMA_IB_ACCESS_MW_BIND | ORDMA_IB_ACCESS_ON_DEMAND | 1u << 8 | 1u << 9)

int ordma_pbl_plan(struct ordma_pbl *pbl, u64 npages)
{
	if (!npages || npages > ORDMA_MAX_MR_SIZE >> PAGE_LOG_MIN)
		return -EINVAL;
	memset(pbl, 0, sizeof(*pbl));
	pbl->pages = npages;
	if (npages <= ORDMA_PBL_LEAF_ENTRIES) {
		pbl->level = ORDMA_BUF_LEVEL_LIST;
		pbl->top_bytes = npages * sizeof(u64);
		return 0;
	}
	pbl->level = ORDMA_BUF_LEVEL_TREE;
	pbl->leaves = (u32)((npages + ORDMA_PBL_LEAF_ENTRIES - 1) >> ORDMA_PBL_LEAF_LOG);
	pbl->top_bytes = pbl->leaves * sizeof(u64);
	return 0;
}

int ordma_buf_check(const struct ordma_buf *buf)
{
	if (buf->level > ORDMA_BUF_LEVEL_TREE || buf->page_log < PAGE_LOG_MIN ||
	    buf->page_log > PAGE_LOG_MAX)
		return -EINVAL;
	/* Lists hold 64-bit words; a leaf array as well. */
	if (buf->level != ORDMA_BUF_LEVEL_DIRECT && buf->addr & 7)
		return -EINVAL;
	return 0;
}

int ordma_mr_check(const struct ordma_core *core, u64 iova, u64 length, u32 access)
{
	if (access & ~(ACCESS_TAKEN | ACCESS_UNSUPPORTED))
		return -EINVAL;
	if (access & ACCESS_REMOTE_CHANGES && !(access & ORDMA_IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (access & ACCESS_UNSUPPORTED)
		return -EOPNOTSUPP;
	if (access & ORDMA_IB_ACCESS_REMOTE_ATOMIC && !(core->caps.bits & ORDMA_CAP_ATOMIC))
		return -EOPNOTSUPP;
	if (!length || iova + length - 1 < iova)
		return -EINVAL;
	return length > ORDMA_MAX_MR_SIZE ? -ENOMEM : 0;
}

int ordma_cq_log(const struct ordma_core *core, u32 cqe)
{
	if (!cqe || cqe > core->caps.max_cqe)
		return -EINVAL;
	return (int)ordma_log2_up(cqe);
}

static int check_cq_ring(const struct ordma_core *core, u32 cqe, u32 ring_log)
{
	int log = ordma_cq_log(core, cqe);

	if (log < 0)
		return log;
	if (ring_log < (u32)log || ring_log > ordma_log2_up(core->caps.max_cqe))
		return -EINVAL;
	return 0;
}

int ordma_cq_check(const struct ordma_core *core, u32 cqe, u32 ring_log, u32 vector)
{
	if (vector >= core->num_vectors)
		return -EINVAL;
	return check_cq_ring(core, cqe, ring_log);
}

int ordma_cq_resize_check(const struct ordma_core *core, u32 cqe, u32 ring_log)
{
	if (!(core->caps.bits & ORDMA_CAP_RESIZE_CQ))
		return -EOPNOTSUPP;
	return check_cq_ring(core, cqe, ring_log);
}

void ordma_cq_resize_done(struct ordma_cq *cq, u32 log, const struct ordma_buf *buf, u64 record)
{
	cq->log = log;
	cq->buf = *buf;
	cq->record = record;
}

int ordma_rq_geometry(const struct ordma_core *core, u32 max_wr, u32 max_sge, u32 *log,
		      u32 *stride_log)
{
	u32 stride = ORDMA_RQE_DATA_OFF + max_sge * ORDMA_SGE_BYTES;

	if (!max_wr || max_wr > core->caps.max_wr || max_sge > core->caps.max_sge)
		return -EINVAL;
	*log = ordma_log2_up(max_wr);
	*stride_log = ordma_max32(ORDMA_RQ_STRIDE_LOG_MIN, ordma_log2_up(stride));
	return 0;
}

int ordma_srq_check(const struct ordma_core *core, u32 max_wr, u32 max_sge, u32 limit, u32 log,
		    u32 stride_log)
{
	u32 need_log, need_stride;
	int err;

	if (!(core->caps.bits & ORDMA_CAP_SRQ))
		return -EOPNOTSUPP;
	err = ordma_rq_geometry(core, max_wr, max_sge, &need_log, &need_stride);
	if (err)
		return err;
	if (limit > max_wr || log < need_log || log > ordma_log2_up(core->caps.max_wr))
		return -EINVAL;
	if (stride_log < need_stride || stride_log > ORDMA_RQ_STRIDE_LOG_MAX)
		return -EINVAL;
	return 0;
}

int ordma_srq_modify_check(const struct ordma_core *core, const struct ordma_srq *srq, u32 mask,
			   u32 limit)
{
	(void)core;
	if (mask & ~(ORDMA_SRQ_MAX_WR | ORDMA_SRQ_LIMIT))
		return -EINVAL;
	if (mask & ORDMA_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if (mask & ORDMA_SRQ_LIMIT && limit > srq->max_wr)
		return -EINVAL;
	return 0;
}

void ordma_srq_modify_done(struct ordma_srq *srq, u32 limit)
{
	/* An SRQ that was below the new limit already has fired, maybe before its command completed. */
	if (ordma_read_once32(&srq->fired) != srq->fired_before)
		limit = 0;
	ordma_write_once32(&srq->limit, limit);
}

void ordma_srq_limit_fired(struct ordma_srq *srq)
{
	ordma_write_once32(&srq->fired, ordma_read_once32(&srq->fired) + 1);
	ordma_write_once32(&srq->limit, 0);
}
