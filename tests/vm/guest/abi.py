#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The uverbs ABI from below libibverbs: raw commands with driver parts that are short, long, or say what no driver knows."""

import ctypes
import errno
import os
import struct
import sys

GET_CONTEXT, ALLOC_PD = 0, 3
RESPONSE = ctypes.create_string_buffer(512)
ABI_VERSION = 1


def command(fd, number, core_out, driver_in, driver_out):
    """One write() command; the response goes to RESPONSE. Returns 0 or the errno."""
    body = struct.pack("<Q", ctypes.addressof(RESPONSE)) + driver_in
    head = struct.pack("<IHH", number, (8 + len(body)) // 4, (core_out + driver_out) // 4)
    try:
        os.write(fd, head + body)
    except OSError as error:
        return error.errno
    return 0


def get_context(driver_in, driver_out=80):
    fd = os.open("/dev/infiniband/uverbs0", os.O_RDWR)
    try:
        return command(fd, GET_CONTEXT, 8, driver_in, driver_out)
    finally:
        os.close(fd)


def equal(got, expected):
    if got != expected:
        raise AssertionError(f"{errno.errorcode.get(got, got)}, expected {errno.errorcode.get(expected, expected)}")


def plain_context():
    equal(get_context(struct.pack("<Q", 0)), 0)
    # core: async fd, vectors; then comp_mask, contract version, uctx, caps
    vectors = struct.unpack_from("<I", RESPONSE, 4)[0]
    mask, _, uctx, caps = struct.unpack_from("<QIIQ", RESPONSE, 8)
    assert vectors == 2 and mask == 0 and uctx != 0 and caps & 1, (vectors, mask, uctx, caps)


def case_096_zero_tail_is_fine():
    equal(get_context(struct.pack("<QQQ", 0, 0, 0)), 0)


def case_096_unknown_tail():
    equal(get_context(struct.pack("<QQ", 0, 1)), errno.EOPNOTSUPP)


def case_096_unknown_comp_mask():
    equal(get_context(struct.pack("<Q", 1 << 63)), errno.EOPNOTSUPP)


def case_096_short_request():
    equal(get_context(b""), errno.EINVAL)


def case_096_short_response():
    """A provider that knows less of the response gets what it knows."""
    RESPONSE[8:] = b"\xaa" * (len(RESPONSE) - 8)
    equal(get_context(struct.pack("<Q", 0), 16), 0)
    assert bytes(RESPONSE[24:32]) == b"\xaa" * 8, bytes(RESPONSE[8:40])


def pd_with_unknown_tail():
    fd = os.open("/dev/infiniband/uverbs0", os.O_RDWR)
    equal(command(fd, GET_CONTEXT, 8, struct.pack("<Q", 0), 80), 0)
    equal(command(fd, ALLOC_PD, 4, b"\x01\0\0\0\0\0\0\0", 8), errno.EOPNOTSUPP)
    equal(command(fd, ALLOC_PD, 4, b"", 8), 0)
    os.close(fd)


def abi_version():
    with open("/sys/class/infiniband_verbs/uverbs0/abi_version", encoding="ascii") as file:
        equal(int(file.read()), ABI_VERSION)


def check(function):
    try:
        function()
        print("ok", function.__name__)
    except Exception as error:  # pylint: disable=broad-except
        print(f"not ok {function.__name__}: {error!r}")


def main():
    check(plain_context)
    check(case_096_zero_tail_is_fine)
    check(case_096_unknown_tail)
    check(case_096_unknown_comp_mask)
    check(case_096_short_request)
    check(case_096_short_response)
    check(pd_with_unknown_tail)
    check(abi_version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
