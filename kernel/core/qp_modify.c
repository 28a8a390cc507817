// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ibv_modify_qp: which attributes each transition needs and allows, and their ranges. */
#include "core_priv.h"
#include "ordma_cmd.h"

#define RESET ORDMA_QP_STATE_RESET
#define INIT ORDMA_QP_STATE_INIT
#define RTR ORDMA_QP_STATE_RTR
#define RTS ORDMA_QP_STATE_RTS
#define SQD ORDMA_QP_STATE_SQD
#define SQE ORDMA_QP_STATE_SQE
#define ERR ORDMA_QP_STATE_ERR

#define T_RC (1u << ORDMA_QP_TYPE_RC)
#define T_UC (1u << ORDMA_QP_TYPE_UC)
#define T_UD (1u << ORDMA_QP_TYPE_UD)
#define T_GSI (1u << ORDMA_QP_TYPE_GSI)
#define T_ETH (1u << ORDMA_QP_TYPE_ETH)
#define T_CONN (T_RC | T_UC)
#define T_DGRAM (T_UD | T_GSI)

#define A(x) ORDMA_ATTR_##x
#define A_PATHS (A(ALT_PATH) | A(PATH_MIG_STATE))
#define A_RC_SEND (A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_RD_ATOMIC))
#define A_RC_RECV (A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER))
/* What a running connected QP may still change; RC also its RNR timer. */
#define A_RUN (A(CUR_STATE) | A(ACCESS_FLAGS) | A_PATHS)

struct transition {
	u8 from, to;
	u16 types;
	u32 required, optional;
};

/*
 * Any state to RESET, and any but RESET to ERR, need and allow nothing; they are not listed.
 * IBV_QP_STATE itself is implied. IBV_QP_CAP and IBV_QP_RATE_LIMIT are in no row: queues are not
 * resized, and rates belong to raw packet QPs.
 */
static const struct transition table[] = {
	{ RESET, INIT, T_CONN, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0 },
	{ RESET, INIT, T_UD, A(PKEY_INDEX) | A(PORT) | A(QKEY), 0 },
	{ RESET, INIT, T_GSI, A(PKEY_INDEX) | A(QKEY), A(PORT) },
	{ RESET, INIT, T_ETH, 0, A(PORT) | A(PKEY_INDEX) },

	{ INIT, INIT, T_CONN, 0, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS) },
	{ INIT, INIT, T_DGRAM, 0, A(PKEY_INDEX) | A(PORT) | A(QKEY) },
	{ INIT, INIT, T_ETH, 0, A(PORT) | A(PKEY_INDEX) },

	{ INIT, RTR, T_RC, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) | A_RC_RECV,
	  A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX) },
	{ INIT, RTR, T_UC, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN),
	  A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX) },
	{ INIT, RTR, T_DGRAM, 0, A(PKEY_INDEX) | A(QKEY) },
	{ INIT, RTR, T_ETH, 0, 0 },

	{ RTR, RTS, T_RC, A(SQ_PSN) | A_RC_SEND, A_RUN | A(MIN_RNR_TIMER) },
	{ RTR, RTS, T_UC, A(SQ_PSN), A_RUN },
	{ RTR, RTS, T_DGRAM, A(SQ_PSN), A(CUR_STATE) | A(QKEY) },
	{ RTR, RTS, T_ETH, 0, A(CUR_STATE) },

	{ RTS, RTS, T_RC, 0, A_RUN | A(MIN_RNR_TIMER) },
	{ RTS, RTS, T_UC, 0, A_RUN },
	{ RTS, RTS, T_DGRAM, 0, A(CUR_STATE) | A(QKEY) },
	{ RTS, RTS, T_ETH, 0, A(CUR_STATE) },

	{ RTS, SQD, T_CONN | T_DGRAM, 0, A(EN_SQD_ASYNC_NOTIFY) },

	{ SQD, RTS, T_RC, 0, A_RUN | A(MIN_RNR_TIMER) },
	{ SQD, RTS, T_UC, 0, A_RUN },
	{ SQD, RTS, T_DGRAM, 0, A(CUR_STATE) | A(QKEY) },

	{ SQD, SQD, T_RC, 0,
	  A(PORT) | A(AV) | A_RC_SEND | A_RC_RECV | A(ACCESS_FLAGS) | A(PKEY_INDEX) | A_PATHS },
	{ SQD, SQD, T_UC, 0, A(AV) | A(ACCESS_FLAGS) | A(PKEY_INDEX) | A_PATHS },
	{ SQD, SQD, T_DGRAM, 0, A(PKEY_INDEX) | A(QKEY) },

	{ SQE, RTS, T_UC, 0, A(CUR_STATE) | A(ACCESS_FLAGS) },
	{ SQE, RTS, T_DGRAM, 0, A(CUR_STATE) | A(QKEY) },
};

static int check_table(enum ordma_qp_type type, u32 from, u32 to, u32 mask)
{
	unsigned int i;

	mask &= ~A(STATE);
	if (to == RESET || (to == ERR && from != RESET))
		return mask ? -EINVAL : 0;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct transition *t = &table[i];

		if (t->from != from || t->to != to || !(t->types >> type & 1))
			continue;
		if ((mask & t->required) != t->required || mask & ~(t->required | t->optional))
			return -EINVAL;
		return 0;
	}
	return -EINVAL;
}

/* Where the QP is: the state that the caller names must be the one it is in. */
static int current_state(const struct ordma_qp *qp, const struct ordma_qp_attr *attr, u32 mask,
			 u32 *from)
{
	*from = qp->state;
	if (!(mask & A(CUR_STATE)) || attr->cur_qp_state == qp->state)
		return 0;
	/*
	 * A send error completes before its event is dispatched, so the user may know of SQE first.
	 * The device has the last word.
	 */
	if (attr->cur_qp_state == SQE && qp->state == RTS && qp->init.type != ORDMA_QP_TYPE_RC) {
		*from = SQE;
		return 0;
	}
	return -EINVAL;
}

static bool is_zero(const u8 *p, unsigned int n)
{
	while (n)
		if (p[--n])
			return false;
	return true;
}

static int check_av(const struct ordma_core *core, const struct ordma_ah_attr *ah)
{
	bool ipv4 = ordma_gid_is_ipv4(ah->dgid);

	/* RoCE routes by GID alone. */
	if (!ah->is_global || ah->port_num != 1 || ah->sl > 15)
		return -EINVAL;
	if (!ordma_core_gid_ok(core, ah->sgid_index))
		return -EINVAL;
	/* A connection whose ends speak different IP versions would only time out. */
	if (ipv4 != ordma_core_gid_is_ipv4(core, ah->sgid_index))
		return -EINVAL;
	if (is_zero(ah->dgid, 16) || ah->dgid[0] == 0xff || (ipv4 && ah->dgid[12] >> 4 == 0xe))
		return -EINVAL;
	if (is_zero(ah->dmac, 6) || ah->dmac[0] & 1)
		return -EINVAL;
	return 0;
}

struct range_check {
	u32 attr;
	u16 offset; /* in struct ordma_qp_attr */
	u32 least, most;
};

#define FIELD(name) ((u16)offsetof(struct ordma_qp_attr, name))

static const struct range_check ranges[] = {
	{ A(PKEY_INDEX), FIELD(pkey_index), 0, 0 },
	{ A(PORT), FIELD(port_num), 1, 1 },
	{ A(PATH_MTU), FIELD(path_mtu), 1, 5 },
	{ A(TIMEOUT), FIELD(timeout), 0, ORDMA_TIMEOUT_MAX },
	{ A(RETRY_CNT), FIELD(retry_cnt), 0, ORDMA_RETRY_MAX },
	{ A(RNR_RETRY), FIELD(rnr_retry), 0, ORDMA_RNR_FOREVER },
	{ A(MIN_RNR_TIMER), FIELD(min_rnr_timer), 0, ORDMA_RNR_TIMER_MAX },
	{ A(DEST_QPN), FIELD(dest_qpn), 0, ORDMA_MCAST_QPN - 1 },
};

static u32 field_of(const struct ordma_qp_attr *attr, u16 offset)
{
	u32 v;

	memcpy(&v, (const u8 *)attr + offset, sizeof(v));
	return v;
}

static int check_ranges(const struct ordma_core *core, const struct ordma_qp *qp,
			const struct ordma_qp_attr *attr, u32 mask)
{
	/*
	 * Bits of memory regions mean nothing on a QP and are ignored like the optional hints;
	 * undefined ones are refused.
	 */
	const u32 access = ORDMA_IB_ACCESS_OPTIONAL | ((ORDMA_IB_ACCESS_HUGETLB << 1) - 1);
	unsigned int i;

	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		u32 v = field_of(attr, ranges[i].offset);

		if (mask & ranges[i].attr && (v < ranges[i].least || v > ranges[i].most))
			return -EINVAL;
	}
	if (mask & A(ACCESS_FLAGS) && attr->access_flags & ~access)
		return -EINVAL;
	if (mask & A(PATH_MTU) && attr->path_mtu > ordma_read_once32(&core->active_mtu))
		return -EINVAL;
	if (mask & A(MAX_RD_ATOMIC) && attr->max_rd_atomic > core->caps.max_rd_atomic)
		return -EINVAL;
	if (mask & A(MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > core->caps.max_rd_atomic)
		return -EINVAL;
	if (mask & A(AV) && check_av(core, &attr->ah))
		return -EINVAL;
	if (mask & A(QKEY) && attr->qkey >> 31 && !qp->init.privileged)
		return -EPERM;
	/* The device has one path; "migrated" is the only state of a QP without an alternate one. */
	if (mask & A(ALT_PATH) || (mask & A(PATH_MIG_STATE) && attr->path_mig_state))
		return -EOPNOTSUPP;
	return 0;
}

#define TAKE(flag, field)                        \
	do {                                     \
		if (mask & A(flag))              \
			to->field = attr->field; \
	} while (0)

static void take(struct ordma_qp_attr *to, const struct ordma_qp_attr *attr, u32 mask)
{
	const u32 psn = (1u << ORDMA_PSN_BITS) - 1;

	TAKE(ACCESS_FLAGS, access_flags);
	TAKE(PKEY_INDEX, pkey_index);
	TAKE(PORT, port_num);
	TAKE(QKEY, qkey);
	TAKE(PATH_MTU, path_mtu);
	TAKE(TIMEOUT, timeout);
	TAKE(RETRY_CNT, retry_cnt);
	TAKE(RNR_RETRY, rnr_retry);
	TAKE(MAX_RD_ATOMIC, max_rd_atomic);
	TAKE(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(MIN_RNR_TIMER, min_rnr_timer);
	TAKE(DEST_QPN, dest_qpn);
	TAKE(PATH_MIG_STATE, path_mig_state);
	TAKE(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	if (mask & A(RQ_PSN))
		to->rq_psn = attr->rq_psn & psn;
	if (mask & A(SQ_PSN))
		to->sq_psn = attr->sq_psn & psn;
	if (mask & A(AV)) {
		to->ah = attr->ah;
		to->ah.flow_label &= 0xfffff;
	}
}

int ordma_qp_modify_check(const struct ordma_core *core, const struct ordma_qp *qp,
			  const struct ordma_qp_attr *attr, u32 mask, struct ordma_qp_modify *mod)
{
	u32 from, to, mtu;
	int err = current_state(qp, attr, mask, &from);

	if (err)
		return err;
	to = mask & A(STATE) ? attr->qp_state : from;
	err = check_table(qp->init.type, from, to, mask);
	if (!err)
		err = check_ranges(core, qp, attr, mask);
	if (err)
		return err;
	memset(mod, 0, sizeof(*mod));
	mod->from = from;
	mod->to = to;
	mod->errors = qp->errors;
	if (to == RESET)
		return 0;
	mod->attr = qp->attr;
	take(&mod->attr, attr, mask);
	if (to == SQD && from != SQD && !(mask & A(EN_SQD_ASYNC_NOTIFY)))
		mod->attr.en_sqd_async_notify = 0;
	/* A datagram must fit one packet of the port, whoever receives it. */
	mtu = qp->init.type == ORDMA_QP_TYPE_RC || qp->init.type == ORDMA_QP_TYPE_UC
		      ? mod->attr.path_mtu
		      : ordma_read_once32(&core->active_mtu);
	mod->mtu_log = mtu ? (u8)(7 + mtu) : 0;
	mod->init_rq = from == INIT && to == RTR;
	mod->init_sq = from == RTR && to == RTS;
	return 0;
}

void ordma_qp_modify_done(const struct ordma_core *core, struct ordma_qp *qp,
			  const struct ordma_qp_modify *mod)
{
	const struct ordma_qp_attr *a = &mod->attr;

	qp->attr = *a;
	if (mod->to != SQD)
		qp->sqd_notify = false;
	if (mod->to == RESET) {
		/*
		 * What the ring holds by now is about the life that just ended; the reset re-armed
		 * the sources.
		 */
		qp->first_event = ordma_core_eq_head(core);
		qp->state = RESET;
		ordma_recovery_clear(&qp->rec);
		return;
	}
	/*
	 * An error that the device reported after the command keeps the upper hand, unless this
	 * very modify left that state.
	 */
	if (qp->errors != mod->errors && mod->from != SQE && mod->to != ERR)
		return;
	qp->state = mod->to;
	if (mod->to == ERR)
		ordma_recovery_clear(&qp->rec);
	else
		ordma_recovery_set(&qp->rec, (u8)a->retry_cnt, (u8)a->rnr_retry, (u8)a->timeout);
}
