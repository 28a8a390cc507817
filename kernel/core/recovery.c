// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Loss recovery policy: see recovery.h. */
#include "recovery.h"

/* RNR NAK timer codes in units of 10 us. */
static const u16 rnr_timer[ORDMA_RNR_TIMER_MAX + 1] = {
	0, /* 655.36 ms does not fit and is written out below */
	1,    2,    3,	  4,	6,     8,     12,    16,    24,	   32,	 48,
	64,   96,   128,  192,	256,   384,   512,   768,   1024,  1536, 2048,
	3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

u64 ordma_rnr_timer_ns(u8 code)
{
	code &= ORDMA_RNR_TIMER_MAX;
	return (code ? rnr_timer[code] : 65536) * 10000ULL;
}

u64 ordma_timeout_ns(u8 timeout)
{
	return timeout ? 4096ULL << (timeout & ORDMA_TIMEOUT_MAX) : 0;
}

void ordma_recovery_set(struct ordma_recovery *rec, u8 retry_cnt, u8 rnr_retry, u8 timeout)
{
	rec->retry_cnt = retry_cnt;
	rec->rnr_retry = rnr_retry;
	rec->timeout = timeout;
}

void ordma_recovery_start(struct ordma_recovery *rec, u32 sq_psn, u8 retry_cnt, u8 rnr_retry,
			  u8 timeout)
{
	u64 total = rec->total_rewinds;

	memset(rec, 0, sizeof(*rec));
	rec->total_rewinds = total;
	rec->una_psn = sq_psn;
	ordma_recovery_set(rec, retry_cnt, rnr_retry, timeout);
	rec->active = 1;
}

void ordma_recovery_clear(struct ordma_recovery *rec)
{
	rec->active = 0;
	rec->failed = 0;
	rec->retries = 0;
	rec->rnr_retries = 0;
	rec->not_before = 0;
}

static void note_progress(struct ordma_recovery *rec, u32 una_psn)
{
	/* A PSN that is not ahead (an old event, a device that errs) is no progress. */
	if (ordma_index_diff(una_psn, rec->una_psn) <= 0)
		return;
	rec->una_psn = una_psn;
	rec->retries = 0;
	rec->rnr_retries = 0;
	rec->not_before = 0;
}

static void act_rewind(struct ordma_recovery *rec, const struct ordma_event_info *ev,
		       u64 not_before, struct ordma_recovery_action *out)
{
	out->kind = ORDMA_RECOVERY_REWIND;
	out->log_index = ev->log_index;
	out->psn = ev->psn;
	out->not_before = not_before;
	rec->total_rewinds++;
}

static void act_fail(struct ordma_recovery *rec, const struct ordma_event_info *ev, u8 status,
		     u8 vendor_err, struct ordma_recovery_action *out)
{
	out->kind = ORDMA_RECOVERY_FAIL;
	out->psn = ev->psn;
	out->status = status;
	out->vendor_err = vendor_err;
	rec->active = 0;
	rec->failed = 1;
}

/* The PSN was lost on the way: at once again, unless that was tried often enough. */
static void on_loss(struct ordma_recovery *rec, const struct ordma_event_info *ev, bool counts,
		    u8 vendor_err, struct ordma_recovery_action *out)
{
	if (counts && rec->retries >= rec->retry_cnt) {
		act_fail(rec, ev, ORDMA_WC_STATUS_RETRY_EXC_ERR, vendor_err, out);
		return;
	}
	rec->retries += counts;
	rec->not_before = 0;
	act_rewind(rec, ev, 0, out);
}

static u8 fatal_nak_status(u8 syndrome)
{
	switch (syndrome) {
	case ORDMA_AETH_SYNDROME_NAK_INV_REQ:
		return ORDMA_WC_STATUS_REM_INV_REQ_ERR;
	case ORDMA_AETH_SYNDROME_NAK_ACCESS:
		return ORDMA_WC_STATUS_REM_ACCESS_ERR;
	case ORDMA_AETH_SYNDROME_NAK_OP:
		return ORDMA_WC_STATUS_REM_OP_ERR;
	default:
		/* Not a NAK that a responder of this service may send. */
		return ORDMA_WC_STATUS_BAD_RESP_ERR;
	}
}

static void on_rnr(struct ordma_recovery *rec, const struct ordma_event_info *ev, u64 now_ns,
		   struct ordma_recovery_action *out)
{
	/* The peer answered, so the path works: what silence consumed for this PSN is given back. */
	rec->retries = 0;
	if (rec->rnr_retry != ORDMA_RNR_FOREVER) {
		if (rec->rnr_retries >= rec->rnr_retry) {
			act_fail(rec, ev, ORDMA_WC_STATUS_RNR_RETRY_EXC_ERR, ev->code, out);
			return;
		}
		rec->rnr_retries++;
	}
	rec->not_before = now_ns + ordma_rnr_timer_ns(ev->code);
	act_rewind(rec, ev, rec->not_before, out);
}

static void on_silence(struct ordma_recovery *rec, const struct ordma_event_info *ev, u64 now_ns,
		       struct ordma_recovery_action *out)
{
	u64 threshold = ordma_timeout_ns(rec->timeout);

	if (!threshold) {
		out->kind = ORDMA_RECOVERY_SILENCE;
		return;
	}
	/* The RNR wait was not over, or not long enough: this silence was ordered. */
	if (rec->not_before && now_ns < rec->not_before + threshold) {
		act_rewind(rec, ev, rec->not_before > now_ns ? rec->not_before : 0, out);
		return;
	}
	on_loss(rec, ev, true, 0, out);
}

void ordma_recovery_event(struct ordma_recovery *rec, const struct ordma_event_info *ev, u64 now_ns,
			  struct ordma_recovery_action *out)
{
	bool stuck;

	memset(out, 0, sizeof(*out));
	if (!rec->active || ev->type < ORDMA_EVENT_TYPE_QP_NAK ||
	    ev->type > ORDMA_EVENT_TYPE_QP_SILENCE)
		return;
	stuck = ordma_index_diff(ev->psn, rec->una_psn) <= 0;
	note_progress(rec, ev->psn);
	rec->last_type = ev->type;
	switch (ev->type) {
	case ORDMA_EVENT_TYPE_QP_NAK:
		if (ev->code == ORDMA_AETH_SYNDROME_NAK_PSN)
			on_loss(rec, ev, stuck, ev->code, out);
		else
			act_fail(rec, ev, fatal_nak_status(ev->code), ev->code, out);
		break;
	case ORDMA_EVENT_TYPE_QP_IMPLIED_NAK:
		on_loss(rec, ev, stuck, 0, out);
		break;
	case ORDMA_EVENT_TYPE_QP_RNR:
		on_rnr(rec, ev, now_ns, out);
		break;
	default:
		on_silence(rec, ev, now_ns, out);
		break;
	}
}
