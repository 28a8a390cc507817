/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef ORDMA_NATIVE_SOCKET_H
#define ORDMA_NATIVE_SOCKET_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "native_proto.h"

/* Connection to a soft-device: one request at a time, each answered before the next. */
struct ordma_socket {
	int fd;
	uint32_t seq;
	pthread_mutex_t lock;
};

int ordma_socket_open(struct ordma_socket *s, const char *path);
void ordma_socket_close(struct ordma_socket *s);
/*
 * Sends op with req_len bytes and one optional descriptor (-1 none); waits for the reply, whose body must be exactly
 * resp_len bytes, with exactly num_fds descriptors. Returns 0 or the errno of transport or soft-device.
 */
int ordma_socket_call(struct ordma_socket *s, enum ordma_np_op op, const void *req, size_t req_len, int send_fd, void *resp,
		      size_t resp_len, int *fds, unsigned int num_fds);

#endif /* ORDMA_NATIVE_SOCKET_H */
