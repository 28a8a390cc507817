/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Encoders: each fills a 64-byte command in host memory (ordma_cmd_submit() adds seq and irq).
 * They check nothing, cannot fail and may run in any context. Objects must have passed their check.
 */
#ifndef ORDMA_CMD_H
#define ORDMA_CMD_H

#include "ordma_obj.h"
#include "ordma_qp.h"

#ifdef __cplusplus
extern "C" {
#endif

void ordma_cmd_nop(struct ordma_cmd *cmd);

/* record: DMA address of struct ordma_page_record, 0 none. */
void ordma_cmd_page_open(struct ordma_cmd *cmd, u32 page, u32 uctx, bool token, u64 record);
void ordma_cmd_page_close(struct ordma_cmd *cmd, u32 page);

void ordma_cmd_mr_create(struct ordma_cmd *cmd, const struct ordma_mr *mr);
void ordma_cmd_mr_destroy(struct ordma_cmd *cmd, const struct ordma_mr *mr);

void ordma_cmd_cq_create(struct ordma_cmd *cmd, const struct ordma_cq *cq);
/* The new ring; ordma_cq_resize_done() afterwards. */
void ordma_cmd_cq_resize(struct ordma_cmd *cmd, const struct ordma_cq *cq, u32 log,
			 const struct ordma_buf *buf, u64 record);
void ordma_cmd_cq_destroy(struct ordma_cmd *cmd, const struct ordma_cq *cq);

void ordma_cmd_srq_create(struct ordma_cmd *cmd,
			  const struct ordma_srq *srq); /* with srq->limit armed */
/* Also notes, for ordma_srq_modify_done(), which limit events are older than this command. */
void ordma_cmd_srq_limit(struct ordma_cmd *cmd, struct ordma_srq *srq, u32 limit);
void ordma_cmd_srq_destroy(struct ordma_cmd *cmd, const struct ordma_srq *srq);

/* QP_CREATE, QP_MODIFY and QP_QUERY are in ordma_qp.h. */
void ordma_cmd_qp_destroy(struct ordma_cmd *cmd, const struct ordma_qp *qp);

struct ordma_gid_entry {
	u8 gid[16];
	u8 mac[6]; /* source MAC */
	bool valid; /* false clears the entry; the rest is then ignored */
	bool has_vlan;
	u16 vlan;
};

/* ::ffff:a.b.c.d is IPv4. */
bool ordma_gid_is_ipv4(const u8 gid[16]);
/*
 * -EINVAL: index beyond the table, multicast or zero GID, VLAN beyond 4094, multicast or zero MAC;
 * -EOPNOTSUPP: IPv6 without the capability.
 */
int ordma_gid_check(const struct ordma_core *core, u32 index, const struct ordma_gid_entry *entry);
void ordma_cmd_gid_set(struct ordma_cmd *cmd, u32 index, const struct ordma_gid_entry *entry);

/*
 * ibv_attach_mcast: -EINVAL unless a UD QP and a multicast GID; -EOPNOTSUPP without the capability.
 * Attaching twice is one attachment: the caller counts.
 */
int ordma_mcast_check(const struct ordma_core *core, const struct ordma_qp *qp, const u8 gid[16]);
void ordma_cmd_mcast(struct ordma_cmd *cmd, const struct ordma_qp *qp, const u8 gid[16],
		     bool attach);

/* addr: DMA address of count 64-bit little-endian words, in the order of enum ordma_counter. */
void ordma_cmd_counters(struct ordma_cmd *cmd, u64 addr, u32 count);

void ordma_cmd_eth_filter(struct ordma_cmd *cmd, u32 qpn, const u8 mac[6], bool promisc,
			  bool allmulti);

/* Six octets, first one in the low byte, and back. */
u64 ordma_mac_to_u64(const u8 mac[6]);
void ordma_mac_from_u64(u64 v, u8 mac[6]);

#ifdef __cplusplus
}
#endif

#endif /* ORDMA_CMD_H */
