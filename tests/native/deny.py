#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a command under a seccomp filter that refuses unshare and mount, as container runtimes do: deny.py COMMAND..."""
import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
BPF_LOAD, BPF_JUMP_EQUAL, BPF_RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ERRNO | EPERM
NUMBERS = {"x86_64": (272, 165), "aarch64": (97, 40)}  # unshare, mount


def main():
    refused = NUMBERS[os.uname().machine]
    code = [(BPF_LOAD, 0, 0, 0)]  # offset 0 of seccomp_data: the number of the system call
    code += [(BPF_JUMP_EQUAL, len(refused) - i, 0, number) for i, number in enumerate(refused)]
    code += [(BPF_RETURN, 0, 0, ALLOW), (BPF_RETURN, 0, 0, REFUSE)]
    program = b"".join(struct.pack("HBBI", *line) for line in code)
    memory = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(code), ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0):
        sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
    if libc.unshare(0x00020000) == 0 or ctypes.get_errno() != 1:  # CLONE_NEWNS
        sys.exit("the filter does not hold")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
