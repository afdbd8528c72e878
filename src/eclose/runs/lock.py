"""The lock of a run: one driver at a time.

The kernel holds the lock (`flock`), so it dies with its process; the file's text says who holds it, which is what a
second driver is told, and what tells a lock left by a dead process from a fresh one.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from eclose.algebra.errors import RequestError
from eclose.runs.errors import writing
from eclose.runs.files import write_all

PATIENCE = 5.0  # a killed driver's own worker processes may hold the lock until they notice


class RunLock:
    """The lock file of a run folder, held from `acquire` to `release`.

    Attributes:
        note: says that a lock of a dead process was recovered, or nothing.
    """

    def __init__(self, path: Path):
        self.path = path
        self.note = ""
        self._descriptor = -1

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor >= 0

    def acquire(self, force: bool = False) -> None:
        """Take the lock or raise, naming who holds it.

        Args:
            force: take a lock that a process on another machine left.
        """
        with writing(self.path):
            descriptor = self._locked()
        holder = _holder(descriptor)
        if holder:
            here = holder.get("host") == socket.gethostname()
            who = f"process {holder.get('process')} on {holder.get('host')} (since {holder.get('since')})"
            if not here and not force:
                os.close(descriptor)
                raise RequestError(
                    f"{self.path.parent} was left locked by {who}, on another machine; "
                    f"if nothing runs there any more, resume with --force"
                )
            self.note = f"the lock of {who}, which is gone, was taken over"
        with writing(self.path):
            try:
                os.ftruncate(descriptor, 0)
                write_all(descriptor, json.dumps(_myself()).encode())
            except BaseException:
                os.close(descriptor)
                raise
        self._descriptor = descriptor

    def _locked(self) -> int:
        """Return a descriptor of the lock file that holds the kernel's lock."""
        import fcntl

        until = time.monotonic() + PATIENCE
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = _holder(descriptor)
                os.close(descriptor)
                if alive(holder) or time.monotonic() > until:
                    who = f"process {holder.get('process')} on {holder.get('host')}" if holder else "another process"
                    raise RequestError(
                        f"{self.path.parent} is being driven by {who}; wait for it, stop it, or choose another folder"
                    ) from None
                time.sleep(0.05)
                continue
            except BaseException:
                os.close(descriptor)
                raise
            with suppress(OSError):
                if os.fstat(descriptor).st_ino == self.path.stat().st_ino:
                    return descriptor
            os.close(descriptor)  # the file we locked was removed meanwhile by its last holder

    def release(self) -> None:
        """Give the lock up; releasing twice is harmless."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with suppress(OSError):
                self.path.unlink()
            os.close(descriptor)

    def __enter__(self) -> RunLock:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def _myself() -> dict[str, Any]:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return {"host": socket.gethostname(), "process": os.getpid(), "born": born(os.getpid()), "since": since}


def _holder(descriptor: int) -> dict[str, Any]:
    """Return who wrote the lock file; an empty or unreadable text names nobody."""
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
    except (ValueError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def alive(holder: dict[str, Any]) -> bool:
    """Whether a holder may still run; of another machine's processes nothing is known."""
    process = holder.get("process")
    if holder.get("host") != socket.gethostname() or not isinstance(process, int):
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return holder.get("born") == born(process)


def born(process: int) -> str:
    """Return when a process started, in the kernel's own units: a process number alone may have been given again."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]
