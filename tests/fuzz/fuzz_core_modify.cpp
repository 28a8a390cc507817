// SPDX-License-Identifier: BSD-2-Clause
// ibv_modify_qp and ibv_create_qp with attributes, masks and sizes as a hostile user gives them.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "../core/fake_nic.hpp"

using ordma::test::FakeNic;

namespace {

void require(bool ok) {
  if (!ok) std::abort();
}

void check_attr(const ordma_core& core, const ordma_qp& qp) {
  const auto& a = qp.attr;
  require(a.timeout <= 31 && a.retry_cnt <= 7 && a.rnr_retry <= 7 && a.min_rnr_timer <= 31);
  require(a.path_mtu <= 5 && a.port_num <= 1 && a.pkey_index == 0);
  require(a.max_rd_atomic <= core.caps.max_rd_atomic);
  require(a.max_dest_rd_atomic <= core.caps.max_rd_atomic);
  require(a.rq_psn < 1u << 24 && a.sq_psn < 1u << 24 && a.dest_qpn < 0xffffff);
  require(a.ah.flow_label < 1u << 20 && a.ah.sl <= 15);
  require(!(a.qkey >> 31) || qp.init.privileged);
  const bool sends = qp.state == ORDMA_QP_STATE_RTS || qp.state == ORDMA_QP_STATE_SQD;
  require((qp.rec.active != 0) == (sends && qp.init.type == ORDMA_QP_TYPE_RC));
}

void check_image(const ordma_qp& qp, const ordma_qp_modify& mod, const ordma_qpc& image) {
  require(ORDMA_GET(&image, QPC_QPN) == qp.qpn);
  require(ORDMA_GET(&image, QPC_TYPE) == static_cast<std::uint64_t>(qp.init.type));
  require(ORDMA_GET(&image, QPC_ACCESS) <= 0xe);
  const auto mtu = ORDMA_GET(&image, QPC_MTU_LOG);
  require(mtu == 0 || (mtu >= 8 && mtu <= 12));
  const bool running = mod.to == ORDMA_QP_STATE_RTR || mod.to == ORDMA_QP_STATE_RTS;
  if (running && qp.init.type == ORDMA_QP_TYPE_RC) {
    require(mtu != 0);
    require(ORDMA_GET(&image, QPC_DMAC) != 0);
    require(ORDMA_GET(&image, QPC_HOP_LIMIT) != 0);
  }
}

void modify(FakeNic& nic, ordma_qp& qp, const ordma_qp_attr& attr, std::uint32_t mask) {
  const ordma_qp before = qp;
  ordma_qp_modify mod{};
  ordma_qpc image;
  ordma_cmd cmd;
  const int err = ordma_qp_modify_check(&nic.core, &qp, &attr, mask, &mod);
  require(std::memcmp(&before, &qp, sizeof qp) == 0);
  if (err) {
    require(err == -EINVAL || err == -EOPNOTSUPP || err == -EPERM);
    return;
  }
  ordma_qp_modify_cmd(&qp, &mod, &image, 0x1000, &cmd);
  check_image(qp, mod, image);
  ordma_qp_modify_done(&nic.core, &qp, &mod);
  require(qp.state == mod.to);
  check_attr(nic.core, qp);
}

// Attributes that every transition takes, so that a walk gets somewhere; the input spoils them.
ordma_qp_attr good_attr() {
  ordma_qp_attr a{};
  const u8 gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
  a.path_mtu = 3;
  a.port_num = 1;
  a.timeout = 14;
  a.retry_cnt = 7;
  a.ah.is_global = 1;
  a.ah.port_num = 1;
  std::memcpy(a.ah.dgid, gid, sizeof gid);
  a.ah.dmac[0] = 2;
  return a;
}

// One modify: new state, the attributes of the usual walk, then a mask to flip and a word to write
// anywhere into the attributes.
constexpr std::size_t kStepBytes = 12;

void one_step(FakeNic& nic, ordma_qp& qp, const std::uint8_t* data) {
  constexpr std::uint32_t kInit = 1u << 4 | 1u << 5 | 1u << 3;
  constexpr std::uint32_t kRtr = 1u << 7 | 1u << 8 | 1u << 20 | 1u << 12 | 1u << 17 | 1u << 15;
  constexpr std::uint32_t kRts = 1u << 16 | 1u << 9 | 1u << 10 | 1u << 11 | 1u << 13;
  std::uint32_t flip, value;
  std::memcpy(&flip, data + 4, 4);
  std::memcpy(&value, data + 8, 4);
  ordma_qp_attr attr = good_attr();
  attr.qp_state = data[0];
  attr.cur_qp_state = qp.state;
  std::uint32_t mask = ORDMA_ATTR_STATE;
  if (data[1] & 1) mask |= data[0] == 1 ? kInit : data[0] == 2 ? kRtr : data[0] == 3 ? kRts : 0;
  if (data[1] & 2) mask ^= flip;
  if (data[1] & 4) mask ^= 1u << (flip & 31);
  if (data[1] & 8) {
    std::memcpy(reinterpret_cast<char*>(&attr) + data[2] % (sizeof attr - 3), &value, 4);
  }
  modify(nic, qp, attr, mask);
  if (data[1] & 0x80 && qp.state >= ORDMA_QP_STATE_RTR) {
    ordma_qp_to_error(&qp, data[1] & 0x40 ? ORDMA_QP_STATE_SQE : ORDMA_QP_STATE_ERR);
  }
}

void create(const FakeNic& nic, const ordma_qp_init& given) {
  ordma_qp_init init = given;
  init.has_srq = given.srqn & 1;
  init.privileged = false;
  if (ordma_qp_check_create(&nic.core, &init) == 0) {
    require(init.sq_stride_log <= 9 && init.rq_stride_log <= 9);
    require(init.sq_log <= 14 && init.rq_log <= 14);
    require(ordma_qp_log_bytes(&init) <= 16u << 14);
    require(init.cap.max_send_wr <= 1u << init.sq_log || !init.sq_stride_log);
  }
  if (ordma_qp_geometry(&nic.core, &init) == 0) {
    require(ordma_qp_check_create(&nic.core, &init) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static FakeNic nic;
  static const bool up = (nic.bring_up(), true);
  (void)up;
  if (size < 1 + sizeof(ordma_qp_init)) return 0;
  ordma_qp_init given;
  // Booleans of another value than 0 and 1 are not what this is about.
  std::memset(&given, 0, sizeof given);
  std::memcpy(&given.cap, data + 1, sizeof given - offsetof(ordma_qp_init, cap));
  std::memset(&given.has_srq, 0, sizeof given.has_srq);
  std::memset(&given.privileged, 0, sizeof given.privileged);
  const ordma_qp_type types[] = {ORDMA_QP_TYPE_RC, ORDMA_QP_TYPE_UC, ORDMA_QP_TYPE_UD,
                                 ORDMA_QP_TYPE_GSI, ORDMA_QP_TYPE_ETH};
  given.type = types[data[0] % 5];
  create(nic, given);

  ordma_qp qp{};
  nic.make_qp(&qp, 5, types[data[0] % 5]);
  qp.init.privileged = data[0] & 0x80;
  data += 1;
  size -= 1;
  while (size >= kStepBytes) {
    one_step(nic, qp, data);
    data += kStepBytes;
    size -= kStepBytes;
  }
  return 0;
}
