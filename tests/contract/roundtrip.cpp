// SPDX-License-Identifier: BSD-2-Clause
// The C++ view against vectors.txt: tables, get and set, raw fields, names. argv[1] is vectors.txt.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "ordma_hw.hpp"

namespace {

namespace hw = ordma::hw;

unsigned long checks = 0;
unsigned long failures = 0;

void check(bool ok, const std::string& what) {
  ++checks;
  if (ok) return;
  ++failures;
  std::fprintf(stderr, "%s\n", what.c_str());
}

std::vector<std::byte> unhex(std::string_view text) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    out.push_back(static_cast<std::byte>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

using Values = std::map<std::string, std::string, std::less<>>;

template <typename Info>
void store(std::span<std::byte> bytes, const Info& info, const std::string& text) {
  if (text.front() == '@') {
    const std::vector<std::byte> value = unhex(std::string_view(text).substr(1));
    std::ranges::copy(value, hw::raw(bytes, hw::as_raw(info.field)).begin());
  } else {
    hw::set(bytes, info.field, std::stoull(text, nullptr, 16));
  }
}

template <typename Info>
bool equal(std::span<const std::byte> bytes, const Info& info, const std::string& text) {
  if (text.front() == '@') {
    return std::ranges::equal(hw::raw(bytes, hw::as_raw(info.field)), unhex(text.substr(1)));
  }
  return hw::get(bytes, info.field) == std::stoull(text, nullptr, 16);
}

template <typename Info>
void one_vector(const hw::StructInfo& st, std::span<const Info> fields, const Values& values,
                const std::vector<std::byte>& want, const std::vector<std::byte>& used) {
  const std::string where(st.name);
  check(fields.size() == values.size(), where + ": number of fields");
  std::vector<std::byte> noisy = want;
  for (std::size_t i = 0; i < noisy.size(); ++i) noisy[i] |= ~used[i];
  for (const bool ones : {false, true}) {
    const std::vector<std::byte>& ref = ones ? noisy : want;
    std::vector<std::byte> bytes(st.bytes, ones ? std::byte{0xff} : std::byte{0});
    for (const Info& info : fields) store(std::span(bytes), info, values.find(info.name)->second);
    check(bytes == ref, where + ": bytes");
    for (const Info& info : fields) {
      const std::string& text = values.find(info.name)->second;
      check(equal(std::span<const std::byte>(ref), info, text),
            where + "." + std::string(info.name));
    }
  }
}

void run_vectors(const char* path) {
  std::ifstream file(path);
  std::string line;
  const hw::StructInfo* st = nullptr;
  std::vector<std::byte> used;
  std::size_t structs = 0;
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (word == "struct") {
      std::string name;
      std::string order;
      std::size_t bytes = 0;
      in >> name >> bytes >> order;
      const auto it = std::ranges::find(hw::kStructs, name, &hw::StructInfo::name);
      check(it != hw::kStructs.end(), name + ": not in kStructs");
      if (it == hw::kStructs.end()) return;
      st = &*it;
      ++structs;
      check(st->bytes == bytes && st->big == (order == "big"), name + ": size or order");
      used.clear();
    } else if (word == "v") {
      Values values;
      while (in >> word && word != "|") {
        const std::size_t eq = word.find('=');
        values.emplace(word.substr(0, eq), word.substr(eq + 1));
      }
      in >> word;
      const std::vector<std::byte> want = unhex(word);
      if (used.empty()) used = want;
      if (st->big) one_vector(*st, st->big_fields, values, want, used);
      if (!st->big) one_vector(*st, st->fields, values, want, used);
    }
  }
  check(structs == hw::kStructs.size(), "number of structs");
}

void run_tables() {
  check(hw::name(hw::WqeOp::kWrite) == "WRITE", "name of an enum value");
  check(hw::name(static_cast<hw::WqeOp>(0)).empty(), "name of no enum value");
  check(hw::kRegs.front().offset == hw::reg::kMagic, "first register");
  for (std::size_t i = 1; i < hw::kRegs.size(); ++i) {
    const hw::RegInfo& below = hw::kRegs[i - 1];
    check(below.offset + below.width / 8 <= hw::kRegs[i].offset, std::string(hw::kRegs[i].name));
  }
  hw::cqe::Bytes cqe{};
  hw::set(cqe, hw::cqe::status, 5);
  check(hw::get(cqe, hw::cqe::status) == 5, "named field");
  const std::uint64_t word = hw::load_le64(cqe, hw::cqe::status.word * 8u);
  check(word == hw::place(hw::cqe::status, 5), "place");
  check(hw::wget(word, hw::cqe::status) == 5, "wget");
  check(hw::wget(hw::place(hw::cqe::status, ~0ull), hw::cqe::status) == 255, "place cuts");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  run_tables();
  run_vectors(argv[1]);
  std::printf("%lu checks, %lu failures\n", checks, failures);
  return failures != 0 || checks == 0;
}
