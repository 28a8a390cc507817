// SPDX-License-Identifier: BSD-2-Clause
#include <catch2/catch.hpp>

#include "link.hpp"

using namespace ordma;
using namespace ordma::bench;

TEST_CASE("RC WRITE with an SGE arrives and completes") {
  Link l;
  const Mr src = l.a.reg_mr(8192), dst = l.b.reg_mr(8192);
  l.a.mem.fill(src.addr, 8192, 3);
  l.qa.send({.sges = {{src.iova, 5000, src.key}}, .remote_addr = dst.iova + 100, .rkey = dst.key});
  l.run();
  const auto wcs = l.ca.drain();
  REQUIRE(wcs.size() == 1);
  CHECK(wcs[0].status == hw::WcStatus::kSuccess);
  CHECK(wcs[0].opcode == hw::WcOp::kRdmaWrite);
  CHECK(wcs[0].qpn == l.qa.qpn);
  CHECK(wcs[0].wqe_index == 0);
  CHECK(l.b.mem.filled(dst.addr + 100, 5000, 3));
  CHECK(l.cb.drain().empty());
  CHECK(l.a.events().empty());
}

TEST_CASE("RC WRITE inline") {
  Link l;
  const Mr dst = l.b.reg_mr(4096);
  std::vector<std::byte> data(236);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);
  l.qa.send({.inline_data = data, .remote_addr = dst.iova, .rkey = dst.key});
  l.run();
  REQUIRE(l.ca.drain().size() == 1);
  const auto got = l.b.mem.at(dst.addr, data.size());
  CHECK(std::equal(got.begin(), got.end(), data.begin()));
}
