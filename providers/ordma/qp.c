// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: sizes, memory, life. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

static unsigned int max_u(unsigned int a, unsigned int b)
{
	return a > b ? a : b;
}

static int check_attr(const struct ordma_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (attr->comp_mask & ~(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return EOPNOTSUPP;
	/* No flag is supported, but a program may say that it wants none. */
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)
		return EOPNOTSUPP;
	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC && attr->qp_type != IBV_QPT_UD)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && !ordma_wr_ops_supported(attr->qp_type, attr->send_ops_flags))
		return EOPNOTSUPP;
	if (!attr->pd || !attr->send_cq || !attr->recv_cq)
		return EINVAL;
	if (cap->max_send_wr > ctx->attr.max_wr || cap->max_recv_wr > ctx->attr.max_wr || cap->max_send_sge > ctx->attr.max_sge ||
	    cap->max_recv_sge > ctx->attr.max_sge || cap->max_inline_data > ctx->attr.max_inline)
		return EINVAL;
	return 0;
}

static unsigned int min_u(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Strides: the smallest power of two that holds what was asked for; what fits beyond is given to the user. */
static void size_queues(const struct ordma_context *ctx, struct ordma_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	unsigned int data_off = attr->qp_type == IBV_QPT_UD ? ORDMA_WQE_UD_DATA_OFF : ORDMA_WQE_DATA_OFF;
	const struct ibv_qp_cap *cap = &attr->cap;
	unsigned int bytes;

	bytes = data_off + max_u(max_u(cap->max_send_sge, 1) * ORDMA_SGE_BYTES, cap->max_inline_data);
	/* An atomic's SGE lies 16 bytes further back. */
	bytes = max_u(bytes, ORDMA_WQE_ATOMIC_DATA_OFF + ORDMA_SGE_BYTES);
	qp->sq.stride_log = max_u(ordma_log2_at_least(bytes), ORDMA_SQ_STRIDE_LOG_MIN);
	qp->sq.log = ordma_log2_at_least(max_u(cap->max_send_wr, 1));
	bytes = (1u << qp->sq.stride_log) - data_off;
	qp->sq.max_sge = min_u(bytes / ORDMA_SGE_BYTES, ctx->attr.max_sge);
	qp->max_inline = min_u(bytes, ctx->attr.max_inline);
	qp->data_off = data_off;
	if (attr->srq)
		return;
	bytes = ORDMA_RQE_DATA_OFF + max_u(cap->max_recv_sge, 1) * ORDMA_SGE_BYTES;
	qp->rq.stride_log = max_u(ordma_log2_at_least(bytes), ORDMA_RQ_STRIDE_LOG_MIN);
	qp->rq.log = ordma_log2_at_least(max_u(cap->max_recv_wr, 1));
	bytes = (1u << qp->rq.stride_log) - ORDMA_RQE_DATA_OFF;
	qp->rq.max_sge = min_u(bytes / ORDMA_SGE_BYTES, ctx->attr.max_sge);
}

static void fill_cap(const struct ordma_qp *qp, struct ibv_qp_cap *cap)
{
	cap->max_send_wr = 1u << qp->sq.log;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->max_inline;
	cap->max_recv_wr = qp->rq.max_sge ? 1u << qp->rq.log : 0;
	cap->max_recv_sge = qp->rq.max_sge;
}

static int alloc_queues(struct ordma_context *ctx, struct ordma_qp *qp, bool has_rq)
{
	size_t sq = ordma_page_round((size_t)1 << (qp->sq.log + qp->sq.stride_log));
	size_t rq = has_rq ? ordma_page_round((size_t)1 << (qp->rq.log + qp->rq.stride_log)) : 0;
	int err;

	qp->sq.wr_id = calloc(1u << qp->sq.log, sizeof(uint64_t));
	if (!qp->sq.wr_id)
		return ENOMEM;
	qp->buf.len = sq + rq;
	err = ctx->be->buf_alloc(ctx, &qp->buf);
	if (err) {
		free(qp->sq.wr_id);
		return err;
	}
	qp->sq.ring = qp->buf.va;
	qp->rq.ring = has_rq ? qp->sq.ring + sq : NULL;
	pthread_spin_init(&qp->sq.lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&qp->rq.lock, PTHREAD_PROCESS_PRIVATE);
	return 0;
}

static void free_queues(struct ordma_context *ctx, struct ordma_qp *qp)
{
	ctx->be->buf_free(ctx, &qp->buf);
	free(qp->sq.wr_id);
	pthread_spin_destroy(&qp->sq.lock);
	pthread_spin_destroy(&qp->rq.lock);
}

static int create_at_backend(struct ordma_context *ctx, struct ordma_qp *qp, struct ibv_qp_init_attr_ex *attr, bool has_rq)
{
	struct ordma_abi_create_qp_resp resp = {};
	struct ordma_abi_create_qp_req req = {
		.sq_va = (uintptr_t)qp->sq.ring,
		.rq_va = (uintptr_t)qp->rq.ring,
		.sq_log = qp->sq.log,
		.sq_stride_log = qp->sq.stride_log,
		.rq_log = qp->rq.log,
		.rq_stride_log = has_rq ? qp->rq.stride_log : 0,
	};
	int err = ctx->be->create_qp(ctx, qp, attr, &req, &resp);

	if (err)
		return err;
	qp->qpn = resp.qpn;
	qp->vqp.qp.qp_num = resp.qpn;
	qp->sq.db = ordma_map_db(ctx, &resp.sq_db);
	qp->rq.db = has_rq ? ordma_map_db(ctx, &resp.rq_db) : NULL;
	err = !qp->sq.db || (has_rq && !qp->rq.db) ? ENOMEM : ordma_add_qp(ctx, qp);
	if (err)
		ctx->be->destroy_qp(qp);
	return err;
}

struct ibv_qp *ordma_create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ordma_context *ctx = to_octx(ibctx);
	bool has_rq = !attr->srq;
	struct ordma_qp *qp;
	int err;

	err = check_attr(ctx, attr);
	if (err) {
		errno = err;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->type = attr->qp_type;
	qp->sq_sig_all = attr->sq_sig_all;
	size_queues(ctx, qp, attr);
	fill_cap(qp, &attr->cap);
	err = alloc_queues(ctx, qp, has_rq);
	if (err)
		goto err_free;
	err = create_at_backend(ctx, qp, attr, has_rq);
	if (err)
		goto err_queues;
	fill_cap(qp, &attr->cap);
	/* Last: creating the QP at the kernel clears what the generic part says about extensions. */
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		ordma_init_wr_ops(qp, attr->send_ops_flags);
	return &qp->vqp.qp;

err_queues:
	free_queues(ctx, qp);
err_free:
	free(qp);
	errno = err;
	return NULL;
}

struct ibv_qp *ordma_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd };
	struct ibv_qp *qp;

	/* Not the whole: the padding behind the last member lies where the extended one has comp_mask. */
	memcpy(&ex, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	qp = ordma_create_qp_ex(pd->context, &ex);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/*
 * CQEs of the QP's earlier life go, and so do its WQEs; the indices go on, since a doorbell slot that is polled for change must never
 * see the same index twice.
 */
static void reset_queues(struct ordma_qp *qp)
{
	ordma_purge_cq(to_ocq(qp->vqp.qp.send_cq), qp->qpn);
	if (qp->vqp.qp.recv_cq != qp->vqp.qp.send_cq)
		ordma_purge_cq(to_ocq(qp->vqp.qp.recv_cq), qp->qpn);
	qp->sq.ci = qp->sq.pi;
	qp->rq.ci = qp->rq.pi;
}

int ordma_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	int err = to_octx(ibqp->context)->be->modify_qp(to_oqp(ibqp), attr, mask);

	if (!err && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		reset_queues(to_oqp(ibqp));
	return err;
}

int ordma_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct ordma_qp *qp = to_oqp(ibqp);
	int err = to_octx(ibqp->context)->be->query_qp(qp, attr, mask, init);

	if (err)
		return err;
	fill_cap(qp, &attr->cap);
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->qp_type = ibqp->qp_type;
	init->sq_sig_all = qp->sq_sig_all;
	init->cap = attr->cap;
	return 0;
}

int ordma_destroy_qp(struct ibv_qp *ibqp)
{
	struct ordma_context *ctx = to_octx(ibqp->context);
	struct ordma_qp *qp = to_oqp(ibqp);
	int err = ctx->be->destroy_qp(qp);

	if (err)
		return err;
	ordma_purge_cq(to_ocq(ibqp->send_cq), qp->qpn);
	if (ibqp->recv_cq != ibqp->send_cq)
		ordma_purge_cq(to_ocq(ibqp->recv_cq), qp->qpn);
	ordma_remove_qp(ctx, qp);
	free_queues(ctx, qp);
	free(qp);
	return 0;
}

/*
 * On RC a NIC places packets in PSN order and a resend writes the same bytes again only below the expected PSN's message, so the
 * last byte of a WRITE or SEND is written last. UC and UD promise nothing about lost middles.
 */
int ordma_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)flags;
	if (qp->qp_type != IBV_QPT_RC)
		return 0;
	return op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM || op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM;
}
