// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion channels of native contexts. The soft-device makes them and keeps their only write end, so a reader's read ends when it
 * dies. libibverbs would make a channel by a command to the uverbs node; the preload library calls here instead.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "native.h"
#include "preload.h"

/* All native contexts of this process: the preload library must tell them from others. */
static pthread_mutex_t natives_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ordma_native *natives;

static bool channels_own(const struct ibv_context *context)
{
	struct ordma_native *n;

	pthread_mutex_lock(&natives_lock);
	for (n = natives; n && &n->ctx->ibvctx.context != context; n = n->next)
		;
	pthread_mutex_unlock(&natives_lock);
	return n;
}

static struct ibv_comp_channel *channels_create(struct ibv_context *context)
{
	struct ordma_native *n = to_octx(context)->native;
	struct native_channel *c = calloc(1, sizeof(*c));
	struct ordma_np_handle resp;
	int fd, err;

	if (!c)
		return NULL;
	err = ordma_socket_call(&n->sock, ORDMA_NP_CREATE_CHANNEL, NULL, 0, -1, &resp, sizeof(resp), &fd, 1);
	if (err) {
		free(c);
		errno = err;
		return NULL;
	}
	c->handle = resp.handle;
	c->channel.context = context;
	c->channel.fd = fd;
	pthread_mutex_lock(&context->mutex);
	c->next = n->channels;
	n->channels = c;
	pthread_mutex_unlock(&context->mutex);
	return &c->channel;
}

static int channels_destroy(struct ibv_comp_channel *channel)
{
	struct native_channel *c = container_of(channel, struct native_channel, channel);
	struct ibv_context *context = channel->context;
	struct native_channel **at = &to_octx(context)->native->channels;
	int refs;

	pthread_mutex_lock(&context->mutex);
	refs = channel->refcnt;
	while (!refs && *at) {
		if (*at == c)
			*at = c->next;
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&context->mutex);
	if (refs)
		return EBUSY;
	/* A soft-device that is gone has nothing to forget. */
	ordma_native_tell(to_octx(context), ORDMA_NP_DESTROY_CHANNEL, c->handle);
	close(channel->fd);
	free(c);
	return 0;
}

static const struct ordma_channel_ops channel_ops = {
	.owns = channels_own,
	.create = channels_create,
	.destroy = channels_destroy,
};

uint32_t ordma_native_channel(struct ordma_context *ctx, const struct ibv_comp_channel *channel)
{
	struct ibv_context *context = &ctx->ibvctx.context;
	struct native_channel *c;

	pthread_mutex_lock(&context->mutex);
	for (c = ctx->native->channels; c && &c->channel != channel; c = c->next)
		;
	pthread_mutex_unlock(&context->mutex);
	return c ? c->handle : 0;
}

static void attach_preload(void)
{
	ordma_preload_attach_fn attach = (ordma_preload_attach_fn)dlsym(RTLD_DEFAULT, ORDMA_PRELOAD_ATTACH);

	if (attach)
		attach(&channel_ops);
}

void ordma_native_add(struct ordma_native *n)
{
	pthread_mutex_lock(&natives_lock);
	n->next = natives;
	natives = n;
	pthread_mutex_unlock(&natives_lock);
	attach_preload();
}

void ordma_native_remove(struct ordma_native *n)
{
	struct ordma_native **at = &natives;

	pthread_mutex_lock(&natives_lock);
	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	pthread_mutex_unlock(&natives_lock);
}
