"""TFRecord files without TensorFlow: length, checksum of the length, data, checksum of the data, and again.

Checksums are CRC-32C, masked as the format asks for. A file is read once from front to back, a few thousand records at
a time, whose checksums are computed side by side.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from eclose.algebra.errors import RequestError

POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed
MASK = 0xA282EAD8
HEADER = struct.Struct("<QI")
BATCH_RECORDS, BATCH_BYTES = 4096, 1 << 24


def records(path: Path) -> Iterator[bytes]:
    """Yield the records of a file; a damaged one is refused with its number, counted from 0, and its place."""
    with path.open("rb") as stream:
        size, number, place = path.stat().st_size, 0, 0
        while True:
            batch, checksums, places, error = _batch(stream, path, size, number, place)
            for index, (found, wanted) in enumerate(zip(masked_checksums(batch), checksums, strict=True)):
                if found != wanted:
                    raise _damaged(path, number + index, places[index], "its data do not match their checksum")
                yield batch[index]
            if error is not None:
                raise error
            if not batch:
                return
            number, place = number + len(batch), stream.tell()


def _batch(
    stream: BinaryIO, path: Path, size: int, number: int, place: int
) -> tuple[list[bytes], list[int], list[int], RequestError | None]:
    """Return records with their checksums and places, and what is wrong with the one after them."""
    batch, checksums, places, total = list[bytes](), list[int](), list[int](), 0
    while len(batch) < BATCH_RECORDS and total < BATCH_BYTES:
        header = stream.read(HEADER.size)
        if not header:
            break
        which = number + len(batch)
        if len(header) < HEADER.size:
            return batch, checksums, places, _damaged(path, which, place, "the file ends within its length")
        length, checksum = HEADER.unpack(header)
        if masked(checksum_of(header[:8])) != checksum:
            return batch, checksums, places, _damaged(path, which, place, "its length does not match its checksum")
        if length + 4 > size - place - HEADER.size:
            have = max(size - place - HEADER.size, 0)
            wrong = f"the file ends after {have:,} of its {length + 4:,} bytes"
            return batch, checksums, places, _damaged(path, which, place, wrong)
        body = stream.read(length + 4)
        batch.append(body[:-4])
        checksums.append(int.from_bytes(body[-4:], "little"))
        places.append(place)
        place += HEADER.size + length + 4
        total += length
    return batch, checksums, places, None


def _damaged(path: Path, number: int, place: int, what: str) -> RequestError:
    return RequestError(f"{path}: record {number:,} at byte {place:,} is damaged: {what}; fetch the file again")


# Checksums


def masked(checksum: int) -> int:
    """Return a checksum as the format writes it."""
    return (((checksum >> 15) | (checksum << 17)) + MASK) & 0xFFFFFFFF


def checksum_of(data: bytes) -> int:
    """Return the CRC-32C of a few bytes."""
    table, checksum = _table(), 0xFFFFFFFF
    for byte in data:
        checksum = table[(checksum ^ byte) & 0xFF] ^ (checksum >> 8)
    return checksum ^ 0xFFFFFFFF


def masked_checksums(batch: Sequence[bytes]) -> list[int]:
    """Return the masked CRC-32C of each of many records: byte by byte, but all records at once."""
    import numpy as np

    if not batch:
        return []
    table = np.array(_table(), dtype=np.uint32)
    lengths = np.array([len(data) for data in batch])
    order = np.argsort(-lengths, kind="stable")  # those that go on at a byte then stand in front
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])[order]
    data = np.frombuffer(b"".join(batch), dtype=np.uint8)
    checksums = np.full(len(batch), 0xFFFFFFFF, dtype=np.uint32)
    descending = lengths[order]
    for position in range(int(descending[0])):
        count = int(np.searchsorted(-descending, -position))  # how many are longer than this
        active = checksums[:count]
        checksums[:count] = table[(active ^ data[starts[:count] + position]) & 0xFF] ^ (active >> 8)
    found: Any = np.empty(len(batch), dtype=np.uint32)
    found[order] = checksums ^ np.uint32(0xFFFFFFFF)
    return [masked(checksum) for checksum in found.tolist()]


@cache
def _table() -> tuple[int, ...]:
    """Return what each byte does to a checksum."""
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (POLYNOMIAL if byte & 1 else 0)
        rows.append(byte)
    return tuple(rows)


__all__ = ["checksum_of", "masked", "masked_checksums", "records"]
