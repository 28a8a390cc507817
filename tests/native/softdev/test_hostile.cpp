// SPDX-License-Identifier: BSD-2-Clause
// Messages that no provider sends.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <random>

#include "rig.hpp"

using namespace ordma::softdev;
using namespace ordma::softdev::test;

namespace {

constexpr std::uint16_t kOps = ORDMA_NP_DESTROY_CHANNEL;

std::size_t request_bytes(std::uint16_t op) {
  switch (op) {
    case ORDMA_NP_HELLO: return sizeof(ordma_np_hello);
    case ORDMA_NP_BUF_ALLOC: return sizeof(ordma_np_buf_alloc);
    case ORDMA_NP_BUF_MAP: return sizeof(ordma_np_buf_map);
    case ORDMA_NP_QUERY_GID: return sizeof(ordma_np_gid_req);
    case ORDMA_NP_REG_MR: return sizeof(ordma_np_reg_mr);
    case ORDMA_NP_CREATE_CQ: return sizeof(ordma_np_create_cq);
    case ORDMA_NP_RESIZE_CQ: return sizeof(ordma_np_resize_cq);
    case ORDMA_NP_CREATE_SRQ: return sizeof(ordma_np_create_srq);
    case ORDMA_NP_MODIFY_SRQ: return sizeof(ordma_np_modify_srq);
    case ORDMA_NP_CREATE_QP: return sizeof(ordma_np_create_qp);
    case ORDMA_NP_MODIFY_QP: return sizeof(ordma_np_qp_attr);
    case ORDMA_NP_ATTACH_MCAST:
    case ORDMA_NP_DETACH_MCAST: return sizeof(ordma_np_mcast);
    case ORDMA_NP_RESOLVE_GID: return sizeof(ordma_np_resolve);
    case ORDMA_NP_COUNTERS: return sizeof(ordma_np_counters_req);
    case ORDMA_NP_QUERY_PORT:
    case ORDMA_NP_ALLOC_PD:
    case ORDMA_NP_QUERY_DEVICE:
    case ORDMA_NP_CREATE_CHANNEL: return 0;
    default: return sizeof(ordma_np_handle);
  }
}

std::vector<std::byte> message(std::uint16_t op, std::uint16_t version, std::uint32_t len,
                               std::size_t body) {
  ordma_np_hdr header{};
  header.op = op;
  header.version = version;
  header.seq = 5;
  header.len = len;
  std::vector<std::byte> bytes(sizeof header + body);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

// The soft-device still serves others.
void check_alive(Rig& rig) {
  Client other(rig);
  CHECK(other.pd() != 0);
}

}  // namespace

TEST_CASE("another version gets an answer that says so, then the end", "[hostile]") {
  Rig rig;
  Client client(rig);
  const auto reply = client.raw(message(ORDMA_NP_ALLOC_PD, ORDMA_NP_VERSION + 1, 0, 0));
  REQUIRE_FALSE(reply.closed);
  CHECK(reply.header.err == EPROTONOSUPPORT);
  CHECK(reply.header.version == ORDMA_NP_VERSION);
  CHECK(reply.header.seq == 5);
  CHECK(rig.server->connections() == 0);
  check_alive(rig);
}

TEST_CASE("every wrong length of every operation ends the connection", "[hostile]") {
  Rig rig({.nics = 1});
  for (std::uint16_t op = 1; op <= kOps; ++op) {
    const auto right = static_cast<std::uint32_t>(request_bytes(op));
    for (const auto& [len, body] : std::initializer_list<std::pair<std::uint32_t, std::size_t>>{
             {right + 1, right}, {right, right + 1}, {right + 8, right + 8}, {~0U, right}}) {
      Client client(rig);
      const auto reply = client.raw(message(op, ORDMA_NP_VERSION, len, body));
      REQUIRE(reply.header.err == EPROTO);
      CHECK(rig.server->connections() == 0);
    }
    if (right == 0) continue;
    Client client(rig);
    CHECK(client.raw(message(op, ORDMA_NP_VERSION, right - 1, right - 1)).header.err == EPROTO);
  }
  check_alive(rig);
}

TEST_CASE("headers cut short, unknown operations, messages too long", "[hostile]") {
  Rig rig;
  for (std::size_t bytes = 1; bytes < sizeof(ordma_np_hdr); ++bytes) {
    Client client(rig);
    CHECK(client.raw(std::vector<std::byte>(bytes)).header.err == EPROTO);
    CHECK(rig.server->connections() == 0);
  }
  for (const std::uint16_t op :
       {std::uint16_t{0}, std::uint16_t{kOps + 1}, std::uint16_t{0xffff}}) {
    Client client(rig);
    CHECK(client.raw(message(op, ORDMA_NP_VERSION, 0, 0)).header.err == EPROTO);
    CHECK(rig.server->connections() == 0);
  }
  Client client(rig);
  CHECK(client.raw(message(ORDMA_NP_ALLOC_PD, ORDMA_NP_VERSION, 0, 100'000)).closed);
  check_alive(rig);
}

TEST_CASE("descriptors where none belong are closed and refused", "[hostile]") {
  Rig rig;
  Client client(rig);
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const std::vector<int> one(1, write_end.get());
  CHECK(client.request(ORDMA_NP_ALLOC_PD, {}, one).header.err == EINVAL);
  CHECK(client.request(ORDMA_NP_QUERY_PORT, {}, std::vector<int>(4, write_end.get())).header.err ==
        EINVAL);
  Client other(rig);
  CHECK(other.request(ORDMA_NP_ALLOC_PD, {}, std::vector<int>(9, write_end.get())).closed);
  write_end.reset();
  char byte;
  CHECK(::read(read_end.get(), &byte, 1) == 0);  // no copy is left open anywhere
}

TEST_CASE("handles of other clients are unknown here", "[hostile]") {
  Rig rig({.nics = 1});
  Client owner(rig), thief(rig);
  // The owner has many of each, the thief none.
  const std::uint32_t pd = owner.pd();
  TestCq cq(owner, 4);
  TestQp qp(owner, pd, cq);
  std::byte* const memory = owner.buffer(4096);
  (void)owner.mr(pd, memory, 4096, 1);
  for (const std::uint16_t op :
       {ORDMA_NP_BUF_FREE, ORDMA_NP_PAGE_FD, ORDMA_NP_DEALLOC_PD, ORDMA_NP_DEREG_MR,
        ORDMA_NP_DESTROY_CQ, ORDMA_NP_QUERY_SRQ, ORDMA_NP_DESTROY_SRQ, ORDMA_NP_QUERY_QP,
        ORDMA_NP_DESTROY_QP}) {
    for (std::uint32_t number = 0; number < 64; ++number) {
      ordma_np_handle req{};
      req.handle = number;
      REQUIRE(thief.error(op, req) == ENOENT);
    }
  }
  ordma_np_qp_attr modify{};
  modify.handle = qp.resp.handle;
  CHECK(thief.error(ORDMA_NP_MODIFY_QP, modify) == ENOENT);
  // Mixed: the thief's own PD with the owner's CQ, and an MR in the owner's PD.
  TestCq own_cq(thief, 4);
  ordma_np_create_qp create{};
  create.pd = thief.pd();
  create.scq = own_cq.resp.handle;
  create.rcq = own_cq.resp.handle + 1;
  create.srq = ~0U;
  create.type = 2;
  CHECK(thief.error(ORDMA_NP_CREATE_QP, create) == ENOENT);
  create.rcq = own_cq.resp.handle;
  create.srq = 1;
  CHECK(thief.error(ORDMA_NP_CREATE_QP, create) == ENOENT);
  CHECK(owner.request(ORDMA_NP_QUERY_PORT, {}).header.err == 0);
}

TEST_CASE("doorbells for another client's queues are refused by the NIC", "[hostile]") {
  Rig rig({.nics = 1});
  Client owner(rig), thief(rig);
  TestCq cq(owner, 4), own(thief, 4);
  const std::uint64_t refused = rig.counter("ordma0", "db_refused");
  own.resp.drv.cqn = cq.resp.drv.cqn;
  own.arm();
  rig.settle();
  CHECK(rig.counter("ordma0", "db_refused") == refused + 1);
}

TEST_CASE("random bytes in every operation", "[hostile]") {
  Rig rig({.nics = 2});
  std::mt19937_64 random(4242);
  const auto client = std::make_unique<Client>(rig);
  const std::uint32_t pd = client->pd();
  TestCq cq(*client, 4);
  TestQp qp(*client, pd, cq);
  std::byte* const memory = client->buffer(1 << 16);
  // Half of the words are numbers that mean something, so that checks behind the first are reached.
  const std::uint64_t known[] = {0,          1,           2,    3,        4,   7,   16,
                                 pd,         va(memory),  4096, ~0ULL,    ~0U, 64,  5,
                                 1ULL << 32, 1ULL << 48,  6,    va(cq.ring)};
  unsigned accepted = 0;
  for (unsigned round = 0; round < 20'000; ++round) {
    const auto op = static_cast<std::uint16_t>(random() % kOps + 1);
    if (op == ORDMA_NP_BUF_ALLOC || op == ORDMA_NP_COUNTERS) continue;  // quota and time
    std::vector<std::byte> body(request_bytes(op));
    for (std::size_t i = 0; i < body.size(); i += 4) {
      const std::uint64_t word =
          random() % 4 != 0 ? known[random() % std::size(known)] : random();
      std::memcpy(body.data() + i, &word, std::min<std::size_t>(body.size() - i, 8));
    }
    const auto reply = client->request(op, body);
    REQUIRE_FALSE(reply.closed);
    INFO("op " << op << " err " << reply.header.err);
    REQUIRE(reply.header.err != EPROTO);
    accepted += reply.header.err == 0;
  }
  CHECK(accepted > 1000);
  CHECK_FALSE(rig.nic(0).dead());
  check_alive(rig);
}

TEST_CASE("a client that never reads its replies is dropped", "[hostile]") {
  Rig rig;
  const Fd fd(rig.connect());
  const auto request = message(ORDMA_NP_COUNTERS, ORDMA_NP_VERSION,
                               sizeof(ordma_np_counters_req), sizeof(ordma_np_counters_req));
  for (int i = 0; i < 5000 && rig.server->connections() != 0; ++i) {
    if (::write(fd.get(), request.data(), request.size()) < 0) break;
    rig.settle();
  }
  CHECK(rig.server->connections() == 0);
  check_alive(rig);
}
