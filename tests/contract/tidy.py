#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Nothing but hw/spec types a contract offset: finds numbers where a generated name belongs."""

import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/hwgen"))

import emit_c  # noqa: E402
from hwgen import OUTPUTS, SPEC  # noqa: E402
from spec import parse  # noqa: E402

SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".cc", ".sv", ".svh", ".v", ".py"}
# The generator and its tests speak about offsets by trade.
EXEMPT = ("tools/hwgen/", "tests/contract/")

NUMBER = r"(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*"
RULES = [
    (
        re.compile(rf"\b(?:read|write)[lq](?:_relaxed)?\s*\([^;]*\+\s*{NUMBER}\s*\)"),
        "register access at a typed offset",
    ),
    (
        re.compile(rf"\bio(?:read|write)(?:32|64)\s*\([^;]*\+\s*{NUMBER}\s*\)"),
        "register access at a typed offset",
    ),
    (
        re.compile(rf"\breg(?:ister)?s?_?(?:read|write|load|store|rd|wr)\w*\s*\(\s*{NUMBER}\b"),
        "register access at a typed offset",
    ),
    (re.compile(r"(?:->|\.)w\[\s*[1-9]\d*\s*\]"), "word of a contract struct by number"),
    (re.compile(r"\bReg[A-Z]\w*\s*=\s*(?:\d+'[hd])?[0-9a-fA-F]+\s*;"), "register offset retyped"),
]
DEFINE = re.compile(r"^\s*#\s*define\s+(ORDMA_\w+)")


def findings(path: str, text: str, generated: set[str]) -> list[str]:
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        for rule, what in RULES:
            if rule.search(line):
                out.append(f"{path}:{number}: {what}: {line.strip()}")
        define = DEFINE.match(line)
        if define and define[1] in generated:
            out.append(f"{path}:{number}: {define[1]} comes from {SPEC} and is defined again")
    return out


def generated_names() -> set[str]:
    header = emit_c.emit(parse((ROOT / SPEC).read_text()))
    found = re.findall(r"^#define (ORDMA_\w+)|^\t(ORDMA_\w+) = ", header, re.M)
    return {macro or constant for macro, constant in found}


def main() -> int:
    names = generated_names()
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    )
    problems: list[str] = []
    files = 0
    for path in listing.stdout.splitlines():
        file = ROOT / path
        if path in OUTPUTS or path.startswith(EXEMPT) or file.suffix not in SUFFIXES:
            continue
        if file.is_file():
            files += 1
            problems += findings(path, file.read_text(errors="replace"), names)
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(problems)} findings")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
