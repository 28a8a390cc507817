// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A QP of the device. The memory that the driver owns for it lies in one block: image, progress record, order log, atomic results. */
#include "hw.h"

#define ORDMA_IMAGE_OFF 0
#define ORDMA_PROGRESS_OFF ORDMA_QPC_BYTES
#define ORDMA_LOG_OFF ALIGN(ORDMA_PROGRESS_OFF + ORDMA_PROGRESS_BYTES, 64)

static int ordma_qpn_get(struct ordma_dev *dev, enum ordma_qp_type type, u32 *qpn)
{
	int err = 0;

	if (type != ORDMA_QP_TYPE_GSI)
		return ordma_id_get(&dev->qpns, qpn);
	spin_lock(&dev->qpns.lock);
	if (dev->gsi_used)
		err = -EBUSY;
	dev->gsi_used = true;
	spin_unlock(&dev->qpns.lock);
	*qpn = ORDMA_GSI_QPN;
	return err;
}

static void ordma_qpn_put(struct ordma_dev *dev, u32 qpn)
{
	if (qpn != ORDMA_GSI_QPN) {
		ordma_id_put(&dev->qpns, qpn);
		return;
	}
	spin_lock(&dev->qpns.lock);
	dev->gsi_used = false;
	spin_unlock(&dev->qpns.lock);
}

/* init passed ordma_qp_check_create(); hwqp->async is set. */
int ordma_hwqp_create(struct ordma_dev *dev, struct ordma_hwqp *hwqp, struct ordma_uctx *uctx,
		      const struct ordma_qp_init *init, const struct ordma_buf *sq, const struct ordma_buf *rq)
{
	size_t log_bytes = ALIGN(ordma_qp_log_bytes(init), 64);
	size_t atomic_bytes = ordma_qp_atomic_bytes(&dev->core, init);
	struct ordma_cmd cmd;
	u64 base;
	u32 qpn;
	int err;

	hwqp->dev = dev;
	mutex_init(&hwqp->lock);
	spin_lock_init(&hwqp->state_lock);
	err = ordma_kmem_alloc(dev, &hwqp->mem, ORDMA_LOG_OFF + log_bytes + atomic_bytes);
	if (err)
		return err;
	err = ordma_slot_get(dev, uctx, 2, &hwqp->slot);
	if (err)
		goto err_mem;
	err = ordma_qpn_get(dev, init->type, &qpn);
	if (err)
		goto err_slot;
	base = hwqp->mem.dma + ORDMA_LOG_OFF;
	ordma_qp_setup(&hwqp->qp, qpn, init, sq, rq, log_bytes ? base : 0, atomic_bytes ? base + log_bytes : 0);
	err = xa_err(xa_store(&dev->qps, qpn, hwqp, GFP_KERNEL));
	if (err)
		goto err_qpn;
	ordma_qp_create_cmd(&hwqp->qp, hwqp->mem.va + ORDMA_IMAGE_OFF, hwqp->mem.dma + ORDMA_IMAGE_OFF, &cmd);
	err = ordma_exec(dev, &cmd, NULL);
	if (err)
		goto err_xa;
	return 0;

err_xa:
	xa_erase(&dev->qps, qpn);
	ordma_event_barrier(dev);
err_qpn:
	ordma_qpn_put(dev, qpn);
err_slot:
	ordma_slot_put(&hwqp->slot);
err_mem:
	ordma_kmem_free(dev, &hwqp->mem);
	return err;
}

static int ordma_hwqp_do_modify(struct ordma_hwqp *hwqp, const struct ordma_qp_attr *attr, u32 mask)
{
	struct ordma_dev *dev = hwqp->dev;
	struct ordma_qp_modify mod;
	struct ordma_cmd cmd;
	int err;

	spin_lock_bh(&hwqp->state_lock);
	err = ordma_qp_modify_check(&dev->core, &hwqp->qp, attr, mask, &mod);
	/* Arms recovery and the drain event, so it is done before the NIC can report and under the lock that events take. */
	if (!err)
		ordma_qp_modify_cmd(&hwqp->qp, &mod, hwqp->mem.va + ORDMA_IMAGE_OFF, hwqp->mem.dma + ORDMA_IMAGE_OFF, &cmd);
	spin_unlock_bh(&hwqp->state_lock);
	if (err)
		return err;
	/* A dead device flushes nothing and sends nothing: leaving service is all that can be asked of it. */
	if (!ordma_core_dead(&dev->core))
		err = ordma_exec(dev, &cmd, NULL);
	if (ordma_core_dead(&dev->core))
		err = mod.to == ORDMA_QP_STATE_ERR || mod.to == ORDMA_QP_STATE_RESET ? 0 : -EIO;
	if (err)
		return err;
	spin_lock_bh(&hwqp->state_lock);
	ordma_qp_modify_done(&dev->core, &hwqp->qp, &mod);
	spin_unlock_bh(&hwqp->state_lock);
	return 0;
}

int ordma_hwqp_modify(struct ordma_hwqp *hwqp, const struct ordma_qp_attr *attr, u32 mask)
{
	int err;

	mutex_lock(&hwqp->lock);
	err = ordma_hwqp_do_modify(hwqp, attr, mask);
	mutex_unlock(&hwqp->lock);
	return err;
}

int ordma_hwqp_query(struct ordma_hwqp *hwqp, struct ordma_qp_attr *attr)
{
	struct ordma_progress *progress = hwqp->mem.va + ORDMA_PROGRESS_OFF;
	struct ordma_dev *dev = hwqp->dev;
	struct ordma_cmd cmd;
	int err;

	mutex_lock(&hwqp->lock);
	ordma_qp_query_cmd(&hwqp->qp, hwqp->mem.dma + ORDMA_PROGRESS_OFF, &cmd);
	err = ordma_exec(dev, &cmd, NULL);
	if (ordma_core_dead(&dev->core)) {
		progress = NULL;
		err = 0;
	}
	if (!err) {
		spin_lock_bh(&hwqp->state_lock);
		if (progress)
			ordma_qp_sync(&hwqp->qp, progress);
		ordma_qp_query(&hwqp->qp, progress, attr);
		spin_unlock_bh(&hwqp->state_lock);
	}
	mutex_unlock(&hwqp->lock);
	return err;
}

/* Its memory is the caller's again, and no callback runs, when it returns. */
void ordma_hwqp_destroy(struct ordma_hwqp *hwqp)
{
	struct ordma_dev *dev = hwqp->dev;
	struct ordma_cmd cmd;

	mutex_lock(&hwqp->lock);
	ordma_cmd_qp_destroy(&cmd, &hwqp->qp);
	ordma_exec_destroy(dev, &cmd);
	mutex_unlock(&hwqp->lock);
	xa_erase(&dev->qps, hwqp->qp.qpn);
	ordma_event_barrier(dev);
	ordma_qpn_put(dev, hwqp->qp.qpn);
	ordma_slot_put(&hwqp->slot);
	ordma_kmem_free(dev, &hwqp->mem);
}

void ordma_kwq_setup(struct ordma_kwq *wq, struct ordma_buf *buf, const struct ordma_kmem *mem, size_t off,
		     u32 log, u32 stride_log)
{
	wq->va = (u8 *)mem->va + off;
	wq->log = log;
	wq->stride_log = stride_log;
	wq->pi = 0;
	wq->ci = 0;
	buf->addr = mem->dma + off;
	buf->page_log = PAGE_SHIFT;
	buf->level = ORDMA_BUF_LEVEL_DIRECT;
}
