/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Objects of the ordma provider. The data path (post.c, wr.c, cq.c, srq.c) knows rings, records and doorbell slots; who
 * created them, the kernel driver or a soft-device, is known to the back ends alone (backend.h).
 */
#ifndef ORDMA_H
#define ORDMA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <infiniband/driver.h>
#include <rdma/ordma-abi.h>

#include "ordma_hw.h"

struct ordma_backend;

/* Memory that the NIC reads or writes as a queue; page aligned, zeroed. */
struct ordma_buf {
	void *va;
	size_t len;
	uint32_t handle;	/* back end's name for it */
};

/* One 4 KiB doorbell page of this context, shared by the queues that have a slot in it. */
struct ordma_db_page {
	struct ordma_db_page *next;
	uint64_t mmap_off;
	volatile uint64_t *slots;
};

#define ORDMA_QP_TABLE_LOG 7
#define ORDMA_QP_TABLE_SIZE (1u << ORDMA_QP_TABLE_LOG)

struct ordma_context {
	struct verbs_context ibvctx;
	const struct ordma_backend *be;
	struct ordma_abi_alloc_ucontext_resp attr;

	/* Read after a doorbell: 1 means that the engine sleeps and wants a kick. Hardware never sleeps. */
	const volatile uint64_t *asleep;
	/* ordma_device_gone(): the clock when it was last seen to move, and when that was. */
	uint64_t clock_seen;
	uint64_t clock_seen_ms;
	bool gone;

	pthread_mutex_t lock;		/* doorbell pages, QP table */
	struct ordma_db_page *pages;
	struct {			/* QPN index -> QP, two levels */
		struct ordma_qp **entry;
		unsigned int used;
	} qps[ORDMA_QP_TABLE_SIZE];

	/* Native back end. */
	struct ordma_native *native;
	/* Kernel back end: register that wakes a sleeping soft-device, NULL on hardware. */
	volatile uint32_t *kick_reg;
};

struct ordma_pd {
	struct ibv_pd ibv_pd;
	uint32_t pdn;
};

struct ordma_mr {
	struct verbs_mr vmr;
};

struct ordma_ah {
	struct ibv_ah ibv_ah;
	struct ordma_av av;		/* as it goes into a WQE, without QPN and Q_Key */
};

struct ordma_cq_ring {
	struct ordma_buf buf;
	struct ordma_cqe *ring;
	struct ordma_cq_record *record;
	unsigned int log;
	uint32_t ci;			/* absolute index of the next CQE to look at */
};

struct ordma_cq {
	struct verbs_cq vcq;
	pthread_spinlock_t lock;
	uint32_t cqn;
	struct ordma_cq_ring cur;
	/* After a resize: entries of the replaced ring that are still unseen, consumed first. */
	struct ordma_cq_ring old;
	uint32_t old_end;
	bool have_old;
	volatile uint64_t *arm_db;
	unsigned int arm_seq;
	uint32_t arm_from;		/* absolute index in cur: CQEs below were there when the CQ was last armed */
	/* Iterator of the extended interface. */
	struct ordma_cqe *poll_cqe;
	uint32_t empty_polls;
};

struct ordma_queue {
	uint8_t *ring;
	uint64_t *wr_id;
	volatile uint64_t *db;
	unsigned int log;
	unsigned int stride_log;
	unsigned int max_sge;
	uint32_t pi;			/* absolute: next WQE to write */
	uint32_t ci;			/* absolute: oldest WQE not known to be complete */
	pthread_spinlock_t lock;
};

struct ordma_srq {
	struct verbs_srq vsrq;
	struct ordma_queue rq;
	struct ordma_buf buf;
	const volatile struct ordma_srq_record *record;
	uint32_t srqn;
	uint32_t max_wr;
};

struct ordma_qp {
	struct verbs_qp vqp;
	struct ordma_queue sq;
	struct ordma_queue rq;
	struct ordma_buf buf;
	uint32_t qpn;
	enum ibv_qp_type type;
	bool sq_sig_all;
	unsigned int max_inline;
	unsigned int data_off;		/* of the first SGE in a WQE of the common kind */
	/* ibv_wr_*: the WQE under construction and where the critical section began. */
	struct {
		struct ordma_wqe *wqe;
		uint32_t start;
		int err;
	} wr;
};

static inline struct ordma_context *to_octx(struct ibv_context *ctx)
{
	return container_of(ctx, struct ordma_context, ibvctx.context);
}

static inline struct ordma_pd *to_opd(struct ibv_pd *pd)
{
	return container_of(pd, struct ordma_pd, ibv_pd);
}

static inline struct ordma_ah *to_oah(struct ibv_ah *ah)
{
	return container_of(ah, struct ordma_ah, ibv_ah);
}

static inline struct ordma_cq *to_ocq(struct ibv_cq *cq)
{
	return container_of(cq, struct ordma_cq, vcq.cq);
}

static inline struct ordma_cq *to_ocq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct ordma_cq, vcq.cq_ex);
}

static inline struct ordma_srq *to_osrq(struct ibv_srq *srq)
{
	return container_of(srq, struct ordma_srq, vsrq.srq);
}

static inline struct ordma_qp *to_oqp(struct ibv_qp *qp)
{
	return container_of(qp, struct ordma_qp, vqp.qp);
}

static inline struct ordma_qp *to_oqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct ordma_qp, vqp.qp_ex);
}

static inline unsigned int ordma_log2_at_least(unsigned int n)
{
	unsigned int log = 0;

	while (1u << log < n)
		log++;
	return log;
}

static inline size_t ordma_page_round(size_t len)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (len + page - 1) / page * page;
}

#define ORDMA_INDEX_MASK ((1u << ORDMA_INDEX_BITS) - 1)

/* Distance on the circle of absolute indices. */
static inline uint32_t ordma_index_sub(uint32_t a, uint32_t b)
{
	return (a - b) & ORDMA_INDEX_MASK;
}

/* Acquire: whoever moved ci has read what it needs from the slots below it. */
static inline bool ordma_queue_full(const struct ordma_queue *q)
{
	return ordma_index_sub(q->pi, __atomic_load_n(&q->ci, __ATOMIC_ACQUIRE)) >= 1u << q->log;
}

/* Frees all slots up to and including the one with these low 16 bits; rings have at most 2^14 slots, so that is exact. */
static inline void ordma_queue_retire(struct ordma_queue *q, uint32_t index)
{
	__atomic_store_n(&q->ci, (q->ci + ((index + 1 - q->ci) & 0xffff)) & ORDMA_INDEX_MASK, __ATOMIC_RELEASE);
}

static inline void *ordma_queue_slot(const struct ordma_queue *q, uint32_t index)
{
	return q->ring + ((size_t)(index & ((1u << q->log) - 1)) << q->stride_log);
}

/*
 * A poster's stores come before its doorbell, the NIC answers a doorbell with a CQE, and a poller's loads come after that CQE: an order
 * that runs through the NIC. ThreadSanitizer sees threads only and has to be told.
 */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define ordma_before_nic(db) __tsan_release((void *)(db))
#define ordma_after_nic(db) __tsan_acquire((void *)(db))
#else
#define ordma_before_nic(db) ((void)0)
#define ordma_after_nic(db) ((void)0)
#endif

/* context.c */
bool ordma_is_device(struct ibv_device *device);
struct ordma_qp *ordma_find_qp(struct ordma_context *ctx, uint32_t qpn);
int ordma_add_qp(struct ordma_context *ctx, struct ordma_qp *qp);
void ordma_remove_qp(struct ordma_context *ctx, struct ordma_qp *qp);
volatile uint64_t *ordma_map_db(struct ordma_context *ctx, const struct ordma_abi_db *db);
bool ordma_device_gone(struct ordma_context *ctx);

/* doorbell.c */
void ordma_ring_index(struct ordma_context *ctx, volatile uint64_t *slot, enum ordma_db_kind kind, uint32_t number,
		      uint32_t index);
void ordma_ring_arm(struct ordma_context *ctx, struct ordma_cq *cq, bool solicited);

/* verbs.c */
struct ibv_pd *ordma_alloc_pd(struct ibv_context *ctx);
int ordma_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *ordma_reg_mr(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access);
struct ibv_mr *ordma_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access);
int ordma_dereg_mr(struct verbs_mr *vmr);
struct ibv_ah *ordma_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int ordma_destroy_ah(struct ibv_ah *ah);
int ordma_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t size);
int ordma_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
int ordma_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int ordma_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* qp.c */
struct ibv_qp *ordma_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *ordma_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int ordma_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int ordma_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init);
int ordma_destroy_qp(struct ibv_qp *qp);
int ordma_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

/* post.c */
int ordma_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int ordma_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int ordma_write_rqe(struct ordma_queue *q, const struct ibv_recv_wr *wr);

/* wr.c */
bool ordma_wr_ops_supported(enum ibv_qp_type type, uint64_t send_ops);
void ordma_init_wr_ops(struct ordma_qp *qp, uint64_t send_ops);

/* cq.c */
struct ibv_cq *ordma_create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel, int vector);
struct ibv_cq_ex *ordma_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int ordma_resize_cq(struct ibv_cq *cq, int cqe);
int ordma_destroy_cq(struct ibv_cq *cq);
int ordma_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int ordma_arm_cq(struct ibv_cq *cq, int solicited);
void ordma_purge_cq(struct ordma_cq *cq, uint32_t qpn);
struct ordma_cqe *ordma_next_cqe(struct ordma_cq *cq);
void ordma_consume_cqe(struct ordma_cq *cq);
void ordma_publish_ci(struct ordma_cq *cq);
int ordma_poll_empty(struct ordma_cq *cq);
uint64_t ordma_retire(struct ordma_cq *cq, const struct ordma_cqe *cqe);

static inline unsigned int ordma_cqe_wc_flags(const struct ordma_cqe *cqe)
{
	return (ORDMA_GET(cqe, CQE_HAS_IMM) ? IBV_WC_WITH_IMM : 0) | (ORDMA_GET(cqe, CQE_HAS_INV) ? IBV_WC_WITH_INV : 0) |
	       (ORDMA_GET(cqe, CQE_HAS_GRH) ? IBV_WC_GRH : 0);
}

/*
 * A RoCE datagram's completion must say what kind of packet it was (Annex 17), and verbs has no field for that: bit 3 for UDP, and 1 or
 * 2 for IPv6 or IPv4, is what users look for in the service level. UCX drops datagrams without.
 */
#define ORDMA_SL_PACKET_TYPE 0x8u

static inline uint8_t ordma_cqe_sl(const struct ordma_cqe *cqe)
{
	if (!ORDMA_GET(cqe, CQE_HAS_GRH))
		return ORDMA_GET(cqe, CQE_SL);
	return ORDMA_SL_PACKET_TYPE | (ORDMA_GET(cqe, CQE_IPV4) ? 2 : 1);
}

/* cq_ex.c */
void ordma_init_cq_ex(struct ordma_cq *cq, uint64_t wc_flags);

/* srq.c */
struct ibv_srq *ordma_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int ordma_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int ordma_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int ordma_destroy_srq(struct ibv_srq *srq);
int ordma_get_srq_num(struct ibv_srq *srq, uint32_t *num);
int ordma_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif /* ORDMA_H */
