// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues. The NIC copies an RQE when it fetches it, so a slot is free from then on, whichever QP takes how
 * long over it; the record in host memory says how far it has fetched. The wr_id travels in the RQE.
 */
#include <errno.h>
#include <stdlib.h>

#include "backend.h"

static void size_queue(struct ordma_srq *srq, struct ibv_srq_attr *attr)
{
	unsigned int sge = attr->max_sge ? attr->max_sge : 1;

	srq->rq.stride_log = ordma_log2_at_least(ORDMA_RQE_DATA_OFF + sge * ORDMA_SGE_BYTES);
	if (srq->rq.stride_log < ORDMA_RQ_STRIDE_LOG_MIN)
		srq->rq.stride_log = ORDMA_RQ_STRIDE_LOG_MIN;
	srq->rq.log = ordma_log2_at_least(attr->max_wr);
	srq->rq.max_sge = sge;
	srq->max_wr = 1u << srq->rq.log;
	attr->max_wr = srq->max_wr;
	attr->max_sge = sge;
}

static int alloc_ring(struct ordma_context *ctx, struct ordma_srq *srq)
{
	size_t ring = ordma_page_round((size_t)1 << (srq->rq.log + srq->rq.stride_log));
	int err;

	srq->buf.len = ring + ordma_page_round(sizeof(*srq->record));
	err = ctx->be->buf_alloc(ctx, &srq->buf);
	if (err)
		return err;
	srq->rq.ring = srq->buf.va;
	srq->record = (void *)((uint8_t *)srq->buf.va + ring);
	return 0;
}

static int create_at_backend(struct ordma_context *ctx, struct ordma_pd *pd, struct ordma_srq *srq,
			     struct ibv_srq_init_attr *attr)
{
	struct ordma_abi_create_srq_req req = {
		.ring_va = (uintptr_t)srq->rq.ring,
		.record_va = (uintptr_t)srq->record,
		.ring_log = srq->rq.log,
		.stride_log = srq->rq.stride_log,
	};
	struct ordma_abi_create_srq_resp resp = {};
	int err = ctx->be->create_srq(pd, srq, attr, &req, &resp);

	if (err)
		return err;
	srq->srqn = resp.srqn;
	srq->rq.db = ordma_map_db(ctx, &resp.db);
	if (!srq->rq.db) {
		err = errno;
		ctx->be->destroy_srq(srq);
	}
	return err;
}

struct ibv_srq *ordma_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ordma_context *ctx = to_octx(pd->context);
	struct ordma_srq *srq;
	int err;

	if (!attr->attr.max_wr || attr->attr.max_wr > ctx->attr.max_srq_wr || attr->attr.max_sge > ctx->attr.max_sge) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	size_queue(srq, &attr->attr);
	err = alloc_ring(ctx, srq);
	if (err)
		goto err_free;
	pthread_spin_init(&srq->rq.lock, PTHREAD_PROCESS_PRIVATE);
	err = create_at_backend(ctx, to_opd(pd), srq, attr);
	if (err)
		goto err_ring;
	attr->attr.max_wr = srq->max_wr;
	attr->attr.max_sge = srq->rq.max_sge;
	return &srq->vsrq.srq;

err_ring:
	pthread_spin_destroy(&srq->rq.lock);
	ctx->be->buf_free(ctx, &srq->buf);
err_free:
	free(srq);
	errno = err;
	return NULL;
}

int ordma_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct ordma_srq *srq = to_osrq(ibsrq);

	if (mask & IBV_SRQ_MAX_WR)
		return EOPNOTSUPP;
	if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > srq->max_wr)
		return EINVAL;
	return to_octx(ibsrq->context)->be->modify_srq(srq, attr, mask);
}

int ordma_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ordma_srq *srq = to_osrq(ibsrq);
	int err = to_octx(ibsrq->context)->be->query_srq(srq, attr);

	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->rq.max_sge;
	return err;
}

int ordma_destroy_srq(struct ibv_srq *ibsrq)
{
	struct ordma_context *ctx = to_octx(ibsrq->context);
	struct ordma_srq *srq = to_osrq(ibsrq);
	int err = ctx->be->destroy_srq(srq);

	if (err)
		return err;
	ctx->be->buf_free(ctx, &srq->buf);
	pthread_spin_destroy(&srq->rq.lock);
	free(srq);
	return 0;
}

int ordma_get_srq_num(struct ibv_srq *ibsrq, uint32_t *num)
{
	*num = to_osrq(ibsrq)->srqn;
	return 0;
}

int ordma_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ordma_srq *srq = to_osrq(ibsrq);
	struct ordma_queue *q = &srq->rq;
	uint32_t before;
	int err = 0;

	pthread_spin_lock(&q->lock);
	before = q->pi;
	for (; wr; wr = wr->next) {
		if (ordma_queue_full(q))
			q->ci = ORDMA_WGET(ORDMA_HW_LE64_TO_CPU(__atomic_load_n(&srq->record->w[0], __ATOMIC_ACQUIRE)),
					   SRQ_RECORD_CONSUMED);
		err = ordma_queue_full(q) ? ENOMEM : ordma_write_rqe(q, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (q->pi != before)
		ordma_ring_index(to_octx(ibsrq->context), q->db, ORDMA_DB_KIND_SRQ, srq->srqn, q->pi);
	pthread_spin_unlock(&q->lock);
	return err;
}
