#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the packet oracle: good frames of every kind pass, every planted fault is found and named."""
import contextlib
import io
import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pcapng  # noqa: E402
import roce  # noqa: E402
import wirecheck  # noqa: E402
from scapy.contrib import roce as scapy_roce  # noqa: E402
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.layers.l2 import Dot1Q, Ether  # noqa: E402
from scapy.packet import Raw  # noqa: E402

MACS = {"src": "02:6f:72:64:00:01", "dst": "02:6f:72:64:00:02"}


def block(kind, body):
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def option(code, value):
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def capture(path, frames):
    """Writes (frame bytes, comment, direction) to a pcapng file."""
    with open(path, "wb") as out:
        out.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        out.write(block(1, struct.pack("<HHI", 1, 0, 0) + option(2, b"eth9") + option(9, b"\x09") + option(0, b"")))
        for number, (data, comment, direction) in enumerate(frames):
            body = struct.pack("<IIIII", 0, 0, number * 1000, len(data), len(data)) + data + b"\0" * (-len(data) % 4)
            if comment:
                body += option(1, comment.encode())
            body += option(2, struct.pack("<I", direction)) + option(0, b"")
            out.write(block(6, body))


def bth(opcode, payload, psn=1, pad=None, flags8=0):
    pad = -len(payload) % 4 if pad is None else pad
    head = struct.pack("!BBHII", opcode, 0x40 | pad << 4, 0xFFFF, 0x12, flags8 << 24 | psn)
    return head, payload + b"\0" * pad


def v4(opcode, payload=b"", vlan=False, **more):
    """A good IPv4 frame made by scapy alone, its ICRC included."""
    head, body = bth(opcode, payload, **more)
    ethernet = Ether(**MACS) / Dot1Q(vlan=7) if vlan else Ether(**MACS)
    transport = scapy_roce.BTH(opcode=head[0], migreq=1, padcount=head[1] >> 4 & 3, dqpn=0x12, ackreq=head[8] >> 7,
                               resv7=head[8] & 0x7F, psn=int.from_bytes(head[9:12], "big"))
    udp = IP(src="10.0.0.1", dst="10.0.0.2", flags="DF", tos=2) / UDP(sport=0xC000, dport=4791, chksum=0)
    return bytes(ethernet / udp / transport / Raw(body))


def crc32_bitwise(data):
    """CRC-32 from its polynomial, one bit at a time, so that IPv6 ICRCs do not rest on the oracle's own code."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def v6(opcode, payload=b"", checksum=True, **more):
    """A good IPv6 frame, written out field by field; the masked form for the ICRC likewise."""
    head, body = bth(opcode, payload, **more)
    length = 8 + len(head) + len(body) + 4
    addresses = bytes.fromhex("fe80" + "00" * 13 + "01" + "fe80" + "00" * 13 + "02")
    packet = struct.pack("!IHBB", 6 << 28 | 2 << 20 | 0xABCDE, length, 17, 64) + addresses
    packet += struct.pack("!4H", 0xC000, 4791, length, 0) + head + body
    masked = b"\xff" * 8 + struct.pack("!IHBB", 0x6FFFFFFF, length, 17, 255) + addresses
    masked += struct.pack("!4H", 0xC000, 4791, length, 0xFFFF) + head[:4] + b"\xff" + head[5:] + body
    packet += struct.pack("<I", crc32_bitwise(masked))
    if checksum:
        total = roce.ones_sum(addresses + struct.pack("!II", length, 17) + packet[40:])
        packet = packet[:46] + struct.pack("!H", ~total & 0xFFFF or 0xFFFF) + packet[48:]
    return bytes.fromhex("026f72640002026f7264000186dd") + packet


def ext(opcode, flags8=0):
    return b"\x5a" * roce.extended_header_bytes(opcode, bytes(8) + bytes([flags8]))


def flip(data, byte, bit=0):
    changed = bytearray(data)
    changed[byte] ^= 1 << bit
    return bytes(changed)


class Oracle(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, "t.pcapng")

    def tearDown(self):
        self.directory.cleanup()

    def run_on(self, frames, *flags):
        capture(self.path, [frame if isinstance(frame, tuple) else (frame, "", 2) for frame in frames])
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = wirecheck.main([*flags, self.path])
        return status, out.getvalue()

    def assert_bad(self, frame, *words, flags=()):
        """A fault planted between two good frames is listed under its number, and nothing else is."""
        status, text = self.run_on([v4(0x04, b"good"), frame, v6(0x04, b"good")], *flags)
        self.assertEqual(status, 1, text)
        listed = [line for line in text.splitlines() if line.startswith("frame ")]
        self.assertEqual(len(listed), 1, text)
        self.assertTrue(listed[0].startswith("frame 2 (eth9)"), text)
        for word in words:
            self.assertIn(word, listed[0])

    def test_every_opcode_and_padding_passes(self):
        opcodes = [op for op in scapy_roce._bth_opcodes if op >> 5 in (0, 1, 3)]
        opcodes += list(roce.MORE_NAMES) + list(roce.MRC_NAMES)
        frames = []
        for opcode in opcodes:
            bodies = [b""] if opcode in roce.MRC_CONTROL_BYTES else [b"x" * n for n in (1, 2, 3, 4, 1024)]
            for body in bodies:
                frames += [v4(opcode, ext(opcode) + body), v6(opcode, ext(opcode) + body)]
        frames += [v4(0xCA, ext(0xCA, 0x10) + b"data", flags8=0x10), v4(0x81, bytes(16)), v6(0x81, bytes(16))]
        frames += [v4(0x0A, ext(0x0A) + b"data", vlan=True)]
        status, text = self.run_on(frames)
        self.assertEqual(status, 0, text)
        self.assertIn(f"{len(frames)} frames, {len(frames)} RoCEv2", text)
        self.assertIn("MRC_WRITE_ONLY", text)
        self.assertIn("RC_RDMA_READ_REQUEST", text)

    def test_known_vectors(self):
        roce.check_vectors()
        for packet, icrc in roce.ICRC_VECTORS:
            ipv4 = packet.startswith("45")
            frame = bytes.fromhex("026f72640002026f72640001" + ("0800" if ipv4 else "86dd") + packet + icrc)
            verdict = roce.check_frame(frame)
            self.assertEqual((verdict.roce, verdict.errors), (True, []))
            if ipv4:
                self.assertEqual(wirecheck.scapy_icrc(frame[14:]).hex(), icrc)

    def test_every_byte_is_covered_but_the_masked_one(self):
        for frame, udp in ((v4(0x0A, ext(0x0A) + b"12345678"), 34), (v6(0x0A, ext(0x0A) + b"12345678", checksum=False), 54)):
            other_port, masked = (udp + 2, udp + 3), udp + 8 + 4
            for byte in range(udp, len(frame)):
                verdict = roce.check_frame(flip(frame, byte, byte % 8))
                self.assertEqual(verdict.roce, byte not in other_port)
                self.assertEqual(bool(verdict.errors), byte not in (*other_port, masked), f"byte {byte} of {frame.hex()}")

    def test_masked_fields_may_change_on_the_way(self):
        frame = bytearray(v6(0x04, b"data"))
        frame[14] |= 0x0F  # traffic class
        frame[16] ^= 0xFF  # flow label
        frame[21] = 3  # hop limit
        self.assertEqual(self.run_on([bytes(frame)])[0], 0)

    def test_planted_faults_are_found(self):
        good4, good6 = v4(0x0A, ext(0x0A) + b"some data"), v6(0x0A, ext(0x0A) + b"some data")
        self.assert_bad(flip(good4, 70), "ICRC is")
        self.assert_bad(flip(good4, len(good4) - 1), "ICRC is")
        self.assert_bad(flip(good6, 90), "ICRC is", "UDP checksum")
        self.assert_bad(flip(v6(0x04, b"data", checksum=False), 70), "ICRC is")
        self.assert_bad(flip(good4, 24), "IPv4 header checksum", "tshark: ")
        self.assert_bad(flip(good6, 60), "UDP checksum", "tshark: ")
        self.assert_bad(flip(good4, 39), "UDP length")
        self.assert_bad(good4[:-1], "IPv4 version 4")
        self.assert_bad(good6[:-1], "IPv6 version 6")
        self.assert_bad(good4[:30], "too short for its IP header")
        self.assert_bad(good4[:10], "shorter than an Ethernet header")

    def test_wrong_headers_with_right_checksums_are_found(self):
        self.assert_bad(v4(0x0A, ext(0x0A) + b"12345", pad=2), "no multiple of 4")
        self.assert_bad(v4(0x1F, b"1234"), "unknown opcode 0x1f")
        self.assert_bad(v4(0x0A, b"1234"), "cannot hold the headers")
        self.assert_bad(v4(0xDC, ext(0xDC) + b"1234"), "behind its header")
        self.assert_bad(v4(0x81, bytes(12)), "CNP")

    def test_udp_checksum_zero_is_allowed(self):
        self.assertEqual(self.run_on([v6(0x04, b"data", checksum=False)])[0], 0)

    def test_corruption_is_tolerated_only_where_it_was_planted(self):
        bad = flip(v4(0x0A, ext(0x0A) + b"some data"), 70)
        good = v4(0x04, b"good")
        planted = (bad, "corrupt, path 1", 1)
        self.assertEqual(self.run_on([good, planted])[0], 1)
        status, text = self.run_on([good, planted, (flip(bad, 16, 5), "dup, corrupt, path 0", 1)], "--allow-corrupt")
        self.assertEqual(status, 0, text)
        self.assertIn("corrupted on purpose: 2, of which 0", text)
        self.assert_bad((bad, "", 1), "ICRC", flags=["--allow-corrupt"])
        self.assert_bad((bad, "corrupt, path 1", 2), "ICRC", flags=["--allow-corrupt"])  # as sent: must be whole
        self.assert_bad((bad, "corruption", 1), "ICRC", flags=["--allow-corrupt"])

    def test_trimmed_frames_have_no_icrc(self):
        whole = v4(0xCA, ext(0xCA) + b"x" * 256)
        cut = bytearray(whole[:34 + 8 + 40])
        cut[15] = 12 << 2
        cut[16:18], cut[24:26], cut[38:40] = struct.pack("!H", 68), b"\0\0", struct.pack("!H", 48)
        cut[24:26] = struct.pack("!H", ~roce.ones_sum(bytes(cut[14:34])) & 0xFFFF)
        good = v4(0x04, b"good")
        self.assertEqual(self.run_on([good, (bytes(cut), "", 1)])[0], 1)
        self.assertEqual(self.run_on([good, (bytes(cut), "trim, path 0", 1)])[0], 0)
        self.assertEqual(self.run_on([good, (bytes(cut), "", 1)], "--trim-dscp", "12")[0], 0)
        self.assert_bad((flip(bytes(cut), 24), "trim, path 0", 1), "IPv4 header checksum")

    def test_scapy_disagreement_is_reported(self):
        real = roce.icrc
        frame = v4(0x04, b"data")
        wrong = frame[:-4] + b"\1\2\3\4"
        roce.icrc = lambda packet: b"\1\2\3\4"
        try:
            capture(self.path, [(wrong, "", 2)])
            report = wirecheck.Report()
            arguments = wirecheck.parse_arguments([self.path])
            wirecheck.check_frames(arguments, report)
            wirecheck.cross_check(arguments, report)
        finally:
            roce.icrc = real
        self.assertIn("scapy says", str(report.bad))

    def test_captures_without_roce_and_broken_files_fail(self):
        arp = bytes.fromhex("ffffffffffff026f72640001" "0806" "0001080006040001" "026f72640001" "0a000001"
                            "000000000000" "0a000002")
        self.assertEqual(self.run_on([arp])[0], 1)
        self.assertEqual(self.run_on([arp], "--min-roce", "0")[0], 0)
        with open(self.path, "rb") as whole:
            content = whole.read()
        for broken in (b"", b"\0" * 64, content[:-3], content[:60], content.replace(b"\x4d\x3c\x2b\x1a", b"\0" * 4)):
            with open(self.path, "wb") as out:
                out.write(broken)
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(wirecheck.main([self.path]), 2)
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(wirecheck.main(["/nonexistent"]), 2)

    def test_reader_keeps_names_times_and_comments(self):
        capture(self.path, [(v4(0x04, b"1"), "", 2), (v4(0x04, b"2"), "corrupt, path 3", 1)])
        frames = list(pcapng.read(self.path))
        self.assertEqual([(f.number, f.interface, f.direction, f.time_ns, f.comment) for f in frames],
                         [(1, "eth9", 2, 0, ""), (2, "eth9", 1, 1000, "corrupt, path 3")])


def main():
    result = unittest.TextTestRunner(verbosity=1).run(unittest.defaultTestLoader.loadTestsFromTestCase(Oracle))
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
