# SPDX-License-Identifier: BSD-2-Clause
"""Test vectors: field values and the bytes that they must become."""

import hashlib

from common import BANNER
from spec import Field, Spec, Struct

RANDOM_SETS = 4

HEADER = f"""\
# SPDX-License-Identifier: BSD-2-Clause
# {BANNER}
#
# struct NAME BYTES little|big
# v FIELD=VALUE ... | BYTES
# A value is a number (0x...) or, for a raw field, its bytes in memory order (@...). BYTES is the
# struct as it lies in memory or on the wire, written over zeroes. The first set of each struct has
# every field at its largest value, so its zero bits are the reserved ones."""


def value_of(st: Struct, f: Field, index: int) -> int:
    """Depends on its own field alone, so that a new field leaves all other vectors as they are."""
    if index == 0:
        return f.mask
    seed = f"{st.name}.{f.name}.{index}".encode()
    return int.from_bytes(hashlib.shake_256(seed).digest((f.width + 7) // 8), "big") & f.mask


def encode(st: Struct, values: dict[str, int]) -> bytes:
    """A raw value is the number its bytes make in network order, whatever the struct's order."""
    total = 0
    for f in st.fields:
        value = values[f.name]
        if st.big:
            total |= value << (st.bytes * 8 - f.bit - f.width)
        elif f.raw:
            swapped = int.from_bytes(value.to_bytes(f.width // 8, "big"), "little")
            total |= swapped << f.bit
        else:
            total |= value << f.bit
    return total.to_bytes(st.bytes, "big" if st.big else "little")


def text_of(f: Field, value: int) -> str:
    if f.raw:
        return "@" + value.to_bytes(f.width // 8, "big").hex()
    return hex(value)


def emit(spec: Spec) -> str:
    out = [HEADER]
    for st in spec.structs:
        out.append(f"struct {st.name} {st.bytes} {'big' if st.big else 'little'}")
        for index in range(1 + RANDOM_SETS):
            values = {f.name: value_of(st, f, index) for f in st.fields}
            pairs = " ".join(f"{f.name}={text_of(f, values[f.name])}" for f in st.fields)
            out.append(f"v {pairs} | {encode(st, values).hex()}")
    return "\n".join(out + [""])
