// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Compiled, never loaded: the contract header under the kernel's warnings and sparse. */
#include <linux/module.h>
#include "ordma_hw.h"

static __le64 hwtest_cqe(struct ordma_cqe *cqe, struct ordma_bth *bth)
{
	ORDMA_SET(cqe, CQE_STATUS, ORDMA_BE_GET(bth, BTH_PSN));
	ORDMA_BE_SET(bth, BTH_PSN, ORDMA_GET(cqe, CQE_QPN));
#ifdef HWTEST_SPARSE_MUST_REFUSE
	return cqe->w[ORDMA_CQE_STATUS_W] + 1;
#else
	return cpu_to_le64(ORDMA_FIELD(TOKEN_SLOT, ORDMA_REG_MAGIC));
#endif
}

static int __init hwtest_init(void)
{
	struct ordma_cqe cqe = {};
	struct ordma_bth bth = {};

	return hwtest_cqe(&cqe, &bth) ? -EINVAL : 0;
}
module_init(hwtest_init);

static void __exit hwtest_exit(void)
{
}
module_exit(hwtest_exit);

MODULE_DESCRIPTION("compile check of the contract header");
MODULE_LICENSE("Dual BSD/GPL");
