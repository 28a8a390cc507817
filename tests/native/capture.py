#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Says whether a capture of the [capture] verbs tests has on the wire what the cases want there.

Checksums, ICRC and structure are wirecheck.py's business; here are the facts that one case is about. Packets are those that the
NICs sent. Usage: capture.py FILE. One line per check and the closing line.
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/wire-check"))
import pcapng  # noqa: E402

OUTBOUND, UDP_BYTES, ROCE_PORT = 2, 8, 4791
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY, SEND_ONLY_IMM = 0x00, 0x01, 0x02, 0x04, 0x05
WRITE_ONLY, READ_REQUEST, READ_ONLY, ACK, ATOMIC_ACK, CMP_SWAP, FETCH_ADD = 0x0A, 0x0C, 0x10, 0x11, 0x12, 0x13, 0x14
# RC requests that end a message: whoever waits for an answer must ask for it.
ASKS = {0x02, 0x03, 0x04, 0x05, 0x08, 0x09, 0x0A, 0x0B, READ_REQUEST, CMP_SWAP, FETCH_ADD}


class Packet:
    def __init__(self, interface, packet):
        self.interface, self.ip = interface, packet
        if packet[0] >> 4 == 4:
            self.tclass, self.hops, header = packet[1], packet[8], (packet[0] & 15) * 4
        else:
            self.tclass, self.hops, header = struct.unpack_from("!H", packet)[0] >> 4 & 0xFF, packet[7], 40
        self.bth = packet[header + UDP_BYTES:]
        self.opcode, bits, self.pkey = struct.unpack_from("!BBH", self.bth)
        self.solicited, self.migreq, self.pad, self.version = bits >> 7, bits >> 6 & 1, bits >> 4 & 3, bits & 15
        self.reserved = self.bth[4] & 0x3F
        self.ack_req, self.psn = self.bth[8] >> 7, int.from_bytes(self.bth[9:12], "big")
        self.rest = self.bth[12:-4]


def packets(path):
    for frame in pcapng.read(path):
        kind = struct.unpack_from("!H", frame.data, 12)[0]
        at = {0x0800: 20, 0x86DD: 40}.get(kind)
        if frame.direction != OUTBOUND or at is None:
            continue
        length = struct.unpack_from("!H", frame.data, 16 if at == 20 else 18)[0] + (0 if at == 20 else 40)
        packet = frame.data[14:14 + length]
        if len(packet) >= at + 24 and struct.unpack_from("!H", packet, at + 2)[0] == ROCE_PORT:
            yield Packet(frame.interface, packet)


class Checks:
    def __init__(self, path):
        self.all = list(packets(path))
        self.passed = self.failed = 0

    def by_psn(self, first, count=1, opcodes=None):
        return [p for p in self.all if (p.psn - first) & 0xFFFFFF < count and (opcodes is None or p.opcode in opcodes)]

    def expect(self, name, found, wanted):
        ok = found == wanted
        self.passed, self.failed = self.passed + ok, self.failed + (not ok)
        print(f"{'ok' if ok else 'FAIL'} {name}" + ("" if ok else f": found {found}, wanted {wanted}"))


def check_messages(c):
    requests = c.by_psn(0x070000, 16, {SEND_ONLY, WRITE_ONLY, READ_REQUEST})
    c.expect("case_007 one packet and one PSN for a message of no bytes", [(p.opcode, p.psn) for p in requests],
             [(SEND_ONLY, 0x070000), (WRITE_ONLY, 0x070001), (READ_REQUEST, 0x070002)])
    c.expect("case_007 a READ of no bytes is answered by one packet",
             [(p.psn, len(p.rest)) for p in c.by_psn(0x070000, 16, {READ_ONLY})], [(0x070002, 4)])
    c.expect("case_009 ImmDt", [p.rest[:4].hex() for p in c.by_psn(0x090000, 1, {SEND_ONLY_IMM})], ["89abcdef"])
    atomics = c.by_psn(0x500000, 2, {FETCH_ADD, CMP_SWAP})
    c.expect("case_050 AtomicETH", [p.rest[12:28].hex() for p in atomics],
             ["0123456789abcdef" + "00" * 8, "1122334455667788" + "0123456789abcdef"])
    c.expect("case_050 AtomicAckETH", [p.rest[4:12].hex() for p in c.by_psn(0x500000, 2, {ATOMIC_ACK})],
             ["00" * 8, "0123456789abcdef"])


def check_retries(c):
    for psn, times in ((0x300000, 1), (0x301000, 4)):
        c.expect(f"case_030 sent {times} times", len(c.by_psn(psn, 1, {SEND_ONLY})), times)
        syndromes = [p.rest[0] for p in c.by_psn(psn, 1, {ACK})]
        c.expect(f"case_030 {times} RNR NAKs with the timer of the receiver", syndromes, [0x20 | 12] * times)
    c.expect("case_031 transmissions of the first PSN", len(c.by_psn(0x310000, 1, {WRITE_ONLY})), 3)
    c.expect("case_031 nothing answers", len(c.by_psn(0x310000, 1, {ACK})), 0)


def check_headers(c):
    c.expect("case_035 hop limit and traffic class", [(p.hops, p.tclass) for p in c.by_psn(0x350000, 1, {WRITE_ONLY})],
             [(9, 0x68)])
    defaults = [p.hops for p in c.by_psn(0x351000, 1, {WRITE_ONLY})]
    c.expect("case_035 hop limit 0 is a default that gets somewhere", [h in (64, 255) for h in defaults], [True])
    parts = c.by_psn(0x700000, 3, {SEND_FIRST, SEND_MIDDLE, SEND_LAST})
    c.expect("case_070 FIRST, MIDDLE, LAST with padding, AckReq and SE on the last",
             [(p.opcode, p.pad, p.ack_req, p.solicited, len(p.rest)) for p in parts],
             [(SEND_FIRST, 0, parts[0].ack_req, 0, 1024), (SEND_MIDDLE, 0, parts[1].ack_req, 0, 1024),
              (SEND_LAST, 2, 1, 1, 4)] if len(parts) == 3 else "three packets")
    c.expect("case_070 MigReq in every packet, ACKs too", {p.migreq for p in c.all}, {1})
    c.expect("case_070 TVer and reserved bits", {(p.version, p.reserved) for p in c.all}, {(0, 0)})
    c.expect("case_070 P_Key", {p.pkey for p in c.all}, {0xFFFF})
    c.expect("case_070 AckReq on what ends a request", {p.ack_req for p in c.all if p.opcode in ASKS}, {1})


def main():
    c = Checks(sys.argv[1])
    check_messages(c)
    check_retries(c)
    check_headers(c)
    print(f"{c.passed} passed, {c.failed} failed, 0 skipped")
    return 1 if c.failed or not c.passed else 0


if __name__ == "__main__":
    sys.exit(main())
