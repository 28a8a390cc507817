// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The kernel's own CQs: polling and arming, and the flush of what a dead device will never complete. */
#include "ordma_ib.h"

/* Numbers of wc_status and wc_op are those of the user's API; the kernel's status enum has the same order. */
static_assert((int)IB_WC_RNR_RETRY_EXC_ERR == (int)ORDMA_WC_STATUS_RNR_RETRY_EXC_ERR);
static_assert((int)IB_WC_GENERAL_ERR == (int)ORDMA_WC_STATUS_GENERAL_ERR);
static_assert((int)IB_WC_RECV == (int)ORDMA_WC_OP_RECV);
static_assert((int)IB_WC_RECV_RDMA_WITH_IMM == (int)ORDMA_WC_OP_RECV_RDMA_WITH_IMM);

static void ordma_wc_send(struct ordma_ibqp *qp, const struct ordma_cqe *cqe, struct ib_wc *wc)
{
	u16 index = ORDMA_GET(cqe, CQE_WQE_INDEX);
	const struct ordma_sent *sent = &qp->sent[index & ((1u << qp->sq.log) - 1)];

	wc->wr_id = sent->wr_id;
	wc->opcode = sent->opcode;
	/* Whoever posts sees the space only after wr_id was read. */
	smp_mb();
	ordma_kwq_retire(&qp->sq, index);
}

static void ordma_wc_datagram(const struct ordma_cqe *cqe, struct ib_wc *wc)
{
	u16 vlan = ORDMA_GET(cqe, CQE_VLAN);

	wc->src_qp = ORDMA_GET(cqe, CQE_SRC_QPN);
	wc->pkey_index = ORDMA_GET(cqe, CQE_PKEY_INDEX);
	wc->sl = ORDMA_GET(cqe, CQE_SL);
	if (ORDMA_GET(cqe, CQE_HAS_GRH))
		wc->wc_flags |= IB_WC_GRH;
	wc->wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
	wc->network_hdr_type = ORDMA_GET(cqe, CQE_IPV4) ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	if (wc->qp->qp_type != IB_QPT_GSI)
		return;
	wc->wc_flags |= IB_WC_WITH_SMAC;
	ordma_mac_from_u64(ORDMA_GET(cqe, CQE_SMAC), wc->smac);
	if (vlan != 0xffff) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = vlan;
	}
}

static void ordma_wc_recv(struct ordma_ibqp *qp, const struct ordma_cqe *cqe, struct ib_wc *wc)
{
	wc->wr_id = ORDMA_GET(cqe, CQE_WR_ID);
	wc->opcode = ORDMA_GET(cqe, CQE_OPCODE);
	/* An SRQ's space is counted by its record. */
	if (!qp->ibqp.srq)
		ordma_kwq_retire(&qp->rq, ORDMA_GET(cqe, CQE_WQE_INDEX));
	if (ORDMA_GET(cqe, CQE_HAS_IMM)) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = (__force __be32)cpu_to_le32(ORDMA_GET(cqe, CQE_IMM));
	} else if (ORDMA_GET(cqe, CQE_HAS_INV)) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = ORDMA_GET(cqe, CQE_IMM);
	}
	if (qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI)
		ordma_wc_datagram(cqe, wc);
}

static bool ordma_is_stale(struct ordma_stale *stale, u32 ci)
{
	if (stale->set && ordma_index_diff(ci, stale->before) >= 0)
		stale->set = false;
	return stale->set;
}

/* False: of a QP that is gone, or was reset since. */
static bool ordma_poll_one(struct ordma_dev *dev, u32 ci, const struct ordma_cqe *cqe, struct ib_wc *wc)
{
	struct ordma_hwqp *hwqp = xa_load(&dev->qps, ORDMA_GET(cqe, CQE_QPN));
	struct ordma_ibqp *qp;

	if (!hwqp)
		return false;
	qp = container_of(hwqp, struct ordma_ibqp, hwqp);
	if (ordma_is_stale(ORDMA_GET(cqe, CQE_IS_RECV) ? &qp->recv_stale : &qp->send_stale, ci))
		return false;
	memset(wc, 0, sizeof(*wc));
	wc->qp = &qp->ibqp;
	wc->status = ORDMA_GET(cqe, CQE_STATUS);
	wc->vendor_err = ORDMA_GET(cqe, CQE_VENDOR_ERR);
	wc->byte_len = ORDMA_GET(cqe, CQE_BYTE_LEN);
	wc->port_num = 1;
	if (ORDMA_GET(cqe, CQE_IS_RECV))
		ordma_wc_recv(qp, cqe, wc);
	else
		ordma_wc_send(qp, cqe, wc);
	return true;
}

/* ------------------------------------------------------------------------------------------------------- dead device */

static bool ordma_flush_send(struct ordma_ibqp *qp, struct ib_wc *wc)
{
	const struct ordma_sent *sent = &qp->sent[qp->sq.ci & ((1u << qp->sq.log) - 1)];

	if (qp->sq.ci == READ_ONCE(qp->sq.pi))
		return false;
	wc->wr_id = sent->wr_id;
	wc->opcode = sent->opcode;
	qp->sq.ci = ordma_index_add(qp->sq.ci, 1);
	return true;
}

static bool ordma_flush_recv(struct ordma_ibqp *qp, struct ib_wc *wc)
{
	const struct ordma_rqe *rqe;

	if (qp->ibqp.srq || qp->rq.ci == READ_ONCE(qp->rq.pi))
		return false;
	rqe = ordma_kwq_slot(&qp->rq, qp->rq.ci);
	wc->wr_id = ORDMA_GET(rqe, RQE_WR_ID);
	wc->opcode = IB_WC_RECV;
	qp->rq.ci = ordma_index_add(qp->rq.ci, 1);
	return true;
}

/* What was posted and never completed, in order, with the status that the device would have given on the way down. */
static bool ordma_flush_one(struct ordma_ibcq *cq, struct ib_wc *wc)
{
	struct ordma_ibqp *qp;

	memset(wc, 0, sizeof(*wc));
	wc->status = IB_WC_WR_FLUSH_ERR;
	wc->port_num = 1;
	list_for_each_entry(qp, &cq->send_qps, send_entry) {
		wc->qp = &qp->ibqp;
		if (ordma_flush_send(qp, wc))
			return true;
	}
	list_for_each_entry(qp, &cq->recv_qps, recv_entry) {
		wc->qp = &qp->ibqp;
		if (ordma_flush_recv(qp, wc))
			return true;
	}
	return false;
}

/* --------------------------------------------------------------------------------------------------------------- ops */

int ordma_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct ordma_dev *dev = to_odev(ibcq->device);
	struct ordma_ibcq *cq = to_ocq(ibcq);
	const struct ordma_cqe *cqe;
	unsigned long flags;
	bool took = false;
	int n = 0;

	spin_lock_irqsave(&cq->poll_lock, flags);
	while (n < num) {
		cqe = ordma_kcq_peek(&cq->kcq);
		if (!cqe)
			break;
		if (ordma_poll_one(dev, cq->kcq.ci, cqe, &wc[n]))
			n++;
		ordma_kcq_pop(&cq->kcq);
		took = true;
	}
	if (took)
		ordma_kcq_publish(&cq->kcq);
	/* Until its DMA is off the device may still write CQEs, and what it completed must not be flushed as well. */
	if (ordma_core_dead(&dev->core) && completion_done(&dev->dma_off))
		while (n < num && ordma_flush_one(cq, &wc[n]))
			n++;
	spin_unlock_irqrestore(&cq->poll_lock, flags);
	return n;
}

/* The QP is in RESET, so the device writes no CQE for it: what the ring holds of it now is all of its earlier life. */
void ordma_cq_forget(struct ib_cq *ibcq, struct ordma_stale *stale, struct ordma_kwq *wq)
{
	struct ordma_ibcq *cq = to_ocq(ibcq);
	struct ordma_kcq ahead;
	unsigned long flags;

	spin_lock_irqsave(&cq->poll_lock, flags);
	ahead = cq->kcq;
	while (ordma_index_diff(ahead.ci, cq->kcq.ci) < (1 << ahead.log) && ordma_kcq_peek(&ahead))
		ordma_kcq_pop(&ahead);
	stale->before = ahead.ci;
	stale->set = ahead.ci != cq->kcq.ci;
	/* A queue never repeats an index: the device took its consumer to the producer, and posting goes on from there. */
	wq->ci = wq->pi;
	spin_unlock_irqrestore(&cq->poll_lock, flags);
}

int ordma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct ordma_ibcq *cq = to_ocq(ibcq);
	unsigned long irq;
	int missed;

	spin_lock_irqsave(&cq->poll_lock, irq);
	ordma_kcq_arm(&cq->hwcq, &cq->kcq, (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED);
	missed = (flags & IB_CQ_REPORT_MISSED_EVENTS) && ordma_kcq_peek(&cq->kcq);
	spin_unlock_irqrestore(&cq->poll_lock, irq);
	return missed;
}
