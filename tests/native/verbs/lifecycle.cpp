// SPDX-License-Identifier: BSD-2-Clause
// Objects that depend on each other, contexts that come and go, programs that die.
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "checks.hpp"

using namespace ordma::test;

namespace {

std::size_t open_files() {
  std::size_t count = 0;
  DIR* const dir = ::opendir("/proc/self/fd");
  REQUIRE(dir != nullptr);
  while (::readdir(dir) != nullptr) ++count;
  ::closedir(dir);
  return count;
}

struct Address {
  std::uint32_t qpn;
  std::uint32_t rkey;
  std::uint64_t addr;
};

// What the child of the next test does until it is killed: WRITEs without end.
[[noreturn]] void write_for_ever(int in, int out) {
  End end(device_names().at(0));
  Buffer from(end.pd.get(), 65536);
  const Address own{end.qp->qp_num, 0, 0};
  Address peer{};
  Link link;
  const bool told = ::write(out, &own, sizeof(own)) == sizeof(own) &&
                    ::read(in, &peer, sizeof(peer)) == sizeof(peer);
  const Context other = open_device(device_names().at(1));
  if (!told || set_init(end.qp.get(), link) != 0 ||
      set_rtr(end.qp.get(), link, peer.qpn, gid_of(other.get(), link.gid_index), link.psn_b) != 0 ||
      set_rts(end.qp.get(), link, link.psn_a) != 0) {
    ::_exit(1);
  }
  for (;;) {
    ibv_send_wr wr = send_wr(1);
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = peer.addr;
    wr.wr.rdma.rkey = peer.rkey;
    end.post_send(wr, std::array{from.sge(0, 65536)});
    ibv_wc wc{};
    end.poll_now(end.scq.get(), wc);
  }
}

}  // namespace

TEST_CASE("objects in use are EBUSY, and nothing is lost by asking", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer from(p.a.pd.get(), 64), to(p.b.pd.get(), 64);
  CHECK(ibv_dealloc_pd(p.a.pd.get()) == EBUSY);
  CHECK(ibv_destroy_cq(p.a.scq.get()) == EBUSY);
  CHECK(ibv_destroy_cq(p.a.rcq.get()) == EBUSY);
  REQUIRE(p.a.post_send(write_wr(1, to), std::array{from.sge(0, 64)}) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
}

TEST_CASE("case_095 contexts can be opened and closed for ever", "[rc]") {
  const std::size_t rounds = scale(50, 500, 100000);
  open_device(device_names().at(0));
  const std::size_t before = open_files();
  for (std::size_t i = 0; i < rounds; ++i) {
    End end(device_names().at(i % 2));
  }
  CHECK(open_files() == before);
}

TEST_CASE("a context that is closed with traffic under way", "[rc]") {
  const bool loopback = both_ways();
  for (int round = 0; round < 5; ++round) {
    auto p = std::make_unique<Pair>(loopback);
    auto from = std::make_unique<Buffer>(p->a.pd.get(), 65536);
    auto to = std::make_unique<Buffer>(p->b.pd.get(), 65536);
    for (std::uint64_t i = 0; i < 32; ++i) {
      REQUIRE(p->a.post_send(write_wr(i, *to), std::array{from->sge(0, 65536)}) == 0);
    }
    // The receiving side goes first, in the middle of it.
    p->b.qp.reset();
    to.reset();
    from.reset();
    p.reset();
  }
  Pair p(loopback);
  REQUIRE(p.b.post_recv(1) == 0);
  REQUIRE(p.a.post_send(send_wr(2)) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
}

TEST_CASE("case_093 a program is killed while it writes to us", "[rc]") {
  const std::size_t rounds = scale(3, 20, 200);
  for (std::size_t round = 0; round < rounds; ++round) {
    int to_child[2], from_child[2];
    REQUIRE(::pipe(to_child) == 0);
    REQUIRE(::pipe(from_child) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::close(to_child[1]);
      try {
        write_for_ever(to_child[0], from_child[1]);
      } catch (...) {
        ::_exit(2);
      }
    }
    ::close(to_child[0]);
    ::close(from_child[1]);
    {
      End end(device_names().at(1));
      Buffer target(end.pd.get(), 65536);
      Address peer{};
      REQUIRE(::read(from_child[0], &peer, sizeof(peer)) == sizeof(peer));
      Link link;
      const Context other = open_device(device_names().at(0));
      REQUIRE(set_init(end.qp.get(), link) == 0);
      const ibv_gid dgid = gid_of(other.get(), link.gid_index);
      REQUIRE(set_rtr(end.qp.get(), link, peer.qpn, dgid, link.psn_a) == 0);
      const Address own{end.qp->qp_num, target.rkey(), target.addr()};
      REQUIRE(::write(to_child[1], &own, sizeof(own)) == sizeof(own));
      std::this_thread::sleep_for(std::chrono::milliseconds(5 + 7 * (round % 5)));
      CHECK(::kill(child, SIGKILL) == 0);
      int how = 0;
      REQUIRE(::waitpid(child, &how, 0) == child);
      CHECK(WIFSIGNALED(how));
      CHECK(target.canaries_intact());
    }
    ::close(to_child[1]);
    ::close(from_child[0]);
  }
  Pair p(false);  // both NICs go on
  REQUIRE(p.b.post_recv(1) == 0);
  REQUIRE(p.a.post_send(send_wr(2)) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
}

TEST_CASE("several contexts of one program on one device", "[rc]") {
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < 8; ++i) {
    pairs.push_back(std::make_unique<Pair>(i % 2 == 0));
  }
  for (auto& p : pairs) {
    REQUIRE(p->b.post_recv(1) == 0);
    REQUIRE(p->a.post_send(send_wr(2)) == 0);
  }
  for (auto& p : pairs) {
    CHECK(status(p->a.wait_send()) == IBV_WC_SUCCESS);
    CHECK(status(p->b.wait_recv()) == IBV_WC_SUCCESS);
  }
}
