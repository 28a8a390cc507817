// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Doorbell pages of the user contexts and of the driver, the slots in them, and the store itself. */
#include <linux/slab.h>

#include "hw.h"

/* The one register of an ivshmem device that matters: peer << 16 | vector. The NIC is peer 0 and listens on vector 0. */
#define IVSHMEM_DOORBELL 12
#define IVSHMEM_KICK_NIC 0

/*
 * After a store to a register or doorbell. The NIC says it sleeps, fences, and looks at the BAR once more; this side stores,
 * fences, and looks whether it sleeps. One of the two sees the other.
 */
void ordma_kick(struct ordma_dev *dev)
{
	if (!dev->kick)
		return;
	mb();
	if (readq(dev->bar + ORDMA_REG_ASLEEP) & 1)
		writel(IVSHMEM_KICK_NIC, dev->kick + IVSHMEM_DOORBELL);
}

void ordma_ring(struct ordma_dev *dev, void __iomem *addr, u64 word)
{
	/* writeq() follows all earlier stores to ring memory. */
	writeq(word, addr);
	ordma_kick(dev);
}

u32 ordma_kick_offset(const struct ordma_dev *dev)
{
	return offset_in_page(dev->kick_addr) + IVSHMEM_DOORBELL;
}

u32 ordma_kick_value(const struct ordma_dev *dev)
{
	return IVSHMEM_KICK_NIC;
}

void ordma_uctx_init(struct ordma_uctx *uctx, u32 id, struct ib_ucontext *ibuc)
{
	uctx->id = id;
	uctx->ibuc = ibuc;
	mutex_init(&uctx->lock);
	INIT_LIST_HEAD(&uctx->pages);
}

static void __iomem *ordma_page_addr(struct ordma_dev *dev, u32 page)
{
	return dev->bar + ORDMA_DB_OFF(page);
}

static struct ordma_page *ordma_page_alloc(struct ordma_dev *dev, struct ordma_uctx *uctx, u32 number)
{
	struct ordma_page *page = kzalloc(sizeof(*page), GFP_KERNEL);

	if (!page)
		return NULL;
	page->map.dev = dev;
	page->map.kind = ORDMA_MAP_DB;
	page->map.addr = dev->bar_addr + ORDMA_DB_OFF(number);
	ordma_db_page_init(&page->slots, number, uctx->id);
	return page;
}

/* DRIVER_PAGE is always open, and its first slots are the command rings'. */
int ordma_kctx_init(struct ordma_dev *dev)
{
	struct ordma_page *page;
	int first;

	ordma_uctx_init(&dev->kctx, ORDMA_KERNEL_UCTX, NULL);
	page = ordma_page_alloc(dev, &dev->kctx, ORDMA_DRIVER_PAGE);
	if (!page)
		return -ENOMEM;
	list_add(&page->list, &dev->kctx.pages);
	first = ordma_db_slot_get(&page->slots, ORDMA_DRIVER_SLOT_FREE);
	return WARN_ON(first != 0) ? -EINVAL : 0;
}

/* Under uctx->lock. The newest page is the first of the list. */
int ordma_page_add(struct ordma_dev *dev, struct ordma_uctx *uctx)
{
	struct ordma_page *page;
	struct ordma_cmd cmd;
	u32 number;
	int err;

	err = ordma_id_get(&dev->pages, &number);
	if (err)
		return err;
	page = ordma_page_alloc(dev, uctx, number);
	if (!page) {
		err = -ENOMEM;
		goto err_id;
	}
	/* What an earlier owner rang is no word of the new one. */
	memset_io(ordma_page_addr(dev, number), 0, ORDMA_DB_STRIDE);
	ordma_cmd_page_open(&cmd, number, uctx->id, false, 0);
	err = ordma_exec(dev, &cmd, NULL);
	if (err)
		goto err_page;
	if (uctx->ibuc) {
		err = rdma_user_mmap_entry_insert(uctx->ibuc, &page->map.entry, PAGE_SIZE);
		if (err)
			goto err_open;
	}
	list_add(&page->list, &uctx->pages);
	return 0;

err_open:
	ordma_cmd_page_close(&cmd, number);
	ordma_exec_destroy(dev, &cmd);
err_page:
	kfree(page);
err_id:
	ordma_id_put(&dev->pages, number);
	return err;
}

/* The last mapping and the owner are gone. */
void ordma_page_free(struct ordma_page *page)
{
	if (page->slots.page != ORDMA_DRIVER_PAGE)
		ordma_id_put(&page->map.dev->pages, page->slots.page);
	kfree(page);
}

/*
 * Closes all pages. The number of a page that is still mapped stays taken until the mapping is gone, so that no later owner
 * gets it; what is rung there meanwhile is refused.
 */
void ordma_uctx_release(struct ordma_dev *dev, struct ordma_uctx *uctx)
{
	struct ordma_page *page, *next;
	struct ordma_cmd cmd;

	list_for_each_entry_safe(page, next, &uctx->pages, list) {
		list_del(&page->list);
		if (page->slots.page != ORDMA_DRIVER_PAGE) {
			ordma_cmd_page_close(&cmd, page->slots.page);
			ordma_exec_destroy(dev, &cmd);
		}
		if (uctx->ibuc)
			rdma_user_mmap_entry_remove(&page->map.entry);
		else
			ordma_page_free(page);
	}
}

/* n neighbouring slots of one page, cleared: an old word must not look like, or hide, the first word of the new queue. */
int ordma_slot_get(struct ordma_dev *dev, struct ordma_uctx *uctx, u32 n, struct ordma_slot *slot)
{
	struct ordma_page *page;
	int first, err = 0;
	u32 i;

	mutex_lock(&uctx->lock);
	for (;;) {
		list_for_each_entry(page, &uctx->pages, list) {
			first = ordma_db_slot_get(&page->slots, n);
			if (first >= 0)
				goto found;
		}
		err = ordma_page_add(dev, uctx);
		if (err)
			goto out;
	}
found:
	slot->uctx = uctx;
	slot->page = page;
	slot->slot = first;
	slot->n = n;
	slot->addr = ordma_page_addr(dev, page->slots.page) + first * sizeof(u64);
	for (i = 0; i < n; i++)
		writeq(0, slot->addr + i * sizeof(u64));
out:
	mutex_unlock(&uctx->lock);
	return err;
}

void ordma_slot_put(struct ordma_slot *slot)
{
	if (!slot->page)
		return;
	mutex_lock(&slot->uctx->lock);
	ordma_db_slot_put(&slot->page->slots, slot->slot, slot->n);
	mutex_unlock(&slot->uctx->lock);
	slot->page = NULL;
}
