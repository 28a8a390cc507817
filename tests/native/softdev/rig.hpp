// SPDX-License-Identifier: BSD-2-Clause
// A whole soft-device in the test's own process and thread: twins, fabric, native server, on a host
// clock that stands still unless a test moves it. Clients speak the real protocol over real
// sockets.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/event_loop.hpp"
#include "device/network.hpp"
#include "device/uplinks.hpp"
#include "native/dma_checker.hpp"
#include "native/nic.hpp"
#include "native/server.hpp"
#include "native_proto.h"

namespace ordma::softdev::test {

struct RigOptions {
  unsigned nics = 2;
  unsigned first = 0;  // number of the first NIC; decides its addresses
  std::string fabric = {};
  EngineLimits limits = {};
  std::uint64_t seed = 1;
};

class Rig {
 public:
  explicit Rig(const RigOptions& options = {});
  ~Rig();

  // Passes until nothing is left to do now; device time stands still but for the engines' own.
  void settle();
  // Device time goes on, event by event.
  void run_for(std::uint64_t ns);
  [[nodiscard]] int connect();  // the client's end of a new connection
  [[nodiscard]] NativeNic& nic(unsigned i) { return *nics_[i]; }
  Uplinks& uplinks() { return uplinks_; }
  [[nodiscard]] std::uint64_t counter(const std::string& scope, const std::string& name);
  [[nodiscard]] std::uint64_t now() const { return network.clock().now(); }

  std::uint64_t host_ns = 1'000'000'000;
  EventLoop loop;
  DmaChecker checker;  // of all NICs; each has its own address space, so one NIC per test that asks
  mutable Network network;
  Neighbours neighbours;
  std::unique_ptr<NativeServer> server;

 private:
  Uplinks uplinks_{network, loop};
  std::vector<NativeNic*> nics_;
};

// One connection. Calls run the rig until the reply is there.
class Client {
 public:
  explicit Client(Rig& rig, unsigned nic = 0, bool hello = true);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  struct Raw {
    bool closed = false;  // the server hung up without a reply
    ordma_np_hdr header{};
    std::vector<std::byte> body;
    std::vector<Fd> fds;
  };
  Raw raw(std::span<const std::byte> message, std::span<const int> fds = {});
  Raw request(std::uint16_t op, std::span<const std::byte> body, std::span<const int> fds = {});
  template <typename Req>
    requires std::is_trivially_copyable_v<Req>
  Raw request(std::uint16_t op, const Req& body, std::span<const int> fds = {}) {
    return request(op, std::as_bytes(std::span(&body, 1)), fds);
  }
  // errno of an operation whose reply body does not matter.
  template <typename Req>
  int error(std::uint16_t op, const Req& body) {
    return request(op, body).header.err;
  }
  template <typename Resp, typename Req>
  Resp call(std::uint16_t op, const Req& body, std::span<const int> fds = {}) {
    Raw reply = request(op, body, fds);
    Resp resp{};
    check(reply, sizeof resp);
    std::memcpy(&resp, reply.body.data(), sizeof resp);
    received = std::move(reply.fds);
    return resp;
  }
  // Closes the connection, as a process that ends does.
  void hang_up();

  // Buffer of `bytes`, mapped here and announced. Unmapped with the client.
  std::byte* buffer(std::size_t bytes);
  std::uint32_t pd();
  ordma_np_mr mr(std::uint32_t pd, std::byte* memory, std::size_t bytes, std::uint32_t access);
  // The memory of doorbell page `page`.
  std::byte* doorbell_page(std::uint32_t page);
  void ring(const ordma_abi_db& db, std::uint64_t word);

  ordma_np_hello_resp hello{};
  std::vector<Fd> received;
  Fd public_page, kick, async;

 private:
  void check(const Raw& reply, std::size_t bytes);
  struct Map {
    std::byte* memory;
    std::size_t bytes;
  };
  Rig& rig_;
  int fd_ = -1;
  std::uint32_t seq_ = 0;
  std::vector<Map> maps_;
  std::vector<std::pair<std::uint32_t, std::byte*>> pages_;
};

inline std::uint64_t va(const std::byte* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

// A CQ and its ring as a provider sees them.
struct TestCq {
  TestCq(Client& client, std::uint32_t log, int channel_fd = -1, std::uint64_t user_handle = 0);
  // Takes the next CQE; false when there is none.
  bool poll(std::array<std::byte, 64>* cqe);
  void arm(bool solicited = false);

  Client& client;
  std::uint32_t log;
  std::byte* ring;
  std::byte* record;
  ordma_np_cq resp;
  std::uint32_t ci = 0;
  std::uint32_t arm_seq = 0;
};

struct TestQp {
  TestQp(Client& client, std::uint32_t pd, TestCq& cq, std::uint32_t type = 2,
         std::uint64_t user_handle = 0);
  void to_init(std::uint32_t access);
  void to_rtr(const Gid& dgid, std::uint32_t dest_qpn);
  void to_rts();
  int modify(const ordma_np_qp_attr& attr);
  // Posts one WRITE or SEND with one SGE and rings.
  void post_send(std::uint8_t opcode, const std::byte* memory, std::uint32_t length,
                 std::uint32_t lkey, std::uint64_t remote = 0, std::uint32_t rkey = 0);
  void post_recv(std::uint64_t wr_id, const std::byte* memory, std::uint32_t length,
                 std::uint32_t lkey);

  Client& client;
  std::byte* sq;
  std::byte* rq;
  ordma_np_qp resp;
  std::uint32_t sq_pi = 0;
  std::uint32_t rq_pi = 0;
};

// Two RC QPs, ready to send to each other.
void connect_pair(TestQp& a, unsigned nic_a, TestQp& b, unsigned nic_b, std::uint32_t access);

}  // namespace ordma::softdev::test
