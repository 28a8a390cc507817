// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Modify and query of a QP: translation between ib_qp_attr and the core's. The rules are the core's. */
#include <rdma/ib_addr.h>

#include "ordma_ib.h"

#define ORDMA_ATTR_KNOWN GENMASK(20, 0)

static void ordma_attr_in(const struct ib_qp_attr *attr, int mask, struct ordma_qp_attr *out)
{
	memset(out, 0, sizeof(*out));
	out->qp_state = attr->qp_state;
	out->cur_qp_state = attr->cur_qp_state;
	out->path_mtu = attr->path_mtu;
	out->path_mig_state = attr->path_mig_state;
	out->qkey = attr->qkey;
	out->rq_psn = attr->rq_psn;
	out->sq_psn = attr->sq_psn;
	out->dest_qpn = attr->dest_qp_num;
	out->access_flags = attr->qp_access_flags;
	out->pkey_index = attr->pkey_index;
	out->port_num = attr->port_num;
	out->en_sqd_async_notify = attr->en_sqd_async_notify;
	out->max_rd_atomic = attr->max_rd_atomic;
	out->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	out->min_rnr_timer = attr->min_rnr_timer;
	out->timeout = attr->timeout;
	out->retry_cnt = attr->retry_cnt;
	out->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_AV)
		ordma_ah_attr(&attr->ah_attr, &out->ah);
}

static void ordma_attr_out(struct ordma_qp_attr *in, struct ib_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = in->qp_state;
	attr->cur_qp_state = in->qp_state;
	attr->path_mtu = in->path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = in->qkey;
	attr->rq_psn = in->rq_psn;
	attr->sq_psn = in->sq_psn;
	attr->dest_qp_num = in->dest_qpn;
	attr->qp_access_flags = in->access_flags;
	attr->pkey_index = in->pkey_index;
	attr->port_num = in->port_num;
	attr->en_sqd_async_notify = in->en_sqd_async_notify;
	attr->sq_draining = in->sq_draining;
	attr->max_rd_atomic = in->max_rd_atomic;
	attr->max_dest_rd_atomic = in->max_dest_rd_atomic;
	attr->min_rnr_timer = in->min_rnr_timer;
	attr->timeout = in->timeout;
	attr->retry_cnt = in->retry_cnt;
	attr->rnr_retry = in->rnr_retry;
	attr->ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_sl(&attr->ah_attr, in->ah.sl);
	rdma_ah_set_port_num(&attr->ah_attr, in->ah.port_num);
	rdma_ah_set_static_rate(&attr->ah_attr, in->ah.static_rate);
	if (!in->ah.is_global)
		return;
	rdma_ah_set_grh(&attr->ah_attr, NULL, in->ah.flow_label, in->ah.sgid_index, in->ah.hop_limit,
			in->ah.traffic_class);
	rdma_ah_set_dgid_raw(&attr->ah_attr, in->ah.dgid);
	memcpy(attr->ah_attr.roce.dmac, in->ah.dmac, sizeof(in->ah.dmac));
}

int ordma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct ordma_ibqp *qp = to_oqp(ibqp);
	struct ordma_qp_attr core_attr;
	int err;

	err = ordma_udata_none(udata);
	if (err)
		return err;
	if (mask & ~ORDMA_ATTR_KNOWN)
		return -EOPNOTSUPP;
	if (mask & IB_QP_AV && attr->ah_attr.type != RDMA_AH_ATTR_TYPE_ROCE)
		return -EINVAL;
	ordma_attr_in(attr, mask, &core_attr);
	err = ordma_hwqp_modify(&qp->hwqp, &core_attr, mask);
	if (!err && !qp->user && mask & IB_QP_STATE && attr->qp_state == IB_QPS_RESET) {
		ordma_cq_forget(ibqp->send_cq, &qp->send_stale, &qp->sq);
		ordma_cq_forget(ibqp->recv_cq, &qp->recv_stale, &qp->rq);
	}
	return err;
}

int ordma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct ordma_ibqp *qp = to_oqp(ibqp);
	const struct ordma_qp_cap *cap = &qp->hwqp.qp.init.cap;
	struct ordma_qp_attr core_attr;
	int err;

	err = ordma_hwqp_query(&qp->hwqp, &core_attr);
	if (err)
		return err;
	ordma_attr_out(&core_attr, attr);
	attr->cap.max_send_wr = cap->max_send_wr;
	attr->cap.max_recv_wr = cap->max_recv_wr;
	attr->cap.max_send_sge = cap->max_send_sge;
	attr->cap.max_recv_sge = cap->max_recv_sge;
	attr->cap.max_inline_data = cap->max_inline;

	memset(init, 0, sizeof(*init));
	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = attr->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	return 0;
}
