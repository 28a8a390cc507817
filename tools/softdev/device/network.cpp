// SPDX-License-Identifier: BSD-2-Clause
#include "device/network.hpp"

#include <algorithm>
#include <utility>

namespace ordma::softdev {
namespace {

fabric::MacAddress mac_of(std::uint64_t mac) {
  fabric::MacAddress out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(mac >> (8 * i));
  return out;
}

}  // namespace

// One NIC: joins the engine's host port to its attachment and to the fabric.
class Network::Nic final : public HostPort {
 public:
  Nic(Network& network, std::string name, std::unique_ptr<Attachment> attachment)
      : network_(network), name_(std::move(name)), attachment_(std::move(attachment)) {}
  ~Nic() override { network_.fabric_.remove_port(port_); }

  bool start(const EngineConfig& config, EngineFactory factory) {
    port_ = network_.fabric_.add_port(
        mac_of(config.mac),
        [this](Frame frame, std::uint64_t) { engine_->packet_in(std::move(frame)); },
        {.name = name_});
    if (port_ == fabric::kNoPort) return false;
    engine_ = factory(config, *this);
    engine_->set_time(network_.clock_.now());
    attachment_->bind(*engine_);
    return true;
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Engine& engine() const { return *engine_; }
  [[nodiscard]] Attachment& attachment() const { return *attachment_; }

  bool read(std::uint64_t addr, std::span<std::byte> dst) override {
    return attachment_->read(addr, dst);
  }
  bool write(std::uint64_t addr, std::span<const std::byte> src, WriteKind kind) override {
    return attachment_->write(addr, src, kind);
  }
  void interrupt(unsigned vector) override { attachment_->interrupt(vector); }
  void packet_out(Frame frame) override {
    network_.fabric_.send(port_, std::move(frame), network_.clock_.now());
  }
  void register_changed(std::uint32_t offset, std::uint64_t value) override {
    attachment_->register_changed(offset, value);
  }
  void page_changed(std::uint32_t page, bool open, bool token) override {
    attachment_->page_changed(page, open, token);
  }

 private:
  Network& network_;
  std::string name_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Attachment> attachment_;
  fabric::PortId port_ = fabric::kNoPort;
};

Network::Network(fabric::FabricConfig config, std::uint64_t seed, HostTime host)
    : clock_(std::move(host)), fabric_(std::move(config), seed) {}

Network::~Network() {
  for (const auto& nic : nics_) nic->attachment().shutdown();
}

bool Network::add_nic(const std::string& name, const EngineConfig& config, EngineFactory factory,
                      std::unique_ptr<Attachment> attachment) {
  auto nic = std::make_unique<Nic>(*this, name, std::move(attachment));
  // In the list before it starts: bringing the driver up steps the engines.
  nics_.push_back(std::move(nic));
  if (nics_.back()->start(config, factory)) return true;
  nics_.pop_back();
  return false;
}

bool Network::scan() {
  bool found = false;
  for (const auto& nic : nics_) found |= nic->attachment().scan();
  return found;
}

bool Network::run_engines() {
  bool worked = false;
  for (const auto& nic : nics_) {
    nic->engine().set_time(clock_.now());
    worked |= nic->engine().step(kStepBudget);
  }
  std::uint64_t busy = 0;
  for (const auto& nic : nics_) busy = std::max(busy, nic->engine().take_busy_ns());
  if (busy != 0) clock_.advance_busy(busy);
  worked |= fabric_.advance(clock_.now()) != 0;
  return worked;
}

void Network::advance_clock() {
  std::uint64_t due = fabric_.next_due().value_or(~std::uint64_t{0});
  for (const auto& nic : nics_) due = std::min(due, nic->engine().next_timer_ns());
  clock_.follow_host(due);
}

bool Network::step() {
  bool worked = scan();
  worked |= run_engines();
  for (const auto& nic : nics_) worked |= nic->attachment().service(clock_.now());
  if (!worked) advance_clock();
  worked |= next_due_ns() <= clock_.now();
  publish_clock();
  return worked;
}

void Network::step_engines() {
  if (!run_engines()) advance_clock();
}

std::uint64_t Network::next_due_ns() const {
  std::uint64_t due = fabric_.next_due().value_or(~std::uint64_t{0});
  for (const auto& nic : nics_) {
    due = std::min({due, nic->engine().next_timer_ns(), nic->attachment().next_timer_ns()});
  }
  return due;
}

bool Network::tokens_open() const {
  return std::any_of(nics_.begin(), nics_.end(),
                     [](const auto& nic) { return nic->attachment().tokens_open(); });
}

void Network::publish_asleep(bool asleep) {
  for (const auto& nic : nics_) nic->attachment().publish_asleep(asleep);
}

void Network::publish_clock() {
  if (clock_.now() == published_) return;
  published_ = clock_.now();
  for (const auto& nic : nics_) nic->attachment().publish_clock(published_);
}

const std::string& Network::nic_name(std::size_t i) const { return nics_[i]->name(); }
Engine& Network::engine(std::size_t i) { return nics_[i]->engine(); }
Attachment& Network::attachment(std::size_t i) { return nics_[i]->attachment(); }

}  // namespace ordma::softdev
