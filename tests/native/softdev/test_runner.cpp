// SPDX-License-Identifier: BSD-2-Clause
// Sleeping and waking, on the real clock with a real second thread.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <random>
#include <thread>

#include "device/doorbell_scanner.hpp"
#include "device/public_page.hpp"
#include "device/runner.hpp"
#include "fake_engine.hpp"
#include "ordma_hw.hpp"

using namespace ordma;
using namespace ordma::softdev;
using test::FakeEngine;
using std::chrono::steady_clock;

namespace {

// Doorbell page 1 and the public page, in this process.
class PageAttachment final : public Attachment {
 public:
  explicit PageAttachment(bool token) : token_(token) {}
  void bind(Engine& engine) override {
    engine_ = &engine;
    scanner_.open(1, reinterpret_cast<std::byte*>(words.data()), token_);
  }
  void shutdown() override {}
  bool read(std::uint64_t, std::span<std::byte>) override { return false; }
  bool write(std::uint64_t, std::span<const std::byte>, WriteKind) override { return false; }
  void interrupt(unsigned) override {}
  void register_changed(std::uint32_t, std::uint64_t) override {}
  void page_changed(std::uint32_t, bool, bool) override {}
  bool scan() override { return scanner_.scan(*engine_); }
  bool service(std::uint64_t) override { return false; }
  std::uint64_t next_timer_ns() const override { return ~std::uint64_t{0}; }
  bool tokens_open() const override { return scanner_.tokens_open(); }
  void publish_asleep(bool asleep) override { page_.set_asleep(asleep); }
  void publish_clock(std::uint64_t now_ns) override { page_.set_clock(now_ns); }
  void append_counters(std::string_view, std::string*) override {}

  [[nodiscard]] bool asleep() const {
    return __atomic_load_n(&published[0], __ATOMIC_RELAXED) != 0;
  }
  [[nodiscard]] std::uint64_t clock() const {
    return __atomic_load_n(&published[1], __ATOMIC_RELAXED);
  }

  alignas(4096) std::array<std::uint64_t, 512> words{};
  alignas(4096) std::array<std::uint64_t, 512> published{};

 private:
  bool token_;
  Engine* engine_ = nullptr;
  DoorbellScanner scanner_;
  PublicPage page_{reinterpret_cast<std::byte*>(published.data())};
};

FakeEngine* made_engine = nullptr;

std::unique_ptr<Engine> make_fake(const EngineConfig&, HostPort&) {
  auto engine = std::make_unique<FakeEngine>();
  made_engine = engine.get();
  return engine;
}

struct Machine {
  explicit Machine(bool token) : network({}, 1) {
    auto attachment = std::make_unique<PageAttachment>(token);
    pages = attachment.get();
    EngineConfig config;
    config.mac = 0x020202;
    REQUIRE(network.add_nic("fake", config, make_fake, std::move(attachment)));
    engine = made_engine;
    kick.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    const int fd = kick.get();
    REQUIRE(loop.add(fd, EPOLLIN, [fd](std::uint32_t) {
      std::uint64_t count;
      (void)!::read(fd, &count, sizeof count);
    }) != 0);
  }
  void ring_kick() const {
    const std::uint64_t one = 1;
    (void)!::write(kick.get(), &one, sizeof one);
  }

  Network network;
  EventLoop loop;
  Runner runner{network, loop};
  PageAttachment* pages = nullptr;
  FakeEngine* engine = nullptr;
  Fd kick;
};

std::uint64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Waits until the engine got `count` doorbells; false after ten seconds.
bool noticed(const Machine& machine, std::uint64_t count) {
  const auto end = steady_clock::now() + std::chrono::seconds(10);
  while (machine.engine->rung.load(std::memory_order_acquire) < count) {
    if (steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

TEST_CASE("no doorbell is lost between waking and sleeping", "[runner]") {
  Machine machine(false);
  std::atomic<bool> stop = false;
  bool all_noticed = true;
  std::uint64_t kicks = 0;
  std::thread poster([&] {
    std::mt19937 random(1);
    constexpr std::uint64_t kRounds = 20'000;
    for (std::uint64_t i = 1; i <= kRounds && all_noticed; ++i) {
      // Around the moment at which the runner goes to sleep, and well away from it.
      const auto wait = std::chrono::nanoseconds(random() % (2 * Runner::kSpinNs));
      for (const auto end = steady_clock::now() + wait; steady_clock::now() < end;) {
      }
      __atomic_store_n(&machine.pages->words[i % 512], i, __ATOMIC_RELEASE);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (machine.pages->asleep()) {
        ++kicks;
        machine.ring_kick();
      }
      all_noticed = noticed(machine, i);
    }
    stop = true;
    machine.ring_kick();
  });
  // A lost wake-up would sleep for a minute: the poster's ten seconds tell.
  while (!stop) machine.runner.round(60'000'000'000);
  poster.join();
  CHECK(all_noticed);
  CHECK(machine.engine->rung == 20'000);
  CHECK(kicks > 0);
}

TEST_CASE("without the kick the same poster is noticed only at the next heartbeat", "[runner]") {
  Machine machine(false);
  std::atomic<bool> stop = false;
  std::uint64_t slow = 0;
  std::thread poster([&] {
    for (std::uint64_t i = 1; i <= 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const auto begin = steady_clock::now();
      __atomic_store_n(&machine.pages->words[i], i, __ATOMIC_RELEASE);
      (void)noticed(machine, i);
      slow += steady_clock::now() - begin > std::chrono::milliseconds(10);
    }
    stop = true;
    machine.ring_kick();
  });
  while (!stop) machine.runner.round(30'000'000);
  poster.join();
  CHECK(slow >= 10);
}

TEST_CASE("token pages are looked at without a kick", "[runner]") {
  Machine machine(true);
  std::atomic<bool> stop = false;
  bool all_noticed = true;
  std::thread poster([&] {
    const std::uint64_t word = (std::uint64_t{1} << 63) | (std::uint64_t{8} << 59) |
                               (std::uint64_t{1} << 31);
    for (std::uint64_t i = 0; i < 100 && all_noticed; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      __atomic_store_n(&machine.pages->words[i], word, __ATOMIC_RELEASE);
      all_noticed = noticed(machine, i + 1);
    }
    stop = true;
    machine.ring_kick();
  });
  while (!stop) machine.runner.round(60'000'000'000);
  poster.join();
  CHECK(all_noticed);
}

TEST_CASE("an idle soft-device costs little and keeps its clock alive", "[runner]") {
  Machine machine(false);
  const auto begin = steady_clock::now();
  const std::uint64_t cpu = thread_cpu_ns();
  machine.runner.run([&] { return steady_clock::now() - begin > std::chrono::milliseconds(1600); });
  const auto elapsed = std::chrono::nanoseconds(steady_clock::now() - begin).count();
  const std::uint64_t used = thread_cpu_ns() - cpu;
  INFO(used << " ns of " << elapsed);
  CHECK(used * 20 < static_cast<std::uint64_t>(elapsed));
  // The last heartbeat is not older than its period, with room for a busy machine.
  CHECK(machine.pages->clock() > static_cast<std::uint64_t>(elapsed) / 2);
}
