// SPDX-License-Identifier: BSD-2-Clause
#include "rig.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <sstream>

#include "device/counters_text.hpp"
#include "ordma_hw.hpp"

namespace ordma::softdev::test {
namespace {

fabric::FabricConfig parse(const std::string& text) {
  const auto parsed = fabric::parse_settings(text);
  if (!parsed) throw std::runtime_error(parsed.error);
  return parsed.config;
}

std::uint64_t kind_field(hw::DbKind kind) {
  return hw::place(hw::db::kind, static_cast<std::uint64_t>(kind));
}

}  // namespace

Rig::Rig(const RigOptions& options)
    : network(parse(options.fabric), options.seed, [this] { return host_ns; }) {
  (void)::signal(SIGPIPE, SIG_IGN);  // as the program does: a reader may be gone
  for (unsigned i = 0; i < options.nics; ++i) {
    const Mac mac = nic_mac(options.first + i);
    REQUIRE(neighbours.add(nic_ipv4_gid(options.first + i), mac));
    REQUIRE(neighbours.add(link_local_gid(mac), mac));
  }
  for (unsigned i = 0; i < options.nics; ++i) {
    NativeNicConfig native;
    native.name = "ordma" + std::to_string(i);
    native.mac = nic_mac(options.first + i);
    native.gids = {link_local_gid(native.mac), nic_ipv4_gid(options.first + i)};
    native.neighbours = &neighbours;
    native.step_engines = [this] { network.step_engines(); };
    native.host = [this] { return host_ns; };
    native.random = seeded_random(options.seed + i);
    native.watch = options.nics == 1 ? &checker : nullptr;
    EngineConfig config;
    config.mac = mac_to_register(native.mac);
    config.guid = guid_of(native.mac);
    config.seed = options.seed + i;
    config.limits = options.limits;
    auto nic = std::make_unique<NativeNic>(native);
    nics_.push_back(nic.get());
    REQUIRE(network.add_nic(native.name, config, make_twin, std::move(nic)));
  }
  server = std::make_unique<NativeServer>(
      loop, Session::Host{nics_, [this] { return counters_text(network); }});
}

Rig::~Rig() { server.reset(); }

void Rig::settle() {
  for (int quiet = 0, passes = 0; quiet < 3; ++passes) {
    REQUIRE(passes < 1'000'000);
    uplinks_.refresh();
    const bool handled = loop.wait(0) != 0;
    quiet = network.step() || handled ? 0 : quiet + 1;
  }
}

void Rig::run_for(std::uint64_t ns) {
  const std::uint64_t end = now() + ns;
  settle();
  while (now() < end) {
    const std::uint64_t due = std::min(network.next_due_ns(), end);
    host_ns += due > now() ? due - now() : 1;
    settle();
  }
}

int Rig::connect() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  REQUIRE(server->adopt(Fd(ends[0])));
  return ends[1];
}

std::uint64_t Rig::counter(const std::string& scope, const std::string& name) {
  std::istringstream text(counters_text(network));
  std::string line_scope, line_name;
  std::uint64_t value = 0;
  while (text >> line_scope >> line_name >> value) {
    if (line_scope == scope && line_name == name) return value;
  }
  FAIL("no counter " << scope << " " << name);
  return 0;
}

// ---------------------------------------------------------------------------------- client

Client::Client(Rig& rig, unsigned nic, bool with_hello) : rig_(rig), fd_(rig.connect()) {
  if (!with_hello) return;
  ordma_np_hello req{};
  req.nic = nic;
  hello = call<ordma_np_hello_resp>(ORDMA_NP_HELLO, req);
  REQUIRE(received.size() == 3);
  public_page = std::move(received[0]);
  kick = std::move(received[1]);
  async = std::move(received[2]);
}

Client::~Client() {
  hang_up();
  rig_.settle();
  for (const Map& map : maps_) ::munmap(map.memory, map.bytes);
}

void Client::hang_up() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Client::Raw Client::raw(std::span<const std::byte> message, std::span<const int> fds) {
  iovec io{const_cast<std::byte*>(message.data()), message.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * 16)> control{};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const cmsg = CMSG_FIRSTHDR(&header);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(cmsg), fds.data(), fds.size_bytes());
  }
  REQUIRE(::sendmsg(fd_, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(message.size()));
  rig_.settle();
  MessageSocket socket{Fd(::dup(fd_))};
  Raw reply;
  std::vector<std::byte> bytes;
  const auto result = socket.receive(&bytes, &reply.fds);
  REQUIRE(result != MessageSocket::Result::kNothing);
  reply.closed = result != MessageSocket::Result::kMessage;
  if (reply.closed) return reply;
  REQUIRE(bytes.size() >= sizeof reply.header);
  std::memcpy(&reply.header, bytes.data(), sizeof reply.header);
  reply.body.assign(bytes.begin() + sizeof reply.header, bytes.end());
  REQUIRE(reply.header.len == reply.body.size());
  return reply;
}

Client::Raw Client::request(std::uint16_t op, std::span<const std::byte> body,
                            std::span<const int> fds) {
  ordma_np_hdr header{};
  header.op = op;
  header.version = ORDMA_NP_VERSION;
  header.seq = ++seq_;
  header.len = static_cast<std::uint32_t>(body.size());
  std::vector<std::byte> message(sizeof header + body.size());
  std::memcpy(message.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(message.data() + sizeof header, body.data(), body.size());
  Raw reply = raw(message, fds);
  if (!reply.closed) {
    REQUIRE(reply.header.seq == seq_);
    REQUIRE(reply.header.op == op);
  }
  return reply;
}

void Client::check(const Raw& reply, std::size_t bytes) {
  REQUIRE_FALSE(reply.closed);
  INFO("op " << reply.header.op);
  REQUIRE(reply.header.err == 0);
  REQUIRE(reply.body.size() == bytes);
}

std::byte* Client::buffer(std::size_t bytes) {
  ordma_np_buf_alloc alloc{};
  alloc.len = bytes;
  const auto buf = call<ordma_np_buf_resp>(ORDMA_NP_BUF_ALLOC, alloc);
  REQUIRE(received.size() == 1);
  const std::size_t size = round_to_pages(bytes);
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, received[0].get(), 0);
  REQUIRE(memory != MAP_FAILED);
  maps_.push_back({static_cast<std::byte*>(memory), size});
  ordma_np_buf_map map{};
  map.buf = buf.buf;
  map.va = va(maps_.back().memory);
  REQUIRE(error(ORDMA_NP_BUF_MAP, map) == 0);
  return maps_.back().memory;
}

std::uint32_t Client::pd() {
  const Raw reply = request(ORDMA_NP_ALLOC_PD, {});
  ordma_np_handle handle{};
  check(reply, sizeof handle);
  std::memcpy(&handle, reply.body.data(), sizeof handle);
  return handle.handle;
}

ordma_np_mr Client::mr(std::uint32_t pd, std::byte* memory, std::size_t bytes,
                       std::uint32_t access) {
  ordma_np_reg_mr req{};
  req.pd = pd;
  req.access = access;
  req.va = req.iova = va(memory);
  req.len = bytes;
  return call<ordma_np_mr>(ORDMA_NP_REG_MR, req);
}

std::byte* Client::doorbell_page(std::uint32_t page) {
  for (const auto& [number, memory] : pages_) {
    if (number == page) return memory;
  }
  ordma_np_handle req{};
  req.handle = page;
  Raw reply = request(ORDMA_NP_PAGE_FD, req);
  REQUIRE(reply.header.err == 0);
  REQUIRE(reply.fds.size() == 1);
  void* const memory =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reply.fds[0].get(), 0);
  REQUIRE(memory != MAP_FAILED);
  maps_.push_back({static_cast<std::byte*>(memory), 4096});
  pages_.emplace_back(page, maps_.back().memory);
  return maps_.back().memory;
}

void Client::ring(const ordma_abi_db& db, std::uint64_t word) {
  auto* const slot = reinterpret_cast<std::uint64_t*>(doorbell_page(db.page)) + db.slot;
  __atomic_store_n(slot, word, __ATOMIC_RELEASE);
}

// ---------------------------------------------------------------------------------- queues

TestCq::TestCq(Client& client_in, std::uint32_t log_in, int channel_fd, std::uint64_t user_handle)
    : client(client_in), log(log_in) {
  ring = client.buffer(std::size_t{64} << log);
  record = client.buffer(4096);
  ordma_np_create_cq req{};
  req.user_handle = user_handle;
  req.cqe = 1U << log;
  req.has_channel = channel_fd >= 0;
  req.drv.ring_va = va(ring);
  req.drv.record_va = va(record);
  req.drv.ring_log = log;
  const std::span<const int> fds(&channel_fd, channel_fd >= 0 ? 1 : 0);
  resp = client.call<ordma_np_cq>(ORDMA_NP_CREATE_CQ, req, fds);
}

bool TestCq::poll(std::array<std::byte, 64>* cqe) {
  const std::byte* const at = ring + std::size_t{64} * (ci & ((1U << log) - 1));
  const std::uint64_t last =
      __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at + 56), __ATOMIC_ACQUIRE);
  const std::uint64_t phase = ((ci >> log) & 1) == 0 ? 1 : 0;
  if (hw::wget(last, hw::cqe::phase) != phase) return false;
  std::memcpy(cqe->data(), at, cqe->size());
  ci = (ci + 1) & 0xffffff;
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(record), std::uint64_t{ci}, __ATOMIC_RELEASE);
  return true;
}

void TestCq::arm(bool solicited) {
  client.ring(resp.drv.arm_db,
              hw::place(hw::db::index, ci) | hw::place(hw::db::arm_seq, ++arm_seq) |
                  hw::place(hw::db::solicited, solicited) |
                  hw::place(hw::db::number, resp.drv.cqn) |
                  kind_field(hw::DbKind::kCqArm));
}

TestQp::TestQp(Client& client_in, std::uint32_t pd, TestCq& cq, std::uint32_t type,
               std::uint64_t user_handle)
    : client(client_in) {
  sq = client.buffer(64 * 128);
  rq = client.buffer(64 * 32);
  ordma_np_create_qp req{};
  req.user_handle = user_handle;
  req.pd = pd;
  req.scq = req.rcq = cq.resp.handle;
  req.srq = ~0U;
  req.type = type;
  req.max_send_wr = req.max_recv_wr = 64;
  req.max_send_sge = req.max_recv_sge = 1;
  req.drv.sq_va = va(sq);
  req.drv.rq_va = va(rq);
  req.drv.sq_log = req.drv.rq_log = 6;
  req.drv.sq_stride_log = 7;
  req.drv.rq_stride_log = 5;
  resp = client.call<ordma_np_qp>(ORDMA_NP_CREATE_QP, req);
}

int TestQp::modify(const ordma_np_qp_attr& attr) {
  ordma_np_qp_attr req = attr;
  req.handle = resp.handle;
  return client.error(ORDMA_NP_MODIFY_QP, req);
}

void TestQp::to_init(std::uint32_t access) {
  ordma_np_qp_attr attr{};
  attr.mask = 1 | (1 << 4) | (1 << 5) | (1 << 3);
  attr.qp_state = 1;
  attr.port_num = 1;
  attr.qp_access_flags = access;
  REQUIRE(modify(attr) == 0);
}

void TestQp::to_rtr(const Gid& dgid, std::uint32_t dest_qpn) {
  ordma_np_qp_attr attr{};
  attr.mask = 1 | (1 << 7) | (1 << 8) | (1 << 20) | (1 << 12) | (1 << 17) | (1 << 15);
  attr.qp_state = 2;
  attr.path_mtu = 3;
  attr.dest_qp_num = dest_qpn;
  attr.rq_psn = 0x123456;
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 12;
  attr.ah.is_global = 1;
  attr.ah.port_num = 1;
  attr.ah.sgid_index = 1;
  attr.ah.hop_limit = 64;
  std::copy(dgid.begin(), dgid.end(), attr.ah.dgid);
  REQUIRE(modify(attr) == 0);
}

void TestQp::to_rts() {
  ordma_np_qp_attr attr{};
  attr.mask = 1 | (1 << 16) | (1 << 13) | (1 << 10) | (1 << 11) | (1 << 9);
  attr.qp_state = 3;
  attr.sq_psn = 0x123456;
  attr.max_rd_atomic = 4;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.timeout = 14;
  REQUIRE(modify(attr) == 0);
}

void TestQp::post_send(std::uint8_t opcode, const std::byte* memory, std::uint32_t length,
                       std::uint32_t lkey, std::uint64_t remote, std::uint32_t rkey) {
  const std::span<std::byte> wqe(sq + 128 * (sq_pi % 64), 128);
  std::fill(wqe.begin(), wqe.end(), std::byte{0});
  hw::set(wqe, hw::wqe::opcode, opcode);
  hw::set(wqe, hw::wqe::signaled, 1);
  hw::set(wqe, hw::wqe::num_sge, 1);
  hw::set(wqe, hw::wqe::index, sq_pi);
  hw::set(wqe, hw::wqe::length, length);
  hw::set(wqe, hw::wqe::remote_addr, remote);
  hw::set(wqe, hw::wqe::rkey, rkey);
  const auto sge = wqe.subspan(hw::kWqeDataOff, 16);
  hw::set(sge, hw::sge::addr, va(memory));
  hw::set(sge, hw::sge::length, length);
  hw::set(sge, hw::sge::lkey, lkey);
  ++sq_pi;
  client.ring(resp.drv.sq_db, hw::place(hw::db::index, sq_pi) |
                                  hw::place(hw::db::number, resp.drv.qpn) |
                                  kind_field(hw::DbKind::kSq));
}

void TestQp::post_recv(std::uint64_t wr_id, const std::byte* memory, std::uint32_t length,
                       std::uint32_t lkey) {
  const std::span<std::byte> rqe(rq + 32 * (rq_pi % 64), 32);
  std::fill(rqe.begin(), rqe.end(), std::byte{0});
  hw::set(rqe, hw::rqe::wr_id, wr_id);
  hw::set(rqe, hw::rqe::num_sge, 1);
  hw::set(rqe, hw::rqe::index, rq_pi);
  const auto sge = rqe.subspan(hw::kRqeDataOff, 16);
  hw::set(sge, hw::sge::addr, va(memory));
  hw::set(sge, hw::sge::length, length);
  hw::set(sge, hw::sge::lkey, lkey);
  ++rq_pi;
  client.ring(resp.drv.rq_db, hw::place(hw::db::index, rq_pi) |
                                  hw::place(hw::db::number, resp.drv.qpn) |
                                  kind_field(hw::DbKind::kRq));
}

void connect_pair(TestQp& a, unsigned nic_a, TestQp& b, unsigned nic_b, std::uint32_t access) {
  a.to_init(access);
  b.to_init(access);
  a.to_rtr(nic_ipv4_gid(nic_b), b.resp.drv.qpn);
  b.to_rtr(nic_ipv4_gid(nic_a), a.resp.drv.qpn);
  a.to_rts();
  b.to_rts();
}

}  // namespace ordma::softdev::test
