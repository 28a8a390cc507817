# SPDX-License-Identifier: BSD-2-Clause
"""The C header, one text for kernel C, userspace C11 and C++20."""

from common import BANNER, bits, note, num, with_note
from names import Symbols
from spec import Enum, Spec, Struct

PROLOGUE = """\
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* {banner} */
/*
 * {doc}
 *
 * One text for the kernel, C11 and C++20. A struct of little-endian words is
 * read with ORDMA_GET(ptr, CQE_STATUS) and written with ORDMA_SET(ptr,
 * CQE_STATUS, value); ORDMA_FIELD() places a value in a host-order word and
 * ORDMA_WGET() takes it out again, so a whole word can be built or fetched once
 * and accessed once. Packet headers use ORDMA_BE_GET() and ORDMA_BE_SET().
 * Values wider than their field are cut to it. Bits without a name are reserved:
 * written as zero and ignored when read.
 *
 * Per field of a word struct: _W word index, _S shift, _M mask before the shift,
 * _T type that the field belongs to. Per field of a packet header: _B first bit
 * counted from the first transmitted bit, _L length in bits. Per raw byte field:
 * _OFF and _LEN in bytes.
 */
#ifndef ORDMA_HW_H
#define ORDMA_HW_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <asm/byteorder.h>
#define ORDMA_HW_U64 u64
#define ORDMA_HW_LE64_TO_CPU(v) le64_to_cpu(v)
#define ORDMA_HW_CPU_TO_LE64(v) cpu_to_le64(v)
#else
#include <stdint.h>
#include <linux/types.h>
#ifdef __CHECKER__
#define ORDMA_HW_FORCE __attribute__((force))
#else
#define ORDMA_HW_FORCE
#endif
#define ORDMA_HW_U64 uint64_t
/* endian.h hides le64toh() under -std=c11, so the compiler's own words serve. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDMA_HW_SWAP64(v) (v)
#else
#define ORDMA_HW_SWAP64(v) __builtin_bswap64(v)
#endif
#define ORDMA_HW_LE64_TO_CPU(v) ORDMA_HW_SWAP64((ORDMA_HW_FORCE uint64_t)(v))
#define ORDMA_HW_CPU_TO_LE64(v) ((ORDMA_HW_FORCE __le64)ORDMA_HW_SWAP64((uint64_t)(v)))
#endif

#ifdef __cplusplus
#define ORDMA_HW_ASSERT(cond, text) static_assert(cond, text)
#else
#define ORDMA_HW_ASSERT(cond, text) _Static_assert(cond, text)
#endif
#define ORDMA_HW_SIZE(tag, bytes) \\
	ORDMA_HW_ASSERT(sizeof(struct tag) == (bytes), "size of struct " #tag)

static inline ORDMA_HW_U64 ordma_hw_get(const __le64 *w, ORDMA_HW_U64 mask,
					unsigned int shift)
{{
	return (ORDMA_HW_LE64_TO_CPU(*w) >> shift) & mask;
}}

static inline void ordma_hw_set(__le64 *w, ORDMA_HW_U64 mask, unsigned int shift,
				ORDMA_HW_U64 value)
{{
	ORDMA_HW_U64 word = ORDMA_HW_LE64_TO_CPU(*w);

	word = (word & ~(mask << shift)) | ((value & mask) << shift);
	*w = ORDMA_HW_CPU_TO_LE64(word);
}}

/* A field need not start on a byte, so it may touch nine of them. */
static inline ORDMA_HW_U64 ordma_hw_be_get(const __u8 *b, unsigned int bit,
					   unsigned int len)
{{
	ORDMA_HW_U64 value = 0;

	while (len) {{
		unsigned int room = 8 - bit % 8;
		unsigned int take = room < len ? room : len;
		unsigned int part = (unsigned int)b[bit / 8] >> (room - take);

		value = (value << take) | (part & ((1u << take) - 1));
		bit += take;
		len -= take;
	}}
	return value;
}}

static inline void ordma_hw_be_set(__u8 *b, unsigned int bit, unsigned int len,
				   ORDMA_HW_U64 value)
{{
	while (len) {{
		unsigned int room = 8 - bit % 8;
		unsigned int take = room < len ? room : len;
		unsigned int low = room - take;
		unsigned int mask = ((1u << take) - 1) << low;
		unsigned int part = (unsigned int)(value >> (len - take)) << low;

		b[bit / 8] = (__u8)((b[bit / 8] & ~mask) | (part & mask));
		bit += take;
		len -= take;
	}}
}}

/* The conditional refuses a pointer to any struct but the field's own. */
#define ORDMA_HW_PTR(p, F) (1 ? (p) : (ORDMA_##F##_T *)0)

#define ORDMA_GET(p, F) \\
	ordma_hw_get(&ORDMA_HW_PTR(p, F)->w[ORDMA_##F##_W], ORDMA_##F##_M, ORDMA_##F##_S)
#define ORDMA_SET(p, F, v) \\
	ordma_hw_set(&ORDMA_HW_PTR(p, F)->w[ORDMA_##F##_W], ORDMA_##F##_M, \\
		     ORDMA_##F##_S, (v))
#define ORDMA_FIELD(F, v) (((ORDMA_HW_U64)(v) & ORDMA_##F##_M) << ORDMA_##F##_S)
#define ORDMA_WGET(word, F) (((ORDMA_HW_U64)(word) >> ORDMA_##F##_S) & ORDMA_##F##_M)
#define ORDMA_BE_GET(p, F) \\
	ordma_hw_be_get(ORDMA_HW_PTR(p, F)->b, ORDMA_##F##_B, ORDMA_##F##_L)
#define ORDMA_BE_SET(p, F, v) \\
	ordma_hw_be_set(ORDMA_HW_PTR(p, F)->b, ORDMA_##F##_B, ORDMA_##F##_L, (v))

/* Contract version; the major numbers of driver and device must be equal. */
#define ORDMA_CONTRACT_MAJOR {major}
#define ORDMA_CONTRACT_MINOR {minor}
"""

TAKEN = (
    "ORDMA_HW_H ORDMA_HW_U64 ORDMA_HW_LE64_TO_CPU ORDMA_HW_CPU_TO_LE64 ORDMA_HW_FORCE "
    "ORDMA_HW_SWAP64 ORDMA_HW_ASSERT ORDMA_HW_SIZE ORDMA_HW_PTR ORDMA_GET ORDMA_SET ORDMA_FIELD "
    "ORDMA_WGET ORDMA_BE_GET ORDMA_BE_SET ORDMA_CONTRACT_MAJOR ORDMA_CONTRACT_MINOR"
).split()


def literal(value: int) -> str:
    if value < 1 << 31:
        return num(value)
    return f"{value:#x}ULL"


def emit_enum(sy: Symbols, en: Enum) -> list[str]:
    prefix = f"ORDMA_{en.name.upper()}"
    out = ["", *note(f"{en.doc} ({en.width} bits)", c_style=True)]
    wide = any(v.value >> 31 for v in en.values)
    if not wide:
        out.append(f"enum ordma_{en.name} {{")
    for v in en.values:
        name = sy.add(f"{prefix}_{v.name}", f"enum.{en.name}.{v.name}")
        if wide:
            out += [*note(v.doc, c_style=True), f"#define {name} {v.value:#x}ULL"]
        else:
            out += with_note(f"\t{name} = {num(v.value)},", v.doc, c_style=True)
    if not wide:
        out.append("};")
    return out


def emit_struct(sy: Symbols, st: Struct) -> list[str]:
    tag = f"struct ordma_{st.name}"
    up = f"ORDMA_{st.name.upper()}"
    sy.add(tag, f"struct.{st.name}")
    member = f"__u8 b[{st.bytes}]" if st.big else f"__le64 w[{st.bytes // 8}]"
    out = ["", *note(st.doc, c_style=True), f"{tag} {{", f"\t{member};", "};", ""]
    out.append(f"#define {sy.add(up + '_BYTES', f'struct.{st.name}')} {st.bytes}")
    out.append(f"ORDMA_HW_SIZE(ordma_{st.name}, {up}_BYTES);")
    for f in st.fields:
        origin = f"struct.{st.name}.{f.name}"
        base = f"{up}_{f.name.upper()}"
        if f.raw:
            parts = [("OFF", str(f.bit // 8)), ("LEN", str(f.width // 8))]
        elif st.big:
            parts = [("T", tag), ("B", str(f.bit)), ("L", str(f.width))]
        else:
            parts = [("T", tag), ("W", str(f.word)), ("S", str(f.shift)), ("M", f"{f.mask:#x}ULL")]
        enum = f"; enum ordma_{f.enum}" if f.enum else ""
        out += ["", *note(f"{bits(st, f)}: {f.doc}{enum}", c_style=True)]
        out += [f"#define {sy.add(f'{base}_{k}', origin)} {v}" for k, v in parts]
    return out


def emit(spec: Spec) -> str:
    sy = Symbols("ordma_hw.h", tuple(TAKEN))
    out = [PROLOGUE.format(banner=BANNER, doc=spec.doc, major=spec.major, minor=spec.minor)]
    for c in spec.consts:
        out += note(c.doc, c_style=True)
        out.append(f"#define {sy.add(f'ORDMA_{c.name}', f'const.{c.name}')} {literal(c.value)}")
    if spec.regs:
        out += ["", "/* Registers: byte offsets in the register page. */"]
    for r in spec.regs:
        name = sy.add(f"ORDMA_REG_{r.name}", f"reg.{r.name}")
        out += note(f"{r.width} bits, {r.access}: {r.doc}", c_style=True)
        out.append(f"#define {name} {r.offset:#06x}")
    for en in spec.enums:
        out += emit_enum(sy, en)
    for st in spec.structs:
        out += emit_struct(sy, st)
    sy.finish()
    return "\n".join(out + ["", "#endif /* ORDMA_HW_H */", ""])
