// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Multicast groups of a UD QP. However often a QP attaches to a group, the device knows it once. */
#include <linux/slab.h>

#include "ordma_ib.h"

struct ordma_group {
	struct list_head list;
	union ib_gid gid;
	u32 count;
};

static struct ordma_group *ordma_group_find(struct ordma_ibqp *qp, const union ib_gid *gid)
{
	struct ordma_group *group;

	list_for_each_entry(group, &qp->mcasts, list)
		if (!memcmp(&group->gid, gid, sizeof(*gid)))
			return group;
	return NULL;
}

static int ordma_mcast_cmd(struct ordma_ibqp *qp, const union ib_gid *gid, bool attach)
{
	struct ordma_dev *dev = qp->hwqp.dev;
	struct ordma_cmd cmd;

	ordma_cmd_mcast(&cmd, &qp->hwqp.qp, gid->raw, attach);
	if (attach)
		return ordma_exec(dev, &cmd, NULL);
	ordma_exec_destroy(dev, &cmd);
	return 0;
}

static int ordma_do_attach(struct ordma_ibqp *qp, const union ib_gid *gid)
{
	struct ordma_group *group = ordma_group_find(qp, gid);
	int err;

	if (group) {
		group->count++;
		return 0;
	}
	group = kzalloc(sizeof(*group), GFP_KERNEL);
	if (!group)
		return -ENOMEM;
	group->gid = *gid;
	group->count = 1;
	err = ordma_mcast_cmd(qp, gid, true);
	if (err)
		kfree(group);
	else
		list_add(&group->list, &qp->mcasts);
	return err;
}

int ordma_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct ordma_ibqp *qp = to_oqp(ibqp);
	int err;

	err = ordma_mcast_check(&qp->hwqp.dev->core, &qp->hwqp.qp, gid->raw);
	if (err)
		return err;
	mutex_lock(&qp->hwqp.lock);
	err = ordma_do_attach(qp, gid);
	mutex_unlock(&qp->hwqp.lock);
	return err;
}

int ordma_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct ordma_ibqp *qp = to_oqp(ibqp);
	struct ordma_group *group;
	int err = -EINVAL;

	mutex_lock(&qp->hwqp.lock);
	group = ordma_group_find(qp, gid);
	if (group) {
		err = 0;
		if (!--group->count) {
			err = ordma_mcast_cmd(qp, gid, false);
			list_del(&group->list);
			kfree(group);
		}
	}
	mutex_unlock(&qp->hwqp.lock);
	return err;
}
