/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the provider needs from whoever owns the NIC: the kernel driver through uverbs (backend_kernel.c) or a soft-device through its
 * socket (backend_native.c). Calls return 0 or a positive errno and may sleep; none is made in a hot path but kick().
 */
#ifndef ORDMA_BACKEND_H
#define ORDMA_BACKEND_H

#include "ordma.h"

struct ordma_backend {
	const char *name;

	/* Queue memory; buf->len is set by the caller to a multiple of the page size. */
	int (*buf_alloc)(struct ordma_context *ctx, struct ordma_buf *buf);
	void (*buf_free)(struct ordma_context *ctx, struct ordma_buf *buf);
	/* One doorbell page of this context; MAP_FAILED and errno when it cannot be mapped. */
	void *(*map_page)(struct ordma_context *ctx, const struct ordma_abi_db *db);
	void (*kick)(struct ordma_context *ctx);
	/* Called now and then while polls find nothing. NULL: no use, the NIC needs no CPU of this machine. */
	void (*relax)(void);
	/* Asked when the device clock stands still. NULL: the kernel driver watches, and flushes what a dead device leaves. */
	bool (*alive)(struct ordma_context *ctx);

	int (*query_device)(struct ordma_context *ctx, const struct ibv_query_device_ex_input *input,
			    struct ibv_device_attr_ex *attr, size_t size);
	int (*query_port)(struct ordma_context *ctx, uint8_t port, struct ibv_port_attr *attr);

	int (*alloc_pd)(struct ordma_context *ctx, struct ordma_pd *pd);
	int (*dealloc_pd)(struct ordma_pd *pd);
	int (*reg_mr)(struct ordma_pd *pd, void *addr, size_t len, uint64_t iova, int access, struct ordma_mr *mr);
	/* NULL where there are no dma-bufs. */
	int (*reg_dmabuf_mr)(struct ordma_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access,
			     struct ordma_mr *mr);
	int (*dereg_mr)(struct ordma_mr *mr);
	/* Fills dmac. */
	int (*create_ah)(struct ordma_pd *pd, struct ibv_ah_attr *attr, struct ordma_ah *ah, uint8_t dmac[6]);
	int (*destroy_ah)(struct ordma_ah *ah);

	int (*create_cq)(struct ordma_context *ctx, struct ordma_cq *cq, const struct ibv_cq_init_attr_ex *attr,
			 const struct ordma_abi_create_cq_req *req, struct ordma_abi_create_cq_resp *resp);
	int (*resize_cq)(struct ordma_cq *cq, int cqe, const struct ordma_abi_resize_cq_req *req,
			 struct ordma_abi_resize_cq_resp *resp);
	int (*destroy_cq)(struct ordma_cq *cq);

	int (*create_srq)(struct ordma_pd *pd, struct ordma_srq *srq, struct ibv_srq_init_attr *attr,
			  const struct ordma_abi_create_srq_req *req, struct ordma_abi_create_srq_resp *resp);
	int (*modify_srq)(struct ordma_srq *srq, struct ibv_srq_attr *attr, int mask);
	int (*query_srq)(struct ordma_srq *srq, struct ibv_srq_attr *attr);
	int (*destroy_srq)(struct ordma_srq *srq);

	int (*create_qp)(struct ordma_context *ctx, struct ordma_qp *qp, struct ibv_qp_init_attr_ex *attr,
			 const struct ordma_abi_create_qp_req *req, struct ordma_abi_create_qp_resp *resp);
	int (*modify_qp)(struct ordma_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*query_qp)(struct ordma_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init);
	int (*destroy_qp)(struct ordma_qp *qp);
	int (*attach_mcast)(struct ordma_qp *qp, const union ibv_gid *gid, uint16_t lid);
	int (*detach_mcast)(struct ordma_qp *qp, const union ibv_gid *gid, uint16_t lid);

	void (*close)(struct ordma_context *ctx);
};

extern const struct ordma_backend ordma_backend_kernel;
extern const struct ordma_backend ordma_backend_native;

/* Fill ctx->attr, ctx->asleep and what the back end itself needs. */
int ordma_open_kernel(struct ordma_context *ctx, int cmd_fd);
int ordma_open_native(struct ordma_context *ctx, const char *device_name);
/* True when this process was started for a soft-device (ordma run). */
bool ordma_native_requested(void);

#endif /* ORDMA_BACKEND_H */
