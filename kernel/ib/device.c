// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The ib_device: registration, and what it says about itself and its port. */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "ordma_ib.h"

/* No table stands behind an AH; the number only has to be honest and large. */
#define ORDMA_MAX_AH (1 << 20)

static int ordma_query_device(struct ib_device *ibdev, struct ib_device_attr *attr, struct ib_udata *udata)
{
	struct ordma_dev *dev = to_odev(ibdev);
	const struct ordma_caps *caps = &dev->core.caps;
	int err;

	err = ordma_udata_none(udata);
	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = (u64)caps->major << 32 | caps->minor << 16 | (caps->build & 0xffff);
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = dev->pdev->vendor;
	attr->vendor_part_id = dev->pdev->device;
	attr->hw_ver = caps->engine;
	attr->max_mr_size = ORDMA_MAX_MR_SIZE;
	attr->page_size_cap = GENMASK(31, 12);
	attr->device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_N_NOTIFY_CQ;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->max_qp = ordma_ids_count(&dev->core, ORDMA_IDS_QPN);
	attr->max_qp_wr = caps->max_wr;
	attr->max_send_sge = caps->max_sge;
	attr->max_recv_sge = caps->max_sge;
	attr->max_sge_rd = caps->max_sge;
	attr->max_cq = ordma_ids_count(&dev->core, ORDMA_IDS_CQN);
	attr->max_cqe = caps->max_cqe;
	attr->max_mr = ordma_ids_count(&dev->core, ORDMA_IDS_MKEY);
	attr->max_pd = ordma_ids_count(&dev->core, ORDMA_IDS_PDN);
	attr->max_qp_rd_atom = caps->max_rd_atomic;
	attr->max_qp_init_rd_atom = caps->max_rd_atomic;
	attr->max_res_rd_atom = attr->max_qp * caps->max_rd_atomic;
	attr->atomic_cap = caps->bits & ORDMA_CAP_ATOMIC ? IB_ATOMIC_HCA : IB_ATOMIC_NONE;
	attr->max_ah = ORDMA_MAX_AH;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = 15;
	if (caps->bits & ORDMA_CAP_SRQ) {
		attr->max_srq = ordma_ids_count(&dev->core, ORDMA_IDS_SRQN);
		attr->max_srq_wr = caps->max_wr;
		attr->max_srq_sge = caps->max_sge;
	}
	if (caps->bits & ORDMA_CAP_MCAST) {
		attr->max_mcast_grp = caps->max_mcast;
		attr->max_mcast_qp_attach = caps->max_mcast;
		attr->max_total_mcast_qp_attach = caps->max_mcast;
	}
	/* The device clock counts nanoseconds; CQEs carry all 64 bits. */
	attr->timestamp_mask = ~0ULL;
	attr->hca_core_clock = 1000000;
	return 0;
}

static const struct ordma_rate {
	u32 mbps;
	u16 speed;
	u8 width;
} ordma_rates[] = {
	{ 400000, IB_SPEED_NDR, IB_WIDTH_4X }, { 200000, IB_SPEED_HDR, IB_WIDTH_4X },
	{ 100000, IB_SPEED_EDR, IB_WIDTH_4X }, { 50000, IB_SPEED_EDR, IB_WIDTH_2X },
	{ 40000, IB_SPEED_QDR, IB_WIDTH_4X },  { 25000, IB_SPEED_EDR, IB_WIDTH_1X },
	{ 10000, IB_SPEED_QDR, IB_WIDTH_1X },  { 0, IB_SPEED_SDR, IB_WIDTH_1X },
};

int ordma_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct ordma_dev *dev = to_odev(ibdev);
	const struct ordma_rate *rate = ordma_rates;

	attr->state = READ_ONCE(dev->port_state);
	attr->phys_state = attr->state == IB_PORT_ACTIVE ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = iboe_get_mtu(READ_ONCE(dev->netdev->mtu)) ?: IB_MTU_256;
	attr->phys_mtu = READ_ONCE(dev->netdev->mtu);
	attr->gid_tbl_len = dev->core.caps.max_gid;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = 1U << ORDMA_MAX_MSG_LOG;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	while (rate->mbps > dev->core.caps.port_speed)
		rate++;
	attr->active_speed = rate->speed;
	attr->active_width = rate->width;
	return 0;
}

static int ordma_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *immutable)
{
	struct ib_port_attr attr;
	int err;

	err = ib_query_port(ibdev, port, &attr);
	if (err)
		return err;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer ordma_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int ordma_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = ORDMA_DEFAULT_PKEY;
	return 0;
}

static void ordma_fw_str(struct ib_device *ibdev, char *str)
{
	const struct ordma_caps *caps = &to_odev(ibdev)->core.caps;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u", caps->major, caps->minor, caps->build);
}

const struct ib_device_ops ordma_ib_ops = {
	.owner = THIS_MODULE,
	.driver_id = (enum rdma_driver_id)ORDMA_RDMA_DRIVER_ID,
	.uverbs_abi_ver = ORDMA_UVERBS_ABI_VERSION,

	.query_device = ordma_query_device,
	.query_port = ordma_query_port,
	.get_port_immutable = ordma_port_immutable,
	.get_link_layer = ordma_link_layer,
	.query_pkey = ordma_query_pkey,
	.get_dev_fw_str = ordma_fw_str,
	.add_gid = ordma_add_gid,
	.del_gid = ordma_del_gid,

	.alloc_ucontext = ordma_alloc_ucontext,
	.dealloc_ucontext = ordma_dealloc_ucontext,
	.mmap = ordma_mmap,
	.mmap_free = ordma_mmap_free,
	.disassociate_ucontext = ordma_disassociate_ucontext,

	.alloc_pd = ordma_alloc_pd,
	.dealloc_pd = ordma_dealloc_pd,
	.get_dma_mr = ordma_get_dma_mr,
	.reg_user_mr = ordma_reg_user_mr,
	.reg_user_mr_dmabuf = ordma_reg_user_mr_dmabuf,
	.dereg_mr = ordma_dereg_mr,
	.create_ah = ordma_create_ah,
	.create_user_ah = ordma_create_ah,
	.destroy_ah = ordma_destroy_ah,
	.create_cq = ordma_create_cq,
	.destroy_cq = ordma_destroy_cq,
	.poll_cq = ordma_poll_cq,
	.req_notify_cq = ordma_req_notify_cq,
	.create_qp = ordma_create_qp,
	.modify_qp = ordma_modify_qp,
	.query_qp = ordma_query_qp,
	.destroy_qp = ordma_destroy_qp,
	.post_send = ordma_post_send,
	.post_recv = ordma_post_recv,

	.alloc_hw_port_stats = ordma_alloc_hw_port_stats,
	.get_hw_stats = ordma_get_hw_stats,
	.fill_res_mr_entry = ordma_fill_res_mr_entry,
	.fill_res_cq_entry = ordma_fill_res_cq_entry,
	.fill_res_qp_entry = ordma_fill_res_qp_entry,

	INIT_RDMA_OBJ_SIZE(ib_ah, ordma_ibah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, ordma_ibcq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, ordma_ibpd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, ordma_ibqp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, ordma_ucontext, ibuc),
};

/* Absent operations are how the core learns what to answer with EOPNOTSUPP. */
static const struct ib_device_ops ordma_srq_ops = {
	.create_srq = ordma_create_srq,
	.modify_srq = ordma_modify_srq,
	.query_srq = ordma_query_srq,
	.destroy_srq = ordma_destroy_srq,
	.post_srq_recv = ordma_post_srq_recv,
	INIT_RDMA_OBJ_SIZE(ib_srq, ordma_ibsrq, ibsrq),
};

static const struct ib_device_ops ordma_resize_ops = {
	.resize_cq = ordma_resize_cq,
};

static const struct ib_device_ops ordma_mcast_ops = {
	.attach_mcast = ordma_attach_mcast,
	.detach_mcast = ordma_detach_mcast,
};

int ordma_ib_register(struct ordma_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;
	const struct ordma_caps *caps = &dev->core.caps;
	int err;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->nvec;
	ibdev->dev.parent = &dev->pdev->dev;
	ibdev->node_guid = cpu_to_be64(caps->guid);
	ibdev->local_dma_lkey = ORDMA_RESERVED_LKEY;
	strscpy(ibdev->node_desc, "ordma", sizeof(ibdev->node_desc));
	ib_set_device_ops(ibdev, &ordma_ib_ops);
	if (caps->bits & ORDMA_CAP_SRQ)
		ib_set_device_ops(ibdev, &ordma_srq_ops);
	if (caps->bits & ORDMA_CAP_RESIZE_CQ)
		ib_set_device_ops(ibdev, &ordma_resize_ops);
	if (caps->bits & ORDMA_CAP_MCAST)
		ib_set_device_ops(ibdev, &ordma_mcast_ops);
	err = ib_device_set_netdev(ibdev, dev->netdev, 1);
	if (err)
		return err;
	err = ib_register_device(ibdev, "ordma%d", &dev->pdev->dev);
	if (err) {
		ib_device_set_netdev(ibdev, NULL, 1);
		return err;
	}
	set_bit(ORDMA_F_REGISTERED, &dev->flags);
	ordma_port_update(dev);
	return 0;
}

void ordma_ib_unregister(struct ordma_dev *dev)
{
	clear_bit(ORDMA_F_REGISTERED, &dev->flags);
	/* An event that saw the bit is through. */
	flush_work(&dev->port_work);
	flush_work(&dev->fatal_work);
	ib_unregister_device(&dev->ibdev);
}

/* Work item of a device that died: users hear of it, and whoever waits for a completion is told to poll. */
void ordma_ib_fatal(struct ordma_dev *dev)
{
	struct ib_event event = { .device = &dev->ibdev, .element.port_num = 1, .event = IB_EVENT_DEVICE_FATAL };
	struct ordma_hwqp *hwqp;
	struct ordma_hwcq *hwcq;
	unsigned long i;

	spin_lock_bh(&dev->event_lock);
	xa_for_each(&dev->qps, i, hwqp) {
		spin_lock(&hwqp->state_lock);
		ordma_qp_to_error(&hwqp->qp, ORDMA_QP_STATE_ERR);
		spin_unlock(&hwqp->state_lock);
	}
	xa_for_each(&dev->cqs, i, hwcq)
		hwcq->event(hwcq);
	spin_unlock_bh(&dev->event_lock);
	if (test_bit(ORDMA_F_REGISTERED, &dev->flags))
		ib_dispatch_event(&event);
}
