// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Event ring: validity, bounds, dispatch. What the device writes is checked before it is used. */
#include "core_priv.h"
#include "ordma_qp.h"

static const struct ordma_event *slot_of(const struct ordma_core *core, u32 index)
{
	return (const struct ordma_event *)core->rings.eq.va + (index & ((1u << core->eq_log) - 1));
}

static bool is_written(const struct ordma_core *core, u32 index)
{
	u64 word = ordma_read_le64(&slot_of(core, index)->w[ORDMA_EVENT_PHASE_W]);

	return ORDMA_WGET(word, EVENT_PHASE) == ordma_phase(index, core->eq_log);
}

bool ordma_core_events_pending(const struct ordma_core *core)
{
	return !ordma_core_dead(core) && is_written(core, ordma_read_once32(&core->eq_ci));
}

u32 ordma_core_eq_head(const struct ordma_core *core)
{
	u32 index = ordma_read_once32(&core->eq_ci);
	u32 left = 1u << core->eq_log;

	while (left-- && is_written(core, index))
		index = ordma_index_add(index, 1);
	return index;
}

static void decode(const struct ordma_event *ev, struct ordma_event_info *info)
{
	u64 w0 = ordma_read_le64(&ev->w[ORDMA_EVENT_TYPE_W]);
	u64 w1 = ordma_read_le64(&ev->w[ORDMA_EVENT_PSN_W]);

	info->type = (u8)ORDMA_WGET(w0, EVENT_TYPE);
	info->code = (u8)ORDMA_WGET(w0, EVENT_CODE);
	info->number = (u32)ORDMA_WGET(w0, EVENT_NUMBER);
	info->psn = (u32)ORDMA_WGET(w1, EVENT_PSN);
	info->log_index = (u32)ORDMA_WGET(w1, EVENT_LOG_INDEX);
	info->time = ordma_read_le64(&ev->w[ORDMA_EVENT_TIME_W]);
}

static void count_bad(struct ordma_core *core)
{
	core->stats.events_bad++;
}

/* 0 is no object in any table. */
static bool in_table(struct ordma_core *core, u32 index, u32 limit)
{
	if (index && index < limit)
		return true;
	count_bad(core);
	return false;
}

static struct ordma_qp *find_qp(struct ordma_core *core, u32 index, u32 qpn)
{
	struct ordma_qp *qp;

	if (!in_table(core, qpn & ((1u << ORDMA_QPN_INDEX_BITS) - 1), core->caps.max_qp))
		return NULL;
	qp = core->ops->qp_find(core->ctx, qpn);
	if (!qp) {
		core->stats.events_stale++;
		return NULL;
	}
	if (ordma_index_diff(index, qp->first_event) < 0) {
		core->ops->qp_put(core->ctx, qp);
		core->stats.events_stale++;
		return NULL;
	}
	return qp;
}

static void on_qp_async(struct ordma_core *core, u32 index, const struct ordma_event_info *ev)
{
	static const u8 async_of[] = {
		[ORDMA_ASYNC_CODE_FATAL] = ORDMA_ASYNC_QP_FATAL,
		[ORDMA_ASYNC_CODE_REQ_ERR] = ORDMA_ASYNC_QP_REQ_ERR,
		[ORDMA_ASYNC_CODE_ACCESS_ERR] = ORDMA_ASYNC_QP_ACCESS_ERR,
		[ORDMA_ASYNC_CODE_COMM_EST] = ORDMA_ASYNC_COMM_EST,
		[ORDMA_ASYNC_CODE_LAST_WQE] = ORDMA_ASYNC_QP_LAST_WQE,
	};
	struct ordma_qp *qp;

	if (ev->code >= sizeof(async_of) || !async_of[ev->code]) {
		count_bad(core);
		return;
	}
	qp = find_qp(core, index, ev->number);
	if (!qp)
		return;
	/* A request that ends in one of the first three leaves an RC responder in ERR. */
	if (ev->code <= ORDMA_ASYNC_CODE_ACCESS_ERR && qp->init.type == ORDMA_QP_TYPE_RC)
		ordma_qp_to_error(qp, ORDMA_QP_STATE_ERR);
	core->ops->qp_put(core->ctx, qp);
	core->ops->qp_async(core->ctx, ev->number, (enum ordma_async)async_of[ev->code]);
}

static void on_qp_error(struct ordma_core *core, u32 index, const struct ordma_event_info *ev)
{
	struct ordma_qp *qp = find_qp(core, index, ev->number);
	bool sends;

	if (!qp)
		return;
	/*
	 * The event does not say which error state. A send error of a UC or UD QP leads to SQE, the
	 * rest to ERR; when the guess is wrong, the next query corrects it and the device refuses a
	 * transition that does not exist.
	 */
	sends = qp->state == ORDMA_QP_STATE_RTS || qp->state == ORDMA_QP_STATE_SQD ||
		qp->state == ORDMA_QP_STATE_SQE;
	if (qp->init.type == ORDMA_QP_TYPE_RC || qp->init.type == ORDMA_QP_TYPE_ETH || !sends)
		ordma_qp_to_error(qp, ORDMA_QP_STATE_ERR);
	else
		ordma_qp_to_error(qp, ORDMA_QP_STATE_SQE);
	core->ops->qp_put(core->ctx, qp);
}

static void on_drained(struct ordma_core *core, u32 index, const struct ordma_event_info *ev)
{
	struct ordma_qp *qp = find_qp(core, index, ev->number);
	bool tell;

	if (!qp)
		return;
	tell = qp->sqd_notify;
	qp->sqd_notify = false;
	core->ops->qp_put(core->ctx, qp);
	if (tell)
		core->ops->qp_async(core->ctx, ev->number, ORDMA_ASYNC_SQ_DRAINED);
}

static void on_recovery(struct ordma_core *core, u32 index, const struct ordma_event_info *ev)
{
	struct ordma_qp *qp = find_qp(core, index, ev->number);
	struct ordma_recovery_action act;

	if (!qp)
		return;
	core->stats.recovery_events++;
	ordma_recovery_event(&qp->rec, ev, ev->time, &act);
	switch (act.kind) {
	case ORDMA_RECOVERY_REWIND:
		core->stats.rewinds++;
		break;
	case ORDMA_RECOVERY_FAIL:
		core->stats.fails++;
		break;
	case ORDMA_RECOVERY_SILENCE:
		core->stats.silences++;
		break;
	case ORDMA_RECOVERY_NONE:
		break;
	}
	/* Under the QP lock, so that no reset of the QP comes between the decision and the order. */
	if (act.kind != ORDMA_RECOVERY_NONE)
		ordma_rcmd_push(core, qp->qpn, &act);
	/* Given up on the driver's order, so no event follows that says so. */
	if (act.kind == ORDMA_RECOVERY_FAIL)
		ordma_qp_to_error(qp, ORDMA_QP_STATE_ERR);
	core->ops->qp_put(core->ctx, qp);
}

static void dispatch(struct ordma_core *core, u32 index, const struct ordma_event_info *ev,
		     bool *port)
{
	const struct ordma_core_ops *ops = core->ops;

	switch (ev->type) {
	case ORDMA_EVENT_TYPE_CMD_DONE:
		ops->cmd_done(core->ctx, ordma_cmd_slot(ev->log_index));
		break;
	case ORDMA_EVENT_TYPE_CQ_FIRE:
		if (in_table(core, ev->number, core->caps.max_cq))
			ops->cq_event(core->ctx, ev->number);
		break;
	case ORDMA_EVENT_TYPE_CQ_ERROR:
		if (in_table(core, ev->number, core->caps.max_cq))
			ops->cq_error(core->ctx, ev->number);
		break;
	case ORDMA_EVENT_TYPE_QP_ASYNC:
		on_qp_async(core, index, ev);
		break;
	case ORDMA_EVENT_TYPE_QP_ERROR:
		on_qp_error(core, index, ev);
		break;
	case ORDMA_EVENT_TYPE_SRQ_LIMIT:
		if (in_table(core, ev->number, core->caps.max_srq))
			ops->srq_limit(core->ctx, ev->number);
		break;
	case ORDMA_EVENT_TYPE_SRQ_ERROR:
		if (in_table(core, ev->number, core->caps.max_srq))
			ops->srq_error(core->ctx, ev->number);
		break;
	case ORDMA_EVENT_TYPE_QP_NAK:
	case ORDMA_EVENT_TYPE_QP_RNR:
	case ORDMA_EVENT_TYPE_QP_IMPLIED_NAK:
	case ORDMA_EVENT_TYPE_QP_SILENCE:
		on_recovery(core, index, ev);
		break;
	case ORDMA_EVENT_TYPE_PORT:
		*port = true;
		break;
	case ORDMA_EVENT_TYPE_PAGE_ERROR:
		if (ev->number < core->caps.max_page && ev->code && ev->code <= ORDMA_DB_ERR_STATE)
			ops->page_error(core->ctx, ev->number, (enum ordma_db_err)ev->code);
		else
			count_bad(core);
		break;
	case ORDMA_EVENT_TYPE_SQ_DRAINED:
		on_drained(core, index, ev);
		break;
	default:
		count_bad(core);
		break;
	}
}

unsigned int ordma_core_poll_events(struct ordma_core *core, unsigned int budget)
{
	struct ordma_event_info ev;
	unsigned int taken = 0;
	bool port = false;

	while (taken < budget && ordma_core_events_pending(core)) {
		u32 index = core->eq_ci;

		/* The phase is in the last word of the device's one write. */
		ordma_rmb();
		decode(slot_of(core, index), &ev);
		ordma_write_once32(&core->eq_ci, ordma_index_add(index, 1));
		core->stats.events++;
		taken++;
		dispatch(core, index, &ev, &port);
	}
	if (!taken || ordma_core_dead(core))
		return taken;
	core->ops->reg_write32(core->ctx, ORDMA_REG_EQ_CI, core->eq_ci);
	/* After the index that re-arms the port's event, so that a later change makes a new one. */
	if (port)
		ordma_core_tell_link(core, core->ops->reg_read64(core->ctx, ORDMA_REG_STATUS));
	return taken;
}
