// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_wr_*: WQEs built call by call inside one critical section. wr_start takes the queue's lock and remembers where it began; the
 * first error is kept and makes wr_complete undo everything, so that nothing half-built is ever rung.
 */
#include <errno.h>
#include <string.h>

#include "backend.h"
#include "wqe.h"

static void fail(struct ordma_qp *qp, int err)
{
	if (!qp->wr.err)
		qp->wr.err = err;
}

/* Opens the next WQE with nothing attached: a WQE without a data setter is a legal 0-byte message. */
static struct ordma_wqe *begin(struct ibv_qp_ex *ibqp, uint8_t op, uint32_t imm)
{
	struct ordma_qp *qp = to_oqp_ex(ibqp);
	struct ordma_wqe *w;

	if (qp->wr.err)
		return NULL;
	if (ordma_queue_full(&qp->sq)) {
		fail(qp, ENOMEM);
		qp->wr.wqe = NULL;
		return NULL;
	}
	w = ordma_queue_slot(&qp->sq, qp->sq.pi);
	qp->wr.wqe = w;
	ordma_write_ctrl(qp, w, op, ibqp->wr_flags & ~IBV_SEND_INLINE, 0, 0, imm);
	qp->sq.wr_id[qp->sq.pi & ((1u << qp->sq.log) - 1)] = ibqp->wr_id;
	qp->sq.pi = (qp->sq.pi + 1) & ORDMA_INDEX_MASK;
	return w;
}

/* A setter needs a builder before it; without one the whole section fails. */
static bool open_wqe(struct ordma_qp *qp)
{
	if (!qp->wr.err && !qp->wr.wqe)
		fail(qp, EINVAL);
	return !qp->wr.err;
}

static void set_remote(struct ordma_wqe *w, uint64_t addr, uint32_t rkey)
{
	if (!w)
		return;
	w->w[ORDMA_WQE_REMOTE_ADDR_W] = ORDMA_HW_CPU_TO_LE64(addr);
	w->w[ORDMA_WQE_RKEY_W] = ORDMA_HW_CPU_TO_LE64(ORDMA_FIELD(WQE_RKEY, rkey));
}

static void wr_send(struct ibv_qp_ex *qp)
{
	begin(qp, ORDMA_WQE_OP_SEND, 0);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	begin(qp, ORDMA_WQE_OP_SEND_IMM, imm);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	set_remote(begin(qp, ORDMA_WQE_OP_WRITE, 0), addr, rkey);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm)
{
	set_remote(begin(qp, ORDMA_WQE_OP_WRITE_IMM, imm), addr, rkey);
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	set_remote(begin(qp, ORDMA_WQE_OP_READ, 0), addr, rkey);
}

static void atomic(struct ibv_qp_ex *qp, uint8_t op, uint32_t rkey, uint64_t addr, uint64_t swap_add, uint64_t compare)
{
	struct ordma_wqe *w = begin(qp, op, 0);

	set_remote(w, addr, rkey);
	if (w) {
		w->w[ORDMA_WQE_SWAP_ADD_W] = ORDMA_HW_CPU_TO_LE64(swap_add);
		w->w[ORDMA_WQE_COMPARE_W] = ORDMA_HW_CPU_TO_LE64(compare);
	}
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	atomic(qp, ORDMA_WQE_OP_CMP_SWAP, rkey, addr, swap, compare);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add)
{
	atomic(qp, ORDMA_WQE_OP_FETCH_ADD, rkey, addr, add, 0);
}

static bool is_atomic(const struct ordma_wqe *w)
{
	uint8_t op = ORDMA_GET(w, WQE_OPCODE);

	return op == ORDMA_WQE_OP_CMP_SWAP || op == ORDMA_WQE_OP_FETCH_ADD;
}

static unsigned int data_offset(const struct ordma_qp *qp, const struct ordma_wqe *w)
{
	return is_atomic(w) ? ORDMA_WQE_ATOMIC_DATA_OFF : qp->data_off;
}

static void set_sge_list(struct ibv_qp_ex *ibqp, size_t num, const struct ibv_sge *list)
{
	struct ordma_qp *qp = to_oqp_ex(ibqp);
	struct ordma_wqe *w = qp->wr.wqe;
	uint32_t length;

	if (!open_wqe(qp))
		return;
	if (num > qp->sq.max_sge || (is_atomic(w) && (num != 1 || list[0].length != 8)) ||
	    ordma_write_sges((uint8_t *)w + data_offset(qp, w), list, num, &length)) {
		fail(qp, EINVAL);
		return;
	}
	ORDMA_SET(w, WQE_NUM_SGE, num);
	ORDMA_SET(w, WQE_LENGTH, length);
}

static void set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	set_sge_list(qp, 1, &sge);
}

static void set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num, const struct ibv_data_buf *list)
{
	struct ordma_qp *qp = to_oqp_ex(ibqp);
	struct ordma_wqe *w = qp->wr.wqe;
	uint32_t sum = 0;
	size_t i;

	if (!open_wqe(qp))
		return;
	if (is_atomic(w) || ORDMA_GET(w, WQE_OPCODE) == ORDMA_WQE_OP_READ) {
		fail(qp, EINVAL);
		return;
	}
	for (i = 0; i < num; i++) {
		if (list[i].length > qp->max_inline - sum) {
			fail(qp, EINVAL);
			return;
		}
		memcpy((uint8_t *)w + qp->data_off + sum, list[i].addr, list[i].length);
		sum += list[i].length;
	}
	ORDMA_SET(w, WQE_INLINE, 1);
	ORDMA_SET(w, WQE_LENGTH, sum);
}

static void set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	set_inline_data_list(qp, 1, &buf);
}

static void set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ordma_qp *qp = to_oqp_ex(ibqp);

	if (open_wqe(qp))
		ordma_write_av(qp->wr.wqe, &to_oah(ah)->av, qpn, qkey);
}

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct ordma_qp *qp = to_oqp_ex(ibqp);

	pthread_spin_lock(&qp->sq.lock);
	qp->wr.start = qp->sq.pi;
	qp->wr.err = qp->vqp.qp.state < IBV_QPS_RTS ? EINVAL : 0;
	qp->wr.wqe = NULL;
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct ordma_qp *qp = to_oqp_ex(ibqp);
	int err = qp->wr.err;

	if (err)
		qp->sq.pi = qp->wr.start;
	else if (qp->sq.pi != qp->wr.start)
		ordma_ring_index(to_octx(qp->vqp.qp.context), qp->sq.db, ORDMA_DB_KIND_SQ, qp->qpn, qp->sq.pi);
	pthread_spin_unlock(&qp->sq.lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	struct ordma_qp *qp = to_oqp_ex(ibqp);

	qp->sq.pi = qp->wr.start;
	pthread_spin_unlock(&qp->sq.lock);
}

#define OPS_ALL (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_CONNECTED (OPS_ALL | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define OPS_RC                                                                                                          \
	(OPS_CONNECTED | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

bool ordma_wr_ops_supported(enum ibv_qp_type type, uint64_t ops)
{
	uint64_t can = type == IBV_QPT_RC ? OPS_RC : type == IBV_QPT_UC ? OPS_CONNECTED : OPS_ALL;

	return !(ops & ~can);
}

void ordma_init_wr_ops(struct ordma_qp *qp, uint64_t ops)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = set_sge;
	ex->wr_set_sge_list = set_sge_list;
	ex->wr_set_inline_data = set_inline_data;
	ex->wr_set_inline_data_list = set_inline_data_list;
	ex->wr_set_ud_addr = qp->type == IBV_QPT_UD ? set_ud_addr : NULL;
	ex->wr_send = ops & IBV_QP_EX_WITH_SEND ? wr_send : NULL;
	ex->wr_send_imm = ops & IBV_QP_EX_WITH_SEND_WITH_IMM ? wr_send_imm : NULL;
	ex->wr_rdma_write = ops & IBV_QP_EX_WITH_RDMA_WRITE ? wr_rdma_write : NULL;
	ex->wr_rdma_write_imm = ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM ? wr_rdma_write_imm : NULL;
	ex->wr_rdma_read = ops & IBV_QP_EX_WITH_RDMA_READ ? wr_rdma_read : NULL;
	ex->wr_atomic_cmp_swp = ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP ? wr_atomic_cmp_swp : NULL;
	ex->wr_atomic_fetch_add = ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD ? wr_atomic_fetch_add : NULL;
	qp->vqp.comp_mask |= VERBS_QP_EX;
}
