# SPDX-License-Identifier: BSD-2-Clause
"""The SystemVerilog package, inside the subset that Verilator 5.006 and Yosys 0.23 share."""

from common import BANNER, bits, gaps, note, with_note
from names import Symbols, camel, member
from spec import Enum, Spec, Struct


def range_of(width: int) -> str:
    return "logic" if width == 1 else f"logic [{width - 1}:0]"


def value_of(width: int, value: int) -> str:
    return f"{width}'d{value}" if value < 4096 else f"{width}'h{value:x}"


def emit_enum(sy: Symbols, en: Enum) -> list[str]:
    origin = f"enum.{en.name}"
    head = camel(en.name)
    out = ["", *note(en.doc, "  ")]
    out.append(f"  localparam int unsigned {sy.add(head + 'EnumW', origin)} = {en.width};")
    for v in en.values:
        name = sy.add(head + camel(v.name), f"{origin}.{v.name}")
        text = value_of(en.width, v.value)
        out += with_note(f"  localparam {range_of(en.width)} {name} = {text};", v.doc)
    return out


def emit_struct(sy: Symbols, st: Struct) -> list[str]:
    origin = f"struct.{st.name}"
    head = camel(st.name)
    order = "first transmitted bit = MSB" if st.big else "bit 0 = bit 0 of word 0"
    out = ["", *note(f"{st.doc} ({order})", "  ")]
    out.append(f"  localparam int unsigned {sy.add(head + 'Bytes', origin)} = {st.bytes};")
    out.append(f"  localparam int unsigned {sy.add(head + 'Bits', origin)} = {st.bytes * 8};")
    members: list[tuple[int, list[str]]] = []
    for at, width in gaps(st):
        name = f"rsvd_{at}" if st.big else f"rsvd_{at // 64}_{at % 64}"
        members.append((at, [f"    {range_of(width)} {name};"]))
    for f in st.fields:
        enum = f"; {f.enum}" if f.enum else ""
        code = f"    {range_of(f.width)} {member(f.name)};"
        members.append((f.bit, with_note(code, f"{bits(st, f)}: {f.doc}{enum}")))
        lsb = st.bytes * 8 - f.bit - f.width if st.big else f.bit
        base = head + camel(f.name)
        at = f"{origin}.{f.name}"
        out.append(f"  localparam int unsigned {sy.add(base + 'Lsb', at)} = {lsb};")
        out.append(f"  localparam int unsigned {sy.add(base + 'W', at)} = {f.width};")
    members.sort(reverse=not st.big)
    out.append("  typedef struct packed {")
    for _, lines in members:
        out += lines
    return out + [f"  }} {sy.add(st.name + '_t', origin)};"]


def emit(spec: Spec) -> str:
    sy = Symbols("ordma_hw_pkg.sv", ("ContractMajor", "ContractMinor", "RegAddrW"))
    out = [
        "// SPDX-License-Identifier: BSD-2-Clause",
        f"// {BANNER}",
        "//",
        f"// {spec.doc}",
        "//",
        "// Use names as ordma_hw_pkg::name, never imported. A struct of little-endian words maps",
        "// bit 0 of word 0 to bit 0 of the vector, so memory byte i is bits [8*i +: 8], and a raw",
        "// byte field keeps its first byte in its lowest bits. A packet header maps its first",
        "// transmitted bit to the MSB. <Struct><Field>Lsb and ...W: position and width.",
        "package ordma_hw_pkg;",
        f"  localparam int unsigned ContractMajor = {spec.major};",
        f"  localparam int unsigned ContractMinor = {spec.minor};",
    ]
    for c in spec.consts:
        name = sy.add(camel(c.name), f"const.{c.name}")
        kind = "int unsigned" if c.value < 1 << 31 else "logic [63:0]"
        text = str(c.value) if c.value < 1 << 31 else f"64'h{c.value:x}"
        out += with_note(f"  localparam {kind} {name} = {text};", c.doc)
    if spec.regs:
        addr_w = max(12, (spec.regs[-1].offset + spec.regs[-1].width // 8 - 1).bit_length())
        out += ["", "  // Registers: byte offsets in the register page."]
        out.append(f"  localparam int unsigned RegAddrW = {addr_w};")
    for r in spec.regs:
        name = sy.add("Reg" + camel(r.name), f"reg.{r.name}")
        code = f"  localparam logic [{addr_w - 1}:0] {name} = {addr_w}'h{r.offset:x};"
        out += with_note(code, f"{r.width} bits, {r.access}: {r.doc}")
    for en in spec.enums:
        out += emit_enum(sy, en)
    for st in spec.structs:
        out += emit_struct(sy, st)
    sy.finish()
    return "\n".join(out + ["endpackage", ""])
