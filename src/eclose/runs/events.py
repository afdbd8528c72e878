"""The log of a run: one JSON object a line, only ever appended.

The log is the run's own truth, so it must survive anything: a line that was not written to its end is dropped and said,
and a damaged stretch is set aside together with everything after it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eclose.runs.errors import RunError, writing
from eclose.runs.files import flush_folder, write_all

Event = dict[str, Any]
FLUSH_SECONDS = 1.0  # a power cut may cost the events of this long; a killed process costs none


@dataclass(frozen=True)
class Reading:
    """What a log holds.

    Attributes:
        events: the good ones, in order.
        ends: the offset after each of them.
        total: bytes in the file.
        note: what had to be left out, or nothing.
    """

    events: list[Event] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    total: int = 0
    note: str = ""

    @property
    def good(self) -> int:
        """The number of bytes up to the end of the last good event."""
        return self.ends[-1] if self.ends else 0


def read_events(path: Path) -> Reading:
    """Return the good events of a log; the file is not changed."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Reading(note=f"{path.name} is missing")
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}") from error
    events: list[Event] = []
    ends: list[int] = []
    note = ""
    for line, end in _lines(content):
        event = _event(line)
        if event is None:
            start = ends[-1] if ends else 0
            torn = end == len(content) and not line.endswith(b"\n")
            if torn:
                note = f"the last line of {path.name} was not written to its end; it is dropped"
            else:
                note = (
                    f"{path.name} is damaged at line {len(events) + 1} (byte {start}); "
                    f"what follows ({len(content) - start} bytes) is left out"
                )
            break
        events.append(event)
        ends.append(end)
    return Reading(events, ends, len(content), note)


def _lines(content: bytes) -> Iterator[tuple[bytes, int]]:
    start = 0
    while start < len(content):
        found = content.find(b"\n", start)
        end = len(content) if found < 0 else found + 1
        yield content[start:end], end
        start = end


def _event(line: bytes) -> Event | None:
    if not line.endswith(b"\n"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


class EventLog:
    """The log opened for appending, by the one driver that holds the run's lock.

    Args:
        path: the file; created where missing.

    Attributes:
        events: all good events, those found and those appended since.
        note: what had to be repaired on opening, or nothing.
    """

    def __init__(self, path: Path):
        self.path = path
        reading = read_events(path) if path.exists() else Reading()
        self.events = reading.events
        self.note = reading.note
        self._ends = reading.ends
        with writing(path):
            if reading.total > reading.good:
                self._set_aside(reading)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o666)
            flush_folder(path.parent)
        self._flushed = time.monotonic()

    def _set_aside(self, reading: Reading) -> None:
        """Cut the log after its last good event; more than a torn line is kept in a file of its own."""
        with self.path.open("r+b") as file:
            if "damaged" in reading.note:
                file.seek(reading.good)
                aside = self.path.with_name(f"{self.path.name}.damaged")
                aside.write_bytes(file.read())
                self.note += f" (kept in {aside.name})"
            file.truncate(reading.good)
            file.flush()
            os.fsync(file.fileno())

    @property
    def beginning(self) -> int:
        """Bytes up to the end of the first event."""
        return self._ends[0] if self._ends else 0

    @property
    def offset(self) -> int:
        """Bytes up to the end of the last event."""
        return self._ends[-1] if self._ends else 0

    def append(self, event: Mapping[str, Any], durable: bool = False) -> None:
        """Add one event; on failure the log is what it was.

        Args:
            event: has a text under `"event"` that says what happened.
            durable: wait until it is on the disk (otherwise within `FLUSH_SECONDS` of further events).
        """
        line = (json.dumps(event, separators=(",", ":"), allow_nan=False) + "\n").encode()
        end = self.offset + len(line)
        with writing(self.path):
            try:
                write_all(self._descriptor, line)
                self.events.append(dict(event))
                self._ends.append(end)
            except BaseException:  # a full disk, or Ctrl-C between two of these lines
                del self.events[len(self._ends) :]
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self.offset)
                raise
            if durable or time.monotonic() - self._flushed > FLUSH_SECONDS:
                self.flush()

    def flush(self) -> None:
        """Wait until every event is on the disk."""
        with writing(self.path):
            os.fsync(self._descriptor)
        self._flushed = time.monotonic()

    def truncate(self, offset: int) -> int:
        """Drop the events after an offset and return how many those were.

        The offset must be the end of an event: a checkpoint that names another place belongs to another log.
        """
        if offset and offset not in self._ends:
            raise RunError(f"{self.path} has no event that ends at byte {offset}; the checkpoint is of another run")
        kept = self._ends.index(offset) + 1 if offset else 0
        dropped = len(self.events) - kept
        if dropped:
            with writing(self.path):
                os.ftruncate(self._descriptor, offset)
                os.fsync(self._descriptor)
            del self.events[kept:], self._ends[kept:]
        return dropped

    def close(self) -> None:
        """Flush and close; closing twice is harmless."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                with writing(self.path):
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
