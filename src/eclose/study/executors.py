"""Where trials are evaluated: in this process one after another, or in worker processes side by side.

An evaluation that fails - an exception, a crash, too much memory, too much time - is a failed trial with its reason,
never the end of the study.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from eclose.algebra.terms import Term
from eclose.runs.errors import RunError
from eclose.study.protocols import Evaluator, Reporter
from eclose.study.results import Objective, Result, as_result, failed, plain_number

OnReport = Callable[[int, int, dict[str, Any]], None]  # (trial, step, values)


@dataclass(frozen=True)
class Job:
    """One evaluation to do."""

    number: int
    term: Term
    seed: int
    folder: Path | None = None


@dataclass(frozen=True)
class Finished:
    """One evaluation done."""

    number: int
    result: Result
    seconds: float


class Executor(Protocol):
    """Evaluates jobs, up to `workers` at a time."""

    workers: int

    def start(self, evaluate: Evaluator, objectives: Sequence[Objective]) -> None:
        """Get ready to evaluate."""
        ...

    def submit(self, job: Job) -> None:
        """Take a job; only called while fewer than `workers` are under way."""
        ...

    def wait(self, on_report: OnReport) -> list[Finished]:
        """Return jobs that are done, at least one, handing on reports meanwhile."""
        ...

    def close(self) -> None:
        """Stop whatever is under way; closing twice is harmless."""
        ...


class Report:
    """The `report` an evaluator is handed."""

    def __init__(self, number: int, folder: Path | None, send: OnReport):
        self.number, self.folder, self._send = number, folder, send

    def __call__(self, step: int, **values: float) -> None:
        """Report values after a step."""
        self._send(self.number, step, {name: plain_number(value) for name, value in values.items()})


def guarded(
    evaluate: Evaluator, term: Term, seed: int, report: Reporter | None, objectives: Sequence[Objective]
) -> Result:
    """Return what an evaluator gives for a term; an exception is a failed result.

    Where the run itself cannot be kept (a full disk), the trial has not failed: that error ends the study.
    """
    try:
        value = evaluate(term, seed) if report is None else evaluate(term, seed, report)
        return as_result(value, objectives)
    except RunError:
        raise
    except (Exception, SystemExit) as error:
        if report is not None and report.folder is not None:
            with suppress(OSError):
                report.folder.mkdir(parents=True, exist_ok=True)
                (report.folder / "error.txt").write_text(traceback.format_exc())
        lines = str(error).strip().splitlines()
        return failed(f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__)


class InProcess:
    """Evaluates in this process.

    Args:
        threads: torch's threads while a trial is evaluated, where torch is loaded; one as in worker processes, so that
            both give the same bits. None leaves torch alone.
    """

    workers = 1

    def __init__(self, threads: int | None = 1):
        self.threads = threads
        self._evaluate: Evaluator | None = None
        self._objectives: Sequence[Objective] = ()
        self._job: Job | None = None

    def start(self, evaluate: Evaluator, objectives: Sequence[Objective]) -> None:
        """Remember the evaluator."""
        self._evaluate, self._objectives = evaluate, objectives

    def submit(self, job: Job) -> None:
        """Remember the job."""
        self._job = job

    def wait(self, on_report: OnReport) -> list[Finished]:
        """Evaluate the job."""
        job, self._job = self._job, None
        if job is None or self._evaluate is None:
            return []
        began = time.monotonic()
        report = Report(job.number, job.folder, on_report)
        before = limit_threads(self.threads)
        try:
            result = guarded(self._evaluate, job.term, job.seed, report, self._objectives)
        finally:
            limit_threads(before)
        return [Finished(job.number, result, time.monotonic() - began)]

    def close(self) -> None:
        """Nothing is under way between calls."""
        self._job = None


def limit_threads(threads: int | None) -> int | None:
    """Set torch's threads where torch is loaded and return how many they were."""
    torch: Any = sys.modules.get("torch")
    if torch is None or threads is None:
        return None
    before: int = torch.get_num_threads()
    if before != threads:
        torch.set_num_threads(threads)
    return before
