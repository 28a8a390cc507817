// SPDX-License-Identifier: BSD-2-Clause
#include "native/address_space.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/fd.hpp"

namespace ordma::softdev {
namespace {

struct Area {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
};

// "55d0c0000000-55d0c0021000 rw-p ..."
bool parse_area(std::string_view line, Area* area) {
  const char* const end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, area->begin, 16);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return false;
  const auto second = std::from_chars(first.ptr + 1, end, area->end, 16);
  if (second.ec != std::errc() || end - second.ptr < 3 || *second.ptr != ' ') return false;
  area->readable = second.ptr[1] == 'r';
  area->writable = second.ptr[2] == 'w';
  return true;
}

}  // namespace

bool address_space_covers(pid_t pid, std::uint64_t va, std::uint64_t bytes, bool write) {
  const Fd file(::open(("/proc/" + std::to_string(pid) + "/maps").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  std::array<char, 16384> buffer;
  std::size_t used = 0;
  std::uint64_t need = va;  // everything below it is covered
  const std::uint64_t end = va + bytes;
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data() + used, buffer.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    used += static_cast<std::size_t>(got);
    std::string_view text(buffer.data(), used);
    for (auto eol = text.find('\n'); eol != text.npos; eol = text.find('\n')) {
      Area area;
      if (!parse_area(text.substr(0, eol), &area)) return false;
      text.remove_prefix(eol + 1);
      if (area.end <= need) continue;
      if (area.begin > need || !area.readable || (write && !area.writable)) return false;
      need = area.end;
      if (need >= end) return true;
    }
    if (text.size() == buffer.size()) return false;
    std::memmove(buffer.data(), text.data(), text.size());
    used = text.size();
  }
}

}  // namespace ordma::softdev
