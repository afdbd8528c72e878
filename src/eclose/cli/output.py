"""How commands print: tables for people, one JSON object for machines; errors in one line.

Exit status: 0 done, 1 the work failed, 2 the request was wrong, 130 interrupted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eclose.algebra.errors import RequestError


def as_json(value: Any) -> None:
    """Print one JSON object and nothing else."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def text(value: str) -> None:
    """Print a text to standard output."""
    sys.stdout.write(value if value.endswith("\n") else value + "\n")


def note(value: str) -> None:
    """Print a remark to standard error, away from what a pipe reads."""
    with suppress(OSError, ValueError):  # nobody may be reading any more; the work goes on
        sys.stderr.write(value + "\n")
        sys.stderr.flush()


def table(rows: Sequence[Sequence[Any]], heads: Sequence[str] = (), right: Sequence[int] = ()) -> None:
    """Print rows in aligned columns.

    Args:
        rows: the cells.
        heads: the columns' names.
        right: the columns that are aligned to the right.
    """
    cells = [[str(cell) for cell in row] for row in ([heads, *rows] if heads else rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        text("  ".join(padded).rstrip())


def write_file(path: Path, content: str) -> None:
    """Write a file as a whole or not at all."""
    from eclose.runs.errors import RunError
    from eclose.runs.files import write_text

    try:
        write_text(path, content)
    except RunError as error:
        raise RequestError(str(error)) from None


def big(number: int) -> str:
    """Return a large whole number with its magnitude, e.g. `1,037,664,180 (10^9.02)`."""
    if number.bit_length() > 4096:
        digits = _digits(number)
        return f"about 10^{digits:.4f}"
    grouped = f"{number:,}" if number < 10**30 else ""
    magnitude = f"10^{_digits(number):.4f}" if number >= 10**6 else ""
    return f"{grouped} ({magnitude})" if grouped and magnitude else grouped or magnitude


def _digits(number: int) -> float:
    from math import log10

    shift = max(0, number.bit_length() - 1000)
    return log10(number >> shift) + shift * log10(2) if number else 0.0
