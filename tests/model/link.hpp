// SPDX-License-Identifier: BSD-2-Clause
// A pair of nodes with one connected RC QP on each side.
#pragma once

#include "bench.hpp"

namespace ordma::bench {

struct LinkOptions {
  QpOptions a, b;
  unsigned cq_log = 8;
  EngineConfig config = {};
};

class Link : public Pair {
 public:
  explicit Link(LinkOptions o = {}, std::size_t memory = 48u << 20)
      : Pair(o.config, memory), ca(a.create_cq(o.cq_log)), cb(b.create_cq(o.cq_log)) {
    o.a.scq = o.a.rcq = &ca;
    o.b.scq = o.b.rcq = &cb;
    qa = a.create_qp(o.a);
    qb = b.create_qp(o.b);
    connect(qa, qb);
    (void)a.events();
    (void)b.events();
  }
  Cq ca, cb;
  Qp qa, qb;
};

}  // namespace ordma::bench
