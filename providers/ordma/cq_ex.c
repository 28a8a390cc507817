// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Extended polling. A successful start_poll holds the CQ's lock until end_poll; the readers look at the CQE in place.
 */
#include <errno.h>

#include "backend.h"

static int advance(struct ordma_cq *cq)
{
	struct ordma_cqe *cqe;

	/* CQEs of destroyed QPs carry QPN 0 and are stepped over. */
	while ((cqe = ordma_next_cqe(cq)) && !ORDMA_GET(cqe, CQE_QPN)) {
		ordma_consume_cqe(cq);
		ordma_publish_ci(cq);
	}
	cq->poll_cqe = cqe;
	if (!cqe)
		return ENOENT;
	cq->vcq.cq_ex.wr_id = ordma_retire(cq, cqe);
	cq->vcq.cq_ex.status = ORDMA_GET(cqe, CQE_STATUS);
	return 0;
}

static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct ordma_cq *cq = to_ocq_ex(ibcq);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	pthread_spin_lock(&cq->lock);
	err = advance(cq);
	if (!err)
		return 0;
	pthread_spin_unlock(&cq->lock);
	return ordma_poll_empty(cq) ? EIO : err;
}

/* The current CQE is given up here or by end_poll, never by both: after ENOENT there is none. */
static int next_poll(struct ibv_cq_ex *ibcq)
{
	struct ordma_cq *cq = to_ocq_ex(ibcq);

	if (cq->poll_cqe) {
		cq->poll_cqe = NULL;
		ordma_consume_cqe(cq);
	}
	return advance(cq);
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	struct ordma_cq *cq = to_ocq_ex(ibcq);

	if (cq->poll_cqe) {
		cq->poll_cqe = NULL;
		ordma_consume_cqe(cq);
	}
	ordma_publish_ci(cq);
	pthread_spin_unlock(&cq->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return ORDMA_GET(to_ocq_ex(cq)->poll_cqe, CQE_OPCODE);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return ORDMA_GET(to_ocq_ex(cq)->poll_cqe, CQE_VENDOR_ERR);
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return ORDMA_GET(to_ocq_ex(cq)->poll_cqe, CQE_BYTE_LEN);
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return ORDMA_GET(to_ocq_ex(cq)->poll_cqe, CQE_IMM);
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return ORDMA_GET(to_ocq_ex(cq)->poll_cqe, CQE_QPN);
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return ORDMA_GET(to_ocq_ex(cq)->poll_cqe, CQE_SRC_QPN);
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return ordma_cqe_wc_flags(to_ocq_ex(cq)->poll_cqe);
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return ordma_cqe_sl(to_ocq_ex(cq)->poll_cqe);
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	return ORDMA_GET(to_ocq_ex(cq)->poll_cqe, CQE_TIMESTAMP);
}

/* A reader that was not asked for stays NULL: using it is a bug of the caller that shows at once. */
void ordma_init_cq_ex(struct ordma_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
}
