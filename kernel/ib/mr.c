// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions. Fast registration is not in this contract: alloc_mr is absent and the core says EOPNOTSUPP. */
#include <linux/slab.h>

#include "ordma_ib.h"

#define ORDMA_REMOTE_ACCESS (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

/* The local-DMA key, which every kernel queue may use; it opens nothing to a peer. */
struct ib_mr *ordma_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct ordma_ibmr *mr;

	if (access & ORDMA_REMOTE_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.lkey = ORDMA_RESERVED_LKEY;
	return &mr->ibmr;
}

/* Makes an MR of pinned memory; on success umem belongs to the MR. */
static struct ib_mr *ordma_mr_create(struct ordma_dev *dev, struct ib_pd *ibpd, struct ib_umem *umem, u64 length,
				     u64 iova, int access)
{
	struct ordma_ibmr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	struct ordma_cmd cmd;
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = ordma_umem_describe(dev, &mr->mem, umem);
	if (err)
		goto err_free;
	mr->mr.pdn = to_opd(ibpd)->pdn;
	mr->mr.access = access;
	mr->mr.iova = iova;
	mr->mr.length = length;
	mr->mr.buf = mr->mem.buf;
	mr->mr.first_off = mr->mem.first_off;
	err = ordma_buf_check(&mr->mr.buf) ?: ordma_id_get(&dev->mkeys, &mr->mr.mkey);
	if (err)
		goto err_mem;
	ordma_cmd_mr_create(&cmd, &mr->mr);
	err = ordma_exec(dev, &cmd, NULL);
	if (err)
		goto err_key;
	mr->ibmr.lkey = mr->mr.mkey;
	mr->ibmr.rkey = mr->mr.mkey;
	mr->ibmr.length = length;
	mr->ibmr.page_size = mr->mem.page_size;
	return &mr->ibmr;

err_key:
	ordma_id_put(&dev->mkeys, mr->mr.mkey);
err_mem:
	mr->mem.umem = NULL; /* stays the caller's */
	ordma_umem_release(dev, &mr->mem);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

struct ib_mr *ordma_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
				struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibpd->device);
	struct ib_umem *umem;
	struct ib_mr *ibmr;
	int err;

	err = ordma_udata_none(udata) ?: ordma_mr_check(&dev->core, iova, length, access);
	if (err)
		return ERR_PTR(err);
	umem = ib_umem_get(ibpd->device, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	ibmr = ordma_mr_create(dev, ibpd, umem, length, iova, access);
	if (IS_ERR(ibmr))
		ib_umem_release(umem);
	return ibmr;
}

/* The file first: a probe with an fd that is none must hear EBADF, whatever else is wrong with it. */
struct ib_mr *ordma_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova, int fd, int access,
				       ORDMA_DMABUF_ARG)
{
	struct ordma_dev *dev = to_odev(ibpd->device);
	struct ib_umem_dmabuf *dmabuf;
	struct ib_mr *ibmr;
	int err;

	dmabuf = ib_umem_dmabuf_get_pinned(ibpd->device, offset, length, fd, access);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	err = ordma_mr_check(&dev->core, iova, length, access);
	ibmr = err ? ERR_PTR(err) : ordma_mr_create(dev, ibpd, &dmabuf->umem, length, iova, access);
	if (IS_ERR(ibmr))
		ib_umem_release(&dmabuf->umem);
	return ibmr;
}

int ordma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibmr->device);
	struct ordma_ibmr *mr = to_omr(ibmr);
	struct ordma_cmd cmd;

	if (mr->mem.umem) {
		ordma_cmd_mr_destroy(&cmd, &mr->mr);
		ordma_exec_destroy(dev, &cmd);
		ordma_id_put(&dev->mkeys, mr->mr.mkey);
		ordma_umem_release(dev, &mr->mem);
	}
	kfree(mr);
	return 0;
}
