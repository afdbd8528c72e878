"""What a trial is and what it gave: plain records that every other module of studies speaks of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.terms import Term

DIRECTIONS = ("maximise", "minimise")
DONE, FAILED, RUNNING = "done", "failed", "running"


@dataclass(frozen=True, slots=True)
class Result:
    """What the evaluation of a term gave.

    Attributes:
        status: `"done"` or `"failed"`.
        objectives: numbers by name: `score`, `parameters`, `seconds`, ...
        reason: why it failed.
    """

    status: str = DONE
    objectives: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Objective:
    """A number that a search makes large or small.

    Attributes:
        name: its name among a result's objectives.
        direction: `"maximise"` or `"minimise"`.
    """

    name: str = "score"
    direction: str = "maximise"

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            hint = did_you_mean(self.direction, DIRECTIONS)
            raise RequestError(f"an objective is to maximise or minimise, not {self.direction!r}{hint}")

    def merit(self, result: Result) -> float | None:
        """Return a number that is larger for a better result; None for a failed one."""
        if result.status != DONE:
            return None
        value = result.objectives[self.name]
        return value if self.direction == "maximise" else -value


@dataclass(slots=True)
class Trial:
    """One proposed term and what became of it.

    Attributes:
        number: 0, 1, 2, ... in the order of proposal.
        term: what was proposed.
        seed: the seed of its evaluation, a function of the study's seed and the number.
        source: the number of the earlier trial whose result it takes over, where the term was a duplicate.
        result: None while it runs.
        seconds: wall clock of the evaluation.
        elapsed: wall clock of the study when it finished.
        order: the how-manieth trial to finish it was.
        reports: `(step, values)` as they came in.
    """

    number: int
    term: Term
    seed: int
    source: int | None = None
    result: Result | None = None
    seconds: float = 0.0
    elapsed: float = 0.0
    order: int = -1
    reports: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    @property
    def status(self) -> str:
        """`"running"`, `"done"` or `"failed"`."""
        return RUNNING if self.result is None else self.result.status

    def record(self, text: Callable[[Term], str] = str) -> dict[str, Any]:
        """Return the trial as plain data, without the study's wall clock.

        Args:
            text: writes a term.
        """
        result = self.result
        found: dict[str, Any] = {"number": self.number, "term": text(self.term), "status": self.status}
        if result is not None:
            found["objectives"] = dict(result.objectives)
            if result.reason:
                found["reason"] = result.reason
        if self.source is not None:
            found["source"] = self.source
        return found


def as_result(value: Any, objectives: Iterable[Objective]) -> Result:
    """Return what an evaluator gave as a checked result.

    An evaluator may return a `Result`, a mapping of objectives, or one number. A result that lacks an objective the
    study looks for, or has one that is no finite number, is a failed one.

    Args:
        value: what the evaluator returned.
        objectives: what the study looks for, the first being what one number stands for.
    """
    wanted = tuple(objectives)
    if hasattr(value, "status") and hasattr(value, "objectives"):
        status, given, reason = value.status, value.objectives, str(getattr(value, "reason", ""))
    else:
        status, reason = DONE, ""
        given = value if isinstance(value, Mapping) else {wanted[0].name: value}
    if status not in (DONE, FAILED):
        return failed(f"the evaluator returned a result whose status is {status!r}, neither 'done' nor 'failed'")
    # Plain numbers, exactly as a storage gives them back: a resumed strategy must learn from the same ones.
    numbers: dict[str, float] = {}
    for name, number in given.items():
        try:
            numbers[str(name)] = plain_number(number)
        except (TypeError, ValueError, RuntimeError):
            if number is value:
                return failed(f"the evaluator returned {type(number).__name__}, not a result, a mapping or a number")
            return failed(f"{name} is {type(number).__name__}, not a number")
    if status == FAILED:
        return Result(FAILED, {name: number for name, number in numbers.items() if math.isfinite(number)}, reason)
    for objective in wanted:
        if objective.name not in numbers:
            names = ", ".join(sorted(numbers)) or "none"
            return failed(f"the result lacks the objective {objective.name!r} (it has: {names})")
    for name, number in numbers.items():
        if not math.isfinite(number):
            return failed(f"{name} is {number}")
    return Result(DONE, numbers)


def plain_number(value: Any) -> Any:
    """Return a number of any library as Python's own."""
    if type(value) in (bool, int, float):  # numpy's float64 is a float, too, but not Python's own
        return value
    if isinstance(value, str | bytes):
        raise TypeError(f"{value!r} is a text, not a number")
    plain = value.item() if hasattr(value, "item") else value
    return plain if isinstance(plain, bool | int | float) else float(plain)


def writable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return reported values as JSON can write them."""
    plain = {name: plain_number(value) for name, value in values.items()}
    return {name: value if math.isfinite(value) else str(value) for name, value in plain.items()}


def failed(reason: str) -> Result:
    """Return a failed result."""
    return Result(FAILED, {}, reason)


def best_trial(trials: Iterable[Trial], objective: Objective) -> Trial | None:
    """Return the best finished trial, the earliest of equals; None where none is done."""
    best, best_merit = None, -math.inf
    for trial in trials:
        merit = objective.merit(trial.result) if trial.result is not None else None
        if merit is not None and (best is None or merit > best_merit):
            best, best_merit = trial, merit
    return best


def front(trials: Iterable[Trial], objectives: Iterable[Objective]) -> list[Trial]:
    """Return the trials that no other one beats in every objective, in order of their number."""
    wanted = tuple(objectives)
    scored = [
        (trial, tuple(objective.merit(trial.result) or 0.0 for objective in wanted))
        for trial in trials
        if trial.result is not None and trial.result.status == DONE
    ]
    return [
        trial
        for trial, merits in scored
        if not any(
            other != merits and all(theirs >= ours for theirs, ours in zip(other, merits, strict=True))
            for _, other in scored
        )
    ]
