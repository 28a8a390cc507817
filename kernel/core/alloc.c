// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Number and slot allocators: see ordma_alloc.h. */
#include "ordma_alloc.h"

#define QPN_KEY_BITS (ORDMA_INDEX_BITS - ORDMA_QPN_INDEX_BITS) /* a QPN has 24 bits */
#define MKEY_KEY_BITS (32 - ORDMA_MKEY_INDEX_BITS)

struct range {
	u32 first, limit;
	u32 index_bits, key_bits;
};

static struct range kind_range(const struct ordma_caps *c, enum ordma_ids_kind kind)
{
	struct range r = { 1, 1, 0, 0 };

	switch (kind) {
	case ORDMA_IDS_QPN:
		r.first = ORDMA_GSI_QPN + 1;
		r.limit = c->max_qp;
		r.index_bits = ORDMA_QPN_INDEX_BITS;
		r.key_bits = QPN_KEY_BITS;
		break;
	case ORDMA_IDS_MKEY:
		r.first = ORDMA_RESERVED_LKEY + 1;
		r.limit = c->max_mr;
		r.index_bits = ORDMA_MKEY_INDEX_BITS;
		r.key_bits = MKEY_KEY_BITS;
		break;
	case ORDMA_IDS_CQN:
		r.limit = c->max_cq;
		break;
	case ORDMA_IDS_SRQN:
		r.limit = c->max_srq;
		break;
	case ORDMA_IDS_PDN:
		r.limit = ORDMA_MAX_PD;
		break;
	case ORDMA_IDS_PAGE:
		r.limit = c->max_page;
		break;
	case ORDMA_IDS_UCTX:
		r.limit = c->max_uctx;
		break;
	}
	if (r.limit < r.first)
		r.limit = r.first;
	return r;
}

u32 ordma_ids_count(const struct ordma_core *core, enum ordma_ids_kind kind)
{
	struct range r = kind_range(&core->caps, kind);

	return r.limit - r.first;
}

static size_t map_words(u32 limit)
{
	return (limit + 31) / 32;
}

size_t ordma_ids_bytes(const struct ordma_core *core, enum ordma_ids_kind kind)
{
	struct range r = kind_range(&core->caps, kind);
	size_t bytes = ((size_t)r.limit - r.first + map_words(r.limit)) * sizeof(u32);

	if (r.key_bits)
		bytes += r.limit * sizeof(u16);
	return (bytes + 7) & ~(size_t)7;
}

int ordma_ids_init(struct ordma_ids *ids, const struct ordma_core *core, enum ordma_ids_kind kind,
		   void *mem, size_t len)
{
	struct range r = kind_range(&core->caps, kind);
	size_t need = ordma_ids_bytes(core, kind);
	u32 i;

	if (len < need)
		return -EINVAL;
	memset(ids, 0, sizeof(*ids));
	memset(mem, 0, need);
	ids->first = r.first;
	ids->count = r.limit - r.first;
	ids->index_bits = r.index_bits;
	ids->key_bits = r.key_bits;
	ids->fifo = (u32 *)mem;
	ids->used = ids->fifo + ids->count;
	if (r.key_bits)
		ids->turn = (u16 *)(ids->used + map_words(r.limit));
	for (i = 0; i < ids->count; i++)
		ids->fifo[i] = r.first + i;
	ids->nfree = ids->count;
	for (i = 0; i < 4; i++)
		ids->secret[i] = core->ops->random32(core->ctx);
	return 0;
}

/*
 * Four Feistel rounds over key_bits: a bijection for any round function, so a key cannot repeat
 * before all were used.
 */
static u32 permute(const struct ordma_ids *ids, u32 index, u32 turn)
{
	u32 half = ids->key_bits / 2;
	u32 mask = (1u << half) - 1;
	u32 left = turn >> half & mask;
	u32 right = turn & mask;
	unsigned int round;

	for (round = 0; round < 4; round++) {
		u32 f = (right + index * 0x9e3779b1u) ^ ids->secret[round];
		u32 old = left;

		f = (f ^ f >> 15) * 0x2c1b3c6du;
		f = (f ^ f >> 12) * 0x297a2d39u;
		left = right;
		right = (old ^ f >> 16) & mask;
	}
	return left << half | right;
}

static u32 number_of(const struct ordma_ids *ids, u32 index)
{
	if (!ids->key_bits)
		return index;
	return permute(ids, index, ids->turn[index]) << ids->index_bits | index;
}

static void next_turn(struct ordma_ids *ids, u32 index)
{
	if (ids->key_bits)
		ids->turn[index] = (u16)((ids->turn[index] + 1u) & ((1u << ids->key_bits) - 1));
}

int ordma_ids_get(struct ordma_ids *ids, u32 *number)
{
	u32 index;

	if (!ids->nfree)
		return -ENOMEM;
	index = ids->fifo[ids->head];
	ids->head = ids->head + 1 == ids->count ? 0 : ids->head + 1;
	ids->nfree--;
	*number = number_of(ids, index);
	/* As a destination this QPN means multicast. */
	if (ids->index_bits == ORDMA_QPN_INDEX_BITS && *number == ORDMA_MCAST_QPN) {
		next_turn(ids, index);
		*number = number_of(ids, index);
	}
	ids->used[index / 32] |= 1u << index % 32;
	return 0;
}

bool ordma_ids_valid(const struct ordma_ids *ids, u32 number)
{
	u32 index = ordma_ids_index(ids, number);

	if (index < ids->first || index - ids->first >= ids->count)
		return false;
	return ids->used[index / 32] >> index % 32 & 1 && number_of(ids, index) == number;
}

bool ordma_ids_put(struct ordma_ids *ids, u32 number)
{
	u32 index = ordma_ids_index(ids, number);
	u32 tail;

	if (!ordma_ids_valid(ids, number))
		return false;
	ids->used[index / 32] &= ~(1u << index % 32);
	next_turn(ids, index);
	tail = ids->head + ids->nfree;
	if (tail >= ids->count)
		tail -= ids->count;
	ids->fifo[tail] = index;
	ids->nfree++;
	return true;
}

void ordma_db_page_init(struct ordma_db_page *pg, u32 page, u32 uctx)
{
	memset(pg, 0, sizeof(*pg));
	pg->page = page;
	pg->uctx = uctx;
}

static u32 slot_mask(u32 slot, u32 n)
{
	return ((1u << n) - 1) << slot % 32;
}

/* A pair starts at an even slot, so it never crosses a word of the map. */
int ordma_db_slot_get(struct ordma_db_page *pg, u32 n)
{
	u32 slot;

	if (n < 1 || n > 2)
		return -EINVAL;
	for (slot = 0; slot < ORDMA_PAGE_SLOTS; slot += n) {
		if (pg->used[slot / 32] & slot_mask(slot, n))
			continue;
		pg->used[slot / 32] |= slot_mask(slot, n);
		pg->in_use += n;
		return (int)slot;
	}
	return -ENOSPC;
}

void ordma_db_slot_put(struct ordma_db_page *pg, u32 slot, u32 n)
{
	u32 mask;

	if (slot >= ORDMA_PAGE_SLOTS || n < 1 || n > 2 || slot % n)
		return;
	mask = slot_mask(slot, n);
	if ((pg->used[slot / 32] & mask) != mask)
		return;
	pg->used[slot / 32] &= ~mask;
	pg->in_use -= n;
}
