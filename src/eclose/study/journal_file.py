"""Optuna's journal file: one JSON object a line, shared by processes through a lock file.

It has the two methods that Optuna's `JournalStorage` asks of a backend and the format of Optuna's own one. What it does
otherwise: several operations can be written at once, flushing to the disk can be left out where the file can be made
again, and what a killed process left - a torn last line, a lock - is cleared on opening.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LOCK_SECONDS = 3.0  # a lock held for so long belongs to a process that is gone: appending takes milliseconds
ALONE_SECONDS = 0.5  # the same where one process writes and others read


class JournalFile:
    """A journal file to be handed to `optuna.storages.JournalStorage`.

    Args:
        path: the file; created where missing.
        durable: wait for the disk after every operation.
    """

    def __init__(self, path: Path, durable: bool = True):
        self.path = path
        self._durable = durable
        self._lock = path.with_name(f"{path.name}.lock")
        self._patience = LOCK_SECONDS if durable else ALONE_SECONDS
        self._offsets = [0]  # offset of each operation read so far, and of the next one
        self._held: list[dict[str, Any]] | None = None
        path.touch()
        with self._locked():
            self._cut_torn_line()

    def _cut_torn_line(self) -> None:
        with self.path.open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            start = end
            while start > 0:  # a line may be longer than a block
                before = max(0, start - 65_536)
                file.seek(before)
                newline = file.read(start - before).rfind(b"\n")
                if newline >= 0:
                    start = before + newline + 1
                    break
                start = before
            if start < end:
                file.truncate(start)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock that Optuna's own backend takes: a symbolic link, which only one process can make."""
        held, since = 0, time.monotonic()
        while True:
            try:
                self._lock.symlink_to(self.path)
                break
            except FileExistsError:
                with suppress(FileNotFoundError):
                    made = self._lock.lstat().st_mtime_ns
                    if made != held:
                        held, since = made, time.monotonic()
                    elif time.monotonic() - since > self._patience:
                        self._lock.unlink()
                time.sleep(0.001)
        try:
            yield
        finally:
            self._lock.unlink(missing_ok=True)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Write what is appended inside the block at its end, at once."""
        self._held = []
        try:
            yield
            held, self._held = self._held, None
            self.append_logs(held)
        finally:
            self._held = None

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append operations."""
        if self._held is not None:
            self._held += logs
            return
        content = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        with self._locked(), self.path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                view = memoryview(content)
                while view:
                    view = view[file.write(view) :]
                if self._durable:
                    os.fsync(file.fileno())
            except BaseException:
                with suppress(OSError):
                    file.truncate(before)
                raise

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """Yield the operations from a number on."""
        with self.path.open("rb") as file:
            start = min(log_number_from, len(self._offsets) - 1)
            file.seek(self._offsets[start])
            for number, line in enumerate(file, start):
                if not line.endswith(b"\n"):
                    return
                if number + 1 == len(self._offsets):
                    self._offsets.append(self._offsets[number] + len(line))
                if number >= log_number_from:
                    yield json.loads(line)
