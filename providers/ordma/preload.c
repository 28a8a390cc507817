// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libordma-preload.so, part 1: what unmodified programs need besides the provider to use a soft-device. `ordma run` sets LD_PRELOAD;
 * a program that never opens an RDMA device only pays for the look at its arguments.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "native_proto.h"
#include "preload.h"

#define EXPORT __attribute__((visibility("default")))

static _Atomic(const struct ordma_channel_ops *) channel_ops;

EXPORT void ordma_preload_attach(const struct ordma_channel_ops *ops);
EXPORT void ordma_preload_attach(const struct ordma_channel_ops *ops)
{
	atomic_store_explicit(&channel_ops, ops, memory_order_release);
}

/* The library that we stand in front of; a plug-in of the program may have loaded it where RTLD_NEXT does not look. */
static void *in_libibverbs(const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name);
	void *lib;

	if (fn)
		return fn;
	lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	return lib ? dlsym(lib, name) : NULL;
}

static const struct ordma_channel_ops *ops_of(const struct ibv_context *context)
{
	const struct ordma_channel_ops *ops = atomic_load_explicit(&channel_ops, memory_order_acquire);

	return ops && ops->owns(context) ? ops : NULL;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	const struct ordma_channel_ops *ops = ops_of(context);
	struct ibv_comp_channel *(*real)(struct ibv_context *);

	if (ops)
		return ops->create(context);
	real = in_libibverbs("ibv_create_comp_channel");
	if (!real) {
		errno = ENOSYS;
		return NULL;
	}
	return real(context);
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	const struct ordma_channel_ops *ops = ops_of(channel->context);
	int (*real)(struct ibv_comp_channel *);

	if (ops)
		return ops->destroy(channel);
	real = in_libibverbs("ibv_destroy_comp_channel");
	return real ? real(channel) : ENOSYS;
}

/* `ordma pair` shows the server's lines as they come, although they go through a pipe. */
static __attribute__((constructor)) void choose_buffering(void)
{
	const char *mode = secure_getenv("ORDMA_STDOUT");

	if (mode && !strcmp(mode, "line"))
		setvbuf(stdout, NULL, _IOLBF, 0);
}

/*
 * libibverbs asks the kernel's RDMA core for its devices first and reads sysfs only when there is none. The soft NICs stand in
 * sysfs alone, so on a host with an RDMA core that question must fail as on a host without.
 */
EXPORT int socket(int domain, int type, int protocol)
{
	static _Atomic(int (*)(int, int, int)) real;
	int (*fn)(int, int, int) = atomic_load_explicit(&real, memory_order_relaxed);

	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && secure_getenv(ORDMA_NP_ENV_SOCKET)) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	if (!fn) {
		fn = dlsym(RTLD_NEXT, "socket");
		atomic_store_explicit(&real, fn, memory_order_relaxed);
	}
	return fn(domain, type, protocol);
}
