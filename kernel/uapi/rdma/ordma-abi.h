/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uverbs ABI of the ordma driver: the driver-private part of the verbs commands. Hand written, shared by kernel, provider and
 * the soft-device's native socket. It only grows: new members go to the end, bits that are not known must be zero
 * (else EOPNOTSUPP), comp_mask says which optional members are valid.
 */
#ifndef ORDMA_ABI_USER_H
#define ORDMA_ABI_USER_H

#include <linux/types.h>

#define ORDMA_UVERBS_ABI_VERSION 1

/* Private driver id ("ORDM"): nothing in the enum of rdma/ib_user_ioctl_verbs.h stands for this driver. */
#define ORDMA_RDMA_DRIVER_ID 0x4f52444d

/*
 * Where a queue's doorbell is: the 8-byte slot `slot` of the 4 KiB page found by mmap(fd, 4096, ..., offset = mmap_off).
 * Several queues share a page; the same mmap_off is the same page.
 */
struct ordma_abi_db {
	__aligned_u64 mmap_off;
	__u32 slot;
	__u32 page;
};

struct ordma_abi_alloc_ucontext_req {
	__aligned_u64 comp_mask;
};

struct ordma_abi_alloc_ucontext_resp {
	__aligned_u64 comp_mask;
	__u32 contract_version;		/* register VERSION */
	__u32 uctx;
	__aligned_u64 caps;		/* register CAPS */
	__aligned_u64 public_mmap_off;	/* page of ASLEEP and CLOCK, read-only */
	__aligned_u64 kick_mmap_off;	/* page with the kick register, 0: no kick needed (hardware) */
	__u32 kick_offset;		/* offset of the 32-bit kick register in that page */
	__u32 kick_value;
	__u32 max_wr;
	__u32 max_sge;
	__u32 max_inline;
	__u32 max_cqe;
	__u32 max_srq_wr;
	__u32 max_rd_atomic;
};

struct ordma_abi_alloc_pd_resp {
	__u32 pdn;
	__u32 reserved;
};

/*
 * Queue memory is allocated and zeroed by the provider, page aligned, and lives until the object is gone. Records are 8
 * bytes, 64-byte aligned, not crossing a page.
 */
struct ordma_abi_create_cq_req {
	__aligned_u64 comp_mask;
	__aligned_u64 ring_va;
	__aligned_u64 record_va;	/* struct ordma_cq_record */
	__u32 ring_log;			/* log2 of the size in CQEs */
	__u32 reserved;
};

struct ordma_abi_create_cq_resp {
	__aligned_u64 comp_mask;
	__u32 cqn;
	__u32 reserved;
	struct ordma_abi_db arm_db;
};

struct ordma_abi_resize_cq_req {
	__aligned_u64 comp_mask;
	__aligned_u64 ring_va;
	__aligned_u64 record_va;
	__u32 ring_log;
	__u32 reserved;
};

struct ordma_abi_resize_cq_resp {
	__aligned_u64 comp_mask;
	__u32 old_pi;			/* producer index at which the old ring ended */
	__u32 reserved;
};

struct ordma_abi_create_qp_req {
	__aligned_u64 comp_mask;
	__aligned_u64 sq_va;		/* 0: no send queue */
	__aligned_u64 rq_va;		/* 0: no receive queue (or SRQ) */
	__u32 sq_log;
	__u32 sq_stride_log;
	__u32 rq_log;
	__u32 rq_stride_log;
};

struct ordma_abi_create_qp_resp {
	__aligned_u64 comp_mask;
	__u32 qpn;
	__u32 reserved;
	struct ordma_abi_db sq_db;
	struct ordma_abi_db rq_db;
};

struct ordma_abi_create_srq_req {
	__aligned_u64 comp_mask;
	__aligned_u64 ring_va;
	__aligned_u64 record_va;	/* struct ordma_srq_record */
	__u32 ring_log;
	__u32 stride_log;
};

struct ordma_abi_create_srq_resp {
	__aligned_u64 comp_mask;
	__u32 srqn;
	__u32 reserved;
	struct ordma_abi_db db;
};

/* An AH is no device object; the response only tells what the kernel resolved. */
struct ordma_abi_create_ah_resp {
	__u8 dmac[6];
	__u8 reserved[2];
};

#endif /* ORDMA_ABI_USER_H */
