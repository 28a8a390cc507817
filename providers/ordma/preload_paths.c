// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libordma-preload.so, part 2: where namespaces are not allowed, a program is shown the soft NICs by redirecting its paths.
 * Below the directory that ORDMA_SYSFS names, `ordma run` has put class/infiniband, class/infiniband_verbs and dev/infiniband. Only
 * absolute paths of these are changed; without ORDMA_SYSFS none is.
 *
 * These functions are called from everywhere: in constructors, in signal handlers, between vfork and exec. So: no allocation, no
 * lock after the first call, a small buffer, errno untouched.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define REDIRECT_MAX 512

static char root[REDIRECT_MAX];
static size_t root_len;
static pthread_once_t root_once = PTHREAD_ONCE_INIT;

static void read_root(void)
{
	const char *value = secure_getenv("ORDMA_SYSFS");
	size_t len = value ? strlen(value) : 0;

	if (len == 0 || len >= sizeof(root) || value[0] != '/')
		return;
	memcpy(root, value, len + 1);
	root_len = len;
}

static bool below(const char *path, const char *dir, size_t len)
{
	return !strncmp(path, dir, len) && (path[len] == '/' || path[len] == '\0');
}

#define BELOW(path, dir) below(path, dir, sizeof(dir) - 1)

/* The path to use: the given one, or what stands for it, in buf. */
static __attribute__((noinline)) const char *redirect(const char *path, char buf[REDIRECT_MAX])
{
	const char *tail;
	size_t len;

	if (!path || path[0] != '/')
		return path;
	pthread_once(&root_once, read_root);
	if (!root_len)
		return path;
	if (BELOW(path, "/sys/class/infiniband") || BELOW(path, "/sys/class/infiniband_verbs"))
		tail = path + sizeof("/sys") - 1;
	else if (BELOW(path, "/dev/infiniband"))
		tail = path;
	else
		return path;
	len = strlen(tail);
	if (root_len + len >= REDIRECT_MAX)
		return path;
	memcpy(buf, root, root_len);
	memcpy(buf + root_len, tail, len + 1);
	return buf;
}

static void *resolve(_Atomic(void *) *slot, const char *name)
{
	void *fn = atomic_load_explicit(slot, memory_order_relaxed);
	int saved = errno;

	if (!fn) {
		fn = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(slot, fn, memory_order_relaxed);
		errno = saved;
	}
	return fn;
}

#define REAL(name)                                                                                                      \
	({                                                                                                              \
		static _Atomic(void *) slot_;                                                                           \
		(__typeof__(&name))resolve(&slot_, #name);                                                              \
	})

/* A call whose only change is its parameter `path`. */
#define REDIRECTED(type, name, params, ...)                                                                             \
	EXPORT type name params                                                                                         \
	{                                                                                                               \
		char buf[REDIRECT_MAX];                                                                                 \
                                                                                                                        \
		path = redirect(path, buf);                                                                             \
		return REAL(name)(__VA_ARGS__);                                                                         \
	}

/* ------------------------------------------------------------------------------------------------------------- open */

#define OPEN_MODE(flags)                                                                                                \
	({                                                                                                              \
		mode_t mode_ = 0;                                                                                       \
		if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                                \
			va_list ap_;                                                                                    \
			va_start(ap_, flags);                                                                           \
			mode_ = va_arg(ap_, mode_t);                                                                    \
			va_end(ap_);                                                                                    \
		}                                                                                                       \
		mode_;                                                                                                  \
	})

EXPORT int open(const char *path, int flags, ...)
{
	char buf[REDIRECT_MAX];
	mode_t mode = OPEN_MODE(flags);

	return REAL(open)(redirect(path, buf), flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
	char buf[REDIRECT_MAX];
	mode_t mode = OPEN_MODE(flags);

	return REAL(open64)(redirect(path, buf), flags, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
	char buf[REDIRECT_MAX];
	mode_t mode = OPEN_MODE(flags);

	return REAL(openat)(dir, redirect(path, buf), flags, mode);
}

EXPORT int openat64(int dir, const char *path, int flags, ...)
{
	char buf[REDIRECT_MAX];
	mode_t mode = OPEN_MODE(flags);

	return REAL(openat64)(dir, redirect(path, buf), flags, mode);
}

/* What open() is compiled to under _FORTIFY_SOURCE when its flags are not a constant. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

REDIRECTED(int, __open_2, (const char *path, int flags), path, flags)
REDIRECTED(int, __open64_2, (const char *path, int flags), path, flags)
REDIRECTED(int, __openat_2, (int dir, const char *path, int flags), dir, path, flags)
REDIRECTED(int, __openat64_2, (int dir, const char *path, int flags), dir, path, flags)

REDIRECTED(FILE *, fopen, (const char *path, const char *mode), path, mode)
REDIRECTED(FILE *, fopen64, (const char *path, const char *mode), path, mode)
REDIRECTED(FILE *, freopen, (const char *path, const char *mode, FILE *file), path, mode, file)
REDIRECTED(FILE *, freopen64, (const char *path, const char *mode, FILE *file), path, mode, file)

/* ------------------------------------------------------------------------------------------------------ directories */

typedef int (*filter_fn)(const struct dirent *);
typedef int (*filter64_fn)(const struct dirent64 *);
typedef int (*compare_fn)(const struct dirent **, const struct dirent **);
typedef int (*compare64_fn)(const struct dirent64 **, const struct dirent64 **);

REDIRECTED(DIR *, opendir, (const char *path), path)
REDIRECTED(int, scandir, (const char *path, struct dirent ***list, filter_fn filter, compare_fn compare), path, list, filter,
	   compare)
REDIRECTED(int, scandir64, (const char *path, struct dirent64 ***list, filter64_fn filter, compare64_fn compare), path, list,
	   filter, compare)
REDIRECTED(int, chdir, (const char *path), path)

/* ----------------------------------------------------------------------------------------------- questions about files */

REDIRECTED(int, stat, (const char *path, struct stat *st), path, st)
REDIRECTED(int, stat64, (const char *path, struct stat64 *st), path, st)
REDIRECTED(int, lstat, (const char *path, struct stat *st), path, st)
REDIRECTED(int, lstat64, (const char *path, struct stat64 *st), path, st)
REDIRECTED(int, fstatat, (int dir, const char *path, struct stat *st, int flags), dir, path, st, flags)
REDIRECTED(int, fstatat64, (int dir, const char *path, struct stat64 *st, int flags), dir, path, st, flags)
REDIRECTED(int, statx, (int dir, const char *path, int flags, unsigned int mask, struct statx *st), dir, path, flags, mask, st)
REDIRECTED(int, access, (const char *path, int mode), path, mode)
REDIRECTED(int, faccessat, (int dir, const char *path, int mode, int flags), dir, path, mode, flags)
REDIRECTED(int, euidaccess, (const char *path, int mode), path, mode)
REDIRECTED(int, eaccess, (const char *path, int mode), path, mode)
REDIRECTED(ssize_t, readlink, (const char *path, char *out, size_t len), path, out, len)
REDIRECTED(ssize_t, readlinkat, (int dir, const char *path, char *out, size_t len), dir, path, out, len)
REDIRECTED(char *, realpath, (const char *path, char *out), path, out)
REDIRECTED(char *, canonicalize_file_name, (const char *path), path)

/* `ls -l` asks for these. */
REDIRECTED(ssize_t, getxattr, (const char *path, const char *name, void *out, size_t len), path, name, out, len)
REDIRECTED(ssize_t, lgetxattr, (const char *path, const char *name, void *out, size_t len), path, name, out, len)
REDIRECTED(ssize_t, listxattr, (const char *path, char *out, size_t len), path, out, len)
REDIRECTED(ssize_t, llistxattr, (const char *path, char *out, size_t len), path, out, len)

ssize_t __readlink_chk(const char *path, char *out, size_t len, size_t out_len);
ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t len, size_t out_len);
char *__realpath_chk(const char *path, char *out, size_t out_len);

REDIRECTED(ssize_t, __readlink_chk, (const char *path, char *out, size_t len, size_t out_len), path, out, len, out_len)
REDIRECTED(ssize_t, __readlinkat_chk, (int dir, const char *path, char *out, size_t len, size_t out_len), dir, path, out, len,
	   out_len)
REDIRECTED(char *, __realpath_chk, (const char *path, char *out, size_t out_len), path, out, out_len)

#ifdef __x86_64__
/* What stat() was before glibc 2.33; here all versions of the structure are the same one. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);

EXPORT int __xstat(int version, const char *path, struct stat *st)
{
	(void)version;
	return stat(path, st);
}

EXPORT int __xstat64(int version, const char *path, struct stat64 *st)
{
	(void)version;
	return stat64(path, st);
}

EXPORT int __lxstat(int version, const char *path, struct stat *st)
{
	(void)version;
	return lstat(path, st);
}

EXPORT int __lxstat64(int version, const char *path, struct stat64 *st)
{
	(void)version;
	return lstat64(path, st);
}

EXPORT int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
	(void)version;
	return fstatat(dir, path, st, flags);
}

EXPORT int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags)
{
	(void)version;
	return fstatat64(dir, path, st, flags);
}
#endif
