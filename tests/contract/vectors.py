# SPDX-License-Identifier: BSD-2-Clause
"""Reads vectors.txt. Knows nothing of the layout: that is what the tests are about."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Vector:
    """A number is int, a raw field is bytes in memory order."""

    values: dict[str, int | bytes]
    bytes: bytes


@dataclass
class Struct:
    name: str
    bytes: int
    big: bool
    vectors: list[Vector]

    @property
    def used(self) -> bytes:
        """Mask of the bits that have a name: the first vector sets them all."""
        return self.vectors[0].bytes

    def noisy(self, data: bytes) -> bytes:
        """The same with every reserved bit set."""
        return bytes(b | (~m & 0xFF) for b, m in zip(data, self.used, strict=True))


def read(path: Path) -> list[Struct]:
    structs: list[Struct] = []
    for line in path.read_text().splitlines():
        if line.startswith("struct "):
            _, name, size, order = line.split()
            structs.append(Struct(name, int(size), order == "big", []))
        elif line.startswith("v "):
            left, right = line[2:].split(" | ")
            values: dict[str, int | bytes] = {}
            for pair in left.split():
                key, text = pair.split("=")
                values[key] = bytes.fromhex(text[1:]) if text[0] == "@" else int(text, 16)
            structs[-1].vectors.append(Vector(values, bytes.fromhex(right)))
    if not structs or any(len(s.vectors) < 2 for s in structs):
        raise ValueError(f"{path}: no vectors, or a struct with fewer than two")
    return structs
