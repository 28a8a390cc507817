// SPDX-License-Identifier: BSD-2-Clause
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <sstream>

#include "fabric/pcapng.hpp"
#include "support.hpp"

using namespace ordma::fabric;
using namespace ordma::fabric::test;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> tshark_fields(const std::string& file, const std::string& fields) {
  // Payload bytes that look like RPC over RDMA are not the capture's fault.
  const CommandResult result =
      run_command("tshark -n -r " + file + " --disable-heuristic rpcrdma_infiniband -T fields "
                  "-E separator='|' " + fields + " 2>/dev/null");
  INFO(result.output);
  REQUIRE(result.status == 0);
  return lines_of(result.output);
}

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Two packets whose ICRC is known: a CNP and a UC SEND, each as IP packet plus ICRC.
Frame known_packet(bool cnp) {
  const std::vector<std::uint8_t> packet = from_hex(
      cnp ? "45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800000000"
            "0000000000000000000000000000000082fd002a"
          : "45010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ffff000000d300cf1710"
            "4630818be28935d90e9a95505401be885e50000078f353f3");
  Frame frame(14 + packet.size());
  const auto out = frame.writable();
  const Frame header = raw_frame(1, 2, 14);
  std::copy(header.bytes().begin(), header.bytes().end(), out.begin());
  out[12] = 0x08;
  out[13] = 0x00;
  std::copy(packet.begin(), packet.end(), out.begin() + 14);
  return frame;
}

}  // namespace

TEST_CASE("tshark decodes every frame of a capture with its interface, time and direction",
          "[pcapng]") {
  const TempDir dir;
  const std::string path = dir.file("plain.pcapng");
  std::string error;
  auto writer = PcapngWriter::create(path, &error);
  REQUIRE(writer != nullptr);
  Net net("delay_ns=1234567891");
  net.fabric.set_tap(writer->tap());
  for (std::uint32_t i = 0; i < 40; ++i) {
    RoceOptions options;
    options.ipv6 = i % 2 != 0;
    options.vlan = i % 4 == 3;
    options.psn = i;
    options.payload = (i * 100) & ~3u;
    net.fabric.send(net.port[1], roce_frame(options), i);
  }
  net.run_all();
  REQUIRE(writer->close());
  CHECK(writer->frames() == 80);

  const auto rows = tshark_fields(
      path, "-e frame.interface_name -e frame.time_epoch -e frame.packet_flags_direction "
            "-e infiniband.bth.psn -e frame.len");
  REQUIRE(rows.size() == 80);
  CHECK_THAT(rows[0], Contains("p1|0.000000000|"));
  CHECK_THAT(rows[39], Contains("p1|0.000000039|"));
  CHECK_THAT(rows[40], Contains("p2|1.234567891|"));
  CHECK_THAT(rows[79], Contains("p2|1.234567930|"));
  CHECK_THAT(rows[0], Contains("2|0|") || Contains("0x00000002|0|"));
  CHECK_THAT(rows[40], Contains("1|0|") || Contains("0x00000001|0|"));
  CHECK_THAT(rows[79], Contains("|39|"));
  CHECK(tshark_fields(path, "-e frame.number -Y '_ws.malformed || _ws.expert.severity >= error'")
            .empty());
}

TEST_CASE("comments tell planted faults from real ones", "[pcapng]") {
  const TempDir dir;
  const std::string path = dir.file("faults.pcapng");
  std::string error;
  auto writer = PcapngWriter::create(path, &error);
  REQUIRE(writer != nullptr);
  Net net("k=2,select=modulo,rate_gbps=8,overhead=0,path1.loss=1,ecn=1100,port_rate_gbps=8,"
          "port_queue=1200");
  net.fabric.set_tap(writer->tap());
  net.fabric.set_filter([](const FilterContext& context) {
    FilterVerdict verdict;
    verdict.dup = psn_of(context.bytes) == 3;
    if (psn_of(context.bytes) == 2) {
      verdict.corrupt_bit = 70 * 8;
    }
    return verdict;
  });
  for (std::uint32_t i = 0; i < 4; ++i) {
    RoceOptions options;
    options.psn = i;
    options.traffic_class = 2;
    options.source_port = i == 0 ? 1 : 0;
    options.payload = 600;
    net.fabric.send(net.port[1], roce_frame(options), 0);
  }
  net.run_all();
  REQUIRE(writer->close());
  const auto rows = tshark_fields(path, "-e frame.interface_name -e infiniband.bth.psn "
                                        "-e frame.comment");
  const auto has = [&](const std::string& row) {
    INFO(row);
    CHECK(std::find(rows.begin(), rows.end(), row) != rows.end());
  };
  has("p1|0|drop: loss, path 1");
  has("p1|1|");
  has("p1|2|corrupt, path 0");
  has("p2|2|corrupt, path 0");
  has("p1|3|dup, mark, path 0");
  has("p2|3|mark, path 0");
  has("p2|3|drop: queue, dup, mark, path 0");
}

TEST_CASE("a capture is a pure function of the frames and survives many flushes", "[pcapng]") {
  const TempDir dir;
  std::string captures[2];
  for (std::string& capture : captures) {
    const std::string path = dir.file("big.pcapng");
    std::string error;
    auto writer = PcapngWriter::create(path, &error);
    REQUIRE(writer != nullptr);
    Net net("loss=0.1");
    net.fabric.set_tap(writer->tap());
    for (std::uint32_t i = 0; i < 500; ++i) {
      net.fabric.send(net.port[1], raw_frame(1, 2, 9000 - i, i), i);
      net.fabric.advance(i);
    }
    REQUIRE(writer->close());
    capture = slurp(path);
    CHECK(capture.size() > 2 * PcapngWriter::kBufferBytes);
    CHECK(tshark_fields(path, "-e frame.number").size() == writer->frames());
  }
  CHECK(captures[0] == captures[1]);
}

TEST_CASE("a full or missing disk is reported, never fatal", "[pcapng]") {
  std::string error;
  CHECK(PcapngWriter::create("/nonexistent/x.pcapng", &error) == nullptr);
  CHECK_THAT(error, Contains("/nonexistent/x.pcapng"));
  auto writer = PcapngWriter::create("/dev/full", &error);
  REQUIRE(writer != nullptr);
  const std::uint32_t interface = writer->add_interface("x");
  for (int i = 0; i < 100; ++i) {
    writer->write_frame(interface, 0, raw_frame(1, 2, 9000).bytes(),
                        PcapngWriter::Direction::kUnknown);
  }
  CHECK_FALSE(writer->close());
  CHECK_THAT(writer->error(), Contains("No space left"));
}

TEST_CASE("the packet oracle accepts good frames and names a corrupted one", "[pcapng]") {
  const TempDir dir;
  const auto check = [&](bool corrupt, const std::string& flags) {
    const std::string path = dir.file("oracle.pcapng");
    std::string error;
    auto writer = PcapngWriter::create(path, &error);
    REQUIRE(writer != nullptr);
    Net net("");
    net.fabric.set_tap(writer->tap());
    if (corrupt) {
      net.fabric.set_filter([](const FilterContext&) {
        FilterVerdict verdict;
        verdict.corrupt_bit = 60 * 8 + 1;
        return verdict;
      });
    }
    net.fabric.send(net.port[1], known_packet(true), 0);
    net.fabric.send(net.port[1], known_packet(false), 0);
    net.run_all();
    REQUIRE(writer->close());
    return run_command(std::string(ORDMA_PYTHON) + " " + ORDMA_WIRECHECK + " " + flags + " " +
                       path);
  };
  const CommandResult good = check(false, "");
  INFO(good.output);
  CHECK(good.status == 0);
  CHECK_THAT(good.output, Contains("CNP") && Contains("UC_SEND_ONLY"));
  const CommandResult bad = check(true, "");
  INFO(bad.output);
  CHECK(bad.status == 1);
  CHECK_THAT(bad.output, Contains("frame 3") && Contains("ICRC"));
  CHECK(check(true, "--allow-corrupt").status == 0);
}
