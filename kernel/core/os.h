/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The only seam between the driver core and what it runs in: the Linux kernel, or a C11/C++20
 * program. Everything the core takes from its surroundings is here; no other file of this directory
 * names a kernel or libc header.
 */
#ifndef ORDMA_OS_H
#define ORDMA_OS_H

#ifdef __KERNEL__

#include <linux/types.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/compiler.h>
#include <asm/byteorder.h>
#include <asm/barrier.h>
#include <linux/atomic.h>

/* A CPU that sees the phase bit of a device write also sees the words before it. */
#define ordma_rmb() dma_rmb()
/* Ring entries are visible to the device before the doorbell that announces them. */
#define ordma_wmb() dma_wmb()

#define ORDMA_OS_READ_ONCE(x) READ_ONCE(x)
#define ORDMA_OS_WRITE_ONCE(x, v) WRITE_ONCE(x, v)
#define ORDMA_OS_XCHG(p, v) xchg(p, v)

#else /* !__KERNEL__ */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define ordma_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define ordma_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)

#define ORDMA_OS_READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define ORDMA_OS_WRITE_ONCE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define ORDMA_OS_XCHG(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)

#endif /* __KERNEL__ */

#include "ordma_hw.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One access of the full width: the other side (device, interrupt handler, another thread) changes
 * the word at any time, so the compiler must neither repeat nor split the access. They order
 * nothing by themselves.
 */
static inline u32 ordma_read_once32(const u32 *p)
{
	return ORDMA_OS_READ_ONCE(*p);
}

static inline void ordma_write_once32(u32 *p, u32 v)
{
	ORDMA_OS_WRITE_ONCE(*p, v);
}

/* Who gets 0 back was first. */
static inline u32 ordma_xchg32(u32 *p, u32 v)
{
	return ORDMA_OS_XCHG(p, v);
}

/* A 64-bit little-endian word of device-written memory, in host order. */
static inline u64 ordma_read_le64(const __le64 *p)
{
	return ORDMA_HW_LE64_TO_CPU(ORDMA_OS_READ_ONCE(*p));
}

static inline void ordma_write_le64(__le64 *p, u64 v)
{
	ORDMA_OS_WRITE_ONCE(*p, ORDMA_HW_CPU_TO_LE64(v));
}

static inline u32 ordma_min32(u32 a, u32 b)
{
	return a < b ? a : b;
}

static inline u32 ordma_max32(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* log2 of v rounded up to a power of two; 0 for v <= 1. */
static inline u32 ordma_log2_up(u64 v)
{
	u32 n = 0;

	while (n < 63 && (1ULL << n) < v)
		n++;
	return n;
}

/*
 * Differences of absolute ring indices and of PSNs are taken modulo 2^24; the sign says which one
 * is ahead.
 */
static inline u32 ordma_index_add(u32 a, u32 n)
{
	return (a + n) & ((1u << ORDMA_INDEX_BITS) - 1);
}

static inline s32 ordma_index_diff(u32 a, u32 b)
{
	return (s32)((a - b) << (32 - ORDMA_INDEX_BITS)) >> (32 - ORDMA_INDEX_BITS);
}

#ifdef __cplusplus
}
#endif

#endif /* ORDMA_OS_H */
