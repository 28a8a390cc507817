// SPDX-License-Identifier: BSD-2-Clause
// Data through the whole stack: client memory, doorbell page, twin, fabric, and back.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <numeric>

#include "ordma_hw.hpp"
#include "rig.hpp"

using namespace ordma;
using namespace ordma::softdev;
using namespace ordma::softdev::test;

namespace {

constexpr std::uint32_t kAllAccess = 15;
constexpr auto kWrite = static_cast<std::uint8_t>(hw::WqeOp::kWrite);
constexpr auto kSend = static_cast<std::uint8_t>(hw::WqeOp::kSend);

struct Side {
  Side(Rig& rig, unsigned nic, int channel = -1)
      : client(rig, nic),
        pd(client.pd()),
        cq(client, 6, channel, 0xc0ffee),
        qp(client, pd, cq, 2, 0xabcd) {}
  Client client;
  std::uint32_t pd;
  TestCq cq;
  TestQp qp;
};

std::uint64_t status_of(const std::array<std::byte, 64>& cqe) {
  return hw::get(cqe, hw::cqe::status);
}

ordma_np_handle handle(std::uint32_t number) {
  ordma_np_handle req{};
  req.handle = number;
  return req;
}

void fill(std::span<std::byte> bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed);
}

}  // namespace

TEST_CASE("RC WRITE from private memory into private memory", "[traffic]") {
  Rig rig;
  Side a(rig, 0), b(rig, 1);
  connect_pair(a.qp, 0, b.qp, 1, kAllAccess);
  std::vector<std::byte> source(100'000), target(100'000);
  fill(source, 3);
  const auto from = a.client.mr(a.pd, source.data(), source.size(), kAllAccess);
  const auto to = b.client.mr(b.pd, target.data(), target.size(), kAllAccess);
  a.qp.post_send(kWrite, source.data(), 100'000, from.lkey, va(target.data()), to.rkey);
  rig.settle();
  std::array<std::byte, 64> cqe;
  REQUIRE(a.cq.poll(&cqe));
  CHECK(status_of(cqe) == 0);
  CHECK_FALSE(a.cq.poll(&cqe));
  CHECK_FALSE(b.cq.poll(&cqe));
  CHECK(source == target);
  CHECK(rig.counter("fabric", "tx_frames") >= 98);
  CHECK(rig.counter("ordma0", "tx_packets") >= 98);
}

TEST_CASE("SEND into a shared buffer, with a completion event", "[traffic]") {
  Rig rig;
  int channel[2];
  REQUIRE(::pipe2(channel, O_CLOEXEC | O_NONBLOCK) == 0);
  const Fd events(channel[0]), write_end(channel[1]);
  Side a(rig, 0), b(rig, 1, write_end.get());
  connect_pair(a.qp, 0, b.qp, 1, kAllAccess);
  std::byte* const source = a.client.buffer(4096);
  std::byte* const target = b.client.buffer(4096);
  const auto from = a.client.mr(a.pd, source, 4096, kAllAccess);
  const auto to = b.client.mr(b.pd, target, 4096, kAllAccess);
  fill({source, 4096}, 9);
  std::uint64_t element = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    b.qp.post_recv(100 + i, target, 4096, to.lkey);
    b.cq.arm();
    rig.settle();
    CHECK(::read(events.get(), &element, 8) < 0);
    a.qp.post_send(kSend, source, 1000, from.lkey);
    rig.settle();
    REQUIRE(::read(events.get(), &element, 8) == 8);
    CHECK(element == 0xc0ffee);
    CHECK(::read(events.get(), &element, 8) < 0);  // one shot
    std::array<std::byte, 64> cqe;
    REQUIRE(b.cq.poll(&cqe));
    CHECK(status_of(cqe) == 0);
    CHECK(hw::get(cqe, hw::cqe::wr_id) == 100 + i);
    CHECK(hw::get(cqe, hw::cqe::byte_len) == 1000);
    REQUIRE(a.cq.poll(&cqe));
    CHECK(status_of(cqe) == 0);
  }
  CHECK(std::equal(source, source + 1000, target));
}

TEST_CASE("a channel of the soft-device: busy while used, unread events are taken back",
          "[traffic]") {
  Rig rig;
  Side a(rig, 0);
  Client client(rig, 1);
  auto made = client.request(ORDMA_NP_CREATE_CHANNEL, {});
  REQUIRE(made.body.size() == sizeof(ordma_np_handle));
  REQUIRE(made.fds.size() == 1);
  ordma_np_handle channel{};
  std::memcpy(&channel, made.body.data(), sizeof channel);
  ::fcntl(made.fds[0].get(), F_SETFL, O_NONBLOCK);
  ordma_np_create_cq req{};
  std::byte* const ring = client.buffer(4096);
  std::byte* const record = client.buffer(4096);
  req.cqe = 16;
  req.channel = channel.handle;
  req.drv.ring_va = va(ring);
  req.drv.record_va = va(record);
  req.drv.ring_log = 4;
  const auto cq = client.call<ordma_np_cq>(ORDMA_NP_CREATE_CQ, req);
  CHECK(client.error(ORDMA_NP_DESTROY_CHANNEL, channel) == EBUSY);
  // Arm with fire_now: an event without traffic.
  client.ring(cq.drv.arm_db, hw::place(hw::db::arm_seq, 1) | hw::place(hw::db::fire_now, 1) |
                                 hw::place(hw::db::number, cq.drv.cqn) |
                                 hw::place(hw::db::kind, std::uint64_t(hw::DbKind::kCqArm)));
  rig.settle();
  const auto destroyed =
      client.call<ordma_np_destroyed>(ORDMA_NP_DESTROY_CQ, handle(cq.handle));
  CHECK(destroyed.comp_events == 0);
  std::uint64_t element;
  CHECK(::read(made.fds[0].get(), &element, sizeof element) < 0);
  CHECK(client.error(ORDMA_NP_DESTROY_CHANNEL, channel) == 0);
  CHECK(client.error(ORDMA_NP_DESTROY_CHANNEL, channel) == ENOENT);
}

TEST_CASE("a wrong key: error at the sender, asynchronous event at the target", "[traffic]") {
  Rig rig;
  Side a(rig, 0), b(rig, 1);
  connect_pair(a.qp, 0, b.qp, 1, kAllAccess);
  std::vector<std::byte> source(4096);
  const auto from = a.client.mr(a.pd, source.data(), source.size(), kAllAccess);
  a.qp.post_send(kWrite, source.data(), 64, from.lkey, va(source.data()), 0x12345);
  rig.settle();
  std::array<std::byte, 64> cqe;
  REQUIRE(a.cq.poll(&cqe));
  CHECK(status_of(cqe) == 10);
  struct {
    std::uint64_t element;
    std::uint32_t type, reserved;
  } event{};
  ::fcntl(b.client.async.get(), F_SETFL, O_NONBLOCK);
  REQUIRE(::read(b.client.async.get(), &event, sizeof event) == sizeof event);
  CHECK(event.element == 0xabcd);
  CHECK(event.type == 3);  // IBV_EVENT_QP_ACCESS_ERR
  const auto state =
      b.client.call<ordma_np_qp_attr>(ORDMA_NP_QUERY_QP, handle(b.qp.resp.handle));
  CHECK(state.qp_state == 6);
}

TEST_CASE("loss is recovered by the driver core in here", "[traffic]") {
  Rig rig({.fabric = "loss=0.05,dup=0.02,delay_ns=2000", .seed = 7});
  Side a(rig, 0), b(rig, 1);
  connect_pair(a.qp, 0, b.qp, 1, kAllAccess);
  std::vector<std::byte> source(30'000), target(30'000);
  const auto from = a.client.mr(a.pd, source.data(), source.size(), kAllAccess);
  const auto to = b.client.mr(b.pd, target.data(), target.size(), kAllAccess);
  std::array<std::byte, 64> cqe;
  for (unsigned i = 0; i < 40; ++i) {
    fill(source, i);
    a.qp.post_send(kWrite, source.data(), 30'000, from.lkey, va(target.data()), to.rkey);
    bool done = false;
    for (int wait = 0; wait < 200 && !done; ++wait) {
      rig.run_for(10'000'000);
      done = a.cq.poll(&cqe);
    }
    REQUIRE(done);
    REQUIRE(status_of(cqe) == 0);
    REQUIRE(source == target);
  }
  CHECK(rig.counter("fabric", "lost") > 0);
  CHECK(rig.counter("ordma0", "core_rewinds") > 0);
}

TEST_CASE("after dereg and destroy nothing touches the memory", "[traffic]") {
  Rig rig({.nics = 1, .fabric = "delay_ns=5000"});
  Side a(rig, 0), b(rig, 0);
  connect_pair(a.qp, 0, b.qp, 0, kAllAccess);
  std::vector<std::byte> source(60'000), target(60'000);
  fill(source, 1);
  const auto from = a.client.mr(a.pd, source.data(), source.size(), kAllAccess);
  const auto to = b.client.mr(b.pd, target.data(), target.size(), kAllAccess);
  for (int i = 0; i < 4; ++i) {
    a.qp.post_send(kWrite, source.data(), 60'000, from.lkey, va(target.data()), to.rkey);
  }
  for (int i = 0; i < 3; ++i) rig.network.step();
  CHECK(b.client.error(ORDMA_NP_DEREG_MR, handle(to.handle)) == 0);
  const std::vector<std::byte> frozen = target;
  rig.run_for(1'000'000);
  CHECK(target == frozen);
  a.qp.post_send(kWrite, source.data(), 60'000, from.lkey, va(target.data()), to.rkey);
  CHECK(a.client.error(ORDMA_NP_DESTROY_QP, handle(a.qp.resp.handle)) == 0);
  CHECK(a.client.error(ORDMA_NP_DESTROY_CQ, handle(a.cq.resp.handle)) == 0);
  rig.run_for(1'000'000);
  for (const std::string& report : rig.checker.reports()) WARN(report);
  CHECK(rig.checker.violations() == 0);
  CHECK(rig.checker.accesses() > 100);
}

TEST_CASE("NICs of two soft-devices joined by an uplink", "[traffic]") {
  Rig left({.nics = 1}), right({.nics = 1, .first = 10});
  const std::string path = "/tmp/ordma-test-uplink-" + std::to_string(::getpid());
  REQUIRE(left.uplinks().listen(path).empty());
  REQUIRE(right.uplinks().connect(path).empty());
  REQUIRE(left.neighbours.add(nic_ipv4_gid(10), nic_mac(10)));
  REQUIRE(right.neighbours.add(nic_ipv4_gid(0), nic_mac(0)));
  Side a(left, 0), b(right, 0);
  connect_pair(a.qp, 0, b.qp, 10, kAllAccess);
  std::vector<std::byte> source(100'000), target(100'000);
  const auto from = a.client.mr(a.pd, source.data(), source.size(), kAllAccess);
  const auto to = b.client.mr(b.pd, target.data(), target.size(), kAllAccess);
  std::array<std::byte, 64> cqe;
  for (unsigned round = 0; round < 3; ++round) {
    fill(source, round);
    a.qp.post_send(kWrite, source.data(), 100'000, from.lkey, va(target.data()), to.rkey);
    bool done = false;
    for (int i = 0; i < 1000 && !done; ++i) {
      left.settle();
      right.settle();
      done = a.cq.poll(&cqe);
    }
    REQUIRE(done);
    CHECK(status_of(cqe) == 0);
    CHECK(source == target);
  }
  CHECK(left.counter("port.uplink0", "rx_frames") >= 294);
}

TEST_CASE("resize keeps what was not yet polled", "[traffic]") {
  Rig rig({.nics = 1});
  Side a(rig, 0), b(rig, 0);
  connect_pair(a.qp, 0, b.qp, 0, kAllAccess);
  std::vector<std::byte> source(64), target(64);
  const auto from = a.client.mr(a.pd, source.data(), 64, kAllAccess);
  const auto to = b.client.mr(b.pd, target.data(), 64, kAllAccess);
  for (int i = 0; i < 5; ++i) {
    a.qp.post_send(kWrite, source.data(), 64, from.lkey, va(target.data()), to.rkey);
  }
  rig.settle();
  std::byte* const ring = a.client.buffer(64 << 8);
  std::byte* const record = a.client.buffer(4096);
  ordma_np_resize_cq req{};
  req.handle = a.cq.resp.handle;
  req.cqe = 256;
  req.drv.ring_va = va(ring);
  req.drv.record_va = va(record);
  req.drv.ring_log = 8;
  const auto resized = a.client.call<ordma_np_resize_cq_resp>(ORDMA_NP_RESIZE_CQ, req);
  CHECK(resized.drv.old_pi == 5);
  std::array<std::byte, 64> cqe;
  for (int i = 0; i < 5; ++i) CHECK(a.cq.poll(&cqe));
  a.cq.ring = ring;
  a.cq.record = record;
  a.cq.log = 8;
  a.cq.ci = 0;
  a.qp.post_send(kWrite, source.data(), 64, from.lkey, va(target.data()), to.rkey);
  rig.settle();
  CHECK(a.cq.poll(&cqe));
  CHECK(a.client.error(ORDMA_NP_BUF_FREE, handle(1)) == 0);  // the old ring
  CHECK(rig.checker.violations() == 0);
}
