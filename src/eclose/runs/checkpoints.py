"""Checkpoints: the state of a computation in a file, with the one before it kept in case the newest is damaged.

Whoever trains brings `save(content, path)` and `load(path)`; this module knows no tensors. Nothing is unpickled here:
a loader must be safe by itself (`torch.load(path, weights_only=True)`).
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eclose.algebra.errors import shortened
from eclose.runs.errors import writing
from eclose.runs.files import replace_file

Save = Callable[[Any, Path], None]
Load = Callable[[Path], Any]
PREVIOUS = "previous"


class CheckpointFile:
    """A checkpoint and the one before it: `checkpoint.pt` and `checkpoint.previous.pt`.

    Args:
        path: the newest one.
        save: writes any content to a path.
        load: reads it back, and raises on a damaged file.

    Attributes:
        notes: what the last reading had to leave out.
    """

    def __init__(self, path: Path, save: Save | None, load: Load | None):
        self.path = path
        self.previous = path.with_name(f"{path.stem}.{PREVIOUS}{path.suffix}")
        self._save, self._load = save, load
        self.notes: list[str] = []

    def write(self, content: Any) -> None:
        """Write a checkpoint; the one there so far becomes the previous one."""
        if self._save is None:
            raise TypeError("this checkpoint was opened without a function that saves")
        save = self._save
        replace_file(self.path, lambda temporary: save(content, temporary), keep=self.previous)

    def read(self, fits: Callable[[Any], str] | None = None) -> Any | None:
        """Return the newest checkpoint that can be read, or None.

        Args:
            fits: returns why a content that could be read is of no use, or nothing.
        """
        if self._load is None:
            raise TypeError("this checkpoint was opened without a function that loads")
        self.notes = []
        for path in (self.path, self.previous):
            if not path.exists():
                continue
            try:
                refuse_damaged(path)
                content = self._load(path)
                reason = fits(content) if fits is not None else ""
            except Exception as error:  # whatever a loader raises on damaged bytes
                reason = shortened(f"{type(error).__name__}: {error}".splitlines()[0])
                self.notes.append(f"{path.name} is damaged ({reason}); it is left out")
                continue
            if not reason:
                return content
            self.notes.append(f"{path.name} {reason}; it is left out")
        return None

    def remove(self) -> None:
        """Remove both files where they exist."""
        with writing(self.path):
            self.path.unlink(missing_ok=True)
            self.previous.unlink(missing_ok=True)


def refuse_damaged(path: Path) -> None:
    """Raise where a zip archive, which torch's files are, fails its own checksums: torch does not check them."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
        if bad is not None:
            raise ValueError(f"the checksum of {bad} does not match")
