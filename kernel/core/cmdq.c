// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Command ring, response ring, recovery ring. */
#include "core_priv.h"

static void ring_doorbell(struct ordma_core *core, u32 slot, enum ordma_db_kind kind, u32 index)
{
	u64 word = ORDMA_FIELD(DB_INDEX, index) | ORDMA_FIELD(DB_KIND, kind);

	/* The device may fetch the entry the moment it sees the index. */
	ordma_wmb();
	core->ops->doorbell(core->ctx, slot, word);
}

static void copy_cmd(void *ring, u32 slot, const struct ordma_cmd *cmd)
{
	struct ordma_cmd *dst = (struct ordma_cmd *)ring + slot;

	memcpy(dst, cmd, sizeof(*dst));
}

int ordma_cmd_submit(struct ordma_core *core, const struct ordma_cmd *cmd, bool irq, u32 *ticket)
{
	u32 slot = ordma_cmd_slot(core->cmd_pi);
	struct ordma_cmd c = *cmd;

	if (ordma_core_dead(core))
		return -EIO;
	if (core->cmd_busy[slot])
		return -EAGAIN;
	ORDMA_SET(&c, CMD_SEQ, core->cmd_pi);
	ORDMA_SET(&c, CMD_IRQ, irq);
	copy_cmd(core->rings.cmd.va, slot, &c);
	core->cmd_busy[slot] = 1;
	*ticket = core->cmd_pi;
	core->cmd_pi = ordma_index_add(core->cmd_pi, 1);
	ring_doorbell(core, ORDMA_DRIVER_SLOT_CMD, ORDMA_DB_KIND_CMD, core->cmd_pi);
	return 0;
}

static bool ticket_is_out(const struct ordma_core *core, u32 ticket)
{
	s32 ahead;

	if (ticket >> ORDMA_INDEX_BITS)
		return false;
	ahead = ordma_index_diff(core->cmd_pi, ticket);
	return ahead >= 1 && ahead <= (s32)ORDMA_CMD_SLOTS &&
	       core->cmd_busy[ordma_cmd_slot(ticket)];
}

int ordma_cmd_complete(struct ordma_core *core, u32 ticket, struct ordma_rsp_result *out)
{
	u32 slot = ordma_cmd_slot(ticket);
	const struct ordma_rsp *rsp = (const struct ordma_rsp *)core->rings.rsp.va + slot;
	u64 word;

	if (ordma_core_dead(core))
		return -EIO;
	if (!ticket_is_out(core, ticket))
		return -EINVAL;
	word = ordma_read_le64(&rsp->w[ORDMA_RSP_PHASE_W]);
	if (ORDMA_WGET(word, RSP_PHASE) != ordma_phase(ticket, ORDMA_CMD_RING_LOG))
		return -EINPROGRESS;
	/* The phase is in the last word: whoever sees it sees the other words of the same write. */
	ordma_rmb();
	word = ordma_read_le64(&rsp->w[ORDMA_RSP_SEQ_W]);
	if (ORDMA_WGET(word, RSP_SEQ) != (ticket & 0xffff)) {
		core->stats.rsp_bad++;
		ordma_core_fatal(core, ORDMA_FATAL_CMD);
		return -EIO;
	}
	out->status = (u32)ORDMA_WGET(word, RSP_STATUS);
	out->result0 = ordma_read_le64(&rsp->w[ORDMA_RSP_RESULT0_W]);
	out->result1 = ordma_read_le64(&rsp->w[ORDMA_RSP_RESULT1_W]);
	core->cmd_busy[slot] = 0;
	return 0;
}

int ordma_cmd_submit_destroy(struct ordma_core *core, const struct ordma_cmd *cmd, bool irq,
			     u32 *ticket)
{
	int err = ordma_cmd_submit(core, cmd, irq, ticket);

	if (err != -EIO)
		return err;
	*ticket = ORDMA_TICKET_NONE;
	return 0;
}

int ordma_cmd_destroy_complete(struct ordma_core *core, u32 ticket)
{
	struct ordma_rsp_result res;
	int err;

	if (ticket == ORDMA_TICKET_NONE)
		return 0;
	err = ordma_cmd_complete(core, ticket, &res);
	if (err)
		return err == -EINPROGRESS ? err : 0;
	if (res.status == ORDMA_CMD_STATUS_OK)
		return 0;
	core->stats.destroy_errors++;
	/*
	 * What the device still holds it may still write to, and the caller is about to free that
	 * memory.
	 */
	if (res.status != ORDMA_CMD_STATUS_NO_OBJECT)
		ordma_core_fatal(core, ORDMA_FATAL_INTERNAL);
	return 0;
}

int ordma_status_to_errno(u32 status)
{
	switch (status) {
	case ORDMA_CMD_STATUS_OK:
		return 0;
	case ORDMA_CMD_STATUS_BAD_PARAM:
	case ORDMA_CMD_STATUS_BAD_STATE:
		return -EINVAL;
	case ORDMA_CMD_STATUS_NO_OBJECT:
		return -ENOENT;
	case ORDMA_CMD_STATUS_EXISTS:
		return -EEXIST;
	case ORDMA_CMD_STATUS_NO_RESOURCE:
		return -ENOMEM;
	case ORDMA_CMD_STATUS_UNSUPPORTED:
		return -EOPNOTSUPP;
	case ORDMA_CMD_STATUS_DMA:
		return -EFAULT;
	}
	return -EIO;
}

static void encode_action(struct ordma_cmd *cmd, u32 qpn, const struct ordma_recovery_action *act)
{
	struct ordma_cmd_rewind *rewind = (struct ordma_cmd_rewind *)cmd;
	struct ordma_cmd_fail *fail = (struct ordma_cmd_fail *)cmd;
	struct ordma_cmd_silence *silence = (struct ordma_cmd_silence *)cmd;

	memset(cmd, 0, sizeof(*cmd));
	ORDMA_SET(cmd, CMD_NUMBER, qpn);
	switch (act->kind) {
	case ORDMA_RECOVERY_REWIND:
		ORDMA_SET(cmd, CMD_OPCODE, ORDMA_CMD_OP_QP_REWIND);
		ORDMA_SET(rewind, CMD_REWIND_LOG_INDEX, act->log_index);
		ORDMA_SET(rewind, CMD_REWIND_PSN, act->psn);
		ORDMA_SET(rewind, CMD_REWIND_NOT_BEFORE, act->not_before);
		break;
	case ORDMA_RECOVERY_FAIL:
		ORDMA_SET(cmd, CMD_OPCODE, ORDMA_CMD_OP_QP_FAIL);
		ORDMA_SET(fail, CMD_FAIL_PSN, act->psn);
		ORDMA_SET(fail, CMD_FAIL_STATUS, act->status);
		ORDMA_SET(fail, CMD_FAIL_VENDOR_ERR, act->vendor_err);
		break;
	case ORDMA_RECOVERY_SILENCE:
	case ORDMA_RECOVERY_NONE:
		ORDMA_SET(cmd, CMD_OPCODE, ORDMA_CMD_OP_QP_SILENCE);
		ORDMA_SET(silence, CMD_SILENCE_THRESHOLD, act->threshold);
		break;
	}
}

/*
 * No fullness test: see ordma_core_rcmd_bytes(). A device that breaks that rule overwrites its own
 * orders and nothing else.
 */
void ordma_rcmd_push(struct ordma_core *core, u32 qpn, const struct ordma_recovery_action *act)
{
	struct ordma_cmd cmd;

	encode_action(&cmd, qpn, act);
	ORDMA_SET(&cmd, CMD_SEQ, core->rcmd_pi);
	copy_cmd(core->rings.rcmd.va, core->rcmd_pi & ((1u << core->rcmd_log) - 1), &cmd);
	core->rcmd_pi = ordma_index_add(core->rcmd_pi, 1);
	ring_doorbell(core, ORDMA_DRIVER_SLOT_RCMD, ORDMA_DB_KIND_RCMD, core->rcmd_pi);
}
