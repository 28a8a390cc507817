// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "device/addresses.hpp"
#include "device/network.hpp"
#include "device/runner.hpp"
#include "device/uplinks.hpp"
#include "fabric/pcapng.hpp"
#include "native/server.hpp"
#include "options.hpp"

namespace ordma::softdev {

// The process: one network, its attachments, its sockets.
class SoftDevice {
 public:
  explicit SoftDevice(const Options& options);  // throws std::runtime_error
  ~SoftDevice();
  // Until a signal or until the last member has gone. The exit status.
  int run();

 private:
  void watch_signals();
  void start_capture();
  void add_nics();
  void add_native_nic(unsigned number, const EngineConfig& config);
  void add_vm_nic(const VmOption& vm, const std::string& name, const EngineConfig& config);
  void listen();
  void tell_ready();
  [[nodiscard]] bool finished();
  [[nodiscard]] std::string counters();

  Options options_;
  EventLoop loop_;
  Fd signals_;
  bool stopped_ = false;
  Neighbours neighbours_;
  std::unique_ptr<fabric::PcapngWriter> capture_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Uplinks> uplinks_;
  std::vector<NativeNic*> native_;  // by NIC; null: a guest's
  std::unique_ptr<NativeServer> server_;
  std::uint64_t alone_since_ns_ = 0;
  std::uint64_t flushed_ns_ = 0;
};

}  // namespace ordma::softdev
