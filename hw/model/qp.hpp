// SPDX-License-Identifier: BSD-2-Clause
// The QP table and the state machine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "objects.hpp"

namespace ordma::twin {

struct Nic;

class QpTable {
 public:
  QpTable(Nic& nic, std::uint32_t max_qp) : nic_(nic), qps_(max_qp) {}
  void reset();

  using Image = hw::qpc::Bytes;
  [[nodiscard]] hw::CmdStatus create(std::uint32_t qpn, const Image& image);
  [[nodiscard]] hw::CmdStatus modify(Qp& qp, hw::QpState state, bool init_rq, bool init_sq,
                                     const Image& image);
  void destroy(Qp& qp);
  void query(const Qp& qp, hw::progress::Bytes& out) const;

  [[nodiscard]] Qp* find(std::uint32_t qpn) const {
    const std::uint32_t index = qpn & ((1u << hw::kQpnIndexBits) - 1);
    Qp* qp = index < qps_.size() ? qps_[index].get() : nullptr;
    return qp != nullptr && qp->qpn == qpn ? qp : nullptr;
  }
  // Everything queued is flushed from now on. Nothing happens to a QP in ERR. A responder
  // that refuses keeps its queue: the NAK leaves behind the responses before it.
  void enter_error(Qp& qp, bool keep_responses = false);
  // Send queue alone (UC, UD).
  void enter_sqe(Qp& qp);
  // Headers towards the peer of a connected QP; nullptr when its source GID is gone.
  [[nodiscard]] const HeaderTemplate* headers(Qp& qp);

  template <class Fn>
  void for_each(Fn&& fn) {
    for (auto& qp : qps_) {
      if (qp != nullptr) fn(*qp);
    }
  }

 private:
  [[nodiscard]] bool load_rings(Qp& qp, const Image& image) const;
  [[nodiscard]] bool load_attr(const Qp& qp, QpAttr& attr, const Image& image) const;
  [[nodiscard]] bool check_path(const Qp& qp, const QpAttr& attr) const;
  void init_receive(Qp& qp, bool load_psn);
  void init_send(Qp& qp, bool load_psn);
  void clear(Qp& qp);
  void unlink(Qp& qp);

  Nic& nic_;
  std::vector<std::unique_ptr<Qp>> qps_;
};

}  // namespace ordma::twin
