# SPDX-License-Identifier: BSD-2-Clause
"""The readable reference."""

from common import BANNER, gaps, num
from spec import Enum, Field, Spec, Struct


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    out = ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return out + ["| " + " | ".join(row) + " |" for row in rows]


def place(st: Struct, bit: int, width: int) -> list[str]:
    if st.big:
        last = bit + width - 1
        whole = bit % 8 == 0 and width % 8 == 0
        byte = f"{bit // 8}" if bit // 8 == last // 8 else f"{bit // 8}..{last // 8}"
        return [byte, "all" if whole else f"{bit}..{last}" if width > 1 else f"{bit}"]
    if width > 64:
        return [f"{bit // 64}..{(bit + width) // 64 - 1}", "raw bytes"]
    top = bit % 64 + width - 1
    return [f"{bit // 64}", f"{top}:{bit % 64}" if width > 1 else f"{top}"]


def field_row(st: Struct, f: Field) -> list[str]:
    link = f" ([{f.enum}](#enum-{f.enum}))" if f.enum else ""
    return [*place(st, f.bit, f.width), f"`{f.name}`", cell(f.doc) + link]


def emit_struct(st: Struct) -> list[str]:
    order = "packet header, bits counted from the first transmitted" if st.big else "little-endian"
    out = ["", f"### struct {st.name}", "", f"{cell(st.doc)}. {st.bytes} bytes, {order}."]
    rows = [(f.bit, field_row(st, f)) for f in st.fields]
    rows += [(at, [*place(st, at, w), "reserved", ""]) for at, w in gaps(st)]
    unit = ["bytes", "bits"] if st.big else ["word", "bits"]
    return out + table([*unit, "field", "meaning"], [row for _, row in sorted(rows)])


def emit_enum(en: Enum) -> list[str]:
    out = ["", f"### enum {en.name}", "", f"{cell(en.doc)}. {en.width} bits."]
    rows = [[num(v.value), f"`{v.name}`", cell(v.doc)] for v in en.values]
    return out + table(["value", "name", "meaning"], rows)


def emit(spec: Spec) -> str:
    out = [
        "<!-- SPDX-License-Identifier: BSD-2-Clause -->",
        f"<!-- {BANNER} -->",
        "# Hardware/software contract",
        "",
        f"{cell(spec.doc)}. Version {spec.major}.{spec.minor}. Reserved bits are written as zero",
        "and ignored when read. Words are 64-bit little-endian; raw byte fields are never swapped.",
        "",
        "## Constants",
    ]
    out += table(
        ["name", "value", "meaning"],
        [[f"`{c.name}`", num(c.value), cell(c.doc)] for c in spec.consts],
    )
    out += ["", "## Registers"]
    out += table(
        ["offset", "bits", "access", "name", "meaning"],
        [
            [f"{r.offset:#05x}", f"{r.width}", r.access, f"`{r.name}`", cell(r.doc)]
            for r in spec.regs
        ],
    )
    out += ["", "## Structures"]
    for st in spec.structs:
        out += emit_struct(st)
    out += ["", "## Enumerations"]
    for en in spec.enums:
        out += emit_enum(en)
    return "\n".join(out + [""])
