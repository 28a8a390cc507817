# SPDX-License-Identifier: BSD-2-Clause
"""Soft-device and guests for one scenario. What a guest script prints as 'ok NAME' or 'not ok NAME' is a test of its own."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
GUEST = ROOT / "tests" / "vm" / "guest"
RUNNER = ROOT / "tools" / "vm" / "ordma-vm"
BUILD = Path(os.environ.get("ORDMA_BUILD", ROOT / "build"))
SOFTDEV = os.environ.get("ORDMA_SOFTDEV", str(BUILD / "bin" / "ordma-softdev"))
PROVIDER = os.environ.get("ORDMA_PROVIDER", str(BUILD / "lib" / "libordma"))
ENGINE = os.environ.get("ORDMA_ENGINE", "twin")
READY_S = 30
VERDICT = re.compile(r"^(?:\d\| )?(ok|not ok) (\w+)(.*)$")


class Rig:
    """A directory in shared memory with the guests' RAM and the NICs' sockets, and the process that serves them."""

    def __init__(self, nics=2, guests=1, softdev_args=()):
        self.nics, self.guests = nics, guests
        self.scratch = tempfile.TemporaryDirectory(prefix="ordma-vm-", dir="/dev/shm")
        self.dir = Path(self.scratch.name)
        self.log = self.dir / "softdev.log"
        argv = [SOFTDEV, "--nics", str(nics), "--engine", ENGINE, "--stay", "--socket", str(self.dir / "socket")]
        argv += ["--log", f"info:{self.log}", *softdev_args]
        for nic in range(nics):
            argv += ["--vm", f"{nic}={self._socket(nic)},ram={self._ram(self._guest_of(nic))}"]
        self.runs = []
        self.softdev = self._start(argv)

    def _guest_of(self, nic):
        return nic % self.guests + 1

    def _socket(self, nic):
        return self.dir / f"nic{nic}"

    def _ram(self, guest):
        return self.dir / f"ram{guest}"

    def _start(self, argv):
        read, write = os.pipe()
        process = subprocess.Popen([*argv, "--ready-fd", str(write)], pass_fds=[write])
        os.close(write)
        with os.fdopen(read, "rb") as ready:  # the byte, or the end of a process that could not start
            if ready.read(1) == b"":
                raise RuntimeError(f"{SOFTDEV} did not start: status {process.wait(READY_S)}")
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for run in self.runs:
            run.terminate()  # it ends its guests itself
            run.wait()
        self.kill()
        self.scratch.cleanup()

    def kill(self):
        if self.softdev.poll() is None:
            self.softdev.kill()
        self.softdev.wait()

    def start(self, *commands, kernel="6.1", timeout=300, vm_args=()):
        """Boots the guests with ordma.ko and rdma_cm; one command each, run in the scenario's directory."""
        argv = [RUNNER, "--guests", self.guests, "--kernel", kernel, "--timeout", timeout, "--modprobe", "rdma_ucm"]
        argv += ["--module", BUILD / "module" / kernel / "ordma.ko", "--rw", self.dir, *vm_args]
        for nic in range(self.nics):
            argv += ["--nic", f"{self._guest_of(nic)}:{self._socket(nic)}"]
        for guest in range(1, self.guests + 1):
            argv += ["--ram-file", f"{guest}:{self._ram(guest)}"]
        for command in commands:
            argv += ["--", ROOT / "tools" / "vm" / "guest" / "ordma-net", *command]
        env = {**os.environ, "RDMAV_DRIVERS": PROVIDER, "ORDMA_MODULE": str(BUILD / "module" / kernel / "ordma.ko")}
        env |= {"ORDMA_TEST_DIR": str(self.dir), "ORDMA_TEST_LIB": str(GUEST / "lib.sh")}
        argv = [str(word) for word in argv]
        pipe = subprocess.PIPE
        self.runs.append(subprocess.Popen(argv, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=env, cwd=self.dir))
        return self.runs[-1]

    def wait_for(self, name, run, seconds):
        """Until the guest made that file in the scenario's directory."""
        end = time.monotonic() + seconds
        while not (self.dir / name).exists():
            if run.poll() is not None or time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True


class Report:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def add(self, good, name, detail=""):
        self.passed += good
        self.failed += not good
        print(f"{'PASS' if good else 'FAIL'} {name}{detail}", flush=True)

    def collect(self, scenario, run, expected):
        """Each expected name must be reported once, as ok; the guest must end well, its kernel log clean."""
        output, _ = run.communicate()
        seen = {}
        for line in output.splitlines():
            match = VERDICT.match(line)
            if match:
                seen[match[2]] = (match[1] == "ok", match[3])
        for name in expected:
            good, detail = seen.get(name, (False, ": never reported"))
            self.add(good, f"{scenario}/{name}", detail)
        for name in sorted(set(seen) - set(expected)):
            self.add(False, f"{scenario}/{name}", ": not expected")
        self.add(run.returncode == 0, f"{scenario}/guest", "" if run.returncode == 0 else f": status {run.returncode}")
        if run.returncode != 0 or not all(good for good, _ in seen.values()):
            print("\n".join("    " + line for line in output.splitlines()[-120:]), flush=True)

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed, 0 skipped")
        return 1 if self.failed or not self.passed else 0


def names(script):
    """The checks that a guest script will report."""
    text = (GUEST / script).read_text()
    return re.findall(r"^\s*check[ (](\w+)\)?$", text, re.M)


def stop_on_missing():
    for path in (SOFTDEV, PROVIDER + "-rdmav34.so"):
        if not Path(path).exists():
            sys.exit(f"{path} is missing; run `make build module`")
