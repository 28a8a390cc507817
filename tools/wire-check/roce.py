# SPDX-License-Identifier: BSD-2-Clause
"""Checks one Ethernet frame: IPv4 checksum, UDP checksum, RoCEv2 headers and ICRC.

An oracle for packets that the NIC makes. It shares nothing with the generated contract: opcode names of RC, UC, RD and UD
come from scapy, the others and all header lengths are written here from the wire formats.
"""
import dataclasses
import struct
import zlib

from scapy.contrib import roce as scapy_roce

ROCE_PORT = 4791
BTH_BYTES, ICRC_BYTES, UDP_BYTES, IPV4_MIN, IPV6_BYTES = 12, 4, 8, 20, 40
IPPROTO_UDP = 17
VLAN_TYPES = (0x8100, 0x88A8)

# (from the IP header to the end of the payload, ICRC): a CNP seen from hardware, scapy's own regression packet, and an
# acknowledge and an atomic response over IPv6 captured from rdma_rxe.
ICRC_VECTORS = (
    ("45c2003c718c4000401191610a0011010a001201" "000012b700280000" "8100ffff4000011800000000" + "00" * 16, "82fd002a"),
    ("45010040047840004011b4d5c0a80007c0a80007" "c00012b7002caca2" "2460ffff000000d300cf1710"
     "4630818be28935d90e9a95505401be885e500000", "78f353f3"),
    ("60000000001c1140" "20010db8000900000000000000000001" "20010db8000900000000000000000002" "c12112b7001c0000"
     "1100ffff000000110017307d" "1f000001", "d8648dda"),
    ("6000000000241140" "20010db8000900000000000000000001" "20010db8000900000000000000000002" "c1b912b700240000"
     "1200ffff00000015000042b4" "1f00000183a039375ab013e0", "67a57dc7"),
)

MRC_BASE = 0xC0
MRC_NAMES = {0xC6: "MRC_WRITE_FIRST", 0xC7: "MRC_WRITE_MIDDLE", 0xC8: "MRC_WRITE_LAST", 0xC9: "MRC_WRITE_LAST_WITH_IMMEDIATE",
             0xCA: "MRC_WRITE_ONLY", 0xCB: "MRC_WRITE_ONLY_WITH_IMMEDIATE", 0xD1: "MRC_ACKNOWLEDGE",
             0xD8: "MRC_ENDPOINT_REQUEST", 0xD9: "MRC_ENDPOINT_RESPONSE", 0xDC: "MRC_RELIABILITY_SACK",
             0xDD: "MRC_RELIABILITY_NACK", 0xDE: "MRC_RELIABILITY_PROBE"}
MRC_CONTROL_BYTES = {0xD1: 4, 0xD8: 16, 0xD9: 36, 0xDC: 36, 0xDD: 20, 0xDE: 16}
MORE_NAMES = {0x16: "RC_SEND_LAST_WITH_INVALIDATE", 0x17: "RC_SEND_ONLY_WITH_INVALIDATE"}
CNP = 0x81


@dataclasses.dataclass
class Verdict:
    """What a frame is and what is wrong with it."""
    roce: bool = False
    ipv4: bool = False
    opcode: int = -1
    dscp: int = -1
    packet: bytes = b""  # the IP packet without Ethernet padding
    errors: list = dataclasses.field(default_factory=list)


def opcode_name(opcode):
    names = {**scapy_roce._bth_opcodes, **MORE_NAMES, **MRC_NAMES}
    return names.get(opcode, f"opcode 0x{opcode:02x}")


def ones_sum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def icrc(packet):
    """ICRC bytes of an IP packet given from its IP header to the end of the payload (ICRC excluded)."""
    masked = bytearray(packet)
    version = packet[0] >> 4
    if version == 4:
        masked[1] = masked[8] = masked[10] = masked[11] = 0xFF  # TOS, TTL, header checksum
        udp = (packet[0] & 15) * 4
    else:
        masked[0] |= 0x0F  # traffic class and flow label
        masked[1] = masked[2] = masked[3] = 0xFF
        masked[7] = 0xFF  # hop limit
        udp = IPV6_BYTES
    masked[udp + 6] = masked[udp + 7] = 0xFF  # UDP checksum
    masked[udp + UDP_BYTES + 4] = 0xFF  # FECN, BECN and reserved bits
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def check_vectors():
    """The first thing every run does: an oracle that is wrong itself is worse than none."""
    for packet, expected in ICRC_VECTORS:
        if icrc(bytes.fromhex(packet)).hex() != expected:
            raise AssertionError(f"ICRC of the known packet {packet[:16]}... is not {expected}")


def extended_header_bytes(opcode, bth):
    """Bytes between BTH and payload; None when the opcode is unknown."""
    if opcode in MRC_CONTROL_BYTES:
        return MRC_CONTROL_BYTES[opcode]
    if opcode in MRC_NAMES:
        tseth = 4 if bth[8] & 0x10 else 0
        return 4 + tseth + 16 + (4 if "IMMEDIATE" in MRC_NAMES[opcode] else 0)
    if opcode == CNP:
        return 0
    if opcode not in scapy_roce._bth_opcodes and opcode not in MORE_NAMES:
        return None
    transport, name = opcode_name(opcode).split("_", 1)
    size = {"RD": 12, "UD": 8}.get(transport, 0)  # RDETH + DETH, DETH
    if name.endswith(("WITH_IMMEDIATE", "WITH_INVALIDATE")):
        size += 4
    if name.startswith(("RDMA_WRITE_FIRST", "RDMA_WRITE_ONLY", "RDMA_READ_REQUEST")):
        size += 16
    if name in ("COMPARE_SWAP", "FETCH_ADD"):
        size += 28
    if name == "ACKNOWLEDGE" or name.startswith("RDMA_READ_RESPONSE") and not name.endswith("MIDDLE"):
        size += 4
    if name == "ATOMIC_ACKNOWLEDGE":
        size += 12
    return size - 8 if transport == "RD" and "RESPONSE" in name else size


def check_headers(transport, verdict):
    """Structure of BTH, extended headers and padding."""
    opcode, pad, version = transport[0], transport[1] >> 4 & 3, transport[1] & 15
    extended = extended_header_bytes(opcode, transport)
    if version:
        verdict.errors.append(f"BTH version is {version}, not 0")
    if extended is None:
        verdict.errors.append(f"unknown opcode 0x{opcode:02x}")
        return
    payload = len(transport) - BTH_BYTES - extended - ICRC_BYTES
    if opcode == CNP and payload != 16:
        verdict.errors.append(f"a CNP carries 16 bytes, not {payload}")
    elif opcode in MRC_CONTROL_BYTES and payload != 0:
        verdict.errors.append(f"{opcode_name(opcode)} has {payload} bytes behind its header")
    elif payload < pad:
        verdict.errors.append(f"{len(transport)} bytes cannot hold the headers of {opcode_name(opcode)} and {pad} pad bytes")
    elif payload % 4:
        verdict.errors.append(f"payload and padding are {payload} bytes, no multiple of 4")


def check_transport(packet, udp, verdict, trimmed):
    """The RoCEv2 part of an IP packet cut to the length that its IP header gives."""
    verdict.roce = True
    transport = packet[udp + UDP_BYTES:]
    verdict.opcode = transport[0] if transport else -1
    if trimmed:
        if len(transport) < BTH_BYTES:
            verdict.errors.append("trimmed below the BTH")
        return
    if len(transport) < BTH_BYTES + ICRC_BYTES:
        verdict.errors.append(f"{len(transport)} bytes cannot hold BTH and ICRC")
        return
    check_headers(transport, verdict)
    found, expected = packet[-ICRC_BYTES:], icrc(packet[:-ICRC_BYTES])
    if found != expected:
        verdict.errors.append(f"ICRC is {found.hex()}, should be {expected.hex()}")


def check_udp(packet, header, source_and_destination, verdict, trimmed):
    if len(packet) < header + UDP_BYTES:
        verdict.errors.append("IP length leaves no room for UDP")
        return
    _, port, length, checksum = struct.unpack_from("!4H", packet, header)
    if length != len(packet) - header:
        verdict.errors.append(f"UDP length is {length}, IP has {len(packet) - header}")
    elif checksum:
        pseudo = source_and_destination + struct.pack("!II", length, IPPROTO_UDP)
        if ones_sum(pseudo + packet[header:]) != 0xFFFF:
            verdict.errors.append(f"UDP checksum 0x{checksum:04x} is wrong")
    if port == ROCE_PORT:
        check_transport(packet, header, verdict, trimmed)


def check_ipv4(packet, verdict, trimmed):
    header, total = (packet[0] & 15) * 4, struct.unpack_from("!H", packet, 2)[0]
    if packet[0] >> 4 != 4 or header < IPV4_MIN or not header <= total <= len(packet):
        verdict.errors.append(f"IPv4 version {packet[0] >> 4}, header {header}, length {total} of {len(packet)}")
        return
    verdict.ipv4, verdict.dscp, verdict.packet = True, packet[1] >> 2, packet[:total]
    if ones_sum(packet[:header]) != 0xFFFF:
        verdict.errors.append(f"IPv4 header checksum 0x{packet[10:12].hex()} is wrong")
    fragment = struct.unpack_from("!H", packet, 6)[0] & 0x3FFF
    if packet[9] == IPPROTO_UDP and not fragment:
        check_udp(packet[:total], header, packet[12:20], verdict, trimmed)


def check_ipv6(packet, verdict, trimmed):
    length = struct.unpack_from("!H", packet, 4)[0] + IPV6_BYTES
    if packet[0] >> 4 != 6 or length > len(packet):
        verdict.errors.append(f"IPv6 version {packet[0] >> 4}, length {length} of {len(packet)}")
        return
    verdict.dscp = (struct.unpack_from("!H", packet)[0] >> 4 & 0xFF) >> 2
    if packet[6] == IPPROTO_UDP:
        check_udp(packet[:length], IPV6_BYTES, packet[8:40], verdict, trimmed)


def check_frame(data, trimmed=False):
    """A Verdict on one Ethernet frame. `trimmed`: the payload and ICRC were cut off on purpose."""
    verdict, at = Verdict(), 12
    while len(data) >= at + 6 and struct.unpack_from("!H", data, at)[0] in VLAN_TYPES and at < 20:
        at += 4
    if len(data) < at + 2:
        verdict.errors.append("shorter than an Ethernet header")
        return verdict
    kind, packet = struct.unpack_from("!H", data, at)[0], data[at + 2:]
    if kind == 0x0800 and len(packet) >= IPV4_MIN:
        check_ipv4(packet, verdict, trimmed)
    elif kind == 0x86DD and len(packet) >= IPV6_BYTES:
        check_ipv6(packet, verdict, trimmed)
    elif kind in (0x0800, 0x86DD):
        verdict.errors.append("too short for its IP header")
    return verdict
