// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Commands from submit to response, and the number allocators. */
#include <linux/jiffies.h>
#include <linux/mm.h>

#include "hw.h"

/* A device whose clock stands still is declared dead earlier by the watchdog; this bounds one that runs and does not answer. */
#define ORDMA_CMD_TIMEOUT (30 * HZ)
/* Waiters also look by themselves now and then, so that a lost interrupt costs time and not the device. */
#define ORDMA_CMD_LOOK (HZ / 4)

struct ordma_call {
	const struct ordma_cmd *cmd;
	struct ordma_rsp_result *res; /* NULL: a destroy */
	u32 ticket;
	bool submitted;
};

/* -EINPROGRESS until the command is through. */
static int ordma_step(struct ordma_dev *dev, struct ordma_call *call)
{
	struct ordma_core *core = &dev->core;
	int err;

	spin_lock_bh(&dev->cmd_lock);
	if (call->submitted) {
		err = call->res ? ordma_cmd_complete(core, call->ticket, call->res) :
				  ordma_cmd_destroy_complete(core, call->ticket);
	} else {
		err = call->res ? ordma_cmd_submit(core, call->cmd, true, &call->ticket) :
				  ordma_cmd_submit_destroy(core, call->cmd, true, &call->ticket);
		call->submitted = !err;
		if (!err || err == -EAGAIN)
			err = -EINPROGRESS;
	}
	spin_unlock_bh(&dev->cmd_lock);
	return err;
}

static int ordma_run(struct ordma_dev *dev, struct ordma_call *call)
{
	unsigned long end = jiffies + ORDMA_CMD_TIMEOUT;
	int err;

	might_sleep();
	while (!wait_event_timeout(dev->cmd_wait, (err = ordma_step(dev, call)) != -EINPROGRESS, ORDMA_CMD_LOOK)) {
		if (time_before(jiffies, end) || ordma_core_dead(&dev->core))
			continue;
		dev_err(ordma_dma_device(dev), "command %u on %u timed out\n", (u32)ORDMA_GET(call->cmd, CMD_OPCODE),
			(u32)ORDMA_GET(call->cmd, CMD_NUMBER));
		ordma_hw_dead(dev);
	}
	/* A slot may have become free for who waits to submit. */
	if (waitqueue_active(&dev->cmd_wait))
		wake_up_all(&dev->cmd_wait);
	return err;
}

int ordma_exec(struct ordma_dev *dev, const struct ordma_cmd *cmd, struct ordma_rsp_result *res)
{
	struct ordma_rsp_result local;
	struct ordma_call call = { .cmd = cmd, .res = res ? res : &local };
	int err = ordma_run(dev, &call);

	/* Its memory must not go while a device that never answered may still read or write it. */
	if (err == -EIO && call.submitted)
		wait_for_completion(&dev->dma_off);
	return err ? err : ordma_status_to_errno(call.res->status);
}

void ordma_exec_destroy(struct ordma_dev *dev, const struct ordma_cmd *cmd)
{
	struct ordma_call call = { .cmd = cmd };

	ordma_run(dev, &call);
	if (ordma_core_dead(&dev->core))
		wait_for_completion(&dev->dma_off);
}

/* ------------------------------------------------------------------------------------------------------------ numbers */

static int ordma_ids_one(struct ordma_dev *dev, struct ordma_ids_lock *ids, enum ordma_ids_kind kind)
{
	size_t len = ordma_ids_bytes(&dev->core, kind);

	spin_lock_init(&ids->lock);
	ids->mem = kvzalloc(len, GFP_KERNEL);
	if (!ids->mem)
		return -ENOMEM;
	return ordma_ids_init(&ids->ids, &dev->core, kind, ids->mem, len);
}

int ordma_ids_setup(struct ordma_dev *dev)
{
	return ordma_ids_one(dev, &dev->qpns, ORDMA_IDS_QPN) ?: ordma_ids_one(dev, &dev->mkeys, ORDMA_IDS_MKEY) ?:
	       ordma_ids_one(dev, &dev->cqns, ORDMA_IDS_CQN) ?: ordma_ids_one(dev, &dev->srqns, ORDMA_IDS_SRQN) ?:
	       ordma_ids_one(dev, &dev->pdns, ORDMA_IDS_PDN) ?: ordma_ids_one(dev, &dev->pages, ORDMA_IDS_PAGE) ?:
	       ordma_ids_one(dev, &dev->uctxs, ORDMA_IDS_UCTX);
}

void ordma_ids_cleanup(struct ordma_dev *dev)
{
	kvfree(dev->qpns.mem);
	kvfree(dev->mkeys.mem);
	kvfree(dev->cqns.mem);
	kvfree(dev->srqns.mem);
	kvfree(dev->pdns.mem);
	kvfree(dev->pages.mem);
	kvfree(dev->uctxs.mem);
}

int ordma_id_get(struct ordma_ids_lock *ids, u32 *number)
{
	int err;

	spin_lock(&ids->lock);
	err = ordma_ids_get(&ids->ids, number);
	spin_unlock(&ids->lock);
	return err;
}

void ordma_id_put(struct ordma_ids_lock *ids, u32 number)
{
	spin_lock(&ids->lock);
	WARN_ON(!ordma_ids_put(&ids->ids, number));
	spin_unlock(&ids->lock);
}
