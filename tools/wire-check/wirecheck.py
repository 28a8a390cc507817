#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks a pcapng capture of RoCEv2 traffic with tools that are not ours.

Every frame: IPv4 header checksum, UDP checksum where there is one, RoCEv2 header structure, and the ICRC computed anew.
IPv4 ICRCs are computed twice, the second time by scapy. tshark must find no malformed frame and no expert error.
Prints counts per opcode; exit status 0 = all right, 1 = mismatches (listed), 2 = the capture cannot be read.
"""
import argparse
import collections
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pcapng  # noqa: E402
import roce  # noqa: E402

INBOUND, OUTBOUND = 1, 2
LISTED_MAX = 50
# Application bytes that happen to look like another protocol are not ours to judge.
PAYLOAD_HEURISTICS = ("drbd_rdma", "eth_over_ib", "fc_infiniband", "iser_ib_private", "iser_infiniband", "lnet_ib",
                      "lnet_ib_cm_private", "mellanox_eoib", "nvme_rdma", "nvme_rdma_cm_private", "rpcrdma_infiniband",
                      "sdp_ib_private", "sdp_infiniband", "smb_direct_infiniband", "smcr_infiniband")
# RoCEv2 over IPv6 may leave the UDP checksum out; tshark calls that an error.
EXPECTED_EXPERT = "Illegal checksum value (0)"


def parse_arguments(argv):
    parser = argparse.ArgumentParser(prog="wirecheck.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", help="pcapng file")
    parser.add_argument("--allow-corrupt", action="store_true",
                        help="tolerate errors in received frames whose comment says 'corrupt'")
    parser.add_argument("--trim-dscp", type=int, default=None, metavar="N",
                        help="frames of this DSCP are trimmed (have no ICRC), besides those whose comment says 'trim'")
    parser.add_argument("--scapy-max", type=int, default=20000, metavar="N",
                        help="IPv4 ICRCs to compute a second time with scapy (default %(default)s, spread evenly)")
    parser.add_argument("--min-roce", type=int, default=1, metavar="N",
                        help="fail when the capture has fewer RoCEv2 frames (default %(default)s)")
    return parser.parse_args(argv)


def planted(frame, word):
    """Whether the capture says that the fabric did this to the frame. What a NIC sent was whole in any case."""
    return frame.direction != OUTBOUND and word in (part.strip() for part in frame.comment.split(","))


def scapy_icrc(packet):
    """ICRC of an IPv4 packet as scapy computes it."""
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP
    parsed = IP(packet)
    parsed[BTH].icrc = None
    return bytes(parsed)[-roce.ICRC_BYTES:]


class Report:
    def __init__(self):
        self.frames = self.roce = self.cross_checked = self.tolerated = self.harmless = self.trimmed = 0
        self.opcodes = collections.Counter()
        self.bad = {}  # frame number -> (interface, [reasons])
        self.tolerant = set()  # numbers of frames in which anything may be wrong
        self.trimmed_frames = set()
        self.ipv4 = []  # (frame, IP packet) for scapy

    def add_errors(self, frame, reasons):
        self.bad.setdefault(frame.number, (frame.interface, []))[1].extend(reasons)


def check_frames(arguments, report):
    for frame in pcapng.read(arguments.capture):
        report.frames += 1
        corrupt = arguments.allow_corrupt and planted(frame, "corrupt")
        trimmed = planted(frame, "trim")
        verdict = roce.check_frame(frame.data, trimmed)
        if arguments.trim_dscp is not None and verdict.dscp == arguments.trim_dscp and not trimmed:
            trimmed = True
            verdict = roce.check_frame(frame.data, True)
        if not frame.whole:
            verdict.errors = ["the capture cut this frame short"]
        if corrupt:
            report.tolerant.add(frame.number)
            report.tolerated += 1
            report.harmless += not verdict.errors  # the bit fell into a field that no check covers
            continue
        if trimmed:
            report.trimmed += 1
            report.trimmed_frames.add(frame.number)
        report.roce += verdict.roce
        if verdict.roce and verdict.opcode >= 0:
            report.opcodes[verdict.opcode] += 1
        if verdict.errors:
            report.add_errors(frame, verdict.errors)
        elif verdict.roce and verdict.ipv4 and not trimmed:
            report.ipv4.append((frame, verdict.packet))


def cross_check(arguments, report):
    """The same ICRCs from code that nobody here wrote."""
    step = max(1, -(-len(report.ipv4) // max(arguments.scapy_max, 1)))
    for frame, packet in report.ipv4[::step] if arguments.scapy_max > 0 else ():
        report.cross_checked += 1
        computed, carried = scapy_icrc(packet), packet[-roce.ICRC_BYTES:]
        if computed != carried:
            report.add_errors(frame, [f"ICRC is {carried.hex()}, scapy says {computed.hex()}"])


def run_tshark(capture):
    """Yields (frame number, reason) for everything that tshark takes offence at."""
    command = ["tshark", "-n", "-r", capture, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    for heuristic in PAYLOAD_HEURISTICS:
        command += ["--disable-heuristic", heuristic]
    command += ["-Y", "_ws.malformed || _ws.expert.severity >= error", "-T", "fields", "-E", "separator=\t",
                "-E", "aggregator=;", "-e", "frame.number", "-e", "_ws.expert.message", "-e", "_ws.malformed"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise pcapng.CaptureError(f"tshark failed: {done.stderr.strip()}")
    for line in done.stdout.splitlines():
        number, message, malformed = (line.split("\t") + ["", ""])[:3]
        reasons = [part for part in message.split(";") if part]
        yield int(number), reasons, bool(malformed)


def check_tshark(arguments, report):
    frames = {}
    for number, reasons, malformed in run_tshark(arguments.capture):
        reasons = [reason for reason in reasons if reason != EXPECTED_EXPERT]
        if number in report.tolerant or number in report.trimmed_frames and malformed:
            continue
        if reasons or malformed:
            frames[number] = ["tshark: " + (", ".join(reasons) or "malformed")]
    if not frames:
        return
    for frame in pcapng.read(arguments.capture):
        if frame.number in frames:
            report.add_errors(frame, frames[frame.number])


def print_report(arguments, report):
    print(f"{arguments.capture}: {report.frames} frames, {report.roce} RoCEv2, "
          f"{report.cross_checked} ICRCs also computed by scapy")
    for opcode, count in sorted(report.opcodes.items()):
        print(f"  0x{opcode:02x} {roce.opcode_name(opcode):34} {count:9}")
    if report.trimmed:
        print(f"  trimmed on purpose, no ICRC to check: {report.trimmed}")
    if report.tolerated:
        print(f"  corrupted on purpose: {report.tolerated}, of which {report.harmless} in a field that no check covers")
    for number, (interface, reasons) in sorted(report.bad.items())[:LISTED_MAX]:
        print(f"frame {number} ({interface}): {'; '.join(reasons)}")
    if len(report.bad) > LISTED_MAX:
        print(f"... and {len(report.bad) - LISTED_MAX} more")


def main(argv):
    arguments = parse_arguments(argv)
    roce.check_vectors()
    report = Report()
    try:
        check_frames(arguments, report)
        cross_check(arguments, report)
        check_tshark(arguments, report)
    except (OSError, pcapng.CaptureError, subprocess.TimeoutExpired) as error:
        print(f"wirecheck: {error}", file=sys.stderr)
        return 2
    print_report(arguments, report)
    if report.roce < arguments.min_roce:
        print(f"wirecheck: {report.roce} RoCEv2 frames, expected at least {arguments.min_roce}")
        return 1
    print(f"wirecheck: {'FAIL, ' + str(len(report.bad)) + ' bad frames' if report.bad else 'ok'}")
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
