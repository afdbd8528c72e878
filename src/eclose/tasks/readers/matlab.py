"""MATLAB 5 files, as much of them as data sets use: named arrays of numbers, compressed or not.

The format (MAT-File Format, MathWorks): a head of 128 bytes, then elements of a type, a length and a body; an array
is an element of elements - flags, sizes, name, numbers. Anything but plain numbers is refused.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError
from eclose.tasks.checks import one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

MATRIX, COMPRESSED = 14, 15
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}


def read_mat(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of numbers in a MATLAB 5 file, by name."""
    try:
        content = path.read_bytes()
        if len(content) < 128 or content[126:128] not in (b"IM", b"MI"):
            raise ValueError("no MATLAB 5 head")
        order = "<" if content[126:128] == b"IM" else ">"
        found: dict[str, NDArray[Any]] = {}
        for kind, body in _elements(content, 128, order):
            if kind == COMPRESSED:
                ((kind, body),) = _elements(zlib.decompress(body), 0, order)
            if kind == MATRIX:
                name, array = _matrix(body, order)
                found[name] = array
        return found
    except (OSError, ValueError, struct.error, zlib.error) as error:
        raise RequestError(
            f"{path} is no readable MATLAB 5 file of numbers ({one_line(error)}); fetch it again"
        ) from None


def _elements(content: bytes, offset: int, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield `(type, body)` of each element; a small one keeps length, type and up to four bytes in eight."""
    while offset + 8 <= len(content):
        (word,) = struct.unpack_from(f"{order}I", content, offset)
        if word >> 16:
            kind, length, start, end = word & 0xFFFF, word >> 16, offset + 4, offset + 8
        else:
            (length,) = struct.unpack_from(f"{order}I", content, offset + 4)
            kind, start = word, offset + 8
            end = start + length + (-length % 8 if kind != COMPRESSED else 0)
        if start + length > len(content):
            raise ValueError("it is cut off")
        yield kind, content[start : start + length]
        offset = end


def _matrix(body: bytes, order: str) -> tuple[str, NDArray[Any]]:
    import numpy as np

    parts = list(_elements(body, 0, order))
    if len(parts) < 4:
        raise ValueError("an array without its four parts")
    (flags,) = struct.unpack_from(f"{order}I", parts[0][1])
    if flags & 0xFF not in CLASSES or flags & 0x800:
        raise ValueError("an entry that is no array of real numbers")
    shape = np.frombuffer(parts[1][1], dtype=f"{order}i4")
    name = parts[2][1].decode("latin-1")
    kind, raw = parts[3]
    if kind not in STORED:
        raise ValueError(f"numbers of unknown type {kind}")
    values = np.frombuffer(raw, dtype=f"{order}{STORED[kind]}").astype(CLASSES[flags & 0xFF])
    return name, values.reshape(tuple(shape), order="F")


__all__ = ["read_mat"]
