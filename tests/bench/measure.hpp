// SPDX-License-Identifier: BSD-2-Clause
// Bandwidth, message rate and latency between two connected RC QPs, both driven by the calling thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rig.hpp"
#include "stats.hpp"

namespace ordma::bench {

enum class Op { kWrite, kRead, kSend };
const char* name_of(Op op);

struct Setup {
  std::string device, peer;
  int gid_index = 1;
  unsigned mtu = 0;  // bytes; 0: the smaller active MTU of the two ports
  std::size_t max_size = 1 << 20;
};

struct Point {
  Op op = Op::kWrite;
  std::size_t size = 0;
  unsigned depth = 0;         // messages in flight at most
  unsigned list = 1;          // work requests per ibv_post_send
  unsigned signal_every = 1;  // messages per CQE
  bool inline_data = false;
  std::vector<double> rates;  // messages per second, one per repeat
  std::size_t messages = 0;   // counted in all slices
  bool verified = false;      // every batch's bytes were compared at their target
};

struct Latency {
  std::vector<double> samples_us;
  std::vector<double> repeat_medians_us;
  bool inline_data = false;
  bool verified = false;
};

class Bench {
 public:
  Bench(const Setup& setup, const Timing& timing);

  Point bandwidth(Op op, std::size_t size);
  // 8-byte WRITEs, lists of 32, one CQE per 64.
  Point message_rate();
  // 8-byte WRITE: from before the post until the target's memory shows the new value.
  Latency latency(unsigned pings_per_repeat);

  unsigned mtu_bytes() const { return mtu_bytes_; }
  ibv_context* context() { return a_->ctx.get(); }

 private:
  struct Flight;
  void batch(Point& point, std::uint64_t number);
  void post(const Point& point, Flight& flight, unsigned count);
  void top_up_receives(const Point& point, Flight& flight);
  unsigned reap(const Point& point, Flight& flight);
  bool arrived_intact(const Point& point, const Flight& flight, std::uint64_t number) const;
  bool use_inline(std::size_t size) const { return size <= max_inline_; }
  unsigned slots(const Point& point) const { return point.op == Op::kSend ? 2 * point.depth : point.depth; }

  Timing timing_;
  unsigned mtu_bytes_ = 0;
  std::uint32_t max_inline_ = 0;
  unsigned max_depth_ = 0;
  std::uint64_t next_batch_ = 1;
  std::unique_ptr<test::End> a_, b_;
  std::unique_ptr<test::Buffer> at_a_, at_b_;
};

}  // namespace ordma::bench
