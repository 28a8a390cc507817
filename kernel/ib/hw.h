/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device below the verbs: rings, commands, doorbells, queues. What both users of the NIC stand on, the RDMA device
 * (device.c and its objects) and the network interface (netdev.c).
 */
#ifndef ORDMA_HW_GLUE_H
#define ORDMA_HW_GLUE_H

#include <linux/completion.h>
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "kcompat.h"
#include "ordma_alloc.h"
#include "ordma_cmd.h"
#include "ordma_core.h"
#include "ordma_obj.h"
#include "ordma_qp.h"

struct ordma_netdev;

/* A host page is a doorbell page: no mapping may show a neighbour's doorbells. */
static_assert(PAGE_SIZE == ORDMA_DB_STRIDE);

/* Doorbell pages follow the register page and the public page, which begins with ASLEEP. */
#define ORDMA_PUBLIC_OFF ORDMA_REG_ASLEEP
#define ORDMA_DB_OFF(page) (ORDMA_PUBLIC_OFF + ((u64)(page) + 1) * ORDMA_DB_STRIDE)

#define ORDMA_MAX_VECTORS 16

struct ordma_ids_lock {
	struct ordma_ids ids;
	spinlock_t lock; /* the allocator's lock */
	void *mem;
};

/* A user context as the device knows it, with its index doorbell pages; also the driver's own. */
struct ordma_uctx {
	u32 id;
	struct mutex lock; /* pages */
	struct list_head pages;
	struct ib_ucontext *ibuc; /* NULL: the driver's */
};

enum ordma_map_kind { ORDMA_MAP_DB, ORDMA_MAP_PUBLIC, ORDMA_MAP_KICK };

struct ordma_map {
	struct rdma_user_mmap_entry entry;
	struct ordma_dev *dev;
	enum ordma_map_kind kind;
	phys_addr_t addr;
};

struct ordma_page {
	struct ordma_map map;
	struct list_head list;
	struct ordma_db_page slots;
};

/* Doorbell slots of one queue (or of the two of a QP). */
struct ordma_slot {
	struct ordma_uctx *uctx;
	struct ordma_page *page;
	u32 slot, n;
	void __iomem *addr;
};

enum ordma_flags { ORDMA_F_FATAL, ORDMA_F_STOPPING, ORDMA_F_REGISTERED };

struct ordma_dev {
	struct ib_device ibdev; /* first: ib_alloc_device() */
	struct pci_dev *pdev;
	void __iomem *bar;
	void __iomem *kick; /* NULL: nobody sleeps behind the doorbells */
	phys_addr_t bar_addr, kick_addr;
	unsigned long flags;
	int nvec;

	struct ordma_core core;
	struct ordma_core_rings rings;
	spinlock_t cmd_lock;	/* command ring of the core */
	spinlock_t event_lock;	/* event ring of the core; all upward calls run in it */
	wait_queue_head_t cmd_wait;
	struct workqueue_struct *wq;
	struct delayed_work watchdog;
	struct work_struct fatal_work;
	struct work_struct port_work;
	struct completion dma_off; /* of a dead device: memory may be freed */

	struct ordma_ids_lock qpns, mkeys, cqns, srqns, pdns, pages, uctxs;
	struct xarray cqs, qps, srqs; /* by number; erase, then ordma_event_barrier() */
	struct ordma_uctx kctx;

	struct mutex counters_lock; /* counters and their memory */
	__le64 *counters;
	dma_addr_t counters_dma;

	bool gsi_used; /* under the lock of qpns */
	enum ib_port_state port_state;
	struct mutex port_lock; /* port_state */
	struct net_device *netdev;
};

static inline struct device *ordma_dma_device(struct ordma_dev *dev)
{
	return &dev->pdev->dev;
}

/* hw.c: life of the device */
int ordma_hw_up(struct ordma_dev *dev);
void ordma_hw_down(struct ordma_dev *dev);
void ordma_hw_dead(struct ordma_dev *dev);

/* command.c: one command, to the end. A destroy cannot fail; when it returns the device no longer uses the object's memory. */
int ordma_exec(struct ordma_dev *dev, const struct ordma_cmd *cmd, struct ordma_rsp_result *res);
void ordma_exec_destroy(struct ordma_dev *dev, const struct ordma_cmd *cmd);
int ordma_ids_setup(struct ordma_dev *dev);
void ordma_ids_cleanup(struct ordma_dev *dev);
int ordma_id_get(struct ordma_ids_lock *ids, u32 *number);
void ordma_id_put(struct ordma_ids_lock *ids, u32 number);

/* event.c: interrupts and the core's upward calls */
extern const struct ordma_core_ops ordma_core_ops;
int ordma_irqs_request(struct ordma_dev *dev);
void ordma_irqs_free(struct ordma_dev *dev, int n);
void ordma_poll_events(struct ordma_dev *dev);

/* When it returns, no upward call that looked an object up before is still running. */
static inline void ordma_event_barrier(struct ordma_dev *dev)
{
	spin_lock_bh(&dev->event_lock);
	spin_unlock_bh(&dev->event_lock);
}

/* page.c: doorbell pages and their slots */
void ordma_uctx_init(struct ordma_uctx *uctx, u32 id, struct ib_ucontext *ibuc);
int ordma_kctx_init(struct ordma_dev *dev);
void ordma_uctx_release(struct ordma_dev *dev, struct ordma_uctx *uctx);
int ordma_page_add(struct ordma_dev *dev, struct ordma_uctx *uctx);
void ordma_page_free(struct ordma_page *page);
int ordma_slot_get(struct ordma_dev *dev, struct ordma_uctx *uctx, u32 n, struct ordma_slot *slot);
void ordma_slot_put(struct ordma_slot *slot);
u32 ordma_kick_offset(const struct ordma_dev *dev);
u32 ordma_kick_value(const struct ordma_dev *dev);
void ordma_kick(struct ordma_dev *dev);
void ordma_ring(struct ordma_dev *dev, void __iomem *addr, u64 word);

static inline u64 ordma_db_word(enum ordma_db_kind kind, u32 number, u32 index)
{
	return ORDMA_FIELD(DB_KIND, kind) | ORDMA_FIELD(DB_NUMBER, number) | ORDMA_FIELD(DB_INDEX, index);
}

/* mem.c: memory as the device sees it */
struct ordma_pages { /* page list */
	void *top;
	dma_addr_t top_dma;
	size_t top_bytes;
	u32 leaves;
	struct ordma_leaf {
		void *va;
		dma_addr_t dma;
	} *leaf;
};

struct ordma_umem {
	struct ib_umem *umem;
	struct ordma_pages pages;
	struct ordma_buf buf;
	u32 first_off;
	unsigned long page_size;
};

int ordma_umem_describe(struct ordma_dev *dev, struct ordma_umem *mem, struct ib_umem *umem);
int ordma_umem_queue(struct ordma_dev *dev, struct ordma_umem *mem, u64 va, size_t len);
void ordma_umem_release(struct ordma_dev *dev, struct ordma_umem *mem);

struct ordma_record { /* 8 bytes of user memory that device and user write */
	struct ib_umem *umem;
	u64 dma;
};

int ordma_record_pin(struct ordma_dev *dev, struct ordma_record *rec, u64 va);
void ordma_record_unpin(struct ordma_record *rec);

/* Queue memory of the kernel: a ring and, behind it, a record. */
struct ordma_kmem {
	void *va;
	dma_addr_t dma;
	size_t len;
};

int ordma_kmem_alloc(struct ordma_dev *dev, struct ordma_kmem *mem, size_t len);
void ordma_kmem_free(struct ordma_dev *dev, struct ordma_kmem *mem);

/* hwcq.c: a CQ of either user */
struct ordma_hwcq {
	struct ordma_dev *dev;
	struct ordma_cq cq;
	struct ordma_slot slot;
	void (*event)(struct ordma_hwcq *hwcq); /* under the event lock */
	void (*error)(struct ordma_hwcq *hwcq);
};

int ordma_hwcq_create(struct ordma_dev *dev, struct ordma_hwcq *hwcq, struct ordma_uctx *uctx);
void ordma_hwcq_destroy(struct ordma_hwcq *hwcq);

/* The kernel's view of its CQ. */
struct ordma_kcq {
	struct ordma_kmem mem;
	__le64 *record;
	u32 log, ci;
	u32 arm_seq;
};

int ordma_kcq_alloc(struct ordma_dev *dev, struct ordma_kcq *kcq, struct ordma_cq *cq, u32 log);
const struct ordma_cqe *ordma_kcq_peek(const struct ordma_kcq *kcq);
void ordma_kcq_pop(struct ordma_kcq *kcq);
void ordma_kcq_publish(struct ordma_kcq *kcq);
void ordma_kcq_arm(struct ordma_hwcq *hwcq, struct ordma_kcq *kcq, bool solicited);

struct ordma_hwsrq {
	struct ordma_srq srq;
	void (*event)(struct ordma_hwsrq *hwsrq, enum ib_event_type type); /* under the event lock */
};

/* hwqp.c: a QP of either user */
struct ordma_hwqp {
	struct ordma_dev *dev;
	struct ordma_qp qp;
	struct mutex lock;    /* create, modify, query, destroy */
	spinlock_t state_lock; /* the core's QP lock */
	struct ordma_slot slot; /* SQ, then RQ */
	struct ordma_kmem mem; /* image, progress record, order log, atomic results */
	void (*async)(struct ordma_hwqp *hwqp, enum ordma_async async); /* under the event lock */
};

int ordma_hwqp_create(struct ordma_dev *dev, struct ordma_hwqp *hwqp, struct ordma_uctx *uctx,
		      const struct ordma_qp_init *init, const struct ordma_buf *sq, const struct ordma_buf *rq);
int ordma_hwqp_modify(struct ordma_hwqp *hwqp, const struct ordma_qp_attr *attr, u32 mask);
int ordma_hwqp_query(struct ordma_hwqp *hwqp, struct ordma_qp_attr *attr);
void ordma_hwqp_destroy(struct ordma_hwqp *hwqp);

/* A work queue that the kernel fills. Indices are absolute. */
struct ordma_kwq {
	u8 *va;
	u32 log, stride_log;
	u32 pi, ci;
	void __iomem *db;
};

void ordma_kwq_setup(struct ordma_kwq *wq, struct ordma_buf *buf, const struct ordma_kmem *mem, size_t off,
		     u32 log, u32 stride_log);

static inline void *ordma_kwq_slot(const struct ordma_kwq *wq, u32 index)
{
	return wq->va + ((size_t)(index & ((1u << wq->log) - 1)) << wq->stride_log);
}

static inline bool ordma_kwq_full(const struct ordma_kwq *wq)
{
	return ordma_index_diff(wq->pi, READ_ONCE(wq->ci)) >= (s32)(1u << wq->log);
}

/* Takes the completed WQE's low 16 index bits; all before it are done too. */
static inline void ordma_kwq_retire(struct ordma_kwq *wq, u16 wqe_index)
{
	WRITE_ONCE(wq->ci, ordma_index_add(wq->ci, (u16)(wqe_index - (u16)wq->ci) + 1));
}

static inline void ordma_sge_set(void *wqe, u32 off, u64 addr, u32 len, u32 lkey)
{
	struct ordma_sge *sge = wqe + off;

	sge->w[ORDMA_SGE_ADDR_W] = cpu_to_le64(addr);
	sge->w[ORDMA_SGE_LENGTH_W] = cpu_to_le64(ORDMA_FIELD(SGE_LENGTH, len) | ORDMA_FIELD(SGE_LKEY, lkey));
}

/* netdev.c */
int ordma_netdev_add(struct ordma_dev *dev);
void ordma_netdev_remove(struct ordma_dev *dev);
void ordma_port_update(struct ordma_dev *dev);

#endif /* ORDMA_HW_GLUE_H */
