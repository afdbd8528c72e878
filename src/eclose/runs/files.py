"""Files that are never half written: written beside, flushed to the disk, then renamed into place."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from eclose.runs.errors import writing

SUFFIX = ".tmp"  # what a kill may leave behind; swept when the run is next driven


def replace_file(path: Path, write: Callable[[Path], None], keep: Path | None = None) -> None:
    """Replace a file by what `write(temporary path)` writes; on any failure the file is what it was.

    Args:
        path: the file to replace or create.
        write: writes the new content to the path it is given.
        keep: where the file there so far is kept.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}{SUFFIX}")
    with writing(path):
        try:
            write(temporary)
            flush_file(temporary)
            if keep is not None and path.exists():
                path.replace(keep)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        flush_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Replace a text file atomically."""
    replace_file(path, lambda temporary: write_bytes(temporary, text.encode()))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file; a disk that takes only a part of it is an error."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        write_all(descriptor, content)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte: one call may write fewer than it was given."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def flush_file(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_folder(folder: Path) -> None:
    """Wait until a folder's entries are on the disk, where the system can say so."""
    with suppress(OSError):
        flush_file(folder)


def sweep(folder: Path) -> None:
    """Remove the temporary files that a killed process left."""
    for leftover in folder.glob(f"*{SUFFIX}"):
        with suppress(OSError):
            leftover.unlink()
