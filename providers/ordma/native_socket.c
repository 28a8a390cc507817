// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "native_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int ordma_socket_open(struct ordma_socket *s, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(addr.sun_path))
		return ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return errno;
	if (connect(s->fd, (struct sockaddr *)&addr, sizeof(addr))) {
		int err = errno;

		close(s->fd);
		return err;
	}
	s->seq = 0;
	pthread_mutex_init(&s->lock, NULL);
	return 0;
}

void ordma_socket_close(struct ordma_socket *s)
{
	close(s->fd);
	pthread_mutex_destroy(&s->lock);
}

static int send_request(struct ordma_socket *s, const struct ordma_np_hdr *hdr, const void *req, int send_fd)
{
	struct iovec iov[2] = { { (void *)hdr, sizeof(*hdr) }, { (void *)req, hdr->len } };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = hdr->len ? 2 : 1 };

	if (send_fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &send_fd, sizeof(int));
	}
	while (sendmsg(s->fd, &msg, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return errno == EPIPE ? EIO : errno;
	}
	return 0;
}

/* Takes up to max descriptors out of a message; returns how many came. */
static unsigned int take_fds(struct msghdr *msg, int *fds, unsigned int max)
{
	unsigned int n = 0;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		unsigned int i, count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n < max)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
	return n;
}

static int receive_reply(struct ordma_socket *s, struct ordma_np_hdr *hdr, void *resp, size_t resp_len, int *fds,
			 unsigned int *num_fds)
{
	struct iovec iov[2] = { { hdr, sizeof(*hdr) }, { resp, resp_len } };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(ORDMA_NP_MAX_FDS * sizeof(int))];
	} control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = resp_len ? 2 : 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n;

	do {
		n = recvmsg(s->fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	*num_fds = n >= 0 ? take_fds(&msg, fds, ORDMA_NP_MAX_FDS) : 0;
	if (n < 0)
		return errno;
	if (n < (ssize_t)sizeof(*hdr) || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return EIO;
	return hdr->err ? hdr->err : (size_t)n == sizeof(*hdr) + resp_len ? 0 : EPROTO;
}

int ordma_socket_call(struct ordma_socket *s, enum ordma_np_op op, const void *req, size_t req_len, int send_fd, void *resp,
		      size_t resp_len, int *fds, unsigned int num_fds)
{
	struct ordma_np_hdr hdr = { .op = op, .version = ORDMA_NP_VERSION, .len = req_len };
	int got[ORDMA_NP_MAX_FDS];
	unsigned int n = 0, i;
	uint32_t seq;
	int err;

	pthread_mutex_lock(&s->lock);
	seq = hdr.seq = ++s->seq;
	err = send_request(s, &hdr, req, send_fd);
	if (!err)
		err = receive_reply(s, &hdr, resp, resp_len, got, &n);
	pthread_mutex_unlock(&s->lock);
	if (!err && (hdr.seq != seq || n != num_fds))
		err = EPROTO;
	for (i = 0; i < n; i++) {
		if (err)
			close(got[i]);
		else
			fds[i] = got[i];
	}
	return err;
}
