/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The portable driver core: device, rings, commands, events.
 *
 * Rules. The core allocates nothing, never sleeps, takes no lock and uses no floating point. The
 * caller provides all memory and serialises. "Any context" below includes hard interrupts: every
 * function of the core runs in bounded time.
 *
 * Four locks, all the caller's (kernel: spinlocks taken with interrupts off; a single-threaded
 * caller needs none):
 * - command lock: ordma_cmd_submit*(), ordma_cmd_complete(), ordma_cmd_destroy_complete();
 * - event lock: ordma_core_poll_events();
 * - QP lock, what qp_find() returns locked: state and recovery of one QP. Nests inside the event
 * lock;
 * - table lock: one per allocator of ordma_alloc.h.
 *
 * Besides, one sleeping lock (mutex) per QP, CQ and SRQ around check, command and done, so that two
 * modifies of one object do not interleave. ordma_core_mark_dead() and ordma_core_dead() need no
 * lock. The core never nests the command and event locks.
 *
 * Life: probe -> rings -> reset_begin .. reset_done -> start .. start_done -> (commands, events) ->
 * stop .. stop_done. A function whose name ends in _done is polled: 0 done, -EINPROGRESS not yet,
 * other errors final. The caller sleeps between.
 *
 * Dead: a command that timed out, a broken response or a fatal device marks the device dead.
 * Submits then give -EIO, destroys succeed at once, events are no longer delivered. Memory named by
 * unfinished commands or live objects may be freed only after the caller made sure that DMA is off
 * (stop_done() returned 0, or bus mastering was disabled).
 */
#ifndef ORDMA_CORE_H
#define ORDMA_CORE_H

#include "os.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ordma_qp;
struct ordma_core;

/* Same numbers as enum ibv_event_type and enum ib_event_type. */
enum ordma_async {
	ORDMA_ASYNC_QP_FATAL = 1,
	ORDMA_ASYNC_QP_REQ_ERR = 2,
	ORDMA_ASYNC_QP_ACCESS_ERR = 3,
	ORDMA_ASYNC_COMM_EST = 4,
	ORDMA_ASYNC_SQ_DRAINED = 5,
	ORDMA_ASYNC_QP_LAST_WQE = 16,
};

/*
 * What the core needs from, and reports to, its surroundings. All pointers must be set. Upward
 * calls come from ordma_core_poll_events() with the event lock held (fatal() also from
 * ordma_core_check() and from a command function, with that caller's locks held; port_event() also
 * from ordma_core_check()): they must not sleep, must not call poll_events, and may submit no
 * command. A number is checked against the limits before it is passed up, but the object may be
 * gone: look it up, and ignore what is not found.
 */
struct ordma_core_ops {
	void (*reg_write32)(void *ctx, u32 offset, u32 value);
	void (*reg_write64)(void *ctx, u32 offset, u64 value);
	u32 (*reg_read32)(void *ctx, u32 offset);
	u64 (*reg_read64)(void *ctx, u32 offset);
	/*
	 * One 8-byte store of `word` (host order here, little-endian on the bus) to a slot of
	 * DRIVER_PAGE; then the kick, if any.
	 */
	void (*doorbell)(void *ctx, u32 slot, u64 word);
	/* Unpredictable: keys and reset nonces come from here. */
	u32 (*random32)(void *ctx);

	/* Wake who waits for a ticket with ordma_cmd_slot() == slot. */
	void (*cmd_done)(void *ctx, u32 slot);
	/* Completion event: the armed CQ has a qualifying CQE. */
	void (*cq_event)(void *ctx, u32 cqn);
	/* IBV_EVENT_CQ_ERR. */
	void (*cq_error)(void *ctx, u32 cqn);
	void (*qp_async)(void *ctx, u32 qpn, enum ordma_async async);
	/* IBV_EVENT_SRQ_LIMIT_REACHED; call ordma_srq_limit_fired(). */
	void (*srq_limit)(void *ctx, u32 srqn);
	/* IBV_EVENT_SRQ_ERR. */
	void (*srq_error)(void *ctx, u32 srqn);
	void (*page_error)(void *ctx, u32 page, enum ordma_db_err reason);
	/* The link is up or down: only when that is news. */
	void (*port_event)(void *ctx, bool link_up);
	/* At most once per start; the device is already marked dead. */
	void (*fatal)(void *ctx, enum ordma_fatal reason);

	/*
	 * The QP of that number with a reference and its QP lock held, or NULL. qp_put() drops
	 * both. An interrupt may call it, so the table is RCU or an irq-safe lock.
	 */
	struct ordma_qp *(*qp_find)(void *ctx, u32 qpn);
	void (*qp_put)(void *ctx, struct ordma_qp *qp);
};

/*
 * DMA memory of the caller: va for the CPU, dma for the device, 4 KiB aligned, coherent, len bytes.
 */
struct ordma_mem {
	void *va;
	u64 dma;
	size_t len;
};

/* Limits of the device after the core's own bounds were applied; same meaning as the registers. */
struct ordma_caps {
	u16 major, minor; /* contract version */
	u32 engine, build;
	u64 bits; /* enum ordma_cap */
	u32 max_qp, max_cq, max_srq, max_mr, max_page, max_uctx;
	u32 max_sge, max_inline, max_wr, max_cqe, max_rd_atomic, max_gid, max_mcast;
	u32 data_w, port_mtu, port_speed; /* bits, bytes, Mb/s */
	u64 mac, guid;
};

/* Commands outstanding at most; a command slot is free again once its response was taken. */
#define ORDMA_CMD_RING_LOG 8
#define ORDMA_CMD_SLOTS (1u << ORDMA_CMD_RING_LOG)

/*
 * Fixed slots of DRIVER_PAGE that the core uses; the caller hands out the others (kernel queues)
 * from slot DRIVER_SLOT_FREE on.
 */
#define ORDMA_DRIVER_SLOT_CMD 0
#define ORDMA_DRIVER_SLOT_RCMD 1
#define ORDMA_DRIVER_SLOT_FREE 2

/* GIDs that the core tracks at most (the SGID index of a QP context has eight bits). */
#define ORDMA_GID_MAX 256

/* Never reported by submit; stands for a destroy that found the device dead. */
#define ORDMA_TICKET_NONE 0xffffffffu

/*
 * What went wrong in the device's writes; readers may look at any time, values are exact in the
 * event lock.
 */
struct ordma_core_stats {
	u64 events; /* taken from the ring */
	u64 events_bad; /* unknown type, number out of range, code that means nothing */
	u64 events_stale; /* of a QP that was reset or destroyed since */
	u64 recovery_events;
	u64 rewinds, fails, silences; /* recovery commands pushed */
	u64 rsp_bad; /* response with a wrong sequence number: the device is then dead */
	u64 destroy_errors; /* destroy of what the device does not know */
};

struct ordma_core_rings {
	struct ordma_mem cmd; /* ordma_core_cmd_bytes() */
	struct ordma_mem rsp; /* ordma_core_rsp_bytes() */
	struct ordma_mem rcmd; /* ordma_core_rcmd_bytes() */
	struct ordma_mem eq; /* ordma_core_eq_bytes() */
};

/* Caller-allocated; read the public part, write none of it but through functions. */
struct ordma_core {
	const struct ordma_core_ops *ops;
	void *ctx;
	struct ordma_caps caps;
	struct ordma_core_stats stats;
	u32 active_mtu; /* enum ibv_mtu 1..5: ordma_core_set_active_mtu() */
	u32 num_vectors; /* completion vectors: ordma_core_set_vectors() */

	/* private */
	u32 dead;
	u32 fatal_told;
	struct ordma_core_rings rings;
	u64 nonce;
	u32 cmd_pi;
	u32 rcmd_log, rcmd_pi;
	u32 eq_log, eq_ci;
	u64 clock_last, clock_host_ns;
	u32 clock_seen;
	u32 link_told; /* 0 nothing yet, 1 down, 2 up */
	u32 gid_valid[ORDMA_GID_MAX / 32];
	u32 gid_ipv4[ORDMA_GID_MAX / 32];
	u8 cmd_busy[ORDMA_CMD_SLOTS];
};

/*
 * Reads identity and limits. -ENODEV: not this device, another major version or impossible limits;
 * msg then says which, with both values. msg may be NULL. Clears core first. Call once, before
 * anything else; sleepable or not.
 */
int ordma_core_probe(struct ordma_core *core, const struct ordma_core_ops *ops, void *ctx,
		     char *msg, size_t msg_len);

/* Bytes of each ring after probe; the reasons for the sizes stand in core.c. */
size_t ordma_core_cmd_bytes(const struct ordma_core *core);
size_t ordma_core_rsp_bytes(const struct ordma_core *core);
size_t ordma_core_rcmd_bytes(const struct ordma_core *core);
size_t ordma_core_eq_bytes(const struct ordma_core *core);
/*
 * -EINVAL: too small or not 4 KiB aligned. The memory stays the core's until stop_done() returned 0
 * or DMA is off.
 */
int ordma_core_set_rings(struct ordma_core *core, const struct ordma_core_rings *rings);

/*
 * Reset by nonce: begin once, then poll done. -EIO: the device does not answer at all (reads as all
 * ones).
 */
void ordma_core_reset_begin(struct ordma_core *core);
int ordma_core_reset_done(struct ordma_core *core);
/*
 * Clears rings, indices and the dead mark, programs the bases and enables. Interrupts may come from
 * here on.
 */
int ordma_core_start(struct ordma_core *core);
int ordma_core_start_done(struct ordma_core *core);
/*
 * Disable; when done, the device issues no DMA. Works on a dead device too (done then may stay
 * -EINPROGRESS: give up, cut DMA).
 */
void ordma_core_stop(struct ordma_core *core);
int ordma_core_stop_done(struct ordma_core *core);

/* Any context, no lock, idempotent. */
void ordma_core_mark_dead(struct ordma_core *core);
bool ordma_core_dead(const struct ordma_core *core);
/*
 * Watchdog, to be called every second or so with host time: a fatal device, a removed one and a
 * clock that stands still for CLOCK_STALL_MS are reported once by fatal(); a link change that no
 * event told is told. Returns 0 or -EIO. One caller at a time; no other lock.
 */
int ordma_core_check(struct ordma_core *core, u64 host_now_ns);

bool ordma_core_link_up(const struct ordma_core *core);
u64 ordma_core_clock(const struct ordma_core *core); /* device time in ns */
void ordma_core_set_link(struct ordma_core *core, bool up); /* administrative state */
void ordma_core_set_active_mtu(struct ordma_core *core, u32 ibv_mtu);
void ordma_core_set_vectors(struct ordma_core *core, u32 num);
/*
 * Mirrors a successful GID_SET, so that an address vector can be checked. Called by whoever owns
 * the GID table.
 */
void ordma_core_gid_note(struct ordma_core *core, u32 index, bool valid, bool ipv4);
bool ordma_core_gid_ok(const struct ordma_core *core, u32 index);
bool ordma_core_gid_is_ipv4(const struct ordma_core *core, u32 index);

/* ---- commands (command lock) ---- */

struct ordma_rsp_result {
	u32 status; /* enum ordma_cmd_status, or what else the device wrote */
	u64 result0, result1;
};

/*
 * Puts a command (built by an encoder of ordma_cmd.h; seq and irq are filled in) into the ring and
 * rings. -EAGAIN: all slots are taken, try again after a completion. -EIO: dead. irq asks for
 * cmd_done(); a caller that polls leaves it out. Memory that the command names (context image,
 * counters) must stay until the ticket completed or DMA is off.
 */
int ordma_cmd_submit(struct ordma_core *core, const struct ordma_cmd *cmd, bool irq, u32 *ticket);
/*
 * -EINPROGRESS: no response yet. 0: *out is valid and the ticket is used up; out->status may still
 * be an error, see ordma_status_to_errno(). -EIO: dead (also when this very response was broken).
 * -EINVAL: not a ticket that is out.
 */
int ordma_cmd_complete(struct ordma_core *core, u32 ticket, struct ordma_rsp_result *out);
/*
 * The same for destroy commands, which cannot fail: submit gives 0 or -EAGAIN, complete gives 0 or
 * -EINPROGRESS, whatever the device says; on a dead device both give 0 at once. A ring full of
 * commands drains or its device is declared dead, so -EAGAIN ends. A device that refuses to destroy
 * (other than: no such object) may still use the object's memory: it is then dead, and the rule
 * above holds: before freeing memory after a destroy, test ordma_core_dead() and cut DMA first if
 * it is.
 */
int ordma_cmd_submit_destroy(struct ordma_core *core, const struct ordma_cmd *cmd, bool irq,
			     u32 *ticket);
int ordma_cmd_destroy_complete(struct ordma_core *core, u32 ticket);

static inline u32 ordma_cmd_slot(u32 ticket)
{
	return ticket & (ORDMA_CMD_SLOTS - 1);
}

/* Negative errno of a status; -EIO for what the contract does not know. */
int ordma_status_to_errno(u32 status);

/* ---- events (event lock) ---- */

/*
 * Takes at most budget events and dispatches them; recovery actions go to the recovery ring.
 * Returns how many were taken: equal to budget means that more may wait. Any context. Call it from
 * the interrupt of vector 0 (and of CQ vectors), or after a step of the engine; after the last call
 * of a batch test ordma_core_events_pending() if interrupts are edge-triggered.
 */
unsigned int ordma_core_poll_events(struct ordma_core *core, unsigned int budget);
bool ordma_core_events_pending(const struct ordma_core *core);

/* ---- counters ---- */

#define ORDMA_NUM_COUNTERS (ORDMA_COUNTER_REWINDS + 1)
/* hw_counters name of a device counter, NULL beyond ORDMA_NUM_COUNTERS. */
const char *ordma_counter_name(unsigned int counter);

#ifdef __cplusplus
}
#endif

#endif /* ORDMA_CORE_H */
