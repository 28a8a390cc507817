/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What differs between the kernels this driver builds for (6.1 to 6.12), and nothing else. */
#ifndef ORDMA_KCOMPAT_H
#define ORDMA_KCOMPAT_H

#include <linux/version.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* Stable releases moved the umem block iterator to a header of its own; Kbuild looks (sparse knows no __has_include). */
#ifdef ORDMA_HAVE_RDMA_ITER_H
#include <rdma/iter.h>
#endif

/* create_cq and reg_user_mr_dmabuf got the whole attribute bundle instead of the driver's part. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define ORDMA_CREATE_CQ_ARG struct uverbs_attr_bundle *attrs
#define ORDMA_CREATE_CQ_UDATA (attrs ? &attrs->driver_udata : NULL)
#else
#define ORDMA_CREATE_CQ_ARG struct ib_udata *udata
#define ORDMA_CREATE_CQ_UDATA udata
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define ORDMA_DMABUF_ARG struct uverbs_attr_bundle *attrs
#else
#define ORDMA_DMABUF_ARG struct ib_udata *udata
#endif

/* Since 6.3 the flags of a VMA are changed through functions only. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#define ordma_vm_flags_clear(vma, flags) vm_flags_clear(vma, flags)
#else
#define ordma_vm_flags_clear(vma, flags) ((vma)->vm_flags &= ~(flags))
#endif

#endif /* ORDMA_KCOMPAT_H */
