// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues. The NIC alone writes CQEs, the provider alone the consumer record. A CQE is valid when the phase in its
 * last word is that of the lap; that word becomes visible last, so an acquire load of it makes the rest readable.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "backend.h"

static struct ordma_cqe *valid_cqe(const struct ordma_cq_ring *r)
{
	struct ordma_cqe *cqe = &r->ring[r->ci & ((1u << r->log) - 1)];
	uint64_t last = __atomic_load_n(&cqe->w[ORDMA_CQE_PHASE_W], __ATOMIC_ACQUIRE);
	unsigned int phase = ORDMA_WGET(ORDMA_HW_LE64_TO_CPU(last), CQE_PHASE);

	return phase == (~(r->ci >> r->log) & 1) ? cqe : NULL;
}

/* Ring and record lie in one buffer: the record behind the ring in a page of its own. */
static int alloc_ring(struct ordma_context *ctx, struct ordma_cq_ring *r, unsigned int log)
{
	size_t ring = ordma_page_round((size_t)ORDMA_CQE_BYTES << log);
	int err;

	r->buf.len = ring + ordma_page_round(sizeof(*r->record));
	err = ctx->be->buf_alloc(ctx, &r->buf);
	if (err)
		return err;
	r->ring = r->buf.va;
	r->record = (struct ordma_cq_record *)((uint8_t *)r->buf.va + ring);
	r->log = log;
	r->ci = 0;
	return 0;
}

static struct ordma_cq *create(struct ibv_context *ibctx, const struct ibv_cq_init_attr_ex *attr)
{
	struct ordma_context *ctx = to_octx(ibctx);
	struct ordma_abi_create_cq_resp resp = {};
	struct ordma_abi_create_cq_req req = {};
	struct ordma_cq *cq;
	int err;

	if (!attr->cqe || attr->cqe > ctx->attr.max_cqe) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	err = alloc_ring(ctx, &cq->cur, ordma_log2_at_least(attr->cqe));
	if (err)
		goto err_free;
	req.ring_va = (uintptr_t)cq->cur.ring;
	req.record_va = (uintptr_t)cq->cur.record;
	req.ring_log = cq->cur.log;
	err = ctx->be->create_cq(ctx, cq, attr, &req, &resp);
	if (err)
		goto err_ring;
	cq->cqn = resp.cqn;
	cq->arm_db = ordma_map_db(ctx, &resp.arm_db);
	if (!cq->arm_db) {
		err = errno;
		ctx->be->destroy_cq(cq);
		goto err_ring;
	}
	cq->vcq.cq.cqe = 1 << cq->cur.log;
	return cq;

err_ring:
	ctx->be->buf_free(ctx, &cq->cur.buf);
err_free:
	pthread_spin_destroy(&cq->lock);
	free(cq);
	errno = err;
	return NULL;
}

struct ibv_cq *ordma_create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = cqe, .channel = channel, .comp_vector = vector };
	struct ordma_cq *cq;

	if (cqe <= 0) {
		errno = EINVAL;
		return NULL;
	}
	cq = create(ctx, &attr);
	return cq ? &cq->vcq.cq : NULL;
}

#define ORDMA_CQ_WC_FLAGS                                                                                               \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)

struct ibv_cq_ex *ordma_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ordma_cq *cq;

	if (attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) || attr->wc_flags & ~ORDMA_CQ_WC_FLAGS ||
	    ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	     attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = create(ctx, attr);
	if (!cq)
		return NULL;
	ordma_init_cq_ex(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

static unsigned int count_unseen(const struct ordma_cq_ring *r)
{
	struct ordma_cq_ring at = *r;

	while (valid_cqe(&at))
		at.ci = (at.ci + 1) & ORDMA_INDEX_MASK;
	return ordma_index_sub(at.ci, r->ci);
}

/*
 * The NIC starts the new ring at index 0; what it wrote to the old one before that point is consumed from there first.
 */
int ordma_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct ordma_context *ctx = to_octx(ibcq->context);
	struct ordma_abi_resize_cq_resp resp = {};
	struct ordma_abi_resize_cq_req req = {};
	struct ordma_cq *cq = to_ocq(ibcq);
	struct ordma_cq_ring fresh = {};
	struct ordma_cq_ring drop = {};
	int err;

	if (cqe <= 0 || (unsigned int)cqe > ctx->attr.max_cqe)
		return EINVAL;
	err = alloc_ring(ctx, &fresh, ordma_log2_at_least(cqe));
	if (err)
		return err;
	req.ring_va = (uintptr_t)fresh.ring;
	req.record_va = (uintptr_t)fresh.record;
	req.ring_log = fresh.log;
	pthread_spin_lock(&cq->lock);
	/* Fewer slots than CQEs wait, or a second resize before the first old ring was read out: the caller polls first. */
	if (cq->have_old) {
		err = EBUSY;
	} else if (count_unseen(&cq->cur) > 1u << fresh.log) {
		err = EINVAL;
	} else {
		ordma_publish_ci(cq);
		err = ctx->be->resize_cq(cq, cqe, &req, &resp);
	}
	if (err) {
		drop = fresh;
	} else {
		cq->old = cq->cur;
		cq->old_end = resp.old_pi & ORDMA_INDEX_MASK;
		cq->have_old = cq->old.ci != cq->old_end;
		cq->cur = fresh;
		cq->arm_from = 0;
		if (!cq->have_old)
			drop = cq->old;
		ibcq->cqe = 1 << fresh.log;
	}
	pthread_spin_unlock(&cq->lock);
	if (drop.buf.va)
		ctx->be->buf_free(ctx, &drop.buf);
	return err;
}

int ordma_destroy_cq(struct ibv_cq *ibcq)
{
	struct ordma_context *ctx = to_octx(ibcq->context);
	struct ordma_cq *cq = to_ocq(ibcq);
	int err = ctx->be->destroy_cq(cq);

	if (err)
		return err;
	ctx->be->buf_free(ctx, &cq->cur.buf);
	if (cq->old.buf.va && cq->have_old)
		ctx->be->buf_free(ctx, &cq->old.buf);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}

static struct ordma_cq_ring *read_ring(struct ordma_cq *cq)
{
	return cq->have_old ? &cq->old : &cq->cur;
}

struct ordma_cqe *ordma_next_cqe(struct ordma_cq *cq)
{
	return valid_cqe(read_ring(cq));
}

void ordma_consume_cqe(struct ordma_cq *cq)
{
	struct ordma_cq_ring *r = read_ring(cq);

	r->ci = (r->ci + 1) & ORDMA_INDEX_MASK;
	if (cq->have_old && r->ci == cq->old_end) {
		cq->have_old = false;
		to_octx(cq->vcq.cq.context)->be->buf_free(to_octx(cq->vcq.cq.context), &cq->old.buf);
	}
}

/* Release: the NIC may overwrite a CQE as soon as it sees the index above it. */
void ordma_publish_ci(struct ordma_cq *cq)
{
	__atomic_store_n(&cq->cur.record->w[0], ORDMA_HW_CPU_TO_LE64(ORDMA_FIELD(CQ_RECORD_CI, cq->cur.ci)), __ATOMIC_RELEASE);
}

/* Frees the queue slots that a CQE stands for and returns its wr_id. */
uint64_t ordma_retire(struct ordma_cq *cq, const struct ordma_cqe *cqe)
{
	struct ordma_qp *qp = ordma_find_qp(to_octx(cq->vcq.cq.context), ORDMA_GET(cqe, CQE_QPN));
	uint32_t index = ORDMA_GET(cqe, CQE_WQE_INDEX);
	uint64_t wr_id;

	if (ORDMA_GET(cqe, CQE_IS_RECV)) {
		/* An SRQ frees its slots when it fetches; its record says so. */
		if (qp && qp->rq.ring)
			ordma_queue_retire(&qp->rq, index);
		return ORDMA_GET(cqe, CQE_WR_ID);
	}
	if (!qp)
		return 0;
	ordma_after_nic(qp->sq.db);
	/* Read before the slot is free: a poster that sees it free writes the next wr_id there. */
	wr_id = ORDMA_GET(cqe, CQE_IS_TOKEN) ? ORDMA_GET(cqe, CQE_WR_ID) : qp->sq.wr_id[index & ((1u << qp->sq.log) - 1)];
	ordma_queue_retire(&qp->sq, index);
	return wr_id;
}

static void fill_wc(struct ordma_cq *cq, const struct ordma_cqe *cqe, struct ibv_wc *wc)
{
	wc->wr_id = ordma_retire(cq, cqe);
	wc->status = ORDMA_GET(cqe, CQE_STATUS);
	wc->opcode = ORDMA_GET(cqe, CQE_OPCODE);
	wc->vendor_err = ORDMA_GET(cqe, CQE_VENDOR_ERR);
	wc->byte_len = ORDMA_GET(cqe, CQE_BYTE_LEN);
	wc->imm_data = ORDMA_GET(cqe, CQE_IMM);
	wc->qp_num = ORDMA_GET(cqe, CQE_QPN);
	wc->src_qp = ORDMA_GET(cqe, CQE_SRC_QPN);
	wc->wc_flags = ordma_cqe_wc_flags(cqe);
	wc->pkey_index = ORDMA_GET(cqe, CQE_PKEY_INDEX);
	wc->slid = 0;
	wc->sl = ordma_cqe_sl(cqe);
	wc->dlid_path_bits = 0;
}

/* A CQE of a QP that was destroyed: its slot is skipped. QPN 0 is never a QP. */
static bool is_purged(const struct ordma_cqe *cqe)
{
	return ORDMA_GET(cqe, CQE_QPN) == 0;
}

#define EMPTY_POLLS_PER_RELAX 64
#define EMPTY_POLLS_PER_LOOK 0x4000

/* After the lock is gone. 0, or EIO when nothing will ever come: looked at once in many empty polls. */
int ordma_poll_empty(struct ordma_cq *cq)
{
	struct ordma_context *ctx = to_octx(cq->vcq.cq.context);
	/* Threads that poll one CQ may lose counts to each other; it is a pace, not a number. */
	uint32_t polls = __atomic_load_n(&cq->empty_polls, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&cq->empty_polls, polls, __ATOMIC_RELAXED);
	if (polls % EMPTY_POLLS_PER_RELAX)
		return 0;
	if (ctx->be->relax)
		ctx->be->relax();
	return polls % EMPTY_POLLS_PER_LOOK == 0 && ordma_device_gone(ctx) ? EIO : 0;
}

int ordma_poll_cq(struct ibv_cq *ibcq, int entries, struct ibv_wc *wc)
{
	struct ordma_cq *cq = to_ocq(ibcq);
	struct ordma_cqe *cqe;
	uint32_t seen = 0;
	int err = 0;
	int n = 0;

	pthread_spin_lock(&cq->lock);
	while (n < entries && (cqe = ordma_next_cqe(cq))) {
		if (!is_purged(cqe))
			fill_wc(cq, cqe, &wc[n++]);
		ordma_consume_cqe(cq);
		seen++;
	}
	if (seen)
		ordma_publish_ci(cq);
	pthread_spin_unlock(&cq->lock);
	if (!seen && entries > 0) {
		err = ordma_poll_empty(cq);
		if (err) {
			errno = err;
			return -1;
		}
	}
	return n;
}

/* After destroy_qp no CQE of that QP may be polled; the NIC writes none any more. */
void ordma_purge_cq(struct ordma_cq *cq, uint32_t qpn)
{
	struct ordma_cq_ring at;
	struct ordma_cqe *cqe;
	bool old;

	pthread_spin_lock(&cq->lock);
	for (old = cq->have_old;; old = false) {
		at = old ? cq->old : cq->cur;
		while ((!old || at.ci != cq->old_end) && (cqe = valid_cqe(&at))) {
			if (ORDMA_GET(cqe, CQE_QPN) == qpn) {
				ordma_retire(cq, cqe);
				ORDMA_SET(cqe, CQE_QPN, 0);
			}
			at.ci = (at.ci + 1) & ORDMA_INDEX_MASK;
		}
		if (!old)
			break;
	}
	pthread_spin_unlock(&cq->lock);
}

/*
 * An event announces a CQE that is added from now on. CQEs that are written already are not announced again, even when the caller
 * has not polled them: programs arm first and poll then, and take an event without a CQE for an error. Looking costs one read per
 * CQE over the life of the CQ, since what was looked at once is not looked at again.
 */
int ordma_arm_cq(struct ibv_cq *ibcq, int solicited)
{
	struct ordma_cq *cq = to_ocq(ibcq);
	struct ordma_cq_ring at;

	pthread_spin_lock(&cq->lock);
	at = cq->cur;
	if (ordma_index_sub(cq->arm_from, at.ci) <= 1u << at.log)
		at.ci = cq->arm_from;
	while (valid_cqe(&at))
		at.ci = (at.ci + 1) & ORDMA_INDEX_MASK;
	cq->arm_from = at.ci;
	ordma_ring_arm(to_octx(ibcq->context), cq, solicited);
	pthread_spin_unlock(&cq->lock);
	return 0;
}
