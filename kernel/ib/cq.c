// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: creation, resize, events. A user's ring is memory of the user; poll.c reads the kernel's own. */
#include "ordma_ib.h"

void ordma_cq_kick(struct ib_cq *ibcq)
{
	if (ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

static void ordma_cq_event(struct ordma_hwcq *hwcq)
{
	ordma_cq_kick(&container_of(hwcq, struct ordma_ibcq, hwcq)->ibcq);
}

static void ordma_cq_error(struct ordma_hwcq *hwcq)
{
	struct ib_cq *ibcq = &container_of(hwcq, struct ordma_ibcq, hwcq)->ibcq;
	struct ib_event event = { .device = ibcq->device, .element.cq = ibcq, .event = IB_EVENT_CQ_ERR };

	if (ibcq->event_handler)
		ibcq->event_handler(&event, ibcq->cq_context);
}

static int ordma_cq_user(struct ordma_dev *dev, struct ordma_umem *ring, struct ordma_record *record, u64 ring_va,
			 u64 record_va, u32 log)
{
	int err = ordma_umem_queue(dev, ring, ring_va, (size_t)ORDMA_CQE_BYTES << log);

	if (err)
		return err;
	err = ordma_record_pin(dev, record, record_va);
	if (err)
		ordma_umem_release(dev, ring);
	return err;
}

static void ordma_cq_mem_free(struct ordma_dev *dev, struct ordma_ibcq *cq)
{
	ordma_umem_release(dev, &cq->ring);
	ordma_record_unpin(&cq->record);
	ordma_kmem_free(dev, &cq->kcq.mem);
}

static int ordma_create_user_cq(struct ordma_dev *dev, struct ordma_ibcq *cq, u32 cqe, struct ib_udata *udata)
{
	struct ordma_abi_create_cq_resp resp = {};
	struct ordma_abi_create_cq_req req;
	struct ordma_cq *hw = &cq->hwcq.cq;
	int err;

	err = ordma_udata_in(udata, &req, sizeof(req)) ?: ordma_cq_check(&dev->core, cqe, req.ring_log, hw->vector);
	if (err)
		return err;
	if (req.reserved)
		return -EOPNOTSUPP;
	err = ordma_cq_user(dev, &cq->ring, &cq->record, req.ring_va, req.record_va, req.ring_log);
	if (err)
		return err;
	hw->log = req.ring_log;
	hw->buf = cq->ring.buf;
	hw->record = cq->record.dma;
	err = ordma_hwcq_create(dev, &cq->hwcq, ordma_udata_uctx(dev, udata));
	if (err)
		goto err_mem;
	resp.cqn = hw->cqn;
	ordma_abi_db_fill(&resp.arm_db, &cq->hwcq.slot, 0);
	err = ordma_udata_out(udata, &resp, sizeof(resp));
	if (err)
		goto err_cq;
	return 0;

err_cq:
	ordma_hwcq_destroy(&cq->hwcq);
err_mem:
	ordma_cq_mem_free(dev, cq);
	return err;
}

static int ordma_create_kernel_cq(struct ordma_dev *dev, struct ordma_ibcq *cq, u32 cqe)
{
	struct ordma_cq *hw = &cq->hwcq.cq;
	int log, err;

	log = ordma_cq_log(&dev->core, cqe);
	if (log < 0)
		return log;
	err = ordma_cq_check(&dev->core, cqe, log, hw->vector) ?: ordma_kcq_alloc(dev, &cq->kcq, hw, log);
	if (err)
		return err;
	err = ordma_hwcq_create(dev, &cq->hwcq, &dev->kctx);
	if (err)
		ordma_cq_mem_free(dev, cq);
	return err;
}

int ordma_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, ORDMA_CREATE_CQ_ARG)
{
	struct ib_udata *drv = ORDMA_CREATE_CQ_UDATA;
	struct ordma_dev *dev = to_odev(ibcq->device);
	struct ordma_ibcq *cq = to_ocq(ibcq);
	int err;

	/* Every CQE carries the device clock, asked for or not. */
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	mutex_init(&cq->lock);
	spin_lock_init(&cq->poll_lock);
	INIT_LIST_HEAD(&cq->send_qps);
	INIT_LIST_HEAD(&cq->recv_qps);
	cq->hwcq.event = ordma_cq_event;
	cq->hwcq.error = ordma_cq_error;
	cq->hwcq.cq.vector = attr->comp_vector;
	err = drv ? ordma_create_user_cq(dev, cq, attr->cqe, drv) : ordma_create_kernel_cq(dev, cq, attr->cqe);
	if (!err)
		ibcq->cqe = 1 << cq->hwcq.cq.log;
	return err;
}

static int ordma_do_resize_cq(struct ordma_dev *dev, struct ordma_ibcq *cq, const struct ordma_abi_resize_cq_req *req,
			      struct ib_udata *udata)
{
	struct ordma_abi_resize_cq_resp resp = {};
	struct ordma_record record = {};
	struct ordma_rsp_result res;
	struct ordma_umem ring = {};
	struct ordma_cmd cmd;
	int err;

	err = ordma_cq_user(dev, &ring, &record, req->ring_va, req->record_va, req->ring_log);
	if (err)
		return err;
	err = ordma_buf_check(&ring.buf);
	if (!err) {
		ordma_cmd_cq_resize(&cmd, &cq->hwcq.cq, req->ring_log, &ring.buf, record.dma);
		err = ordma_exec(dev, &cmd, &res);
	}
	if (err) {
		ordma_umem_release(dev, &ring);
		ordma_record_unpin(&record);
		return err;
	}
	/* The device has left the old ring: what the command's completion means. */
	ordma_cq_resize_done(&cq->hwcq.cq, req->ring_log, &ring.buf, record.dma);
	ordma_umem_release(dev, &cq->ring);
	ordma_record_unpin(&cq->record);
	cq->ring = ring;
	cq->record = record;
	cq->ibcq.cqe = 1 << req->ring_log;
	resp.old_pi = res.result0;
	return ordma_udata_out(udata, &resp, sizeof(resp));
}

int ordma_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibcq->device);
	struct ordma_ibcq *cq = to_ocq(ibcq);
	struct ordma_abi_resize_cq_req req;
	int err;

	if (!udata)
		return -EOPNOTSUPP;
	if (cqe <= 0)
		return -EINVAL;
	err = ordma_udata_in(udata, &req, sizeof(req)) ?: ordma_cq_resize_check(&dev->core, cqe, req.ring_log);
	if (err)
		return err;
	if (req.reserved)
		return -EOPNOTSUPP;
	mutex_lock(&cq->lock);
	err = ordma_do_resize_cq(dev, cq, &req, udata);
	mutex_unlock(&cq->lock);
	return err;
}

int ordma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct ordma_ibcq *cq = to_ocq(ibcq);

	ordma_hwcq_destroy(&cq->hwcq);
	ordma_cq_mem_free(to_odev(ibcq->device), cq);
	return 0;
}
