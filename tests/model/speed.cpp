// SPDX-License-Identifier: BSD-2-Clause
// How fast two twins are on one thread, wire included, in processor time. Prints one line per
// measurement; asserts only that everything arrived.
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "bench.hpp"

using namespace ordma;
using namespace ordma::bench;

namespace {

struct Setup {
  std::uint32_t bytes;
  unsigned mtu_log;
  hw::WqeOp op;
  bool inlined;
  unsigned signal_every;
};

class Machine {
 public:
  explicit Machine(const Setup& s)
      : pair_({}, 64u << 20), ca_(pair_.a.create_cq(10)), cb_(pair_.b.create_cq(10)) {
    QpOptions o{.sq_log = 8, .rq_log = 9, .sq_stride_log = 7, .rq_stride_log = 5, .log_log = 8,
                .mtu_log = s.mtu_log};
    o.scq = o.rcq = &ca_;
    x_ = pair_.a.create_qp(o);
    o.scq = o.rcq = &cb_;
    y_ = pair_.b.create_qp(o);
    pair_.connect(x_, y_);
    src_ = pair_.a.reg_mr(1 << 20);
    dst_ = pair_.b.reg_mr(1 << 20);
  }

  // Seconds for `count` messages.
  double run(const Setup& s, unsigned count) {
    Send send{.op = s.op, .remote_addr = dst_.iova, .rkey = dst_.key};
    if (s.inlined) {
      send.inline_data.resize(s.bytes);
    } else {
      send.sges = {{src_.iova, s.bytes, src_.key}};
    }
    const bool receives = s.op == hw::WqeOp::kSend;
    unsigned posted = 0, done = 0;
    const std::uint32_t first = x_.sq_pi;
    const std::clock_t start = std::clock();
    while (done < count) {
      if (receives) {
        for (; recvs_ < received_ + 400; ++recvs_) {
          y_.post_recv(recvs_, {{dst_.iova, 1 << 20, dst_.key}});
        }
        y_.ring_recv();
      }
      const unsigned before = posted;
      for (; posted < count && posted < done + 192; ++posted) {
        send.signaled = posted % s.signal_every == s.signal_every - 1 || posted + 1 == count;
        x_.post(send);
      }
      if (posted != before) x_.ring();
      pair_.a.nic->step(64);
      pair_.b.nic->step(64);
      while (const auto wc = ca_.poll()) {
        if (wc->status != hw::WcStatus::kSuccess) {
          std::printf("message %u: %s\n", done, std::string(hw::name(wc->status)).c_str());
          std::exit(1);
        }
        done += ((wc->wqe_index - first - done) & 0xffff) + 1;
      }
      while (receives && cb_.poll()) ++received_;
    }
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }

 private:
  Pair pair_;
  Cq ca_, cb_;
  Qp x_, y_;
  Mr src_, dst_;
  unsigned recvs_ = 0, received_ = 0;
};

const char* g_only = "";  // argument: measures whose name contains it

void measure(const char* name, const Setup& s, unsigned count) {
  if (std::strstr(name, g_only) == nullptr) return;
  Machine m(s);
  (void)m.run(s, count / 10 + 1);
  const double seconds = m.run(s, count);
  std::printf("%-28s %9.3f M msg/s  %8.3f GB/s\n", name, count / seconds / 1e6,
              static_cast<double>(count) * s.bytes / seconds / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) g_only = argv[1];
  using enum hw::WqeOp;
  measure("WRITE 64 KiB mtu 4096", {65536, 12, kWrite, false, 1}, 20'000);
  measure("WRITE 64 KiB mtu 1024", {65536, 10, kWrite, false, 1}, 10'000);
  measure("READ 64 KiB mtu 4096", {65536, 12, kRead, false, 1}, 20'000);
  measure("WRITE 8 B inline", {8, 12, kWrite, true, 1}, 1'000'000);
  measure("WRITE 8 B, 1 of 16 signaled", {8, 12, kWrite, false, 16}, 1'000'000);
  measure("SEND 8 B", {8, 12, kSend, false, 1}, 1'000'000);
  measure("READ 8 B", {8, 12, kRead, false, 1}, 300'000);
}
