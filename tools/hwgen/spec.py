# SPDX-License-Identifier: BSD-2-Clause
"""Loads the contract from TOML and checks it; the modules behind it trust the result."""

import tomllib
from dataclasses import dataclass, field as dc_field
from typing import Any

from names import CPP_KEYWORDS, LOWER, UPPER, UPPER_VALUE, SpecError

STRUCT_BYTES_MAX = 4096
DOC_CHARS_MAX = 400


@dataclass(frozen=True)
class Const:
    name: str
    value: int
    doc: str


@dataclass(frozen=True)
class EnumValue:
    name: str
    value: int
    doc: str


@dataclass(frozen=True)
class Enum:
    name: str
    width: int
    doc: str
    values: tuple[EnumValue, ...]


@dataclass(frozen=True)
class Reg:
    name: str
    offset: int
    width: int
    access: str
    doc: str


@dataclass(frozen=True)
class Field:
    """`bit` counts from bit 0 of word 0 (little) or from the first transmitted bit (big)."""

    name: str
    bit: int
    width: int
    doc: str
    enum: str | None

    @property
    def raw(self) -> bool:
        """Wider than a word: a byte string that nobody swaps."""
        return self.width > 64

    @property
    def word(self) -> int:
        return self.bit // 64

    @property
    def shift(self) -> int:
        return self.bit % 64

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1


@dataclass(frozen=True)
class Struct:
    name: str
    bytes: int
    big: bool
    doc: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Spec:
    major: int
    minor: int
    doc: str
    consts: tuple[Const, ...]
    enums: tuple[Enum, ...]
    regs: tuple[Reg, ...]
    structs: tuple[Struct, ...]

    def enum(self, name: str) -> Enum:
        return next(e for e in self.enums if e.name == name)


@dataclass
class Checker:
    problems: list[str] = dc_field(default_factory=list)

    def fail(self, where: str, what: str) -> None:
        self.problems.append(f"{where}: {what}")

    def uint(self, where: str, value: Any, bits: int = 64) -> int:
        if type(value) is not int or not 0 <= value < 1 << bits:
            self.fail(where, f"{value!r} is not an unsigned integer of {bits} bits")
            return 0
        return value

    def doc(self, where: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            self.fail(where, "has no documentation text")
            return ""
        if "\n" in value or len(value) > DOC_CHARS_MAX:
            self.fail(where, f"documentation must be one line, at most {DOC_CHARS_MAX} long")
        if not value.isascii() or "*/" in value or "\\" in value:
            self.fail(where, "documentation must be ASCII without '*/' and backslash")
        return value.strip()

    def name(self, where: str, value: Any, rule: str) -> str:
        pattern = {"upper": UPPER, "value": UPPER_VALUE}.get(rule, LOWER)
        case = "lower_case" if pattern is LOWER else "UPPER_CASE"
        if not isinstance(value, str) or not pattern.match(value):
            self.fail(where, f"name {value!r} must be {case}")
            return str(value)
        if rule == "struct" and value in CPP_KEYWORDS:
            self.fail(where, f"name {value!r} is a reserved word of C++")
        if rule == "field" and value.startswith("rsvd"):
            self.fail(where, "reserved bits are implicit; leave the field out")
        return value

    def keys(self, where: str, table: Any, required: set[str], optional: set[str]) -> bool:
        if not isinstance(table, dict):
            self.fail(where, "is not a table")
            return False
        for key in sorted(required - table.keys()):
            self.fail(where, f"key '{key}' is missing")
        for key in sorted(table.keys() - required - optional):
            self.fail(where, f"key '{key}' is unknown")
        return required <= table.keys()

    def row(self, where: str, row: Any, lengths: tuple[int, ...]) -> bool:
        if not isinstance(row, list) or len(row) not in lengths:
            want = " or ".join(str(n) for n in lengths)
            self.fail(where, f"{row!r} must have {want} items")
            return False
        return True


def load_consts(ck: Checker, table: dict[str, Any]) -> tuple[Const, ...]:
    out = []
    for key, row in table.items():
        where = f"const.{key}"
        ck.name(where, key, "upper")
        if ck.row(where, row, (2,)):
            out.append(Const(key, ck.uint(where, row[0]), ck.doc(where, row[1])))
    return tuple(out)


def load_enum(ck: Checker, name: str, table: Any) -> Enum:
    where = f"enum.{name}"
    ck.name(where, name, "enum")
    if not ck.keys(where, table, {"doc", "width", "v"}, set()):
        return Enum(name, 1, "", ())
    width = ck.uint(where, table["width"], 7)
    if not 1 <= width <= 64:
        ck.fail(where, f"width {width} is outside 1..64")
        width = 64
    values: list[EnumValue] = []
    for row in table["v"]:
        if not ck.row(where, row, (3,)):
            continue
        at = f"{where}.{row[0]}"
        ck.name(at, row[0], "value")
        number = ck.uint(at, row[1])
        if number >> width:
            ck.fail(at, f"value {number:#x} does not fit in {width} bits")
        for other in values:
            if other.name == row[0]:
                ck.fail(at, "name is used twice")
            if other.value == number:
                ck.fail(at, f"value {number:#x} is already {other.name}")
        values.append(EnumValue(row[0], number, ck.doc(at, row[2])))
    if not values:
        ck.fail(where, "has no values")
    return Enum(name, width, ck.doc(where, table["doc"]), tuple(values))


def load_regs(ck: Checker, table: Any) -> tuple[Reg, ...]:
    if not ck.keys("reg", table, {"r"}, {"doc"}):
        return ()
    regs: list[Reg] = []
    for row in table["r"]:
        if not ck.row("reg", row, (5,)):
            continue
        at = f"reg.{row[0]}"
        ck.name(at, row[0], "upper")
        reg = Reg(row[0], ck.uint(at, row[1], 32), row[2], row[3], ck.doc(at, row[4]))
        if reg.width not in (32, 64):
            ck.fail(at, f"width {reg.width!r} is neither 32 nor 64")
            continue
        if reg.access not in ("ro", "rw"):
            ck.fail(at, f"access {reg.access!r} is neither 'ro' nor 'rw'")
        if reg.offset % (reg.width // 8):
            ck.fail(at, f"offset {reg.offset:#x} is not aligned to its {reg.width} bits")
        for other in regs:
            if other.name == reg.name:
                ck.fail(at, "name is used twice")
            if (
                other.offset < reg.offset + reg.width // 8
                and reg.offset < other.offset + other.width // 8
            ):
                ck.fail(at, f"offset {reg.offset:#x} overlaps {other.name} at {other.offset:#x}")
        regs.append(reg)
    return tuple(sorted(regs, key=lambda r: r.offset))


def little_field(ck: Checker, at: str, row: list[Any]) -> Field | None:
    if not ck.row(at, row, (5, 6)):
        return None
    word, msb, lsb = (ck.uint(at, v, 16) for v in row[1:4])
    if msb < lsb:
        ck.fail(at, f"bits [{msb}:{lsb}] are reversed")
        return None
    if msb > 63 and (lsb != 0 or msb % 64 != 63):
        ck.fail(at, f"bits [{msb}:{lsb}] cross a 64-bit word")
        return None
    enum = row[5] if len(row) == 6 else None
    return Field(row[0], word * 64 + lsb, msb - lsb + 1, ck.doc(at, row[4]), enum)


def big_field(ck: Checker, at: str, row: list[Any]) -> Field | None:
    if not ck.row(at, row, (4, 5)):
        return None
    first, width = ck.uint(at, row[1], 16), ck.uint(at, row[2], 16)
    if width < 1:
        ck.fail(at, "width is 0")
        return None
    if width > 64 and (first % 8 or width % 8):
        ck.fail(at, "a field wider than 64 bits must start and end on a byte")
        return None
    return Field(row[0], first, width, ck.doc(at, row[3]), row[4] if len(row) == 5 else None)


def check_field(ck: Checker, at: str, st: Struct, f: Field, enums: dict[str, Enum]) -> None:
    if f.bit + f.width > st.bytes * 8:
        ck.fail(at, f"ends at bit {f.bit + f.width - 1}, outside the struct's {st.bytes} bytes")
    if f.enum is None:
        return
    if f.enum not in enums:
        ck.fail(at, f"enum {f.enum!r} does not exist")
        return
    for v in enums[f.enum].values:
        if f.raw or v.value >> f.width:
            ck.fail(at, f"value {v.name} of enum {f.enum} does not fit in {f.width} bits")


def load_struct(ck: Checker, name: str, table: Any, enums: dict[str, Enum]) -> Struct:
    where = f"struct.{name}"
    ck.name(where, name, "struct")
    if not ck.keys(where, table, {"bytes", "doc", "f"}, {"order"}):
        return Struct(name, 8, False, "", ())
    big = table.get("order", "little") == "big"
    if table.get("order", "little") not in ("little", "big"):
        ck.fail(where, f"order {table['order']!r} is neither 'little' nor 'big'")
    size = ck.uint(where, table["bytes"], 16)
    if not 1 <= size <= STRUCT_BYTES_MAX or (not big and size % 8):
        ck.fail(where, f"{size} bytes: must be 1..{STRUCT_BYTES_MAX}, whole words when little")
    shell = Struct(name, size, big, ck.doc(where, table["doc"]), ())
    fields: list[Field] = []
    for row in table["f"]:
        if not isinstance(row, list) or not row:
            ck.fail(where, f"{row!r} is not a field")
            continue
        at = f"{where}.{row[0]}"
        ck.name(at, row[0], "field")
        f = (big_field if big else little_field)(ck, at, row)
        if f is None:
            continue
        check_field(ck, at, shell, f, enums)
        for other in fields:
            if other.name == f.name:
                ck.fail(at, "name is used twice")
            if other.bit < f.bit + f.width and f.bit < other.bit + other.width:
                ck.fail(at, f"overlaps {other.name}")
        fields.append(f)
    if not fields:
        ck.fail(where, "has no fields")
    fields.sort(key=lambda f: f.bit)
    return Struct(name, size, big, shell.doc, tuple(fields))


def load_contract(ck: Checker, table: Any) -> tuple[int, int, str]:
    if not ck.keys("contract", table, {"major", "minor", "doc"}, set()):
        return 0, 0, ""
    return (
        ck.uint("contract.major", table["major"], 16),
        ck.uint("contract.minor", table["minor"], 16),
        ck.doc("contract", table["doc"]),
    )


def parse(text: str) -> Spec:
    """TOML text to a checked Spec; raises SpecError that lists every problem."""
    try:
        top = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError([f"not TOML: {error}"]) from None
    ck = Checker()
    ck.keys("contract file", top, {"contract"}, {"const", "enum", "reg", "struct"})
    major, minor, doc = load_contract(ck, top.get("contract", {}))
    enums = tuple(load_enum(ck, n, t) for n, t in top.get("enum", {}).items())
    by_name = {e.name: e for e in enums}
    spec = Spec(
        major,
        minor,
        doc,
        load_consts(ck, top.get("const", {})),
        enums,
        load_regs(ck, top["reg"]) if "reg" in top else (),
        tuple(load_struct(ck, n, t, by_name) for n, t in top.get("struct", {}).items()),
    )
    for st in spec.structs:
        if st.name in by_name:
            ck.fail(f"struct.{st.name}", "an enum has the same name, and C has one space for tags")
    if ck.problems:
        raise SpecError(ck.problems)
    return spec
