// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The network interface of the port: a child of the same PCI device, on the raw Ethernet QP. Address resolution, rdma_cm's
 * sockets and everything else that needs an IP stack on the wire that the RDMA traffic takes go through here.
 */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <rdma/ib_addr.h>

#include "hw.h"
#include "ordma_ib.h"

#define ORDMA_ETH_LOG 8 /* frames in either direction */
/* Both rings complete into one CQ. */
#define ORDMA_ETH_CQ_LOG (ORDMA_ETH_LOG + 1)
#define ORDMA_ETH_FRAME(mtu) ((mtu) + VLAN_ETH_HLEN)

struct ordma_frame {
	struct sk_buff *skb;
	dma_addr_t dma;
	u32 len;
};

struct ordma_netdev {
	struct ordma_dev *dev;
	struct net_device *netdev;
	struct napi_struct napi;
	struct work_struct filter_work;
	struct ordma_hwcq hwcq;
	struct ordma_kcq kcq;
	struct ordma_hwqp hwqp;
	struct ordma_kmem kmem;
	struct ordma_kwq sq, rq;
	struct ordma_frame *tx, *rx;
	struct mutex lock; /* up, filter */
	bool up;
};

static u32 ordma_wq_slot(const struct ordma_kwq *wq, u32 index)
{
	return index & ((1u << wq->log) - 1);
}

/* ---------------------------------------------------------------------------------------------------------- receive */

static bool ordma_rx_refill_one(struct ordma_netdev *on)
{
	struct ordma_frame *frame = &on->rx[ordma_wq_slot(&on->rq, on->rq.pi)];
	struct device *device = ordma_dma_device(on->dev);
	struct ordma_rqe *rqe;

	frame->len = ORDMA_ETH_FRAME(on->netdev->max_mtu);
	frame->skb = netdev_alloc_skb_ip_align(on->netdev, frame->len);
	if (!frame->skb)
		return false;
	frame->dma = dma_map_single(device, frame->skb->data, frame->len, DMA_FROM_DEVICE);
	if (dma_mapping_error(device, frame->dma)) {
		dev_kfree_skb_any(frame->skb);
		frame->skb = NULL;
		return false;
	}
	rqe = ordma_kwq_slot(&on->rq, on->rq.pi);
	rqe->w[ORDMA_RQE_WR_ID_W] = 0;
	rqe->w[ORDMA_RQE_INDEX_W] = cpu_to_le64(ORDMA_FIELD(RQE_NUM_SGE, 1) | ORDMA_FIELD(RQE_INDEX, on->rq.pi));
	ordma_sge_set(rqe, ORDMA_RQE_DATA_OFF, frame->dma, frame->len, ORDMA_RESERVED_LKEY);
	on->rq.pi = ordma_index_add(on->rq.pi, 1);
	return true;
}

static void ordma_rx_refill(struct ordma_netdev *on)
{
	u32 before = on->rq.pi;

	while (!ordma_kwq_full(&on->rq) && ordma_rx_refill_one(on))
		;
	if (on->rq.pi != before)
		ordma_ring(on->dev, on->rq.db, ordma_db_word(ORDMA_DB_KIND_RQ, on->hwqp.qp.qpn, on->rq.pi));
}

static void ordma_rx_one(struct ordma_netdev *on, const struct ordma_cqe *cqe)
{
	struct ordma_frame *frame = &on->rx[ordma_wq_slot(&on->rq, ORDMA_GET(cqe, CQE_WQE_INDEX))];
	u32 len = ORDMA_GET(cqe, CQE_BYTE_LEN);
	struct sk_buff *skb = frame->skb;

	ordma_kwq_retire(&on->rq, ORDMA_GET(cqe, CQE_WQE_INDEX));
	if (WARN_ON_ONCE(!skb))
		return;
	dma_unmap_single(ordma_dma_device(on->dev), frame->dma, frame->len, DMA_FROM_DEVICE);
	frame->skb = NULL;
	if (ORDMA_GET(cqe, CQE_STATUS) != ORDMA_WC_STATUS_SUCCESS || len < ETH_HLEN || len > frame->len) {
		on->netdev->stats.rx_errors++;
		dev_kfree_skb_any(skb);
		return;
	}
	skb_put(skb, len);
	skb->protocol = eth_type_trans(skb, on->netdev);
	on->netdev->stats.rx_packets++;
	on->netdev->stats.rx_bytes += len;
	napi_gro_receive(&on->napi, skb);
}

/* --------------------------------------------------------------------------------------------------------- transmit */

static void ordma_tx_free(struct ordma_netdev *on, struct ordma_frame *frame)
{
	if (!frame->skb)
		return;
	dma_unmap_single(ordma_dma_device(on->dev), frame->dma, frame->len, DMA_TO_DEVICE);
	dev_consume_skb_any(frame->skb);
	frame->skb = NULL;
}

static void ordma_tx_one(struct ordma_netdev *on, const struct ordma_cqe *cqe)
{
	struct ordma_frame *frame = &on->tx[ordma_wq_slot(&on->sq, ORDMA_GET(cqe, CQE_WQE_INDEX))];

	if (ORDMA_GET(cqe, CQE_STATUS) == ORDMA_WC_STATUS_SUCCESS) {
		on->netdev->stats.tx_packets++;
		on->netdev->stats.tx_bytes += frame->len;
	} else {
		on->netdev->stats.tx_errors++;
	}
	ordma_tx_free(on, frame);
	/* Whoever sends sees the slot only after it was emptied. */
	smp_mb();
	ordma_kwq_retire(&on->sq, ORDMA_GET(cqe, CQE_WQE_INDEX));
}

static netdev_tx_t ordma_start_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct ordma_netdev *on = netdev_priv(netdev);
	struct device *device = ordma_dma_device(on->dev);
	struct ordma_frame *frame;
	struct ordma_wqe *wqe;

	if (eth_skb_pad(skb))
		return NETDEV_TX_OK;
	if (ordma_core_dead(&on->dev->core) || skb_linearize(skb))
		goto drop;
	frame = &on->tx[ordma_wq_slot(&on->sq, on->sq.pi)];
	frame->len = skb->len;
	frame->dma = dma_map_single(device, skb->data, skb->len, DMA_TO_DEVICE);
	if (dma_mapping_error(device, frame->dma))
		goto drop;
	frame->skb = skb;
	wqe = ordma_kwq_slot(&on->sq, on->sq.pi);
	memset(wqe, 0, sizeof(*wqe));
	wqe->w[ORDMA_WQE_OPCODE_W] = cpu_to_le64(ORDMA_FIELD(WQE_OPCODE, ORDMA_WQE_OP_ETH) | ORDMA_FIELD(WQE_SIGNALED, 1) |
				ORDMA_FIELD(WQE_NUM_SGE, 1) | ORDMA_FIELD(WQE_INDEX, on->sq.pi));
	wqe->w[ORDMA_WQE_LENGTH_W] = cpu_to_le64(ORDMA_FIELD(WQE_LENGTH, skb->len));
	ordma_sge_set(wqe, ORDMA_WQE_DATA_OFF, frame->dma, skb->len, ORDMA_RESERVED_LKEY);
	on->sq.pi = ordma_index_add(on->sq.pi, 1);
	ordma_ring(on->dev, on->sq.db, ordma_db_word(ORDMA_DB_KIND_SQ, on->hwqp.qp.qpn, on->sq.pi));
	if (ordma_kwq_full(&on->sq)) {
		netif_stop_queue(netdev);
		/* The completion that would have woken the queue may have come just before it was stopped. */
		smp_mb();
		if (!ordma_kwq_full(&on->sq))
			netif_start_queue(netdev);
	}
	return NETDEV_TX_OK;

drop:
	netdev->stats.tx_dropped++;
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

/* ------------------------------------------------------------------------------------------------------------- NAPI */

static void ordma_eth_event(struct ordma_hwcq *hwcq)
{
	struct ordma_netdev *on = container_of(hwcq, struct ordma_netdev, hwcq);

	napi_schedule(&on->napi);
}

static void ordma_eth_error(struct ordma_hwcq *hwcq)
{
	struct ordma_netdev *on = container_of(hwcq, struct ordma_netdev, hwcq);

	netdev_err(on->netdev, "completion queue failed\n");
}

static void ordma_eth_async(struct ordma_hwqp *hwqp, enum ordma_async async)
{
	struct ordma_netdev *on = container_of(hwqp, struct ordma_netdev, hwqp);

	netdev_err(on->netdev, "raw Ethernet queue failed (%d)\n", async);
}

static int ordma_eth_poll(struct napi_struct *napi, int budget)
{
	struct ordma_netdev *on = container_of(napi, struct ordma_netdev, napi);
	const struct ordma_cqe *cqe;
	int rx = 0, n;

	/* Sends cost little and are not counted, but are bounded by the ring. */
	for (n = 0; rx < budget && n < 1 << ORDMA_ETH_CQ_LOG; n++) {
		cqe = ordma_kcq_peek(&on->kcq);
		if (!cqe)
			break;
		if (ORDMA_GET(cqe, CQE_IS_RECV)) {
			ordma_rx_one(on, cqe);
			rx++;
		} else {
			ordma_tx_one(on, cqe);
		}
		ordma_kcq_pop(&on->kcq);
	}
	if (n)
		ordma_kcq_publish(&on->kcq);
	ordma_rx_refill(on);
	if (netif_queue_stopped(on->netdev) && !ordma_kwq_full(&on->sq))
		netif_wake_queue(on->netdev);
	if (ordma_kcq_peek(&on->kcq))
		return budget;
	if (rx < budget && napi_complete_done(napi, rx))
		ordma_kcq_arm(&on->hwcq, &on->kcq, false);
	return min(rx, budget);
}

/* ------------------------------------------------------------------------------------------------------ up and down */

static int ordma_eth_filter(struct ordma_netdev *on)
{
	struct net_device *netdev = on->netdev;
	bool promisc, allmulti;
	struct ordma_cmd cmd;
	u8 mac[ETH_ALEN];

	netif_addr_lock_bh(netdev);
	/* One unicast address is what the filter holds; more means all. */
	promisc = netdev->flags & IFF_PROMISC || !netdev_uc_empty(netdev);
	allmulti = netdev->flags & IFF_ALLMULTI || !netdev_mc_empty(netdev);
	ether_addr_copy(mac, netdev->dev_addr);
	netif_addr_unlock_bh(netdev);
	ordma_cmd_eth_filter(&cmd, on->hwqp.qp.qpn, mac, promisc, allmulti);
	return ordma_exec(on->dev, &cmd, NULL);
}

static void ordma_filter_work(struct work_struct *work)
{
	struct ordma_netdev *on = container_of(work, struct ordma_netdev, filter_work);

	mutex_lock(&on->lock);
	if (on->up && ordma_eth_filter(on))
		netdev_dbg(on->netdev, "filter not set\n");
	mutex_unlock(&on->lock);
}

static void ordma_set_rx_mode(struct net_device *netdev)
{
	struct ordma_netdev *on = netdev_priv(netdev);

	queue_work(on->dev->wq, &on->filter_work);
}

static int ordma_eth_states(struct ordma_netdev *on)
{
	static const enum ordma_qp_state path[] = { ORDMA_QP_STATE_INIT, ORDMA_QP_STATE_RTR, ORDMA_QP_STATE_RTS };
	struct ordma_qp_attr attr = { .port_num = 1 };
	int i, err;

	for (i = 0; i < ARRAY_SIZE(path); i++) {
		attr.qp_state = path[i];
		err = ordma_hwqp_modify(&on->hwqp, &attr,
					ORDMA_ATTR_STATE | (path[i] == ORDMA_QP_STATE_INIT ? ORDMA_ATTR_PORT : 0));
		if (err)
			return err;
	}
	return 0;
}

static void ordma_eth_free(struct ordma_netdev *on)
{
	u32 i;

	for (i = 0; on->tx && i < 1u << on->sq.log; i++)
		ordma_tx_free(on, &on->tx[i]);
	for (i = 0; on->rx && i < 1u << on->rq.log; i++) {
		if (!on->rx[i].skb)
			continue;
		dma_unmap_single(ordma_dma_device(on->dev), on->rx[i].dma, on->rx[i].len, DMA_FROM_DEVICE);
		dev_kfree_skb_any(on->rx[i].skb);
	}
	kvfree(on->tx);
	kvfree(on->rx);
	on->tx = NULL;
	on->rx = NULL;
	ordma_kmem_free(on->dev, &on->kmem);
	ordma_kmem_free(on->dev, &on->kcq.mem);
}

static int ordma_eth_alloc(struct ordma_netdev *on, struct ordma_qp_init *init, struct ordma_buf *sq,
			   struct ordma_buf *rq)
{
	struct ordma_dev *dev = on->dev;
	u32 wr = min(1u << ORDMA_ETH_LOG, dev->core.caps.max_wr);
	size_t sq_len, rq_len;
	int err;

	init->type = ORDMA_QP_TYPE_ETH;
	init->privileged = true;
	init->cap = (struct ordma_qp_cap){ wr, wr, 1, 1, 0 };
	err = ordma_qp_geometry(&dev->core, init) ?: ordma_qp_check_create(&dev->core, init);
	if (err)
		return err;
	sq_len = (size_t)1 << (init->sq_log + init->sq_stride_log);
	rq_len = (size_t)1 << (init->rq_log + init->rq_stride_log);
	on->tx = kvcalloc(1u << init->sq_log, sizeof(*on->tx), GFP_KERNEL);
	on->rx = kvcalloc(1u << init->rq_log, sizeof(*on->rx), GFP_KERNEL);
	if (!on->tx || !on->rx)
		return -ENOMEM;
	err = ordma_kmem_alloc(dev, &on->kmem, sq_len + rq_len) ?:
	      ordma_kcq_alloc(dev, &on->kcq, &on->hwcq.cq, ORDMA_ETH_CQ_LOG);
	if (err)
		return err;
	ordma_kwq_setup(&on->sq, sq, &on->kmem, 0, init->sq_log, init->sq_stride_log);
	ordma_kwq_setup(&on->rq, rq, &on->kmem, sq_len, init->rq_log, init->rq_stride_log);
	return 0;
}

static int ordma_eth_up(struct ordma_netdev *on)
{
	struct ordma_buf sq = {}, rq = {};
	struct ordma_qp_init init = {};
	struct ordma_dev *dev = on->dev;
	int err;

	err = ordma_eth_alloc(on, &init, &sq, &rq);
	if (err)
		goto err_free;
	err = ordma_hwcq_create(dev, &on->hwcq, &dev->kctx);
	if (err)
		goto err_free;
	init.scqn = on->hwcq.cq.cqn;
	init.rcqn = on->hwcq.cq.cqn;
	err = ordma_hwqp_create(dev, &on->hwqp, &dev->kctx, &init, &sq, &rq);
	if (err)
		goto err_cq;
	on->sq.db = on->hwqp.slot.addr;
	on->rq.db = on->hwqp.slot.addr + sizeof(u64);
	err = ordma_eth_states(on) ?: ordma_eth_filter(on);
	if (err)
		goto err_qp;
	return 0;

err_qp:
	ordma_hwqp_destroy(&on->hwqp);
err_cq:
	ordma_hwcq_destroy(&on->hwcq);
err_free:
	ordma_eth_free(on);
	return err;
}

static int ordma_open(struct net_device *netdev)
{
	struct ordma_netdev *on = netdev_priv(netdev);
	int err;

	mutex_lock(&on->lock);
	err = ordma_eth_up(on);
	on->up = !err;
	mutex_unlock(&on->lock);
	if (err)
		return err;
	napi_enable(&on->napi);
	/* The first poll fills the receive queue and arms the CQ. */
	local_bh_disable();
	napi_schedule(&on->napi);
	local_bh_enable();
	netif_start_queue(netdev);
	ordma_core_set_link(&on->dev->core, true);
	queue_work(on->dev->wq, &on->dev->port_work);
	return 0;
}

static int ordma_stop(struct net_device *netdev)
{
	struct ordma_netdev *on = netdev_priv(netdev);

	ordma_core_set_link(&on->dev->core, false);
	netif_tx_disable(netdev);
	netif_carrier_off(netdev);
	napi_disable(&on->napi);
	mutex_lock(&on->lock);
	on->up = false;
	ordma_hwqp_destroy(&on->hwqp);
	ordma_hwcq_destroy(&on->hwcq);
	ordma_eth_free(on);
	mutex_unlock(&on->lock);
	queue_work(on->dev->wq, &on->dev->port_work);
	return 0;
}

static void ordma_mtu_tell(struct ordma_dev *dev, int mtu)
{
	/* A netdev may be smaller than the smallest RoCE MTU; the QPs then still have that one. */
	ordma_core_set_active_mtu(&dev->core, iboe_get_mtu(mtu) ?: IB_MTU_256);
}

static int ordma_change_mtu(struct net_device *netdev, int mtu)
{
	struct ordma_netdev *on = netdev_priv(netdev);

	WRITE_ONCE(netdev->mtu, mtu);
	ordma_mtu_tell(on->dev, mtu);
	return 0;
}

static int ordma_set_mac(struct net_device *netdev, void *addr)
{
	int err = eth_mac_addr(netdev, addr);

	if (!err)
		ordma_set_rx_mode(netdev);
	return err;
}

static const struct net_device_ops ordma_netdev_ops = {
	.ndo_open = ordma_open,
	.ndo_stop = ordma_stop,
	.ndo_start_xmit = ordma_start_xmit,
	.ndo_set_rx_mode = ordma_set_rx_mode,
	.ndo_change_mtu = ordma_change_mtu,
	.ndo_set_mac_address = ordma_set_mac,
	.ndo_validate_addr = eth_validate_addr,
};

static void ordma_get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	struct ordma_netdev *on = netdev_priv(netdev);
	const struct ordma_caps *caps = &on->dev->core.caps;

	strscpy(info->driver, "ordma", sizeof(info->driver));
	snprintf(info->fw_version, sizeof(info->fw_version), "%u.%u.%u", caps->major, caps->minor, caps->build);
	strscpy(info->bus_info, pci_name(on->dev->pdev), sizeof(info->bus_info));
}

static int ordma_get_link_ksettings(struct net_device *netdev, struct ethtool_link_ksettings *ks)
{
	struct ordma_netdev *on = netdev_priv(netdev);

	ks->base.speed = netif_carrier_ok(netdev) ? on->dev->core.caps.port_speed : SPEED_UNKNOWN;
	ks->base.duplex = netif_carrier_ok(netdev) ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	ks->base.port = PORT_OTHER;
	ks->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static const struct ethtool_ops ordma_ethtool_ops = {
	.get_drvinfo = ordma_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = ordma_get_link_ksettings,
};

/* ------------------------------------------------------------------------------------------------------------- port */

/* Work: carrier and port state follow the link, the interface and the health of the device. */
void ordma_port_update(struct ordma_dev *dev)
{
	struct ib_event event = { .device = &dev->ibdev, .element.port_num = 1 };
	enum ib_port_state state;
	bool up;

	/* Set before the netdev goes: an event may queue this work until the device is stopped. */
	if (test_bit(ORDMA_F_STOPPING, &dev->flags))
		return;
	mutex_lock(&dev->port_lock);
	up = !ordma_core_dead(&dev->core) && ordma_core_link_up(&dev->core);
	if (up)
		netif_carrier_on(dev->netdev);
	else
		netif_carrier_off(dev->netdev);
	state = up && netif_running(dev->netdev) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	if (state != dev->port_state) {
		WRITE_ONCE(dev->port_state, state);
		event.event = state == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
		if (test_bit(ORDMA_F_REGISTERED, &dev->flags))
			ib_dispatch_event(&event);
	}
	mutex_unlock(&dev->port_lock);
}

int ordma_netdev_add(struct ordma_dev *dev)
{
	const struct ordma_caps *caps = &dev->core.caps;
	struct ordma_netdev *on;
	struct net_device *netdev;
	u8 mac[ETH_ALEN];
	int err;

	if (!(caps->bits & ORDMA_CAP_ETH))
		return -EOPNOTSUPP;
	netdev = alloc_etherdev(sizeof(*on));
	if (!netdev)
		return -ENOMEM;
	on = netdev_priv(netdev);
	on->dev = dev;
	on->netdev = netdev;
	mutex_init(&on->lock);
	INIT_WORK(&on->filter_work, ordma_filter_work);
	on->hwcq.event = ordma_eth_event;
	on->hwcq.error = ordma_eth_error;
	on->hwqp.async = ordma_eth_async;
	netif_napi_add(netdev, &on->napi, ordma_eth_poll);
	SET_NETDEV_DEV(netdev, &dev->pdev->dev);
	netdev->netdev_ops = &ordma_netdev_ops;
	netdev->ethtool_ops = &ordma_ethtool_ops;
	netdev->min_mtu = ETH_MIN_MTU;
	netdev->max_mtu = caps->port_mtu;
	netdev->mtu = min_t(u32, ETH_DATA_LEN, caps->port_mtu);
	ordma_mtu_tell(dev, netdev->mtu);
	ordma_mac_from_u64(caps->mac, mac);
	eth_hw_addr_set(netdev, mac);
	netif_carrier_off(netdev);
	dev->netdev = netdev;
	err = register_netdev(netdev);
	if (err) {
		netif_napi_del(&on->napi);
		free_netdev(netdev);
		dev->netdev = NULL;
	}
	return err;
}

void ordma_netdev_remove(struct ordma_dev *dev)
{
	struct ordma_netdev *on = netdev_priv(dev->netdev);

	unregister_netdev(dev->netdev);
	cancel_work_sync(&on->filter_work);
	set_bit(ORDMA_F_STOPPING, &dev->flags);
	cancel_delayed_work_sync(&dev->watchdog);
	flush_work(&dev->fatal_work);
	cancel_work_sync(&dev->port_work);
	netif_napi_del(&on->napi);
	free_netdev(dev->netdev);
	dev->netdev = NULL;
}
