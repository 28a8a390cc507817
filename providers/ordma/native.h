/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the native back end share. */
#ifndef ORDMA_NATIVE_H
#define ORDMA_NATIVE_H

#include "native_socket.h"
#include "ordma.h"

/* A completion channel; libibverbs sees the first member. */
struct native_channel {
	struct ibv_comp_channel channel;
	struct native_channel *next;
	uint32_t handle;
};

struct ordma_native {
	struct ordma_context *ctx;
	struct ordma_native *next;
	struct native_channel *channels;	/* under the mutex of the ibv_context, as their refcnt */
	struct ordma_socket sock;
	int kick_fd;
	void *public_page;
};

#define CALL(ctx, op, req, resp)                                                                                        \
	ordma_socket_call(&(ctx)->native->sock, op, &(req), sizeof(req), -1, &(resp), sizeof(resp), NULL, 0)
#define TELL(ctx, op, req) ordma_socket_call(&(ctx)->native->sock, op, &(req), sizeof(req), -1, NULL, 0, NULL, 0)

static inline int ordma_native_tell(struct ordma_context *ctx, enum ordma_np_op op, uint32_t handle)
{
	struct ordma_np_handle req = { .handle = handle };

	return TELL(ctx, op, req);
}

/* native_channel.c */
void ordma_native_add(struct ordma_native *n);
void ordma_native_remove(struct ordma_native *n);
/* Handle of a channel that is ours; 0 for one that libibverbs made up from /dev/null. */
uint32_t ordma_native_channel(struct ordma_context *ctx, const struct ibv_comp_channel *channel);

#endif /* ORDMA_NATIVE_H */
