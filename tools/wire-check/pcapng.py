# SPDX-License-Identifier: BSD-2-Clause
"""Reads pcapng captures: frames with number, interface name, direction, time and comment.

Written from the file format, not from the writer that it checks; refuses what it does not understand.
"""
import dataclasses
import struct

SECTION_HEADER = 0x0A0D0D0A
INTERFACE_DESCRIPTION = 1
SIMPLE_PACKET = 3
ENHANCED_PACKET = 6
BLOCK_MAX = 16 << 20
LINKTYPE_ETHERNET = 1
OPT_END, OPT_COMMENT, OPT_IF_NAME, OPT_EPB_FLAGS, OPT_IF_TSRESOL = 0, 1, 2, 2, 9


class CaptureError(Exception):
    """The file is no pcapng capture that this reader understands."""


@dataclasses.dataclass
class Frame:
    number: int  # from 1, as in tshark
    interface: str
    direction: int  # 0 unknown, 1 inbound, 2 outbound
    time_ns: int
    comment: str
    data: bytes
    whole: bool  # nothing was cut off by the capture


def _options(body, order):
    """Yields (code, value) pairs of an option list."""
    at = 0
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        if code == OPT_END:
            return
        if at + 4 + length > len(body):
            raise CaptureError("an option runs over the end of its block")
        yield code, body[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def _blocks(stream):
    """Yields (type, body, byte order) of every block, the section's byte order applied."""
    order = None
    while head := stream.read(8):
        if len(head) < 8:
            raise CaptureError("the file ends inside a block header")
        rest = b""
        if head[:4] == struct.pack("<I", SECTION_HEADER):
            rest = stream.read(4)
            order = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}.get(rest)
        if order is None:
            raise CaptureError("no pcapng section header")
        kind, length = struct.unpack(order + "II", head)
        if length < 12 or length % 4 or length > BLOCK_MAX:
            raise CaptureError(f"block length {length} is impossible")
        rest += stream.read(length - 8 - len(rest))
        if len(rest) != length - 8 or struct.unpack(order + "I", rest[-4:])[0] != length:
            raise CaptureError("a block is cut short or its two lengths differ")
        yield kind, rest[:-4], order


def _interface(body, order):
    linktype = struct.unpack_from(order + "H", body)[0]
    if linktype != LINKTYPE_ETHERNET:
        raise CaptureError(f"link type {linktype} is not Ethernet")
    name, resolution = "", 6
    for code, value in _options(body[8:], order):
        if code == OPT_IF_NAME:
            name = value.decode("utf-8", "replace")
        elif code == OPT_IF_TSRESOL:
            resolution = value[0]
    if resolution > 9:
        raise CaptureError(f"time resolution {resolution} is not supported")
    return name, 10 ** (9 - resolution)


def _frame(number, body, order, interfaces):
    index, high, low, captured, original = struct.unpack_from(order + "IIIII", body)
    if index >= len(interfaces):
        raise CaptureError(f"frame {number} names interface {index}, which has no description")
    if captured > len(body) - 20:
        raise CaptureError(f"frame {number} is longer than its block")
    name, unit = interfaces[index]
    comments, direction = [], 0
    for code, value in _options(body[20 + (captured + 3) // 4 * 4:], order):
        if code == OPT_COMMENT:
            comments.append(value.decode("utf-8", "replace"))
        elif code == OPT_EPB_FLAGS:
            direction = struct.unpack(order + "I", value)[0] & 3
    return Frame(number, name, direction, ((high << 32) | low) * unit, "; ".join(comments),
                 body[20:20 + captured], captured == original)


def read(path):
    """Yields the frames of a capture."""
    interfaces, number = [], 0
    with open(path, "rb") as stream:
        for kind, body, order in _blocks(stream):
            try:
                if kind == SECTION_HEADER:
                    interfaces = []
                elif kind == INTERFACE_DESCRIPTION:
                    interfaces.append(_interface(body, order))
                elif kind == ENHANCED_PACKET:
                    number += 1
                    yield _frame(number, body, order, interfaces)
                elif kind == SIMPLE_PACKET:
                    raise CaptureError("simple packet blocks carry no interface")
            except struct.error as error:
                raise CaptureError(f"a block of type {kind} is too short") from error
    if number == 0 and not interfaces:
        raise CaptureError("the capture is empty")
