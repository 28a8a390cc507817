// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* PCI: probe, remove, shutdown, errors. */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/module.h>

#include "ordma_ib.h"

#define ORDMA_VENDOR_IVSHMEM 0x1af4
#define ORDMA_DEVICE_IVSHMEM 0x1110
#define ORDMA_SUBDEVICE_IVSHMEM 0x1100

#define ORDMA_BAR_KICK 0
#define ORDMA_BAR_REGS 2

/* Behind an ivshmem device stands a process that has the guest's memory as a file: offset = guest physical address, below this. */
#define ORDMA_IVSHMEM_DMA_BITS 31

static const struct pci_device_id ordma_pci_ids[] = {
	{ PCI_DEVICE_SUB(ORDMA_VENDOR_IVSHMEM, ORDMA_DEVICE_IVSHMEM, ORDMA_VENDOR_IVSHMEM, ORDMA_SUBDEVICE_IVSHMEM) },
	{}
};
MODULE_DEVICE_TABLE(pci, ordma_pci_ids);

static bool ordma_is_ivshmem(const struct pci_dev *pdev)
{
	return pdev->vendor == ORDMA_VENDOR_IVSHMEM && pdev->device == ORDMA_DEVICE_IVSHMEM;
}

static int ordma_dma_setup(struct ordma_dev *dev)
{
	struct device *device = ordma_dma_device(dev);
	struct iommu_domain *domain;
	int bits = 64;

	if (ordma_is_ivshmem(dev->pdev)) {
		domain = iommu_get_domain_for_dev(device);
		if (domain && domain->type & __IOMMU_DOMAIN_PAGING) {
			dev_err(device, "an IOMMU translates for this device, and the process behind it cannot\n");
			return -EOPNOTSUPP;
		}
		bits = ORDMA_IVSHMEM_DMA_BITS;
		if (dma_get_required_mask(device) > DMA_BIT_MASK(bits)) {
			dev_err(device, "the guest has more than 2 GiB of memory, which the process behind it cannot reach\n");
			return -EOPNOTSUPP;
		}
	}
	dma_set_max_seg_size(device, UINT_MAX);
	return dma_set_mask_and_coherent(device, DMA_BIT_MASK(bits));
}

static int ordma_map_bars(struct ordma_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;

	dev->bar_addr = pci_resource_start(pdev, ORDMA_BAR_REGS);
	dev->bar = pci_iomap(pdev, ORDMA_BAR_REGS, 0);
	if (!dev->bar)
		return -ENOMEM;
	if (!ordma_is_ivshmem(pdev))
		return 0;
	dev->kick_addr = pci_resource_start(pdev, ORDMA_BAR_KICK);
	dev->kick = pci_iomap(pdev, ORDMA_BAR_KICK, 0);
	return dev->kick ? 0 : -ENOMEM;
}

static void ordma_unmap_bars(struct ordma_dev *dev)
{
	if (dev->kick)
		pci_iounmap(dev->pdev, dev->kick);
	if (dev->bar)
		pci_iounmap(dev->pdev, dev->bar);
}

/* Identity and size; an ivshmem device that is somebody else's ends here. */
static int ordma_identify(struct ordma_dev *dev)
{
	resource_size_t len = pci_resource_len(dev->pdev, ORDMA_BAR_REGS);
	char msg[160];
	int err;

	if (len < ORDMA_DB_OFF(1)) {
		dev_err(ordma_dma_device(dev), "BAR %d is too small\n", ORDMA_BAR_REGS);
		return -ENODEV;
	}
	err = ordma_core_probe(&dev->core, &ordma_core_ops, dev, msg, sizeof(msg));
	if (err) {
		dev_err(ordma_dma_device(dev), "%s\n", msg);
		return err;
	}
	if (len < ORDMA_DB_OFF(dev->core.caps.max_page)) {
		dev_err(ordma_dma_device(dev), "%u doorbell pages do not fit in BAR %d\n", dev->core.caps.max_page,
			ORDMA_BAR_REGS);
		return -ENODEV;
	}
	return 0;
}

static int ordma_pci_setup(struct ordma_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int err;

	err = pci_enable_device(pdev);
	if (err)
		return err;
	err = pci_request_regions(pdev, "ordma");
	if (err)
		goto err_disable;
	err = ordma_map_bars(dev) ?: ordma_identify(dev) ?: ordma_dma_setup(dev);
	if (err)
		goto err_unmap;
	pci_set_master(pdev);
	dev->nvec = pci_alloc_irq_vectors(pdev, 1, ORDMA_MAX_VECTORS, PCI_IRQ_MSIX);
	if (dev->nvec < 0) {
		err = dev->nvec;
		goto err_unmap;
	}
	return 0;

err_unmap:
	ordma_unmap_bars(dev);
	pci_release_regions(pdev);
err_disable:
	pci_disable_device(pdev);
	return err;
}

static void ordma_pci_cleanup(struct ordma_dev *dev)
{
	pci_free_irq_vectors(dev->pdev);
	ordma_unmap_bars(dev);
	pci_release_regions(dev->pdev);
	pci_disable_device(dev->pdev);
}

static int ordma_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct ordma_dev *dev = ib_alloc_device(ordma_dev, ibdev);
	int err;

	if (!dev)
		return -ENOMEM;
	dev->pdev = pdev;
	dev->port_state = IB_PORT_DOWN;
	pci_set_drvdata(pdev, dev);
	err = ordma_pci_setup(dev);
	if (err)
		goto err_free;
	err = ordma_hw_up(dev);
	if (err)
		goto err_pci;
	err = ordma_netdev_add(dev);
	if (err)
		goto err_hw;
	err = ordma_ib_register(dev);
	if (err)
		goto err_netdev;
	return 0;

err_netdev:
	ordma_netdev_remove(dev);
err_hw:
	ordma_hw_down(dev);
err_pci:
	ordma_pci_cleanup(dev);
err_free:
	ib_dealloc_device(&dev->ibdev);
	return err;
}

static void ordma_remove(struct pci_dev *pdev)
{
	struct ordma_dev *dev = pci_get_drvdata(pdev);

	/* A card that was pulled answers nothing: do not wait for it. */
	if (pci_channel_offline(pdev) || !pci_device_is_present(pdev))
		ordma_hw_dead(dev);
	ordma_ib_unregister(dev);
	ordma_netdev_remove(dev);
	ordma_hw_down(dev);
	ordma_pci_cleanup(dev);
	ib_dealloc_device(&dev->ibdev);
}

/* The next kernel may reuse all memory: no DMA may follow. */
static void ordma_shutdown(struct pci_dev *pdev)
{
	struct ordma_dev *dev = pci_get_drvdata(pdev);

	ordma_hw_dead(dev);
	wait_for_completion(&dev->dma_off);
}

/* Nothing of the device's state survives a bus reset; whoever holds objects must let go, then probe starts anew. */
static pci_ers_result_t ordma_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	ordma_hw_dead(pci_get_drvdata(pdev));
	return PCI_ERS_RESULT_DISCONNECT;
}

static const struct pci_error_handlers ordma_err_handlers = {
	.error_detected = ordma_error_detected,
};

static struct pci_driver ordma_pci_driver = {
	.name = "ordma",
	.id_table = ordma_pci_ids,
	.probe = ordma_probe,
	.remove = ordma_remove,
	.shutdown = ordma_shutdown,
	.err_handler = &ordma_err_handlers,
};
module_pci_driver(ordma_pci_driver);

MODULE_DESCRIPTION("ordma RDMA NIC");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_AUTHOR("ordma contributors");
