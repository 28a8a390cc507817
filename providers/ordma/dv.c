// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Direct verbs: the public calls beyond ibv_*. Each first makes sure that the device is ours. */
#include <errno.h>
#include <string.h>

#include <infiniband/ordmadv.h>

#include "backend.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT bool ordmadv_is_supported(struct ibv_device *device)
{
	return ordma_is_device(device);
}

static uint64_t caps_of(const struct ordma_context *ctx)
{
	uint64_t caps = 0;

	if (ctx->attr.caps & ORDMA_CAP_TOKEN)
		caps |= ORDMADV_CAP_TOKEN;
	if (ctx->attr.caps & ORDMA_CAP_MRC)
		caps |= ORDMADV_CAP_MRC;
	return caps;
}

EXPORT int ordmadv_query_device(struct ibv_context *ibctx, struct ordmadv_device_attr *attr, uint32_t inlen)
{
	struct ordmadv_device_attr full = {};
	struct ordma_context *ctx;

	if (!ordmadv_is_supported(ibctx->device))
		return EOPNOTSUPP;
	/* The first version is this one: no caller knows a shorter structure. */
	if (inlen < sizeof(full))
		return EINVAL;
	ctx = to_octx(ibctx);
	full.caps = caps_of(ctx);
	full.flags = (ctx->asleep ? ORDMADV_DEVICE_SOFT : 0) | (ctx->native ? ORDMADV_DEVICE_NATIVE : 0);
	full.contract_version = ctx->attr.contract_version;
	full.max_inline_data = ctx->attr.max_inline;
	memset(attr, 0, inlen);
	memcpy(attr, &full, sizeof(full));
	return 0;
}
