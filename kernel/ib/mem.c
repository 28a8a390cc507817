// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory as the device sees it: pinned user memory, page lists, queue memory of the kernel. */
#include <linux/dma-mapping.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "hw.h"

/* Page sizes of a list: 4 KiB to 2 GiB, any power of two. */
#define ORDMA_PAGE_SIZES GENMASK(31, 12)

static void ordma_pages_free(struct ordma_dev *dev, struct ordma_pages *pages)
{
	struct device *dma_dev = ordma_dma_device(dev);
	u32 i;

	for (i = 0; pages->leaf && i < pages->leaves && pages->leaf[i].va; i++)
		dma_free_coherent(dma_dev, SZ_4K, pages->leaf[i].va, pages->leaf[i].dma);
	kvfree(pages->leaf);
	if (pages->top)
		dma_free_coherent(dma_dev, pages->top_bytes, pages->top, pages->top_dma);
	memset(pages, 0, sizeof(*pages));
}

static int ordma_pages_alloc(struct ordma_dev *dev, struct ordma_pages *pages, const struct ordma_pbl *plan)
{
	struct device *dma_dev = ordma_dma_device(dev);
	u32 i;

	pages->top_bytes = plan->top_bytes;
	pages->top = dma_alloc_coherent(dma_dev, pages->top_bytes, &pages->top_dma, GFP_KERNEL);
	if (!pages->top)
		return -ENOMEM;
	pages->leaves = plan->leaves;
	if (!pages->leaves)
		return 0;
	pages->leaf = kvcalloc(pages->leaves, sizeof(*pages->leaf), GFP_KERNEL);
	if (!pages->leaf)
		goto err;
	for (i = 0; i < pages->leaves; i++) {
		pages->leaf[i].va = dma_alloc_coherent(dma_dev, SZ_4K, &pages->leaf[i].dma, GFP_KERNEL);
		if (!pages->leaf[i].va)
			goto err;
		ordma_pbl_set(pages->top, i, pages->leaf[i].dma);
		if (fatal_signal_pending(current))
			goto err;
		cond_resched();
	}
	return 0;
err:
	ordma_pages_free(dev, pages);
	return -ENOMEM;
}

static void ordma_pages_fill(struct ordma_pages *pages, struct ib_umem *umem, unsigned long page_size)
{
	struct ib_block_iter it;
	void *block = pages->top;
	u32 i = 0;

	rdma_umem_for_each_dma_block(umem, &it, page_size) {
		if (pages->leaves)
			block = pages->leaf[i >> ORDMA_PBL_LEAF_LOG].va;
		ordma_pbl_set(block, pages->leaves ? i & (ORDMA_PBL_LEAF_ENTRIES - 1) : i,
			      rdma_block_iter_dma_address(&it));
		i++;
	}
}

/* Describes all of umem in pages of page_size. On success the umem is mem's. */
static int ordma_umem_list(struct ordma_dev *dev, struct ordma_umem *mem, struct ib_umem *umem, unsigned long page_size)
{
	size_t n = ib_umem_num_dma_blocks(umem, page_size);
	struct ib_block_iter it;
	struct ordma_pbl plan;
	int err;

	mem->page_size = page_size;
	mem->first_off = umem->address & (page_size - 1);
	mem->buf.page_log = ilog2(page_size);
	if (n == 1) {
		rdma_umem_for_each_dma_block(umem, &it, page_size)
			mem->buf.addr = rdma_block_iter_dma_address(&it) + mem->first_off;
		mem->buf.level = ORDMA_BUF_LEVEL_DIRECT;
		mem->buf.page_log = PAGE_SHIFT;
		mem->first_off = 0;
	} else {
		err = ordma_pbl_plan(&plan, n) ?: ordma_pages_alloc(dev, &mem->pages, &plan);
		if (err)
			return err;
		ordma_pages_fill(&mem->pages, umem, page_size);
		mem->buf.addr = mem->pages.top_dma;
		mem->buf.level = plan.level;
	}
	mem->umem = umem;
	return 0;
}

/*
 * For an MR: the largest pages that the memory is made of. The list begins at the page of the first byte whatever the MR's iova
 * is, so the user's address, and not the iova, decides what fits.
 */
int ordma_umem_describe(struct ordma_dev *dev, struct ordma_umem *mem, struct ib_umem *umem)
{
	unsigned long page_size = ib_umem_find_best_pgsz(umem, ORDMA_PAGE_SIZES, umem->address);

	return page_size ? ordma_umem_list(dev, mem, umem, page_size) : -EINVAL;
}

/* For a queue: it begins at a page of the list, and the device both reads and writes it. */
int ordma_umem_queue(struct ordma_dev *dev, struct ordma_umem *mem, u64 va, size_t len)
{
	struct ib_umem *umem;
	int err;

	if (!va || offset_in_page(va) || !len)
		return -EINVAL;
	umem = ib_umem_get(&dev->ibdev, va, PAGE_ALIGN(len), IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = ib_umem_find_best_pgsz(umem, SZ_4K, va) ? ordma_umem_list(dev, mem, umem, SZ_4K) : -EINVAL;
	if (err)
		ib_umem_release(umem);
	return err;
}

void ordma_umem_release(struct ordma_dev *dev, struct ordma_umem *mem)
{
	ordma_pages_free(dev, &mem->pages);
	if (mem->umem)
		ib_umem_release(mem->umem);
	mem->umem = NULL;
}

int ordma_record_pin(struct ordma_dev *dev, struct ordma_record *rec, u64 va)
{
	struct ib_umem *umem;

	/* 64-byte aligned, so it does not cross a page; a device write may take the whole line. */
	if (!va || va & 63)
		return -EINVAL;
	umem = ib_umem_get(&dev->ibdev, va & PAGE_MASK, PAGE_SIZE, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	rec->umem = umem;
	rec->dma = sg_dma_address(umem->sgt_append.sgt.sgl) + offset_in_page(va);
	return 0;
}

void ordma_record_unpin(struct ordma_record *rec)
{
	if (rec->umem)
		ib_umem_release(rec->umem);
	rec->umem = NULL;
}

int ordma_kmem_alloc(struct ordma_dev *dev, struct ordma_kmem *mem, size_t len)
{
	mem->len = PAGE_ALIGN(len);
	mem->va = dma_alloc_coherent(ordma_dma_device(dev), mem->len, &mem->dma, GFP_KERNEL);
	return mem->va ? 0 : -ENOMEM;
}

void ordma_kmem_free(struct ordma_dev *dev, struct ordma_kmem *mem)
{
	if (mem->va)
		dma_free_coherent(ordma_dma_device(dev), mem->len, mem->va, mem->dma);
	mem->va = NULL;
}
