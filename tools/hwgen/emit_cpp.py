# SPDX-License-Identifier: BSD-2-Clause
"""The C++20 view: field constants, accessors on bytes, and tables for decoders and fuzzers."""

import textwrap

from common import BANNER, COLUMNS, bits, note, num, with_note
from names import Symbols, camel, member
from spec import Enum, Field, Reg, Spec, Struct

PROLOGUE = """\
// SPDX-License-Identifier: BSD-2-Clause
// {banner}
//
// {doc}
//
// get(bytes, cqe::status) and set(bytes, cqe::status, value) work on the bytes as they lie in
// memory or on the wire; wget() and place() work on one host-order word. Values wider than their
// field are cut to it. A name that C++ or SystemVerilog reserves has '_' appended. The tables at
// the end of each struct serve decoders and fuzzers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

namespace ordma::hw {{

// A field of a struct of little-endian 64-bit words. Only tables hold widths above 64: those are
// raw byte strings, reached with raw().
struct Field {{
  std::uint16_t word;
  std::uint16_t shift;
  std::uint16_t width;
}};

// A field of a packet header; bitoff counts from the first transmitted bit.
struct BigField {{
  std::uint16_t bitoff;
  std::uint16_t width;
}};

// A byte string that is never swapped.
struct RawField {{
  std::uint16_t byte;
  std::uint16_t len;
}};

struct EnumInfo {{
  std::string_view name;
  std::uint64_t value;
  std::string_view doc;
}};

struct FieldInfo {{
  std::string_view name;
  Field field;
  std::string_view doc;
  std::span<const EnumInfo> values;
}};

struct BigFieldInfo {{
  std::string_view name;
  BigField field;
  std::string_view doc;
  std::span<const EnumInfo> values;
}};

struct RegInfo {{
  std::string_view name;
  std::uint32_t offset;
  std::uint32_t width;
  bool writable;
  std::string_view doc;
}};

// Exactly one of the two field lists is filled, by byte order.
struct StructInfo {{
  std::string_view name;
  std::size_t bytes;
  bool big;
  std::span<const FieldInfo> fields;
  std::span<const BigFieldInfo> big_fields;
  std::string_view doc;
}};

constexpr std::uint64_t mask(std::uint16_t width) {{
  return width >= 64 ? ~std::uint64_t{{0}} : (std::uint64_t{{1}} << width) - 1;
}}

// A span that does not hold the field is a bug of the caller, never a matter of input.
constexpr void require(bool ok) {{
  if (!ok) [[unlikely]] std::abort();
}}

constexpr std::uint64_t wget(std::uint64_t word, Field f) {{
  return (word >> f.shift) & mask(f.width);
}}

constexpr std::uint64_t place(Field f, std::uint64_t value) {{
  return (value & mask(f.width)) << f.shift;
}}

inline std::uint64_t load_le64(std::span<const std::byte> bytes, std::size_t offset) {{
  require(offset <= bytes.size() && bytes.size() - offset >= 8);
  std::uint64_t word;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}}

inline void store_le64(std::span<std::byte> bytes, std::size_t offset, std::uint64_t word) {{
  require(offset <= bytes.size() && bytes.size() - offset >= 8);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  std::memcpy(bytes.data() + offset, &word, sizeof word);
}}

inline std::uint64_t get(std::span<const std::byte> bytes, Field f) {{
  require(f.width <= 64);
  return wget(load_le64(bytes, f.word * std::size_t{{8}}), f);
}}

inline void set(std::span<std::byte> bytes, Field f, std::uint64_t value) {{
  require(f.width <= 64);
  const std::size_t offset = f.word * std::size_t{{8}};
  const std::uint64_t rest = load_le64(bytes, offset) & ~(mask(f.width) << f.shift);
  store_le64(bytes, offset, rest | place(f, value));
}}

// A packet field need not start on a byte, so it may touch nine of them.
constexpr std::uint64_t get(std::span<const std::byte> bytes, BigField f) {{
  require(f.width <= 64 && std::size_t{{f.bitoff}} + f.width <= bytes.size() * 8);
  std::uint64_t value = 0;
  unsigned bit = f.bitoff;
  for (unsigned left = f.width; left != 0;) {{
    const unsigned room = 8 - bit % 8;
    const unsigned take = room < left ? room : left;
    const unsigned part = std::to_integer<unsigned>(bytes[bit / 8]) >> (room - take);
    value = (value << take) | (part & ((1u << take) - 1));
    bit += take;
    left -= take;
  }}
  return value;
}}

constexpr void set(std::span<std::byte> bytes, BigField f, std::uint64_t value) {{
  require(f.width <= 64 && std::size_t{{f.bitoff}} + f.width <= bytes.size() * 8);
  unsigned bit = f.bitoff;
  for (unsigned left = f.width; left != 0;) {{
    const unsigned room = 8 - bit % 8;
    const unsigned take = room < left ? room : left;
    const unsigned low = room - take;
    const unsigned keep = ~(((1u << take) - 1) << low);
    const unsigned part = static_cast<unsigned>(value >> (left - take)) << low;
    const unsigned old = std::to_integer<unsigned>(bytes[bit / 8]);
    bytes[bit / 8] = static_cast<std::byte>((old & keep) | (part & ~keep & 0xffu));
    bit += take;
    left -= take;
  }}
}}

constexpr std::span<const std::byte> raw(std::span<const std::byte> bytes, RawField f) {{
  require(std::size_t{{f.byte}} + f.len <= bytes.size());
  return bytes.subspan(f.byte, f.len);
}}

constexpr std::span<std::byte> raw(std::span<std::byte> bytes, RawField f) {{
  require(std::size_t{{f.byte}} + f.len <= bytes.size());
  return bytes.subspan(f.byte, f.len);
}}

// Table entries wider than 64 bits are raw.
constexpr RawField as_raw(Field f) {{
  return {{static_cast<std::uint16_t>(f.word * 8), static_cast<std::uint16_t>(f.width / 8)}};
}}

constexpr RawField as_raw(BigField f) {{
  return {{static_cast<std::uint16_t>(f.bitoff / 8), static_cast<std::uint16_t>(f.width / 8)}};
}}

// Name of a value in an enum's table, empty when it has none.
constexpr std::string_view find_name(std::span<const EnumInfo> values, std::uint64_t value) {{
  for (const EnumInfo& v : values) {{
    if (v.value == value) return v.name;
  }}
  return {{}};
}}

inline constexpr std::uint32_t kContractMajor = {major};
inline constexpr std::uint32_t kContractMinor = {minor};
"""

TAKEN = tuple(
    "Field BigField RawField EnumInfo FieldInfo BigFieldInfo RegInfo StructInfo mask require wget "
    "place load_le64 store_le64 get set raw as_raw find_name name reg kContractMajor "
    "kContractMinor kRegs kStructs".split()
)


def quote(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def row(head: str, doc: str, tail: str, indent: str = "    ") -> list[str]:
    """A table row; a long text becomes adjacent literals on lines of their own."""
    whole = f"{indent}{{{head}, {quote(doc)}{tail}}},"
    if len(whole) <= COLUMNS:
        return [whole]
    room = COLUMNS - len(indent) - 12 - len(tail)
    words = textwrap.wrap(doc, room, break_long_words=False)
    parts = [quote(w + " ") for w in words[:-1]] + [quote(words[-1]) + tail + "},"]
    return [f"{indent}{{{head},", *(f"{indent} {p}" for p in parts)]


def emit_enum(sy: Symbols, en: Enum) -> list[str]:
    origin = f"enum.{en.name}"
    head = sy.add(camel(en.name), origin)
    table = sy.add(f"k{head}Table", origin)
    size = next(n for n in (8, 16, 32, 64) if en.width <= n)
    out = ["", *note(en.doc), f"enum class {head} : std::uint{size}_t {{"]
    members = Symbols(f"ordma_hw.hpp, enum {head}")
    for v in en.values:
        name = members.add(f"k{camel(v.name)}", f"{origin}.{v.name}")
        text = num(v.value) + ("ULL" if v.value >> 32 else "")
        out += with_note(f"  {name} = {text},", v.doc)
    sy.problems += members.problems
    out += ["};", ""]
    out.append(f"inline constexpr std::array<EnumInfo, {len(en.values)}> {table}{{{{")
    for v in en.values:
        out += row(f"{quote(v.name)}, {v.value:#x}ULL", v.doc, "")
    out += ["}};", "", f"constexpr std::string_view name({head} v) {{"]
    out.append(f"  return find_name({table}, static_cast<std::uint64_t>(v));")
    return out + ["}"]


def field_constant(st: Struct, f: Field) -> str:
    name = member(f.name)
    if f.raw:
        return f"RawField {name}{{{f.bit // 8}, {f.width // 8}}}"
    if st.big:
        return f"BigField {name}{{{f.bit}, {f.width}}}"
    return f"Field {name}{{{f.word}, {f.shift}, {f.width}}}"


def table_row(st: Struct, f: Field) -> list[str]:
    where = member(f.name)
    if f.raw:
        where = f"BigField{{{f.bit}, {f.width}}}" if st.big else f"Field{{{f.word}, 0, {f.width}}}"
    values = f"k{camel(f.enum)}Table" if f.enum else "{}"
    return row(f"{quote(f.name)}, {where}", f.doc, f", {values}")


def emit_struct(sy: Symbols, st: Struct) -> list[str]:
    sy.add(st.name, f"struct.{st.name}")
    out = ["", *note(st.doc), f"namespace {st.name} {{"]
    out.append(f"inline constexpr std::size_t kBytes = {st.bytes};")
    out.append("using Bytes = std::array<std::byte, kBytes>;")
    for f in st.fields:
        enum = f"; {camel(f.enum)}" if f.enum else ""
        out += note(f"{bits(st, f)}: {f.doc}{enum}")
        out.append(f"inline constexpr {field_constant(st, f)};")
    kind = "BigFieldInfo" if st.big else "FieldInfo"
    out.append(f"inline constexpr std::array<{kind}, {len(st.fields)}> kFields{{{{")
    for f in st.fields:
        out += table_row(st, f)
    return out + ["}};", f"}}  // namespace {st.name}"]


def emit_regs(regs: tuple[Reg, ...]) -> list[str]:
    sy = Symbols("ordma_hw.hpp, namespace reg")
    out = ["", "// Registers: byte offsets in the register page.", "namespace reg {"]
    for r in regs:
        name = sy.add(f"k{camel(r.name)}", f"reg.{r.name}")
        out += note(f"{r.width} bits, {r.access}: {r.doc}")
        out.append(f"inline constexpr std::uint32_t {name} = {r.offset:#x};")
    sy.finish()
    out += ["}  // namespace reg", ""]
    out.append(f"inline constexpr std::array<RegInfo, {len(regs)}> kRegs{{{{")
    for r in regs:
        rw = "true" if r.access == "rw" else "false"
        out += row(f"{quote(r.name)}, {r.offset:#x}, {r.width}, {rw}", r.doc, "")
    return out + ["}};"]


def emit(spec: Spec) -> str:
    sy = Symbols("ordma_hw.hpp", TAKEN)
    out = [PROLOGUE.format(banner=BANNER, doc=spec.doc, major=spec.major, minor=spec.minor)]
    for c in spec.consts:
        name = sy.add(f"k{camel(c.name)}", f"const.{c.name}")
        size = 64 if c.value >> 32 else 32
        text = num(c.value) + ("ULL" if size == 64 else "")
        out += note(c.doc)
        out.append(f"inline constexpr std::uint{size}_t {name} = {text};")
    out += emit_regs(spec.regs)
    for en in spec.enums:
        out += emit_enum(sy, en)
    for st in spec.structs:
        out += emit_struct(sy, st)
    sy.finish()
    out += ["", f"inline constexpr std::array<StructInfo, {len(spec.structs)}> kStructs{{{{"]
    for st in spec.structs:
        lists = f"{{}}, {st.name}::kFields" if st.big else f"{st.name}::kFields, {{}}"
        big = "true" if st.big else "false"
        out += row(f"{quote(st.name)}, {st.name}::kBytes, {big}, {lists}", st.doc, "")
    return "\n".join(out + ["}};", "", "}  // namespace ordma::hw", ""])
