// SPDX-License-Identifier: BSD-2-Clause
#include "measure.hpp"

#include <sched.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <stdexcept>

namespace ordma::bench {
namespace {

constexpr std::size_t kWindowBytes = 4 << 20;
constexpr unsigned kMinDepth = 4, kMaxDepth = 64, kRateDepth = 256, kRateList = 32, kRateSignal = 64;
// Looks at memory this often before the core is offered to whoever moves the data.
constexpr unsigned kSpins = 2000;
constexpr std::uint32_t kInline = 64;

void require(int err, const char* what) {
  if (err != 0) {
    throw std::runtime_error(std::string(what) + ": " + std::strerror(err));
  }
}

unsigned send_flags(bool signalled, bool inline_data) {
  unsigned flags = 0;
  if (signalled) {
    flags |= IBV_SEND_SIGNALED;
  }
  if (inline_data) {
    flags |= IBV_SEND_INLINE;
  }
  return flags;
}

unsigned bytes_of(ibv_mtu mtu) { return 128u << static_cast<unsigned>(mtu); }

ibv_mtu active_mtu(ibv_context* ctx) {
  ibv_port_attr port{};
  require(ibv_query_port(ctx, 1, &port), "ibv_query_port");
  if (port.state != IBV_PORT_ACTIVE) {
    throw std::runtime_error(std::string(ibv_get_device_name(ctx->device)) + ": port is not active");
  }
  return port.active_mtu;
}

ibv_mtu mtu_of(unsigned bytes) {
  for (unsigned m = IBV_MTU_256; m <= IBV_MTU_4096; ++m) {
    if (bytes_of(static_cast<ibv_mtu>(m)) == bytes) {
      return static_cast<ibv_mtu>(m);
    }
  }
  throw std::runtime_error("MTU must be 256, 512, 1024, 2048 or 4096");
}

unsigned work_request_limit(const std::string& device) {
  const test::Context ctx = test::open_device(device);
  ibv_device_attr attr{};
  require(ibv_query_device(ctx.get(), &attr), "ibv_query_device");
  return static_cast<unsigned>(attr.max_qp_wr);
}

class Watchdog {
 public:
  Watchdog(const char* what, Clock::duration limit) : what_(what), end_(Clock::now() + limit) {}
  void check(Clock::time_point now) const {
    if (now > end_) {
      throw std::runtime_error(std::string(what_) + ": no end in sight, given up");
    }
  }

 private:
  const char* what_;
  Clock::time_point end_;
};

}  // namespace

const char* name_of(Op op) { return op == Op::kWrite ? "WRITE" : op == Op::kRead ? "READ" : "SEND"; }

struct Bench::Flight {
  std::uint64_t posted = 0, completed = 0;     // messages
  std::uint64_t receives = 0, received = 0;    // posted, seen complete
  bool signalled_last = true;                  // nothing posted is without a CQE to wait for
};

Bench::Bench(const Setup& setup, const Timing& timing) : timing_(timing) {
  const unsigned limit = std::min(work_request_limit(setup.device), work_request_limit(setup.peer));
  test::EndOptions options;
  // Unsignalled entries are freed only by the next CQE: room for one more round.
  options.send_wr = std::min(limit, 2 * kRateDepth);
  options.recv_wr = std::min(limit, 2 * kMaxDepth);
  options.cqe = static_cast<int>(options.send_wr);
  options.inline_data = kInline;
  options.send_sge = options.recv_sge = 1;
  a_ = std::make_unique<test::End>(setup.device, options);
  b_ = std::make_unique<test::End>(setup.peer, options);
  max_depth_ = options.send_wr / 2;
  // What was asked for is granted or the QP is refused.
  max_inline_ = kInline;

  test::Link link;
  link.gid_index = setup.gid_index;
  link.mtu = setup.mtu != 0 ? mtu_of(setup.mtu) : std::min(active_mtu(a_->ctx.get()), active_mtu(b_->ctx.get()));
  mtu_bytes_ = bytes_of(link.mtu);
  test::connect(a_->qp.get(), b_->qp.get(), link);

  const std::size_t bytes = std::max<std::size_t>(2 * kMinDepth * setup.max_size, 2 * kWindowBytes);
  at_a_ = std::make_unique<test::Buffer>(a_->pd.get(), bytes);
  at_b_ = std::make_unique<test::Buffer>(b_->pd.get(), bytes);
}

Point Bench::bandwidth(Op op, std::size_t size) {
  Point point;
  point.op = op;
  point.size = size;
  point.depth = static_cast<unsigned>(std::clamp<std::size_t>(kWindowBytes / size, kMinDepth, kMaxDepth));
  point.depth = std::min(point.depth, max_depth_);
  for (unsigned i = 0; i < timing_.repeats; ++i) {
    batch(point, next_batch_++);
  }
  point.verified = true;
  return point;
}

Point Bench::message_rate() {
  Point point;
  point.size = 8;
  point.depth = std::min(kRateDepth, max_depth_ / kRateSignal * kRateSignal);
  if (point.depth < kRateSignal) {
    throw std::runtime_error("message rate: the device's send queues are too short");
  }
  point.list = kRateList;
  point.signal_every = kRateSignal;
  point.inline_data = use_inline(point.size);
  for (unsigned i = 0; i < timing_.repeats; ++i) {
    batch(point, next_batch_++);
  }
  point.verified = true;
  return point;
}

// Posts `count` messages as one list. Message k goes from slot k mod depth to slot k mod slots.
void Bench::post(const Point& point, Flight& flight, unsigned count) {
  std::array<ibv_send_wr, kRateList> wrs{};
  std::array<ibv_sge, kRateList> sges;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t message = flight.posted + i;
    const std::size_t at = message % point.depth * point.size;
    sges[i] = at_a_->sge(at, point.size);
    const bool signalled = (message + 1) % point.signal_every == 0;
    const unsigned flags = send_flags(signalled, point.inline_data);
    wrs[i] = point.op == Op::kSend   ? test::send_wr(message, flags)
             : point.op == Op::kRead ? test::read_wr(message, *at_b_, at, flags)
                                     : test::write_wr(message, *at_b_, at, flags);
    wrs[i].sg_list = &sges[i];
    wrs[i].num_sge = 1;
    wrs[i].next = i + 1 < count ? &wrs[i + 1] : nullptr;
    flight.signalled_last = signalled;
  }
  ibv_send_wr* bad = nullptr;
  require(ibv_post_send(a_->qp.get(), wrs.data(), &bad), "ibv_post_send");
  flight.posted += count;
}

void Bench::top_up_receives(const Point& point, Flight& flight) {
  while (flight.receives - flight.received < slots(point)) {
    const ibv_sge sge = at_b_->sge(flight.receives % slots(point) * point.size, point.size);
    require(b_->post_recv(flight.receives, {&sge, 1}), "ibv_post_recv");
    ++flight.receives;
  }
}

// Takes what has completed; messages that this showed to be done.
unsigned Bench::reap(const Point& point, Flight& flight) {
  std::array<ibv_wc, 16> wcs;
  const std::uint64_t before = flight.completed;
  const int n = ibv_poll_cq(a_->scq.get(), static_cast<int>(wcs.size()), wcs.data());
  if (n < 0) {
    throw std::runtime_error("ibv_poll_cq failed");
  }
  for (int i = 0; i < n; ++i) {
    if (wcs[i].status != IBV_WC_SUCCESS) {
      throw std::runtime_error(std::string("completion: ") + ibv_wc_status_str(wcs[i].status));
    }
    // A CQE also completes the unsignalled messages before it.
    flight.completed = wcs[i].wr_id + 1;
  }
  if (point.op == Op::kSend) {
    const int m = ibv_poll_cq(b_->rcq.get(), static_cast<int>(wcs.size()), wcs.data());
    for (int i = 0; i < m; ++i) {
      if (wcs[i].status != IBV_WC_SUCCESS || wcs[i].byte_len != point.size) {
        throw std::runtime_error(std::string("receive: ") + ibv_wc_status_str(wcs[i].status));
      }
      ++flight.received;
    }
  }
  return static_cast<unsigned>(flight.completed - before);
}

// The clock starts at one completion and stops at another, so filling and draining the pipe is not counted.
void Bench::batch(Point& point, std::uint64_t number) {
  test::Buffer& source = point.op == Op::kRead ? *at_b_ : *at_a_;
  test::Buffer& target = point.op == Op::kRead ? *at_a_ : *at_b_;
  for (unsigned slot = 0; slot < point.depth; ++slot) {
    fill(source.data() + slot * point.size, point.size, number, slot);
  }
  std::memset(target.data(), 0, slots(point) * point.size);

  Flight flight;
  const Watchdog watchdog("batch", timing_.slice + timing_.watchdog);
  std::optional<Clock::time_point> start;
  std::size_t counted = 0;
  bool stop = false;
  while (!stop || flight.completed < flight.posted || (point.op == Op::kSend && flight.received < flight.posted)) {
    if (point.op == Op::kSend && !stop) {
      top_up_receives(point, flight);
    }
    while (flight.posted - flight.completed + point.list <= point.depth && (!stop || !flight.signalled_last) &&
           (point.op != Op::kSend || flight.posted < flight.receives)) {
      post(point, flight, point.list);
    }
    const unsigned done = reap(point, flight);
    const auto now = Clock::now();
    watchdog.check(now);
    if (done == 0) {
      ::sched_yield();
    } else if (!start) {
      start = now;
    } else if (!stop) {
      counted += done;
      if (now - *start >= timing_.slice) {
        point.rates.push_back(static_cast<double>(counted) / seconds(now - *start));
        point.messages += counted;
        stop = true;
      }
    }
  }
  if (!arrived_intact(point, flight, number)) {
    throw std::runtime_error(std::string(name_of(point.op)) + " of " + std::to_string(point.size) +
                             " bytes: the target does not hold what was sent");
  }
  if (point.op == Op::kSend && flight.receives > flight.received) {
    // The receives left over would take the next point's messages: use them up, uncounted.
    while (flight.posted < flight.receives || flight.completed < flight.posted || flight.received < flight.posted) {
      if (flight.posted < flight.receives && flight.posted - flight.completed < point.depth) {
        post(point, flight, 1);
      }
      if (reap(point, flight) == 0) {
        ::sched_yield();
      }
      watchdog.check(Clock::now());
    }
  }
}

bool Bench::arrived_intact(const Point& point, const Flight& flight, std::uint64_t number) const {
  const test::Buffer& target = point.op == Op::kRead ? *at_a_ : *at_b_;
  const std::uint64_t touched = std::min<std::uint64_t>(flight.posted, slots(point));
  for (std::uint64_t slot = 0; slot < touched; ++slot) {
    if (!holds(target.data() + slot * point.size, point.size, number, slot % point.depth)) {
      return false;
    }
  }
  return at_a_->canaries_intact() && at_b_->canaries_intact();
}

Latency Bench::latency(unsigned pings_per_repeat) {
  Latency result;
  result.inline_data = use_inline(8);
  auto* source = reinterpret_cast<std::uint64_t*>(at_a_->data());
  std::atomic_ref<std::uint64_t> target(*reinterpret_cast<std::uint64_t*>(at_b_->data()));
  const ibv_sge sge = at_a_->sge(0, 8);
  const unsigned flags = send_flags(true, result.inline_data);
  const Watchdog watchdog("latency", timing_.repeats * (timing_.slice + timing_.watchdog));
  for (unsigned repeat = 0; repeat < timing_.repeats; ++repeat) {
    std::vector<double> samples;
    const std::uint64_t number = next_batch_++;
    const auto end = Clock::now() + 10 * timing_.slice;
    for (unsigned ping = 0; ping < pings_per_repeat && (ping < 10 || Clock::now() < end); ++ping) {
      const std::uint64_t before = target.load(std::memory_order_relaxed);
      const std::uint64_t value = pattern(number, ping, 0) | 1;
      *source = value;
      const auto start = Clock::now();
      require(a_->post_send(test::write_wr(ping, *at_b_, 0, flags), {&sge, 1}), "ibv_post_send");
      std::uint64_t seen = before;
      for (unsigned spin = 1; (seen = target.load(std::memory_order_acquire)) == before; ++spin) {
        if (spin % kSpins == 0) {
          ::sched_yield();
          watchdog.check(Clock::now());
        }
      }
      samples.push_back(seconds(Clock::now() - start) * 1e6);
      if (seen != value) {
        throw std::runtime_error("latency: the target shows a value that was never written");
      }
      // The acknowledgement of one ping must not share the wire with the next ping.
      const auto wc = test::wait_cq(a_->scq.get());
      if (!wc || wc->status != IBV_WC_SUCCESS) {
        throw std::runtime_error("latency: no good completion");
      }
    }
    result.repeat_medians_us.push_back(median(samples));
    result.samples_us.insert(result.samples_us.end(), samples.begin(), samples.end());
  }
  result.verified = true;
  return result;
}

}  // namespace ordma::bench
