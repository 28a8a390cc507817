// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Back end of a soft-device on the same machine: the driver core runs at the other end of a socket. Queues are memfds that the
 * soft-device made; every other address is reached by the soft-device through process_vm_readv/writev.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/cmd_write.h>

#include "backend.h"
#include "native.h"

bool ordma_native_requested(void)
{
	const char *path = secure_getenv(ORDMA_NP_ENV_SOCKET);

	return path && *path;
}

static int native_buf_alloc(struct ordma_context *ctx, struct ordma_buf *buf)
{
	struct ordma_np_buf_alloc alloc = { .len = buf->len };
	struct ordma_np_buf_resp resp;
	struct ordma_np_buf_map map = {};
	int fd, err;

	err = ordma_socket_call(&ctx->native->sock, ORDMA_NP_BUF_ALLOC, &alloc, sizeof(alloc), -1, &resp, sizeof(resp), &fd, 1);
	if (err)
		return err;
	buf->handle = resp.buf;
	buf->va = mmap(NULL, buf->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err = buf->va == MAP_FAILED ? errno : 0;
	close(fd);
	if (!err) {
		map.buf = buf->handle;
		map.va = (uintptr_t)buf->va;
		err = TELL(ctx, ORDMA_NP_BUF_MAP, map);
		if (err)
			munmap(buf->va, buf->len);
	}
	if (err) {
		ordma_native_tell(ctx, ORDMA_NP_BUF_FREE, buf->handle);
		buf->va = NULL;
	}
	return err;
}

static void native_buf_free(struct ordma_context *ctx, struct ordma_buf *buf)
{
	ordma_native_tell(ctx, ORDMA_NP_BUF_FREE, buf->handle);
	munmap(buf->va, buf->len);
	buf->va = NULL;
}

static void *native_map_page(struct ordma_context *ctx, const struct ordma_abi_db *db)
{
	struct ordma_np_handle req = { .handle = db->page };
	void *va;
	int fd, err;

	err = ordma_socket_call(&ctx->native->sock, ORDMA_NP_PAGE_FD, &req, sizeof(req), -1, NULL, 0, &fd, 1);
	if (err) {
		errno = err;
		return MAP_FAILED;
	}
	va = mmap(NULL, ORDMA_DB_STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return va;
}

static void native_kick(struct ordma_context *ctx)
{
	const uint64_t one = 1;

	/* A full eventfd counter means that a kick is pending already. */
	if (write(ctx->native->kick_fd, &one, sizeof(one)) < 0)
		return;
}

/*
 * The NIC is a process here, and what the caller polls for may wait for the very CPU that it polls on: without this, a ping-pong on
 * two cores goes at the pace of the scheduler's tick. With a free CPU for everybody it returns at once.
 */
static void native_relax(void)
{
	sched_yield();
}

/* Death closes its end of the socket; a reply that another thread waits for is a sign of life. */
static bool native_alive(struct ordma_context *ctx)
{
	char byte;
	ssize_t n = recv(ctx->native->sock.fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static int native_query_device(struct ordma_context *ctx, const struct ibv_query_device_ex_input *input,
			       struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr *a = &attr->orig_attr;
	struct ordma_np_device d;
	int err;

	if (input && input->comp_mask)
		return EINVAL;
	if (size < sizeof(*a))
		return EINVAL;
	err = ordma_socket_call(&ctx->native->sock, ORDMA_NP_QUERY_DEVICE, NULL, 0, -1, &d, sizeof(d), NULL, 0);
	if (err)
		return err;
	memset(attr, 0, size);
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%u.%u.%u", (unsigned int)(d.fw_ver >> 32) & 0xffff,
		 (unsigned int)(d.fw_ver >> 16) & 0xffff, (unsigned int)d.fw_ver & 0xffff);
	a->node_guid = htobe64(d.node_guid);
	a->sys_image_guid = htobe64(d.sys_image_guid);
	a->max_mr_size = d.max_mr_size;
	a->page_size_cap = d.page_size_cap;
	a->vendor_id = d.vendor_id;
	a->vendor_part_id = d.vendor_part_id;
	a->hw_ver = d.hw_ver;
	a->max_qp = d.max_qp;
	a->max_qp_wr = d.max_qp_wr;
	a->device_cap_flags = d.caps;
	a->max_sge = d.max_sge;
	a->max_sge_rd = d.max_sge_rd;
	a->max_cq = d.max_cq;
	a->max_cqe = d.max_cqe;
	a->max_mr = d.max_mr;
	a->max_pd = d.max_pd;
	a->max_qp_rd_atom = d.max_qp_rd_atom;
	a->max_qp_init_rd_atom = d.max_qp_init_rd_atom;
	a->max_res_rd_atom = d.max_res_rd_atom;
	a->atomic_cap = d.atomic_cap;
	a->max_srq = d.max_srq;
	a->max_srq_wr = d.max_srq_wr;
	a->max_srq_sge = d.max_srq_sge;
	a->max_ah = d.max_ah;
	a->max_mcast_grp = d.max_mcast_grp;
	a->max_mcast_qp_attach = d.max_mcast_qp_attach;
	a->max_total_mcast_qp_attach = d.max_total_mcast_qp_attach;
	a->max_pkeys = d.max_pkeys;
	a->local_ca_ack_delay = d.local_ca_ack_delay;
	a->phys_port_cnt = d.phys_port_cnt;
	if (size >= offsetof(struct ibv_device_attr_ex, device_cap_flags_ex) + sizeof(attr->device_cap_flags_ex)) {
		attr->completion_timestamp_mask = UINT64_MAX;
		attr->hca_core_clock = d.clock_khz;
		attr->device_cap_flags_ex = d.caps;
	}
	if (size >= offsetof(struct ibv_device_attr_ex, phys_port_cnt_ex) + sizeof(attr->phys_port_cnt_ex))
		attr->phys_port_cnt_ex = d.phys_port_cnt;
	return 0;
}

static int native_query_port(struct ordma_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct ordma_np_port p;
	int err;

	(void)port;
	err = ordma_socket_call(&ctx->native->sock, ORDMA_NP_QUERY_PORT, NULL, 0, -1, &p, sizeof(p), NULL, 0);
	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	attr->state = p.state;
	attr->phys_state = p.phys_state;
	attr->max_mtu = p.max_mtu;
	attr->active_mtu = p.active_mtu;
	attr->gid_tbl_len = p.gid_tbl_len;
	attr->pkey_tbl_len = p.pkey_tbl_len;
	attr->active_width = p.active_width;
	attr->active_speed = p.active_speed;
	attr->port_cap_flags = p.port_cap_flags;
	attr->max_msg_sz = p.max_msg_sz;
	attr->max_vl_num = 1;
	attr->flags = p.flags;
	attr->qkey_viol_cntr = p.qkey_viol;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

static int native_alloc_pd(struct ordma_context *ctx, struct ordma_pd *pd)
{
	struct ordma_np_handle resp;
	int err = ordma_socket_call(&ctx->native->sock, ORDMA_NP_ALLOC_PD, NULL, 0, -1, &resp, sizeof(resp), NULL, 0);

	if (err)
		return err;
	pd->ibv_pd.context = &ctx->ibvctx.context;
	pd->ibv_pd.handle = resp.handle;
	pd->pdn = resp.handle;
	return 0;
}

static int native_dealloc_pd(struct ordma_pd *pd)
{
	return ordma_native_tell(to_octx(pd->ibv_pd.context), ORDMA_NP_DEALLOC_PD, pd->ibv_pd.handle);
}

static int native_reg_mr(struct ordma_pd *pd, void *addr, size_t len, uint64_t iova, int access, struct ordma_mr *mr)
{
	struct ordma_context *ctx = to_octx(pd->ibv_pd.context);
	struct ordma_np_reg_mr req = {
		.pd = pd->ibv_pd.handle,
		.access = access,
		.va = (uintptr_t)addr,
		.len = len,
		.iova = iova,
	};
	struct ordma_np_mr resp;
	int err = CALL(ctx, ORDMA_NP_REG_MR, req, resp);

	if (err)
		return err;
	mr->vmr.ibv_mr.context = pd->ibv_pd.context;
	mr->vmr.ibv_mr.pd = &pd->ibv_pd;
	mr->vmr.ibv_mr.addr = addr;
	mr->vmr.ibv_mr.length = len;
	mr->vmr.ibv_mr.handle = resp.handle;
	mr->vmr.ibv_mr.lkey = resp.lkey;
	mr->vmr.ibv_mr.rkey = resp.rkey;
	mr->vmr.mr_type = IBV_MR_TYPE_MR;
	mr->vmr.access = access;
	return 0;
}

static int native_dereg_mr(struct ordma_mr *mr)
{
	return ordma_native_tell(to_octx(mr->vmr.ibv_mr.context), ORDMA_NP_DEREG_MR, mr->vmr.ibv_mr.handle);
}

static int native_create_ah(struct ordma_pd *pd, struct ibv_ah_attr *attr, struct ordma_ah *ah, uint8_t dmac[6])
{
	struct ordma_context *ctx = to_octx(pd->ibv_pd.context);
	struct ordma_np_resolve req = { .sgid_index = attr->grh.sgid_index };
	struct ordma_np_mac resp;
	int err;

	memcpy(req.dgid, attr->grh.dgid.raw, sizeof(req.dgid));
	err = CALL(ctx, ORDMA_NP_RESOLVE_GID, req, resp);
	if (err)
		return err;
	memcpy(dmac, resp.mac, sizeof(resp.mac));
	ah->ibv_ah.context = pd->ibv_pd.context;
	ah->ibv_ah.pd = &pd->ibv_pd;
	return 0;
}

static int native_destroy_ah(struct ordma_ah *ah)
{
	(void)ah;
	return 0;
}

/*
 * Destroying must wait until the caller has acknowledged every event that it has read: ibv_ack_* touches the object. The
 * soft-device knows how many these are and has taken back the others.
 */
static int destroy_object(struct ordma_context *ctx, enum ordma_np_op op, uint32_t handle, struct ordma_np_destroyed *read)
{
	struct ordma_np_handle req = { .handle = handle };
	int err = CALL(ctx, op, req, *read);

	if (verbs_is_destroy_err(&err))
		*read = (struct ordma_np_destroyed){};
	return err;
}

static void wait_for_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acked, uint32_t read)
{
	pthread_mutex_lock(mutex);
	while ((int32_t)(read - *acked) > 0)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

static int native_create_cq(struct ordma_context *ctx, struct ordma_cq *cq, const struct ibv_cq_init_attr_ex *attr,
			    const struct ordma_abi_create_cq_req *drv, struct ordma_abi_create_cq_resp *out)
{
	struct ordma_np_create_cq req = {
		.user_handle = (uintptr_t)&cq->vcq.cq,
		.cqe = attr->cqe,
		.comp_vector = attr->comp_vector,
		.channel = attr->channel ? ordma_native_channel(ctx, attr->channel) : 0,
		.drv = *drv,
	};
	struct ordma_np_cq resp;
	int err;

	if (attr->channel && !req.channel) {
		fprintf(stderr, "libordma: completion channels of a soft-device need LD_PRELOAD=%s\n", getenv(ORDMA_NP_ENV_PRELOAD));
		return EOPNOTSUPP;
	}
	err = CALL(ctx, ORDMA_NP_CREATE_CQ, req, resp);
	if (err)
		return err;
	cq->vcq.cq.context = &ctx->ibvctx.context;
	cq->vcq.cq.handle = resp.handle;
	*out = resp.drv;
	return 0;
}

static int native_resize_cq(struct ordma_cq *cq, int cqe, const struct ordma_abi_resize_cq_req *drv,
			    struct ordma_abi_resize_cq_resp *out)
{
	struct ordma_np_resize_cq req = { .handle = cq->vcq.cq.handle, .cqe = cqe, .drv = *drv };
	struct ordma_np_resize_cq_resp resp;
	int err = CALL(to_octx(cq->vcq.cq.context), ORDMA_NP_RESIZE_CQ, req, resp);

	if (!err)
		*out = resp.drv;
	return err;
}

static int native_destroy_cq(struct ordma_cq *cq)
{
	struct ibv_cq *ibcq = &cq->vcq.cq;
	struct ordma_np_destroyed read;
	int err = destroy_object(to_octx(ibcq->context), ORDMA_NP_DESTROY_CQ, ibcq->handle, &read);

	if (err)
		return err;
	wait_for_acks(&ibcq->mutex, &ibcq->cond, &ibcq->comp_events_completed, read.comp_events);
	wait_for_acks(&ibcq->mutex, &ibcq->cond, &ibcq->async_events_completed, read.async_events);
	return 0;
}

static int native_create_srq(struct ordma_pd *pd, struct ordma_srq *srq, struct ibv_srq_init_attr *attr,
			     const struct ordma_abi_create_srq_req *drv, struct ordma_abi_create_srq_resp *out)
{
	struct ordma_context *ctx = to_octx(pd->ibv_pd.context);
	struct ordma_np_create_srq req = {
		.user_handle = (uintptr_t)&srq->vsrq.srq,
		.pd = pd->ibv_pd.handle,
		.max_wr = attr->attr.max_wr,
		.max_sge = attr->attr.max_sge,
		.drv = *drv,
	};
	struct ordma_np_srq resp;
	int err = CALL(ctx, ORDMA_NP_CREATE_SRQ, req, resp);

	if (err)
		return err;
	srq->vsrq.srq.context = &ctx->ibvctx.context;
	srq->vsrq.srq.handle = resp.handle;
	*out = resp.drv;
	return 0;
}

static int native_modify_srq(struct ordma_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ordma_np_modify_srq req = {
		.handle = srq->vsrq.srq.handle,
		.mask = mask,
		.max_wr = attr->max_wr,
		.srq_limit = attr->srq_limit,
	};

	return TELL(to_octx(srq->vsrq.srq.context), ORDMA_NP_MODIFY_SRQ, req);
}

static int native_query_srq(struct ordma_srq *srq, struct ibv_srq_attr *attr)
{
	struct ordma_np_handle req = { .handle = srq->vsrq.srq.handle };
	struct ordma_np_srq_attr resp;
	int err = CALL(to_octx(srq->vsrq.srq.context), ORDMA_NP_QUERY_SRQ, req, resp);

	if (!err)
		attr->srq_limit = resp.srq_limit;
	return err;
}

static int native_destroy_srq(struct ordma_srq *srq)
{
	struct ibv_srq *ibsrq = &srq->vsrq.srq;
	struct ordma_np_destroyed read;
	int err = destroy_object(to_octx(ibsrq->context), ORDMA_NP_DESTROY_SRQ, ibsrq->handle, &read);

	if (!err)
		wait_for_acks(&ibsrq->mutex, &ibsrq->cond, &ibsrq->events_completed, read.async_events);
	return err;
}

static int native_create_qp(struct ordma_context *ctx, struct ordma_qp *qp, struct ibv_qp_init_attr_ex *attr,
			    const struct ordma_abi_create_qp_req *drv, struct ordma_abi_create_qp_resp *out)
{
	struct ordma_np_create_qp req = {
		.user_handle = (uintptr_t)&qp->vqp.qp,
		.pd = attr->pd->handle,
		.scq = attr->send_cq->handle,
		.rcq = attr->recv_cq->handle,
		.srq = attr->srq ? attr->srq->handle : UINT32_MAX,
		.type = attr->qp_type,
		.max_send_wr = attr->cap.max_send_wr,
		.max_recv_wr = attr->cap.max_recv_wr,
		.max_send_sge = attr->cap.max_send_sge,
		.max_recv_sge = attr->cap.max_recv_sge,
		.max_inline = attr->cap.max_inline_data,
		.drv = *drv,
	};
	struct ibv_qp *ibqp = &qp->vqp.qp;
	struct ordma_np_qp resp;
	int err = CALL(ctx, ORDMA_NP_CREATE_QP, req, resp);

	if (err)
		return err;
	ibqp->handle = resp.handle;
	ibqp->context = &ctx->ibvctx.context;
	ibqp->qp_context = attr->qp_context;
	ibqp->pd = attr->pd;
	ibqp->send_cq = attr->send_cq;
	ibqp->recv_cq = attr->recv_cq;
	ibqp->srq = attr->srq;
	ibqp->qp_type = attr->qp_type;
	ibqp->state = IBV_QPS_RESET;
	ibqp->events_completed = 0;
	pthread_mutex_init(&ibqp->mutex, NULL);
	pthread_cond_init(&ibqp->cond, NULL);
	*out = resp.drv;
	return 0;
}

static void pack_ah(struct ordma_np_ah *out, const struct ibv_ah_attr *ah)
{
	memcpy(out->dgid, ah->grh.dgid.raw, sizeof(out->dgid));
	out->flow_label = ah->grh.flow_label;
	out->sgid_index = ah->grh.sgid_index;
	out->hop_limit = ah->grh.hop_limit;
	out->traffic_class = ah->grh.traffic_class;
	out->sl = ah->sl;
	out->is_global = ah->is_global;
	out->port_num = ah->port_num;
	out->static_rate = ah->static_rate;
	out->src_path_bits = ah->src_path_bits;
}

static void unpack_ah(struct ibv_ah_attr *ah, const struct ordma_np_ah *in)
{
	memset(ah, 0, sizeof(*ah));
	memcpy(ah->grh.dgid.raw, in->dgid, sizeof(in->dgid));
	ah->grh.flow_label = in->flow_label;
	ah->grh.sgid_index = in->sgid_index;
	ah->grh.hop_limit = in->hop_limit;
	ah->grh.traffic_class = in->traffic_class;
	ah->sl = in->sl;
	ah->is_global = in->is_global;
	ah->port_num = in->port_num;
	ah->static_rate = in->static_rate;
	ah->src_path_bits = in->src_path_bits;
}

static int native_modify_qp(struct ordma_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ordma_np_qp_attr req = {
		.handle = qp->vqp.qp.handle,
		.mask = mask,
		.qp_state = attr->qp_state,
		.cur_qp_state = attr->cur_qp_state,
		.path_mtu = attr->path_mtu,
		.path_mig_state = attr->path_mig_state,
		.qkey = attr->qkey,
		.rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn,
		.dest_qp_num = attr->dest_qp_num,
		.qp_access_flags = attr->qp_access_flags,
		.max_send_wr = attr->cap.max_send_wr,
		.max_recv_wr = attr->cap.max_recv_wr,
		.max_send_sge = attr->cap.max_send_sge,
		.max_recv_sge = attr->cap.max_recv_sge,
		.max_inline_data = attr->cap.max_inline_data,
		.pkey_index = attr->pkey_index,
		.en_sqd_async_notify = attr->en_sqd_async_notify,
		.max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.min_rnr_timer = attr->min_rnr_timer,
		.port_num = attr->port_num,
		.timeout = attr->timeout,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.rate_limit = attr->rate_limit,
	};
	int err;

	pack_ah(&req.ah, &attr->ah_attr);
	err = TELL(to_octx(qp->vqp.qp.context), ORDMA_NP_MODIFY_QP, req);
	if (!err && (mask & IBV_QP_STATE))
		qp->vqp.qp.state = attr->qp_state;
	return err;
}

static int native_query_qp(struct ordma_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct ordma_np_handle req = { .handle = qp->vqp.qp.handle };
	struct ordma_np_qp_attr r;
	int err = CALL(to_octx(qp->vqp.qp.context), ORDMA_NP_QUERY_QP, req, r);

	(void)mask;
	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = r.qp_state;
	attr->cur_qp_state = r.cur_qp_state;
	attr->path_mtu = r.path_mtu;
	attr->path_mig_state = r.path_mig_state;
	attr->qkey = r.qkey;
	attr->rq_psn = r.rq_psn;
	attr->sq_psn = r.sq_psn;
	attr->dest_qp_num = r.dest_qp_num;
	attr->qp_access_flags = r.qp_access_flags;
	attr->pkey_index = r.pkey_index;
	attr->en_sqd_async_notify = r.en_sqd_async_notify;
	attr->sq_draining = r.sq_draining;
	attr->max_rd_atomic = r.max_rd_atomic;
	attr->max_dest_rd_atomic = r.max_dest_rd_atomic;
	attr->min_rnr_timer = r.min_rnr_timer;
	attr->port_num = r.port_num;
	attr->timeout = r.timeout;
	attr->retry_cnt = r.retry_cnt;
	attr->rnr_retry = r.rnr_retry;
	attr->rate_limit = r.rate_limit;
	unpack_ah(&attr->ah_attr, &r.ah);
	qp->vqp.qp.state = r.qp_state;
	return 0;
}

static int native_destroy_qp(struct ordma_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	struct ordma_np_destroyed read;
	int err = destroy_object(to_octx(ibqp->context), ORDMA_NP_DESTROY_QP, ibqp->handle, &read);

	if (!err)
		wait_for_acks(&ibqp->mutex, &ibqp->cond, &ibqp->events_completed, read.async_events);
	return err;
}

static int mcast(struct ordma_qp *qp, enum ordma_np_op op, const union ibv_gid *gid, uint16_t lid)
{
	struct ordma_np_mcast req = { .qp = qp->vqp.qp.handle, .lid = lid };

	memcpy(req.gid, gid->raw, sizeof(req.gid));
	return TELL(to_octx(qp->vqp.qp.context), op, req);
}

static int native_attach_mcast(struct ordma_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return mcast(qp, ORDMA_NP_ATTACH_MCAST, gid, lid);
}

static int native_detach_mcast(struct ordma_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return mcast(qp, ORDMA_NP_DETACH_MCAST, gid, lid);
}

static void native_close(struct ordma_context *ctx)
{
	struct ordma_native *n = ctx->native;

	ordma_native_remove(n);
	ordma_socket_close(&n->sock);
	munmap(n->public_page, ORDMA_DB_STRIDE);
	close(n->kick_fd);
	if (ctx->ibvctx.context.async_fd >= 0)
		close(ctx->ibvctx.context.async_fd);
	ctx->ibvctx.context.async_fd = -1;
	free(n);
}

const struct ordma_backend ordma_backend_native = {
	.name = "native",
	.buf_alloc = native_buf_alloc,
	.buf_free = native_buf_free,
	.map_page = native_map_page,
	.kick = native_kick,
	.relax = native_relax,
	.alive = native_alive,
	.query_device = native_query_device,
	.query_port = native_query_port,
	.alloc_pd = native_alloc_pd,
	.dealloc_pd = native_dealloc_pd,
	.reg_mr = native_reg_mr,
	.dereg_mr = native_dereg_mr,
	.create_ah = native_create_ah,
	.destroy_ah = native_destroy_ah,
	.create_cq = native_create_cq,
	.resize_cq = native_resize_cq,
	.destroy_cq = native_destroy_cq,
	.create_srq = native_create_srq,
	.modify_srq = native_modify_srq,
	.query_srq = native_query_srq,
	.destroy_srq = native_destroy_srq,
	.create_qp = native_create_qp,
	.modify_qp = native_modify_qp,
	.query_qp = native_query_qp,
	.destroy_qp = native_destroy_qp,
	.attach_mcast = native_attach_mcast,
	.detach_mcast = native_detach_mcast,
	.close = native_close,
};

/* The soft-device reads and writes this process; where only descendants may do that, it must be named. */
static void allow_access(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		prctl(PR_SET_PTRACER, peer.pid);
}

int ordma_open_native(struct ordma_context *ctx, const char *device_name)
{
	struct ordma_np_hello_resp resp;
	struct ordma_np_hello req = {};
	struct ordma_native *n;
	int fds[3];
	int err;

	/* A rename is the kernel's business; here the name is the NIC. */
	if (sscanf(device_name, "ordma%u", &req.nic) != 1)
		return ENODEV;
	n = calloc(1, sizeof(*n));
	if (!n)
		return ENOMEM;
	err = ordma_socket_open(&n->sock, getenv(ORDMA_NP_ENV_SOCKET));
	if (err) {
		fprintf(stderr, "libordma: no soft-device at %s: %s\n", getenv(ORDMA_NP_ENV_SOCKET), strerror(err));
		goto err_free;
	}
	allow_access(n->sock.fd);
	err = ordma_socket_call(&n->sock, ORDMA_NP_HELLO, &req, sizeof(req), -1, &resp, sizeof(resp), fds, 3);
	if (err)
		goto err_close;
	n->public_page = mmap(NULL, ORDMA_DB_STRIDE, PROT_READ, MAP_SHARED, fds[0], 0);
	err = n->public_page == MAP_FAILED ? errno : 0;
	close(fds[0]);
	if (err) {
		close(fds[1]);
		close(fds[2]);
		goto err_close;
	}
	n->kick_fd = fds[1];
	n->ctx = ctx;
	ctx->ibvctx.context.async_fd = fds[2];
	ctx->native = n;
	ctx->be = &ordma_backend_native;
	ctx->attr = resp.ctx;
	ctx->asleep = (const volatile uint64_t *)((uint8_t *)n->public_page + (ORDMA_REG_ASLEEP % ORDMA_DB_STRIDE));
	ctx->ibvctx.context.num_comp_vectors = resp.num_comp_vectors;
	ordma_native_add(n);
	return 0;

err_close:
	ordma_socket_close(&n->sock);
err_free:
	free(n);
	return err;
}
