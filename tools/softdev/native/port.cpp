// SPDX-License-Identifier: BSD-2-Clause
#include "native/port.hpp"

#include "ordma_alloc.h"
#include "ordma_hw.hpp"
#include "ordma_obj.h"

namespace ordma::softdev {
namespace {

// What must fit beside the payload: GRH or IPv6, UDP, BTH and the longest extension headers, ICRC;
// the reserve that the Linux kernel's iboe_get_mtu() takes.
constexpr std::uint32_t kMtuReserve = 96;

// Numbers of the ibv enums.
constexpr std::uint32_t kPortDown = 1;
constexpr std::uint32_t kPortActive = 4;
constexpr std::uint32_t kPhysDisabled = 3;
constexpr std::uint32_t kPhysLinkUp = 5;
constexpr std::uint32_t kMtu256 = 1;
constexpr std::uint32_t kMtu4096 = 5;
constexpr std::uint32_t kPortCmSup = 1U << 16;
constexpr std::uint32_t kPortIpBasedGids = 1U << 26;
constexpr std::uint32_t kGrhRequired = 1;
constexpr std::uint32_t kAtomicHca = 1;
constexpr std::uint64_t kDeviceCurrQpState = 1U << 7;
constexpr std::uint64_t kDevicePortActiveEvent = 1U << 10;
constexpr std::uint64_t kDeviceSysImageGuid = 1U << 11;
constexpr std::uint64_t kDeviceRcRnrNakGen = 1U << 12;

constexpr std::uint32_t kVendorId = 0x4f52;  // "OR": no PCI vendor stands behind a soft NIC
constexpr std::uint32_t kPartId = 1;
constexpr std::uint32_t kMaxAh = 65536;  // an AH is no device object
constexpr std::uint32_t kAckDelay = 15;
constexpr std::uint32_t kClockKhz = 1'000'000;  // CQE timestamps count nanoseconds

struct LinkRate {
  std::uint32_t mbps, width, speed;
};
// As the kernel words an Ethernet speed in InfiniBand terms.
constexpr LinkRate kRates[] = {{1000, 1, 1},    {10000, 1, 8},    {25000, 1, 32},  {40000, 2, 8},
                               {50000, 1, 64},  {100000, 2, 32}, {200000, 2, 64}, {400000, 2, 128}};

}  // namespace

std::uint32_t active_mtu_of(std::uint32_t port_mtu) {
  std::uint32_t mtu = kMtu256;
  while (mtu < kMtu4096 && port_mtu >= (128U << (mtu + 1)) + kMtuReserve) ++mtu;
  return mtu;
}

void fill_port(const ordma_core& core, ordma_np_port* port) {
  const bool up = ordma_core_link_up(&core);
  *port = {};
  port->state = up ? kPortActive : kPortDown;
  port->phys_state = up ? kPhysLinkUp : kPhysDisabled;
  port->max_mtu = kMtu4096;
  port->active_mtu = core.active_mtu;
  port->gid_tbl_len = core.caps.max_gid;
  port->pkey_tbl_len = 1;
  port->active_width = 2;
  port->active_speed = 32;
  for (const LinkRate& rate : kRates) {
    if (rate.mbps > core.caps.port_speed) continue;
    port->active_width = rate.width;
    port->active_speed = rate.speed;
  }
  port->port_cap_flags = kPortCmSup | kPortIpBasedGids;
  port->max_msg_sz = 1U << hw::kMaxMsgLog;
  port->flags = kGrhRequired;
}

void fill_device(const ordma_core& core, ordma_np_device* device) {
  const ordma_caps& caps = core.caps;
  *device = {};
  device->fw_ver = std::uint64_t{caps.major} << 32 | std::uint64_t{caps.minor} << 16 |
                   (caps.build & 0xffff);
  device->node_guid = caps.guid;
  device->sys_image_guid = caps.guid;
  device->max_mr_size = ORDMA_MAX_MR_SIZE;
  device->page_size_cap = 0xfffff000;
  device->caps =
      kDeviceCurrQpState | kDevicePortActiveEvent | kDeviceSysImageGuid | kDeviceRcRnrNakGen;
  device->vendor_id = kVendorId;
  device->vendor_part_id = kPartId;
  device->hw_ver = caps.engine;
  // Without the numbers that are never given out (ordma_alloc.h).
  device->max_qp = caps.max_qp - 2;
  device->max_cq = caps.max_cq - 1;
  device->max_mr = caps.max_mr - 2;
  device->max_srq = caps.max_srq - 1;
  device->max_pd = ORDMA_MAX_PD - 1;
  device->max_qp_wr = caps.max_wr;
  device->max_sge = caps.max_sge;
  device->max_sge_rd = caps.max_sge;
  device->max_cqe = caps.max_cqe;
  device->max_qp_rd_atom = caps.max_rd_atomic;
  device->max_qp_init_rd_atom = caps.max_rd_atomic;
  device->max_res_rd_atom = caps.max_rd_atomic * caps.max_qp;
  device->max_srq_wr = caps.max_wr;
  device->max_srq_sge = caps.max_sge;
  device->max_ah = kMaxAh;
  device->max_mcast_grp = caps.max_mcast;
  device->max_mcast_qp_attach = caps.max_mcast;
  device->max_total_mcast_qp_attach = caps.max_mcast;
  device->max_pkeys = 1;
  device->local_ca_ack_delay = kAckDelay;
  device->phys_port_cnt = 1;
  device->atomic_cap = kAtomicHca;
  device->num_comp_vectors = kCompVectors;
  device->clock_khz = kClockKhz;
}

}  // namespace ordma::softdev
