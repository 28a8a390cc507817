// SPDX-License-Identifier: BSD-2-Clause
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "settings.hpp"
#include "support.hpp"

using namespace ordma::fabric;
using namespace ordma::fabric::test;
using Catch::Matchers::Contains;

TEST_CASE("every key of the command line form lands in its field", "[config]") {
  const FabricConfig c = config(
      "k=4,select=modulo,mtu=4200,rate_gbps=12.5,overhead=20,delay_ns=1.5us,jitter_ns=300,"
      "loss=0.1%,burst_loss=0.01:50%,dup=0.002,reorder=0.03:2ms,corrupt=1e-4,queue=64k,ecn=30000,"
      "trim=40000,trim_dscp=13,trim_from=4,trim_keep=36,down=1@5ms..10ms+2@1s..,down=0@7..8,"
      "port_rate_gbps=100,port_queue=1M,port_ecn=100k,buffer=1G");
  CHECK(c.base.k == 4);
  CHECK(c.base.select == PathSelect::kModulo);
  CHECK(c.base.mtu == 4200);
  const PathConfig& p = c.base.path;
  CHECK(p.rate_mbps == 12500);
  CHECK(p.overhead_bytes == 20);
  CHECK(p.delay_ns == 1500);
  CHECK(p.jitter_ns == 300);
  CHECK(p.loss == Approx(0.001));
  CHECK(p.burst_enter == 0.01);
  CHECK(p.burst_leave == 0.5);
  CHECK(p.dup == 0.002);
  CHECK(p.reorder == 0.03);
  CHECK(p.reorder_ns == 2'000'000);
  CHECK(p.corrupt == 1e-4);
  CHECK(p.queue_bytes == 65536u);
  CHECK(p.ecn_bytes == 30000u);
  CHECK(p.trim_bytes == 40000u);
  CHECK(p.trim_dscp == 13);
  CHECK(p.trim_from_dscp == 4);
  CHECK(p.trim_keep_bytes == 36);
  const std::vector<DownWindow> down = {
      {1, 5'000'000, 10'000'000}, {2, 1'000'000'000, UINT64_MAX}, {0, 7, 8}};
  CHECK(c.base.down == down);
  CHECK(c.port_rate_mbps == 100000);
  CHECK(c.port_queue_bytes == 1u << 20);
  CHECK(c.port_ecn_bytes == 102400u);
  CHECK(c.buffer_bytes == 1u << 30);
}

TEST_CASE("the empty configuration is a plain wire", "[config]") {
  const FabricConfig c = config("");
  CHECK(c.base.k == 1);
  CHECK(c.base.path == PathConfig{});
  CHECK(c.overrides.empty());
}

TEST_CASE("overrides: path beats pair beats base, later beats earlier", "[config]") {
  const FabricConfig c = config(
      "k=3,loss=0.1,path1.loss=0.2,a:b/loss=0.3,a:*/path2.loss=0.4,a:b/path2.loss=0.5,c:*/k=2,"
      "c:d/down=1@1..2");
  const auto losses = [&](std::string_view from, std::string_view to) {
    std::vector<double> all;
    for (const PathConfig& path : c.resolve(from, to).paths) {
      all.push_back(path.loss);
    }
    return all;
  };
  CHECK(losses("x", "y") == std::vector<double>{0.1, 0.2, 0.1});
  CHECK(losses("a", "b") == std::vector<double>{0.3, 0.2, 0.5});
  CHECK(losses("a", "y") == std::vector<double>{0.1, 0.2, 0.4});
  CHECK(losses("c", "y") == std::vector<double>{0.1, 0.2});
  CHECK(c.resolve("c", "d").link.down.size() == 1);
  CHECK(c.resolve("d", "c").link.down.empty());
}

TEST_CASE("errors name the key, the value and the allowed range", "[config]") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"loss=2", "key 'loss' = '2': allowed range 0..1"},
      {"loss=-0.1", "allowed range 0..1"},
      {"loss=nan", "allowed range 0..1"},
      {"loss=0.1x", "key 'loss' = '0.1x'"},
      {"loss=", "key 'loss' = ''"},
      {"loss=101%", "allowed range"},
      {"k=0", "key 'k' = '0': allowed range 1..256"},
      {"k=257", "1..256"},
      {"k=1.5", "1..256"},
      {"k=99999999999999999999", "1..256"},
      {"mtu=9203", "key 'mtu' = '9203': allowed range 68..9202"},
      {"mtu=67", "68..9202"},
      {"rate_gbps=-1", "0, 0.001..100000"},
      {"rate_gbps=0.0001", "0, 0.001..100000"},
      {"rate_gbps=100001", "0, 0.001..100000"},
      {"rate_gbps=1.", "key 'rate_gbps'"},
      {"delay_ns=11s", "0..10s"},
      {"delay_ns=1.5", "0..10s"},
      {"delay_ns=1.0000001us", "0..10s"},
      {"delay_ns=5m", "0..10s"},
      {"burst_loss=0.1", "p:r"},
      {"burst_loss=0.1:0", "r above 0..1"},
      {"reorder=0.1", "p:window"},
      {"reorder=0.1:0", "window 1ns..10s"},
      {"queue=65G,rate_gbps=1", "0..64G"},
      {"trim_dscp=64", "0..63"},
      {"trim_from=all", "0..63, any"},
      {"select=random", "hash, modulo"},
      {"down=0@5..5", "from < to"},
      {"down=0@5", "path@from..to"},
      {"down=@5..6", "path@from..to"},
      {"down=0@1..2+", "path@from..to"},
      {"down=1@1..2", "down: path 1 must be below k = 1"},
      {"buffer=9215", "9216..64G"},
      {"speed=1", "unknown key 'speed'; known keys: k select"},
      {"loss", "'loss' has no '='"},
      {"loss=0.1,,k=2", "empty item"},
      {"loss=0.1,", "empty item"},
      {",", "empty item"},
      {"loss=0.1,loss=0.2", "key 'loss' is given twice"},
      {"path1.loss=0.1", "*:*/path1.loss: path must be below k = 1"},
      {"k=2,path256.loss=0.1", "path<n>.key, n 0..255"},
      {"k=2,pathx.loss=0.1", "path<n>.key, n 0..255"},
      {"k=2,path1.k=3", "belongs to a port pair, not a path"},
      {"a:b/buffer=1M", "belongs to the whole fabric"},
      {"a/loss=0.1", "expected from:to/key"},
      {":b/loss=0.1", "expected from:to/key"},
      {"a:b c/loss=0.1", "expected from:to/key"},
      {"a:b/loss=7", "key 'a:b/loss' = '7': allowed range 0..1"},
      {"a:b/down=3@1..2", "a:b/down: path 3 must be below k = 1"},
      {"ecn=1000", "ecn needs rate_gbps"},
      {"trim=1000", "trim needs rate_gbps"},
      {"queue=1000", "queue needs rate_gbps"},
      {"a:b/ecn=1000", "a:b/ecn: ecn needs rate_gbps"},
      {"port_ecn=1000", "port_rate_gbps"},
  };
  for (const auto& [text, expect] : cases) {
    const ParsedConfig parsed = parse_settings(text);
    INFO(text);
    CHECK_FALSE(parsed);
    CHECK_THAT(parsed.error, Contains(expect));
    CHECK(parsed.error.find('\n') == std::string::npos);
  }
}

TEST_CASE("the TOML form has the same keys and more room", "[config]") {
  const ParsedConfig parsed = parse_toml_text(R"(
[nic]
count = 2
[fabric]
k = 3
rate_gbps = 12.5
delay_ns = "2us"
loss = 0
reorder = [0.01, 5000]
burst_loss = "0.1:0.5"
ecn = "30k"
down = ["1@5ms..10ms", "2@1s.."]
[fabric.path.2]
loss = 0.05
[[fabric.pair]]
from = "a"
to = "*"
corrupt = 1e-3
[fabric.pair.path.0]
dup = 0.5
)",
                                              "net.toml", std::array<std::string_view, 1>{"nic"});
  INFO(parsed.error);
  REQUIRE(parsed);
  const FabricConfig& c = parsed.config;
  CHECK(c.base.k == 3);
  CHECK(c.base.path.rate_mbps == 12500);
  CHECK(c.base.path.delay_ns == 2000);
  CHECK(c.base.path.reorder_ns == 5000);
  CHECK(c.base.path.ecn_bytes == 30720u);
  CHECK(c.base.down.size() == 2);
  const ResolvedLink a = c.resolve("a", "b");
  CHECK(a.paths[0].dup == 0.5);
  CHECK(a.paths[1].dup == 0);
  CHECK(a.paths[1].corrupt == 1e-3);
  CHECK(a.paths[2].loss == 0.05);
  CHECK(c.resolve("b", "a").paths[1].corrupt == 0);
}

TEST_CASE("TOML errors name file, line and key", "[config]") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[fabric]\nloss = 2\n", "net.toml:2:8: fabric: key 'loss' = '2': allowed range 0..1"},
      {"[fabric]\nlos = 0\n", "net.toml:2:7: fabric: unknown key 'los'"},
      {"[fabirc]\nloss = 0\n", "unknown top-level key 'fabirc'"},
      {"fabric = 3\n", "unknown top-level key 'fabric': expected a [fabric] table"},
      {"loss = 0\n", "unknown top-level key 'loss'"},
      {"[fabric]\nloss = \n", "net.toml:"},
      {"[fabric]\nk = true\n", "expected a number, a string or [a, b]"},
      {"[fabric]\nreorder = [1, 2, 3]\n", "expected a number, a string or [a, b]"},
      {"[fabric]\nreorder = [1, []]\n", "expected two numbers"},
      {"[fabric]\ndown = [\"0@2..1\"]\n", "from < to"},
      {"[fabric]\npath = 3\n", "expected tables [fabric.path.<n>]"},
      {"[fabric.path]\n2 = 3\n", "expected tables [fabric.path.<n>]"},
      {"[fabric.path.x]\nloss = 0\n", "path<n>.key, n 0..255"},
      {"[fabric.path.1]\nloss = 0\n", "path must be below k = 1"},
      {"[fabric.pair]\nfrom = 'a'\n", "expected [[fabric.pair]]"},
      {"[[fabric.pair]]\nfrom = 'a'\nloss = 0\n", "from and to must be port names"},
      {"[[fabric.pair]]\nfrom = 'a'\nto = 'b/c'\nloss = 0\n", "unknown key"},
      {"[fabric]\necn = 5\n", "net.toml: fabric: ecn needs rate_gbps"},
      {"[fabric]\nloss = inf\n", "allowed range 0..1"},
  };
  for (const auto& [text, expect] : cases) {
    const ParsedConfig parsed = parse_toml_text(text, "net.toml");
    INFO(text);
    CHECK_FALSE(parsed);
    CHECK_THAT(parsed.error, Contains(expect));
  }
}

TEST_CASE("TOML files are read, missing and huge ones refused", "[config]") {
  const TempDir dir;
  const std::string path = dir.file("net.toml");
  std::ofstream(path) << "[fabric]\nloss = 0.25\n";
  CHECK(parse_toml_file(path).config.base.path.loss == 0.25);
  CHECK_THAT(parse_toml_file(dir.file("none.toml")).error, Contains("cannot be read"));
  std::ofstream(path) << std::string((1u << 20) + 1, '#');
  CHECK_THAT(parse_toml_file(path).error, Contains("larger than 1 MiB"));
}

TEST_CASE("the help names every key", "[config]") {
  const std::string help = settings_help();
  for (const SettingSpec& spec : all_settings()) {
    CHECK_THAT(help, Contains("  " + std::string(spec.name) + " "));
    CHECK_THAT(help, Contains(" " + std::string(spec.meaning) + "\n"));
  }
}

TEST_CASE("the README lists every key", "[config]") {
  std::ifstream file(ORDMA_FABRIC_README);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  REQUIRE_FALSE(text.empty());
  for (const SettingSpec& spec : all_settings()) {
    CHECK_THAT(text, Contains("`" + std::string(spec.name) + "`"));
  }
}
