// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Driver part of `rdma resource show -dd`. */
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "ordma_ib.h"

int ordma_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct ordma_mr *mr = &to_omr(ibmr)->mr;
	struct nlattr *table;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_u32_hex(msg, "access", mr->access) || rdma_nl_put_driver_u32(msg, "level", mr->buf.level) ||
	    rdma_nl_put_driver_u32(msg, "page_log", mr->buf.page_log)) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

int ordma_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	const struct ordma_cq *cq = &to_ocq(ibcq)->hwcq.cq;
	struct nlattr *table;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_u32(msg, "cqn_hw", cq->cqn) || rdma_nl_put_driver_u32(msg, "ring_log", cq->log) ||
	    rdma_nl_put_driver_u32(msg, "vector", cq->vector)) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

int ordma_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct ordma_qp *qp = &to_oqp(ibqp)->hwqp.qp;
	struct nlattr *table;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_u32(msg, "sq_log", qp->init.sq_log) ||
	    rdma_nl_put_driver_u32(msg, "rq_log", qp->init.rq_log) ||
	    rdma_nl_put_driver_u32(msg, "retries", READ_ONCE(qp->rec.retries)) ||
	    rdma_nl_put_driver_u64(msg, "rewinds", READ_ONCE(qp->rec.total_rewinds))) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}
