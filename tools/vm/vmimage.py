# SPDX-License-Identifier: BSD-2-Clause
"""The guest's kernel and its initramfs: busybox, the modules that reach the host's root, /init."""

import lzma
import os
import struct
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
BUSYBOX = Path("/bin/busybox")

# Everything else is loaded later by modprobe, from the module tree under build/kernel.
BOOT_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_console")


class VmError(Exception):
    """A run that cannot give a verdict; the text says why and, where there is one, the cure."""


class Kernel:
    """One unpacked kernel of build/kernel: image, release and module tree."""

    def __init__(self, version):
        self.root = TOP / "build" / "kernel" / version
        cure = "tools/setup.sh" + ("" if version == "6.1" else f" --kernel {version}")
        try:
            self.release = (self.root / "release").read_text().strip()
        except OSError as error:
            raise VmError(f"guest kernel {version} is not there; the cure is: {cure}") from error
        self.image = self.root / "boot" / f"vmlinuz-{self.release}"
        self.modules = self.root / "lib" / "modules" / self.release
        if not self.image.is_file() or not (self.modules / "modules.dep").is_file():
            raise VmError(f"guest kernel {version} is not complete; the cure is: {cure}")

    def boot_image(self):
        """The kernel to start: uncompressed where possible, which saves a guest seconds of xz."""
        plain = self.image.with_name(f"vmlinux-{self.release}")
        if not plain.is_file():
            data = _payload(self.image.read_bytes())
            if data is None:
                return self.image
            try:
                with tempfile.NamedTemporaryFile(dir=plain.parent, delete=False) as file:
                    file.write(data)
                os.chmod(file.name, 0o644)
                os.replace(file.name, plain)
            except PermissionError:  # another user's tree: slower, as good
                return self.image
        return plain

    def closure(self, names):
        """Module files for names and all they need, each after what it depends on."""
        builtin = {_module_name(line) for line in self._lines("modules.builtin")}
        needs = {}
        for line in self._lines("modules.dep"):
            path, _, depends = line.partition(":")
            needs[_module_name(path)] = (path, depends.split())
        files = []
        for name in names:
            if name in builtin:
                continue
            if name not in needs:
                raise VmError(f"kernel {self.release} has no module {name}")
            path, depends = needs[name]
            # modules.dep lists the direct need first and the deepest one last.
            for file in [*reversed(depends), path]:
                if file not in files:
                    files.append(file)
        return [self.modules / file for file in files]

    def _lines(self, name):
        return (self.modules / name).read_text().splitlines()


def _payload(image):
    """The ELF file inside an xz-compressed bzImage, found by its boot protocol header; else None."""
    if len(image) < 0x250 or image[0x202:0x206] != b"HdrS":
        return None
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (image[0x1F1] + 1) * 512 + offset
    try:
        data = lzma.LZMADecompressor().decompress(image[start : start + length])
    except lzma.LZMAError:
        return None
    return data if data.startswith(b"\x7fELF") else None


def _module_name(path):
    return Path(path).name.split(".ko")[0].replace("-", "_")


def _plain_module(path):
    # busybox insmod reads no compressed modules.
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


class _Cpio:
    """Writer of the "newc" archive format, the one the kernel unpacks."""

    def __init__(self):
        self.parts = []
        self.inode = 0

    def add(self, name, mode, data=b""):
        self.inode += 1
        encoded = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self.parts += [head, bytes(-len(head) % 4), data, bytes(-len(data) % 4)]

    def bytes(self):
        self.add("TRAILER!!!", 0)
        return b"".join(self.parts)


def write_initramfs(path, kernel):
    if not BUSYBOX.is_file():
        raise VmError("busybox-static is not installed; the cure is: tools/setup.sh")
    cpio = _Cpio()
    for directory in ("bin", "dev", "proc", "sys", "modules", "host", "memory", "root"):
        cpio.add(directory, 0o040755)
    cpio.add("bin/busybox", 0o100755, BUSYBOX.read_bytes())
    cpio.add("init", 0o100755, (HERE / "guest" / "init").read_bytes())
    order = []
    for number, module in enumerate(kernel.closure(BOOT_MODULES)):
        order.append(f"{number:02}-{_module_name(module)}.ko")
        cpio.add(f"modules/{order[-1]}", 0o100644, _plain_module(module))
    cpio.add("stage2", 0o100644, f"{HERE / 'guest' / 'stage2'}\n".encode())
    cpio.add("modules/order", 0o100644, ("\n".join(order) + "\n").encode())
    path.write_bytes(cpio.bytes())
