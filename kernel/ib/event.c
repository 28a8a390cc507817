// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Interrupts, and what the driver core asks of its surroundings. */
#include <linux/interrupt.h>
#include <linux/random.h>

#include "hw.h"

#define ORDMA_EVENT_BUDGET 64

/* ------------------------------------------------------------------------------------------------- registers, doorbell */

static void ordma_op_write32(void *ctx, u32 offset, u32 value)
{
	struct ordma_dev *dev = ctx;

	writel(value, dev->bar + offset);
	ordma_kick(dev);
}

static void ordma_op_write64(void *ctx, u32 offset, u64 value)
{
	struct ordma_dev *dev = ctx;

	writeq(value, dev->bar + offset);
	ordma_kick(dev);
}

static u32 ordma_op_read32(void *ctx, u32 offset)
{
	struct ordma_dev *dev = ctx;

	return readl(dev->bar + offset);
}

static u64 ordma_op_read64(void *ctx, u32 offset)
{
	struct ordma_dev *dev = ctx;

	return readq(dev->bar + offset);
}

static void ordma_op_doorbell(void *ctx, u32 slot, u64 word)
{
	struct ordma_dev *dev = ctx;

	ordma_ring(dev, dev->bar + ORDMA_DB_OFF(ORDMA_DRIVER_PAGE) + slot * sizeof(u64), word);
}

static u32 ordma_op_random32(void *ctx)
{
	return get_random_u32();
}

/* ------------------------------------------------------------------------------------------------------- upward calls */

static void ordma_op_cmd_done(void *ctx, u32 slot)
{
	struct ordma_dev *dev = ctx;

	wake_up_all(&dev->cmd_wait);
}

static void ordma_op_cq_event(void *ctx, u32 cqn)
{
	struct ordma_dev *dev = ctx;
	struct ordma_hwcq *hwcq = xa_load(&dev->cqs, cqn);

	if (hwcq)
		hwcq->event(hwcq);
}

static void ordma_op_cq_error(void *ctx, u32 cqn)
{
	struct ordma_dev *dev = ctx;
	struct ordma_hwcq *hwcq = xa_load(&dev->cqs, cqn);

	if (hwcq)
		hwcq->error(hwcq);
}

static void ordma_op_qp_async(void *ctx, u32 qpn, enum ordma_async async)
{
	struct ordma_dev *dev = ctx;
	struct ordma_hwqp *hwqp = xa_load(&dev->qps, qpn);

	if (hwqp)
		hwqp->async(hwqp, async);
}

static void ordma_op_srq_limit(void *ctx, u32 srqn)
{
	struct ordma_dev *dev = ctx;
	struct ordma_hwsrq *hwsrq = xa_load(&dev->srqs, srqn);

	if (hwsrq) {
		ordma_srq_limit_fired(&hwsrq->srq);
		hwsrq->event(hwsrq, IB_EVENT_SRQ_LIMIT_REACHED);
	}
}

static void ordma_op_srq_error(void *ctx, u32 srqn)
{
	struct ordma_dev *dev = ctx;
	struct ordma_hwsrq *hwsrq = xa_load(&dev->srqs, srqn);

	if (hwsrq)
		hwsrq->event(hwsrq, IB_EVENT_SRQ_ERR);
}

/* A process may ring nonsense on its own page as often as it likes: counted by the device, and no line for each. */
static void ordma_op_page_error(void *ctx, u32 page, enum ordma_db_err reason)
{
	struct ordma_dev *dev = ctx;

	dev_dbg_ratelimited(ordma_dma_device(dev), "doorbell refused on page %u, reason %u\n", page, reason);
}

static void ordma_op_port_event(void *ctx, bool link_up)
{
	struct ordma_dev *dev = ctx;

	queue_work(dev->wq, &dev->port_work);
}

static void ordma_op_fatal(void *ctx, enum ordma_fatal reason)
{
	struct ordma_dev *dev = ctx;

	dev_err(ordma_dma_device(dev), "device failed, reason %u\n", reason);
	ordma_hw_dead(dev);
}

/* The event lock, which the caller holds, keeps the QP: destroy passes ordma_event_barrier(). */
static struct ordma_qp *ordma_op_qp_find(void *ctx, u32 qpn)
{
	struct ordma_dev *dev = ctx;
	struct ordma_hwqp *hwqp = xa_load(&dev->qps, qpn);

	if (!hwqp)
		return NULL;
	spin_lock(&hwqp->state_lock);
	__release(&hwqp->state_lock); /* for sparse only: it is held until qp_put */
	return &hwqp->qp;
}

static void ordma_op_qp_put(void *ctx, struct ordma_qp *qp)
{
	struct ordma_hwqp *hwqp = container_of(qp, struct ordma_hwqp, qp);

	__acquire(&hwqp->state_lock); /* for sparse only */
	spin_unlock(&hwqp->state_lock);
}

const struct ordma_core_ops ordma_core_ops = {
	.reg_write32 = ordma_op_write32,
	.reg_write64 = ordma_op_write64,
	.reg_read32 = ordma_op_read32,
	.reg_read64 = ordma_op_read64,
	.doorbell = ordma_op_doorbell,
	.random32 = ordma_op_random32,
	.cmd_done = ordma_op_cmd_done,
	.cq_event = ordma_op_cq_event,
	.cq_error = ordma_op_cq_error,
	.qp_async = ordma_op_qp_async,
	.srq_limit = ordma_op_srq_limit,
	.srq_error = ordma_op_srq_error,
	.page_error = ordma_op_page_error,
	.port_event = ordma_op_port_event,
	.fatal = ordma_op_fatal,
	.qp_find = ordma_op_qp_find,
	.qp_put = ordma_op_qp_put,
};

/* --------------------------------------------------------------------------------------------------------- interrupts */

void ordma_poll_events(struct ordma_dev *dev)
{
	bool more;

	/* The lock is dropped between batches, so that a destroy that passes the barrier is not held up by a busy ring. */
	do {
		spin_lock_bh(&dev->event_lock);
		more = ordma_core_poll_events(&dev->core, ORDMA_EVENT_BUDGET) == ORDMA_EVENT_BUDGET ||
		       ordma_core_events_pending(&dev->core);
		spin_unlock_bh(&dev->event_lock);
		cond_resched();
	} while (more && !ordma_core_dead(&dev->core));
}

static irqreturn_t ordma_irq(int irq, void *arg)
{
	return IRQ_WAKE_THREAD;
}

/* An interrupt means "something happened", however many the device sent: an attachment may merge them. */
static irqreturn_t ordma_irq_thread(int irq, void *arg)
{
	ordma_poll_events(arg);
	return IRQ_HANDLED;
}

int ordma_irqs_request(struct ordma_dev *dev)
{
	int i, err;

	for (i = 0; i < dev->nvec; i++) {
		err = request_threaded_irq(pci_irq_vector(dev->pdev, i), ordma_irq, ordma_irq_thread, 0, "ordma", dev);
		if (err) {
			ordma_irqs_free(dev, i);
			return err;
		}
	}
	return 0;
}

void ordma_irqs_free(struct ordma_dev *dev, int n)
{
	while (n--)
		free_irq(pci_irq_vector(dev->pdev, n), dev);
}
