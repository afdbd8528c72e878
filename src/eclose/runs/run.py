"""The folder of a run: what was asked, what happened, what was found.

```
runs/NAME/  run.json  space.grammar  events.jsonl  checkpoint.pt  trials/00012/  best.term  best.safetensors  lock
```

The log of events is the run's own truth: its first event repeats `run.json` and the grammar, so the log alone suffices
to resume. A folder is driven by one process at a time (`create`, `resume`) and may be read by any (`open`).
"""

from __future__ import annotations

import json
import time
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eclose.algebra.errors import EcloseWarning, RequestError
from eclose.runs.checkpoints import CheckpointFile, Load, Save
from eclose.runs.environment import Environment, differences, environment
from eclose.runs.errors import RunError, writing
from eclose.runs.events import Event, EventLog, Reading, read_events
from eclose.runs.files import SUFFIX, flush_folder, replace_file, sweep, write_text
from eclose.runs.lock import RunLock

FORMAT = 1
BEGIN = "run"  # the first event of every log


class Run:
    """A run folder; use `Run.create`, `Run.resume` or `Run.open`.

    Attributes:
        path: the folder.
        id: a name of this run that no other run has.
        request: what was asked, as resolved.
        environment: versions, threads, BLAS and processor of the run's first process.
        grammar: the text of the space's grammar, or nothing.
        notes: what had to be recovered when the folder was opened, for people.
        driving: whether this object may write (it holds the lock).
    """

    def __init__(self, path: Path, header: Mapping[str, Any], log: EventLog | None, reading: Reading | None):
        self.path = path
        self.id: str = header["id"]
        self.request: dict[str, Any] = dict(header["request"])
        self.environment: Environment = dict(header["environment"])
        self.grammar: str = header.get("grammar", "")
        self.created: str = header.get("created", "")
        self.notes: list[str] = []
        self._log = log
        self._reading = reading
        self._lock: RunLock | None = None

    # ---- opening

    @classmethod
    def create(
        cls, path: str | Path, request: Mapping[str, Any], *, grammar: str = "", threads: int | None = None
    ) -> Run:
        """Make a new run folder and lock it.

        Args:
            path: a folder that does not exist or is empty.
            request: what was asked, as resolved: plain data that JSON can write.
            grammar: the text of the space's grammar.
            threads: threads that compute one trial.
        """
        folder = Path(path)
        _refuse_taken(folder)
        header = {
            "format": FORMAT,
            "id": uuid.uuid4().hex,
            "created": time.strftime("%Y-%m-%d %H:%M:%S"),
            "request": json.loads(json.dumps(dict(request))),
            "environment": environment(threads),
        }
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            flush_folder(folder.parent)
        lock = RunLock(folder / "lock")
        lock.acquire()
        try:
            _refuse_taken(folder)
            sweep(folder)
            log = EventLog(folder / "events.jsonl")
            log.append({"event": BEGIN, **header, "grammar": grammar}, durable=True)
            write_text(folder / "run.json", _pretty(header))
            if grammar:
                write_text(folder / "space.grammar", grammar)
        except BaseException:
            lock.release()
            raise
        run = cls(folder, {**header, "grammar": grammar}, log, None)
        run._lock = lock
        return run

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open a run for reading; nothing is changed, and a driver may be at work."""
        folder = _existing(Path(path))
        reading = read_events(folder / "events.jsonl")
        header, notes = _header(folder, reading)
        run = cls(folder, header, None, reading)
        run.notes = [note for note in (reading.note, *notes) if note]
        return run

    @classmethod
    def resume(
        cls, path: str | Path, *, force: bool = False, threads: int | None = None, code: Sequence[str] = ()
    ) -> Run:
        """Open a run for driving on: lock it, recover what a kill or a damaged file left, compare the environment.

        Args:
            path: the run folder.
            force: resume although versions, threads or processor differ from the first process's.
            threads: threads that compute one trial.
            code: the names of the user's code (`--module`, `--import`); they must be those the run began with.
        """
        folder = _existing(Path(path))
        lock = RunLock(folder / "lock")
        lock.acquire(force)
        log = None
        try:
            sweep(folder)
            header, notes = _header(folder, read_events(folder / "events.jsonl"))
            began = list(header["request"].get("code", ()))
            if sorted(began) != sorted(code):
                raise RequestError(
                    f"{folder} began with the user's code {', '.join(began) or 'none'}; resume it with the same, "
                    f"not {', '.join(code) or 'none'}"
                )
            found = environment(threads)
            changed = differences(header["environment"], found)
            if changed and not force:
                raise RequestError(
                    f"{folder} would not continue with the same bits: {'; '.join(changed)}. "
                    f"Restore that, or resume with --force"
                )
            log = EventLog(folder / "events.jsonl")
            if not log.events or log.events[0]["event"] != BEGIN:
                log.truncate(0)
                log.append({"event": BEGIN, **header}, durable=True)
            run = cls(folder, header, log, None)
            run._lock = lock
            for note in (lock.note, log.note, *notes):
                run.say(note)
            if changed:
                run.say(f"resumed although {'; '.join(changed)}: what follows may differ in its bits")
                run.append("forced", changes=changed, environment=found)
            run._restore_files(header)
        except BaseException:
            if log is not None:
                log.close()
            lock.release()
            raise
        return run

    def _restore_files(self, header: Mapping[str, Any]) -> None:
        """Write the files that repeat the log's first event where they are missing or damaged."""
        if _read_json(self.path / "run.json") is None:
            write_text(self.path / "run.json", _pretty({k: v for k, v in header.items() if k != "grammar"}))
        grammar = self.path / "space.grammar"
        if self.grammar and not (grammar.exists() and grammar.read_text(errors="replace") == self.grammar):
            write_text(grammar, self.grammar)

    def say(self, note: str) -> None:
        """Keep a note for people and warn of it; an empty note is none."""
        if note:
            self.notes.append(note)
            warnings.warn(f"{self.path}: {note}", EcloseWarning, stacklevel=3)

    # ---- events

    @property
    def driving(self) -> bool:
        """Whether this object holds the lock and may write."""
        return self._lock is not None and self._lock.held

    @property
    def events(self) -> list[Event]:
        """Everything that happened, in order."""
        if self._log is not None:
            return self._log.events
        return self._reading.events if self._reading is not None else []

    def of_kind(self, kind: str) -> list[Event]:
        """Return the events of one kind."""
        return [event for event in self.events if event["event"] == kind]

    def append(self, kind: str, *, durable: bool = False, **fields: Any) -> None:
        """Add an event to the log.

        Args:
            kind: what happened.
            durable: wait until it is on the disk.
            **fields: plain data that JSON can write.
        """
        self._driven().append({"event": kind, **fields}, durable)

    def rewind(self) -> None:
        """Drop everything after the log's first event."""
        log = self._driven()
        log.truncate(log.beginning)

    # ---- checkpoints, trials, results

    def checkpoint(self, state: Any, save: Save) -> None:
        """Write `checkpoint.pt`: the state with the place in the log that it belongs to.

        Args:
            state: whatever `save` can write.
            save: `save(content, path)`.
        """
        log = self._driven()
        log.flush()
        content = {"format": FORMAT, "events": log.offset, "state": state}
        CheckpointFile(self.path / "checkpoint.pt", save, None).write(content)

    def restore(self, load: Load) -> Any | None:
        """Return the newest good checkpoint's state and drop the events after it; None without one.

        Without a checkpoint everything after the log's first event is dropped: the computation starts again.
        """
        log = self._driven()
        file = CheckpointFile(self.path / "checkpoint.pt", None, load)
        content = file.read(self._fits)
        for note in file.notes:
            self.say(note)
        if content is None:
            if file.notes:
                self.say("no checkpoint can be used; the run starts again from its beginning")
            self.rewind()
            return None
        dropped = log.truncate(int(content["events"]))
        if file.notes:
            self.say(f"going back to the checkpoint before ({dropped} later events are dropped)")
        return content["state"]

    def _fits(self, content: Any) -> str:
        """Return why a checkpoint cannot be gone on from, or nothing."""
        if not isinstance(content, dict) or not isinstance(content.get("events"), int) or "state" not in content:
            return "is no checkpoint of a run"
        if content.get("format", FORMAT) > FORMAT:
            return f"was written in format {content['format']}, of which this version of eclose reads up to {FORMAT}"
        if content["events"] > self._driven().offset:
            return "belongs to events that the log has lost"
        return ""

    def trial_folder(self, number: int) -> Path:
        """Return the folder of a trial, `trials/00012`, made where missing."""
        folder = self.path / "trials" / f"{number:05d}"
        if self.driving:
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
        return folder

    def save_best(self, term: str | None = None, weights: Callable[[Path], None] | None = None) -> None:
        """Write `best.term` and `best.safetensors`.

        Args:
            term: the best term's text.
            weights: writes the best model's weights to a path.
        """
        self._driven()
        if term is not None:
            write_text(self.path / "best.term", term + "\n")
        if weights is not None:
            replace_file(self.path / "best.safetensors", weights)

    @property
    def best_term(self) -> str | None:
        """The text of the best term, or None before there is one."""
        with suppress(OSError):
            return (self.path / "best.term").read_text().strip()
        return None

    # ---- closing

    def _driven(self) -> EventLog:
        if self._log is None or not self.driving:
            raise RunError(f"{self.path} is open for reading; resume it to write")
        return self._log

    def close(self) -> None:
        """Flush the log and give the lock up; closing twice is harmless."""
        try:
            if self._log is not None:
                self._log.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _pretty(header: Mapping[str, Any]) -> str:
    return json.dumps(header, indent=2, ensure_ascii=False) + "\n"


def _refuse_taken(folder: Path) -> None:
    """Raise where a folder holds anything but what a run killed at its very beginning leaves."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RequestError(f"{folder} is a file; a run needs a folder of its own")
    with writing(folder):
        names = {entry.name for entry in folder.iterdir() if not entry.name.endswith(SUFFIX)}
    if names <= {"lock", "events.jsonl"} and not read_events(folder / "events.jsonl").events:
        return
    if names & {"run.json", "events.jsonl"}:
        raise RequestError(
            f"{folder} holds a run already; continue it with `eclose resume {folder}`, or choose another"
        )
    raise RequestError(f"{folder} exists and is not empty; choose another folder")


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise RequestError(f"there is no run in {folder}: no such folder")
    if not (folder / "run.json").exists() and not (folder / "events.jsonl").exists():
        raise RequestError(f"there is no run in {folder}: neither run.json nor events.jsonl is there")
    return folder


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _header(folder: Path, reading: Reading) -> tuple[dict[str, Any], list[str]]:
    """Return what a run was asked, from its log or, where that has lost its beginning, from `run.json`."""
    notes = []
    plain = _read_json(folder / "run.json")
    first = reading.events[0] if reading.events else {}
    if first.get("event") == BEGIN:
        header = {key: value for key, value in first.items() if key != "event"}
        if plain is None:
            notes.append("run.json is missing or damaged; its content is taken from events.jsonl")
    elif plain is not None:
        header = dict(plain)
        with suppress(OSError):
            header["grammar"] = (folder / "space.grammar").read_text(errors="replace")
        notes.append("events.jsonl has lost its beginning; the run starts again from its request in run.json")
    else:
        raise RunError(f"the run in {folder} cannot be recovered: run.json and events.jsonl are both damaged")
    if not isinstance(header.get("format"), int) or header["format"] > FORMAT:
        raise RequestError(
            f"{folder} was written in format {header.get('format')}; this version of eclose reads up to {FORMAT}"
        )
    missing = [key for key in ("id", "request", "environment") if key not in header]
    if missing:
        raise RunError(f"the run in {folder} cannot be recovered: run.json lacks {', '.join(missing)}")
    return header, notes
