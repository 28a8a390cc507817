/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Between the files of the core only. */
#ifndef ORDMA_CORE_PRIV_H
#define ORDMA_CORE_PRIV_H

#include "ordma_core.h"
#include "recovery.h"

#define ORDMA_STATUS_READY 0x1u
#define ORDMA_STATUS_FATAL 0x2u
#define ORDMA_STATUS_LINK 0x4u

/* A removed device reads as all ones. */
#define ORDMA_REG_GONE (~0ULL)

/* Marks dead and reports once. */
void ordma_core_fatal(struct ordma_core *core, enum ordma_fatal reason);
/* Tells a link state that differs from the last one told. */
void ordma_core_tell_link(struct ordma_core *core, u64 status);
/* Ring index of the first event that the device has not written yet. Any context, no lock. */
u32 ordma_core_eq_head(const struct ordma_core *core);
/* One recovery command (event lock). */
void ordma_rcmd_push(struct ordma_core *core, u32 qpn, const struct ordma_recovery_action *act);

/* Ring entry that carries absolute index i is valid when its phase bit has this value. */
static inline u32 ordma_phase(u32 index, u32 log)
{
	return !((index >> log) & 1);
}

#endif /* ORDMA_CORE_PRIV_H */
