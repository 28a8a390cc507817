// SPDX-License-Identifier: BSD-2-Clause
// Clients that end, in every way a process can.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "ordma_hw.hpp"
#include "rig.hpp"

using namespace ordma;
using namespace ordma::softdev;
using namespace ordma::softdev::test;

namespace {

constexpr std::uint32_t kAllAccess = 15;

// Runs the rig until `done`, for at most ten seconds of real time.
template <typename Done>
bool eventually(Rig& rig, Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done() && std::chrono::steady_clock::now() < end) {
    (void)rig.loop.wait(1'000'000);
    rig.settle();
  }
  return done();
}

struct TempDir {
  TempDir() {
    char name[] = "/tmp/ordma-test-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~TempDir() { std::filesystem::remove_all(path); }
  std::string path;
};

bool exchange(int fd, std::uint16_t op, std::size_t body) {
  std::array<std::byte, 4096> message{};
  ordma_np_hdr header{};
  header.op = op;
  header.version = ORDMA_NP_VERSION;
  header.len = static_cast<std::uint32_t>(body);
  std::memcpy(message.data(), &header, sizeof header);
  if (::send(fd, message.data(), sizeof header + body, 0) < 0) return false;
  if (::recv(fd, &header, sizeof header, 0) != sizeof header) return false;
  return header.err == 0;
}

// The child: connects, gets a PD, reports, passes its socket on to a process that outlives it.
[[noreturn]] void run_child(const std::string& socket_path, int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  bool good = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  good = good && exchange(fd, ORDMA_NP_HELLO, sizeof(ordma_np_hello));
  good = good && exchange(fd, ORDMA_NP_ALLOC_PD, 0);
  const pid_t heir = ::fork();
  if (heir == 0) {
    // Outlives its parent, but not for long if the test should be killed.
    ::alarm(60);
    for (;;) ::pause();
  }
  const pid_t answer = good ? heir : -1;
  (void)!::write(report, &answer, sizeof answer);
  ::alarm(60);
  for (;;) ::pause();
}

}  // namespace

TEST_CASE("a killed process is noticed although its socket lives on elsewhere", "[death]") {
  Rig rig({.nics = 1});
  const TempDir dir;
  std::string error;
  const std::string path = dir.path + "/socket";
  REQUIRE(rig.server->listen(path, &error));
  int report[2];
  REQUIRE(::pipe2(report, O_CLOEXEC | O_NONBLOCK) == 0);
  const pid_t child = ::fork();
  if (child == 0) run_child(path, report[1]);
  pid_t heir = 0;
  const bool told =
      eventually(rig, [&] { return heir != 0 || ::read(report[0], &heir, sizeof heir) > 0; });
  CHECK(told);
  CHECK(heir > 0);
  CHECK(rig.server->connections() == 1);
  ::kill(child, SIGKILL);
  CHECK(eventually(rig, [&] { return rig.server->connections() == 0; }));
  ::waitpid(child, nullptr, 0);
  if (heir > 0) ::kill(heir, SIGKILL);
  ::close(report[0]);
  ::close(report[1]);
}

TEST_CASE("a member without objects may end; its connection keeps the network", "[death]") {
  Rig rig({.nics = 1});
  const int fd = rig.connect();
  rig.settle();
  CHECK(rig.server->connections() == 1);
  ::close(fd);
  rig.settle();
  CHECK(rig.server->connections() == 0);
}

TEST_CASE("a hang-up in the middle of traffic leaves nothing behind", "[death]") {
  Rig rig({.nics = 1, .fabric = "delay_ns=1000"});
  const std::uint64_t memory_before = rig.counter("ordma0", "driver_memory_bytes");
  for (unsigned round = 0; round < 30; ++round) {
    Client survivor(rig);
    const std::uint32_t pd_b = survivor.pd();
    TestCq cq_b(survivor, 6);
    TestQp b(survivor, pd_b, cq_b);
    std::vector<std::byte> target(20'000);
    const auto to = survivor.mr(pd_b, target.data(), target.size(), kAllAccess);
    std::vector<std::byte> source(20'000);
    {
      Client victim(rig);
      const std::uint32_t pd_a = victim.pd();
      TestCq cq_a(victim, 6);
      TestQp a(victim, pd_a, cq_a);
      const auto from = victim.mr(pd_a, source.data(), source.size(), kAllAccess);
      connect_pair(a, 0, b, 0, kAllAccess);
      for (int i = 0; i < 8; ++i) {
        a.post_send(static_cast<std::uint8_t>(hw::WqeOp::kWrite), source.data(), 20'000, from.lkey,
                    va(target.data()), to.rkey);
      }
      for (unsigned step = 0; step < round; ++step) rig.network.step();
      victim.hang_up();
      rig.settle();
      CHECK(rig.server->connections() == 1);
      CHECK(rig.counter("ordma0", "objects_qp") == 1);
    }
    rig.run_for(1'000'000);
    CHECK(survivor.pd() != 0);
  }
  rig.settle();
  CHECK(rig.counter("ordma0", "objects_qp") == 0);
  CHECK(rig.counter("ordma0", "driver_memory_bytes") == memory_before);
  for (const std::string& report : rig.checker.reports()) WARN(report);
  CHECK(rig.checker.violations() == 0);
}

TEST_CASE("opening and closing leaks no descriptor", "[death]") {
  Rig rig;
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  { Client warm_up(rig); }
  const auto before = open_files();
  for (int i = 0; i < 300; ++i) {
    Client client(rig, static_cast<unsigned>(i % 2));
    TestCq cq(client, 4);
    TestQp qp(client, client.pd(), cq);
  }
  rig.settle();
  CHECK(open_files() == before);
}
