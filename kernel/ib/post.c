// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting to the kernel's own queues. */
#include "ordma_ib.h"

#define ORDMA_QKEY_OWN (1U << 31)

static const struct ordma_send_op {
	u8 wqe_op; /* enum ordma_wqe_op; 0: not in this device */
	u8 wc_op;  /* enum ib_wc_opcode */
	bool ud;
} ordma_send_ops[] = {
	[IB_WR_SEND] = { ORDMA_WQE_OP_SEND, IB_WC_SEND, true },
	[IB_WR_SEND_WITH_IMM] = { ORDMA_WQE_OP_SEND_IMM, IB_WC_SEND, true },
	[IB_WR_SEND_WITH_INV] = { ORDMA_WQE_OP_SEND_INV, IB_WC_SEND },
	[IB_WR_RDMA_WRITE] = { ORDMA_WQE_OP_WRITE, IB_WC_RDMA_WRITE },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { ORDMA_WQE_OP_WRITE_IMM, IB_WC_RDMA_WRITE },
	[IB_WR_RDMA_READ] = { ORDMA_WQE_OP_READ, IB_WC_RDMA_READ },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { ORDMA_WQE_OP_CMP_SWAP, IB_WC_COMP_SWAP },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { ORDMA_WQE_OP_FETCH_ADD, IB_WC_FETCH_ADD },
};

static bool ordma_is_ud(const struct ib_qp *ibqp)
{
	return ibqp->qp_type == IB_QPT_UD || ibqp->qp_type == IB_QPT_GSI;
}

/* The part of the WQE between the head and the data; returns where the data begins. */
static u32 ordma_wqe_remote(struct ordma_ibqp *qp, struct ordma_wqe *wqe, const struct ib_send_wr *wr)
{
	struct ordma_av *av;
	u32 qkey;

	if (ordma_is_ud(&qp->ibqp)) {
		/* Bit 31 asks for the QP's own; the NIC takes it at its word from a kernel queue. */
		qkey = ud_wr(wr)->remote_qkey;
		if (qkey & ORDMA_QKEY_OWN)
			qkey = READ_ONCE(qp->hwqp.qp.attr.qkey);
		av = (struct ordma_av *)&wqe->w[ORDMA_WQE_REMOTE_ADDR_W];
		*av = to_oah(ud_wr(wr)->ah)->av;
		ORDMA_SET(av, AV_DEST_QPN, ud_wr(wr)->remote_qpn);
		ORDMA_SET(av, AV_QKEY, qkey);
		return ORDMA_WQE_UD_DATA_OFF;
	}
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		wqe->w[ORDMA_WQE_REMOTE_ADDR_W] = cpu_to_le64(rdma_wr(wr)->remote_addr);
		wqe->w[ORDMA_WQE_RKEY_W] = cpu_to_le64(ORDMA_FIELD(WQE_RKEY, rdma_wr(wr)->rkey));
		return ORDMA_WQE_DATA_OFF;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		wqe->w[ORDMA_WQE_REMOTE_ADDR_W] = cpu_to_le64(atomic_wr(wr)->remote_addr);
		wqe->w[ORDMA_WQE_RKEY_W] = cpu_to_le64(ORDMA_FIELD(WQE_RKEY, atomic_wr(wr)->rkey));
		wqe->w[ORDMA_WQE_SWAP_ADD_W] = cpu_to_le64(atomic_wr(wr)->swap);
		wqe->w[ORDMA_WQE_COMPARE_W] = cpu_to_le64(atomic_wr(wr)->compare_add);
		return ORDMA_WQE_ATOMIC_DATA_OFF;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->w[ORDMA_WQE_REMOTE_ADDR_W] = cpu_to_le64(atomic_wr(wr)->remote_addr);
		wqe->w[ORDMA_WQE_RKEY_W] = cpu_to_le64(ORDMA_FIELD(WQE_RKEY, atomic_wr(wr)->rkey));
		wqe->w[ORDMA_WQE_SWAP_ADD_W] = cpu_to_le64(atomic_wr(wr)->compare_add);
		return ORDMA_WQE_ATOMIC_DATA_OFF;
	default:
		wqe->w[ORDMA_WQE_REMOTE_ADDR_W] = 0;
		wqe->w[ORDMA_WQE_RKEY_W] = 0;
		return ORDMA_WQE_DATA_OFF;
	}
}

static u32 ordma_wqe_imm(const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return le32_to_cpu((__force __le32)wr->ex.imm_data); /* raw bytes */
	case IB_WR_SEND_WITH_INV:
		return wr->ex.invalidate_rkey;
	default:
		return 0;
	}
}

static void ordma_wqe_data(struct ordma_wqe *wqe, u32 off, const struct ib_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (wr->send_flags & IB_SEND_INLINE) {
			memcpy((u8 *)wqe + off, (void *)(uintptr_t)sge->addr, sge->length);
			off += sge->length;
		} else {
			ordma_sge_set(wqe, off, sge->addr, sge->length, sge->lkey);
			off += ORDMA_SGE_BYTES;
		}
	}
}

static int ordma_send_check(const struct ordma_ibqp *qp, const struct ib_send_wr *wr, u64 *len)
{
	const struct ordma_qp_cap *cap = &qp->hwqp.qp.init.cap;
	u32 state = READ_ONCE(qp->hwqp.qp.state);
	bool ud = ordma_is_ud(&qp->ibqp);
	int i;

	if (state < ORDMA_QP_STATE_RTS || !qp->sq.stride_log)
		return -EINVAL;
	if (wr->opcode >= ARRAY_SIZE(ordma_send_ops) || !ordma_send_ops[wr->opcode].wqe_op)
		return -EOPNOTSUPP;
	if (ud && !ordma_send_ops[wr->opcode].ud)
		return -EINVAL;
	if (ordma_kwq_full(&qp->sq))
		return -ENOMEM;
	if (wr->num_sge < 0 || wr->num_sge > cap->max_send_sge)
		return -EINVAL;
	*len = 0;
	for (i = 0; i < wr->num_sge; i++)
		*len += wr->sg_list[i].length;
	if (*len > 1ULL << ORDMA_MAX_MSG_LOG)
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE && (*len > cap->max_inline || wr->opcode == IB_WR_RDMA_READ))
		return -EINVAL;
	return 0;
}

static int ordma_post_one(struct ordma_ibqp *qp, const struct ib_send_wr *wr)
{
	struct ordma_sent *sent;
	struct ordma_wqe *wqe;
	u64 len, head;
	int err;

	err = ordma_send_check(qp, wr, &len);
	if (err)
		return err;
	sent = &qp->sent[qp->sq.pi & ((1u << qp->sq.log) - 1)];
	sent->wr_id = wr->wr_id;
	sent->opcode = ordma_send_ops[wr->opcode].wc_op;
	wqe = ordma_kwq_slot(&qp->sq, qp->sq.pi);
	head = ORDMA_FIELD(WQE_OPCODE, ordma_send_ops[wr->opcode].wqe_op) |
	       ORDMA_FIELD(WQE_SIGNALED, qp->sig_all || wr->send_flags & IB_SEND_SIGNALED) |
	       ORDMA_FIELD(WQE_FENCE, !!(wr->send_flags & IB_SEND_FENCE)) |
	       ORDMA_FIELD(WQE_SOLICITED, !!(wr->send_flags & IB_SEND_SOLICITED)) |
	       ORDMA_FIELD(WQE_INLINE, !!(wr->send_flags & IB_SEND_INLINE)) |
	       ORDMA_FIELD(WQE_NUM_SGE, wr->send_flags & IB_SEND_INLINE ? 0 : wr->num_sge) |
	       ORDMA_FIELD(WQE_INDEX, qp->sq.pi);
	wqe->w[ORDMA_WQE_OPCODE_W] = cpu_to_le64(head);
	wqe->w[ORDMA_WQE_LENGTH_W] = cpu_to_le64(ORDMA_FIELD(WQE_LENGTH, len) | ORDMA_FIELD(WQE_IMM, ordma_wqe_imm(wr)));
	ordma_wqe_data(wqe, ordma_wqe_remote(qp, wqe, wr), wr);
	WRITE_ONCE(qp->sq.pi, ordma_index_add(qp->sq.pi, 1));
	return 0;
}

/* A dead device completes nothing by itself: poll_cq() flushes, and somebody must be told to poll. */
static void ordma_wake_dead(struct ib_cq *ibcq)
{
	if (ordma_core_dead(&to_odev(ibcq->device)->core))
		ordma_cq_kick(ibcq);
}

int ordma_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct ordma_ibqp *qp = to_oqp(ibqp);
	unsigned long flags;
	int err = 0;
	u32 before;

	spin_lock_irqsave(&qp->sq_lock, flags);
	before = qp->sq.pi;
	for (; wr; wr = wr->next) {
		err = ordma_post_one(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (qp->sq.pi != before)
		ordma_ring(qp->hwqp.dev, qp->sq.db, ordma_db_word(ORDMA_DB_KIND_SQ, ibqp->qp_num, qp->sq.pi));
	spin_unlock_irqrestore(&qp->sq_lock, flags);
	ordma_wake_dead(ibqp->send_cq);
	return err;
}

static int ordma_rqe_fill(struct ordma_kwq *wq, const struct ib_recv_wr *wr, u32 max_sge)
{
	struct ordma_rqe *rqe = ordma_kwq_slot(wq, wq->pi);
	int i;

	if (wr->num_sge < 0 || wr->num_sge > max_sge)
		return -EINVAL;
	rqe->w[ORDMA_RQE_WR_ID_W] = cpu_to_le64(wr->wr_id);
	rqe->w[ORDMA_RQE_INDEX_W] = cpu_to_le64(ORDMA_FIELD(RQE_NUM_SGE, wr->num_sge) | ORDMA_FIELD(RQE_INDEX, wq->pi));
	for (i = 0; i < wr->num_sge; i++)
		ordma_sge_set(rqe, ORDMA_RQE_DATA_OFF + i * ORDMA_SGE_BYTES, wr->sg_list[i].addr,
			      wr->sg_list[i].length, wr->sg_list[i].lkey);
	WRITE_ONCE(wq->pi, ordma_index_add(wq->pi, 1));
	return 0;
}

int ordma_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct ordma_ibqp *qp = to_oqp(ibqp);
	unsigned long flags;
	int err = 0;
	u32 before;

	if (ibqp->srq || !qp->rq.stride_log || READ_ONCE(qp->hwqp.qp.state) == ORDMA_QP_STATE_RESET) {
		*bad = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&qp->rq_lock, flags);
	before = qp->rq.pi;
	for (; wr; wr = wr->next) {
		err = ordma_kwq_full(&qp->rq) ? -ENOMEM :
						ordma_rqe_fill(&qp->rq, wr, qp->hwqp.qp.init.cap.max_recv_sge);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (qp->rq.pi != before)
		ordma_ring(qp->hwqp.dev, qp->rq.db, ordma_db_word(ORDMA_DB_KIND_RQ, ibqp->qp_num, qp->rq.pi));
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	ordma_wake_dead(ibqp->recv_cq);
	return err;
}

int ordma_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct ordma_ibsrq *srq = to_osrq(ibsrq);
	const struct ordma_srq *hw = &srq->hwsrq.srq;
	const struct ordma_srq_record *record = srq->kmem.va + ((size_t)1 << (hw->log + hw->stride_log));
	unsigned long flags;
	int err = 0;
	u32 before;

	spin_lock_irqsave(&srq->post_lock, flags);
	before = srq->wq.pi;
	srq->wq.ci = ORDMA_WGET(ordma_read_le64(&record->w[0]), SRQ_RECORD_CONSUMED);
	/* The record says that a slot was read; it is written only after. */
	dma_mb();
	for (; wr; wr = wr->next) {
		err = ordma_kwq_full(&srq->wq) ? -ENOMEM : ordma_rqe_fill(&srq->wq, wr, hw->max_sge);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (srq->wq.pi != before)
		ordma_ring(to_odev(ibsrq->device), srq->wq.db,
			   ordma_db_word(ORDMA_DB_KIND_SRQ, hw->srqn, srq->wq.pi));
	spin_unlock_irqrestore(&srq->post_lock, flags);
	return err;
}
