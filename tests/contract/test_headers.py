#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The contract's packet headers against scapy's, which nobody here wrote."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from scapy.contrib.roce import AETH, BTH, GRH  # noqa: E402
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.layers.l2 import Ether  # noqa: E402
from vectors import read  # noqa: E402


def mac(value: int) -> str:
    return ":".join(f"{b:02x}" for b in value.to_bytes(6, "big"))


def ip(value: int) -> str:
    return ".".join(str(b) for b in value.to_bytes(4, "big"))


def bth(v: dict[str, int]) -> bytes:
    """scapy appends the ICRC to a BTH, so only the header itself counts."""
    same = {name: v[name] for name in ("opcode", "pkey", "fecn", "becn", "psn")}
    packet = BTH(
        **same, solicited=v["se"], migreq=v["mig"], padcount=v["pad"], version=v["tver"],
        dqpn=v["dest_qpn"], ackreq=v["ack_req"], icrc=0,
    )
    return bytes(packet)[:12]


def grh(v: dict[str, int]) -> bytes:
    packet = GRH(
        ipver=v["version"], tclass=v["tclass"], flowlabel=v["flow_label"], paylen=v["length"],
        nexthdr=v["next_header"], hoplmt=v["hop_limit"],
        sgid=v["src_hi"] << 64 | v["src_lo"], dgid=v["dst_hi"] << 64 | v["dst_lo"],
    )
    return bytes(packet)


def ipv4(v: dict[str, int]) -> bytes:
    packet = IP(
        version=v["version"], ihl=v["ihl"], tos=v["tos"], len=v["length"], id=v["id"],
        flags=v["flags"], frag=v["frag_off"], ttl=v["ttl"], proto=v["protocol"],
        chksum=v["checksum"], src=ip(v["src"]), dst=ip(v["dst"]),
    )
    return bytes(packet)


ORACLES = {
    "eth": lambda v: bytes(Ether(dst=mac(v["dst"]), src=mac(v["src"]), type=v["type"])),
    "ipv4": ipv4,
    "ipv6": grh,
    "udp": lambda v: bytes(
        UDP(sport=v["sport"], dport=v["dport"], len=v["length"], chksum=v["checksum"])
    ),
    "bth": bth,
    "aeth": lambda v: bytes(AETH(syndrome=v["syndrome"], msn=v["msn"])),
}


class Headers(unittest.TestCase):
    def test_against_scapy(self) -> None:
        structs = {st.name: st for st in read(HERE / "vectors.txt")}
        for name, oracle in ORACLES.items():
            for index, vector in enumerate(structs[name].vectors):
                with self.subTest(header=name, vector=index):
                    self.assertEqual(oracle(vector.values).hex(), vector.bytes.hex())


if __name__ == "__main__":
    unittest.main()
