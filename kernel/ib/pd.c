// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains: a number that MRs and QPs carry. */
#include "ordma_ib.h"

int ordma_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibpd->device);
	struct ordma_abi_alloc_pd_resp resp = {};
	struct ordma_ibpd *pd = to_opd(ibpd);
	int err;

	err = ordma_udata_none(udata) ?: ordma_id_get(&dev->pdns, &pd->pdn);
	if (err || !udata)
		return err;
	resp.pdn = pd->pdn;
	err = ordma_udata_out(udata, &resp, sizeof(resp));
	if (err)
		ordma_id_put(&dev->pdns, pd->pdn);
	return err;
}

int ordma_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	ordma_id_put(&to_odev(ibpd->device)->pdns, to_opd(ibpd)->pdn);
	return 0;
}
