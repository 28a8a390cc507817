#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The generator's checks, its command line and the rules of the tidy test."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tools/hwgen")]

import compat  # noqa: E402
import emit_vectors  # noqa: E402
import hwgen  # noqa: E402
import tidy  # noqa: E402
from names import SpecError  # noqa: E402
from spec import parse  # noqa: E402

SAMPLE = (HERE / "sample.toml").read_text()

# (text of the sample, its replacement, the message that must name the mistake)
LEN = '["len", 1, 31, 0, "byte count"]'
REFUSED = [
    (LEN, '["len", 1, 48, 0, "byte count"]', "struct.cqe.len: overlaps status"),
    (LEN, '["len", 8, 31, 0, "byte count"]', "struct.cqe.len: ends at bit 543, outside"),
    (LEN, '["len", 1, 70, 40, "byte count"]', "struct.cqe.len: bits [70:40] cross a 64-bit word"),
    (LEN, '["len", 1, 0, 31, "byte count"]', "struct.cqe.len: bits [0:31] are reversed"),
    (LEN, '["len", 1, 31, 0, ""]', "struct.cqe.len: has no documentation"),
    (LEN, '["len", 1, 31, 0]', "must have 5 or 6 items"),
    (LEN, '["len", 1, 31, 0, "a\\nb"]', "struct.cqe.len: documentation must be one line"),
    (LEN, '["len", 1, 31, 0, "a */ b"]', "struct.cqe.len: documentation must be ASCII"),
    (LEN, '["Len", 1, 31, 0, "x"]', "name 'Len' must be lower_case"),
    (LEN, '["wr_id", 1, 31, 0, "x"]', "struct.cqe.wr_id: name is used twice"),
    (LEN, '["rsvd1", 1, 31, 0, "x"]', "reserved bits are implicit"),
    (LEN, '["len", 1, 31, 0, "x", "nope"]', "enum 'nope' does not exist"),
    (LEN, '["len", 1, 4, 0, "x", "wqe_op"]', "value READ of enum wqe_op does not fit in 5 bits"),
    (LEN, '["len", -1, 31, 0, "x"]', "-1 is not an unsigned integer"),
    ('["psn", 72, 24,', '["psn", 64, 24,', "struct.bth.psn: overlaps ackreq"),
    ('["psn", 72, 24,', '["psn", 73, 24,', "struct.bth.psn: ends at bit 96, outside"),
    ('["psn", 72, 24,', '["psn", 72, 0,', "struct.bth.psn: width is 0"),
    ('["addr", 72, 128,', '["addr", 73, 128,', "must start and end on a byte"),
    ("bytes = 64", "bytes = 60", "struct.cqe: 60 bytes: must be"),
    ('order = "big"\ndoc = "Base', 'order = "host"\ndoc = "Base', "order 'host' is neither"),
    ('["SEND", 2,', '["SEND", 1,', "enum.wqe_op.SEND: value 0x1 is already WRITE"),
    ('["SEND", 2,', '["SEND", 256,', "enum.wqe_op.SEND: value 0x100 does not fit in 8 bits"),
    ('["SEND", 2,', '["WRITE", 2,', "enum.wqe_op.WRITE: name is used twice"),
    ('["SEND", 2,', '["Send", 2,', "name 'Send' must be UPPER_CASE"),
    ('["SEND", 2, "SEND"]', '["SEND", 2, ""]', "enum.wqe_op.SEND: has no documentation"),
    ('doc = "Work request opcodes"', "", "enum.wqe_op: key 'doc' is missing"),
    ("[enum.cap]", "[enum.token]", "struct.token: an enum has the same name"),
    ('"VERSION", 0x8, 32', '"VERSION", 0x4, 32', "reg.VERSION: offset 0x4 overlaps MAGIC"),
    ('"VERSION", 0x8, 32', '"VERSION", 0xa, 32', "reg.VERSION: offset 0xa is not aligned"),
    ('"VERSION", 0x8, 32', '"VERSION", 0x8, 16', "reg.VERSION: width 16 is neither"),
    ('32, "ro", "contract', '32, "wo", "contract', "reg.VERSION: access 'wo' is neither"),
    ('"VERSION", 0x8', '"MAGIC", 0x8', "reg.MAGIC: name is used twice"),
    ("PAGE_SLOTS = [512,", "Page_slots = [512,", "name 'Page_slots' must be UPPER_CASE"),
    ('"slots of 8 bytes in one doorbell page"', '""', "const.PAGE_SLOTS: has no documentation"),
    ("minor = 1", "minor = 1\nmicro = 2", "contract: key 'micro' is unknown"),
    ("[const]", "[constant]", "key 'constant' is unknown"),
    ("major = 0", "major = = 0", "not TOML"),
    ("[struct.token]", "[struct.class]", "name 'class' is a reserved word of C++"),
    ("PAGE_SLOTS", "CQE_BYTES", "its symbol ORDMA_CQE_BYTES in ordma_hw.h is also made by"),
    ("[struct.token]", "[struct.name]", "its symbol name in ordma_hw.hpp is also made by"),
]

# (text of the sample, its replacement, the report of --compat)
BREAKS = [
    (LEN, '["len", 1, 32, 1, "x"]', "field cqe.len changed: 32 bits at bit 64, now 32"),
    (LEN, '["length", 1, 31, 0, "x"]', "field cqe.len vanished"),
    ('["SEND", 2,', '["SEND", 3,', "enum value wqe_op.SEND changed: 0x2, now 0x3"),
    ('["SEND", 2,', '["SENT", 2,', "enum value wqe_op.SEND vanished"),
    ('"RESET", 0xc', '"RESET", 0x10', "register RESET changed"),
    ('"RESET", 0xc', '"RESTART", 0xc', "register RESET vanished"),
    ("bytes = 29", "bytes = 30", "struct odd_hdr changed: 29 bytes big, now 30 bytes big"),
    ("[512,", "[256,", "const PAGE_SLOTS changed"),
]


def changed(old: str, new: str) -> str:
    if old not in SAMPLE:
        raise AssertionError(f"the sample no longer holds {old!r}")
    return SAMPLE.replace(old, new, 1)


class Checks(unittest.TestCase):
    def test_sample_is_accepted(self) -> None:
        self.assertEqual(set(hwgen.render(parse(SAMPLE))), set(hwgen.OUTPUTS))

    def test_refused(self) -> None:
        for old, new, message in REFUSED:
            with self.subTest(message=message), self.assertRaises(SpecError) as caught:
                hwgen.render(parse(changed(old, new)))
            self.assertIn(message, str(caught.exception))

    def test_all_problems_in_one_run(self) -> None:
        text = changed(LEN, '["len", 1, 48, 0, ""]').replace('["SEND", 2,', '["SEND", 1,')
        with self.assertRaises(SpecError) as caught:
            parse(text)
        self.assertEqual(len(caught.exception.problems), 3)

    def test_reserved_word_is_escaped(self) -> None:
        files = hwgen.render(parse(changed(LEN, '["type", 1, 31, 0, "x"]')))
        self.assertIn("#define ORDMA_CQE_TYPE_W 1\n", files["kernel/core/ordma_hw.h"])
        self.assertIn("logic [31:0] type_;", files["hw/rtl/ordma_hw_pkg.sv"])
        self.assertIn("Field type_{1, 0, 32};", files["hw/model/ordma_hw.hpp"])

    def test_output_starts_with_licence_and_origin(self) -> None:
        for path, text in hwgen.render(parse(SAMPLE)).items():
            head = text.splitlines()[:2]
            dual = path.startswith(("kernel/", "providers/"))
            licence = "GPL-2.0 OR BSD-2-Clause" if dual else "BSD-2-Clause"
            self.assertIn(f"SPDX-License-Identifier: {licence}", head[0], path)
            self.assertIn("generated by tools/hwgen from hw/spec/ordma.toml; do not edit", head[1])


class Vectors(unittest.TestCase):
    def test_bytes_by_hand(self) -> None:
        structs = {st.name: st for st in parse(SAMPLE).structs}
        cqe = dict.fromkeys((f.name for f in structs["cqe"].fields), 0)
        cqe |= {"wr_id": 0x0102030405060708, "status": 0xAB, "sgid": 0xFE << 120 | 1, "phase": 1}
        want = bytearray(64)
        want[0:8] = bytes([8, 7, 6, 5, 4, 3, 2, 1])
        want[14] = 0xAB
        want[32], want[47], want[63] = 0xFE, 1, 0x80
        self.assertEqual(emit_vectors.encode(structs["cqe"], cqe), bytes(want))
        bth = {"opcode": 4, "solicited": 1, "pkey": 0xFFFF, "dqpn": 0x11, "ackreq": 1, "psn": 0x22}
        self.assertEqual(
            emit_vectors.encode(structs["bth"], bth).hex(), "0480ffff" + "00000011" + "80000022"
        )

    def test_new_field_leaves_the_others(self) -> None:
        more = changed(LEN, LEN + ', ["extra", 1, 39, 32, "x"]')
        old, new = (emit_vectors.emit(parse(t)).splitlines() for t in (SAMPLE, more))
        self.assertEqual(len(old), len(new))
        differ = [a for a, b in zip(old, new, strict=True) if a != b]
        self.assertTrue(all(line.startswith("v wr_id=") for line in differ))
        self.assertIn("len=0x179d7b69", differ[1])
        self.assertIn("len=0x179d7b69", new[old.index(differ[1])])


class Compat(unittest.TestCase):
    def test_breaks(self) -> None:
        for old, new, message in BREAKS:
            with self.subTest(message=message):
                report = compat.breaks(parse(SAMPLE), parse(changed(old, new)))
                self.assertTrue(any(message in line for line in report), report)

    def test_major_bump_allows_everything(self) -> None:
        for old, new, _ in BREAKS:
            text = changed(old, new).replace("major = 0", "major = 1")
            self.assertEqual(compat.breaks(parse(SAMPLE), parse(text)), [])

    def test_additions_and_words_are_free(self) -> None:
        text = changed(LEN, '["len", 1, 31, 0, "other words"], ["extra", 1, 39, 32, "x"]')
        self.assertEqual(compat.breaks(parse(SAMPLE), parse(text)), [])

    def test_major_must_not_fall(self) -> None:
        old = parse(SAMPLE.replace("major = 0", "major = 1"))
        self.assertEqual(len(compat.breaks(old, parse(SAMPLE))), 1)


class CommandLine(unittest.TestCase):
    def setUp(self) -> None:
        self.tree = Path(self.enterContext(tempfile.TemporaryDirectory()))
        tool = self.tree / "tools/hwgen"
        shutil.copytree(ROOT / "tools/hwgen", tool, ignore=shutil.ignore_patterns("__pycache__"))
        self.spec = self.tree / "hw/spec/ordma.toml"
        self.spec.parent.mkdir(parents=True)
        self.spec.write_text(SAMPLE)
        self.tool = tool / "hwgen.py"

    def run_tool(self, *args: str) -> tuple[int, str]:
        run = subprocess.run(
            [sys.executable, str(self.tool), *args], capture_output=True, text=True, timeout=60
        )
        return run.returncode, run.stderr

    def git(self, *args: str) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *who, *args], cwd=self.tree, check=True, capture_output=True)

    def test_check_names_file_and_cure(self) -> None:
        self.assertEqual(self.run_tool(), (0, ""))
        self.assertEqual(self.run_tool("--check"), (0, ""))
        package = self.tree / "hw/rtl/ordma_hw_pkg.sv"
        package.write_text(package.read_text() + "\n")
        rc, text = self.run_tool("--check")
        self.assertEqual(rc, 1)
        want = "hw/rtl/ordma_hw_pkg.sv is stale; run tools/hwgen/hwgen.py and commit the result"
        self.assertEqual(text.strip(), f"hwgen: {want}")
        (self.tree / "providers/ordma/ordma_hw.h").unlink()
        rc, text = self.run_tool("--check")
        self.assertEqual((rc, text.count("is stale")), (1, 2))

    def test_unchanged_output_keeps_its_time(self) -> None:
        self.run_tool()
        files = [self.tree / path for path in hwgen.OUTPUTS]
        before = [f.stat().st_mtime_ns for f in files]
        self.run_tool()
        self.assertEqual(before, [f.stat().st_mtime_ns for f in files])

    def test_compat_against_git(self) -> None:
        self.git("init", "-q")
        self.git("add", "hw")
        self.git("commit", "-qm", "spec: first")
        self.assertEqual(self.run_tool("--compat", "HEAD"), (0, ""))
        self.spec.write_text(changed('["SEND", 2,', '["SEND", 3,'))
        rc, text = self.run_tool("--compat", "HEAD")
        self.assertEqual(rc, 1)
        self.assertIn("wqe_op.SEND changed: 0x2, now 0x3; restore it, or raise", text)
        rc, text = self.run_tool("--compat", "no-such-revision")
        self.assertEqual(rc, 1)
        self.assertIn("--compat no-such-revision", text)

    def test_broken_spec_is_one_line_each(self) -> None:
        self.spec.write_text(changed('["SEND", 2,', '["SEND", 1,'))
        rc, text = self.run_tool()
        self.assertEqual(rc, 1)
        self.assertEqual(text, "hwgen: ordma.toml: enum.wqe_op.SEND: value 0x1 is already WRITE\n")
        self.spec.unlink()
        self.assertEqual(self.run_tool()[0], 1)


class Tidy(unittest.TestCase):
    def test_findings(self) -> None:
        bad = [
            "writeq(nonce, dev->regs + 0x100);",
            "x = readl(base + 8);",
            "v = reg_read(0x18);",
            "regs.write(0x100, nonce);".replace("regs.write", "regs_write"),
            "cqe->w[7] = 0;",
            "localparam RegReset = 12'h100;",
            "#define ORDMA_REG_MAGIC 0x0",
        ]
        for line in bad:
            self.assertEqual(len(tidy.findings("f.c", line, {"ORDMA_REG_MAGIC"})), 1, line)
        good = [
            "writeq(nonce, dev->regs + ORDMA_REG_RESET);",
            "db->w[0] = word;",
            "v = reg_read(ORDMA_REG_CAPS);",
            "#define ORDMA_MY_LIMIT 4",
            "cqe->w[ORDMA_CQE_PHASE_W]",
        ]
        for line in good:
            self.assertEqual(tidy.findings("f.c", line, {"ORDMA_REG_MAGIC"}), [], line)

    def test_names_come_from_the_contract(self) -> None:
        names = tidy.generated_names()
        self.assertTrue({"ORDMA_REG_MAGIC", "ORDMA_CQE_STATUS_W", "ORDMA_WQE_OP_SEND"} <= names)


if __name__ == "__main__":
    unittest.main()
