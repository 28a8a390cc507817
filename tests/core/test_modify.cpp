// SPDX-License-Identifier: BSD-2-Clause
// ibv_modify_qp against a second table, written from the man page and the specification in another
// form: every type, every pair of states, every required bit taken away and every other bit added.
#include <catch2/catch.hpp>
#include <cstring>
#include <sstream>

#include "fake_nic.hpp"

using ordma::test::FakeNic;

namespace {

const std::map<std::string, std::uint32_t> kBits = {
    {"cur", 1},       {"sqd", 2},   {"access", 3},  {"pkey", 4},   {"port", 5},    {"qkey", 6},
    {"av", 7},        {"mtu", 8},   {"timeout", 9}, {"retry", 10}, {"rnr", 11},    {"rqpsn", 12},
    {"rdatomic", 13}, {"alt", 14},  {"minrnr", 15}, {"sqpsn", 16}, {"destrd", 17}, {"mig", 18},
    {"cap", 19},      {"dqpn", 20}, {"rate", 25}};

const std::map<std::string, unsigned> kTypes = {{"RC", ORDMA_QP_TYPE_RC},
                                                {"UC", ORDMA_QP_TYPE_UC},
                                                {"UD", ORDMA_QP_TYPE_UD},
                                                {"GSI", ORDMA_QP_TYPE_GSI},
                                                {"ETH", ORDMA_QP_TYPE_ETH}};

const char* const kStates[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

// type from to : required ; optional
const char* const kTable = R"(
RC  RESET INIT : pkey port access ;
UC  RESET INIT : pkey port access ;
UD  RESET INIT : pkey port qkey ;
GSI RESET INIT : pkey qkey ; port
ETH RESET INIT : ; port pkey
RC  INIT INIT : ; pkey port access
UC  INIT INIT : ; pkey port access
UD  INIT INIT : ; pkey port qkey
GSI INIT INIT : ; pkey port qkey
ETH INIT INIT : ; port pkey
RC  INIT RTR : av mtu dqpn rqpsn destrd minrnr ; alt access pkey
UC  INIT RTR : av mtu dqpn rqpsn ; alt access pkey
UD  INIT RTR : ; pkey qkey
GSI INIT RTR : ; pkey qkey
ETH INIT RTR : ;
RC  RTR RTS : sqpsn timeout retry rnr rdatomic ; cur alt access minrnr mig
UC  RTR RTS : sqpsn ; cur alt access mig
UD  RTR RTS : sqpsn ; cur qkey
GSI RTR RTS : sqpsn ; cur qkey
ETH RTR RTS : ; cur
RC  RTS RTS : ; cur access alt mig minrnr
UC  RTS RTS : ; cur access alt mig
UD  RTS RTS : ; cur qkey
GSI RTS RTS : ; cur qkey
ETH RTS RTS : ; cur
RC  RTS SQD : ; sqd
UC  RTS SQD : ; sqd
UD  RTS SQD : ; sqd
GSI RTS SQD : ; sqd
RC  SQD RTS : ; cur alt access minrnr mig
UC  SQD RTS : ; cur alt access mig
UD  SQD RTS : ; cur qkey
GSI SQD RTS : ; cur qkey
RC  SQD SQD : ; port av timeout retry rnr rdatomic destrd alt access pkey minrnr mig
UC  SQD SQD : ; av alt access pkey mig
UD  SQD SQD : ; pkey qkey
GSI SQD SQD : ; pkey qkey
UC  SQE RTS : ; cur access
UD  SQE RTS : ; cur qkey
GSI SQE RTS : ; cur qkey
)";

struct Rule {
  std::uint32_t required = 0, optional = 0;
};
using Key = std::tuple<unsigned, unsigned, unsigned>;

unsigned state_of(const std::string& name) {
  for (unsigned i = 0; i < 7; ++i) {
    if (name == kStates[i]) return i;
  }
  throw std::logic_error("state " + name);
}

std::map<Key, Rule> read_table() {
  std::map<Key, Rule> table;
  std::istringstream lines(kTable);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    std::istringstream words(line);
    std::string type, from, to, word;
    words >> type >> from >> to >> word;
    Rule rule;
    bool optional = false;
    while (words >> word) {
      if (word == ";") {
        optional = true;
      } else {
        (optional ? rule.optional : rule.required) |= 1u << kBits.at(word);
      }
    }
    table[{kTypes.at(type), state_of(from), state_of(to)}] = rule;
  }
  // Reset from everywhere, error from everywhere but reset, with no attribute.
  for (const auto& [name, type] : kTypes) {
    for (unsigned from = 0; from < 7; ++from) {
      table[{type, from, ORDMA_QP_STATE_RESET}] = {};
      if (from != ORDMA_QP_STATE_RESET) table[{type, from, ORDMA_QP_STATE_ERR}] = {};
    }
  }
  return table;
}

struct Fixture {
  Fixture() { nic.bring_up(); }

  // Attributes that are legal everywhere.
  static ordma_qp_attr good() {
    ordma_qp_attr a{};
    a.path_mtu = 3;
    a.qkey = 0x11111111;
    a.rq_psn = 0x123456;
    a.sq_psn = 0xabcdef;
    a.dest_qpn = 77;
    a.access_flags = 0xf;
    a.port_num = 1;
    a.max_rd_atomic = 4;
    a.max_dest_rd_atomic = 8;
    a.min_rnr_timer = 12;
    a.timeout = 14;
    a.retry_cnt = 6;
    a.rnr_retry = 5;
    a.en_sqd_async_notify = 1;
    a.ah.is_global = 1;
    a.ah.port_num = 1;
    a.ah.hop_limit = 3;
    a.ah.traffic_class = 104;
    a.ah.sl = 2;
    a.ah.flow_label = 0x12345;
    const u8 gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
    std::memcpy(a.ah.dgid, gid, 16);
    const u8 mac[6] = {2, 0, 0, 0, 0, 9};
    std::memcpy(a.ah.dmac, mac, 6);
    return a;
  }

  ordma_qp make(unsigned type, unsigned state = 0) {
    ordma_qp qp{};
    nic.make_qp(&qp, 5, static_cast<ordma_qp_type>(type));
    qp.state = state;
    return qp;
  }

  int check(const ordma_qp& qp, const ordma_qp_attr& attr, std::uint32_t mask) {
    const ordma_qp before = qp;
    ordma_qp_modify untouched;
    std::memset(&untouched, 0x5a, sizeof untouched);
    mod = untouched;
    const int err = ordma_qp_modify_check(&nic.core, &qp, &attr, mask, &mod);
    // Nothing changes on the QP, and on an error nothing at all.
    REQUIRE(std::memcmp(&before, &qp, sizeof qp) == 0);
    if (err) REQUIRE(std::memcmp(&untouched, &mod, sizeof mod) == 0);
    return err;
  }

  // Walks through check, command and done.
  int modify(ordma_qp& qp, const ordma_qp_attr& attr, std::uint32_t mask) {
    const int err = check(qp, attr, mask);
    if (err) return err;
    ordma_qp_modify_cmd(&qp, &mod, &image, 0x7000, &cmd);
    ordma_qp_modify_done(&nic.core, &qp, &mod);
    return 0;
  }

  static constexpr std::uint32_t kInit = ORDMA_ATTR_STATE | ORDMA_ATTR_PKEY_INDEX | ORDMA_ATTR_PORT;
  static constexpr std::uint32_t kRtr = ORDMA_ATTR_STATE | ORDMA_ATTR_AV | ORDMA_ATTR_PATH_MTU |
                                        ORDMA_ATTR_DEST_QPN | ORDMA_ATTR_RQ_PSN |
                                        ORDMA_ATTR_MAX_DEST_RD_ATOMIC | ORDMA_ATTR_MIN_RNR_TIMER;
  static constexpr std::uint32_t kRts = ORDMA_ATTR_STATE | ORDMA_ATTR_SQ_PSN | ORDMA_ATTR_TIMEOUT |
                                        ORDMA_ATTR_RETRY_CNT | ORDMA_ATTR_RNR_RETRY |
                                        ORDMA_ATTR_MAX_RD_ATOMIC;

  ordma_qp rts() {
    ordma_qp qp = make(ORDMA_QP_TYPE_RC);
    auto a = good();
    a.qp_state = ORDMA_QP_STATE_INIT;
    REQUIRE(modify(qp, a, kInit | ORDMA_ATTR_ACCESS_FLAGS) == 0);
    a.qp_state = ORDMA_QP_STATE_RTR;
    REQUIRE(modify(qp, a, kRtr) == 0);
    a.qp_state = ORDMA_QP_STATE_RTS;
    REQUIRE(modify(qp, a, kRts) == 0);
    return qp;
  }

  FakeNic nic;
  ordma_qp_modify mod{};
  ordma_qpc image{};
  ordma_cmd cmd{};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "every transition with every mask bit missing or extra: case_026") {
  const auto table = read_table();
  std::size_t checked = 0;
  for (const auto& [name, type] : kTypes) {
    for (unsigned from = 0; from < 7; ++from) {
      for (unsigned to = 0; to < 7; ++to) {
        const auto it = table.find({type, from, to});
        const bool exists = it != table.end();
        const Rule rule = exists ? it->second : Rule{};
        const ordma_qp qp = make(type, from);
        auto attr = good();
        attr.qp_state = to;
        attr.cur_qp_state = from;
        const std::uint32_t full = rule.required | ORDMA_ATTR_STATE;
        INFO(name << " " << kStates[from] << " -> " << kStates[to]);
        REQUIRE(check(qp, attr, full) == (exists ? 0 : -EINVAL));
        for (unsigned bit = 1; bit < 32; ++bit) {
          const std::uint32_t flag = 1u << bit;
          INFO("bit " << bit);
          int expected = -EINVAL;
          if (exists && rule.optional & flag)
            expected = flag == ORDMA_ATTR_ALT_PATH ? -EOPNOTSUPP : 0;
          if (rule.required & flag) {
            REQUIRE(check(qp, attr, full & ~flag) == -EINVAL);
          } else {
            REQUIRE(check(qp, attr, full | flag) == expected);
          }
          ++checked;
        }
        // Without IBV_QP_STATE the QP stays where it is.
        if (from == to) {
          REQUIRE(check(qp, attr, rule.required) == (exists ? 0 : -EINVAL));
          if (exists) REQUIRE(mod.to == from);
        }
      }
    }
  }
  CHECK(checked == 5 * 7 * 7 * 31);
}

TEST_CASE_METHOD(Fixture, "states and types that do not exist") {
  auto attr = good();
  for (const std::uint32_t state : {7u, 8u, 255u, ~0u}) {
    attr.qp_state = state;
    for (unsigned from = 0; from < 7; ++from) {
      CHECK(check(make(ORDMA_QP_TYPE_RC, from), attr, ORDMA_ATTR_STATE) == -EINVAL);
    }
  }
}

TEST_CASE_METHOD(Fixture, "a failed modify leaves state and attributes: case_026") {
  ordma_qp qp = rts();
  const ordma_qp before = qp;
  auto a = good();
  a.qp_state = ORDMA_QP_STATE_RTS;
  a.min_rnr_timer = 32;
  a.access_flags = 1;
  CHECK(modify(qp, a, ORDMA_ATTR_STATE | ORDMA_ATTR_ACCESS_FLAGS | ORDMA_ATTR_MIN_RNR_TIMER) ==
        -EINVAL);
  CHECK(std::memcmp(&before, &qp, sizeof qp) == 0);
}

TEST_CASE_METHOD(Fixture, "what RTS may change: case_027") {
  ordma_qp qp = rts();
  auto a = good();
  a.qp_state = ORDMA_QP_STATE_RTS;
  a.timeout = 20;
  CHECK(modify(qp, a, ORDMA_ATTR_STATE | ORDMA_ATTR_TIMEOUT) == -EINVAL);
  a.min_rnr_timer = 3;
  CHECK(modify(qp, a, ORDMA_ATTR_STATE | ORDMA_ATTR_MIN_RNR_TIMER) == 0);
  CHECK(ORDMA_GET(&image, QPC_MIN_RNR_TIMER) == 3);
  CHECK(ORDMA_GET(&image, QPC_MAX_RD_ATOMIC) == 4);
  const auto* args = reinterpret_cast<const ordma_cmd_qp*>(&cmd);
  CHECK(ORDMA_GET(args, CMD_QP_INIT_SQ) == 0);
  CHECK(ORDMA_GET(args, CMD_QP_INIT_RQ) == 0);
  CHECK(qp.attr.timeout == 14);
}

TEST_CASE_METHOD(Fixture, "ranges: case_028, case_034") {
  const auto init = make(ORDMA_QP_TYPE_RC, ORDMA_QP_STATE_INIT);
  const auto rtr = make(ORDMA_QP_TYPE_RC, ORDMA_QP_STATE_RTR);
  const auto reset = make(ORDMA_QP_TYPE_RC, ORDMA_QP_STATE_RESET);
  using A = ordma_qp_attr;
  auto with = [&](const ordma_qp& qp, unsigned to, std::uint32_t mask, auto&& change) {
    auto a = good();
    a.qp_state = to;
    change(a);
    return check(qp, a, mask);
  };
  auto to_init = [&](auto&& f) {
    return with(reset, ORDMA_QP_STATE_INIT, kInit | ORDMA_ATTR_ACCESS_FLAGS, f);
  };
  auto to_rtr = [&](auto&& f) { return with(init, ORDMA_QP_STATE_RTR, kRtr, f); };
  auto to_rts = [&](auto&& f) { return with(rtr, ORDMA_QP_STATE_RTS, kRts, f); };

  CHECK(to_init([](A&) {}) == 0);
  CHECK(to_init([](A& a) { a.port_num = 0; }) == -EINVAL);
  CHECK(to_init([](A& a) { a.port_num = 2; }) == -EINVAL);
  CHECK(to_init([](A& a) { a.pkey_index = 1; }) == -EINVAL);
  CHECK(to_init([](A& a) { a.access_flags = 0xff | 0x3ffu << 20; }) == 0);
  CHECK(to_init([](A& a) { a.access_flags = 0x100; }) == -EINVAL);
  CHECK(to_init([](A& a) { a.access_flags = 1u << 31; }) == -EINVAL);

  CHECK(to_rtr([](A&) {}) == 0);
  for (const std::uint32_t mtu : {0u, 6u, ~0u}) {
    CHECK(to_rtr([&](A& a) { a.path_mtu = mtu; }) == -EINVAL);
  }
  for (std::uint32_t active = 1; active <= 5; ++active) {
    ordma_core_set_active_mtu(&nic.core, active);
    for (std::uint32_t mtu = 1; mtu <= 5; ++mtu) {
      CHECK(to_rtr([&](A& a) { a.path_mtu = mtu; }) == (mtu <= active ? 0 : -EINVAL));
      if (mtu <= active) CHECK(mod.mtu_log == 7 + mtu);
    }
  }
  CHECK(to_rtr([](A& a) { a.min_rnr_timer = 31; }) == 0);
  CHECK(to_rtr([](A& a) { a.min_rnr_timer = 32; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.max_dest_rd_atomic = 16; }) == 0);
  CHECK(to_rtr([](A& a) { a.max_dest_rd_atomic = 17; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.max_dest_rd_atomic = 256; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.dest_qpn = 1u << 24; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.dest_qpn = 0xffffff; }) == -EINVAL);
  CHECK(to_rts([](A&) {}) == 0);
  CHECK(to_rts([](A& a) { a.retry_cnt = 7, a.rnr_retry = 7, a.timeout = 31; }) == 0);
  CHECK(to_rts([](A& a) { a.retry_cnt = 8; }) == -EINVAL);
  CHECK(to_rts([](A& a) { a.retry_cnt = 20; }) == -EINVAL);
  CHECK(to_rts([](A& a) { a.rnr_retry = 8; }) == -EINVAL);
  CHECK(to_rts([](A& a) { a.timeout = 32; }) == -EINVAL);
  CHECK(to_rts([](A& a) { a.timeout = 0; }) == 0);
  CHECK(to_rts([](A& a) { a.max_rd_atomic = 16; }) == 0);
  CHECK(to_rts([](A& a) { a.max_rd_atomic = 17; }) == -EINVAL);
  CHECK(to_rts([](A& a) { a.sq_psn = 0x1000001; }) == 0);
  CHECK(mod.attr.sq_psn == 1);
  // Values of attributes that are not in the mask do not matter.
  CHECK(to_rts([](A& a) { a.path_mtu = 99, a.ah.is_global = 0, a.port_num = 7; }) == 0);
  CHECK(with(rtr, ORDMA_QP_STATE_RTS, kRts | ORDMA_ATTR_PATH_MIG_STATE,
             [](A& a) { a.path_mig_state = 1; }) == -EOPNOTSUPP);
}

TEST_CASE_METHOD(Fixture, "address vectors: case_029, case_088") {
  const auto init = make(ORDMA_QP_TYPE_RC, ORDMA_QP_STATE_INIT);
  using A = ordma_qp_attr;
  auto to_rtr = [&](auto&& change) {
    auto a = good();
    a.qp_state = ORDMA_QP_STATE_RTR;
    change(a);
    return check(init, a, kRtr);
  };
  CHECK(to_rtr([](A& a) { a.ah.is_global = 0; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.ah.port_num = 2; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.ah.sl = 16; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.ah.sgid_index = 64; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.ah.sgid_index = 255; }) == -EINVAL);
  // Index 1 is an IPv6 address, index 2 is empty.
  CHECK(to_rtr([](A& a) { a.ah.sgid_index = 1; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.ah.sgid_index = 2; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.ah.dgid[0] = 0xfe; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.ah.dgid[0] = 0xfe, a.ah.sgid_index = 1; }) == 0);
  CHECK(to_rtr([](A& a) { a.ah.dgid[0] = 0xff, a.ah.sgid_index = 1; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.ah.dgid[12] = 224; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { std::memset(a.ah.dgid, 0, 16), a.ah.sgid_index = 1; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { std::memset(a.ah.dmac, 0, 6); }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.ah.dmac[0] = 1; }) == -EINVAL);
  CHECK(to_rtr([](A& a) { a.rq_psn = 0xff123456, a.ah.flow_label = 0xfff12345; }) == 0);
  CHECK(mod.attr.rq_psn == 0x123456);
  CHECK(mod.attr.ah.flow_label == 0x12345);
}

TEST_CASE_METHOD(Fixture, "privileged Q_Keys: case_074") {
  auto a = good();
  a.qp_state = ORDMA_QP_STATE_INIT;
  a.qkey = ORDMA_GSI_QKEY;
  ordma_qp qp = make(ORDMA_QP_TYPE_UD);
  CHECK(check(qp, a, kInit | ORDMA_ATTR_QKEY) == -EPERM);
  qp.init.privileged = true;
  CHECK(check(qp, a, kInit | ORDMA_ATTR_QKEY) == 0);
}

TEST_CASE_METHOD(Fixture, "current state") {
  auto a = good();
  a.qp_state = ORDMA_QP_STATE_RTS;
  const std::uint32_t mask = ORDMA_ATTR_STATE | ORDMA_ATTR_CUR_STATE;
  for (unsigned cur = 0; cur < 9; ++cur) {
    a.cur_qp_state = cur;
    CHECK(check(make(ORDMA_QP_TYPE_RC, ORDMA_QP_STATE_RTS), a, mask) == (cur == 3 ? 0 : -EINVAL));
    // The user saw the error completion before the driver saw the event.
    const int err = check(make(ORDMA_QP_TYPE_UD, ORDMA_QP_STATE_RTS), a, mask);
    CHECK(err == (cur == 3 || cur == ORDMA_QP_STATE_SQE ? 0 : -EINVAL));
    if (cur == ORDMA_QP_STATE_SQE) CHECK(mod.from == ORDMA_QP_STATE_SQE);
  }
}

TEST_CASE_METHOD(Fixture, "query gives back what was set: case_030, case_035") {
  ordma_qp qp = rts();
  ordma_qp_attr out{};
  ordma_qp_query(&qp, nullptr, &out);
  const auto a = good();
  CHECK(out.qp_state == ORDMA_QP_STATE_RTS);
  CHECK(out.path_mtu == a.path_mtu);
  CHECK(out.rq_psn == a.rq_psn);
  CHECK(out.sq_psn == a.sq_psn);
  CHECK(out.dest_qpn == a.dest_qpn);
  CHECK(out.access_flags == a.access_flags);
  CHECK(out.port_num == 1);
  CHECK(out.max_rd_atomic == a.max_rd_atomic);
  CHECK(out.max_dest_rd_atomic == a.max_dest_rd_atomic);
  CHECK(out.min_rnr_timer == a.min_rnr_timer);
  CHECK(out.timeout == a.timeout);
  CHECK(out.retry_cnt == a.retry_cnt);
  CHECK(out.rnr_retry == a.rnr_retry);
  CHECK(std::memcmp(&out.ah, &a.ah, sizeof a.ah) == 0);
  CHECK(qp.init.cap.max_send_wr == 16);
}

TEST_CASE_METHOD(Fixture, "context image of a connected QP") {
  ordma_qp qp = make(ORDMA_QP_TYPE_RC);
  auto a = good();
  const auto* args = reinterpret_cast<const ordma_cmd_qp*>(&cmd);
  a.qp_state = ORDMA_QP_STATE_INIT;
  REQUIRE(modify(qp, a, kInit | ORDMA_ATTR_ACCESS_FLAGS) == 0);
  CHECK(ORDMA_GET(&cmd, CMD_OPCODE) == ORDMA_CMD_OP_QP_MODIFY);
  CHECK(ORDMA_GET(&cmd, CMD_NUMBER) == 5);
  CHECK(ORDMA_GET(args, CMD_QP_STATE) == ORDMA_QP_STATE_INIT);
  CHECK(ORDMA_GET(args, CMD_QP_IMAGE) == 0x7000);
  CHECK(ORDMA_GET(&image, QPC_ACCESS) == 0xe);
  CHECK(ORDMA_GET(&image, QPC_MTU_LOG) == 0);
  a.qp_state = ORDMA_QP_STATE_RTR;
  REQUIRE(modify(qp, a, kRtr) == 0);
  CHECK(ORDMA_GET(args, CMD_QP_INIT_RQ) == 1);
  CHECK(ORDMA_GET(args, CMD_QP_INIT_SQ) == 0);
  CHECK(qp.rec.active == 0);
  a.qp_state = ORDMA_QP_STATE_RTS;
  REQUIRE(modify(qp, a, kRts) == 0);
  CHECK(ORDMA_GET(args, CMD_QP_INIT_RQ) == 0);
  CHECK(ORDMA_GET(args, CMD_QP_INIT_SQ) == 1);
  CHECK(ORDMA_GET(&image, QPC_QPN) == 5);
  CHECK(ORDMA_GET(&image, QPC_SQ_ADDR) == 0x10000);
  CHECK(ORDMA_GET(&image, QPC_MTU_LOG) == 10);
  CHECK(ORDMA_GET(&image, QPC_DEST_QPN) == 77);
  CHECK(ORDMA_GET(&image, QPC_SGID_INDEX) == 0);
  CHECK(ORDMA_GET(&image, QPC_HOP_LIMIT) == 3);
  CHECK(ORDMA_GET(&image, QPC_TCLASS) == 104);
  CHECK(ORDMA_GET(&image, QPC_SL) == 2);
  CHECK(ORDMA_GET(&image, QPC_DMAC) == 0x090000000002);
  CHECK(ORDMA_GET(&image, QPC_SPORT) >= 0xc000);
  CHECK(std::memcmp(reinterpret_cast<const u8*>(&image) + ORDMA_QPC_DGID_OFF, a.ah.dgid, 16) == 0);
  CHECK(ORDMA_GET(&image, QPC_FLOW_LABEL) == 0x12345);
  CHECK(ORDMA_GET(&image, QPC_SQ_PSN) == 0xabcdef);
  CHECK(ORDMA_GET(&image, QPC_RQ_PSN) == 0x123456);
  CHECK(ORDMA_GET(&image, QPC_MAX_RD_ATOMIC) == 4);
  CHECK(ORDMA_GET(&image, QPC_MAX_DEST_RD_ATOMIC) == 8);
  CHECK(ORDMA_GET(&image, QPC_MIN_RNR_TIMER) == 12);
  CHECK(ORDMA_GET(&image, QPC_SILENCE) == 67108864);
  CHECK(qp.rec.active == 1);
  CHECK(qp.rec.una_psn == 0xabcdef);
  CHECK(qp.rec.retry_cnt == 6);
  CHECK(qp.rec.rnr_retry == 5);
  CHECK(qp.rec.timeout == 14);
  a.qp_state = ORDMA_QP_STATE_RESET;
  REQUIRE(modify(qp, a, ORDMA_ATTR_STATE) == 0);
  CHECK(ORDMA_GET(&image, QPC_SILENCE) == 0);
  CHECK(ORDMA_GET(&image, QPC_DEST_QPN) == 0);
  CHECK(ORDMA_GET(&image, QPC_SQ_ADDR) == 0x10000);
  CHECK(qp.rec.active == 0);
  ordma_qp_attr out{};
  ordma_qp_query(&qp, nullptr, &out);
  CHECK(out.timeout == 0);
  CHECK(out.dest_qpn == 0);
}

TEST_CASE_METHOD(Fixture, "hop limit 0 is a default on the wire and 0 in the query: case_035") {
  ordma_qp qp = make(ORDMA_QP_TYPE_RC, ORDMA_QP_STATE_INIT);
  auto a = good();
  a.qp_state = ORDMA_QP_STATE_RTR;
  a.ah.hop_limit = 0;
  a.ah.udp_sport = 4242;
  REQUIRE(modify(qp, a, kRtr) == 0);
  CHECK(ORDMA_GET(&image, QPC_HOP_LIMIT) == 64);
  CHECK(ORDMA_GET(&image, QPC_SPORT) == 4242);
  CHECK(qp.attr.ah.hop_limit == 0);
}

TEST_CASE_METHOD(Fixture, "flows get different source ports") {
  std::map<std::uint64_t, int> ports;
  for (std::uint32_t dest = 2; dest < 514; ++dest) {
    ordma_qp qp = make(ORDMA_QP_TYPE_RC, ORDMA_QP_STATE_INIT);
    auto a = good();
    a.qp_state = ORDMA_QP_STATE_RTR;
    a.dest_qpn = dest;
    REQUIRE(modify(qp, a, kRtr) == 0);
    ++ports[ORDMA_GET(&image, QPC_SPORT)];
  }
  CHECK(ports.size() > 480);
  CHECK(ports.begin()->first >= 0xc000);
}

TEST_CASE_METHOD(Fixture, "context image of datagram and UC QPs") {
  auto a = good();
  ordma_qp ud = make(ORDMA_QP_TYPE_UD);
  a.qp_state = ORDMA_QP_STATE_INIT;
  REQUIRE(modify(ud, a, kInit | ORDMA_ATTR_QKEY) == 0);
  CHECK(ORDMA_GET(&image, QPC_QKEY) == 0x11111111);
  CHECK(ORDMA_GET(&image, QPC_MTU_LOG) == 12);
  CHECK(ORDMA_GET(&image, QPC_ACCESS) == 0);
  ordma_core_set_active_mtu(&nic.core, 3);
  a.qp_state = ORDMA_QP_STATE_RTR;
  REQUIRE(modify(ud, a, ORDMA_ATTR_STATE) == 0);
  CHECK(ORDMA_GET(&image, QPC_MTU_LOG) == 10);
  a.qp_state = ORDMA_QP_STATE_RTS;
  REQUIRE(modify(ud, a, ORDMA_ATTR_STATE | ORDMA_ATTR_SQ_PSN) == 0);
  CHECK(ORDMA_GET(&image, QPC_SQ_PSN) == 0xabcdef);
  CHECK(ORDMA_GET(&image, QPC_SILENCE) == 0);
  CHECK(ud.rec.active == 0);

  ordma_qp gsi = make(ORDMA_QP_TYPE_GSI);
  a.qp_state = ORDMA_QP_STATE_INIT;
  REQUIRE(modify(gsi, a, ORDMA_ATTR_STATE | ORDMA_ATTR_PKEY_INDEX | ORDMA_ATTR_QKEY) == 0);
  CHECK(ORDMA_GET(&image, QPC_QKEY) == ORDMA_GSI_QKEY);

  ordma_qp uc = make(ORDMA_QP_TYPE_UC, ORDMA_QP_STATE_INIT);
  a.qp_state = ORDMA_QP_STATE_RTR;
  REQUIRE(modify(uc, a,
                 ORDMA_ATTR_STATE | ORDMA_ATTR_AV | ORDMA_ATTR_PATH_MTU | ORDMA_ATTR_DEST_QPN |
                     ORDMA_ATTR_RQ_PSN | ORDMA_ATTR_ACCESS_FLAGS) == 0);
  CHECK(ORDMA_GET(&image, QPC_ACCESS) == ORDMA_ACCESS_REMOTE_WRITE);
  CHECK(ORDMA_GET(&image, QPC_DEST_QPN) == 77);
}

TEST_CASE_METHOD(Fixture, "recovery runs before the command that lets the QP send completes") {
  ordma_qp qp = make(ORDMA_QP_TYPE_RC, ORDMA_QP_STATE_RTR);
  auto a = good();
  a.qp_state = ORDMA_QP_STATE_RTS;
  REQUIRE(check(qp, a, kRts) == 0);
  ordma_qp_modify_cmd(&qp, &mod, &image, 0x7000, &cmd);
  nic.add_qp(&qp);
  ordma::test::Ev ev;
  ev.type = ORDMA_EVENT_TYPE_QP_NAK;
  ev.code = ORDMA_AETH_SYNDROME_NAK_PSN;
  ev.number = 5;
  ev.psn = 0xabcdf0;
  nic.event(ev);
  nic.drain();
  nic.step();
  CHECK(nic.recovery.size() == 1);
  ordma_qp_modify_done(&nic.core, &qp, &mod);
  CHECK(qp.rec.una_psn == 0xabcdf0);
  CHECK(qp.rec.active == 1);
}

TEST_CASE_METHOD(Fixture, "an error that overtakes done wins") {
  ordma_qp qp = make(ORDMA_QP_TYPE_RC, ORDMA_QP_STATE_RTR);
  auto a = good();
  a.qp_state = ORDMA_QP_STATE_RTS;
  REQUIRE(check(qp, a, kRts) == 0);
  ordma_qp_modify_cmd(&qp, &mod, &image, 0x7000, &cmd);
  ordma_qp_to_error(&qp, ORDMA_QP_STATE_ERR);
  ordma_qp_modify_done(&nic.core, &qp, &mod);
  CHECK(qp.state == ORDMA_QP_STATE_ERR);
  CHECK(qp.rec.active == 0);
  // Reset gets out of it whatever came in between.
  a.qp_state = ORDMA_QP_STATE_RESET;
  REQUIRE(check(qp, a, ORDMA_ATTR_STATE) == 0);
  ordma_qp_to_error(&qp, ORDMA_QP_STATE_ERR);
  ordma_qp_modify_done(&nic.core, &qp, &mod);
  CHECK(qp.state == ORDMA_QP_STATE_RESET);
}

TEST_CASE_METHOD(Fixture, "SQD changes retry limits and keeps the notification flag") {
  ordma_qp qp = rts();
  auto a = good();
  a.qp_state = ORDMA_QP_STATE_SQD;
  REQUIRE(modify(qp, a, ORDMA_ATTR_STATE) == 0);
  CHECK(qp.attr.en_sqd_async_notify == 0);
  CHECK(qp.rec.active == 1);
  a.timeout = 10;
  a.retry_cnt = 1;
  REQUIRE(modify(qp, a, ORDMA_ATTR_STATE | ORDMA_ATTR_TIMEOUT | ORDMA_ATTR_RETRY_CNT) == 0);
  CHECK(ORDMA_GET(&image, QPC_SILENCE) == 4096u << 10);
  CHECK(qp.rec.timeout == 10);
  CHECK(qp.rec.retry_cnt == 1);
  a.qp_state = ORDMA_QP_STATE_RTS;
  REQUIRE(modify(qp, a, ORDMA_ATTR_STATE) == 0);
  CHECK(qp.state == ORDMA_QP_STATE_RTS);
  CHECK(qp.rec.active == 1);
}

TEST_CASE_METHOD(Fixture, "random modifies keep every invariant") {
  const auto seed = GENERATE(range(1u, ordma::test::last_seed(8)));
  INFO("seed " << seed);
  std::mt19937 rng(seed);
  const unsigned types[] = {ORDMA_QP_TYPE_RC, ORDMA_QP_TYPE_UC, ORDMA_QP_TYPE_UD,
                            ORDMA_QP_TYPE_GSI};
  const auto table = read_table();
  ordma_qp qp = make(types[seed % 4]);
  int taken = 0;
  for (int i = 0; i < 30000; ++i) {
    auto a = good();
    a.qp_state = rng() % 7;
    a.cur_qp_state = qp.state;
    if (rng() % 4 == 0) a.timeout = rng() % 40;
    if (rng() % 4 == 0) a.retry_cnt = rng() % 9;
    if (rng() % 4 == 0) a.path_mtu = rng() % 7;
    const auto it = table.find({qp.init.type, qp.state, a.qp_state});
    std::uint32_t mask = (it == table.end() ? 0 : it->second.required) | ORDMA_ATTR_STATE;
    if (rng() % 3 == 0) mask ^= 1u << rng() % 26;
    const auto from = qp.state;
    const ordma_qp before = qp;
    const int err = modify(qp, a, mask);
    if (err) {
      REQUIRE(std::memcmp(&before, &qp, sizeof qp) == 0);
      continue;
    }
    ++taken;
    REQUIRE(table.contains({qp.init.type, from, qp.state}));
    const bool sends = qp.state == ORDMA_QP_STATE_RTS || qp.state == ORDMA_QP_STATE_SQD;
    REQUIRE((qp.rec.active != 0) == (sends && qp.init.type == ORDMA_QP_TYPE_RC));
    REQUIRE(qp.attr.timeout <= 31);
    REQUIRE(qp.attr.retry_cnt <= 7);
    REQUIRE(qp.attr.path_mtu <= 5);
    if (rng() % 50 == 0) ordma_qp_to_error(&qp, ORDMA_QP_STATE_ERR);
  }
  CHECK(taken > 3000);
}
