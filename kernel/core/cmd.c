// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Command encoders: see ordma_cmd.h. */
#include "ordma_cmd.h"

#define ACCESS_MASK                                                                        \
	(ORDMA_ACCESS_LOCAL_WRITE | ORDMA_ACCESS_REMOTE_WRITE | ORDMA_ACCESS_REMOTE_READ | \
	 ORDMA_ACCESS_REMOTE_ATOMIC)
#define VLAN_MAX 4094

static void head(struct ordma_cmd *cmd, enum ordma_cmd_op op, u32 number)
{
	memset(cmd, 0, sizeof(*cmd));
	ORDMA_SET(cmd, CMD_OPCODE, op);
	ORDMA_SET(cmd, CMD_NUMBER, number);
}

void ordma_cmd_nop(struct ordma_cmd *cmd)
{
	head(cmd, ORDMA_CMD_OP_NOP, 0);
}

void ordma_cmd_page_open(struct ordma_cmd *cmd, u32 page, u32 uctx, bool token, u64 record)
{
	struct ordma_cmd_page *c = (struct ordma_cmd_page *)cmd;

	head(cmd, ORDMA_CMD_OP_PAGE_OPEN, page);
	ORDMA_SET(c, CMD_PAGE_UCTX, uctx);
	ORDMA_SET(c, CMD_PAGE_TOKEN, token);
	ORDMA_SET(c, CMD_PAGE_RECORD, record);
}

void ordma_cmd_page_close(struct ordma_cmd *cmd, u32 page)
{
	head(cmd, ORDMA_CMD_OP_PAGE_CLOSE, page);
}

void ordma_cmd_mr_create(struct ordma_cmd *cmd, const struct ordma_mr *mr)
{
	struct ordma_cmd_mr *c = (struct ordma_cmd_mr *)cmd;

	head(cmd, ORDMA_CMD_OP_MR_CREATE, mr->mkey);
	ORDMA_SET(c, CMD_MR_PD, mr->pdn);
	ORDMA_SET(c, CMD_MR_ACCESS, mr->access & ACCESS_MASK);
	ORDMA_SET(c, CMD_MR_PAGE_LOG, mr->buf.page_log);
	ORDMA_SET(c, CMD_MR_LEVEL, mr->buf.level);
	ORDMA_SET(c, CMD_MR_IOVA, mr->iova);
	ORDMA_SET(c, CMD_MR_LENGTH, mr->length);
	ORDMA_SET(c, CMD_MR_ADDR, mr->buf.addr);
	ORDMA_SET(c, CMD_MR_FIRST_OFF, mr->first_off);
}

void ordma_cmd_mr_destroy(struct ordma_cmd *cmd, const struct ordma_mr *mr)
{
	head(cmd, ORDMA_CMD_OP_MR_DESTROY, mr->mkey);
}

static void cq_ring(struct ordma_cmd *cmd, const struct ordma_cq *cq, u32 log,
		    const struct ordma_buf *buf, u64 record)
{
	struct ordma_cmd_cq *c = (struct ordma_cmd_cq *)cmd;

	ORDMA_SET(c, CMD_CQ_UCTX, cq->uctx);
	ORDMA_SET(c, CMD_CQ_LOG, log);
	ORDMA_SET(c, CMD_CQ_PAGE_LOG, buf->page_log);
	ORDMA_SET(c, CMD_CQ_LEVEL, buf->level);
	ORDMA_SET(c, CMD_CQ_VECTOR, cq->vector);
	ORDMA_SET(c, CMD_CQ_ADDR, buf->addr);
	ORDMA_SET(c, CMD_CQ_RECORD, record);
}

void ordma_cmd_cq_create(struct ordma_cmd *cmd, const struct ordma_cq *cq)
{
	head(cmd, ORDMA_CMD_OP_CQ_CREATE, cq->cqn);
	cq_ring(cmd, cq, cq->log, &cq->buf, cq->record);
}

void ordma_cmd_cq_resize(struct ordma_cmd *cmd, const struct ordma_cq *cq, u32 log,
			 const struct ordma_buf *buf, u64 record)
{
	head(cmd, ORDMA_CMD_OP_CQ_RESIZE, cq->cqn);
	cq_ring(cmd, cq, log, buf, record);
}

void ordma_cmd_cq_destroy(struct ordma_cmd *cmd, const struct ordma_cq *cq)
{
	head(cmd, ORDMA_CMD_OP_CQ_DESTROY, cq->cqn);
}

void ordma_cmd_srq_create(struct ordma_cmd *cmd, const struct ordma_srq *srq)
{
	struct ordma_cmd_srq *c = (struct ordma_cmd_srq *)cmd;

	head(cmd, ORDMA_CMD_OP_SRQ_CREATE, srq->srqn);
	ORDMA_SET(c, CMD_SRQ_UCTX, srq->uctx);
	ORDMA_SET(c, CMD_SRQ_LOG, srq->log);
	ORDMA_SET(c, CMD_SRQ_STRIDE_LOG, srq->stride_log);
	ORDMA_SET(c, CMD_SRQ_PAGE_LOG, srq->buf.page_log);
	ORDMA_SET(c, CMD_SRQ_LEVEL, srq->buf.level);
	ORDMA_SET(c, CMD_SRQ_ADDR, srq->buf.addr);
	ORDMA_SET(c, CMD_SRQ_RECORD, srq->record);
	ORDMA_SET(c, CMD_SRQ_PD, srq->pdn);
	ORDMA_SET(c, CMD_SRQ_LIMIT, srq->limit);
}

void ordma_cmd_srq_limit(struct ordma_cmd *cmd, struct ordma_srq *srq, u32 limit)
{
	struct ordma_cmd_srq *c = (struct ordma_cmd_srq *)cmd;

	srq->fired_before = ordma_read_once32(&srq->fired);
	head(cmd, ORDMA_CMD_OP_SRQ_LIMIT, srq->srqn);
	ORDMA_SET(c, CMD_SRQ_LIMIT, limit);
}

void ordma_cmd_srq_destroy(struct ordma_cmd *cmd, const struct ordma_srq *srq)
{
	head(cmd, ORDMA_CMD_OP_SRQ_DESTROY, srq->srqn);
}

void ordma_cmd_qp_destroy(struct ordma_cmd *cmd, const struct ordma_qp *qp)
{
	head(cmd, ORDMA_CMD_OP_QP_DESTROY, qp->qpn);
}

bool ordma_gid_is_ipv4(const u8 gid[16])
{
	static const u8 prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

static bool all_zero(const u8 *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

int ordma_gid_check(const struct ordma_core *core, u32 index, const struct ordma_gid_entry *entry)
{
	if (index >= core->caps.max_gid)
		return -EINVAL;
	if (!entry->valid)
		return 0;
	if (entry->gid[0] == 0xff || all_zero(entry->gid, 16))
		return -EINVAL;
	if (entry->has_vlan && entry->vlan > VLAN_MAX)
		return -EINVAL;
	if (entry->mac[0] & 1 || all_zero(entry->mac, 6))
		return -EINVAL;
	if (!ordma_gid_is_ipv4(entry->gid) && !(core->caps.bits & ORDMA_CAP_IPV6))
		return -EOPNOTSUPP;
	return 0;
}

void ordma_cmd_gid_set(struct ordma_cmd *cmd, u32 index, const struct ordma_gid_entry *entry)
{
	struct ordma_cmd_gid *c = (struct ordma_cmd_gid *)cmd;

	head(cmd, ORDMA_CMD_OP_GID_SET, index);
	if (!entry->valid)
		return;
	ORDMA_SET(c, CMD_GID_VALID, 1);
	ORDMA_SET(c, CMD_GID_IPV4, ordma_gid_is_ipv4(entry->gid));
	ORDMA_SET(c, CMD_GID_HAS_VLAN, entry->has_vlan);
	ORDMA_SET(c, CMD_GID_VLAN, entry->has_vlan ? entry->vlan : 0);
	ORDMA_SET(c, CMD_GID_MAC, ordma_mac_to_u64(entry->mac));
	memcpy((u8 *)cmd + ORDMA_CMD_GID_GID_OFF, entry->gid, ORDMA_CMD_GID_GID_LEN);
}

int ordma_mcast_check(const struct ordma_core *core, const struct ordma_qp *qp, const u8 gid[16])
{
	bool ipv4_multicast = ordma_gid_is_ipv4(gid) && gid[12] >> 4 == 0xe;

	if (qp->init.type != ORDMA_QP_TYPE_UD)
		return -EINVAL;
	if (gid[0] != 0xff && !ipv4_multicast)
		return -EINVAL;
	return core->caps.bits & ORDMA_CAP_MCAST ? 0 : -EOPNOTSUPP;
}

void ordma_cmd_mcast(struct ordma_cmd *cmd, const struct ordma_qp *qp, const u8 gid[16],
		     bool attach)
{
	head(cmd, attach ? ORDMA_CMD_OP_MCAST_ATTACH : ORDMA_CMD_OP_MCAST_DETACH, qp->qpn);
	memcpy((u8 *)cmd + ORDMA_CMD_MCAST_GID_OFF, gid, ORDMA_CMD_MCAST_GID_LEN);
}

void ordma_cmd_counters(struct ordma_cmd *cmd, u64 addr, u32 count)
{
	struct ordma_cmd_out *c = (struct ordma_cmd_out *)cmd;

	head(cmd, ORDMA_CMD_OP_COUNTERS, 0);
	ORDMA_SET(c, CMD_OUT_ADDR, addr);
	ORDMA_SET(c, CMD_OUT_COUNT, count);
}

void ordma_cmd_eth_filter(struct ordma_cmd *cmd, u32 qpn, const u8 mac[6], bool promisc,
			  bool allmulti)
{
	struct ordma_cmd_eth *c = (struct ordma_cmd_eth *)cmd;

	head(cmd, ORDMA_CMD_OP_ETH_FILTER, qpn);
	ORDMA_SET(c, CMD_ETH_PROMISC, promisc);
	ORDMA_SET(c, CMD_ETH_ALLMULTI, allmulti);
	ORDMA_SET(c, CMD_ETH_MAC, ordma_mac_to_u64(mac));
}

u64 ordma_mac_to_u64(const u8 mac[6])
{
	u64 v = 0;
	int i;

	for (i = 5; i >= 0; i--)
		v = v << 8 | mac[i];
	return v;
}

void ordma_mac_from_u64(u64 v, u8 mac[6])
{
	int i;

	for (i = 0; i < 6; i++)
		mac[i] = (u8)(v >> 8 * i);
}
