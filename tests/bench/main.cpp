// SPDX-License-Identifier: BSD-2-Clause
// Measures an RDMA device, any device: one process and one thread drive both ends of an RC connection.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>

#include "baseline.hpp"
#include "facts.hpp"
#include "measure.hpp"

namespace ordma::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  Setup setup;
  Timing timing;
  std::vector<std::size_t> sizes = {8, 64, 512, 4096, 16384, 65536, 262144, 1048576};
  std::vector<std::string> ops = {"WRITE", "READ", "SEND"};
  unsigned slice_ms = 200, pings = 1000;
  bool no_rate = false, no_latency = false, no_baseline = false;
  std::vector<std::string> labels;
  std::string json;
};

constexpr const char* kHow =
    "One process, one thread drives both ends of one RC connection. Bandwidth and rate: a window of messages is kept in "
    "flight; completed messages are counted from one completion to the first one after the slice; the median of the repeats "
    "is reported, the samples are kept. Each repeat sends other data, and all target slots are compared with it afterwards, "
    "outside the slice. Latency: time from before ibv_post_send until the thread sees the new 8-byte value in the target's "
    "memory (2000 looks, then sched_yield); the completion is taken outside. Copies: 1 MiB blocks, one copy each.";

Json json_of(const Point& p) {
  const double rate = median(p.rates);
  return {{"op", name_of(p.op)},
          {"size", p.size},
          {"depth", p.depth},
          {"post_list", p.list},
          {"messages_per_cqe", p.signal_every},
          {"inline", p.inline_data},
          {"messages_per_s", rate},
          {"mbytes_per_s", rate * static_cast<double>(p.size) / 1e6},
          {"messages_per_s_samples", p.rates},
          {"messages_counted", p.messages},
          {"payload_verified", p.verified}};
}

Json json_of(const Latency& l) {
  Json cdf = Json::array();
  for (unsigned permille : {0u, 10u, 50u, 100u, 200u, 300u, 400u, 500u, 600u, 700u, 800u, 850u, 900u, 950u, 975u, 990u, 995u, 999u, 1000u}) {
    cdf.push_back({quantile(l.samples_us, permille / 1000.0), permille / 1000.0});
  }
  return {{"op", "WRITE"},
          {"size", 8},
          {"inline", l.inline_data},
          {"pings", l.samples_us.size()},
          {"median_us", median(l.repeat_medians_us)},
          {"repeat_medians_us", l.repeat_medians_us},
          {"p99_us", quantile(l.samples_us, 0.99)},
          {"min_us", quantile(l.samples_us, 0)},
          {"cdf_us", cdf},
          {"payload_verified", l.verified}};
}

Json json_of(const CopyResult& c) {
  return {{"block", c.block},
          {"blocks", c.blocks},
          {"process_vm_readv_mbytes_per_s", median(c.vm_readv) / 1e6},
          {"process_vm_readv_samples", c.vm_readv},
          {"shared_memory_memcpy_mbytes_per_s", median(c.shared) / 1e6},
          {"shared_memory_memcpy_samples", c.shared},
          {"payload_verified", c.verified}};
}

Op op_of(const std::string& name) { return name == "WRITE" ? Op::kWrite : name == "READ" ? Op::kRead : Op::kSend; }

Json labels_of(const Options& o) {
  Json labels = Json::object();
  for (const std::string& label : o.labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos) {
      throw std::runtime_error("--label needs NAME=VALUE");
    }
    labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return labels;
}

void save(const Options& o, const Json& result) {
  if (o.json.empty()) {
    return;
  }
  std::ofstream out(o.json);
  out << result.dump(1) << '\n';
  if (!out.flush()) {
    throw std::runtime_error("cannot write " + o.json);
  }
}

// Fills `result` as it goes: what was measured before a failure is kept.
void run(const Options& o, Json& result) {
  result = {{"schema", 1}, {"labels", labels_of(o)}, {"machine", machine_facts()}, {"how", kHow}};
  if (!o.no_baseline) {
    const CopyResult copies = measure_copies(o.timing);
    result["copies"] = json_of(copies);
    std::printf("copy between processes, 1 MiB: process_vm_readv %.0f MB/s, memcpy from shared memory %.0f MB/s\n",
                median(copies.vm_readv) / 1e6, median(copies.shared) / 1e6);
  }
  Bench bench(o.setup, o.timing);
  result["device"] = device_facts(bench.context());
  result["config"] = {{"peer", o.setup.peer}, {"gid_index", o.setup.gid_index}, {"path_mtu", bench.mtu_bytes()},
                      {"slice_ms", o.slice_ms}, {"repeats", o.timing.repeats}, {"transport", "RC"}};
  std::printf("%s -> %s, RC, path MTU %u, %u slices of %u ms\n%-7s %9s %6s %12s %12s\n", o.setup.device.c_str(),
              o.setup.peer.c_str(), bench.mtu_bytes(), o.timing.repeats, o.slice_ms, "op", "bytes", "depth", "MB/s", "msg/s");
  const auto show = [&result](const char* key, const Point& p) {
    const Json j = json_of(p);
    if (std::string(key) == "bandwidth") {
      result[key].push_back(j);
    } else {
      result[key] = j;
    }
    std::printf("%-7s %9zu %6u %12.2f %12.0f%s\n", name_of(p.op), p.size, p.depth, j["mbytes_per_s"].get<double>(),
                j["messages_per_s"].get<double>(), p.list > 1 ? "  (lists of 32, one CQE per 64)" : "");
    std::fflush(stdout);
  };
  if (!o.no_latency) {
    const Latency l = bench.latency(o.pings);
    result["latency"] = json_of(l);
    std::printf("WRITE 8 B one way: median %.2f us, p99 %.1f us (%zu pings)\n", median(l.repeat_medians_us),
                quantile(l.samples_us, 0.99), l.samples_us.size());
  }
  if (!o.no_rate) {
    show("message_rate", bench.message_rate());
  }
  for (const std::string& op : o.ops) {
    for (const std::size_t size : o.sizes) {
      show("bandwidth", bench.bandwidth(op_of(op), size));
    }
  }
}

}  // namespace
}  // namespace ordma::bench

int main(int argc, char** argv) {
  ordma::bench::Options o;
  CLI::App app{"bandwidth, message rate and latency of an RDMA device; both ends in this process"};
  app.add_option("--dev", o.setup.device, "device that posts")->required();
  app.add_option("--peer-dev", o.setup.peer, "device at the other end")->required();
  app.add_option("--gid", o.setup.gid_index, "GID index of both")->capture_default_str();
  app.add_option("--mtu", o.setup.mtu, "path MTU in bytes (default: the smaller active MTU)");
  app.add_option("--sizes", o.sizes, "message sizes")->delimiter(',')->check(CLI::Range(8, 1 << 20));
  app.add_option("--ops", o.ops, "WRITE, READ, SEND")->delimiter(',')->check(CLI::IsMember({"WRITE", "READ", "SEND"}));
  app.add_option("--slice-ms", o.slice_ms, "length of a slice")->capture_default_str()->check(CLI::Range(1, 60000));
  app.add_option("--repeats", o.timing.repeats, "slices per point")->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--pings", o.pings, "pings per repeat, at most 10 slices")->capture_default_str()->check(CLI::Range(1, 100000));
  app.add_flag("--no-rate", o.no_rate, "without message rate");
  app.add_flag("--no-latency", o.no_latency, "without latency");
  app.add_flag("--no-baseline", o.no_baseline, "without the copies between processes");
  app.add_option("--label", o.labels, "NAME=VALUE, kept in the JSON (commit, engine, ...)");
  app.add_option("--json", o.json, "write the result to this file");
  CLI11_PARSE(app, argc, argv);
  o.timing.slice = std::chrono::milliseconds(o.slice_ms);
  ordma::bench::Json result;
  int status = 0;
  try {
    ordma::bench::run(o, result);
  } catch (const std::exception& e) {
    std::cerr << "ordma-bench: " << e.what() << '\n';
    result["failed"] = e.what();
    status = 1;
  }
  try {
    ordma::bench::save(o, result);
  } catch (const std::exception& e) {
    std::cerr << "ordma-bench: " << e.what() << '\n';
    status = 1;
  }
  return ordma::test::destroy_failures() == 0 ? status : 1;
}
