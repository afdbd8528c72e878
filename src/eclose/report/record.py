"""What a run's log says, gathered for the sections of a report: trials, epochs, results. Draws nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from eclose.runs import Run


@dataclass
class TrialRecord:
    """One trial as the log has it."""

    number: int
    term: str
    status: str = "running"
    objectives: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0
    elapsed: float = 0.0
    source: int | None = None
    reports: list[tuple[int, dict[str, Any]]] = field(default_factory=list)


class Record:
    """A run's log, read once.

    Args:
        run: the folder, open for reading or driving.
    """

    def __init__(self, run: Run):
        self.run = run
        self.request = run.request

    @cached_property
    def trials(self) -> list[TrialRecord]:
        """The trials in order."""
        trials: dict[int, TrialRecord] = {}
        for event in self.run.events:
            kind = event["event"]
            if kind == "proposed":
                trials[event["number"]] = TrialRecord(event["number"], event["term"], source=event.get("source"))
            elif kind == "report" and event["number"] in trials:
                trials[event["number"]].reports.append((event["step"], event["values"]))
            elif kind == "finished" and event["number"] in trials:
                trial = trials[event["number"]]
                trial.status, trial.objectives = event["status"], event["objectives"]
                trial.reason = event.get("reason", "")
                trial.seconds, trial.elapsed = event["seconds"], event["elapsed"]
        return list(trials.values())

    @cached_property
    def directions(self) -> dict[str, str]:
        """The objectives with their directions, the first being what is searched for."""
        for event in self.run.of_kind("study"):
            return dict(event["settings"]["objectives"])
        return {}

    @cached_property
    def objective(self) -> str:
        """The name of the first objective."""
        return next(iter(self.directions), "score")

    def merit(self, trial: TrialRecord) -> float:
        """Return a number that is larger for a better trial."""
        value = trial.objectives.get(self.objective, math.nan) if trial.status == "done" else math.nan
        sign = -1.0 if self.directions.get(self.objective) == "minimise" else 1.0
        return sign * value if math.isfinite(value) else -math.inf

    @cached_property
    def best(self) -> TrialRecord | None:
        """The best trial, the earliest of equals."""
        done = [trial for trial in self.trials if trial.status == "done"]
        return max(done, key=lambda trial: (self.merit(trial), -trial.number)) if done else None

    @cached_property
    def epochs(self) -> list[dict[str, Any]]:
        """The epochs of the run's own training, each with its `phase`."""
        return self.run.of_kind("epoch")

    @cached_property
    def final(self) -> dict[str, Any] | None:
        """What the retrained best network gives, once it is there."""
        found = self.run.of_kind("final")
        return found[-1] if found else None

    @property
    def unit(self) -> str:
        """What stands behind a score: `" %"` or nothing."""
        return " %" if self.request.get("metric", {}).get("unit") == "%" else ""

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return bool(self.run.of_kind("end"))


def grouped(value: Any) -> str:
    """Return a number for people: whole ones in groups of three digits, others with four significant ones."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.2f}" if 0.1 <= abs(value) < 1000 else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def duration(seconds: float) -> str:
    """Return a time for people: `42 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


__all__ = ["Record", "TrialRecord", "duration", "grouped"]
