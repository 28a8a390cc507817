// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Address handles: no object of the device; a UD WQE carries the vector. */
#include <rdma/ib_addr.h>

#include "ordma_ib.h"

void ordma_ah_attr(const struct rdma_ah_attr *ah, struct ordma_ah_attr *out)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);

	memcpy(out->dgid, grh->dgid.raw, sizeof(out->dgid));
	out->flow_label = grh->flow_label;
	out->sgid_index = grh->sgid_index;
	out->hop_limit = grh->hop_limit;
	out->traffic_class = grh->traffic_class;
	out->sl = rdma_ah_get_sl(ah);
	out->is_global = !!(rdma_ah_get_ah_flags(ah) & IB_AH_GRH);
	out->port_num = rdma_ah_get_port_num(ah);
	out->static_rate = rdma_ah_get_static_rate(ah);
	out->src_path_bits = 0;
	memcpy(out->dmac, ah->roce.dmac, sizeof(out->dmac));
}

int ordma_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibah->device);
	struct ordma_abi_create_ah_resp resp = {};
	struct ordma_ibah *ah = to_oah(ibah);
	struct ordma_av *av = &ah->av;
	struct ordma_ah_attr attr;
	int err;

	err = ordma_udata_none(udata);
	if (err)
		return err;
	if (init->ah_attr->type != RDMA_AH_ATTR_TYPE_ROCE)
		return -EINVAL;
	ordma_ah_attr(init->ah_attr, &attr);
	if (!attr.is_global || !ordma_core_gid_ok(&dev->core, attr.sgid_index))
		return -EINVAL;
	memset(av, 0, sizeof(*av));
	ORDMA_SET(av, AV_SGID_INDEX, attr.sgid_index);
	ORDMA_SET(av, AV_DMAC, ordma_mac_to_u64(attr.dmac));
	ORDMA_SET(av, AV_HOP_LIMIT, attr.hop_limit);
	ORDMA_SET(av, AV_TCLASS, attr.traffic_class);
	memcpy(&av->w[ORDMA_AV_DGID_OFF / sizeof(u64)], attr.dgid, ORDMA_AV_DGID_LEN);
	ORDMA_SET(av, AV_FLOW_LABEL, attr.flow_label);
	ORDMA_SET(av, AV_SL, attr.sl);
	if (!udata)
		return 0;
	memcpy(resp.dmac, attr.dmac, sizeof(resp.dmac));
	return ordma_udata_out(udata, &resp, sizeof(resp));
}

int ordma_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
