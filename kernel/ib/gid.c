// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The NIC's GID table follows the core's: it is the only source of MAC, VLAN and IP addresses that a packet can have. */
#include <linux/if_vlan.h>
#include <rdma/ib_cache.h>

#include "ordma_ib.h"

static int ordma_gid_set(struct ordma_dev *dev, u32 index, const struct ordma_gid_entry *entry)
{
	struct ordma_cmd cmd;
	int err;

	ordma_cmd_gid_set(&cmd, index, entry);
	err = ordma_exec(dev, &cmd, NULL);
	if (!err)
		ordma_core_gid_note(&dev->core, index, entry->valid, ordma_gid_is_ipv4(entry->gid));
	return err;
}

int ordma_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct ordma_dev *dev = to_odev(attr->device);
	struct ordma_gid_entry entry = { .valid = true };
	u16 vlan;
	int err;

	err = rdma_read_gid_l2_fields(attr, &vlan, entry.mac);
	if (err)
		return err;
	memcpy(entry.gid, attr->gid.raw, sizeof(entry.gid));
	if (vlan < VLAN_N_VID) {
		entry.has_vlan = true;
		entry.vlan = vlan;
	}
	return ordma_gid_check(&dev->core, attr->index, &entry) ?: ordma_gid_set(dev, attr->index, &entry);
}

int ordma_del_gid(const struct ib_gid_attr *attr, void **context)
{
	static const struct ordma_gid_entry none;
	struct ordma_dev *dev = to_odev(attr->device);
	int err = ordma_gid_set(dev, attr->index, &none);

	/* A dead device has no table any more; the core's entry must go all the same. */
	return ordma_core_dead(&dev->core) ? 0 : err;
}
