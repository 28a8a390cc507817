/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Loss recovery policy of one RC QP: a pure state machine. The NIC detects and stops (freezes the
 * QP, writes one event); this decides whether to send again, to wait or to give up. No register,
 * ring or clock is touched here: what happened and when comes in, one action comes out. The same
 * code runs in the module, the soft-device and simulation.
 *
 * Caller holds the QP lock. Counters: `retries` counts attempts since the last progress of the
 * oldest unacknowledged PSN and is bounded by retry_cnt; `rnr_retries` likewise by rnr_retry (7 =
 * for ever). RNR never consumes retry_cnt. A QP therefore makes at most (retry_cnt + 1) *
 * (rnr_retry + 1) attempts without progress, and with nothing but silence fails after retry_cnt + 1
 * thresholds.
 */
#ifndef ORDMA_RECOVERY_H
#define ORDMA_RECOVERY_H

#include "os.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORDMA_RETRY_MAX 7
#define ORDMA_RNR_FOREVER 7
#define ORDMA_TIMEOUT_MAX 31
#define ORDMA_RNR_TIMER_MAX 31

/* Decoded event, host order. */
struct ordma_event_info {
	u8 type; /* enum ordma_event_type */
	u8 code; /* AETH syndrome of NAK and RNR */
	u32 number;
	u32 psn; /* oldest unacknowledged PSN */
	u32 log_index; /* order-log index of the message that holds psn */
	u64 time; /* device time in ns */
};

enum ordma_recovery_kind {
	ORDMA_RECOVERY_NONE, /* nothing to do; the event's sticky bit is no longer of interest */
	ORDMA_RECOVERY_REWIND, /* QP_REWIND log_index psn not_before */
	ORDMA_RECOVERY_FAIL, /* QP_FAIL psn status vendor_err */
	ORDMA_RECOVERY_SILENCE, /* QP_SILENCE threshold: the QP was not to be watched */
};

struct ordma_recovery_action {
	enum ordma_recovery_kind kind;
	u32 log_index;
	u32 psn;
	u64 not_before; /* device time, 0 at once */
	u8 status; /* enum ordma_wc_status */
	u8 vendor_err;
	u64 threshold;
};

struct ordma_recovery {
	u8 active; /* RC QP in RTS or SQD, not failed */
	u8 failed; /* QP_FAIL was asked for: nothing more until reset */
	u8 retry_cnt, rnr_retry, timeout; /* as set by the user */
	u8 retries, rnr_retries; /* consumed since the last progress */
	u8 last_type; /* last recovery event, for reports */
	u32 una_psn; /* oldest unacknowledged PSN at the last event */
	u64 not_before; /* device time until which an RNR wait lasts; 0 none */
	u64 total_rewinds;
};

/* RTR -> RTS: all counters zero, watching from sq_psn on. */
void ordma_recovery_start(struct ordma_recovery *rec, u32 sq_psn, u8 retry_cnt, u8 rnr_retry,
			  u8 timeout);
/* New limits (SQD -> SQD); consumed counts stay. */
void ordma_recovery_set(struct ordma_recovery *rec, u8 retry_cnt, u8 rnr_retry, u8 timeout);
/* RESET, ERR, SQE, destroy. */
void ordma_recovery_clear(struct ordma_recovery *rec);

/*
 * One event in, one action out. Any other event type, or a QP that is not watched, gives
 * ORDMA_RECOVERY_NONE.
 */
void ordma_recovery_event(struct ordma_recovery *rec, const struct ordma_event_info *ev, u64 now_ns,
			  struct ordma_recovery_action *out);

/* 4096 ns * 2^timeout; 0 (never) for timeout 0. */
u64 ordma_timeout_ns(u8 timeout);
/* The 32 RNR NAK timer codes in ns. */
u64 ordma_rnr_timer_ns(u8 code);

#ifdef __cplusplus
}
#endif

#endif /* ORDMA_RECOVERY_H */
