// SPDX-License-Identifier: BSD-2-Clause
/*
 * no-namespaces CMD...: runs CMD as on a host that allows no namespaces and no mounts, also to root (a container with its usual
 * seccomp profile). unshare, setns and mount give EPERM, clone3 gives ENOSYS so that libc falls back to clone, whose flags a
 * filter can see.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
/* CLONE_NEWTIME shares its bit with the exit signal of clone(), so it is no flag there. */
#define NAMESPACES                                                                                                    \
	(CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

#define DATA(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
#define REFUSE(err) (SECCOMP_RET_ERRNO | (err))
/* Skips the next `skip` statements unless the loaded word is value. */
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)

static struct sock_filter filter[] = {
	DATA(arch),
	UNLESS(AUDIT_ARCH_X86_64, 13),
	DATA(nr),
	UNLESS(SYS_unshare, 1),
	ANSWER(REFUSE(EPERM)),
	UNLESS(SYS_setns, 1),
	ANSWER(REFUSE(EPERM)),
	UNLESS(SYS_mount, 1),
	ANSWER(REFUSE(EPERM)),
	UNLESS(SYS_clone3, 1),
	ANSWER(REFUSE(ENOSYS)),
	UNLESS(SYS_clone, 3),
	DATA(args[0]),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1),
	ANSWER(REFUSE(EPERM)),
	ANSWER(SECCOMP_RET_ALLOW),
};

int main(int argc, char **argv)
{
	const struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (argc < 2) {
		fprintf(stderr, "usage: no-namespaces CMD...\n");
		return 125;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("no-namespaces: seccomp");
		return 125;
	}
	if (!unshare(CLONE_NEWNS) || errno != EPERM) {
		fprintf(stderr, "no-namespaces: the filter does not hold\n");
		return 125;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 125;
}
