#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""gen_roundtrip.py VECTORS OUT_DIR: writes roundtrip.c, roundtrip.sv, prove.sv and prove.ys."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools/hwgen")]

from names import camel, member  # noqa: E402
from vectors import Struct, Vector, read  # noqa: E402

C_HEAD = """\
/* Written by gen_roundtrip.py. Compiled as C11 and as C++20. */
#include <stdio.h>
#include <string.h>
#include "ordma_hw.h"

static unsigned long checks, failures;

static void check(int ok, const char *what, int vector)
{
	checks++;
	if (!ok) {
		failures++;
		fprintf(stderr, "%s, vector %d\\n", what, vector);
	}
}
"""

C_TAIL = """\
	printf("%lu checks, %lu failures\\n", checks, failures);
	return failures || !checks;
}
"""


def array(data: bytes) -> str:
    return ", ".join(f"0x{b:02x}" for b in data)


def literal(data: bytes) -> str:
    return '"' + "".join(f"\\x{b:02x}" for b in data) + '"'


def c_store(st: Struct, name: str, value: int | bytes) -> str:
    macro = f"{st.name.upper()}_{name.upper()}"
    if isinstance(value, bytes):
        at = f"(unsigned char *)&x + ORDMA_{macro}_OFF"
        return f"\tmemcpy({at}, {literal(value)}, ORDMA_{macro}_LEN);"
    return f"\tORDMA_{'BE_' if st.big else ''}SET(&x, {macro}, {value:#x}ULL);"


def c_load(st: Struct, name: str, value: int | bytes, index: int) -> list[str]:
    macro = f"{st.name.upper()}_{name.upper()}"
    what = f'"{st.name}.{name}", {index}'
    if isinstance(value, bytes):
        at = f"(unsigned char *)&x + ORDMA_{macro}_OFF"
        ok = f"!memcmp({at}, {literal(value)}, {len(value)})"
        return [f"\tcheck(ORDMA_{macro}_LEN == {len(value)} && {ok}, {what});"]
    want = f"{value:#x}ULL"
    if st.big:
        return [f"\tcheck(ORDMA_BE_GET(&x, {macro}) == {want}, {what});"]
    word = f"ORDMA_HW_LE64_TO_CPU(x.w[ORDMA_{macro}_W])"
    return [
        f"\tcheck(ORDMA_GET(&x, {macro}) == {want}, {what});",
        f"\tcheck(ORDMA_WGET({word}, {macro}) == {want}, {what});",
        f"\tcheck(ORDMA_FIELD({macro}, {want}) == "
        f"({word} & (ORDMA_{macro}_M << ORDMA_{macro}_S)), {what});",
    ]


def c_vector(st: Struct, index: int, v: Vector) -> list[str]:
    """Over zeroes, over ones (neighbours must survive), and back, reserved bits set or not."""
    out = [f"static void {st.name}_{index}(void)", "{"]
    out.append(f"\tstatic const unsigned char want[] = {{ {array(v.bytes)} }};")
    out.append(f"\tstatic const unsigned char noisy[] = {{ {array(st.noisy(v.bytes))} }};")
    out += [f"\tstruct ordma_{st.name} x;", ""]
    size = f"ORDMA_{st.name.upper()}_BYTES"
    same = f"sizeof(want) == sizeof(x) && {size} == {st.bytes}"
    out.append(f'\tcheck({same}, "{st.name} size", {index});')
    for fill, ref in (("0", "want"), ("0xff", "noisy")):
        out.append(f"\tmemset(&x, {fill}, sizeof(x));")
        out += [c_store(st, n, value) for n, value in v.values.items()]
        out.append(f'\tcheck(!memcmp(&x, {ref}, sizeof(x)), "{st.name} set over {fill}", {index});')
        for n, value in v.values.items():
            out += c_load(st, n, value, index)
    return out + ["}", ""]


def c_text(structs: list[Struct]) -> str:
    out = [C_HEAD]
    calls = []
    for st in structs:
        for index, v in enumerate(st.vectors):
            out += c_vector(st, index, v)
            calls.append(f"\t{st.name}_{index}();")
    return "\n".join([*out, "int main(void)", "{", *calls, C_TAIL])


def sv_value(st: Struct, value: int | bytes, width: int) -> str:
    if isinstance(value, bytes):
        value = int.from_bytes(value, "big" if st.big else "little")
    return f"{width}'h{value:x}"


def sv_bench(st: Struct) -> list[str]:
    pkg, head, bits = "ordma_hw_pkg::", camel(st.name), st.bytes * 8
    var, vec = f"s_{st.name}", f"v_{st.name}"
    out = [f"  {pkg}{st.name}_t {var};", f"  logic [{bits - 1}:0] {vec};", "  initial begin"]
    size = f"{pkg}{head}Bits == {bits} && {pkg}{head}Bytes == {st.bytes} && $bits({var}) == {bits}"
    out.append(f'    check({size}, "{st.name} size", 0);')
    for index, v in enumerate(st.vectors):
        for fill, data in (("'0", v.bytes), ("'1", st.noisy(v.bytes))):
            want = sv_value(st, data, bits)
            out.append(f"    {var} = {fill};")
            back = []
            for name, value in v.values.items():
                mask = st.vectors[0].values[name]
                width = len(mask) * 8 if isinstance(mask, bytes) else mask.bit_length()
                text, at = sv_value(st, value, width), f"{pkg}{head}{camel(name)}"
                out.append(f"    {var}.{member(name)} = {text};")
                same = f"{var}.{member(name)} === {text} && {vec}[{at}Lsb +: {at}W] === {text}"
                back.append(f'    check({same}, "{st.name}.{name}", {index});')
            out.append(f"    {vec} = {var};")
            out.append(f'    check({vec} === {want}, "{st.name} set over {fill}", {index});')
            out += [f"    {vec} = {want};", f"    {var} = {vec};", *back]
    return [*out, "  end"]


def sv_text(structs: list[Struct]) -> str:
    out = ["// Written by gen_roundtrip.py.", "module roundtrip;", "  int checks = 0;"]
    out += ["  int failures = 0;"]
    out += ["  task automatic check(input logic ok, input string what, input int vector);"]
    out += ["    checks = checks + 1;", "    if (!ok) begin", "      failures = failures + 1;"]
    out += ['      $display("%s, vector %0d", what, vector);', "    end", "  endtask"]
    for st in structs:
        out += sv_bench(st)
    out += ["  initial begin", "    #1;"]
    out += ['    $display("%0d checks, %0d failures", checks, failures);']
    out += ["    if (failures != 0 || checks == 0) $fatal;", "    $finish;", "  end"]
    out += ["endmodule", ""]
    return "\n".join(out)


def prove_text(structs: list[Struct]) -> str:
    """For Yosys: every member is the slice that its Lsb and W name, for every input."""
    out = ["// Written by gen_roundtrip.py."]
    for st in structs:
        pkg, head = "ordma_hw_pkg::", camel(st.name)
        terms = []
        for name in st.vectors[0].values:
            at = f"{pkg}{head}{camel(name)}"
            terms.append(f"    (s_i.{member(name)} == v[{at}Lsb +: {at}W])")
        out.append(f"module prove_{st.name} (input {pkg}{st.name}_t s_i, output logic ok_o);")
        out += [f"  logic [{st.bytes * 8 - 1}:0] v;", "  assign v = s_i;", "  assign ok_o ="]
        out += [" &&\n".join(terms) + ";", "endmodule"]
    return "\n".join([*out, ""])


def main() -> int:
    structs = read(Path(sys.argv[1]))
    out_dir = Path(sys.argv[2])
    out_dir.mkdir(parents=True, exist_ok=True)
    texts = {"roundtrip.c": c_text, "roundtrip.sv": sv_text, "prove.sv": prove_text}
    for name, make in texts.items():
        (out_dir / name).write_text(make(structs))
    proof = [f"sat -verify -prove ok_o 1 prove_{st.name}" for st in structs]
    (out_dir / "prove.ys").write_text("\n".join(proof) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
