// SPDX-License-Identifier: BSD-2-Clause
// Both ends of a verbs test in one process, on public verbs only: it runs on any device. Environment:
//   ORDMA_TEST_DEVS   names of two devices, default "ordma0,ordma1"
//   ORDMA_TEST_GID    GID index of both ends, default 1 (IPv4); 0 is the link-local one
//   ORDMA_TEST_SCALE  fast, check or soak: how often a repeated step is repeated
//   ORDMA_TEST_STAT   command that prints "scope name value" lines of device counters; without it
//                     what only a counter shows is not checked
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

namespace ordma::test {

// A destroy that is refused is a leak; main() makes the run fail for it.
void note_destroy(int result, const char* what);

template <typename T, int (*Destroy)(T*)>
struct Deleter {
  void operator()(T* object) const { note_destroy(Destroy(object), typeid(T).name()); }
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
// How long anything may take at most. A machine that is busy elsewhere must not fail a test.
inline constexpr std::chrono::milliseconds kWatchdog{30000};
// How long to look for something that must not come.
inline constexpr std::chrono::milliseconds kNever{200};

// Destroys that were refused so far.
int destroy_failures();
std::vector<std::string> device_names();
Context open_device(const std::string& name);
int default_gid_index();
// The count for the tier that runs.
std::size_t scale(std::size_t fast, std::size_t check, std::size_t soak);
// A counter of a device by its place in device_names(); nullopt where the environment has none.
std::optional<std::uint64_t> counter(std::size_t device, const std::string& name);

// Memory between two bands of canary bytes, registered without them.
class Buffer {
 public:
  Buffer(ibv_pd* pd, std::size_t bytes, int access = kFullAccess, std::size_t page_offset = 0);
  // Registered at another address than its own.
  Buffer(ibv_pd* pd, std::size_t bytes, std::uint64_t iova);

  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  // What an SGE or a remote address names: the IOVA.
  std::uint64_t addr(std::size_t at = 0) const { return iova_ + at; }
  std::uint32_t lkey() const { return mr_->lkey; }
  std::uint32_t rkey() const { return mr_->rkey; }
  ibv_mr* mr() const { return mr_.get(); }
  void release_mr() { mr_.reset(); }
  ibv_sge sge(std::size_t at, std::size_t length) const;
  void fill(std::uint8_t seed);
  void clear();
  bool holds(std::uint8_t seed, std::size_t at, std::size_t length) const;
  bool all(std::uint8_t value, std::size_t at, std::size_t length) const;
  bool canaries_intact() const;

 private:
  struct Unmap {
    std::size_t length;
    void operator()(std::uint8_t* p) const;
  };
  void map(std::size_t bytes, std::size_t page_offset);

  std::unique_ptr<std::uint8_t, Unmap> map_{nullptr, Unmap{0}};
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t iova_ = 0;
  Mr mr_;
};

struct EndOptions {
  ibv_qp_type type = IBV_QPT_RC;
  int cqe = 256;
  std::uint32_t send_wr = 64, recv_wr = 64, send_sge = 4, recv_sge = 4, inline_data = 64;
  bool sig_all = false;
  bool channel = false;
  bool use_srq = false;
  bool timestamps = false;     // CQs of the extended kind that carry device time
  std::uint64_t send_ops = 0;  // non-zero: created by ibv_create_qp_ex
};

struct Link {
  int gid_index = default_gid_index();
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint8_t timeout = 14, retry = 7, rnr_retry = 7, min_rnr = 12, rd_atomic = 8;
  std::uint8_t hop_limit = 64, traffic_class = 0;
  std::uint32_t psn_a = 0x000123, psn_b = 0x000456;
  std::uint32_t qkey = 0x11111111;
  int access = kFullAccess;
};

// One step of the state machine each; 0 or a positive errno, as ibv_modify_qp.
int set_init(ibv_qp* qp, const Link& link);
ibv_qp_attr rtr_attr(const Link& link, std::uint32_t dest_qpn, const ibv_gid& dgid,
                     std::uint32_t rq_psn);
int rtr_mask(ibv_qp_type type);
int set_rtr(ibv_qp* qp, const Link& link, std::uint32_t dest_qpn, const ibv_gid& dgid,
            std::uint32_t rq_psn);
int rts_mask(ibv_qp_type type);
ibv_qp_attr rts_attr(const Link& link, std::uint32_t sq_psn);
int set_rts(ibv_qp* qp, const Link& link, std::uint32_t sq_psn);
int set_state(ibv_qp* qp, ibv_qp_state state);
ibv_qp_attr query(ibv_qp* qp);
ibv_gid gid_of(ibv_context* ctx, int index);
// RESET to RTS on both sides.
void connect(ibv_qp* a, ibv_qp* b, const Link& link);

struct TimedWc {
  ibv_wc_status status = IBV_WC_GENERAL_ERR;
  std::uint64_t wr_id = 0;
  std::uint64_t time = 0;  // device time in ns
};

// One end: context, PD, CQs, QP.
class End {
 public:
  explicit End(const std::string& device, const EndOptions& options = {});

  Context ctx;
  Pd pd;
  Channel channel;
  Cq scq, rcq;
  ibv_cq_ex* scq_ex = nullptr;  // with EndOptions::timestamps
  ibv_cq_ex* rcq_ex = nullptr;
  Srq srq;
  Qp qp;

  // Another QP on the same PD, CQs and SRQ.
  Qp make_qp(const EndOptions& options = {}) const;
  ibv_gid gid(int index = default_gid_index()) const { return gid_of(ctx.get(), index); }
  int to_error() { return set_state(qp.get(), IBV_QPS_ERR); }
  ibv_qp_state state() const { return query(qp.get()).qp_state; }

  int post_recv(std::uint64_t wr_id, std::span<const ibv_sge> sges = {});
  int post_send(ibv_send_wr wr, std::span<const ibv_sge> sges = {});
  // Next completion of the send or receive CQ; nullopt when the watchdog ran out.
  std::optional<ibv_wc> wait_send(std::chrono::milliseconds limit = kWatchdog);
  std::optional<ibv_wc> wait_recv(std::chrono::milliseconds limit = kWatchdog);
  int poll_now(ibv_cq* cq, ibv_wc& wc) { return ibv_poll_cq(cq, 1, &wc); }
};

int post_send(ibv_qp* qp, ibv_send_wr wr, std::span<const ibv_sge> sges = {});
int post_recv(ibv_qp* qp, std::uint64_t wr_id, std::span<const ibv_sge> sges = {});
std::optional<ibv_wc> wait_cq(ibv_cq* cq, std::chrono::milliseconds limit = kWatchdog);
std::optional<TimedWc> wait_timed(ibv_cq_ex* cq, std::chrono::milliseconds limit = kWatchdog);

// Two connected ends; loopback: both on the first device.
class Pair {
 public:
  explicit Pair(bool loopback, const EndOptions& options = {}, const Link& link = {},
                bool connect = true);
  // From whatever state: RESET, then all the way up again.
  void reconnect();
  Link link;
  End a, b;
};

ibv_send_wr send_wr(std::uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED);
ibv_send_wr write_wr(std::uint64_t wr_id, const Buffer& to, std::size_t at = 0,
                     unsigned flags = IBV_SEND_SIGNALED);
ibv_send_wr read_wr(std::uint64_t wr_id, const Buffer& from, std::size_t at = 0,
                    unsigned flags = IBV_SEND_SIGNALED);
ibv_send_wr fetch_add_wr(std::uint64_t wr_id, const Buffer& at, std::uint64_t add,
                         std::size_t offset = 0);
ibv_send_wr cmp_swap_wr(std::uint64_t wr_id, const Buffer& at, std::uint64_t compare,
                        std::uint64_t swap, std::size_t offset = 0);

// Next event, acknowledged; nullopt when none came in time.
std::optional<ibv_async_event> wait_async(ibv_context* ctx,
                                          std::chrono::milliseconds limit = kWatchdog);
// Next completion event of a channel, NOT acknowledged: the CQ it names.
ibv_cq* wait_event(ibv_comp_channel* channel, std::chrono::milliseconds limit = kWatchdog);

// Address handle towards a GID.
Ah make_ah(ibv_pd* pd, const ibv_gid& dgid, const Link& link = {});

}  // namespace ordma::test
