// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/attachment.hpp"
#include "device/clock.hpp"
#include "fabric/fabric.hpp"

namespace ordma::softdev {

using EngineFactory = std::unique_ptr<Engine> (*)(const EngineConfig&, HostPort&);

// All NICs of one soft-device, the fabric between them and their common clock. Single-threaded and
// deterministic: host time, seed and the attachments' inputs are everything it depends on.
class Network {
 public:
  // About this many packets or WQEs per engine and pass: small enough that doorbells of other
  // queues are seen within microseconds, large enough to pay for a scan.
  static constexpr unsigned kStepBudget = 64;

  Network(fabric::FabricConfig config, std::uint64_t seed, HostTime host = host_time_ns);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // A NIC named `name` behind `attachment`; false when the fabric refuses its MAC or name.
  [[nodiscard]] bool add_nic(const std::string& name, const EngineConfig& config,
                             EngineFactory factory, std::unique_ptr<Attachment> attachment);

  // One pass over attachments, engines and fabric. True when anything was done or is to be done at
  // once; false means nothing happens before next_due_ns(), a doorbell or outside input.
  bool step();
  // One pass without scans or services: for an attachment that waits for its own engine (a command)
  // and must not be called back.
  void step_engines();
  // Last look before sleeping: doorbells only. True when there were any.
  bool scan();

  [[nodiscard]] std::uint64_t next_due_ns() const;  // device time, ~0 never
  [[nodiscard]] bool tokens_open() const;
  void publish_asleep(bool asleep);
  void publish_clock();
  [[nodiscard]] DeviceClock& clock() { return clock_; }
  [[nodiscard]] fabric::Fabric& fabric() { return fabric_; }

  [[nodiscard]] std::size_t nics() const { return nics_.size(); }
  [[nodiscard]] const std::string& nic_name(std::size_t i) const;
  [[nodiscard]] Engine& engine(std::size_t i);
  [[nodiscard]] Attachment& attachment(std::size_t i);

 private:
  class Nic;
  bool run_engines();
  void advance_clock();

  DeviceClock clock_;
  fabric::Fabric fabric_;
  std::vector<std::unique_ptr<Nic>> nics_;
  std::uint64_t published_ = 0;
};

}  // namespace ordma::softdev
