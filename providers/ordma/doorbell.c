// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Doorbells. A word is one 8-byte store to the queue's own slot; the latest value wins, so a lost older one is harmless.
 *
 * Two things must hold. WQEs before word: the NIC must find every WQE below the index it sees (release). Word before asleep:
 * an engine that goes to sleep sets `asleep`, fences and looks at all slots once more, so a poster that stores, fences and reads
 * 0 has been seen, and one that reads 1 kicks. Hardware never sleeps; the fence is the price of the soft-device.
 */
#include "backend.h"

static void store_word(struct ordma_context *ctx, volatile uint64_t *slot, uint64_t word)
{
	ordma_before_nic(slot);
	atomic_thread_fence(memory_order_release);
	*slot = ORDMA_HW_CPU_TO_LE64(word);
	if (!ctx->asleep)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (*ctx->asleep)
		ctx->be->kick(ctx);
}

void ordma_ring_index(struct ordma_context *ctx, volatile uint64_t *slot, enum ordma_db_kind kind, uint32_t number,
		      uint32_t index)
{
	store_word(ctx, slot, ORDMA_FIELD(DB_KIND, kind) | ORDMA_FIELD(DB_NUMBER, number) | ORDMA_FIELD(DB_INDEX, index));
}

/*
 * The NIC fires for CQEs from the index on: one that was written between the look at the ring and this store fires at once. Entries
 * that are left of a ring replaced by resize are not on that scale, so they ask for the event themselves.
 */
void ordma_ring_arm(struct ordma_context *ctx, struct ordma_cq *cq, bool solicited)
{
	cq->arm_seq++;
	store_word(ctx, cq->arm_db, ORDMA_FIELD(DB_KIND, ORDMA_DB_KIND_CQ_ARM) | ORDMA_FIELD(DB_NUMBER, cq->cqn) |
					    ORDMA_FIELD(DB_INDEX, cq->arm_from) | ORDMA_FIELD(DB_ARM_SEQ, cq->arm_seq) |
					    ORDMA_FIELD(DB_SOLICITED, solicited) | ORDMA_FIELD(DB_FIRE_NOW, cq->have_old));
}
