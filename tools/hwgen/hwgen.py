#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Generates every view of the hardware/software contract from hw/spec/ordma.toml."""

import argparse
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import compat  # noqa: E402
import emit_c  # noqa: E402
import emit_cpp  # noqa: E402
import emit_md  # noqa: E402
import emit_sv  # noqa: E402
import emit_vectors  # noqa: E402
from names import SpecError  # noqa: E402
from spec import Spec, parse  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SPEC = "hw/spec/ordma.toml"
CURE = "tools/hwgen/hwgen.py"

OUTPUTS = {
    "kernel/core/ordma_hw.h": emit_c.emit,
    "providers/ordma/ordma_hw.h": emit_c.emit,
    "hw/rtl/ordma_hw_pkg.sv": emit_sv.emit,
    "hw/model/ordma_hw.hpp": emit_cpp.emit,
    "hw/spec/hw-interface.md": emit_md.emit,
    "tests/contract/vectors.txt": emit_vectors.emit,
}


def render(spec: Spec) -> dict[str, str]:
    """All outputs, or one SpecError with the problems of all."""
    out: dict[str, str] = {}
    problems: list[str] = []
    for path, emit in OUTPUTS.items():
        try:
            out[path] = emit(spec)
        except SpecError as error:
            problems += [p for p in error.problems if p not in problems]
    if problems:
        raise SpecError(problems)
    return out


def stale(files: dict[str, str], root: Path) -> list[str]:
    """Paths whose committed text differs from the rendered one."""
    out = []
    for path, text in files.items():
        file = root / path
        if not file.is_file() or file.read_bytes() != text.encode():
            out.append(path)
    return out


def write(files: dict[str, str], root: Path) -> None:
    """Leaves unchanged files alone, so that make rebuilds only what a change touches."""
    for path in stale(files, root):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(files[path].encode())
        print(f"wrote {path}")


def old_spec(rev: str) -> Spec:
    show = subprocess.run(
        ["git", "-C", str(ROOT), "show", f"{rev}:{SPEC}"], capture_output=True, text=True
    )
    if show.returncode:
        raise SpecError([f"--compat {rev}: {show.stderr.strip()}"])
    return parse(show.stdout)


def run(args: argparse.Namespace) -> list[str]:
    """Does what was asked; returns the problems."""
    spec = parse(args.spec.read_text())
    if args.compat:
        broken = compat.breaks(old_spec(args.compat), spec)
        advice = f"restore it, or raise contract.major above {spec.major}"
        return [f"{b}; {advice}" for b in broken]
    files = render(spec)
    if args.check:
        late = stale(files, args.out_root)
        return [f"{path} is stale; run {CURE} and commit the result" for path in late]
    write(files, args.out_root)
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 when stale")
    parser.add_argument("--compat", metavar="REV", help="refuse breaking changes since REV")
    parser.add_argument("--out-root", type=Path, default=ROOT, metavar="DIR")
    parser.add_argument("--spec", type=Path, default=ROOT / SPEC, metavar="FILE")
    args = parser.parse_args()
    try:
        problems = run(args)
    except OSError as error:
        problems = [str(error)]
    except SpecError as error:
        problems = [f"{args.spec.name}: {p}" for p in error.problems]
    for problem in problems:
        print(f"hwgen: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
