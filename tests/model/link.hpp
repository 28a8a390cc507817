// SPDX-License-Identifier: BSD-2-Clause
// A pair of nodes with one connected QP on each side.
#pragma once

#include <catch2/catch.hpp>

#include "bench.hpp"

namespace ordma::bench {

struct LinkOptions {
  QpOptions a, b;
  unsigned cq_log = 8;
  EngineConfig config = {};
  bool ipv6 = false;
  int vlan = -1;
};

class Link : public Pair {
 public:
  explicit Link(LinkOptions o = {}, std::size_t memory = 48u << 20)
      : Pair(o.config, memory), ca(a.create_cq(o.cq_log)), cb(b.create_cq(o.cq_log)) {
    if (o.ipv6 || o.vlan >= 0) {
      for (Node* n : {&a, &b}) {
        if (o.ipv6) n->gid = v6_gid(n->id + 1);
        (void)n->set_gid(0, n->gid, n->mac, o.vlan);
      }
    }
    if (o.a.scq == nullptr) o.a.scq = o.a.rcq = &ca;
    if (o.b.scq == nullptr) o.b.scq = o.b.rcq = &cb;
    qa = a.create_qp(o.a);
    qb = b.create_qp(o.b);
    connect(qa, qb);
    (void)a.events();
    (void)b.events();
  }
  // Runs for `ns` of device time with the CPU's recovery on both sides.
  void serve(std::uint64_t ns) {
    advance(ns, [&] {
      cpu_a.handle(now);
      cpu_b.handle(now);
    });
  }
  [[nodiscard]] Send write(const Mr& src, std::uint64_t bytes, const Mr& dst,
                           std::uint64_t offset = 0) const {
    return {.op = hw::WqeOp::kWrite,
            .sges = {{src.iova, static_cast<std::uint32_t>(bytes), src.key}},
            .remote_addr = dst.iova + offset,
            .rkey = dst.key};
  }
  [[nodiscard]] Send message(const Mr& src, std::uint64_t bytes) const {
    return {.op = hw::WqeOp::kSend,
            .sges = {{src.iova, static_cast<std::uint32_t>(bytes), src.key}}};
  }
  [[nodiscard]] Send read(const Mr& local, std::uint64_t bytes, const Mr& remote,
                          std::uint64_t offset = 0) const {
    Send s = write(local, bytes, remote, offset);
    s.op = hw::WqeOp::kRead;
    return s;
  }

  Cq ca, cb;
  Qp qa, qb;
  Cpu cpu_a{a}, cpu_b{b};
};

inline bool has_event(const std::vector<Event>& events, hw::EventType type,
                      std::optional<unsigned> code = std::nullopt) {
  for (const Event& e : events) {
    if (e.type == type && (!code || e.code == *code)) return true;
  }
  return false;
}

inline unsigned code_of(hw::AsyncCode c) { return static_cast<unsigned>(c); }
inline unsigned code_of(hw::WcStatus c) { return static_cast<unsigned>(c); }
inline unsigned code_of(hw::AethSyndrome c) { return static_cast<unsigned>(c); }

// BTH opcode of a captured frame without VLAN, IPv4.
inline std::size_t bth_at(std::span<const std::byte> frame) {
  std::size_t l3 = hw::eth::kBytes;
  auto type = hw::get(frame, hw::eth::type_);
  if (type == static_cast<std::uint64_t>(hw::Ethertype::kVlan)) {
    l3 += 4;
    type = hw::get(frame.subspan(4), hw::eth::type_);
  }
  const bool v4 = type == static_cast<std::uint64_t>(hw::Ethertype::kIpv4);
  return l3 + (v4 ? hw::ipv4::kBytes : hw::ipv6::kBytes) + hw::udp::kBytes;
}
inline hw::RoceOp opcode_of(std::span<const std::byte> frame) {
  return static_cast<hw::RoceOp>(hw::get(frame.subspan(bth_at(frame)), hw::bth::opcode));
}
inline std::uint32_t psn_of(std::span<const std::byte> frame) {
  return static_cast<std::uint32_t>(hw::get(frame.subspan(bth_at(frame)), hw::bth::psn));
}

}  // namespace ordma::bench

namespace Catch {
// Numbers instead of {?} in failures.
template <>
struct StringMaker<ordma::hw::WcStatus> {
  static std::string convert(ordma::hw::WcStatus v) { return std::string(ordma::hw::name(v)); }
};
template <>
struct StringMaker<ordma::hw::CmdStatus> {
  static std::string convert(ordma::hw::CmdStatus v) { return std::string(ordma::hw::name(v)); }
};
template <>
struct StringMaker<ordma::hw::WcOp> {
  static std::string convert(ordma::hw::WcOp v) { return std::string(ordma::hw::name(v)); }
};
template <>
struct StringMaker<ordma::hw::RoceOp> {
  static std::string convert(ordma::hw::RoceOp v) { return std::string(ordma::hw::name(v)); }
};
template <>
struct StringMaker<ordma::hw::EventType> {
  static std::string convert(ordma::hw::EventType v) { return std::string(ordma::hw::name(v)); }
};
}  // namespace Catch
