// SPDX-License-Identifier: BSD-2-Clause
#include "command.hpp"
#include "nic.hpp"

namespace ordma::twin {

Commands::Result Commands::qp_create(std::uint32_t number, const Bytes& cmd) {
  hw::qpc::Bytes image;
  if (!nic_.host.read(hw::get(cmd, hw::cmd_qp::image), image)) return hw::CmdStatus::kDma;
  return nic_.qps.create(number, image);
}

Commands::Result Commands::qp_modify(std::uint32_t number, const Bytes& cmd) {
  Qp* qp = nic_.qps.find(number);
  if (qp == nullptr) return hw::CmdStatus::kNoObject;
  hw::qpc::Bytes image;
  if (!nic_.host.read(hw::get(cmd, hw::cmd_qp::image), image)) return hw::CmdStatus::kDma;
  return nic_.qps.modify(*qp, static_cast<hw::QpState>(hw::get(cmd, hw::cmd_qp::state)),
                         hw::get(cmd, hw::cmd_qp::init_rq) != 0,
                         hw::get(cmd, hw::cmd_qp::init_sq) != 0, image);
}

Commands::Result Commands::qp_destroy(std::uint32_t number) {
  Qp* qp = nic_.qps.find(number);
  if (qp == nullptr) return hw::CmdStatus::kNoObject;
  nic_.qps.destroy(*qp);
  return {};
}

Commands::Result Commands::qp_query(std::uint32_t number, const Bytes& cmd) {
  const Qp* qp = nic_.qps.find(number);
  if (qp == nullptr) return hw::CmdStatus::kNoObject;
  hw::progress::Bytes raw;
  nic_.qps.query(*qp, raw);
  if (!nic_.host.write(hw::get(cmd, hw::cmd_qp::image), raw, WriteKind::kQuery)) {
    return hw::CmdStatus::kDma;
  }
  return {};
}

}  // namespace ordma::twin
