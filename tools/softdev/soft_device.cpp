// SPDX-License-Identifier: BSD-2-Clause
#include "soft_device.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "device/counters_text.hpp"
#include "vm/vm_attachment.hpp"

namespace ordma::softdev {
namespace {

// A network that was started for somebody who never came must not stay for ever.
constexpr std::uint64_t kFirstClientNs = 30'000'000'000;
constexpr std::uint64_t kCaptureFlushNs = 200'000'000;

EngineFactory engine_factory(const std::string& name) {
  if (name == "twin") return make_twin;
#ifdef ORDMA_HAVE_RTL
  if (name == "rtl") return make_rtl;
#endif
  throw std::runtime_error("engine '" + name + "' is not part of this build");
}

// Asks for a short time slice, which lets this thread preempt clients that poll: it works in bursts
// of microseconds, and everybody waits for it. Linux 6.12; elsewhere the call changes nothing.
void shorten_slice() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attr{};
  attr.size = sizeof attr;
  attr.nice = ::getpriority(PRIO_PROCESS, 0);
  attr.runtime = 100'000;  // ns; the shortest there is
  (void)::syscall(SYS_sched_setattr, 0, &attr, 0U);
}

void prepare_process() {
  // A descriptor per buffer, doorbell page and completion channel of every client.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  // Sleeps end when they are due, not up to 50 us later.
  (void)::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  shorten_slice();
  (void)::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

SoftDevice::SoftDevice(const Options& options) : options_(options) {
  log_set_level(options_.log_level);
  if (!options_.log_file.empty()) {
    if (const std::string error = log_to_file(options_.log_file); !error.empty()) {
      throw std::runtime_error(error);
    }
  }
  prepare_process();
  watch_signals();
  for (const auto& [gid, mac] : options_.neighbours) {
    if (!neighbours_.add(gid, mac)) throw std::runtime_error("too many neighbours");
  }
  network_ = std::make_unique<Network>(options_.fabric, options_.seed);
  runner_ = std::make_unique<Runner>(*network_, loop_);
  uplinks_ = std::make_unique<Uplinks>(*network_, loop_);
  start_capture();
  add_nics();
  listen();
  alone_since_ns_ = host_time_ns();
}

SoftDevice::~SoftDevice() {
  server_.reset();  // clients first: their objects are taken down by running engines
  uplinks_.reset();
  network_.reset();
  if (capture_ != nullptr && !capture_->close()) log_error("capture: {}", capture_->error());
}

void SoftDevice::watch_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  (void)::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  const auto watch = loop_.add(signals_.get(), EPOLLIN, [this](std::uint32_t) { stopped_ = true; });
  if (watch == 0) throw std::runtime_error(std::string("signalfd: ") + std::strerror(errno));
}

void SoftDevice::start_capture() {
  if (options_.pcap.empty()) return;
  std::string error;
  capture_ = fabric::PcapngWriter::create(options_.pcap, &error);
  if (capture_ == nullptr) throw std::runtime_error(error);
  network_->fabric().set_tap(capture_->tap());
}

void SoftDevice::add_nics() {
  native_.resize(options_.nics, nullptr);
  for (unsigned i = 0; i < options_.nics; ++i) {
    const unsigned number = options_.first + i;
    const Mac mac = nic_mac(number);
    for (const Gid& gid : {link_local_gid(mac), nic_ipv4_gid(number)}) {
      if (!neighbours_.add(gid, mac)) throw std::runtime_error("too many neighbours");
    }
  }
  for (unsigned i = 0; i < options_.nics; ++i) {
    const Mac mac = nic_mac(options_.first + i);
    EngineConfig config;
    config.mac = mac_to_register(mac);
    config.guid = guid_of(mac);
    config.seed = options_.seed + i;
    if (!options_.waves.empty()) config.waves = fmt::format("{}.{}", options_.waves, i);
    const auto vm = std::find_if(options_.vms.begin(), options_.vms.end(),
                                 [i](const VmOption& option) { return option.nic == i; });
    if (vm == options_.vms.end()) {
      add_native_nic(i, config);
    } else {
      add_vm_nic(*vm, fmt::format("ordma{}", options_.first + i), config);
    }
  }
}

void SoftDevice::add_native_nic(unsigned number, const EngineConfig& config) {
  const unsigned index = options_.first + number;
  NativeNicConfig native;
  native.name = fmt::format("ordma{}", index);
  native.mac = nic_mac(index);
  native.gids = {link_local_gid(native.mac), nic_ipv4_gid(index)};
  native.neighbours = &neighbours_;
  native.step_engines = [this] { network_->step_engines(); };
  auto nic = std::make_unique<NativeNic>(std::move(native));
  native_[number] = nic.get();
  if (!network_->add_nic(fmt::format("ordma{}", index), config, engine_factory(options_.engine),
                         std::move(nic))) {
    throw std::runtime_error(fmt::format("ordma{}: the fabric refuses this NIC", index));
  }
}

void SoftDevice::add_vm_nic(const VmOption& vm, const std::string& name,
                            const EngineConfig& config) {
  auto attachment = std::make_unique<VmAttachment>(loop_, name, vm.ram);
  VmAttachment& guest = *attachment;
  if (!network_->add_nic(name, config, engine_factory(options_.engine), std::move(attachment))) {
    throw std::runtime_error(name + ": the fabric refuses this NIC");
  }
  if (const std::string error = guest.listen(vm.socket); !error.empty()) {
    throw std::runtime_error(error);
  }
}

void SoftDevice::listen() {
  for (const UplinkOption& uplink : options_.uplinks) {
    const std::string error =
        uplink.listen ? uplinks_->listen(uplink.path) : uplinks_->connect(uplink.path);
    if (!error.empty()) throw std::runtime_error(error);
  }
  if (options_.socket.empty()) return;
  server_ = std::make_unique<NativeServer>(
      loop_, Session::Host{native_, [this] { return counters(); }});
  std::string error;
  if (!server_->listen(options_.socket, &error)) throw std::runtime_error(error);
}

void SoftDevice::tell_ready() {
  if (options_.ready_fd < 0) return;
  const char byte = '1';
  if (::write(options_.ready_fd, &byte, 1) != 1) {
    log_warn("ready descriptor {}: {}", options_.ready_fd, std::strerror(errno));
  }
  (void)::close(options_.ready_fd);
}

std::string SoftDevice::counters() {
  std::string text = counters_text(*network_);
  uplinks_->append_counters(&text);
  runner_->append_counters(&text);
  return text;
}

bool SoftDevice::finished() {
  uplinks_->refresh();
  const std::uint64_t now = host_time_ns();
  if (capture_ != nullptr && now - flushed_ns_ > kCaptureFlushNs) {
    flushed_ns_ = now;
    (void)capture_->flush();
  }
  if (stopped_) return true;
  if (options_.stay || server_ == nullptr) return false;
  if (server_->connections() != 0) {
    alone_since_ns_ = now;
    return false;
  }
  const std::uint64_t grace =
      server_->served() == 0 ? kFirstClientNs : options_.grace_ms * 1'000'000;
  return now - alone_since_ns_ > grace;
}

int SoftDevice::run() {
  tell_ready();
  runner_->run([this] { return finished(); });
  return 0;
}

}  // namespace ordma::softdev
