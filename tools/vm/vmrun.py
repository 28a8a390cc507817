# SPDX-License-Identifier: BSD-2-Clause
"""One run: guests, their output, their end, and everything that has to be cleaned up after them."""

import collections
import contextlib
import fcntl
import os
import selectors
import shlex
import shutil
import socket
import sys
import tempfile
import termios
import time
import tty
from pathlib import Path

import vmdmesg
from vmguest import Guest, check_socket
from vmimage import HERE, Kernel, VmError, write_initramfs

EXIT_TIMEOUT = 124
EXIT_NO_VERDICT = 125
GRACE_S = 10  # for the other guest's command once one has failed, and for power-off
LATE_S = 8  # before the end of the time, guests report what hangs
RUN_PREFIX = "ordma-vmrun-"
_READ_BYTES = 65536


class Run:
    def __init__(self, options, specs, commands):
        self.options = options
        self.specs = specs
        self.commands = commands
        self.guests = []
        self.run_dir = None
        self.deadline = None
        self.failed_at = None
        self.kernel = Kernel(options.kernel)
        lists = [vmdmesg.ALLOW_LIST, *options.dmesg_allow] if options.dmesg_check else []
        self.allowed = [pattern for path in lists for pattern in vmdmesg.read_allow_list(path)]
        self.selector = selectors.DefaultSelector()
        self.partial = {}  # (guest, stream) -> bytes of an unfinished line

    def run(self):
        """Returns the exit status of the whole run."""
        for spec in self.specs:
            for path in [*spec.nics, *(end for end in spec.netdevs if not isinstance(end, socket.socket))]:
                check_socket(path)
        try:
            with _one_run_at_a_time():
                self.deadline = time.monotonic() + self.options.timeout
                _sweep()
                self._prepare()
                for guest in self.guests:
                    self._start(guest)
                with self._terminal():
                    timed_out = self._watch()
                return self._verdict(timed_out)
        finally:
            self._clean_up()

    # ---- before

    def _prepare(self):
        self.run_dir = Path(tempfile.mkdtemp(prefix=RUN_PREFIX))
        write_initramfs(self.run_dir / "initramfs", self.kernel)
        self._write("writable", "".join(f"{path}\n" for path in self.options.rw))
        self._write("modules", "".join(f"{path}\n" for path in self.options.module))
        for spec, command in zip(self.specs, self.commands):
            self._write(f"settings.{spec.number}", self._settings(spec))
            self._write(f"command.{spec.number}", self._command(spec, command))
            self.guests.append(Guest(spec, self.options, self.kernel, self.run_dir))

    def _write(self, name, text):
        (self.run_dir / name).write_text(text)

    def _settings(self, spec):
        port = self.options.listen_port
        settings = {
            "modules": self.kernel.modules.parent,
            "macs": " ".join(spec.macs()),
            "distribution_modules": " ".join(self.options.modprobe),
            "listen_port": f"{port:04X}" if port and spec.number == 1 else "",
            "tty_size": _terminal_size() if self.options.tty else "",
            "late": int(time.time() + self.deadline - time.monotonic()) - LATE_S,
        }
        return "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items())

    def _command(self, spec, command):
        environment = dict(os.environ)
        environment["PATH"] = f"{environment.get('PATH', os.defpath)}:{HERE / 'guest'}"
        environment["ORDMA_VM_GUEST"] = str(spec.number)
        environment["ORDMA_VM_GUESTS"] = str(len(self.specs))
        if len(self.specs) == 2:
            peer = 3 - spec.number
            environment["ORDMA_VM_PEER"] = f"192.0.2.{peer}"
            environment["ORDMA_VM_PEER6"] = f"2001:db8::{peer}"
        assignments = [shlex.quote(f"{name}={value}") for name, value in environment.items()]
        words = [shlex.quote(word) for word in command]
        return f"cd {shlex.quote(os.getcwd())} || exit 125\nexec env -i {' '.join(assignments + words)}\n"

    # ---- during

    def _start(self, guest):
        guest.start()
        for name, stream in guest.streams.items():
            self.selector.register(stream, selectors.EVENT_READ, (guest, name))

    def _watch(self):
        """Until every guest is gone or the time is out; tells which."""
        while any(key.data for key in self.selector.get_map().values()):
            left = self._deadline() - time.monotonic()
            if left <= 0:
                return self.failed_at is None
            for key, _ in self.selector.select(min(left, 1)):
                self._read(key)
            self._release_commands()
        return False

    def _deadline(self):
        if self.failed_at is None:
            return self.deadline
        return min(self.deadline, self.failed_at + GRACE_S)

    @contextlib.contextmanager
    def _terminal(self):
        """With --tty: what is typed goes to the guest as it is, control characters too."""
        if not self.options.tty:
            yield
            return
        saved = termios.tcgetattr(sys.stdin)
        self.selector.register(sys.stdin, selectors.EVENT_READ, None)
        try:
            tty.setraw(sys.stdin)
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, saved)

    def _type(self):
        data = os.read(sys.stdin.fileno(), _READ_BYTES)
        if data:
            self.guests[0].streams["tty"].sendall(data)
        else:
            self.selector.unregister(sys.stdin)

    def _read(self, key):
        if key.data is None:
            self._type()
            return
        guest, name = key.data
        try:
            data = key.fileobj.recv(_READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            self.selector.unregister(key.fileobj)
            if name == "control" and guest.status is None:
                self._note_failure()
        self._take(guest, name, data)

    def _take(self, guest, name, data):
        output = {"stdout": sys.stdout.buffer, "tty": sys.stdout.buffer, "stderr": sys.stderr.buffer}.get(name)
        if output and len(self.specs) == 1:
            output.write(data)
            output.flush()
            return
        lines = (self.partial.pop((guest, name), b"") + data).split(b"\n")
        rest = lines.pop()
        if rest and not data:
            lines.append(rest)
        elif rest:
            self.partial[guest, name] = rest
        for line in lines:
            if output:
                output.write(b"%d| %s\n" % (guest.number, line))
                output.flush()
            elif name == "console":
                self._console(guest, line.decode(errors="replace").rstrip("\r"))
            else:
                self._control(guest, line.decode(errors="replace"))

    def _console(self, guest, line):
        guest.add_console(line)
        if self.options.verbose:
            print(f"console {guest.number}| {line}", file=sys.stderr, flush=True)
        if self.options.log_dir:
            with open(self.options.log_dir / f"console.{guest.number}.log", "a", encoding="utf-8") as log:
                log.write(line + "\n")

    def _control(self, guest, line):
        guest.control(line)
        if guest.status:
            self._note_failure()

    def _note_failure(self):
        if self.failed_at is None:
            self.failed_at = time.monotonic()

    def _release_commands(self):
        if not all(guest.ready for guest in self.guests):
            return
        first = self.guests[0]
        for guest in self.guests:
            held = guest is not first and self.options.listen_port
            if not held or first.listening or first.status is not None:
                (self.run_dir / f"go.{guest.number}").touch()

    # ---- after

    def _verdict(self, timed_out):
        status = next((guest.status for guest in self.guests if guest.status), 0)
        silent = [guest for guest in self.guests if guest.status is None]
        problems = [self._judge_log(guest) for guest in self.guests]
        if timed_out:
            _say(f"the time of {self.options.timeout:g} s ran out")
            self._show_consoles(silent or self.guests)
            return EXIT_TIMEOUT
        if silent and not status:
            for guest in silent:
                _say(f"guest {guest.number} ended without a status for its command")
            self._show_consoles(silent)
            return EXIT_NO_VERDICT
        if any(problems) and not status:
            return EXIT_NO_VERDICT
        return status

    def _judge_log(self, guest):
        """Shows what is wrong with a guest's kernel log; true if something is."""
        path = self.run_dir / f"dmesg.{guest.number}"
        if not path.exists():
            return False  # the guest died first, which has its own report
        log = path.read_text(errors="replace")
        if self.options.log_dir:
            (self.options.log_dir / f"dmesg.{guest.number}.log").write_text(log)
        found = vmdmesg.findings(log, self.allowed) if self.options.dmesg_check else []
        if found:
            _say(f"guest {guest.number}: kernel log lines that no list explains:")
            for line, count in collections.Counter(found).items():
                _say(f"  {line}" + (f" ({count} times)" if count > 1 else ""))
        return bool(found)

    def _show_consoles(self, guests):
        for guest in guests:
            _say(f"console of guest {guest.number}:")
            for line in guest.console_excerpt():
                _say(f"  {line}")

    def _clean_up(self):
        for guest in self.guests:
            guest.stop()
        if self.run_dir:
            shutil.rmtree(self.run_dir, ignore_errors=True)


def _sweep():
    """Removes what a killed runner could not; the lock says that none of it is in use."""
    for path in Path(tempfile.gettempdir()).glob(f"{RUN_PREFIX}*"):
        if path.is_dir() and not path.is_symlink() and path.stat().st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)


def _terminal_size():
    size = os.get_terminal_size(sys.stdin.fileno())
    return f"rows {size.lines} cols {size.columns}"


def _say(text):
    print(f"ordma-vm: {text}", file=sys.stderr, flush=True)


class _one_run_at_a_time:
    """Guests under TCG spin; two runs at once on a small machine only run out of time."""

    def __enter__(self):
        path = Path(tempfile.gettempdir()) / f"ordma-vm.{os.getuid()}.lock"
        self.file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("waiting for another run to end")
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        os.close(self.file)
