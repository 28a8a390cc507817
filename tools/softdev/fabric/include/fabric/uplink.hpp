// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"

namespace ordma::fabric {

struct UplinkOptions {
  std::string name = "uplink";
  MacAddress mac{};                       // zero: stations behind it are learned
  std::size_t queue_bytes_max = 4u << 20;  // towards a slow peer; more is dropped and counted
};

struct UplinkCounters {
  std::uint64_t rx_frames = 0;  // peer -> fabric
  std::uint64_t tx_frames = 0;  // fabric -> peer
  std::uint64_t tx_drops = 0;   // peer too slow
  std::uint64_t bad_length = 0;  // hostile or corrupt length words; each ends the connection
  std::uint64_t peers = 0;       // connections made
};

// A fabric port whose other end is a UNIX stream socket with QEMU's framing (4-byte big-endian
// length, then the frame): `-netdev stream,addr.type=unix,addr.path=P,server=off` for listen(),
// server=on for connect(), or another soft-device. One peer at a time. When the peer goes away
// its port is removed; a listener then waits for the next peer, a connector is finished.
class Uplink {
 public:
  enum class State : std::uint8_t { kListening, kConnected, kClosed };

  // Null with *error set on failure. listen() makes the socket file 0600 and removes it at the end;
  // a stale socket file that nobody answers on is replaced, anything else is refused.
  [[nodiscard]] static std::unique_ptr<Uplink> listen(Fabric& fabric, const std::string& path,
                                                      UplinkOptions options, std::string* error);
  [[nodiscard]] static std::unique_ptr<Uplink> connect(Fabric& fabric, const std::string& path,
                                                       UplinkOptions options, std::string* error);
  // Takes over a connected stream socket.
  [[nodiscard]] static std::unique_ptr<Uplink> adopt(Fabric& fabric, int connected_fd,
                                                     UplinkOptions options, std::string* error);
  ~Uplink();
  Uplink(const Uplink&) = delete;
  Uplink& operator=(const Uplink&) = delete;

  // The fd to poll now (listening or connected socket; -1 when closed) and for what. Both change
  // after any call below and after Fabric::advance(): ask again before each poll.
  [[nodiscard]] int fd() const;
  [[nodiscard]] short poll_events() const;  // POLLIN, plus POLLOUT while frames wait
  // Bounded work per call; level-triggered polling brings the caller back for the rest.
  void on_readable(std::uint64_t now_ns);
  void on_writable();
  // Convenience over poll()'s revents, POLLHUP and POLLERR included.
  void on_events(short revents, std::uint64_t now_ns);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] PortId port() const { return port_; }
  [[nodiscard]] const UplinkCounters& counters() const { return counters_; }
  [[nodiscard]] const std::string& last_error() const { return last_error_; }

 private:
  Uplink(Fabric& fabric, UplinkOptions options);
  void accept_peer();
  bool attach(int fd);
  void drop_peer(std::string why);
  void parse_input(std::uint64_t now_ns);
  void enqueue(Frame frame);

  Fabric& fabric_;
  UplinkOptions options_;
  State state_ = State::kClosed;
  PortId port_ = kNoPort;
  int listen_fd_ = -1;
  int peer_fd_ = -1;
  std::string path_;
  std::vector<std::uint8_t> input_;
  std::size_t input_used_ = 0;
  std::deque<Frame> output_;
  std::size_t output_bytes_ = 0;
  std::size_t output_done_ = 0;  // bytes of the first queued record already written
  UplinkCounters counters_;
  std::string last_error_;
};

}  // namespace ordma::fabric
