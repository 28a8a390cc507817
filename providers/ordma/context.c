// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device match, context, doorbell pages, QP table. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "backend.h"

/*
 * Driver id first: it survives a rename by udev. The name matches where there is no id: sysfs discovery of a native network.
 */
static const struct verbs_match_ent match_table[] = {
	VERBS_DRIVER_ID(ORDMA_RDMA_DRIVER_ID),
	VERBS_NAME_MATCH("ordma", NULL),
	{},
};

static const struct verbs_context_ops context_ops = {
	.alloc_pd = ordma_alloc_pd,
	.attach_mcast = ordma_attach_mcast,
	.create_ah = ordma_create_ah,
	.create_cq = ordma_create_cq,
	.create_cq_ex = ordma_create_cq_ex,
	.create_qp = ordma_create_qp,
	.create_qp_ex = ordma_create_qp_ex,
	.create_srq = ordma_create_srq,
	.dealloc_pd = ordma_dealloc_pd,
	.dereg_mr = ordma_dereg_mr,
	.destroy_ah = ordma_destroy_ah,
	.destroy_cq = ordma_destroy_cq,
	.destroy_qp = ordma_destroy_qp,
	.destroy_srq = ordma_destroy_srq,
	.detach_mcast = ordma_detach_mcast,
	.get_srq_num = ordma_get_srq_num,
	.modify_qp = ordma_modify_qp,
	.modify_srq = ordma_modify_srq,
	.poll_cq = ordma_poll_cq,
	.post_recv = ordma_post_recv,
	.post_send = ordma_post_send,
	.post_srq_recv = ordma_post_srq_recv,
	.query_device_ex = ordma_query_device_ex,
	.query_port = ordma_query_port,
	.query_qp = ordma_query_qp,
	.query_qp_data_in_order = ordma_query_qp_data_in_order,
	.query_srq = ordma_query_srq,
	.reg_dmabuf_mr = ordma_reg_dmabuf_mr,
	.reg_mr = ordma_reg_mr,
	.req_notify_cq = ordma_arm_cq,
	.resize_cq = ordma_resize_cq,
};

static unsigned int qp_index(uint32_t qpn)
{
	return qpn & ((1u << ORDMA_QPN_INDEX_BITS) - 1);
}

#define QP_LEAF_LOG (ORDMA_QPN_INDEX_BITS - ORDMA_QP_TABLE_LOG)

/* Called under a CQ lock, while no QP with CQEs in that CQ can go: destroy purges first, under the same lock. */
struct ordma_qp *ordma_find_qp(struct ordma_context *ctx, uint32_t qpn)
{
	unsigned int i = qp_index(qpn);
	struct ordma_qp **leaf = __atomic_load_n(&ctx->qps[i >> QP_LEAF_LOG].entry, __ATOMIC_ACQUIRE);
	struct ordma_qp *qp = leaf ? __atomic_load_n(&leaf[i & ((1u << QP_LEAF_LOG) - 1)], __ATOMIC_ACQUIRE) : NULL;

	return qp && qp->qpn == qpn ? qp : NULL;
}

/* Leaves live as long as the context: a poller may be reading one. */
int ordma_add_qp(struct ordma_context *ctx, struct ordma_qp *qp)
{
	unsigned int i = qp_index(qp->qpn);
	struct ordma_qp **leaf;
	int err = 0;

	pthread_mutex_lock(&ctx->lock);
	leaf = ctx->qps[i >> QP_LEAF_LOG].entry;
	if (!leaf) {
		leaf = calloc(1u << QP_LEAF_LOG, sizeof(*leaf));
		__atomic_store_n(&ctx->qps[i >> QP_LEAF_LOG].entry, leaf, __ATOMIC_RELEASE);
	}
	if (leaf)
		__atomic_store_n(&leaf[i & ((1u << QP_LEAF_LOG) - 1)], qp, __ATOMIC_RELEASE);
	else
		err = ENOMEM;
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

/* Once the QP is destroyed its index may have gone to a new one already. */
void ordma_remove_qp(struct ordma_context *ctx, struct ordma_qp *qp)
{
	unsigned int i = qp_index(qp->qpn);
	struct ordma_qp **entry = &ctx->qps[i >> QP_LEAF_LOG].entry[i & ((1u << QP_LEAF_LOG) - 1)];

	pthread_mutex_lock(&ctx->lock);
	if (*entry == qp)
		__atomic_store_n(entry, NULL, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ctx->lock);
}

volatile uint64_t *ordma_map_db(struct ordma_context *ctx, const struct ordma_abi_db *db)
{
	struct ordma_db_page *page;

	if (db->slot >= ORDMA_PAGE_SLOTS) {
		errno = EPROTO;
		return NULL;
	}
	pthread_mutex_lock(&ctx->lock);
	for (page = ctx->pages; page && page->mmap_off != db->mmap_off; page = page->next)
		;
	if (!page) {
		page = calloc(1, sizeof(*page));
		if (page) {
			page->mmap_off = db->mmap_off;
			page->slots = ctx->be->map_page(ctx, db);
			if (page->slots == MAP_FAILED) {
				free(page);
				page = NULL;
			} else {
				page->next = ctx->pages;
				ctx->pages = page;
			}
		}
	}
	pthread_mutex_unlock(&ctx->lock);
	return page ? &page->slots[db->slot] : NULL;
}

/*
 * True once the soft-device has died: whoever polls would poll for ever. A living one moves its clock, in memory that this process
 * can read, every HEARTBEAT_MS; only when it stands still is the back end asked, so that the usual answer costs no syscall.
 */
bool ordma_device_gone(struct ordma_context *ctx)
{
	uint64_t device, now_ms;
	struct timespec ts;

	if (!ctx->be->alive || !ctx->asleep || __atomic_load_n(&ctx->gone, __ATOMIC_RELAXED))
		return __atomic_load_n(&ctx->gone, __ATOMIC_RELAXED);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now_ms = ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
	device = ctx->asleep[(ORDMA_REG_CLOCK - ORDMA_REG_ASLEEP) / sizeof(uint64_t)];
	if (device == __atomic_load_n(&ctx->clock_seen, __ATOMIC_RELAXED)) {
		if (now_ms - __atomic_load_n(&ctx->clock_seen_ms, __ATOMIC_RELAXED) < 2 * ORDMA_HEARTBEAT_MS)
			return false;
		if (!ctx->be->alive(ctx)) {
			__atomic_store_n(&ctx->gone, true, __ATOMIC_RELAXED);
			return true;
		}
	}
	__atomic_store_n(&ctx->clock_seen, device, __ATOMIC_RELAXED);
	__atomic_store_n(&ctx->clock_seen_ms, now_ms, __ATOMIC_RELAXED);
	return false;
}

static void free_context(struct ibv_context *ibctx)
{
	struct ordma_context *ctx = to_octx(ibctx);
	struct ordma_db_page *page;
	unsigned int i;

	while ((page = ctx->pages)) {
		ctx->pages = page->next;
		munmap((void *)page->slots, ORDMA_DB_STRIDE);
		free(page);
	}
	ctx->be->close(ctx);
	for (i = 0; i < ORDMA_QP_TABLE_SIZE; i++)
		free(ctx->qps[i].entry);
	pthread_mutex_destroy(&ctx->lock);
	verbs_uninit_context(&ctx->ibvctx);
	free(ctx);
}

static const struct verbs_context_ops free_ops = { .free_context = free_context };

/* The layout of WQEs, CQEs and doorbells is the contract's; its minor version only adds. */
static int check_contract(const struct ordma_context *ctx, const char *device)
{
	unsigned int major = ctx->attr.contract_version >> 16;

	if (major == ORDMA_CONTRACT_MAJOR)
		return 0;
	fprintf(stderr, "libordma: %s has contract version %u, this library has %u; install matching versions\n", device, major,
		ORDMA_CONTRACT_MAJOR);
	return EPROTO;
}

static struct verbs_context *alloc_context(struct ibv_device *device, int cmd_fd, void *private_data)
{
	struct ordma_context *ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, ibvctx, ORDMA_RDMA_DRIVER_ID);
	int err;

	(void)private_data;
	if (!ctx)
		return NULL;
	pthread_mutex_init(&ctx->lock, NULL);
	err = ordma_native_requested() ? ordma_open_native(ctx, device->name) : ordma_open_kernel(ctx, cmd_fd);
	if (!err) {
		err = check_contract(ctx, device->name);
		if (err)
			ctx->be->close(ctx);
	}
	if (err) {
		pthread_mutex_destroy(&ctx->lock);
		verbs_uninit_context(&ctx->ibvctx);
		free(ctx);
		errno = err;
		return NULL;
	}
	verbs_set_ops(&ctx->ibvctx, &context_ops);
	verbs_set_ops(&ctx->ibvctx, &free_ops);
	return &ctx->ibvctx;
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	(void)sysfs_dev;
	return calloc(1, sizeof(struct verbs_device));
}

static void uninit_device(struct verbs_device *device)
{
	free(device);
}

static const struct verbs_device_ops ordma_dev_ops = {
	.name = "ordma",
	.match_min_abi_version = ORDMA_UVERBS_ABI_VERSION,
	.match_max_abi_version = ORDMA_UVERBS_ABI_VERSION,
	.match_table = match_table,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
	.alloc_context = alloc_context,
};
PROVIDER_DRIVER(ordma, ordma_dev_ops);

bool ordma_is_device(struct ibv_device *device)
{
	return verbs_get_device(device)->ops == &ordma_dev_ops;
}
