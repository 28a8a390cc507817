// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Classic posts: ibv_post_send and ibv_post_recv. No allocation, no syscall, one lock per queue. */
#include <errno.h>
#include <string.h>

#include "backend.h"
#include "wqe.h"

struct op_info {
	uint8_t op;
	bool rdma;
	bool atomic;
	bool imm;
	bool no_inline;
};

static const struct op_info ops[] = {
	[IBV_WR_SEND] = { ORDMA_WQE_OP_SEND },
	[IBV_WR_SEND_WITH_IMM] = { ORDMA_WQE_OP_SEND_IMM, .imm = true },
	[IBV_WR_RDMA_WRITE] = { ORDMA_WQE_OP_WRITE, .rdma = true },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { ORDMA_WQE_OP_WRITE_IMM, .rdma = true, .imm = true },
	[IBV_WR_RDMA_READ] = { ORDMA_WQE_OP_READ, .rdma = true, .no_inline = true },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { ORDMA_WQE_OP_CMP_SWAP, .atomic = true, .no_inline = true },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { ORDMA_WQE_OP_FETCH_ADD, .atomic = true, .no_inline = true },
};

bool ordma_op_allowed(enum ibv_qp_type type, enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return true;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return type != IBV_QPT_UD;
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return type == IBV_QPT_RC;
	default:
		return false;
	}
}

static int write_inline(struct ordma_qp *qp, uint8_t *wqe, unsigned int off, const struct ibv_send_wr *wr, uint32_t *length)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		uint32_t len = wr->sg_list[i].length;

		if (len > qp->max_inline - sum)
			return EINVAL;
		memcpy(wqe + off + sum, (void *)(uintptr_t)wr->sg_list[i].addr, len);
		sum += len;
	}
	*length = sum;
	return 0;
}

/* Remote side of the operation; returns the offset of the data segments. */
static unsigned int write_remote(struct ordma_qp *qp, struct ordma_wqe *w, const struct ibv_send_wr *wr,
				 const struct op_info *info)
{
	if (qp->type == IBV_QPT_UD) {
		ordma_write_av(w, &to_oah(wr->wr.ud.ah)->av, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
		return ORDMA_WQE_UD_DATA_OFF;
	}
	if (info->atomic) {
		w->w[ORDMA_WQE_REMOTE_ADDR_W] = ORDMA_HW_CPU_TO_LE64(wr->wr.atomic.remote_addr);
		w->w[ORDMA_WQE_RKEY_W] = ORDMA_HW_CPU_TO_LE64(ORDMA_FIELD(WQE_RKEY, wr->wr.atomic.rkey));
		if (info->op == ORDMA_WQE_OP_CMP_SWAP) {
			w->w[ORDMA_WQE_SWAP_ADD_W] = ORDMA_HW_CPU_TO_LE64(wr->wr.atomic.swap);
			w->w[ORDMA_WQE_COMPARE_W] = ORDMA_HW_CPU_TO_LE64(wr->wr.atomic.compare_add);
		} else {
			w->w[ORDMA_WQE_SWAP_ADD_W] = ORDMA_HW_CPU_TO_LE64(wr->wr.atomic.compare_add);
			w->w[ORDMA_WQE_COMPARE_W] = 0;
		}
		return ORDMA_WQE_ATOMIC_DATA_OFF;
	}
	w->w[ORDMA_WQE_REMOTE_ADDR_W] = info->rdma ? ORDMA_HW_CPU_TO_LE64(wr->wr.rdma.remote_addr) : 0;
	w->w[ORDMA_WQE_RKEY_W] = info->rdma ? ORDMA_HW_CPU_TO_LE64(ORDMA_FIELD(WQE_RKEY, wr->wr.rdma.rkey)) : 0;
	return ORDMA_WQE_DATA_OFF;
}

static int check_wr(const struct ordma_qp *qp, const struct ibv_send_wr *wr)
{
	if ((unsigned int)wr->opcode >= sizeof(ops) / sizeof(ops[0]) || !ops[wr->opcode].op)
		return EOPNOTSUPP;
	if (!ordma_op_allowed(qp->type, wr->opcode))
		return EINVAL;
	if (wr->num_sge < 0 || (unsigned int)wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	if ((wr->send_flags & IBV_SEND_INLINE) && ops[wr->opcode].no_inline)
		return EINVAL;
	if (ops[wr->opcode].atomic && (wr->num_sge != 1 || wr->sg_list[0].length != 8))
		return EINVAL;
	return 0;
}

static int write_wqe(struct ordma_qp *qp, const struct ibv_send_wr *wr)
{
	const struct op_info *info;
	struct ordma_wqe *w;
	uint32_t length = 0;
	unsigned int off;
	bool is_inline;
	int err;

	err = check_wr(qp, wr);
	if (err)
		return err;
	if (ordma_queue_full(&qp->sq))
		return ENOMEM;
	info = &ops[wr->opcode];
	is_inline = wr->send_flags & IBV_SEND_INLINE;
	w = ordma_queue_slot(&qp->sq, qp->sq.pi);
	off = write_remote(qp, w, wr, info);
	err = is_inline ? write_inline(qp, (uint8_t *)w, off, wr, &length) :
			  ordma_write_sges((uint8_t *)w + off, wr->sg_list, wr->num_sge, &length);
	if (err)
		return err;
	ordma_write_ctrl(qp, w, info->op, wr->send_flags, is_inline ? 0 : wr->num_sge, length, info->imm ? wr->imm_data : 0);
	qp->sq.wr_id[qp->sq.pi & ((1u << qp->sq.log) - 1)] = wr->wr_id;
	qp->sq.pi = (qp->sq.pi + 1) & ORDMA_INDEX_MASK;
	return 0;
}

int ordma_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ordma_qp *qp = to_oqp(ibqp);
	uint32_t before;
	int err = 0;

	/* libibverbs keeps the state: a send is legal from RTS on; in ERR and SQE the NIC flushes it. */
	if (ibqp->state < IBV_QPS_RTS) {
		*bad = wr;
		return EINVAL;
	}
	pthread_spin_lock(&qp->sq.lock);
	before = qp->sq.pi;
	for (; wr; wr = wr->next) {
		err = write_wqe(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (qp->sq.pi != before)
		ordma_ring_index(to_octx(ibqp->context), qp->sq.db, ORDMA_DB_KIND_SQ, qp->qpn, qp->sq.pi);
	pthread_spin_unlock(&qp->sq.lock);
	return err;
}

int ordma_write_rqe(struct ordma_queue *q, const struct ibv_recv_wr *wr)
{
	struct ordma_rqe *rqe;
	uint32_t length;
	int err;

	if (wr->num_sge < 0 || (unsigned int)wr->num_sge > q->max_sge)
		return EINVAL;
	rqe = ordma_queue_slot(q, q->pi);
	err = ordma_write_sges((uint8_t *)rqe + ORDMA_RQE_DATA_OFF, wr->sg_list, wr->num_sge, &length);
	if (err)
		return err;
	rqe->w[ORDMA_RQE_WR_ID_W] = ORDMA_HW_CPU_TO_LE64(wr->wr_id);
	rqe->w[ORDMA_RQE_INDEX_W] = ORDMA_HW_CPU_TO_LE64(ORDMA_FIELD(RQE_NUM_SGE, wr->num_sge) | ORDMA_FIELD(RQE_INDEX, q->pi));
	q->pi = (q->pi + 1) & ORDMA_INDEX_MASK;
	return 0;
}

int ordma_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ordma_qp *qp = to_oqp(ibqp);
	uint32_t before;
	int err = 0;

	/* No receive queue of its own: an SRQ feeds it. */
	if (ibqp->state == IBV_QPS_RESET || !qp->rq.ring) {
		*bad = wr;
		return EINVAL;
	}
	pthread_spin_lock(&qp->rq.lock);
	before = qp->rq.pi;
	for (; wr; wr = wr->next) {
		err = ordma_queue_full(&qp->rq) ? ENOMEM : ordma_write_rqe(&qp->rq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (qp->rq.pi != before)
		ordma_ring_index(to_octx(ibqp->context), qp->rq.db, ORDMA_DB_KIND_RQ, qp->qpn, qp->rq.pi);
	pthread_spin_unlock(&qp->rq.lock);
	return err;
}
