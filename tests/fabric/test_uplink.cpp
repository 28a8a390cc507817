// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <fstream>

#include "fabric/uplink.hpp"
#include "support.hpp"

using namespace ordma::fabric;
using namespace ordma::fabric::test;
using Catch::Matchers::Contains;

namespace {

std::vector<std::uint8_t> record(std::size_t claimed, std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> out;
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::uint8_t>(claimed >> shift));
  }
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

std::vector<std::uint8_t> record(const Frame& frame) { return record(frame.size(), frame.bytes()); }

// The raw end of a socket pair whose other end is an uplink of a two-port net.
struct RawPeer {
  explicit RawPeer(UplinkOptions options = {}, int send_buffer = 0) : net("", 2) {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    if (send_buffer != 0) {
      REQUIRE(::setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(int)) == 0);
    }
    fd = fds[0];
    std::string error;
    uplink = Uplink::adopt(net.fabric, fds[1], std::move(options), &error);
    INFO(error);
    REQUIRE(uplink != nullptr);
  }
  ~RawPeer() { close(); }

  void close() {
    if (fd >= 0) {
      ::close(fd);
      fd = -1;
    }
  }

  void write(std::span<const std::uint8_t> bytes) const {
    REQUIRE(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }

  // One poll round of the uplink and the fabric.
  void step() {
    pollfd poll_fd{uplink->fd(), uplink->poll_events(), 0};
    if (poll_fd.fd >= 0 && ::poll(&poll_fd, 1, 0) > 0) {
      uplink->on_events(poll_fd.revents, 0);
    }
    net.run_all();
  }

  Net net;
  int fd = -1;
  std::unique_ptr<Uplink> uplink;
};

int connect_raw(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  return fd;
}

// A QEMU without a disk whose network boot ROM sends DHCP and IPv6 discovery by itself.
class Qemu {
 public:
  explicit Qemu(const std::string& netdev) {
    std::vector<std::string> words = {
        "qemu-system-x86_64", "-nodefaults", "-display", "none", "-m", "64", "-boot", "n",
        "-netdev", netdev, "-device", "virtio-net-pci,netdev=n,mac=02:6f:72:64:00:32"};
    std::vector<char*> arguments;
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    REQUIRE(::posix_spawnp(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(),
                           environ) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ~Qemu() { stop(); }
  Qemu(const Qemu&) = delete;
  Qemu& operator=(const Qemu&) = delete;

  void stop() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }

 private:
  pid_t pid_ = -1;
};

// Serves the uplink until `done` or for 30 s.
template <typename Done>
void serve(Net& net, Uplink& uplink, Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done() && std::chrono::steady_clock::now() < end) {
    pollfd poll_fd{uplink.fd(), uplink.poll_events(), 0};
    if (::poll(&poll_fd, 1, 200) > 0) {
      uplink.on_events(poll_fd.revents, 0);
      net.run_all();
    }
  }
}

}  // namespace

TEST_CASE("frames cross the socket in both directions, byte by byte if need be", "[uplink]") {
  RawPeer peer;
  for (const std::uint8_t byte : record(raw_frame(50, 1, 100, 7))) {
    peer.write(std::span(&byte, 1));
    peer.step();
  }
  REQUIRE(peer.net.deliveries.size() == 1);
  CHECK(peer.net.deliveries[0].port == peer.net.port[1]);
  CHECK(number_of(peer.net.deliveries[0].bytes) == 7);

  const Frame answer = raw_frame(1, 50, 9216, 8);
  peer.net.fabric.send(peer.net.port[1], answer.share(), 0);
  peer.net.run_all();
  std::vector<std::uint8_t> got(4 + 9216);
  REQUIRE(::recv(peer.fd, got.data(), got.size(), MSG_WAITALL) ==
          static_cast<ssize_t>(got.size()));
  CHECK(got == record(answer));
  CHECK(peer.uplink->counters().tx_frames == 1);
  CHECK(peer.uplink->counters().rx_frames == 1);
}

TEST_CASE("many frames in one read keep their boundaries", "[uplink]") {
  RawPeer peer;
  std::vector<std::uint8_t> stream;
  for (std::uint32_t i = 0; i < 60; ++i) {
    const auto one = record(raw_frame(50, 1, 60 + i * 37, i));
    stream.insert(stream.end(), one.begin(), one.end());
  }
  peer.write(stream);
  for (int round = 0; round < 10; ++round) {
    peer.step();
  }
  REQUIRE(peer.net.deliveries.size() == 60);
  for (std::uint32_t i = 0; i < 60; ++i) {
    CHECK(number_of(peer.net.deliveries[i].bytes) == i);
    CHECK(peer.net.deliveries[i].bytes.size() == 60 + i * 37);
  }
}

TEST_CASE("a frame split over two reads behind a whole one is put together", "[uplink]") {
  RawPeer peer;
  std::vector<std::uint8_t> stream = record(raw_frame(50, 1, 600, 1));
  const auto second = record(raw_frame(50, 1, 700, 2));
  const std::size_t cut = GENERATE(1u, 4u, 300u, 703u);
  const std::span<const std::uint8_t> head = std::span(second).first(cut);
  stream.insert(stream.end(), head.begin(), head.end());
  peer.write(stream);
  peer.step();
  CHECK(peer.net.numbers() == std::vector<std::uint32_t>{1});
  peer.write(std::span(second).subspan(cut));
  peer.step();
  CHECK(peer.net.numbers() == std::vector<std::uint32_t>{1, 2});
  CHECK(peer.net.deliveries.back().bytes.size() == 700);
}

TEST_CASE("frames larger than the socket's buffer go out in pieces", "[uplink]") {
  RawPeer peer({}, 1);  // the kernel's smallest buffer
  std::vector<std::uint8_t> expect;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const Frame frame = raw_frame(1, 50, 9000 + i, i);
    const auto one = record(frame);
    expect.insert(expect.end(), one.begin(), one.end());
    peer.net.fabric.send(peer.net.port[1], frame.share(), 0);
  }
  peer.net.run_all();
  CHECK((peer.uplink->poll_events() & POLLOUT) != 0);
  std::vector<std::uint8_t> got;
  std::vector<std::uint8_t> chunk(1000);
  for (int round = 0; round < 10000 && got.size() < expect.size(); ++round) {
    const ssize_t size = ::recv(peer.fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (size > 0) {
      got.insert(got.end(), chunk.begin(), chunk.begin() + size);
    }
    peer.step();
  }
  CHECK(got == expect);
  CHECK(peer.uplink->counters().tx_frames == 20);
  CHECK(peer.uplink->poll_events() == POLLIN);
}

TEST_CASE("hostile lengths end the connection and remove the port", "[uplink]") {
  const std::size_t length =
      GENERATE(std::size_t{0}, std::size_t{13}, std::size_t{9217}, std::size_t{0x7fffffff},
               std::size_t{0x80000000}, std::size_t{0xffffffff});
  RawPeer peer;
  const std::vector<std::uint8_t> garbage(64, 0xee);
  peer.write(record(raw_frame(50, 1, 60, 1)));
  peer.write(record(length, garbage));
  peer.write(record(raw_frame(50, 1, 60, 2)));
  peer.step();
  CHECK(peer.net.deliveries.size() == 1);  // what came before still counts, nothing after
  CHECK(peer.uplink->state() == Uplink::State::kClosed);
  CHECK(peer.uplink->fd() == -1);
  CHECK(peer.uplink->poll_events() == 0);
  CHECK(peer.uplink->counters().bad_length == 1);
  CHECK_THAT(peer.uplink->last_error(), Contains(std::to_string(length)));
  CHECK(peer.net.fabric.ports().size() == 2);
  peer.uplink->on_readable(0);  // harmless afterwards
  peer.uplink->on_writable();
}

TEST_CASE("a dead peer's port goes away, also with frames queued for it", "[uplink]") {
  RawPeer peer;
  REQUIRE(peer.net.fabric.ports().size() == 3);
  for (int i = 0; i < 1000; ++i) {
    peer.net.fabric.send(peer.net.port[1], raw_frame(1, 50, 9000), 0);
  }
  peer.net.run_all();
  CHECK((peer.uplink->poll_events() & POLLOUT) != 0);
  CHECK(peer.uplink->counters().tx_drops > 0);
  peer.close();
  peer.step();
  peer.step();
  CHECK(peer.uplink->state() == Uplink::State::kClosed);
  CHECK(peer.net.fabric.ports().size() == 2);
  CHECK(peer.uplink->port() == kNoPort);
}

TEST_CASE("a peer that died while sending to it is noticed inside advance()", "[uplink]") {
  RawPeer peer;
  peer.close();
  peer.net.fabric.send(peer.net.port[1], raw_frame(1, 0xff, 60), 0);
  peer.net.run_all();
  CHECK(peer.uplink->state() == Uplink::State::kClosed);
  CHECK(peer.net.deliveries.size() == 1);  // port 2 still got its copy
}

TEST_CASE("a slow peer costs bounded memory and loses whole frames only", "[uplink]") {
  UplinkOptions options;
  options.queue_bytes_max = 100000;
  RawPeer peer(options);
  for (std::uint32_t i = 0; i < 500; ++i) {
    peer.net.fabric.send(peer.net.port[1], raw_frame(1, 50, 5000, i), 0);
  }
  peer.net.run_all();
  const std::uint64_t dropped = peer.uplink->counters().tx_drops;
  CHECK(dropped > 300);
  std::uint64_t frames = 0;
  std::uint32_t last = 0;
  std::vector<std::uint8_t> got(4 + 5000);
  while (frames < 500 - dropped) {
    peer.step();
    REQUIRE(::recv(peer.fd, got.data(), got.size(), MSG_DONTWAIT | MSG_PEEK) > 0);
    // A record may still be split over the queue: keep pumping until it is whole.
    while (::recv(peer.fd, got.data(), got.size(), MSG_DONTWAIT | MSG_PEEK) <
           static_cast<ssize_t>(got.size())) {
      peer.step();
    }
    REQUIRE(::recv(peer.fd, got.data(), got.size(), 0) == static_cast<ssize_t>(got.size()));
    REQUIRE(got[2] == 5000 >> 8);
    const std::uint32_t number = number_of(std::span(got).subspan(4));
    CHECK((frames == 0 || number > last));
    last = number;
    ++frames;
  }
  CHECK(peer.uplink->counters().tx_frames == frames);
}

TEST_CASE("a listener serves one peer after the other on a private socket", "[uplink]") {
  const TempDir dir;
  const std::string path = dir.file("up.sock");
  Net net("", 1);
  std::string error;
  {
    auto uplink = Uplink::listen(net.fabric, path, {}, &error);
    INFO(error);
    REQUIRE(uplink != nullptr);
    struct stat status{};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    for (int round = 1; round <= 3; ++round) {
      CHECK(uplink->state() == Uplink::State::kListening);
      CHECK(net.fabric.ports().size() == 1);
      const int fd = connect_raw(path);
      uplink->on_events(POLLIN, 0);
      CHECK(uplink->state() == Uplink::State::kConnected);
      CHECK(net.fabric.ports().size() == 2);
      const auto bytes = record(raw_frame(50, 1, 60, static_cast<std::uint32_t>(round)));
      REQUIRE(::send(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
      uplink->on_events(POLLIN, 0);
      ::close(fd);
      uplink->on_events(POLLHUP, 0);
    }
    CHECK(uplink->counters().peers == 3);
    net.run_all();
    CHECK(net.numbers() == std::vector<std::uint32_t>{1, 2, 3});
    CHECK(Uplink::listen(net.fabric, path, {}, &error) == nullptr);
    CHECK_THAT(error, Contains("in use"));
  }
  CHECK(::access(path.c_str(), F_OK) != 0);  // removed at the end
}

TEST_CASE("two fabrics join over a socket", "[uplink]") {
  const TempDir dir;
  const std::string path = dir.file("join.sock");
  Net left("", 1);
  Fabric right(config(""), 2);
  int arrived = 0;
  PortId far = kNoPort;
  far = right.add_port(mac_of(9), [&](Frame, std::uint64_t at) {
    ++arrived;
    right.send(far, raw_frame(9, 1, 60, 77), at);
  });
  std::string error;
  auto listener = Uplink::listen(left.fabric, path, {}, &error);
  REQUIRE(listener != nullptr);
  auto connector = Uplink::connect(right, path, {}, &error);
  REQUIRE(connector != nullptr);
  listener->on_readable(0);
  left.fabric.send(left.port[1], raw_frame(1, 9, 60), 0);
  left.run_all();
  connector->on_readable(0);
  right.advance(0);
  listener->on_readable(0);
  left.run_all();
  CHECK(arrived == 1);
  CHECK(left.numbers() == std::vector<std::uint32_t>{77});
  connector.reset();
  listener->on_readable(0);
  CHECK(listener->state() == Uplink::State::kListening);
}

TEST_CASE("sockets that cannot be used are refused with a reason", "[uplink]") {
  const TempDir dir;
  Net net("", 1);
  std::string error;
  CHECK(Uplink::connect(net.fabric, dir.file("none"), {}, &error) == nullptr);
  CHECK_THAT(error, Contains("No such file"));
  CHECK(Uplink::listen(net.fabric, std::string(200, 'x'), {}, &error) == nullptr);
  CHECK_THAT(error, Contains("socket path"));
  CHECK(Uplink::listen(net.fabric, "/nonexistent/x", {}, &error) == nullptr);
  std::ofstream(dir.file("file")) << "precious";
  CHECK(Uplink::listen(net.fabric, dir.file("file"), {}, &error) == nullptr);
  CHECK_THAT(error, Contains("is no socket"));
  CHECK(::access(dir.file("file").c_str(), F_OK) == 0);
  // A socket file whose owner is gone is replaced.
  const std::string stale = dir.file("stale");
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, stale.c_str(), sizeof(address.sun_path) - 1);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  ::close(fd);
  CHECK(Uplink::listen(net.fabric, stale, {}, &error) != nullptr);
}

TEST_CASE("an uplink whose port name is taken says so", "[uplink]") {
  RawPeer peer;
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  std::string error;
  CHECK(Uplink::adopt(peer.net.fabric, fds[1], {}, &error) == nullptr);
  CHECK_THAT(error, Contains("no free port for 'uplink'"));
  char byte = 0;
  CHECK(::recv(fds[0], &byte, 1, 0) == 0);  // the refused socket was closed
  ::close(fds[0]);
}

TEST_CASE("a virtual machine's ordinary network card is a port", "[uplink][qemu]") {
  const bool listen = GENERATE(true, false);
  const TempDir dir;
  const std::string path = dir.file("qemu.sock");
  Net net("", 2);
  std::string error;
  std::unique_ptr<Uplink> uplink;
  if (listen) {
    uplink = Uplink::listen(net.fabric, path, {}, &error);
  }
  Qemu qemu(std::string("stream,id=n,addr.type=unix,server=") + (listen ? "off" : "on") +
            ",addr.path=" + path);
  for (int tries = 0; uplink == nullptr && tries < 300; ++tries) {
    ::usleep(100000);  // until QEMU has made its socket
    uplink = Uplink::connect(net.fabric, path, {}, &error);
  }
  INFO(error);
  REQUIRE(uplink != nullptr);
  serve(net, *uplink, [&] { return net.deliveries.size() >= 2; });
  REQUIRE(net.deliveries.size() >= 2);
  const MacAddress guest = mac_of(50);
  for (const Delivery& delivery : net.deliveries) {
    CHECK(std::equal(guest.begin(), guest.end(), delivery.bytes.begin() + 6));
  }
  // The guest's address is learned: unicast to it leaves through the uplink alone.
  const std::size_t before = net.deliveries.size();
  net.fabric.send(net.port[1], raw_frame(1, 50, 60), 0);
  net.run_all();
  CHECK(uplink->counters().tx_frames == 1);
  CHECK(net.deliveries.size() == before);
  qemu.stop();
  serve(net, *uplink, [&] { return uplink->state() != Uplink::State::kConnected; });
  CHECK(net.fabric.ports().size() == 2);
}
