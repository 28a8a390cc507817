/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers: QPN, lkey/rkey, CQN, SRQN, PDN, doorbell pages, user contexts; and the slots of an index
 * doorbell page. Memory is the caller's, every call needs that allocator's lock, any context.
 *
 * A freed number goes to the end of a queue, so it comes back as late as the table allows. QPNs and
 * keys also have bits above the table index: per index they run through a secret permutation of all
 * their values, so a peer cannot guess the next one, and a key comes back after 65536 (a QPN after
 * 1024) uses of its index, however full the table is.
 */
#ifndef ORDMA_ALLOC_H
#define ORDMA_ALLOC_H

#include "ordma_core.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ordma_ids_kind {
	ORDMA_IDS_QPN, /* from 2: 0 is unused, 1 the GSI QP */
	ORDMA_IDS_MKEY, /* index from 2: 0 is no key, 1 the local-DMA key */
	ORDMA_IDS_CQN, /* from 1 */
	ORDMA_IDS_SRQN, /* from 1 */
	ORDMA_IDS_PDN, /* from 1, below ORDMA_MAX_PD */
	ORDMA_IDS_PAGE, /* from 1: 0 is DRIVER_PAGE */
	ORDMA_IDS_UCTX, /* from 1: 0 is KERNEL_UCTX */
};

/* No table of the device stands behind a PD; this bounds the driver's own. */
#define ORDMA_MAX_PD 32768

struct ordma_ids {
	u32 *fifo; /* free indices, ring of `count` */
	u32 *used; /* bitmap of numbers that are out */
	u16 *turn; /* keyed kinds: position in the permutation, per index */
	u32 first, count, head, nfree;
	u32 index_bits, key_bits;
	u32 secret[4];
};

/*
 * How many numbers the kind has on this device, and the bytes that its allocator needs (8-byte
 * aligned).
 */
u32 ordma_ids_count(const struct ordma_core *core, enum ordma_ids_kind kind);
size_t ordma_ids_bytes(const struct ordma_core *core, enum ordma_ids_kind kind);
/* -EINVAL: len too small. */
int ordma_ids_init(struct ordma_ids *ids, const struct ordma_core *core, enum ordma_ids_kind kind,
		   void *mem, size_t len);
/* -ENOMEM: all numbers are out. */
int ordma_ids_get(struct ordma_ids *ids, u32 *number);
/* False, and nothing changes: the number is not out (or is an old key of its index). */
bool ordma_ids_put(struct ordma_ids *ids, u32 number);
/* True if the number is out right now, with its present key. */
bool ordma_ids_valid(const struct ordma_ids *ids, u32 number);

/*
 * Index into a table of the caller, 0 .. ordma_ids_count()-1 + first; below the device's limit for
 * every number got above.
 */
static inline u32 ordma_ids_index(const struct ordma_ids *ids, u32 number)
{
	return ids->index_bits ? number & ((1u << ids->index_bits) - 1) : number;
}

/*
 * Slots of one index doorbell page. A QP takes two neighbours (SQ, then RQ), a CQ and an SRQ one
 * each.
 */
struct ordma_db_page {
	u32 page;
	u32 uctx;
	u32 in_use;
	u32 used[ORDMA_PAGE_SLOTS / 32];
};

void ordma_db_page_init(struct ordma_db_page *pg, u32 page, u32 uctx);
/* First of n (1 or 2) neighbouring free slots, or -ENOSPC. */
int ordma_db_slot_get(struct ordma_db_page *pg, u32 n);
void ordma_db_slot_put(struct ordma_db_page *pg, u32 slot, u32 n);

#ifdef __cplusplus
}
#endif

#endif /* ORDMA_ALLOC_H */
