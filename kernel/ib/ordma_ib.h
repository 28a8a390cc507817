/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The RDMA device: the objects of the verbs, one file each, on top of hw.h. */
#ifndef ORDMA_IB_H
#define ORDMA_IB_H

#include <rdma/ib_verbs.h>
#include <rdma/ordma-abi.h>

#include "hw.h"

struct ordma_ucontext {
	struct ib_ucontext ibuc;
	struct ordma_uctx uctx;
	struct ordma_map *public, *kick;
};

struct ordma_ibpd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct ordma_ibmr {
	struct ib_mr ibmr;
	struct ordma_mr mr;
	struct ordma_umem mem; /* no umem: the local-DMA key */
};

struct ordma_ibah {
	struct ib_ah ibah;
	struct ordma_av av; /* without destination QPN and Q_Key */
};

struct ordma_ibcq {
	struct ib_cq ibcq;
	struct ordma_hwcq hwcq;
	struct mutex lock; /* resize */
	/* user */
	struct ordma_umem ring;
	struct ordma_record record;
	/* kernel */
	spinlock_t poll_lock;
	struct ordma_kcq kcq;
	struct list_head send_qps, recv_qps; /* whose completions come here */
};

struct ordma_ibsrq {
	struct ib_srq ibsrq;
	struct ordma_hwsrq hwsrq;
	struct ordma_slot slot;
	struct mutex lock; /* modify */
	struct ordma_umem ring;
	struct ordma_record record;
	/* kernel */
	spinlock_t post_lock;
	struct ordma_kmem kmem;
	struct ordma_kwq wq;
};

struct ordma_ibqp {
	struct ib_qp ibqp;
	struct ordma_hwqp hwqp;
	bool user;
	/* user */
	struct ordma_umem sq_mem, rq_mem;
	/* kernel */
	struct ordma_kmem kmem;
	spinlock_t sq_lock, rq_lock; /* posting; retiring happens under the CQ's poll_lock too */
	struct ordma_kwq sq, rq;
	struct ordma_sent {
		u64 wr_id;
		u8 opcode; /* enum ib_wc_opcode */
	} *sent; /* by slot of the SQ */
	bool sig_all;
	struct list_head send_entry, recv_entry;
	/* After a modify to RESET: CQEs before this index of the CQ are of the QP's earlier life. Under the CQ's poll_lock. */
	struct ordma_stale {
		u32 before;
		bool set;
	} send_stale, recv_stale;
	struct list_head mcasts; /* attached groups, under hwqp.lock */
};

static inline struct ordma_dev *to_odev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct ordma_dev, ibdev);
}

static inline struct ordma_ucontext *to_ouc(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct ordma_ucontext, ibuc);
}

static inline struct ordma_ibpd *to_opd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct ordma_ibpd, ibpd);
}

static inline struct ordma_ibmr *to_omr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct ordma_ibmr, ibmr);
}

static inline struct ordma_ibah *to_oah(struct ib_ah *ibah)
{
	return container_of(ibah, struct ordma_ibah, ibah);
}

static inline struct ordma_ibcq *to_ocq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct ordma_ibcq, ibcq);
}

static inline struct ordma_ibsrq *to_osrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct ordma_ibsrq, ibsrq);
}

static inline struct ordma_ibqp *to_oqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct ordma_ibqp, ibqp);
}

/* device.c */
extern const struct ib_device_ops ordma_ib_ops;
int ordma_ib_register(struct ordma_dev *dev);
void ordma_ib_unregister(struct ordma_dev *dev);
void ordma_ib_fatal(struct ordma_dev *dev);
int ordma_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);

/* ucontext.c */
int ordma_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
void ordma_dealloc_ucontext(struct ib_ucontext *ibuc);
int ordma_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
void ordma_mmap_free(struct rdma_user_mmap_entry *entry);
void ordma_disassociate_ucontext(struct ib_ucontext *ibuc);
int ordma_udata_in(struct ib_udata *udata, void *req, size_t len);
int ordma_udata_none(struct ib_udata *udata);
int ordma_udata_out(struct ib_udata *udata, void *resp, size_t len);
struct ordma_uctx *ordma_udata_uctx(struct ordma_dev *dev, struct ib_udata *udata);
void ordma_abi_db_fill(struct ordma_abi_db *db, const struct ordma_slot *slot, u32 nth);

/* pd.c */
int ordma_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int ordma_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* mr.c */
struct ib_mr *ordma_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *ordma_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
				struct ib_udata *udata);
struct ib_mr *ordma_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova, int fd, int access,
				       ORDMA_DMABUF_ARG);
int ordma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* ah.c */
int ordma_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int ordma_destroy_ah(struct ib_ah *ibah, u32 flags);
void ordma_ah_attr(const struct rdma_ah_attr *ah, struct ordma_ah_attr *out);

/* cq.c, poll.c */
int ordma_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, ORDMA_CREATE_CQ_ARG);
int ordma_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int ordma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
void ordma_cq_kick(struct ib_cq *ibcq);
void ordma_cq_forget(struct ib_cq *ibcq, struct ordma_stale *stale, struct ordma_kwq *wq);
int ordma_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int ordma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

/* srq.c */
int ordma_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr, struct ib_udata *udata);
int ordma_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		     struct ib_udata *udata);
int ordma_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int ordma_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);

/* qp.c, qp_attr.c */
int ordma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int ordma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int ordma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int ordma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init);

/* post.c */
int ordma_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int ordma_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
int ordma_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);

/* gid.c, mcast.c */
int ordma_add_gid(const struct ib_gid_attr *attr, void **context);
int ordma_del_gid(const struct ib_gid_attr *attr, void **context);
int ordma_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int ordma_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/* stats.c, restrack.c */
struct rdma_hw_stats *ordma_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int ordma_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index);
int ordma_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int ordma_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int ordma_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);

#endif /* ORDMA_IB_H */
