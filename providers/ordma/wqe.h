/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Pieces of a send WQE, shared by ibv_post_send and ibv_wr_*. All plain stores: the doorbell's release orders them. */
#ifndef ORDMA_WQE_H
#define ORDMA_WQE_H

#include <errno.h>
#include <string.h>

#include "ordma.h"

bool ordma_op_allowed(enum ibv_qp_type type, enum ibv_wr_opcode op);

static inline void ordma_write_sge(void *at, uint64_t addr, uint32_t length, uint32_t lkey)
{
	struct ordma_sge *sge = at;

	sge->w[ORDMA_SGE_ADDR_W] = ORDMA_HW_CPU_TO_LE64(addr);
	sge->w[ORDMA_SGE_LENGTH_W] = ORDMA_HW_CPU_TO_LE64(ORDMA_FIELD(SGE_LENGTH, length) | ORDMA_FIELD(SGE_LKEY, lkey));
}

/* Writes a list of at most the queue's max_sge entries; EINVAL when the sum is beyond the largest message. */
static inline int ordma_write_sges(uint8_t *at, const struct ibv_sge *list, unsigned int num, uint32_t *length)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < num; i++) {
		ordma_write_sge(at + i * ORDMA_SGE_BYTES, list[i].addr, list[i].length, list[i].lkey);
		sum += list[i].length;
	}
	if (sum > 1ull << ORDMA_MAX_MSG_LOG)
		return EINVAL;
	*length = sum;
	return 0;
}

/* imm: raw wire bytes of the immediate, or the key to invalidate. */
static inline void ordma_write_ctrl(const struct ordma_qp *qp, struct ordma_wqe *w, uint8_t op, unsigned int flags,
				    unsigned int num_sge, uint32_t length, uint32_t imm)
{
	bool signaled = qp->sq_sig_all || (flags & IBV_SEND_SIGNALED);

	w->w[ORDMA_WQE_OPCODE_W] = ORDMA_HW_CPU_TO_LE64(
		ORDMA_FIELD(WQE_OPCODE, op) | ORDMA_FIELD(WQE_SIGNALED, signaled) | ORDMA_FIELD(WQE_FENCE, !!(flags & IBV_SEND_FENCE)) |
		ORDMA_FIELD(WQE_SOLICITED, !!(flags & IBV_SEND_SOLICITED)) | ORDMA_FIELD(WQE_INLINE, !!(flags & IBV_SEND_INLINE)) |
		ORDMA_FIELD(WQE_NUM_SGE, num_sge) | ORDMA_FIELD(WQE_INDEX, qp->sq.pi));
	w->w[ORDMA_WQE_LENGTH_W] = ORDMA_HW_CPU_TO_LE64(ORDMA_FIELD(WQE_LENGTH, length) | ORDMA_FIELD(WQE_IMM, imm));
}

/* The address vector starts at word 2 of the WQE. */
#define ORDMA_WQE_AV_WORD 2

static inline void ordma_write_av(struct ordma_wqe *w, const struct ordma_av *av, uint32_t qpn, uint32_t qkey)
{
	struct ordma_av *out = (struct ordma_av *)&w->w[ORDMA_WQE_AV_WORD];

	memcpy(out, av, sizeof(*av));
	ORDMA_SET(out, AV_DEST_QPN, qpn);
	ORDMA_SET(out, AV_QKEY, qkey);
}

#endif /* ORDMA_WQE_H */
