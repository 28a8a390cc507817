// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: creation, context image, query. The state machine is in qp_modify.c. */
#include "core_priv.h"
#include "ordma_cmd.h"

/*
 * An order log never refuses what the send queue can hold; a short queue still gets one page line
 * of entries.
 */
#define LOG_LOG_MIN 6
#define DEFAULT_HOP_LIMIT 64
/* Ports below this are not ephemeral. */
#define SPORT_BASE 0xc000u

static bool is_datagram(enum ordma_qp_type type)
{
	return type == ORDMA_QP_TYPE_UD || type == ORDMA_QP_TYPE_GSI;
}

static u32 data_off(enum ordma_qp_type type)
{
	return is_datagram(type) ? ORDMA_WQE_UD_DATA_OFF : ORDMA_WQE_DATA_OFF;
}

static u32 sq_need(const struct ordma_qp_init *init)
{
	u32 data = ordma_max32(init->cap.max_send_sge * ORDMA_SGE_BYTES, init->cap.max_inline);
	u32 need = data_off(init->type) + data;

	return ordma_max32(ORDMA_SQ_STRIDE_LOG_MIN, ordma_log2_up(need));
}

static int check_type(const struct ordma_core *core, const struct ordma_qp_init *init)
{
	u64 need;

	switch (init->type) {
	case ORDMA_QP_TYPE_RC:
		need = ORDMA_CAP_RC;
		break;
	case ORDMA_QP_TYPE_UC:
		need = ORDMA_CAP_UC;
		break;
	case ORDMA_QP_TYPE_GSI:
	case ORDMA_QP_TYPE_UD:
		need = ORDMA_CAP_UD;
		break;
	case ORDMA_QP_TYPE_ETH:
		need = ORDMA_CAP_ETH;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (!(core->caps.bits & need))
		return -EOPNOTSUPP;
	/*
	 * The port's own QPs are the driver's. A user's raw packet QP would have the ETH type's
	 * number.
	 */
	if ((init->type == ORDMA_QP_TYPE_GSI || init->type == ORDMA_QP_TYPE_ETH) &&
	    init->uctx != ORDMA_KERNEL_UCTX)
		return -EOPNOTSUPP;
	if (init->has_srq &&
	    (init->type == ORDMA_QP_TYPE_ETH || !(core->caps.bits & ORDMA_CAP_SRQ)))
		return -EOPNOTSUPP;
	return 0;
}

/* What is asked, whatever the rings. */
static int check_cap(const struct ordma_core *core, const struct ordma_qp_init *init)
{
	const struct ordma_caps *c = &core->caps;
	const struct ordma_qp_cap *cap = &init->cap;

	if (cap->max_send_wr > c->max_wr || cap->max_send_sge > c->max_sge ||
	    cap->max_inline > c->max_inline)
		return -EINVAL;
	if (!init->has_srq && (cap->max_recv_wr > c->max_wr || cap->max_recv_sge > c->max_sge))
		return -EINVAL;
	return 0;
}

int ordma_qp_geometry(const struct ordma_core *core, struct ordma_qp_init *init)
{
	struct ordma_qp_cap *cap = &init->cap;
	int err = check_type(core, init);
	u32 room;

	if (!err)
		err = check_cap(core, init);
	if (err)
		return err;
	init->sq_log = init->sq_stride_log = init->rq_log = init->rq_stride_log = 0;
	if (cap->max_send_wr) {
		init->sq_log = ordma_log2_up(cap->max_send_wr);
		init->sq_stride_log = sq_need(init);
		room = (1u << init->sq_stride_log) - data_off(init->type);
		cap->max_send_wr = 1u << init->sq_log;
		cap->max_send_sge = ordma_min32(core->caps.max_sge, room / ORDMA_SGE_BYTES);
		cap->max_inline = ordma_min32(core->caps.max_inline, room);
	}
	if (cap->max_recv_wr && !init->has_srq) {
		err = ordma_rq_geometry(core, cap->max_recv_wr, cap->max_recv_sge, &init->rq_log,
					&init->rq_stride_log);
		if (err)
			return err;
		room = (1u << init->rq_stride_log) - ORDMA_RQE_DATA_OFF;
		cap->max_recv_wr = 1u << init->rq_log;
		cap->max_recv_sge = ordma_min32(core->caps.max_sge, room / ORDMA_SGE_BYTES);
	}
	return 0;
}

static int check_sq(const struct ordma_core *core, const struct ordma_qp_init *init)
{
	if (!init->sq_stride_log)
		return init->cap.max_send_wr || init->sq_log ? -EINVAL : 0;
	if (init->sq_stride_log < sq_need(init) || init->sq_stride_log > ORDMA_SQ_STRIDE_LOG_MAX)
		return -EINVAL;
	if (init->sq_log > ordma_log2_up(core->caps.max_wr) ||
	    1u << init->sq_log < init->cap.max_send_wr)
		return -EINVAL;
	return 0;
}

static int check_rq(const struct ordma_core *core, const struct ordma_qp_init *init)
{
	u32 log = 0, stride_log = 0;
	int err;

	if (init->has_srq)
		return init->rq_stride_log || init->rq_log ? -EINVAL : 0;
	if (!init->rq_stride_log)
		return init->cap.max_recv_wr || init->rq_log ? -EINVAL : 0;
	err = ordma_rq_geometry(core, ordma_max32(1, init->cap.max_recv_wr), init->cap.max_recv_sge,
				&log, &stride_log);
	if (err)
		return err;
	if (init->rq_stride_log < stride_log || init->rq_stride_log > ORDMA_RQ_STRIDE_LOG_MAX)
		return -EINVAL;
	if (init->rq_log < log || init->rq_log > ordma_log2_up(core->caps.max_wr))
		return -EINVAL;
	return 0;
}

int ordma_qp_check_create(const struct ordma_core *core, const struct ordma_qp_init *init)
{
	int err = check_type(core, init);

	if (!err)
		err = check_cap(core, init);
	if (!err)
		err = check_sq(core, init);
	if (!err)
		err = check_rq(core, init);
	return err;
}

static u32 log_log(const struct ordma_qp_init *init)
{
	return ordma_max32(LOG_LOG_MIN, init->sq_log);
}

size_t ordma_qp_log_bytes(const struct ordma_qp_init *init)
{
	if (!init->sq_stride_log || init->type == ORDMA_QP_TYPE_ETH)
		return 0;
	return (size_t)ORDMA_LOG_ENTRY_BYTES << log_log(init);
}

size_t ordma_qp_atomic_bytes(const struct ordma_core *core, const struct ordma_qp_init *init)
{
	if (init->type != ORDMA_QP_TYPE_RC || !core->caps.max_rd_atomic)
		return 0;
	return (size_t)ORDMA_ATOMIC_RESULT_BYTES << ordma_log2_up(core->caps.max_rd_atomic);
}

void ordma_qp_setup(struct ordma_qp *qp, u32 qpn, const struct ordma_qp_init *init,
		    const struct ordma_buf *sq, const struct ordma_buf *rq, u64 log_addr,
		    u64 atomic_addr)
{
	memset(qp, 0, sizeof(*qp));
	qp->qpn = qpn;
	qp->init = *init;
	if (init->sq_stride_log)
		qp->sq = *sq;
	if (init->rq_stride_log)
		qp->rq = *rq;
	if (ordma_qp_log_bytes(init)) {
		qp->log_addr = log_addr;
		qp->log_log = log_log(init);
	}
	qp->atomic_addr = atomic_addr;
	qp->state = ORDMA_QP_STATE_RESET;
}

static void image_queues(const struct ordma_qp *qp, struct ordma_qpc *c)
{
	const struct ordma_qp_init *init = &qp->init;

	ORDMA_SET(c, QPC_QPN, qp->qpn);
	ORDMA_SET(c, QPC_TYPE, init->type);
	ORDMA_SET(c, QPC_UCTX, init->uctx);
	ORDMA_SET(c, QPC_PD, init->pdn);
	ORDMA_SET(c, QPC_HAS_SRQ, init->has_srq);
	ORDMA_SET(c, QPC_SRQN, init->has_srq ? init->srqn : 0);
	ORDMA_SET(c, QPC_SCQN, init->scqn);
	ORDMA_SET(c, QPC_RCQN, init->rcqn);
	ORDMA_SET(c, QPC_SQ_ADDR, qp->sq.addr);
	ORDMA_SET(c, QPC_SQ_LOG, init->sq_log);
	ORDMA_SET(c, QPC_SQ_STRIDE_LOG, init->sq_stride_log);
	ORDMA_SET(c, QPC_SQ_PAGE_LOG, qp->sq.page_log);
	ORDMA_SET(c, QPC_SQ_LEVEL, qp->sq.level);
	ORDMA_SET(c, QPC_RQ_ADDR, qp->rq.addr);
	ORDMA_SET(c, QPC_RQ_LOG, init->rq_log);
	ORDMA_SET(c, QPC_RQ_STRIDE_LOG, init->rq_stride_log);
	ORDMA_SET(c, QPC_RQ_PAGE_LOG, qp->rq.page_log);
	ORDMA_SET(c, QPC_RQ_LEVEL, qp->rq.level);
	ORDMA_SET(c, QPC_LOG_LOG, qp->log_log);
	ORDMA_SET(c, QPC_LOG_ADDR, qp->log_addr);
	ORDMA_SET(c, QPC_ATOMIC_ADDR, qp->atomic_addr);
}

static u32 flow_port(const struct ordma_qp *qp, const struct ordma_qp_attr *a)
{
	u32 h = qp->qpn ^ a->dest_qpn << 7 ^ a->ah.flow_label << 3;

	if (a->ah.udp_sport)
		return a->ah.udp_sport;
	/*
	 * One port per flow, spread over the ephemeral range so that switches hash QPs of a pair of
	 * hosts apart.
	 */
	h = (h ^ h >> 16) * 0x7feb352du;
	h ^= h >> 15;
	return SPORT_BASE | (h & ~SPORT_BASE & 0xffff);
}

static void image_path(const struct ordma_qp *qp, const struct ordma_qp_attr *a,
		       struct ordma_qpc *c)
{
	const struct ordma_ah_attr *ah = &a->ah;

	ORDMA_SET(c, QPC_DEST_QPN, a->dest_qpn);
	ORDMA_SET(c, QPC_SGID_INDEX, ah->sgid_index);
	ORDMA_SET(c, QPC_HOP_LIMIT, ah->hop_limit ? ah->hop_limit : DEFAULT_HOP_LIMIT);
	ORDMA_SET(c, QPC_TCLASS, ah->traffic_class);
	ORDMA_SET(c, QPC_SL, ah->sl);
	ORDMA_SET(c, QPC_SPORT, flow_port(qp, a));
	ORDMA_SET(c, QPC_FLOW_LABEL, ah->flow_label);
	ORDMA_SET(c, QPC_DMAC, ordma_mac_to_u64(ah->dmac));
	memcpy((u8 *)c + ORDMA_QPC_DGID_OFF, ah->dgid, ORDMA_QPC_DGID_LEN);
}

static void image_attr(const struct ordma_qp *qp, const struct ordma_qp_attr *a,
		       struct ordma_qpc *c)
{
	const u32 remote =
		ORDMA_ACCESS_REMOTE_WRITE | ORDMA_ACCESS_REMOTE_READ | ORDMA_ACCESS_REMOTE_ATOMIC;

	ORDMA_SET(c, QPC_QKEY, qp->init.type == ORDMA_QP_TYPE_GSI ? ORDMA_GSI_QKEY : a->qkey);
	ORDMA_SET(c, QPC_SQ_PSN, a->sq_psn);
	ORDMA_SET(c, QPC_RQ_PSN, a->rq_psn);
	if (qp->init.type == ORDMA_QP_TYPE_UC)
		ORDMA_SET(c, QPC_ACCESS, a->access_flags & ORDMA_ACCESS_REMOTE_WRITE);
	if (qp->init.type != ORDMA_QP_TYPE_RC)
		return;
	ORDMA_SET(c, QPC_ACCESS, a->access_flags & remote);
	ORDMA_SET(c, QPC_MAX_RD_ATOMIC, a->max_rd_atomic);
	ORDMA_SET(c, QPC_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic);
	ORDMA_SET(c, QPC_MIN_RNR_TIMER, a->min_rnr_timer);
	ORDMA_SET(c, QPC_SILENCE, ordma_timeout_ns((u8)a->timeout));
}

static void cmd_head(struct ordma_cmd *cmd, enum ordma_cmd_op op, u32 qpn, u64 image)
{
	struct ordma_cmd_qp *c = (struct ordma_cmd_qp *)cmd;

	memset(cmd, 0, sizeof(*cmd));
	ORDMA_SET(cmd, CMD_OPCODE, op);
	ORDMA_SET(cmd, CMD_NUMBER, qpn);
	ORDMA_SET(c, CMD_QP_IMAGE, image);
}

void ordma_qp_create_cmd(const struct ordma_qp *qp, struct ordma_qpc *image, u64 image_dma,
			 struct ordma_cmd *cmd)
{
	memset(image, 0, sizeof(*image));
	image_queues(qp, image);
	cmd_head(cmd, ORDMA_CMD_OP_QP_CREATE, qp->qpn, image_dma);
}

void ordma_qp_modify_cmd(struct ordma_qp *qp, const struct ordma_qp_modify *mod,
			 struct ordma_qpc *image, u64 image_dma, struct ordma_cmd *cmd)
{
	const struct ordma_qp_attr *a = &mod->attr;
	struct ordma_cmd_qp *c = (struct ordma_cmd_qp *)cmd;

	memset(image, 0, sizeof(*image));
	image_queues(qp, image);
	if (mod->to != ORDMA_QP_STATE_RESET) {
		ORDMA_SET(image, QPC_MTU_LOG, mod->mtu_log);
		image_attr(qp, a, image);
		if (qp->init.type == ORDMA_QP_TYPE_RC || qp->init.type == ORDMA_QP_TYPE_UC)
			image_path(qp, a, image);
	}
	cmd_head(cmd, ORDMA_CMD_OP_QP_MODIFY, qp->qpn, image_dma);
	ORDMA_SET(c, CMD_QP_STATE, mod->to);
	ORDMA_SET(c, CMD_QP_INIT_RQ, mod->init_rq);
	ORDMA_SET(c, CMD_QP_INIT_SQ, mod->init_sq);
	/*
	 * The device may send, drain and report as soon as it executes this, before
	 * ordma_qp_modify_done(): an event that finds recovery not running would be dropped and the
	 * QP stay frozen. Should the command fail, no such event comes.
	 */
	if (mod->to == ORDMA_QP_STATE_SQD && mod->from != ORDMA_QP_STATE_SQD)
		qp->sqd_notify = a->en_sqd_async_notify;
	if (mod->init_sq && qp->init.type == ORDMA_QP_TYPE_RC)
		ordma_recovery_start(&qp->rec, a->sq_psn, (u8)a->retry_cnt, (u8)a->rnr_retry,
				     (u8)a->timeout);
}

void ordma_qp_query_cmd(const struct ordma_qp *qp, u64 progress_dma, struct ordma_cmd *cmd)
{
	cmd_head(cmd, ORDMA_CMD_OP_QP_QUERY, qp->qpn, progress_dma);
}

static bool is_error(u32 state)
{
	return state == ORDMA_QP_STATE_ERR || state == ORDMA_QP_STATE_SQE;
}

void ordma_qp_to_error(struct ordma_qp *qp, enum ordma_qp_state state)
{
	qp->state = state;
	qp->errors++;
	qp->sqd_notify = false;
	ordma_recovery_clear(&qp->rec);
}

void ordma_qp_sync(struct ordma_qp *qp, const struct ordma_progress *progress)
{
	u32 state = (u32)ORDMA_GET(progress, PROGRESS_STATE);

	if (state == qp->state || state > ORDMA_QP_STATE_ERR)
		return;
	/*
	 * ERR and SQE are the only states that the device enters by itself; anything else is a
	 * broken record.
	 */
	if (is_error(state) && qp->state != ORDMA_QP_STATE_RESET)
		ordma_qp_to_error(qp, (enum ordma_qp_state)state);
}

void ordma_qp_query(const struct ordma_qp *qp, const struct ordma_progress *progress,
		    struct ordma_qp_attr *out)
{
	*out = qp->attr;
	out->qp_state = qp->state;
	out->cur_qp_state = qp->state;
	out->sq_draining = 0;
	if (progress && qp->state == ORDMA_QP_STATE_SQD)
		out->sq_draining = (u32)ORDMA_GET(progress, PROGRESS_DRAINING);
}
