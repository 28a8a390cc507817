// SPDX-License-Identifier: BSD-2-Clause
// Inline data.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "checks.hpp"

using namespace ordma::test;

namespace {

// What a QP of this size says it can; nullopt when it cannot be made.
std::optional<std::uint32_t> inline_of(End& end, ibv_qp_type type, std::uint32_t asked) {
  ibv_qp_init_attr attr{};
  attr.qp_type = type;
  attr.send_cq = attr.recv_cq = end.scq.get();
  attr.cap = {1, 1, 1, 1, asked};
  errno = 0;
  Qp qp(ibv_create_qp(end.pd.get(), &attr));
  if (qp == nullptr) {
    CHECK(errno == EINVAL);
    return std::nullopt;
  }
  CHECK(attr.cap.max_inline_data >= asked);
  return attr.cap.max_inline_data;
}

// As programs find it, since no query tells.
std::uint32_t largest(End& end, ibv_qp_type type) {
  std::uint32_t low = 0, high = 1 << 16;
  while (low + 1 < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    (inline_of(end, type, middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

TEST_CASE("case_099 the largest inline size can be searched for", "[rc][ud]") {
  End end(device_names().at(0));
  const std::uint32_t rc = largest(end, IBV_QPT_RC);
  CHECK(rc >= 236);  // what the latency tests of perftest ask for
  CHECK(largest(end, IBV_QPT_UC) == rc);
  CHECK(largest(end, IBV_QPT_UD) == rc);
  for (std::uint32_t asked = 0; asked <= rc; asked += 7) {
    CHECK(inline_of(end, IBV_QPT_RC, asked).has_value());
  }
}

TEST_CASE("case_099 data is taken when posted, and no lkey is looked at", "[rc]") {
  const bool loopback = both_ways();
  const std::uint32_t size = GENERATE(0, 1, 7, 8, 31, 32, 33, 60, 236, 448);
  EndOptions options;
  options.inline_data = size;
  Pair p(loopback, options);
  Buffer to(p.b.pd.get(), 1024);
  std::vector<std::uint8_t> bytes(size + 1, 0x5a);
  // On the stack of nobody's MR, with a key of nobody's.
  const std::array sges{ibv_sge{reinterpret_cast<std::uint64_t>(bytes.data()), size, 0xbadbad}};
  REQUIRE(p.a.post_send(write_wr(1, to, 0, IBV_SEND_SIGNALED | IBV_SEND_INLINE), sges) == 0);
  std::fill(bytes.begin(), bytes.end(), std::uint8_t{0xff});
  CAPTURE(loopback, size);
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  CHECK(to.all(0x5a, 0, size));
  CHECK(to.all(0, size, 1024 - size));
}

TEST_CASE("case_099 every slot of the queue keeps its own inline data", "[rc]") {
  const bool loopback = both_ways();
  EndOptions options;
  options.inline_data = 200;
  options.send_wr = 64;
  Pair p(loopback, options);
  Buffer to(p.b.pd.get(), 200 * 64);
  for (std::uint64_t i = 0; i < 64; ++i) {
    std::array<std::uint8_t, 200> bytes;
    bytes.fill(static_cast<std::uint8_t>(i + 1));
    const std::array sges{ibv_sge{reinterpret_cast<std::uint64_t>(bytes.data()), 100, 0},
                          ibv_sge{reinterpret_cast<std::uint64_t>(bytes.data()) + 100, 100, 0}};
    auto wr = write_wr(i, to, 200 * i, IBV_SEND_INLINE | (i == 63 ? unsigned{IBV_SEND_SIGNALED} : 0u));
    REQUIRE(p.a.post_send(wr, sges) == 0);
  }
  REQUIRE(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(to.all(static_cast<std::uint8_t>(i + 1), 200 * i, 200));
  }
}

TEST_CASE("case_099 inline with SEND, immediate and READ", "[rc]") {
  const bool loopback = both_ways();
  Pair p(loopback);
  Buffer to(p.b.pd.get(), 64);
  std::array<char, 8> text{'i', 'n', 'l', 'i', 'n', 'e', '!', 0};
  const std::array sges{ibv_sge{reinterpret_cast<std::uint64_t>(text.data()), 8, 0}};
  REQUIRE(p.b.post_recv(1, std::array{to.sge(0, 64)}) == 0);
  auto wr = send_wr(2, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  REQUIRE(p.a.post_send(wr, sges) == 0);
  CHECK(status(p.a.wait_send()) == IBV_WC_SUCCESS);
  const auto r = p.b.wait_recv();
  REQUIRE(status(r) == IBV_WC_SUCCESS);
  CHECK(r->byte_len == 8);
  CHECK(std::memcmp(to.data(), text.data(), 8) == 0);
  auto read = read_wr(3, to);
  read.send_flags |= IBV_SEND_INLINE;
  CHECK(p.a.post_send(read, sges) == EINVAL);
}
