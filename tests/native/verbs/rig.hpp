// SPDX-License-Identifier: BSD-2-Clause
// Both ends of a verbs test in one process, on public verbs only: it runs on any device, the names of two
// devices come from ORDMA_TEST_DEVS ("ordma0,ordma1").
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ordma::test {

template <typename T, int (*Destroy)(T*)>
struct Deleter {
  void operator()(T* object) const { Destroy(object); }
};
template <typename T, int (*Destroy)(T*)>
using Handle = std::unique_ptr<T, Deleter<T, Destroy>>;

using Context = Handle<ibv_context, ibv_close_device>;
using Pd = Handle<ibv_pd, ibv_dealloc_pd>;
using Mr = Handle<ibv_mr, ibv_dereg_mr>;
using Cq = Handle<ibv_cq, ibv_destroy_cq>;
using Srq = Handle<ibv_srq, ibv_destroy_srq>;
using Qp = Handle<ibv_qp, ibv_destroy_qp>;
using Ah = Handle<ibv_ah, ibv_destroy_ah>;
using Channel = Handle<ibv_comp_channel, ibv_destroy_comp_channel>;

inline constexpr int kFullAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
inline constexpr std::chrono::milliseconds kWatchdog{10000};

Context open_device(const std::string& name);
std::vector<std::string> device_names();

// Memory with 64 canary bytes on both sides, registered in between.
class Buffer {
 public:
  Buffer(ibv_pd* pd, std::size_t bytes, int access = kFullAccess, std::size_t page_offset = 0);
  std::uint8_t* data() { return data_; }
  std::size_t size() const { return bytes_; }
  std::uint64_t addr(std::size_t at = 0) const { return reinterpret_cast<std::uint64_t>(data_) + at; }
  std::uint32_t lkey() const { return mr_->lkey; }
  std::uint32_t rkey() const { return mr_->rkey; }
  ibv_mr* mr() { return mr_.get(); }
  void release_mr() { mr_.reset(); }
  ibv_sge sge(std::size_t at, std::size_t length) const;
  void fill(std::uint8_t seed);
  bool holds(std::uint8_t seed, std::size_t at, std::size_t length) const;
  bool all(std::uint8_t value, std::size_t at, std::size_t length) const;
  bool canaries_intact() const;

 private:
  struct Unmap {
    std::size_t length;
    void operator()(std::uint8_t* p) const;
  };
  std::unique_ptr<std::uint8_t, Unmap> map_;
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
  Mr mr_;
};

struct EndOptions {
  ibv_qp_type type = IBV_QPT_RC;
  int cqe = 256;
  std::uint32_t send_wr = 64, recv_wr = 64, send_sge = 4, recv_sge = 4, inline_data = 64;
  bool sig_all = false;
  bool channel = false;
  bool use_srq = false;
  std::uint64_t send_ops = 0;  // non-zero: created by ibv_create_qp_ex
};

struct Link {
  int gid_index = 1;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint8_t timeout = 14, retry = 7, rnr_retry = 7, min_rnr = 12, rd_atomic = 8;
  std::uint32_t psn_a = 0x000123, psn_b = 0x000456;
  int access = kFullAccess;
};

// One end: context, PD, CQs, QP.
class End {
 public:
  End(const std::string& device, const EndOptions& options = {});

  Context ctx;
  Pd pd;
  Channel channel;
  Cq scq, rcq;
  Srq srq;
  Qp qp;

  ibv_gid gid(int index) const;
  int to_init(int access = kFullAccess, std::uint32_t qkey = 0x11111111);
  int to_rtr(const End& peer, const Link& link, std::uint32_t rq_psn);
  int to_rts(const Link& link, std::uint32_t sq_psn);
  int to_error();
  ibv_qp_state state() const;

  int post_recv(std::uint64_t wr_id, std::span<const ibv_sge> sges);
  int post_send(ibv_send_wr wr, std::span<const ibv_sge> sges = {});
  // Next completion of the send or receive CQ; nullopt when the watchdog ran out.
  std::optional<ibv_wc> wait_send(std::chrono::milliseconds limit = kWatchdog);
  std::optional<ibv_wc> wait_recv(std::chrono::milliseconds limit = kWatchdog);
  int poll_now(ibv_cq* cq, ibv_wc& wc) { return ibv_poll_cq(cq, 1, &wc); }
};

std::optional<ibv_wc> wait_cq(ibv_cq* cq, std::chrono::milliseconds limit = kWatchdog);

// Two connected ends; loopback: both on the first device.
class Pair {
 public:
  explicit Pair(bool loopback, const EndOptions& options = {}, const Link& link = {},
                bool connect = true);
  void connect();
  Link link;
  End a, b;
};

ibv_send_wr write_wr(std::uint64_t wr_id, const Buffer& to, std::size_t at = 0,
                     unsigned flags = IBV_SEND_SIGNALED);
ibv_send_wr read_wr(std::uint64_t wr_id, const Buffer& from, std::size_t at = 0,
                    unsigned flags = IBV_SEND_SIGNALED);
ibv_send_wr send_wr(std::uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED);

// Next asynchronous event of a context, acknowledged; nullopt when none came in time.
std::optional<ibv_event_type> wait_async(ibv_context* ctx, std::chrono::milliseconds limit = kWatchdog);

}  // namespace ordma::test
