// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Objects without a data path of their own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

struct ibv_pd *ordma_alloc_pd(struct ibv_context *ctx)
{
	struct ordma_pd *pd = calloc(1, sizeof(*pd));
	int err;

	if (!pd)
		return NULL;
	err = to_octx(ctx)->be->alloc_pd(to_octx(ctx), pd);
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	return &pd->ibv_pd;
}

int ordma_dealloc_pd(struct ibv_pd *ibpd)
{
	struct ordma_pd *pd = to_opd(ibpd);
	int err = to_octx(ibpd->context)->be->dealloc_pd(pd);

	if (!err)
		free(pd);
	return err;
}

struct ibv_mr *ordma_reg_mr(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	struct ordma_mr *mr = calloc(1, sizeof(*mr));
	int err;

	if (!mr)
		return NULL;
	err = to_octx(pd->context)->be->reg_mr(to_opd(pd), addr, len, iova, access, mr);
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->vmr.ibv_mr;
}

struct ibv_mr *ordma_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access)
{
	const struct ordma_backend *be = to_octx(pd->context)->be;
	struct ordma_mr *mr;
	int err;

	if (!be->reg_dmabuf_mr) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	err = be->reg_dmabuf_mr(to_opd(pd), offset, len, iova, fd, access, mr);
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->vmr.ibv_mr;
}

int ordma_dereg_mr(struct verbs_mr *vmr)
{
	struct ordma_mr *mr = container_of(vmr, struct ordma_mr, vmr);
	int err = to_octx(vmr->ibv_mr.context)->be->dereg_mr(mr);

	if (!err)
		free(mr);
	return err;
}

static void fill_av(struct ordma_av *av, const struct ibv_ah_attr *attr, const uint8_t dmac[6])
{
	uint64_t mac = 0;
	int i;

	for (i = 5; i >= 0; i--)
		mac = mac << 8 | dmac[i];
	ORDMA_SET(av, AV_SGID_INDEX, attr->grh.sgid_index);
	ORDMA_SET(av, AV_DMAC, mac);
	ORDMA_SET(av, AV_HOP_LIMIT, attr->grh.hop_limit);
	ORDMA_SET(av, AV_TCLASS, attr->grh.traffic_class);
	ORDMA_SET(av, AV_FLOW_LABEL, attr->grh.flow_label);
	/* A priority has three bits: more is what a completion said about its packet, taken over for the reply. */
	ORDMA_SET(av, AV_SL, attr->sl & ORDMA_SL_PACKET_TYPE ? 0 : attr->sl);
	memcpy((uint8_t *)av + ORDMA_AV_DGID_OFF, attr->grh.dgid.raw, ORDMA_AV_DGID_LEN);
}

struct ibv_ah *ordma_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	uint8_t dmac[6] = {};
	struct ordma_ah *ah;
	int err;

	/* RoCE addresses are GIDs: without a GRH there is no destination. */
	if (!attr->is_global || attr->port_num != 1) {
		errno = EINVAL;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	err = to_octx(pd->context)->be->create_ah(to_opd(pd), attr, ah, dmac);
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	fill_av(&ah->av, attr, dmac);
	return &ah->ibv_ah;
}

int ordma_destroy_ah(struct ibv_ah *ibah)
{
	struct ordma_ah *ah = to_oah(ibah);
	int err = to_octx(ibah->context)->be->destroy_ah(ah);

	if (!err)
		free(ah);
	return err;
}

int ordma_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t size)
{
	return to_octx(ctx)->be->query_device(to_octx(ctx), input, attr, size);
}

int ordma_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	return port == 1 ? to_octx(ctx)->be->query_port(to_octx(ctx), port, attr) : EINVAL;
}

int ordma_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	/* Which GIDs are groups is the back end's to know: RoCE has IPv4 ones too. */
	if (qp->qp_type != IBV_QPT_UD)
		return EINVAL;
	return to_octx(qp->context)->be->attach_mcast(to_oqp(qp), gid, lid);
}

int ordma_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return to_octx(qp->context)->be->detach_mcast(to_oqp(qp), gid, lid);
}
