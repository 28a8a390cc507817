// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The device between probe and remove: rings, reset, start, watchdog, death, stop. */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/ktime.h>

#include "hw.h"
#include "ordma_ib.h"

#define ORDMA_START_MS 10000
/* A device that does not stop in this time is cut off the bus. */
#define ORDMA_STOP_MS 2000
#define ORDMA_WATCH_PERIOD HZ

static int ordma_wait(struct ordma_dev *dev, int (*done)(struct ordma_core *core), unsigned int ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	bool late;
	int err;

	do {
		late = time_after(jiffies, end);
		err = done(&dev->core);
		if (err != -EINPROGRESS)
			return err;
		usleep_range(200, 1000);
	} while (!late);
	return -ETIMEDOUT;
}

static int ordma_ring_alloc(struct ordma_dev *dev, struct ordma_mem *mem, size_t len)
{
	dma_addr_t dma;

	mem->len = PAGE_ALIGN(len);
	mem->va = dma_alloc_coherent(ordma_dma_device(dev), mem->len, &dma, GFP_KERNEL);
	mem->dma = dma;
	return mem->va ? 0 : -ENOMEM;
}

static void ordma_ring_free(struct ordma_dev *dev, struct ordma_mem *mem)
{
	if (mem->va)
		dma_free_coherent(ordma_dma_device(dev), mem->len, mem->va, mem->dma);
	mem->va = NULL;
}

static void ordma_rings_free(struct ordma_dev *dev)
{
	ordma_ring_free(dev, &dev->rings.cmd);
	ordma_ring_free(dev, &dev->rings.rsp);
	ordma_ring_free(dev, &dev->rings.rcmd);
	ordma_ring_free(dev, &dev->rings.eq);
	if (dev->counters)
		dma_free_coherent(ordma_dma_device(dev), PAGE_SIZE, dev->counters, dev->counters_dma);
	dev->counters = NULL;
}

static int ordma_rings_alloc(struct ordma_dev *dev)
{
	struct ordma_core *core = &dev->core;

	static_assert(ORDMA_NUM_COUNTERS * sizeof(__le64) <= PAGE_SIZE);
	dev->counters = dma_alloc_coherent(ordma_dma_device(dev), PAGE_SIZE, &dev->counters_dma, GFP_KERNEL);
	if (!dev->counters || ordma_ring_alloc(dev, &dev->rings.cmd, ordma_core_cmd_bytes(core)) ||
	    ordma_ring_alloc(dev, &dev->rings.rsp, ordma_core_rsp_bytes(core)) ||
	    ordma_ring_alloc(dev, &dev->rings.rcmd, ordma_core_rcmd_bytes(core)) ||
	    ordma_ring_alloc(dev, &dev->rings.eq, ordma_core_eq_bytes(core)))
		return -ENOMEM;
	return ordma_core_set_rings(core, &dev->rings);
}

/* DMA is off when it returns, one way or the other. */
static void ordma_hw_stop(struct ordma_dev *dev)
{
	ordma_core_stop(&dev->core);
	if (ordma_wait(dev, ordma_core_stop_done, ORDMA_STOP_MS))
		dev_warn(ordma_dma_device(dev), "device does not stop; bus mastering is cut\n");
	pci_clear_master(dev->pdev);
}

/* Any context. Commands fail, destroys succeed; the rest is done by ordma_fatal_work(). */
void ordma_hw_dead(struct ordma_dev *dev)
{
	ordma_core_mark_dead(&dev->core);
	if (test_and_set_bit(ORDMA_F_FATAL, &dev->flags))
		return;
	queue_work(dev->wq, &dev->fatal_work);
	wake_up_all(&dev->cmd_wait);
}

static void ordma_fatal_work(struct work_struct *work)
{
	struct ordma_dev *dev = container_of(work, struct ordma_dev, fatal_work);

	ordma_hw_stop(dev);
	complete_all(&dev->dma_off);
	wake_up_all(&dev->cmd_wait);
	ordma_ib_fatal(dev);
	queue_work(dev->wq, &dev->port_work);
}

static void ordma_watchdog(struct work_struct *work)
{
	struct ordma_dev *dev = container_of(to_delayed_work(work), struct ordma_dev, watchdog);

	if (ordma_core_check(&dev->core, ktime_get_ns()))
		ordma_hw_dead(dev);
	else
		ordma_poll_events(dev);
	if (!test_bit(ORDMA_F_STOPPING, &dev->flags))
		queue_delayed_work(dev->wq, &dev->watchdog, ORDMA_WATCH_PERIOD);
}

static void ordma_port_work(struct work_struct *work)
{
	ordma_port_update(container_of(work, struct ordma_dev, port_work));
}

static int ordma_hw_start(struct ordma_dev *dev)
{
	struct ordma_core *core = &dev->core;
	int err;

	ordma_core_reset_begin(core);
	err = ordma_wait(dev, ordma_core_reset_done, ORDMA_START_MS);
	if (err) {
		dev_err(ordma_dma_device(dev), "device does not reset (%d)\n", err);
		return err;
	}
	err = ordma_rings_alloc(dev) ?: ordma_core_start(core) ?:
	      ordma_wait(dev, ordma_core_start_done, ORDMA_START_MS);
	if (err)
		dev_err(ordma_dma_device(dev), "device does not start (%d)\n", err);
	return err;
}

/* After ordma_core_probe(). Commands work when it returns. */
int ordma_hw_up(struct ordma_dev *dev)
{
	int err;

	spin_lock_init(&dev->cmd_lock);
	spin_lock_init(&dev->event_lock);
	init_waitqueue_head(&dev->cmd_wait);
	init_completion(&dev->dma_off);
	mutex_init(&dev->counters_lock);
	mutex_init(&dev->port_lock);
	xa_init(&dev->cqs);
	xa_init(&dev->qps);
	xa_init(&dev->srqs);
	INIT_WORK(&dev->fatal_work, ordma_fatal_work);
	INIT_WORK(&dev->port_work, ordma_port_work);
	INIT_DELAYED_WORK(&dev->watchdog, ordma_watchdog);
	dev->wq = alloc_workqueue("ordma", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!dev->wq)
		return -ENOMEM;

	err = ordma_ids_setup(dev);
	if (err)
		goto err_ids;
	err = ordma_irqs_request(dev);
	if (err)
		goto err_ids;
	err = ordma_hw_start(dev);
	if (err)
		goto err_stop;
	ordma_core_set_vectors(&dev->core, dev->nvec);
	queue_delayed_work(dev->wq, &dev->watchdog, ORDMA_WATCH_PERIOD);
	err = ordma_kctx_init(dev);
	if (err) {
		ordma_hw_down(dev);
		return err;
	}
	return 0;

err_stop:
	ordma_hw_stop(dev);
	ordma_irqs_free(dev, dev->nvec);
	ordma_rings_free(dev);
err_ids:
	ordma_ids_cleanup(dev);
	destroy_workqueue(dev->wq);
	return err;
}

/* All objects are gone. */
void ordma_hw_down(struct ordma_dev *dev)
{
	ordma_uctx_release(dev, &dev->kctx);
	set_bit(ORDMA_F_STOPPING, &dev->flags);
	cancel_delayed_work_sync(&dev->watchdog);
	if (test_bit(ORDMA_F_FATAL, &dev->flags))
		wait_for_completion(&dev->dma_off);
	else
		ordma_hw_stop(dev);
	ordma_irqs_free(dev, dev->nvec);
	/* Nothing queues work any more: neither interrupt nor watchdog. */
	destroy_workqueue(dev->wq);
	ordma_rings_free(dev);
	ordma_ids_cleanup(dev);
	WARN_ON(!xa_empty(&dev->cqs) || !xa_empty(&dev->qps) || !xa_empty(&dev->srqs));
	xa_destroy(&dev->cqs);
	xa_destroy(&dev->qps);
	xa_destroy(&dev->srqs);
}
