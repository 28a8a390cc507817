// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Back end of the kernel driver: control verbs are uverbs commands, whose driver-private part is rdma/ordma-abi.h; queues are
 * memory of this process that the driver pins; doorbell pages are mapped from the device.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/cmd_write.h>
#include <kernel-abi/ordma-abi.h>

#include "backend.h"

DECLARE_DRV_CMD(uordma_context, IB_USER_VERBS_CMD_GET_CONTEXT, ordma_abi_alloc_ucontext_req, ordma_abi_alloc_ucontext_resp);
DECLARE_DRV_CMD(uordma_pd, IB_USER_VERBS_CMD_ALLOC_PD, empty, ordma_abi_alloc_pd_resp);
DECLARE_DRV_CMD(uordma_mr, IB_USER_VERBS_CMD_REG_MR, empty, empty);
DECLARE_DRV_CMD(uordma_ah, IB_USER_VERBS_CMD_CREATE_AH, empty, ordma_abi_create_ah_resp);
DECLARE_DRV_CMD(uordma_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ, ordma_abi_create_cq_req, ordma_abi_create_cq_resp);
DECLARE_DRV_CMD(uordma_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ, ordma_abi_resize_cq_req, ordma_abi_resize_cq_resp);
DECLARE_DRV_CMD(uordma_srq, IB_USER_VERBS_CMD_CREATE_SRQ, ordma_abi_create_srq_req, ordma_abi_create_srq_resp);
DECLARE_DRV_CMD(uordma_qp, IB_USER_VERBS_CMD_CREATE_QP, ordma_abi_create_qp_req, ordma_abi_create_qp_resp);

/* A child that wrote to a pinned page would leave the NIC with the copy that its parent no longer sees. */
static int kernel_buf_alloc(struct ordma_context *ctx, struct ordma_buf *buf)
{
	int err;

	(void)ctx;
	buf->va = mmap(NULL, buf->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->va == MAP_FAILED) {
		buf->va = NULL;
		return errno;
	}
	err = ibv_dontfork_range(buf->va, buf->len);
	if (err) {
		munmap(buf->va, buf->len);
		buf->va = NULL;
	}
	return err;
}

static void kernel_buf_free(struct ordma_context *ctx, struct ordma_buf *buf)
{
	(void)ctx;
	ibv_dofork_range(buf->va, buf->len);
	munmap(buf->va, buf->len);
	buf->va = NULL;
}

static void *kernel_map_page(struct ordma_context *ctx, const struct ordma_abi_db *db)
{
	return mmap(NULL, ORDMA_DB_STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->ibvctx.context.cmd_fd, db->mmap_off);
}

static void kernel_kick(struct ordma_context *ctx)
{
	*ctx->kick_reg = htole32(ctx->attr.kick_value);
}

static int kernel_query_device(struct ordma_context *ctx, const struct ibv_query_device_ex_input *input,
			       struct ibv_device_attr_ex *attr, size_t size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t fw;
	int err;

	err = ibv_cmd_query_device_any(&ctx->ibvctx.context, input, attr, size, &resp, &resp_size);
	if (err)
		return err;
	fw = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u.%u", (unsigned int)(fw >> 32) & 0xffff,
		 (unsigned int)(fw >> 16) & 0xffff, (unsigned int)fw & 0xffff);
	return 0;
}

static int kernel_query_port(struct ordma_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(&ctx->ibvctx.context, port, attr, &cmd, sizeof(cmd));
}

static int kernel_alloc_pd(struct ordma_context *ctx, struct ordma_pd *pd)
{
	struct uordma_pd_resp resp = {};
	struct uordma_pd cmd;
	int err;

	err = ibv_cmd_alloc_pd(&ctx->ibvctx.context, &pd->ibv_pd, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	pd->pdn = resp.pdn;
	return err;
}

static int kernel_dealloc_pd(struct ordma_pd *pd)
{
	return ibv_cmd_dealloc_pd(&pd->ibv_pd);
}

static int kernel_reg_mr(struct ordma_pd *pd, void *addr, size_t len, uint64_t iova, int access, struct ordma_mr *mr)
{
	struct uordma_mr_resp resp;
	struct uordma_mr cmd;

	return ibv_cmd_reg_mr(&pd->ibv_pd, addr, len, iova, access, &mr->vmr, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
			      sizeof(resp));
}

/* Written out: ibv_cmd_reg_dmabuf_mr has had two signatures under one private ABI. */
static int kernel_reg_dmabuf_mr(struct ordma_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access,
				struct ordma_mr *mr)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, 9);
	struct ib_uverbs_attr *handle = fill_attr_out_obj(cmdb, UVERBS_ATTR_REG_DMABUF_MR_HANDLE);
	struct ibv_mr *ibmr = &mr->vmr.ibv_mr;

	fill_attr_out_ptr(cmdb, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &ibmr->lkey);
	fill_attr_out_ptr(cmdb, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &ibmr->rkey);
	fill_attr_in_obj(cmdb, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd->ibv_pd.handle);
	fill_attr_in_uint64(cmdb, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, offset);
	fill_attr_in_uint64(cmdb, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, len);
	fill_attr_in_uint64(cmdb, UVERBS_ATTR_REG_DMABUF_MR_IOVA, iova);
	fill_attr_in_uint32(cmdb, UVERBS_ATTR_REG_DMABUF_MR_FD, fd);
	fill_attr_in_uint32(cmdb, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, access);
	if (execute_ioctl(pd->ibv_pd.context, cmdb))
		return errno;
	ibmr->handle = read_attr_obj(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, handle);
	ibmr->context = pd->ibv_pd.context;
	ibmr->pd = &pd->ibv_pd;
	ibmr->addr = (void *)(uintptr_t)offset;
	ibmr->length = len;
	mr->vmr.mr_type = IBV_MR_TYPE_DMABUF_MR;
	return 0;
}

static int kernel_dereg_mr(struct ordma_mr *mr)
{
	return ibv_cmd_dereg_mr(&mr->vmr);
}

static int kernel_create_ah(struct ordma_pd *pd, struct ibv_ah_attr *attr, struct ordma_ah *ah, uint8_t dmac[6])
{
	struct uordma_ah_resp resp = {};
	int err = ibv_cmd_create_ah(&pd->ibv_pd, &ah->ibv_ah, attr, &resp.ibv_resp, sizeof(resp));

	memcpy(dmac, resp.dmac, sizeof(resp.dmac));
	return err;
}

static int kernel_destroy_ah(struct ordma_ah *ah)
{
	return ibv_cmd_destroy_ah(&ah->ibv_ah);
}

static int kernel_create_cq(struct ordma_context *ctx, struct ordma_cq *cq, const struct ibv_cq_init_attr_ex *attr,
			    const struct ordma_abi_create_cq_req *drv, struct ordma_abi_create_cq_resp *out)
{
	struct uordma_cq_resp resp = {};
	struct uordma_cq cmd;
	int err;

	cmd.drv_payload = *drv;
	err = ibv_cmd_create_cq_ex(&ctx->ibvctx.context, attr, &cq->vcq, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				   sizeof(resp), 0);
	*out = resp.drv_payload;
	return err;
}

static int kernel_resize_cq(struct ordma_cq *cq, int cqe, const struct ordma_abi_resize_cq_req *drv,
			    struct ordma_abi_resize_cq_resp *out)
{
	struct uordma_resize_cq_resp resp = {};
	struct uordma_resize_cq cmd;
	int err;

	cmd.drv_payload = *drv;
	err = ibv_cmd_resize_cq(&cq->vcq.cq, cqe, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	*out = resp.drv_payload;
	return err;
}

static int kernel_destroy_cq(struct ordma_cq *cq)
{
	return ibv_cmd_destroy_cq(&cq->vcq.cq);
}

static int kernel_create_srq(struct ordma_pd *pd, struct ordma_srq *srq, struct ibv_srq_init_attr *attr,
			     const struct ordma_abi_create_srq_req *drv, struct ordma_abi_create_srq_resp *out)
{
	struct uordma_srq_resp resp = {};
	struct uordma_srq cmd;
	int err;

	cmd.drv_payload = *drv;
	err = ibv_cmd_create_srq(&pd->ibv_pd, &srq->vsrq.srq, attr, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	*out = resp.drv_payload;
	return err;
}

static int kernel_modify_srq(struct ordma_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd;

	return ibv_cmd_modify_srq(&srq->vsrq.srq, attr, mask, &cmd, sizeof(cmd));
}

static int kernel_query_srq(struct ordma_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(&srq->vsrq.srq, attr, &cmd, sizeof(cmd));
}

static int kernel_destroy_srq(struct ordma_srq *srq)
{
	return ibv_cmd_destroy_srq(&srq->vsrq.srq);
}

static int kernel_create_qp(struct ordma_context *ctx, struct ordma_qp *qp, struct ibv_qp_init_attr_ex *attr,
			    const struct ordma_abi_create_qp_req *drv, struct ordma_abi_create_qp_resp *out)
{
	struct uordma_qp_resp resp = {};
	struct uordma_qp cmd;
	int err;

	cmd.drv_payload = *drv;
	err = ibv_cmd_create_qp_ex(&ctx->ibvctx.context, &qp->vqp, attr, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				   sizeof(resp));
	*out = resp.drv_payload;
	return err;
}

static int kernel_modify_qp(struct ordma_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ib_uverbs_ex_modify_qp_resp resp;
	struct ibv_modify_qp_ex cmd_ex = {};
	struct ibv_modify_qp cmd = {};

	if (mask & IBV_QP_RATE_LIMIT)
		return ibv_cmd_modify_qp_ex(&qp->vqp.qp, attr, mask, &cmd_ex, sizeof(cmd_ex), &resp, sizeof(resp));
	return ibv_cmd_modify_qp(&qp->vqp.qp, attr, mask, &cmd, sizeof(cmd));
}

static int kernel_query_qp(struct ordma_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(&qp->vqp.qp, attr, mask, init, &cmd, sizeof(cmd));
}

static int kernel_destroy_qp(struct ordma_qp *qp)
{
	return ibv_cmd_destroy_qp(&qp->vqp.qp);
}

static int kernel_attach_mcast(struct ordma_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_attach_mcast(&qp->vqp.qp, gid, lid);
}

static int kernel_detach_mcast(struct ordma_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_detach_mcast(&qp->vqp.qp, gid, lid);
}

/* Waking a sleeping soft-device takes two pages; hardware has neither need. */
static int map_kick(struct ordma_context *ctx, int cmd_fd)
{
	uint8_t *public_page, *kick_page;

	if (!ctx->attr.kick_mmap_off)
		return 0;
	if (ctx->attr.kick_offset > ORDMA_DB_STRIDE - sizeof(uint32_t) || ctx->attr.kick_offset % sizeof(uint32_t))
		return EPROTO;
	public_page = mmap(NULL, ORDMA_DB_STRIDE, PROT_READ, MAP_SHARED, cmd_fd, ctx->attr.public_mmap_off);
	if (public_page == MAP_FAILED)
		return errno;
	kick_page = mmap(NULL, ORDMA_DB_STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED, cmd_fd, ctx->attr.kick_mmap_off);
	if (kick_page == MAP_FAILED) {
		int err = errno;

		munmap(public_page, ORDMA_DB_STRIDE);
		return err;
	}
	ctx->asleep = (const volatile uint64_t *)(public_page + ORDMA_REG_ASLEEP % ORDMA_DB_STRIDE);
	ctx->kick_reg = (volatile uint32_t *)(kick_page + ctx->attr.kick_offset);
	return 0;
}

static void kernel_close(struct ordma_context *ctx)
{
	if (!ctx->kick_reg)
		return;
	munmap((uint8_t *)ctx->kick_reg - ctx->attr.kick_offset, ORDMA_DB_STRIDE);
	munmap((uint8_t *)ctx->asleep - ORDMA_REG_ASLEEP % ORDMA_DB_STRIDE, ORDMA_DB_STRIDE);
}

const struct ordma_backend ordma_backend_kernel = {
	.name = "kernel",
	.buf_alloc = kernel_buf_alloc,
	.buf_free = kernel_buf_free,
	.map_page = kernel_map_page,
	.kick = kernel_kick,
	.query_device = kernel_query_device,
	.query_port = kernel_query_port,
	.alloc_pd = kernel_alloc_pd,
	.dealloc_pd = kernel_dealloc_pd,
	.reg_mr = kernel_reg_mr,
	.reg_dmabuf_mr = kernel_reg_dmabuf_mr,
	.dereg_mr = kernel_dereg_mr,
	.create_ah = kernel_create_ah,
	.destroy_ah = kernel_destroy_ah,
	.create_cq = kernel_create_cq,
	.resize_cq = kernel_resize_cq,
	.destroy_cq = kernel_destroy_cq,
	.create_srq = kernel_create_srq,
	.modify_srq = kernel_modify_srq,
	.query_srq = kernel_query_srq,
	.destroy_srq = kernel_destroy_srq,
	.create_qp = kernel_create_qp,
	.modify_qp = kernel_modify_qp,
	.query_qp = kernel_query_qp,
	.destroy_qp = kernel_destroy_qp,
	.attach_mcast = kernel_attach_mcast,
	.detach_mcast = kernel_detach_mcast,
	.close = kernel_close,
};

int ordma_open_kernel(struct ordma_context *ctx, int cmd_fd)
{
	struct uordma_context_resp resp = {};
	struct uordma_context cmd = {};

	if (ibv_cmd_get_context(&ctx->ibvctx, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp)))
		return errno;
	ctx->be = &ordma_backend_kernel;
	ctx->attr = resp.drv_payload;
	return map_kick(ctx, cmd_fd);
}
