"""Where a study is kept: the log of a run folder, and a storage with others that mirror it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from eclose.algebra.printing import term_text
from eclose.algebra.reading import parse
from eclose.algebra.registry import Registry
from eclose.runs import Run
from eclose.runs.errors import RunError
from eclose.study.protocols import Storage
from eclose.study.results import Result, Trial, plain_number, writable
from eclose.study.seeds import derived_seed


class RunStorage:
    """A study in the log of a run folder, which alone suffices to resume it.

    The events are `study` (the settings), `proposed`, `report` and `finished`.

    Args:
        run: the folder, held for driving.
        registry: the operators that terms are read with.
    """

    def __init__(self, run: Run, registry: Registry | None = None):
        self.run = run
        self._registry = registry

    def begin(self, settings: dict[str, Any]) -> tuple[dict[str, Any], list[Trial]]:
        """Return the settings and trials in the log; write the settings where it has none."""
        began = self.run.of_kind("study")
        if not began:
            self.run.append("study", durable=True, settings=settings)
            return settings, []
        kept: dict[str, Any] = began[0]["settings"]
        return kept, list(self._trials(int(kept["seed"])).values())

    def _trials(self, seed: int) -> dict[int, Trial]:
        trials: dict[int, Trial] = {}
        order = 0
        try:
            for event in self.run.events:
                kind = event["event"]
                if kind == "proposed":
                    number = event["number"]
                    if number != len(trials):
                        raise RunError(f"trial {len(trials)} is missing before trial {number}")
                    term = parse(event["term"], self._registry)
                    trials[number] = Trial(number, term, derived_seed(seed, number, "evaluate"), event.get("source"))
                elif kind == "report":
                    trials[event["number"]].reports.append((event["step"], event["values"]))
                elif kind == "finished":
                    trial = trials[event["number"]]
                    trial.result = Result(event["status"], event["objectives"], event.get("reason", ""))
                    trial.seconds, trial.elapsed = event["seconds"], event["elapsed"]
                    trial.order, order = order, order + 1
        except (KeyError, TypeError) as error:
            raise RunError(
                f"{self.run.path}/events.jsonl does not make sense: {type(error).__name__} {error}"
            ) from error
        except RunError as error:
            raise RunError(f"{self.run.path}/events.jsonl does not make sense: {error}") from None
        for trial in trials.values():
            trial.reports = list({step: (step, values) for step, values in trial.reports}.values())
        return trials

    def propose(self, trial: Trial) -> None:
        """Append a proposal."""
        source: dict[str, Any] = {} if trial.source is None else {"source": trial.source}
        self.run.append("proposed", number=trial.number, term=term_text(trial.term, self._registry), **source)

    def report(self, number: int, step: int, values: Mapping[str, Any]) -> None:
        """Append a report; a number that is not finite is written as a text, which JSON has no number for."""
        self.run.append("report", number=number, step=step, values=writable(values))

    def finish(self, trial: Trial) -> None:
        """Append a result."""
        result: Result = trial.result  # type: ignore[assignment]  # only finished trials come here
        reason: dict[str, Any] = {"reason": result.reason} if result.reason else {}
        self.run.append(
            "finished",
            number=trial.number,
            status=result.status,
            objectives={name: plain_number(value) for name, value in result.objectives.items()},
            **reason,
            seconds=round(trial.seconds, 6),
            elapsed=round(trial.elapsed, 6),
        )

    def reset(self) -> None:
        """Refuse: a log that has what the truth lacks is the last witness of it."""
        raise RunError(
            f"the storage does not hold the study that {self.run.path}/events.jsonl mirrors, or has lost a part of it; "
            f"give the storage that the run began with, or resume without one from the log itself"
        )


class Mirror(Storage, Protocol):
    """A storage that can be written anew."""

    def reset(self) -> None:
        """Forget the study, to be written anew, or raise where that would lose something."""
        ...


class Mirrored:
    """A storage that is the truth, and others that are kept like it for other tools to read.

    Args:
        truth: what is read.
        mirrors: what is written too. A mirror that fails is left behind with a note; the study goes on.
        say: takes the notes for people.
    """

    def __init__(self, truth: Storage, mirrors: Sequence[Mirror], say: Any):
        self.truth = truth
        self._mirrors = list(mirrors)
        self._say = say

    def begin(self, settings: dict[str, Any]) -> tuple[dict[str, Any], list[Trial]]:
        """Open the truth and bring the mirrors up to it."""
        kept, trials = self.truth.begin(settings)
        for mirror in list(self._mirrors):
            self._guarded(mirror, lambda mirror=mirror: _bring_up(mirror, kept, trials))  # type: ignore[misc]
        return kept, trials

    def propose(self, trial: Trial) -> None:
        """Record a proposal, in the truth first."""
        self.truth.propose(trial)
        self._each("propose", trial)

    def report(self, number: int, step: int, values: Mapping[str, Any]) -> None:
        """Record a report, in the truth first."""
        self.truth.report(number, step, values)
        self._each("report", number, step, values)

    def finish(self, trial: Trial) -> None:
        """Record a result, in the truth first."""
        self.truth.finish(trial)
        self._each("finish", trial)

    def _each(self, call: str, *arguments: Any) -> None:
        for mirror in list(self._mirrors):
            self._guarded(mirror, lambda mirror=mirror: getattr(mirror, call)(*arguments))  # type: ignore[misc]

    def _guarded(self, mirror: Mirror, action: Any) -> None:
        try:
            action()
        except Exception as error:  # whatever another library raises must not end a search
            if isinstance(mirror, RunStorage):
                raise  # a run without its log cannot be resumed
            self._mirrors.remove(mirror)
            self._say(f"{type(mirror).__name__} failed and is left behind: {type(error).__name__}: {error}")


def _bring_up(mirror: Mirror, settings: dict[str, Any], trials: Sequence[Trial]) -> None:
    """Make a mirror hold what the truth holds: what is missing is added, anything else is written anew."""
    kept, there = mirror.begin(settings)
    if kept != settings or not _is_behind(there, trials):
        mirror.reset()
        _, there = mirror.begin(settings)
    for trial in trials:
        if trial.number >= len(there):
            mirror.propose(trial)
        reported = there[trial.number].reports if trial.number < len(there) else []
        if trial.number >= len(there) or there[trial.number].result is None:
            for step, values in trial.reports:
                if (step, values) not in reported:
                    mirror.report(trial.number, step, values)
    known = {trial.number for trial in there if trial.result is not None}
    finished = [trial for trial in trials if trial.result is not None and trial.number not in known]
    for trial in sorted(finished, key=lambda trial: trial.order):
        mirror.finish(trial)


def _is_behind(there: Sequence[Trial], trials: Sequence[Trial]) -> bool:
    """Whether a mirror's trials are some of the truth's, perhaps less finished."""
    return len(there) <= len(trials) and all(
        mine.term is true.term
        and (mine.result is None or (true.result is not None and _alike(mine.result, true.result)))
        for mine, true in zip(there, trials, strict=False)
    )


def _alike(mine: Result, true: Result) -> bool:
    return mine.status == true.status and dict(mine.objectives) == dict(true.objectives)
