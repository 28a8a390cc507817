// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: creation and destruction. A user's queues are memory of the user; the kernel's are filled by post.c. */
#include <linux/slab.h>

#include "ordma_ib.h"

static void ordma_qp_async(struct ordma_hwqp *hwqp, enum ordma_async async)
{
	struct ib_qp *ibqp = &container_of(hwqp, struct ordma_ibqp, hwqp)->ibqp;
	struct ib_event event = {
		.device = ibqp->device, .element.qp = ibqp, .event = (enum ib_event_type)async
	};

	static_assert((int)ORDMA_ASYNC_QP_FATAL == (int)IB_EVENT_QP_FATAL);
	static_assert((int)ORDMA_ASYNC_SQ_DRAINED == (int)IB_EVENT_SQ_DRAINED);
	static_assert((int)ORDMA_ASYNC_QP_LAST_WQE == (int)IB_EVENT_QP_LAST_WQE_REACHED);
	if (ibqp->event_handler)
		ibqp->event_handler(&event, ibqp->qp_context);
}

static int ordma_qp_type(enum ib_qp_type type, bool user)
{
	switch (type) {
	case IB_QPT_RC:
		return ORDMA_QP_TYPE_RC;
	case IB_QPT_UC:
		return ORDMA_QP_TYPE_UC;
	case IB_QPT_UD:
		return ORDMA_QP_TYPE_UD;
	case IB_QPT_GSI:
		return user ? -EOPNOTSUPP : ORDMA_QP_TYPE_GSI;
	default:
		return -EOPNOTSUPP;
	}
}

static int ordma_qp_init_fill(struct ordma_qp_init *init, struct ib_pd *ibpd, const struct ib_qp_init_attr *attr,
			      bool user)
{
	int type = ordma_qp_type(attr->qp_type, user);

	if (type < 0)
		return type;
	if (attr->create_flags || attr->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq)
		return -EINVAL;
	init->type = type;
	init->cap.max_send_wr = attr->cap.max_send_wr;
	init->cap.max_recv_wr = attr->cap.max_recv_wr;
	init->cap.max_send_sge = attr->cap.max_send_sge;
	init->cap.max_recv_sge = attr->cap.max_recv_sge;
	init->cap.max_inline = attr->cap.max_inline_data;
	init->pdn = to_opd(ibpd)->pdn;
	init->scqn = to_ocq(attr->send_cq)->hwcq.cq.cqn;
	init->rcqn = to_ocq(attr->recv_cq)->hwcq.cq.cqn;
	if (attr->srq) {
		init->has_srq = true;
		init->srqn = to_osrq(attr->srq)->hwsrq.srq.srqn;
	}
	init->privileged = !user;
	return 0;
}

static void ordma_qp_mem_free(struct ordma_dev *dev, struct ordma_ibqp *qp)
{
	ordma_umem_release(dev, &qp->sq_mem);
	ordma_umem_release(dev, &qp->rq_mem);
	ordma_kmem_free(dev, &qp->kmem);
	kvfree(qp->sent);
	qp->sent = NULL;
}

/* ------------------------------------------------------------------------------------------------------------- user */

static int ordma_qp_user_mem(struct ordma_dev *dev, struct ordma_ibqp *qp, const struct ordma_abi_create_qp_req *req)
{
	int err = 0;

	if (req->sq_va)
		err = ordma_umem_queue(dev, &qp->sq_mem, req->sq_va, (size_t)1 << (req->sq_log + req->sq_stride_log)) ?:
		      ordma_buf_check(&qp->sq_mem.buf);
	if (!err && req->rq_va)
		err = ordma_umem_queue(dev, &qp->rq_mem, req->rq_va, (size_t)1 << (req->rq_log + req->rq_stride_log)) ?:
		      ordma_buf_check(&qp->rq_mem.buf);
	return err;
}

static int ordma_create_user_qp(struct ordma_dev *dev, struct ordma_ibqp *qp, struct ordma_qp_init *init,
				struct ib_udata *udata)
{
	struct ordma_abi_create_qp_resp resp = {};
	struct ordma_abi_create_qp_req req;
	int err;

	err = ordma_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	/* An absent queue has stride 0, and an address is what makes it present: both must say the same. */
	if (!req.sq_va != !req.sq_stride_log || !req.rq_va != !req.rq_stride_log)
		return -EINVAL;
	init->sq_log = req.sq_log;
	init->sq_stride_log = req.sq_stride_log;
	init->rq_log = req.rq_log;
	init->rq_stride_log = req.rq_stride_log;
	init->uctx = ordma_udata_uctx(dev, udata)->id;
	err = ordma_qp_check_create(&dev->core, init);
	if (err)
		return err;
	err = ordma_qp_user_mem(dev, qp, &req) ?:
	      ordma_hwqp_create(dev, &qp->hwqp, ordma_udata_uctx(dev, udata), init, &qp->sq_mem.buf, &qp->rq_mem.buf);
	if (err)
		goto err_mem;
	resp.qpn = qp->hwqp.qp.qpn;
	ordma_abi_db_fill(&resp.sq_db, &qp->hwqp.slot, 0);
	ordma_abi_db_fill(&resp.rq_db, &qp->hwqp.slot, 1);
	err = ordma_udata_out(udata, &resp, sizeof(resp));
	if (err)
		goto err_qp;
	return 0;

err_qp:
	ordma_hwqp_destroy(&qp->hwqp);
err_mem:
	ordma_qp_mem_free(dev, qp);
	return err;
}

/* ------------------------------------------------------------------------------------------------------------ kernel */

static int ordma_create_kernel_qp(struct ordma_dev *dev, struct ordma_ibqp *qp, struct ordma_qp_init *init)
{
	struct ordma_buf sq = {}, rq = {};
	size_t sq_len, rq_len;
	int err;

	init->uctx = dev->kctx.id;
	err = ordma_qp_geometry(&dev->core, init) ?: ordma_qp_check_create(&dev->core, init);
	if (err)
		return err;
	sq_len = init->sq_stride_log ? (size_t)1 << (init->sq_log + init->sq_stride_log) : 0;
	rq_len = init->rq_stride_log ? (size_t)1 << (init->rq_log + init->rq_stride_log) : 0;
	err = ordma_kmem_alloc(dev, &qp->kmem, max_t(size_t, sq_len + rq_len, 1));
	if (err)
		return err;
	qp->sent = kvcalloc(1u << init->sq_log, sizeof(*qp->sent), GFP_KERNEL);
	if (!qp->sent) {
		err = -ENOMEM;
		goto err_mem;
	}
	ordma_kwq_setup(&qp->sq, &sq, &qp->kmem, 0, init->sq_log, init->sq_stride_log);
	ordma_kwq_setup(&qp->rq, &rq, &qp->kmem, sq_len, init->rq_log, init->rq_stride_log);
	err = ordma_hwqp_create(dev, &qp->hwqp, &dev->kctx, init, &sq, &rq);
	if (err)
		goto err_mem;
	qp->sq.db = qp->hwqp.slot.addr;
	qp->rq.db = qp->hwqp.slot.addr + sizeof(u64);
	return 0;

err_mem:
	ordma_qp_mem_free(dev, qp);
	return err;
}

/* The CQs' lists say whose work a dead device owes. */
static void ordma_qp_link(struct ordma_ibqp *qp, bool add)
{
	struct ordma_ibcq *scq = to_ocq(qp->ibqp.send_cq);
	struct ordma_ibcq *rcq = to_ocq(qp->ibqp.recv_cq);

	spin_lock_irq(&scq->poll_lock);
	if (add)
		list_add_tail(&qp->send_entry, &scq->send_qps);
	else
		list_del(&qp->send_entry);
	spin_unlock_irq(&scq->poll_lock);
	spin_lock_irq(&rcq->poll_lock);
	if (add)
		list_add_tail(&qp->recv_entry, &rcq->recv_qps);
	else
		list_del(&qp->recv_entry);
	spin_unlock_irq(&rcq->poll_lock);
}

/* --------------------------------------------------------------------------------------------------------------- ops */

int ordma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibqp->device);
	struct ordma_ibqp *qp = to_oqp(ibqp);
	struct ordma_qp_init init = {};
	int err;

	err = ordma_qp_init_fill(&init, ibqp->pd, attr, udata);
	if (err)
		return err;
	qp->user = udata;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	spin_lock_init(&qp->sq_lock);
	spin_lock_init(&qp->rq_lock);
	INIT_LIST_HEAD(&qp->mcasts);
	qp->hwqp.async = ordma_qp_async;
	err = udata ? ordma_create_user_qp(dev, qp, &init, udata) : ordma_create_kernel_qp(dev, qp, &init);
	if (err)
		return err;
	ibqp->qp_num = qp->hwqp.qp.qpn;
	if (!udata) {
		ordma_qp_link(qp, true);
		attr->cap.max_send_wr = init.cap.max_send_wr;
		attr->cap.max_recv_wr = init.cap.max_recv_wr;
		attr->cap.max_send_sge = init.cap.max_send_sge;
		attr->cap.max_recv_sge = init.cap.max_recv_sge;
		attr->cap.max_inline_data = init.cap.max_inline;
	}
	return 0;
}

int ordma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibqp->device);
	struct ordma_ibqp *qp = to_oqp(ibqp);

	if (!list_empty(&qp->mcasts))
		return -EBUSY;
	ordma_hwqp_destroy(&qp->hwqp);
	/* Also waits for a poll that found the QP before its number was erased. */
	if (!qp->user)
		ordma_qp_link(qp, false);
	ordma_qp_mem_free(dev, qp);
	return 0;
}
