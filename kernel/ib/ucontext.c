// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* User contexts: what a process gets to map, and the driver-private part of the commands. */
#include <linux/slab.h>

#include "ordma_ib.h"

/* ----------------------------------------------------------------------------------------------------------- udata */

/*
 * A request must be as long as this driver knows it. Bytes beyond, and bits of comp_mask (always the first word), are from a
 * newer provider: it learns by EOPNOTSUPP what is not there.
 */
int ordma_udata_in(struct ib_udata *udata, void *req, size_t len)
{
	const u64 *comp_mask = req;
	int err;

	if (udata->inlen < len)
		return -EINVAL;
	err = ib_copy_from_udata(req, udata, len);
	if (err)
		return err;
	if (udata->inlen > len && !ib_is_udata_cleared(udata, len, udata->inlen - len))
		return -EOPNOTSUPP;
	return *comp_mask ? -EOPNOTSUPP : 0;
}

int ordma_udata_none(struct ib_udata *udata)
{
	if (udata && udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EOPNOTSUPP;
	return 0;
}

int ordma_udata_out(struct ib_udata *udata, void *resp, size_t len)
{
	return ib_copy_to_udata(udata, resp, min(udata->outlen, len));
}

struct ordma_uctx *ordma_udata_uctx(struct ordma_dev *dev, struct ib_udata *udata)
{
	struct ordma_ucontext *uc = rdma_udata_to_drv_context(udata, struct ordma_ucontext, ibuc);

	return uc ? &uc->uctx : &dev->kctx;
}

void ordma_abi_db_fill(struct ordma_abi_db *db, const struct ordma_slot *slot, u32 nth)
{
	db->mmap_off = rdma_user_mmap_get_offset(&slot->page->map.entry);
	db->slot = slot->slot + nth;
	db->page = slot->page->slots.page;
}

/* ------------------------------------------------------------------------------------------------------------- mmap */

static struct ordma_map *ordma_map_add(struct ordma_dev *dev, struct ib_ucontext *ibuc, enum ordma_map_kind kind,
				       phys_addr_t addr)
{
	struct ordma_map *map = kzalloc(sizeof(*map), GFP_KERNEL);
	int err;

	if (!map)
		return ERR_PTR(-ENOMEM);
	map->dev = dev;
	map->kind = kind;
	map->addr = addr & PAGE_MASK;
	err = rdma_user_mmap_entry_insert(ibuc, &map->entry, PAGE_SIZE);
	if (err) {
		kfree(map);
		return ERR_PTR(err);
	}
	return map;
}

static void ordma_map_remove(struct ordma_map *map)
{
	if (!IS_ERR_OR_NULL(map))
		rdma_user_mmap_entry_remove(&map->entry);
}

int ordma_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry = rdma_user_mmap_entry_get(ibuc, vma);
	struct ordma_map *map;
	int err = -EPERM;

	if (!entry)
		return -EINVAL;
	map = container_of(entry, struct ordma_map, entry);
	if (map->kind == ORDMA_MAP_PUBLIC) {
		if (vma->vm_flags & VM_WRITE)
			goto out;
		ordma_vm_flags_clear(vma, VM_MAYWRITE);
	}
	if (vma->vm_flags & VM_EXEC)
		goto out;
	err = rdma_user_mmap_io(ibuc, vma, map->addr >> PAGE_SHIFT, PAGE_SIZE, pgprot_noncached(vma->vm_page_prot), entry);
out:
	rdma_user_mmap_entry_put(entry);
	return err;
}

void ordma_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct ordma_map *map = container_of(entry, struct ordma_map, entry);

	if (map->kind == ORDMA_MAP_DB)
		ordma_page_free(container_of(map, struct ordma_page, map));
	else
		kfree(map);
}

/* The core zaps the mappings; that this callback exists tells it to. */
void ordma_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

/* --------------------------------------------------------------------------------------------------------- contexts */

static void ordma_ucontext_release(struct ordma_dev *dev, struct ordma_ucontext *uc)
{
	ordma_map_remove(uc->public);
	ordma_map_remove(uc->kick);
	ordma_uctx_release(dev, &uc->uctx);
	ordma_id_put(&dev->uctxs, uc->uctx.id);
}

static int ordma_ucontext_maps(struct ordma_dev *dev, struct ordma_ucontext *uc)
{
	int err;

	uc->public = ordma_map_add(dev, &uc->ibuc, ORDMA_MAP_PUBLIC, dev->bar_addr + ORDMA_PUBLIC_OFF);
	if (IS_ERR(uc->public))
		return PTR_ERR(uc->public);
	if (dev->kick) {
		uc->kick = ordma_map_add(dev, &uc->ibuc, ORDMA_MAP_KICK, dev->kick_addr);
		if (IS_ERR(uc->kick))
			return PTR_ERR(uc->kick);
	}
	mutex_lock(&uc->uctx.lock);
	err = ordma_page_add(dev, &uc->uctx);
	mutex_unlock(&uc->uctx.lock);
	return err;
}

static void ordma_ucontext_resp(struct ordma_dev *dev, struct ordma_ucontext *uc,
				struct ordma_abi_alloc_ucontext_resp *resp)
{
	const struct ordma_caps *caps = &dev->core.caps;

	resp->contract_version = caps->major << 16 | caps->minor;
	resp->uctx = uc->uctx.id;
	resp->caps = caps->bits;
	resp->public_mmap_off = rdma_user_mmap_get_offset(&uc->public->entry);
	if (uc->kick) {
		resp->kick_mmap_off = rdma_user_mmap_get_offset(&uc->kick->entry);
		resp->kick_offset = ordma_kick_offset(dev);
		resp->kick_value = ordma_kick_value(dev);
	}
	resp->max_wr = caps->max_wr;
	resp->max_sge = caps->max_sge;
	resp->max_inline = caps->max_inline;
	resp->max_cqe = caps->max_cqe;
	resp->max_srq_wr = caps->max_srq ? caps->max_wr : 0;
	resp->max_rd_atomic = caps->max_rd_atomic;
}

int ordma_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibuc->device);
	struct ordma_ucontext *uc = to_ouc(ibuc);
	struct ordma_abi_alloc_ucontext_resp resp = {};
	struct ordma_abi_alloc_ucontext_req req;
	u32 id;
	int err;

	if (ordma_core_dead(&dev->core))
		return -EIO;
	err = ordma_udata_in(udata, &req, sizeof(req)) ?: ordma_id_get(&dev->uctxs, &id);
	if (err)
		return err;
	ordma_uctx_init(&uc->uctx, id, ibuc);
	err = ordma_ucontext_maps(dev, uc);
	if (err)
		goto err_release;
	ordma_ucontext_resp(dev, uc, &resp);
	err = ordma_udata_out(udata, &resp, sizeof(resp));
	if (err)
		goto err_release;
	return 0;

err_release:
	ordma_ucontext_release(dev, uc);
	return err;
}

void ordma_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	ordma_ucontext_release(to_odev(ibuc->device), to_ouc(ibuc));
}
