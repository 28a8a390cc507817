// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues. */
#include "ordma_ib.h"

static void ordma_srq_event(struct ordma_hwsrq *hwsrq, enum ib_event_type type)
{
	struct ib_srq *ibsrq = &container_of(hwsrq, struct ordma_ibsrq, hwsrq)->ibsrq;
	struct ib_event event = { .device = ibsrq->device, .element.srq = ibsrq, .event = type };

	if (ibsrq->event_handler)
		ibsrq->event_handler(&event, ibsrq->srq_context);
}

static int ordma_hwsrq_create(struct ordma_dev *dev, struct ordma_ibsrq *srq, struct ordma_uctx *uctx)
{
	struct ordma_srq *hw = &srq->hwsrq.srq;
	struct ordma_cmd cmd;
	int err;

	hw->uctx = uctx->id;
	srq->hwsrq.event = ordma_srq_event;
	err = ordma_buf_check(&hw->buf) ?: ordma_id_get(&dev->srqns, &hw->srqn);
	if (err)
		return err;
	err = ordma_slot_get(dev, uctx, 1, &srq->slot);
	if (err)
		goto err_id;
	err = xa_err(xa_store(&dev->srqs, hw->srqn, &srq->hwsrq, GFP_KERNEL));
	if (err)
		goto err_slot;
	ordma_cmd_srq_create(&cmd, hw);
	err = ordma_exec(dev, &cmd, NULL);
	if (err)
		goto err_xa;
	return 0;

err_xa:
	xa_erase(&dev->srqs, hw->srqn);
	ordma_event_barrier(dev);
err_slot:
	ordma_slot_put(&srq->slot);
err_id:
	ordma_id_put(&dev->srqns, hw->srqn);
	return err;
}

static void ordma_srq_free(struct ordma_dev *dev, struct ordma_ibsrq *srq)
{
	struct ordma_srq *hw = &srq->hwsrq.srq;
	struct ordma_cmd cmd;

	ordma_cmd_srq_destroy(&cmd, hw);
	ordma_exec_destroy(dev, &cmd);
	xa_erase(&dev->srqs, hw->srqn);
	ordma_event_barrier(dev);
	ordma_slot_put(&srq->slot);
	ordma_id_put(&dev->srqns, hw->srqn);
}

static void ordma_srq_mem_free(struct ordma_dev *dev, struct ordma_ibsrq *srq)
{
	ordma_umem_release(dev, &srq->ring);
	ordma_record_unpin(&srq->record);
	ordma_kmem_free(dev, &srq->kmem);
}

static int ordma_create_user_srq(struct ordma_dev *dev, struct ordma_ibsrq *srq, u32 limit, struct ib_udata *udata)
{
	struct ordma_abi_create_srq_resp resp = {};
	struct ordma_srq *hw = &srq->hwsrq.srq;
	struct ordma_abi_create_srq_req req;
	int err;

	err = ordma_udata_in(udata, &req, sizeof(req)) ?:
	      ordma_srq_check(&dev->core, hw->max_wr, hw->max_sge, limit, req.ring_log, req.stride_log) ?:
	      ordma_umem_queue(dev, &srq->ring, req.ring_va, (size_t)1 << (req.ring_log + req.stride_log));
	if (err)
		return err;
	err = ordma_record_pin(dev, &srq->record, req.record_va);
	if (err)
		goto err_mem;
	hw->log = req.ring_log;
	hw->stride_log = req.stride_log;
	hw->buf = srq->ring.buf;
	hw->record = srq->record.dma;
	err = ordma_hwsrq_create(dev, srq, ordma_udata_uctx(dev, udata));
	if (err)
		goto err_mem;
	resp.srqn = hw->srqn;
	ordma_abi_db_fill(&resp.db, &srq->slot, 0);
	err = ordma_udata_out(udata, &resp, sizeof(resp));
	if (err)
		goto err_srq;
	return 0;

err_srq:
	ordma_srq_free(dev, srq);
err_mem:
	ordma_srq_mem_free(dev, srq);
	return err;
}

static int ordma_create_kernel_srq(struct ordma_dev *dev, struct ordma_ibsrq *srq, u32 limit)
{
	struct ordma_srq *hw = &srq->hwsrq.srq;
	size_t ring;
	int err;

	err = ordma_rq_geometry(&dev->core, hw->max_wr, hw->max_sge, &hw->log, &hw->stride_log) ?:
	      ordma_srq_check(&dev->core, hw->max_wr, hw->max_sge, limit, hw->log, hw->stride_log);
	if (err)
		return err;
	ring = (size_t)1 << (hw->log + hw->stride_log);
	err = ordma_kmem_alloc(dev, &srq->kmem, ring + 64);
	if (err)
		return err;
	hw->buf.addr = srq->kmem.dma;
	hw->buf.page_log = PAGE_SHIFT;
	hw->buf.level = ORDMA_BUF_LEVEL_DIRECT;
	hw->record = srq->kmem.dma + ring;
	srq->wq.va = srq->kmem.va;
	srq->wq.log = hw->log;
	srq->wq.stride_log = hw->stride_log;
	err = ordma_hwsrq_create(dev, srq, &dev->kctx);
	if (err)
		ordma_srq_mem_free(dev, srq);
	else
		srq->wq.db = srq->slot.addr;
	return err;
}

int ordma_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibsrq->device);
	struct ordma_ibsrq *srq = to_osrq(ibsrq);
	struct ordma_srq *hw = &srq->hwsrq.srq;

	if (attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	mutex_init(&srq->lock);
	spin_lock_init(&srq->post_lock);
	hw->pdn = to_opd(ibsrq->pd)->pdn;
	hw->max_wr = attr->attr.max_wr;
	hw->max_sge = attr->attr.max_sge;
	hw->limit = attr->attr.srq_limit;
	return udata ? ordma_create_user_srq(dev, srq, attr->attr.srq_limit, udata) :
		       ordma_create_kernel_srq(dev, srq, attr->attr.srq_limit);
}

int ordma_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		     struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibsrq->device);
	struct ordma_ibsrq *srq = to_osrq(ibsrq);
	struct ordma_cmd cmd;
	int err;

	err = ordma_udata_none(udata);
	if (err)
		return err;
	mutex_lock(&srq->lock);
	err = ordma_srq_modify_check(&dev->core, &srq->hwsrq.srq, mask, attr->srq_limit);
	if (!err && mask & IB_SRQ_LIMIT) {
		ordma_cmd_srq_limit(&cmd, &srq->hwsrq.srq, attr->srq_limit);
		/* Before the command: the event may come, and clear it, before the command's completion is seen. */
		ordma_srq_modify_done(&srq->hwsrq.srq, attr->srq_limit);
		err = ordma_exec(dev, &cmd, NULL);
	}
	mutex_unlock(&srq->lock);
	return err;
}

int ordma_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	const struct ordma_srq *hw = &to_osrq(ibsrq)->hwsrq.srq;

	attr->max_wr = hw->max_wr;
	attr->max_sge = hw->max_sge;
	attr->srq_limit = READ_ONCE(hw->limit);
	return 0;
}

int ordma_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibsrq->device);

	ordma_srq_free(dev, to_osrq(ibsrq));
	ordma_srq_mem_free(dev, to_osrq(ibsrq));
	return 0;
}
