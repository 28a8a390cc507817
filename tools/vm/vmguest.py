# SPDX-License-Identifier: BSD-2-Clause
"""One guest: its QEMU process and the streams that come out of it."""

import ctypes
import os
import re
import signal
import socket
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from vmimage import VmError

CONSOLE_LINES_MAX = 4000
EXCERPT_LINES = 50
_TROUBLE = re.compile(r"Kernel panic|BUG:|WARNING:|Oops|ordma-vm: guest")
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
# User tracking (U) of every cache doubles the boot time; drivers allocate from the kmalloc caches.
_DEBUG_ARGS = "slub_debug=FZPU,kmalloc-*;FZP page_poison=1 panic_on_warn=1"


@dataclass
class Spec:
    """What one guest is made of."""

    number: int
    nics: list = field(default_factory=list)
    netdevs: list = field(default_factory=list)  # socket paths, or the end of a pair of sockets
    ram_file: Path | None = None

    def macs(self):
        return [f"52:54:00:6f:{self.number:02x}:{port:02x}" for port in range(len(self.netdevs))]


def check_socket(path):
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise VmError(f"{path}: {error.strerror}; start its server first") from error
    if not stat.S_ISSOCK(mode):
        raise VmError(f"{path} is not a socket")


def _quote(value):
    # In QEMU's option lists a comma inside a value is written twice.
    return str(value).replace(",", ",,")


def _die_with_parent():
    # The runner may be killed where no handler runs; a guest must not outlive it.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Guest:
    def __init__(self, spec, options, kernel, run_dir):
        self.spec = spec
        self.number = spec.number
        self.status = None  # of the command
        self.ready = False
        self.listening = False
        self.process = None
        self.console = []
        self.streams = {}  # name -> our end
        self._far = []  # ends that QEMU inherits
        self._made_ram = False
        self._argv = self._machine(options, kernel, run_dir) + self._ports(options.tty)
        self._argv += self._shares(options, run_dir) + self._devices()

    # ---- command line

    def _pass(self, name):
        ours, far = socket.socketpair()
        self.streams[name] = ours
        self._far.append(far)
        return far.fileno()

    def _machine(self, options, kernel, run_dir):
        size = options.mem
        ram = "memory-backend-memfd,id=ram,share=on"
        if self.spec.ram_file:
            ram = f"memory-backend-file,id=ram,share=on,mem-path={_quote(self.spec.ram_file)}"
        debug = _DEBUG_ARGS if options.debug else ""
        append = (
            f"console=ttyS0 loglevel=5 panic=-1 tsc=reliable mitigations=off {debug} "
            f"ordma_vm={self.number} {options.append}"
        )
        return [
            "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-name", f"ordma-vm{self.number}",
            "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", options.smp, "-m", str(size),
            "-machine", "pc,memory-backend=ram", "-object", f"{ram},size={size}M",
            "-kernel", str(kernel.boot_image()), "-initrd", str(run_dir / "initramfs"), "-append", append,
        ]  # fmt: skip

    def _ports(self, tty):
        argv = ["-chardev", f"socket,id=console,fd={self._pass('console')}", "-serial", "chardev:console"]
        argv += ["-device", "virtio-serial-pci,max_ports=8"]
        for number, name in enumerate(("stdout", "stderr", "control"), 1):
            argv += ["-chardev", f"socket,id={name},fd={self._pass(name)}"]
            argv += ["-device", f"virtserialport,nr={number},chardev={name}"]
        if tty:
            argv += ["-chardev", f"socket,id=tty,fd={self._pass('tty')}", "-device", "virtconsole,nr=4,chardev=tty"]
        return argv

    def _shares(self, options, run_dir):
        argv = []
        shares = [("host", Path("/"), ",readonly=on"), ("run", run_dir, "")]
        shares += [(f"rw{number}", path, "") for number, path in enumerate(options.rw)]
        for tag, path, extra in shares:
            local = f"local,id={tag},path={_quote(path)},security_model=none,multidevs=remap{extra}"
            argv += ["-fsdev", local, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        return argv

    def _devices(self):
        argv = []
        for number, path in enumerate(self.spec.nics):
            argv += ["-chardev", f"socket,id=nic{number},path={_quote(path)}"]
            argv += ["-device", f"ivshmem-doorbell,chardev=nic{number},vectors=2"]
        for number, (end, mac) in enumerate(zip(self.spec.netdevs, self.spec.macs())):
            if isinstance(end, socket.socket):
                self._far.append(end)
                address = f"addr.type=fd,addr.str={end.fileno()}"
            else:
                address = f"addr.type=unix,addr.path={_quote(end)}"
            argv += ["-netdev", f"stream,id=net{number},server=off,{address}"]
            argv += ["-device", f"virtio-net-pci,netdev=net{number},mac={mac},romfile="]
        return argv

    # ---- life

    def start(self):
        self._make_ram()
        console = self._far[0]  # QEMU's own complaints belong with the guest's
        try:
            self.process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=console,
                pass_fds=[far.fileno() for far in self._far],
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            raise VmError(f"qemu-system-x86_64: {error.strerror}; the cure is: tools/setup.sh") from error
        finally:
            for far in self._far:
                far.close()

    def _make_ram(self):
        path = self.spec.ram_file
        if path is None or path.exists():
            return
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise VmError(f"{path}: {error.strerror}") from error
        self._made_ram = True

    def stop(self):
        """Ends QEMU, whatever state it is in, and removes what this guest made."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
        for stream in self.streams.values():
            stream.close()
        if self._made_ram:
            self.spec.ram_file.unlink(missing_ok=True)

    def add_console(self, line):
        self.console.append(line)
        del self.console[:-CONSOLE_LINES_MAX]

    def console_excerpt(self):
        """Where the trouble begins, if the console shows any; else the last lines."""
        lines = [line for line in self.console if not line.endswith("**")]  # boxed notices
        for number, line in enumerate(lines):
            if _TROUBLE.search(line):
                return lines[max(0, number - 3) : number + EXCERPT_LINES]
        return lines[-EXCERPT_LINES:]

    def control(self, line):
        """One line from the guest's process 1."""
        word, _, value = line.partition(" ")
        if word == "ready":
            self.ready = True
        elif word == "listening":
            self.listening = True
        elif word == "exit" and value.isdigit():
            self.status = int(value)
