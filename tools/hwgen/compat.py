# SPDX-License-Identifier: BSD-2-Clause
"""What a peer built from an older contract would notice."""

from spec import Spec


def facts(spec: Spec) -> dict[str, str]:
    """Everything an old peer relies on, by name; documentation is not among it."""
    out: dict[str, str] = {}
    for c in spec.consts:
        out[f"const {c.name}"] = f"value {c.value:#x}"
    for r in spec.regs:
        out[f"register {r.name}"] = f"{r.width} bits {r.access} at {r.offset:#x}"
    for en in spec.enums:
        for v in en.values:
            out[f"enum value {en.name}.{v.name}"] = f"{v.value:#x}"
    for st in spec.structs:
        order = "big" if st.big else "little"
        out[f"struct {st.name}"] = f"{st.bytes} bytes {order}"
        for f in st.fields:
            out[f"field {st.name}.{f.name}"] = f"{f.width} bits at bit {f.bit}"
    return out


def breaks(old: Spec, new: Spec) -> list[str]:
    """Breaking changes; none count when the major number was raised."""
    if new.major > old.major:
        return []
    if new.major < old.major:
        return [f"contract.major fell from {old.major} to {new.major}"]
    now = facts(new)
    out = []
    for name, was in facts(old).items():
        if name not in now:
            out.append(f"{name} vanished (it was {was})")
        elif now[name] != was:
            out.append(f"{name} changed: {was}, now {now[name]}")
    return out
