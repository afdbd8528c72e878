"""NAS-Bench-101: the official file, made a compact table without TensorFlow.

Each record of the file is one training run, a JSON row `[hash, epochs, adjacency, operations, metrics]` whose metrics
are a protocol buffer in base 64. The table has one row a cell and one row a run, as columns of an `.npz` file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import os
import struct
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from eclose.algebra.errors import RequestError, shortened
from eclose.tabular.records import records

VERTICES = 7
PAIRS = tuple(combinations(range(VERTICES), 2))  # bit n of `adjacency` is the edge PAIRS[n]
OPERATIONS = ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")  # by number in `operations`
NO_OPERATION = 255
PARTS = ("train", "validation", "test")  # of `accuracies`
MOMENTS = ("halfway", "final")  # of `seconds` and `accuracies`
FORMAT = 1

_EVALUATIONS, _PARAMETERS = 1, 2  # fields of ModelMetrics
_SECONDS, _ACCURACIES = 2, (3, 4, 5)  # fields of EvaluationData
_VARINT, _DOUBLE, _BYTES, _SINGLE = 0, 1, 2, 5  # how a field is written


@dataclass(frozen=True)
class Converted:
    """What a conversion found.

    Attributes:
        path: of the table.
        cells: how many there are.
        runs: how many training runs.
        epochs: the budgets, smallest first.
    """

    path: Path
    cells: int
    runs: int
    epochs: tuple[int, ...]


@dataclass
class _Columns:
    """The table while it grows."""

    cells: dict[str, int] = field(default_factory=dict)
    vertices: array[int] = field(default_factory=lambda: array("B"))
    adjacency: array[int] = field(default_factory=lambda: array("I"))
    operations: array[int] = field(default_factory=lambda: array("B"))
    parameters: array[int] = field(default_factory=lambda: array("i"))
    cell: array[int] = field(default_factory=lambda: array("i"))
    epochs: array[int] = field(default_factory=lambda: array("h"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    accuracies: array[float] = field(default_factory=lambda: array("d"))


def convert(
    source: str | os.PathLike[str], target: str | os.PathLike[str], progress: Callable[[int], None] | None = None
) -> Converted:
    """Convert the official file, such as `nasbench_only108.tfrecord`, to an `.npz` table.

    The file is read once and checked record by record; the table appears under its name when it is complete.
    Its columns:

    - by cell: `hash` (16 bytes), `vertices`, `adjacency` (bit n is the edge `PAIRS[n]`), `operations` (of the vertices
      between input and output, by number in `OPERATIONS`), `parameters`;
    - by run: `cell`, `epochs`, `seconds` (halfway, final), `accuracies` (halfway, final x train, validation, test).
      Runs are sorted by cell and stay in the file's order within it.

    Args:
        source: the official file.
        target: the table to write; `.npz` is added where it is not there.
        progress: called with the number of records read, every 10,000 of them.
    """
    origin, path = Path(source).expanduser(), Path(target).expanduser()
    if not origin.is_file():
        raise RequestError(
            f"there is no file {str(origin)!r}; nasbench_only108.tfrecord is to be had from the repository "
            "google-research/nasbench"
        )
    if path.suffix != ".npz":
        path = path.with_name(path.name + ".npz")
    if not path.parent.is_dir():
        raise RequestError(f"the folder {str(path.parent)!r} for the table does not exist")
    columns = _Columns()
    for number, record in enumerate(records(origin)):
        try:
            _add(columns, record)
        except _WrongRow as error:
            raise RequestError(f"{origin}: record {number:,} is no row of NAS-Bench-101: {error}") from None
        if progress is not None and (number + 1) % 10_000 == 0:
            progress(number + 1)
    if not columns.cell:
        raise RequestError(f"{origin} holds no records")
    _write(columns, path)
    return Converted(path, len(columns.vertices), len(columns.cell), tuple(sorted(set(columns.epochs))))


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the columns of a table that `convert` has written, by name."""
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            if "format" not in file or int(file["format"]) != FORMAT:
                raise RequestError(
                    f"{path} is no table of NAS-Bench-101 that this version reads; convert the official file"
                )
            return {name: file[name] for name in file.files if name != "format"}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, RequestError):
            raise
        raise RequestError(f"{path} cannot be read as a table of NAS-Bench-101: {error}") from None


def cell(columns: dict[str, Any], row: int) -> tuple[list[list[int]], list[str]]:
    """Return a row's adjacency matrix and operations, as `read_nb101` of the spaces takes them."""
    count, bits = int(columns["vertices"][row]), int(columns["adjacency"][row])
    matrix = [[0] * count for _ in range(count)]
    for number, (start, end) in enumerate(PAIRS):
        if bits >> number & 1:
            matrix[start][end] = 1
    inner = [OPERATIONS[number] for number in columns["operations"][row, : count - 2].tolist()]
    return matrix, ["input", *inner, "output"]


def cell_hash(matrix: Sequence[Sequence[int]], operations: Sequence[str]) -> str:
    """Return the hash by which the benchmark finds a cell: equal for isomorphic ones.

    The cell must be pruned: each vertex lies on a path from the input to the output.
    """
    count = len(operations)
    numbers = [-1, *(OPERATIONS.index(label) for label in operations[1:-1]), -2]
    into = [[start for start in range(count) if matrix[start][end]] for end in range(count)]
    out = [[end for end in range(count) if matrix[start][end]] for start in range(count)]
    hashes = [_md5(str((len(out[v]), len(into[v]), numbers[v]))) for v in range(count)]
    for _ in range(count):
        hashes = [
            _md5("|".join(["".join(sorted(hashes[w] for w in side[v])) for side in (into, out)] + [hashes[v]]))
            for v in range(count)
        ]
    return _md5(str(sorted(hashes)))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


# One record


class _WrongRow(Exception):  # noqa: N818 - it never leaves this module
    """What is wrong with a record."""


def _add(columns: _Columns, record: bytes) -> None:
    """Take one record into the table."""
    try:
        row = json.loads(record)
    except ValueError:  # that it is no UTF-8 is one, too
        raise _WrongRow("it is not JSON") from None
    kinds = (str, int, str, str, str)
    if not isinstance(row, list) or [type(item) for item in row] != list(kinds):
        raise _WrongRow("it is not [hash, epochs, adjacency, operations, metrics]")
    name, epochs, adjacency, operations, metrics = row
    if not 0 < epochs < 1 << 15:
        raise _WrongRow(f"{epochs} epochs")
    try:
        message = base64.b64decode(metrics, validate=True)
    except binascii.Error:
        raise _WrongRow("its metrics are not in base 64") from None
    parameters, evaluations = _metrics(message)
    found = columns.cells.get(name)
    if found is None:
        bits, numbers = _module(adjacency, operations)
        if len(name) != 32 or set(name) - set("0123456789abcdef"):
            raise _WrongRow(f"{shortened(name)} is not the hash of a cell")
        found = columns.cells[name] = len(columns.vertices)
        columns.vertices.append(len(numbers) + 2)
        columns.adjacency.append(bits)
        columns.operations.extend(numbers + [NO_OPERATION] * (VERTICES - 2 - len(numbers)))
        columns.parameters.append(parameters)
    columns.cell.append(found)
    columns.epochs.append(epochs)
    for seconds, accuracies in evaluations:
        columns.seconds.append(seconds)
        columns.accuracies.extend(accuracies)


def _module(adjacency: str, operations: str) -> tuple[int, list[int]]:
    """Return a cell's edges as bits, and the numbers of its operations."""
    labels = operations.split(",")
    count = len(labels)
    if len(adjacency) != count * count or set(adjacency) - {"0", "1"}:
        raise _WrongRow(f"{count} operations need an adjacency matrix of {count * count} digits 0 and 1")
    if not 2 <= count <= VERTICES or labels[0] != "input" or labels[-1] != "output":
        raise _WrongRow(
            f"a cell has an input, up to {VERTICES - 2} operations and an output, not {shortened(operations)}"
        )
    for label in labels[1:-1]:
        if label not in OPERATIONS:
            raise _WrongRow(f"unknown operation {shortened(label)}")
    bits = 0
    for number, (start, end) in enumerate(PAIRS):
        if end < count and adjacency[start * count + end] == "1":
            bits |= 1 << number
    if bits.bit_count() != adjacency.count("1"):
        raise _WrongRow("an edge leads backwards")
    return bits, [OPERATIONS.index(label) for label in labels[1:-1]]


def _metrics(message: bytes) -> tuple[int, list[tuple[float, list[float]]]]:
    """Return the number of parameters, and seconds and accuracies halfway and at the end of training."""
    parameters, evaluations = None, []
    for number, value in _fields(message):
        if number == _EVALUATIONS and isinstance(value, bytes):
            evaluations.append(value)
        elif number == _PARAMETERS and isinstance(value, int):
            parameters = value
    if parameters is None or not 0 <= parameters < 1 << 31:
        raise _WrongRow("its metrics lack the number of parameters")
    if len(evaluations) != 1 + len(MOMENTS):  # before training, halfway, at the end
        raise _WrongRow(f"its metrics hold {len(evaluations)} evaluations, not three")
    found = []
    for evaluation in evaluations[1:]:
        values = {number: value for number, value in _fields(evaluation) if isinstance(value, float)}
        numbers = [values.get(number, math.nan) for number in (_SECONDS, *_ACCURACIES)]
        if not all(map(math.isfinite, numbers)):
            raise _WrongRow("an evaluation lacks its time or one of its accuracies")
        found.append((numbers[0], numbers[1:]))
    return parameters, found


def _fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Yield the fields of a protocol buffer message as (number, value)."""
    place, size = 0, len(message)
    while place < size:
        key, place = _varint(message, place)
        number, kind = key >> 3, key & 7
        value: int | float | bytes
        if kind == _VARINT:
            value, place = _varint(message, place)
        elif kind == _DOUBLE and place + 8 <= size:
            (value,), place = struct.unpack_from("<d", message, place), place + 8
        elif kind == _SINGLE and place + 4 <= size:
            (value,), place = struct.unpack_from("<f", message, place), place + 4
        elif kind == _BYTES:
            length, place = _varint(message, place)
            if place + length > size:
                raise _WrongRow("its metrics end too early")
            value, place = message[place : place + length], place + length
        else:
            raise _WrongRow("its metrics are no protocol buffer, or end too early")
        yield number, value


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """Return a whole number of variable length, and the place behind it."""
    value = shift = 0
    while place < len(message) and shift < 70:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7
    raise _WrongRow("its metrics end too early")


# The table


def _write(columns: _Columns, path: Path) -> None:
    """Write the table next to its place and move it there when it is complete."""
    import numpy as np

    order = np.argsort(np.frombuffer(columns.cell, np.int32), kind="stable")
    runs = len(order)
    table = {
        "format": np.array(FORMAT),
        "hash": np.frombuffer(bytes.fromhex("".join(columns.cells)), np.uint8).reshape(-1, 16),
        "vertices": np.frombuffer(columns.vertices, np.uint8),
        "adjacency": np.frombuffer(columns.adjacency, np.uint32),
        "operations": np.frombuffer(columns.operations, np.uint8).reshape(-1, VERTICES - 2),
        "parameters": np.frombuffer(columns.parameters, np.int32),
        "cell": np.frombuffer(columns.cell, np.int32)[order],
        "epochs": np.frombuffer(columns.epochs, np.int16)[order],
        "seconds": _narrowed(np.frombuffer(columns.seconds).reshape(runs, len(MOMENTS))[order]),
        "accuracies": _narrowed(np.frombuffer(columns.accuracies).reshape(runs, len(MOMENTS), len(PARTS))[order]),
    }
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **table)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _narrowed(values: Any) -> Any:
    """Return numbers in single precision where that loses nothing: the official ones were computed in it."""
    import numpy as np

    narrow = values.astype(np.float32)
    return narrow if (narrow == values).all() else values


__all__ = ["MOMENTS", "OPERATIONS", "PAIRS", "PARTS", "Converted", "cell", "cell_hash", "convert", "read"]
