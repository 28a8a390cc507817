#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The VM runner itself, with nothing of ours in the guest: exit status, streams, time-out, kernel log,
a NIC's shared memory and doorbell, two guests, and stock rdma_rxe as the workload."""

import array
import fcntl
import mmap
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "vm"))
# pylint: disable=wrong-import-position
import vmdmesg
from vmimage import VmError

RUNNER = str(ROOT / "tools" / "vm" / "ordma-vm")
RAM_MIB = 512


def vm(*args, timeout=120, env=None):
    argv = [RUNNER, "--timeout", str(timeout), *map(str, args)]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=timeout + 300, env={**os.environ, **(env or {})}, check=False
    )


class IvshmemServer(threading.Thread):
    """The smallest server QEMU's ivshmem-doorbell talks to: one guest, we are peer 0 with one doorbell."""

    PEER, VECTORS = 1, 2

    def __init__(self, path, size):
        super().__init__(daemon=True)
        self.memory = os.memfd_create("bar2")
        os.ftruncate(self.memory, size)
        self.doorbell = os.eventfd(0)
        self.vectors = [os.eventfd(0) for _ in range(self.VECTORS)]
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(1)
        self.connection = None

    def run(self):
        self.connection, _ = self.listener.accept()
        self._send(0)  # protocol version
        self._send(self.PEER)
        self._send(-1, self.memory)
        self._send(0, self.doorbell)
        for vector in self.vectors:
            self._send(self.PEER, vector)

    def _send(self, number, fd=None):
        rights = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        self.connection.sendmsg([struct.pack("<q", number)], rights)

    def close(self):
        self.listener.close()
        for fd in [self.memory, self.doorbell, *self.vectors]:
            os.close(fd)


# Runs in the guest: BAR2 is memory shared with the server, BAR0+12 its doorbell; then a page of
# RAM is marked and held until the server, which sees the same RAM, says so in BAR2. A datagram
# leaves by the ordinary port meanwhile.
NIC_PROGRAM = r"""
import glob, mmap, os, socket, struct, sys, time
(device,) = [d for d in glob.glob("/sys/bus/pci/devices/*") if open(d + "/device").read() == "0x1110\n"]
def bar(number):
    fd = os.open(f"{device}/resource{number}", os.O_RDWR)
    return mmap.mmap(fd, os.fstat(fd).st_size)
open(device + "/enable", "w").write("1")
shared, registers = bar(2), bar(0)
assert shared[:8] == b"from-nic", shared[:8]
page = mmap.mmap(-1, 4096)
mark = b"marked-" + b"guest-" + b"page-" + sys.argv[1].encode()
page[: len(mark)] = mark
shared[8:16] = b"to-nic.."
registers[12:16] = struct.pack("<I", 0 << 16)
frames = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
frames.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
frames.sendto(b"a datagram", ("192.0.2.255", 4791))
for _ in range(600):
    if shared[16:24] == b"seen-it.":
        sys.exit(0)
    time.sleep(0.1)
sys.exit("the NIC side never saw the page")
"""

RXE_ONE_GUEST = """
set -e
ordma-guest rxe
test -c /dev/infiniband/uverbs0 && test -c /dev/infiniband/rdma_cm
ibv_devinfo -d rxe0 | grep PORT_ACTIVE
pair() { # server command; the client is the same with the address
    "$@" & sleep 2
    "$@" 198.51.100.1
    wait $!
}
pair ibv_rc_pingpong -d rxe0 -g 1 -n 50
pair ib_write_bw -d rxe0 -x 1 -n 20
rping -s -a 198.51.100.1 -C 3 & sleep 1
rping -c -a 198.51.100.1 -C 3
wait $!
"""

RXE_TWO_GUESTS = """
set -e
ordma-guest rxe
if [ $ORDMA_VM_GUEST = 1 ]; then
    ibv_rc_pingpong -d rxe0 -g 1 -n 50
    rping -s -C 3 & sleep 1
    ordma-guest signal rping-server
    wait $!
else
    ibv_rc_pingpong -d rxe0 -g 1 -n 50 $ORDMA_VM_PEER
    ordma-guest wait rping-server
    rping -c -a $ORDMA_VM_PEER -C 3
    test "$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)" -gt 100
    exit 9
fi
"""


class Log(unittest.TestCase):
    def allow_list(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            return vmdmesg.read_allow_list(Path(file.name))

    def test_a_pattern_needs_a_reason(self):
        self.assertEqual(len(self.allow_list("# why\nfoo\nbar\n\n# why too\nbaz\n")), 3)
        with self.assertRaisesRegex(VmError, ":4: a pattern without a reason"):
            self.allow_list("# why\nfoo\n\nbar\n")

    def test_what_needs_an_explanation(self):
        allowed = self.allow_list("# why\nfoo \\d+\n.*BUG.*\n")
        log = "<6>[ 1.0] info\n<4>[ 1.0] foo 1\n<4>[ 1.0] foo x\n<3>[ 1.0] worse\n<12>[ 1.0] a program\n"
        self.assertEqual(vmdmesg.findings(log, allowed), ["foo x", "worse"])
        self.assertEqual(vmdmesg.findings("<4>[  1.0] BUG: bad\n<6>[ 1.0] Call Trace:\n", allowed), ["BUG: bad", "Call Trace:"])

    def test_the_list_itself_is_valid(self):
        self.assertGreater(len(vmdmesg.read_allow_list(vmdmesg.ALLOW_LIST)), 3)


class Options(unittest.TestCase):
    def refused(self, *args):
        result = vm(*args)
        self.assertEqual(result.returncode, 125, result.stderr)
        return result.stderr

    def test_bad_options_never_start_a_guest(self):
        self.assertIn("command", self.refused())
        self.assertIn("command", self.refused("--guests", 2, "--", "true"))
        self.assertIn("start its server first", self.refused("--nic", "/nowhere/nic.sock", "--", "true"))
        self.assertIn("is not a socket", self.refused("--nic", __file__, "--", "true"))
        self.assertIn("no such file", self.refused("--module", "/nowhere/x.ko", "--", "true"))
        self.assertIn("which one", self.refused("--guests", 2, "--ram-file", "/x", "--", "true", "--", "true"))
        self.assertIn("no guest 2", self.refused("--ram-file", "2:/x", "--", "true"))
        self.assertIn("MiB", self.refused("--mem", 4096, "--", "true"))
        self.assertIn("not a module name", self.refused("--modprobe", "a;b", "--", "true"))
        self.assertIn("see --help", self.refused("--gusts", 2, "--", "true"))


class OneGuest(unittest.TestCase):
    def test_status_streams_and_files(self):
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as work:
            script = (
                'pwd; echo "$1|$2|$NOTE"; echo complaint >/dev/stderr; ulimit -l; hostname; '
                "head -c 3000000 /dev/zero | tr '\\0' x; echo kept >kept; touch /etc/gone; exit 7"
            )
            result = subprocess.run(
                [RUNNER, "--timeout", "120", "--", "sh", "-c", script, "-", "a b", "$x\n*"],
                capture_output=True, text=True, cwd=work, env={**os.environ, "NOTE": "it's\nhere"}, check=False,
            )  # fmt: skip
            self.assertEqual(result.returncode, 7, result.stderr)
            self.assertEqual(result.stderr, "complaint\n")
            head = f"{work}\na b|$x\n*|it's\nhere\nunlimited\nordma-vm1\n"
            self.assertEqual(result.stdout[: len(head)], head)
            self.assertEqual(result.stdout[len(head) :], "x" * 3000000)
            self.assertEqual((Path(work) / "kept").read_text(), "kept\n")
            self.assertFalse(Path("/etc/gone").exists())

    def test_a_terminal(self):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        argv = [RUNNER, "--timeout", "120", "--tty", "--", "bash", "--norc"]
        with subprocess.Popen(argv, stdin=theirs, stdout=theirs) as run:
            os.close(theirs)
            self._expect(run, ours, b"# ")
            os.write(ours, b"test -t 0 -a -t 1 && stty size; sleep 99\n")
            self._expect(run, ours, b"24 80\r\n")
            os.write(ours, b"\x03exit 5\n")  # Ctrl-C is the guest's
            self._expect(run, ours, b"exit\r\n")
            self.assertEqual(run.wait(30), 5)
        os.close(ours)

    def _expect(self, run, terminal, text):
        seen = b""
        while text not in seen:
            self.assertIsNone(run.poll(), seen)
            if select.select([terminal], [], [], 0.2)[0]:
                seen += os.read(terminal, 1000)

    def test_time_out_says_what_hangs(self):
        result = vm("--", "sleep", "999", timeout=30)
        self.assertEqual(result.returncode, 124, result.stderr)
        self.assertIn("sleep 999", result.stderr)

    def test_a_dead_guest_is_no_verdict_and_shows_why(self):
        result = vm("--", "sh", "-c", "echo begun; sleep 1; echo c >/proc/sysrq-trigger")
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertEqual(result.stdout, "begun\n")
        self.assertIn("Kernel panic - not syncing: sysrq triggered crash", result.stderr)

    def test_an_unexplained_kernel_message_spoils_success(self):
        command = ["sh", "-c", "mount -t tmpfs -o bogus=1 x /mnt 2>/dev/null; exit 0"]
        with tempfile.TemporaryDirectory() as logs:
            result = vm("--log-dir", logs, "--", *command)
            self.assertIn("bogus", (Path(logs) / "dmesg.1.log").read_text())
            expected = Path(logs) / "expected.txt"
            expected.write_text("# this test provokes it\ntmpfs: Unknown parameter 'bogus'\n")
            explained = vm("--dmesg-allow", expected, "--", *command)
            self.assertEqual(explained.returncode, 0, explained.stderr)
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertIn("tmpfs: Unknown parameter 'bogus'", result.stderr)

    def test_nothing_is_left_after_a_signal(self):
        with tempfile.TemporaryDirectory() as scratch:
            ram = Path(scratch) / "ram"
            argv = [RUNNER, "--timeout", "120", "--mem", str(RAM_MIB), "--ram-file", str(ram), "--", "sleep", "99"]
            with subprocess.Popen(argv, env={**os.environ, "TMPDIR": scratch}) as run:
                while not ram.exists():
                    self.assertIsNone(run.poll())
                    time.sleep(0.1)
                time.sleep(1)
                run.send_signal(signal.SIGTERM)
                self.assertEqual(run.wait(20), 128 + signal.SIGTERM)
            self.assertEqual([path.suffix for path in Path(scratch).iterdir()], [".lock"])
            users = subprocess.run(["pgrep", "-f", f"mem-path={ram}"], stdout=subprocess.PIPE, check=False)
            self.assertEqual(users.stdout, b"")

    def test_nic_and_ordinary_port(self):
        secret = os.urandom(6).hex()
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "nic,1.sock"  # a comma, to see it quoted
            server = IvshmemServer(path, 1 << 20)
            os.pwrite(server.memory, b"from-nic", 0)
            server.start()
            ram = os.memfd_create("ram")
            frames = socket.socket(socket.AF_UNIX)
            frames.bind(str(path) + ".net")
            frames.listen(1)
            threads = [
                threading.Thread(target=self._nic, args=(server, ram, secret), daemon=True),
                threading.Thread(target=self._port, args=(frames,), daemon=True),
            ]
            for thread in threads:
                thread.start()
            result = vm(
                "--nic", path, "--netdev", str(path) + ".net", "--mem", RAM_MIB, "--ram-file", f"/proc/{os.getpid()}/fd/{ram}",
                "--", "/usr/bin/python3", "-c", NIC_PROGRAM, secret,
            )  # fmt: skip
            self.assertEqual(result.returncode, 0, result.stderr)
            for thread in threads:
                thread.join(5)
                self.assertFalse(thread.is_alive())
            self.assertEqual(self.datagram[42:], b"a datagram")
            self.assertEqual(self.datagram[6:12].hex(":"), "52:54:00:6f:01:00")
            server.close()
            frames.close()
            os.close(ram)

    def _nic(self, server, ram, secret):
        os.read(server.doorbell, 8)
        assert os.pread(server.memory, 8, 8) == b"to-nic.."
        size = os.fstat(ram).st_size
        assert size == RAM_MIB << 20, size
        with mmap.mmap(ram, size, prot=mmap.PROT_READ) as memory:
            # In pieces, so that this very string is nowhere else in the guest's memory.
            if memory.find(b"marked-" + b"guest-" + b"page-" + secret.encode()) >= 0:
                os.pwrite(server.memory, b"seen-it.", 16)

    def _port(self, listener):
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as stream:
            self.datagram = b""
            while b"a datagram" not in self.datagram:
                (length,) = struct.unpack(">I", stream.read(4))
                self.datagram = stream.read(length)

    def test_stock_rxe(self):
        result = vm("--", "sh", "-c", RXE_ONE_GUEST)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stdout.count("50 iters in"), 2)


class TwoGuests(unittest.TestCase):
    def test_rxe_between_guests(self):
        command = ["sh", "-c", RXE_TWO_GUESTS]
        result = vm("--guests", 2, "--listen-port", 18515, "--", *command, "--", *command, timeout=200)
        self.assertEqual(result.returncode, 9, result.stdout + result.stderr)
        self.assertIn("1| 50 iters in", result.stdout)
        self.assertIn("2| 50 iters in", result.stdout)


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    if len(sys.argv) > 1:
        suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:], sys.modules["__main__"])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
