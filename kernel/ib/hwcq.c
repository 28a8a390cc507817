// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A CQ of the device, and the kernel's view of a CQ that it reads itself. */
#include "hw.h"

/* hwcq->cq.log, .vector, .buf, .record, and the callbacks are set; the number, the owner and the doorbell slot come from here. */
int ordma_hwcq_create(struct ordma_dev *dev, struct ordma_hwcq *hwcq, struct ordma_uctx *uctx)
{
	struct ordma_cq *cq = &hwcq->cq;
	struct ordma_cmd cmd;
	int err;

	hwcq->dev = dev;
	cq->uctx = uctx->id;
	err = ordma_buf_check(&cq->buf) ?: ordma_id_get(&dev->cqns, &cq->cqn);
	if (err)
		return err;
	err = ordma_slot_get(dev, uctx, 1, &hwcq->slot);
	if (err)
		goto err_id;
	/* Found before it can fire. */
	err = xa_err(xa_store(&dev->cqs, cq->cqn, hwcq, GFP_KERNEL));
	if (err)
		goto err_slot;
	ordma_cmd_cq_create(&cmd, cq);
	err = ordma_exec(dev, &cmd, NULL);
	if (err)
		goto err_xa;
	return 0;

err_xa:
	xa_erase(&dev->cqs, cq->cqn);
	ordma_event_barrier(dev);
err_slot:
	ordma_slot_put(&hwcq->slot);
err_id:
	ordma_id_put(&dev->cqns, cq->cqn);
	return err;
}

/* Its memory is the caller's again, and no callback runs, when it returns. */
void ordma_hwcq_destroy(struct ordma_hwcq *hwcq)
{
	struct ordma_dev *dev = hwcq->dev;
	struct ordma_cmd cmd;

	ordma_cmd_cq_destroy(&cmd, &hwcq->cq);
	ordma_exec_destroy(dev, &cmd);
	xa_erase(&dev->cqs, hwcq->cq.cqn);
	ordma_event_barrier(dev);
	ordma_slot_put(&hwcq->slot);
	ordma_id_put(&dev->cqns, hwcq->cq.cqn);
}

int ordma_kcq_alloc(struct ordma_dev *dev, struct ordma_kcq *kcq, struct ordma_cq *cq, u32 log)
{
	size_t ring = (size_t)ORDMA_CQE_BYTES << log;
	int err;

	err = ordma_kmem_alloc(dev, &kcq->mem, ring + ORDMA_CQE_BYTES);
	if (err)
		return err;
	kcq->record = kcq->mem.va + ring;
	kcq->log = log;
	kcq->ci = 0;
	kcq->arm_seq = 0;
	cq->log = log;
	cq->buf.addr = kcq->mem.dma;
	cq->buf.page_log = PAGE_SHIFT;
	cq->buf.level = ORDMA_BUF_LEVEL_DIRECT;
	cq->record = kcq->mem.dma + ring;
	return 0;
}

/* The next CQE, or NULL. Under the caller's lock, like all below. */
const struct ordma_cqe *ordma_kcq_peek(const struct ordma_kcq *kcq)
{
	const struct ordma_cqe *ring = kcq->mem.va;
	const struct ordma_cqe *cqe = &ring[kcq->ci & ((1u << kcq->log) - 1)];
	u64 last = ordma_read_le64(&cqe->w[ORDMA_CQE_PHASE_W]);

	if (ORDMA_WGET(last, CQE_PHASE) == ((kcq->ci >> kcq->log) & 1))
		return NULL;
	/* The device writes the word with the phase last: what is read from here on is the whole CQE. */
	dma_rmb();
	return cqe;
}

void ordma_kcq_pop(struct ordma_kcq *kcq)
{
	kcq->ci = ordma_index_add(kcq->ci, 1);
}

/* The CQEs before ci were read: the device may write there when it sees this. */
void ordma_kcq_publish(struct ordma_kcq *kcq)
{
	dma_mb();
	ordma_write_le64(kcq->record, ORDMA_FIELD(CQ_RECORD_CI, kcq->ci));
}

/* The device fires at once if a CQE at or beyond ci qualifies, so arming after the last look loses nothing. */
void ordma_kcq_arm(struct ordma_hwcq *hwcq, struct ordma_kcq *kcq, bool solicited)
{
	kcq->arm_seq++;
	ordma_ring(hwcq->dev, hwcq->slot.addr,
		   ordma_db_word(ORDMA_DB_KIND_CQ_ARM, hwcq->cq.cqn, kcq->ci) |
		   ORDMA_FIELD(DB_ARM_SEQ, kcq->arm_seq) | ORDMA_FIELD(DB_SOLICITED, solicited));
}
