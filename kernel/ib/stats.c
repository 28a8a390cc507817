// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* hw_counters: what the device counts, then what the driver saw go wrong in the device's writes. */
#include <linux/slab.h>

#include "ordma_ib.h"

static const struct ordma_own_counter {
	const char *name;
	size_t offset; /* in struct ordma_core_stats */
} ordma_own_counters[] = {
	{ "driver_events", offsetof(struct ordma_core_stats, events) },
	{ "driver_events_bad", offsetof(struct ordma_core_stats, events_bad) },
	{ "driver_events_stale", offsetof(struct ordma_core_stats, events_stale) },
	{ "driver_recovery_events", offsetof(struct ordma_core_stats, recovery_events) },
	{ "driver_rewinds", offsetof(struct ordma_core_stats, rewinds) },
	{ "driver_fails", offsetof(struct ordma_core_stats, fails) },
	{ "driver_rsp_bad", offsetof(struct ordma_core_stats, rsp_bad) },
	{ "driver_destroy_errors", offsetof(struct ordma_core_stats, destroy_errors) },
};

#define ORDMA_STATS (ORDMA_NUM_COUNTERS + ARRAY_SIZE(ordma_own_counters))

/* Filled at the first registration and never changed: the names are the same for all devices. */
static struct rdma_stat_desc ordma_stat_descs[ORDMA_STATS];

struct rdma_hw_stats *ordma_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	unsigned int i;

	for (i = 0; i < ORDMA_STATS; i++)
		WRITE_ONCE(ordma_stat_descs[i].name, i < ORDMA_NUM_COUNTERS ?
			   ordma_counter_name(i) : ordma_own_counters[i - ORDMA_NUM_COUNTERS].name);
	return rdma_alloc_hw_stats_struct(ordma_stat_descs, ORDMA_STATS, RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int ordma_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct ordma_dev *dev = to_odev(ibdev);
	struct ordma_cmd cmd;
	unsigned int i;
	int err;

	if (!port)
		return -EOPNOTSUPP;
	mutex_lock(&dev->counters_lock);
	ordma_cmd_counters(&cmd, dev->counters_dma, ORDMA_NUM_COUNTERS);
	err = ordma_exec(dev, &cmd, NULL);
	/* What the dead device had written last is still there and still true. */
	if (!err || ordma_core_dead(&dev->core)) {
		for (i = 0; i < ORDMA_NUM_COUNTERS; i++)
			stats->value[i] = le64_to_cpu(dev->counters[i]);
		err = 0;
	}
	mutex_unlock(&dev->counters_lock);
	for (i = 0; !err && i < ARRAY_SIZE(ordma_own_counters); i++)
		stats->value[ORDMA_NUM_COUNTERS + i] =
			READ_ONCE(*(u64 *)((u8 *)&dev->core.stats + ordma_own_counters[i].offset));
	return err ? err : ORDMA_STATS;
}
