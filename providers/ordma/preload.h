/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Between the provider and libordma-preload.so, which are built together. */
#ifndef ORDMA_PRELOAD_H
#define ORDMA_PRELOAD_H

#include <stdbool.h>

#include <infiniband/verbs.h>

/*
 * Completion channels are the one object that libibverbs makes without asking the provider: it writes a command to the uverbs
 * node, and a native context has /dev/null there. So the preload library takes these two calls and hands them on.
 */
struct ordma_channel_ops {
	bool (*owns)(const struct ibv_context *context);
	struct ibv_comp_channel *(*create)(struct ibv_context *context);
	int (*destroy)(struct ibv_comp_channel *channel);
};

/* Exported by the preload library; the provider finds it by name when it opens its first native context. */
#define ORDMA_PRELOAD_ATTACH "ordma_preload_attach"
typedef void (*ordma_preload_attach_fn)(const struct ordma_channel_ops *ops);

#endif /* ORDMA_PRELOAD_H */
