// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device: identity and limits, rings, reset, start, stop, watchdog. */
#include "core_priv.h"

/*
 * Largest event ring. Its memory is contiguous, and 4 MiB is what the page allocator of a small
 * kernel gives at most. A device with more sources than that gets fewer of its objects used, never
 * a ring that is too small.
 */
#define EQ_LOG_MAX 17
/*
 * Events one QP can have outstanding: recovery (one common bit), QP_ERROR, SQ_DRAINED, COMM_EST,
 * LAST_WQE, one fatal async code.
 */
#define EQ_PER_QP 6

/* The largest values that the widths of the contract's fields and index arithmetic leave. */
#define LIMIT_QP (1u << ORDMA_QPN_INDEX_BITS)
#define LIMIT_MR (1u << ORDMA_MKEY_INDEX_BITS)
#define LIMIT_TABLE (1u << 16)
/* Fewer, because each page is an event source and is not reduced to fit the event ring. */
#define LIMIT_PAGE (1u << 14)
/* A CQE names a WQE by the low 16 bits of its index: half that range tells full from empty. */
#define LIMIT_WR (1u << 15)
#define LIMIT_CQE (1u << (ORDMA_INDEX_BITS - 1))
#define LIMIT_RD_ATOMIC 128
/* SGEs and inline bytes behind an address vector in the largest WQE. */
#define LIMIT_INLINE ((1u << ORDMA_SQ_STRIDE_LOG_MAX) - ORDMA_WQE_UD_DATA_OFF)
#define LIMIT_SGE (LIMIT_INLINE / ORDMA_SGE_BYTES)
/* The smallest path MTU with its headers must fit the port. */
#define PORT_MTU_MIN 512

struct text {
	char *p;
	size_t left;
};

static void put_char(struct text *t, char c)
{
	if (t->left > 1) {
		*t->p++ = c;
		t->left--;
		*t->p = 0;
	}
}

static void put_str(struct text *t, const char *s)
{
	while (*s)
		put_char(t, *s++);
}

static void put_hex(struct text *t, u64 v)
{
	int shift = 60;

	put_str(t, "0x");
	while (shift > 0 && !(v >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		put_char(t, "0123456789abcdef"[(v >> shift) & 0xf]);
}

static void put_dec(struct text *t, u32 v)
{
	u32 unit = 1;

	while (v / unit >= 10)
		unit *= 10;
	for (; unit; unit /= 10)
		put_char(t, (char)('0' + v / unit % 10));
}

static void put_version(struct text *t, u32 major, u32 minor)
{
	put_dec(t, major);
	put_char(t, '.');
	put_dec(t, minor);
}

static int check_identity(struct ordma_core *core, struct text *t)
{
	u64 magic = core->ops->reg_read64(core->ctx, ORDMA_REG_MAGIC);
	u64 version = core->ops->reg_read64(core->ctx, ORDMA_REG_VERSION);

	if (magic != ORDMA_MAGIC) {
		put_str(t, "not an ordma device: magic ");
		put_hex(t, magic);
		put_str(t, ", expected ");
		put_hex(t, ORDMA_MAGIC);
		return -ENODEV;
	}
	core->caps.major = (u16)(version >> 16);
	core->caps.minor = (u16)version;
	if (version >> 16 != ORDMA_CONTRACT_MAJOR) {
		put_str(t, "device speaks contract ");
		put_version(t, (u32)(version >> 16), (u16)version);
		put_str(t, ", driver speaks ");
		put_version(t, ORDMA_CONTRACT_MAJOR, ORDMA_CONTRACT_MINOR);
		return -ENODEV;
	}
	return 0;
}

/* One limit: below `least` the device is unusable, above `most` the rest lies idle. */
struct limit {
	u16 reg;
	u16 offset; /* in struct ordma_caps */
	u32 least, most;
	bool pow2; /* queues have power-of-two sizes */
	const char *name;
};

#define CAP(field) ((u16)offsetof(struct ordma_caps, field))

static const struct limit limits[] = {
	{ ORDMA_REG_MAX_QP, CAP(max_qp), 3, LIMIT_QP, false, "MAX_QP" },
	{ ORDMA_REG_MAX_CQ, CAP(max_cq), 2, LIMIT_TABLE, false, "MAX_CQ" },
	{ ORDMA_REG_MAX_SRQ, CAP(max_srq), 0, LIMIT_TABLE, false, "MAX_SRQ" },
	{ ORDMA_REG_MAX_MR, CAP(max_mr), 3, LIMIT_MR, false, "MAX_MR" },
	{ ORDMA_REG_MAX_PAGE, CAP(max_page), 2, LIMIT_PAGE, false, "MAX_PAGE" },
	{ ORDMA_REG_MAX_UCTX, CAP(max_uctx), 1, LIMIT_TABLE, false, "MAX_UCTX" },
	{ ORDMA_REG_MAX_SGE, CAP(max_sge), 1, LIMIT_SGE, false, "MAX_SGE" },
	{ ORDMA_REG_MAX_INLINE, CAP(max_inline), 0, LIMIT_INLINE, false, "MAX_INLINE" },
	{ ORDMA_REG_MAX_WR, CAP(max_wr), 1, LIMIT_WR, true, "MAX_WR" },
	{ ORDMA_REG_MAX_CQE, CAP(max_cqe), 1, LIMIT_CQE, true, "MAX_CQE" },
	{ ORDMA_REG_MAX_RD_ATOMIC, CAP(max_rd_atomic), 0, LIMIT_RD_ATOMIC, false, "MAX_RD_ATOMIC" },
	{ ORDMA_REG_MAX_GID, CAP(max_gid), 1, ORDMA_GID_MAX, false, "MAX_GID" },
	{ ORDMA_REG_MAX_MCAST, CAP(max_mcast), 0, LIMIT_TABLE, false, "MAX_MCAST" },
	{ ORDMA_REG_PORT_MTU, CAP(port_mtu), PORT_MTU_MIN, 65535, false, "PORT_MTU" },
	{ ORDMA_REG_DATA_W, CAP(data_w), 0, 0xffffffff, false, "DATA_W" },
	{ ORDMA_REG_PORT_SPEED, CAP(port_speed), 0, 0xffffffff, false, "PORT_SPEED" },
};

static int read_limits(struct ordma_core *core, struct text *t)
{
	unsigned int i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct limit *l = &limits[i];
		u32 v = core->ops->reg_read32(core->ctx, l->reg);
		u32 use = ordma_min32(v, l->most);

		if (v < l->least) {
			put_str(t, "device limit ");
			put_str(t, l->name);
			put_str(t, " is ");
			put_dec(t, v);
			put_str(t, ", at least ");
			put_dec(t, l->least);
			put_str(t, " is needed");
			return -ENODEV;
		}
		if (l->pow2 && use & (use - 1))
			use = 1u << (ordma_log2_up(use) - 1);
		memcpy((u8 *)&core->caps + l->offset, &use, sizeof(use));
	}
	return 0;
}

/*
 * Events of everything but CQ_FIRE, each at most once outstanding because its sticky bit is
 * re-armed by the driver.
 */
static u64 eq_sources(const struct ordma_caps *c)
{
	return (u64)c->max_qp * EQ_PER_QP + c->max_cq + 2ULL * c->max_srq + c->max_page +
	       ORDMA_CMD_SLOTS + 1;
}

/*
 * Users re-arm CQs without the driver, so CQ_FIRE has no such bound; the device holds it back while
 * the ring is more than half full. Twice the other sources (and the one CQ_FIRE that just fitted)
 * therefore never overflows.
 */
static u64 eq_entries(const struct ordma_caps *c)
{
	return 2 * (eq_sources(c) + 1);
}

static void fit_event_ring(struct ordma_caps *c)
{
	while (eq_entries(c) > (1u << EQ_LOG_MAX)) {
		if ((u64)c->max_qp * EQ_PER_QP >= c->max_cq &&
		    c->max_qp * EQ_PER_QP >= 2 * c->max_srq)
			c->max_qp /= 2;
		else if (c->max_cq >= 2 * c->max_srq)
			c->max_cq /= 2;
		else
			c->max_srq /= 2;
	}
}

int ordma_core_probe(struct ordma_core *core, const struct ordma_core_ops *ops, void *ctx,
		     char *msg, size_t msg_len)
{
	struct text t = { msg, msg ? msg_len : 0 };
	u64 build;
	int err;

	if (t.left)
		*t.p = 0;
	memset(core, 0, sizeof(*core));
	core->ops = ops;
	core->ctx = ctx;
	core->active_mtu = 1;
	core->num_vectors = 1;
	err = check_identity(core, &t);
	if (!err)
		err = read_limits(core, &t);
	if (err)
		return err;
	build = ops->reg_read64(ctx, ORDMA_REG_BUILD);
	core->caps.engine = (u32)(build >> 32);
	core->caps.build = (u32)build;
	core->caps.bits = ops->reg_read64(ctx, ORDMA_REG_CAPS);
	core->caps.mac = ops->reg_read64(ctx, ORDMA_REG_MAC);
	core->caps.guid = ops->reg_read64(ctx, ORDMA_REG_GUID);
	if (!core->caps.guid) {
		put_str(&t, "device has no node GUID");
		return -ENODEV;
	}
	if (core->caps.max_srq < 2)
		core->caps.bits &= ~(u64)ORDMA_CAP_SRQ;
	fit_event_ring(&core->caps);
	core->rcmd_log = ordma_log2_up(core->caps.max_qp);
	core->eq_log = ordma_log2_up(eq_entries(&core->caps));
	return 0;
}

size_t ordma_core_cmd_bytes(const struct ordma_core *core)
{
	(void)core;
	return (size_t)ORDMA_CMD_BYTES << ORDMA_CMD_RING_LOG;
}

size_t ordma_core_rsp_bytes(const struct ordma_core *core)
{
	(void)core;
	return (size_t)ORDMA_RSP_BYTES << ORDMA_CMD_RING_LOG;
}

/*
 * One entry per QP table entry is enough, although nobody tells how far the device has read. A
 * recovery command is pushed only for an event; NAK, RNR, implied NAK and silence of one QP share
 * one sticky bit, which only the execution of that command (or a reset or destroy of the QP)
 * re-arms; and the device empties the recovery ring before it takes a next command of the command
 * ring, so a reset, destroy or re-creation cannot overtake it. Hence at most one unread entry per
 * QP table entry.
 */
size_t ordma_core_rcmd_bytes(const struct ordma_core *core)
{
	return (size_t)ORDMA_CMD_BYTES << core->rcmd_log;
}

size_t ordma_core_eq_bytes(const struct ordma_core *core)
{
	return (size_t)ORDMA_EVENT_BYTES << core->eq_log;
}

static bool mem_ok(const struct ordma_mem *mem, size_t need)
{
	return mem->va && mem->len >= need && !(mem->dma & 4095);
}

int ordma_core_set_rings(struct ordma_core *core, const struct ordma_core_rings *rings)
{
	if (!mem_ok(&rings->cmd, ordma_core_cmd_bytes(core)) ||
	    !mem_ok(&rings->rsp, ordma_core_rsp_bytes(core)) ||
	    !mem_ok(&rings->rcmd, ordma_core_rcmd_bytes(core)) ||
	    !mem_ok(&rings->eq, ordma_core_eq_bytes(core)))
		return -EINVAL;
	core->rings = *rings;
	return 0;
}

void ordma_core_reset_begin(struct ordma_core *core)
{
	u64 old = core->ops->reg_read64(core->ctx, ORDMA_REG_RESET_ECHO);

	/* Neither zero, nor all ones (which is what a removed device echoes), nor the last one. */
	core->nonce = (u64)core->ops->random32(core->ctx) << 32 | 1;
	if (core->nonce == old)
		core->nonce ^= 2;
	core->ops->reg_write64(core->ctx, ORDMA_REG_ENABLE, 0);
	core->ops->reg_write64(core->ctx, ORDMA_REG_RESET, core->nonce);
}

int ordma_core_reset_done(struct ordma_core *core)
{
	u64 echo = core->ops->reg_read64(core->ctx, ORDMA_REG_RESET_ECHO);

	if (echo == core->nonce)
		return 0;
	return echo == ORDMA_REG_GONE ? -EIO : -EINPROGRESS;
}

int ordma_core_start(struct ordma_core *core)
{
	const struct ordma_core_ops *ops = core->ops;
	void *ctx = core->ctx;

	if (!core->rings.cmd.va)
		return -EINVAL;
	memset(core->rings.cmd.va, 0, ordma_core_cmd_bytes(core));
	memset(core->rings.rsp.va, 0, ordma_core_rsp_bytes(core));
	memset(core->rings.rcmd.va, 0, ordma_core_rcmd_bytes(core));
	memset(core->rings.eq.va, 0, ordma_core_eq_bytes(core));
	memset(core->cmd_busy, 0, sizeof(core->cmd_busy));
	memset(core->gid_valid, 0, sizeof(core->gid_valid));
	core->cmd_pi = 0;
	core->rcmd_pi = 0;
	core->eq_ci = 0;
	core->clock_seen = 0;
	core->link_told = 0;
	core->fatal_told = 0;
	ordma_write_once32(&core->dead, 0);
	ops->reg_write64(ctx, ORDMA_REG_CMD_BASE, core->rings.cmd.dma);
	ops->reg_write64(ctx, ORDMA_REG_CMD_RSP, core->rings.rsp.dma);
	ops->reg_write32(ctx, ORDMA_REG_CMD_LOG, ORDMA_CMD_RING_LOG);
	ops->reg_write32(ctx, ORDMA_REG_RCMD_LOG, core->rcmd_log);
	ops->reg_write64(ctx, ORDMA_REG_RCMD_BASE, core->rings.rcmd.dma);
	ops->reg_write64(ctx, ORDMA_REG_EQ_BASE, core->rings.eq.dma);
	ops->reg_write32(ctx, ORDMA_REG_EQ_LOG, core->eq_log);
	ops->reg_write32(ctx, ORDMA_REG_EQ_CI, 0);
	/* The cleared rings are visible before the device may look at them. */
	ordma_wmb();
	ops->reg_write64(ctx, ORDMA_REG_ENABLE, 1);
	return 0;
}

int ordma_core_start_done(struct ordma_core *core)
{
	u64 status = core->ops->reg_read64(core->ctx, ORDMA_REG_STATUS);

	if (status == ORDMA_REG_GONE || status & ORDMA_STATUS_FATAL)
		return -EIO;
	return status & ORDMA_STATUS_READY ? 0 : -EINPROGRESS;
}

void ordma_core_stop(struct ordma_core *core)
{
	ordma_core_mark_dead(core);
	core->ops->reg_write64(core->ctx, ORDMA_REG_ENABLE, 0);
}

int ordma_core_stop_done(struct ordma_core *core)
{
	u64 status = core->ops->reg_read64(core->ctx, ORDMA_REG_STATUS);

	/* A device that is gone does no DMA either. */
	if (status == ORDMA_REG_GONE)
		return 0;
	return status & ORDMA_STATUS_READY ? -EINPROGRESS : 0;
}

void ordma_core_mark_dead(struct ordma_core *core)
{
	ordma_write_once32(&core->dead, 1);
}

bool ordma_core_dead(const struct ordma_core *core)
{
	return ordma_read_once32(&core->dead);
}

void ordma_core_fatal(struct ordma_core *core, enum ordma_fatal reason)
{
	ordma_core_mark_dead(core);
	if (!ordma_xchg32(&core->fatal_told, 1))
		core->ops->fatal(core->ctx, reason);
}

void ordma_core_tell_link(struct ordma_core *core, u64 status)
{
	u32 now = status & ORDMA_STATUS_LINK ? 2 : 1;

	if (ordma_xchg32(&core->link_told, now) != now)
		core->ops->port_event(core->ctx, now == 2);
}

/* The reason is the device's word: only known ones become an enum. */
static enum ordma_fatal fatal_reason(u64 status)
{
	u32 reason = (status >> 8) & 0xff;

	if (reason == ORDMA_FATAL_NONE || reason > ORDMA_FATAL_INTERNAL)
		return ORDMA_FATAL_INTERNAL;
	return (enum ordma_fatal)reason;
}

int ordma_core_check(struct ordma_core *core, u64 host_now_ns)
{
	u64 status, clock;

	if (ordma_core_dead(core))
		return -EIO;
	status = core->ops->reg_read64(core->ctx, ORDMA_REG_STATUS);
	clock = core->ops->reg_read64(core->ctx, ORDMA_REG_CLOCK);
	if (status == ORDMA_REG_GONE) {
		ordma_core_fatal(core, ORDMA_FATAL_INTERNAL);
		return -EIO;
	}
	if (status & ORDMA_STATUS_FATAL) {
		ordma_core_fatal(core, fatal_reason(status));
		return -EIO;
	}
	if (!core->clock_seen || clock != core->clock_last || host_now_ns < core->clock_host_ns) {
		core->clock_seen = 1;
		core->clock_last = clock;
		core->clock_host_ns = host_now_ns;
	} else if (host_now_ns - core->clock_host_ns >= ORDMA_CLOCK_STALL_MS * 1000000ULL) {
		ordma_core_fatal(core, ORDMA_FATAL_CLOCK);
		return -EIO;
	}
	ordma_core_tell_link(core, status);
	return 0;
}

bool ordma_core_link_up(const struct ordma_core *core)
{
	u64 status = core->ops->reg_read64(core->ctx, ORDMA_REG_STATUS);

	return status != ORDMA_REG_GONE && status & ORDMA_STATUS_LINK;
}

u64 ordma_core_clock(const struct ordma_core *core)
{
	return core->ops->reg_read64(core->ctx, ORDMA_REG_CLOCK);
}

void ordma_core_set_link(struct ordma_core *core, bool up)
{
	core->ops->reg_write32(core->ctx, ORDMA_REG_LINK_CTRL, up);
}

void ordma_core_set_active_mtu(struct ordma_core *core, u32 ibv_mtu)
{
	ordma_write_once32(&core->active_mtu, ordma_max32(1, ordma_min32(ibv_mtu, 5)));
}

void ordma_core_set_vectors(struct ordma_core *core, u32 num)
{
	core->num_vectors = ordma_max32(1, num);
}

static void set_bit32(u32 *map, u32 bit, bool on)
{
	u32 word = ordma_read_once32(&map[bit / 32]) & ~(1u << bit % 32);

	ordma_write_once32(&map[bit / 32], word | (u32)on << bit % 32);
}

static bool get_bit32(const u32 *map, u32 bit)
{
	return ordma_read_once32(&map[bit / 32]) >> bit % 32 & 1;
}

void ordma_core_gid_note(struct ordma_core *core, u32 index, bool valid, bool ipv4)
{
	if (index >= core->caps.max_gid)
		return;
	set_bit32(core->gid_ipv4, index, ipv4);
	set_bit32(core->gid_valid, index, valid);
}

bool ordma_core_gid_ok(const struct ordma_core *core, u32 index)
{
	return index < core->caps.max_gid && get_bit32(core->gid_valid, index);
}

bool ordma_core_gid_is_ipv4(const struct ordma_core *core, u32 index)
{
	return index < core->caps.max_gid && get_bit32(core->gid_ipv4, index);
}
