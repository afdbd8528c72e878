"""The study: proposes, evaluates and records trials until the budget is spent.

It owns the loop and nothing else: the order of trials is the ledger's, evaluation the executor's, records are
the storage's. A study killed at any moment and begun again over the same storage goes on with the same bits.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eclose.algebra.errors import RequestError
from eclose.algebra.printing import term_text
from eclose.algebra.terms import Term
from eclose.runs import CheckpointFile, Run, RunError
from eclose.study.budget import Budget, as_budget
from eclose.study.errors import Interrupted
from eclose.study.executors import Executor, InProcess, Job
from eclose.study.in_memory import advance
from eclose.study.ledger import Ledger
from eclose.study.protocols import Evaluator, Storage, Strategy
from eclose.study.results import DONE, FAILED, RUNNING, Objective, Result, Trial, best_trial, front
from eclose.study.storage import Mirror, Mirrored, RunStorage
from eclose.study.workers import WorkerProcesses

LAG_PER_WORKER = 3


@dataclass(frozen=True)
class Progress:
    """What a progress callback is told.

    Attributes:
        happened: `"proposed"`, `"report"` or `"finished"`.
        trial: the trial it happened to.
        done: trials that gave a result.
        failed: trials that failed.
        total: trials in all, where the budget says.
        elapsed: seconds so far, over all sessions.
        best: the best trial so far.
    """

    happened: str
    trial: Trial
    done: int
    failed: int
    total: int | None
    elapsed: float
    best: Trial | None


class Study:
    """A search of a space by a strategy.

    Args:
        space: what is searched; it needs `duplicate_key` unless duplicates are allowed.
        evaluate: gives the objectives of a term; worker processes need one that pickles.
        strategy: a fresh one.
        seed: all randomness of trial n is a function of the seed and n.
        run: a run folder held for driving; without, the study lives in memory.
        storage: another storage, or the URL of an Optuna storage, which then is the truth; the run's log mirrors it.
        workers: worker processes; one means this process.
        executor: how trials are evaluated, instead of `workers`.
        lag: proposal n sees exactly the results of trials up to n - lag; 3 for each worker of the first session unless
            given. The history is the same for any number of workers.
        asynchronous: tell results as they come in; the history then depends on timing.
        duplicates: what happens to a proposal that repeats an earlier network: `reject`, `reuse` or `allow`.
        objectives: what results are judged by, as `{name: direction}`; the first is the strategy's. Without, what the
            evaluator says, or to maximise `score`.

    Attributes:
        trials: all trials in order of their number.
    """

    def __init__(
        self,
        space: Any,
        evaluate: Evaluator,
        strategy: Strategy,
        *,
        seed: int = 0,
        run: Run | None = None,
        storage: Storage | str | None = None,
        workers: int = 1,
        executor: Executor | None = None,
        lag: int | None = None,
        asynchronous: bool = False,
        duplicates: str = "reject",
        objectives: Mapping[str, str] | Sequence[Objective] | None = None,
    ):
        self.space, self.evaluate, self.strategy, self.seed = space, evaluate, strategy, seed
        self.objectives = as_objectives(objectives or getattr(evaluate, "objectives", None))
        if executor is None:
            executor = InProcess() if workers == 1 else WorkerProcesses(workers)
        self._executor = executor
        self._run = run
        self._registry = getattr(getattr(space, "grammar", space), "registry", None)
        self._storage = self._stored(storage)
        settings: dict[str, Any] = {
            "strategy": strategy.name,
            "strategy_settings": dict(strategy.settings),
            "seed": seed,
            "lag": lag if lag is not None else LAG_PER_WORKER * executor.workers,
            "asynchronous": asynchronous,
            "duplicates": duplicates,
            "objectives": {objective.name: objective.direction for objective in self.objectives},
        }
        settings = _plain(settings)
        trials: list[Trial] = []
        if self._storage is not None:
            kept, trials = self._storage.begin(settings)
            if lag is None:
                settings["lag"] = kept["lag"]
            _refuse_other(kept, settings)
        self.settings = settings
        self._ledger = Ledger(
            strategy,
            seed=seed,
            lag=settings["lag"],
            objectives=self.objectives,
            duplicates=duplicates,
            key=getattr(space, "duplicate_key", None),
            asynchronous=asynchronous,
        )
        self._ledger.restore(trials)
        self._elapsed = max((trial.elapsed for trial in trials), default=0.0)
        self._best = best_trial(trials, self.objectives[0])
        self._ended = ""  # why this object cannot go on, although the study can

    def _stored(self, storage: Storage | str | None) -> Storage | None:
        """Return where the study is kept, with its mirrors."""
        run = self._run
        if run is None and not isinstance(storage, str):
            return storage
        say = run.say if run is not None else lambda note: None
        log = RunStorage(run, self._registry) if run is not None else None
        mirrors: list[Mirror] = []
        if isinstance(storage, str):
            from eclose.study.optuna_adapter import OptunaStorage

            name, owner = (run.path.name, run.id) if run is not None else ("eclose", "")
            truth: Storage = OptunaStorage.at(storage, name, self._registry, owner)
        elif storage is not None:
            truth = storage
        else:
            assert run is not None and log is not None
            from eclose.study.mirrors import journal_of

            mirrors = journal_of(run, self._registry)
            truth = log
        if log is not None and truth is not log:
            mirrors = [log]
        return Mirrored(truth, mirrors, say) if mirrors else truth

    # ---- what there is

    @property
    def trials(self) -> list[Trial]:
        """All trials in order of their number."""
        return self._ledger.trials

    @property
    def best(self) -> Trial:
        """The best trial by the first objective, the earliest of equals."""
        best = best_trial(self.trials, self.objectives[0])
        if best is None:
            raise RunError(_hopeless(self.trials))
        return best

    @property
    def front(self) -> list[Trial]:
        """The trials that no other one beats in every objective."""
        return front(self.trials, self.objectives)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The trials as plain data, in order; the same for the same study, but for seconds that were measured."""
        return [trial.record(self._text) for trial in self.trials]

    def _text(self, term: Term) -> str:
        return term_text(term, self._registry)

    # ---- the loop

    def run(self, budget: Budget | int | str, progress: Callable[[Progress], None] | None = None) -> Trial:
        """Go on until the budget is spent and return the best trial.

        Args:
            budget: trials in all (not further ones), or a time such as `"20000s"`, simulated where the evaluator says
                so.
            progress: called after every proposal, report and result.
        """
        if self._ended:
            raise RunError(f"this study {self._ended}; open it anew to go on")
        limit = as_budget(budget, getattr(self.evaluate, "simulated", False))
        if self._storage is None and progress is None and type(self._executor) is InProcess:
            advance(self._ledger, self.evaluate, limit, self._elapsed)
            self._elapsed = max((trial.elapsed for trial in self.trials), default=0.0)
            return self.best
        session = _Session(self, limit, progress)
        try:
            self._ended = "was ended in the middle of a step"  # where the next lines raise
            self._executor.start(self.evaluate, self.objectives)
            session.go()
            self._ended = ""
        except KeyboardInterrupt as error:
            done = sum(trial.result is not None for trial in self.trials)
            where = f"; continue with `eclose resume {self._run.path}`" if self._run is not None else ""
            raise Interrupted(f"interrupted after {done} trials{where}") from error
        finally:
            self._executor.close()
            self._elapsed = session.elapsed
        best = self.best
        if self._run is not None:
            self._run.save_best(self._text(best.term))
        return best


class _Session:
    """One session of a study: from its start or resumption to the end of its budget."""

    def __init__(self, study: Study, budget: Budget, progress: Callable[[Progress], None] | None):
        self.study, self.budget, self.progress = study, budget, progress
        self.ledger, self.executor, self.storage = study._ledger, study._executor, study._storage
        self.began = time.monotonic() - study._elapsed
        self.running: set[int] = set()
        # What an earlier session left unfinished is evaluated again, from its checkpoint where it has one.
        self.unfinished = deque(trial for trial in study.trials if trial.result is None)
        self.counts = Counter(trial.status for trial in study.trials)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def go(self) -> None:
        while True:
            self.fill()
            if not self.running:
                return
            for finished in self.executor.wait(self.report):
                self.running.discard(finished.number)
                self.finish(self.ledger.trials[finished.number], finished.result, finished.seconds)

    def fill(self) -> None:
        """Keep every worker busy while there is something to evaluate and the budget allows it."""
        while len(self.running) < self.executor.workers:
            if self.unfinished:
                self.start(self.unfinished.popleft())
                continue
            if not self.ledger.ready():
                return
            if not self.budget.allows(len(self.ledger.trials), self.elapsed, self.ledger.simulated):
                return
            trial = self.ledger.propose()
            if self.storage is not None:
                self.storage.propose(trial)
            self.tell("proposed", trial)
            self.start(trial)

    def start(self, trial: Trial) -> None:
        if trial.result is not None:
            return
        if trial.source is not None:
            source = self.ledger.takes_over(trial)
            if source is not None and source.result is not None:
                self.finish(trial, source.result, 0.0)
            return
        run = self.study._run
        self.running.add(trial.number)
        folder = run.trial_folder(trial.number) if run is not None else None
        self.executor.submit(Job(trial.number, trial.term, trial.seed, folder))

    def report(self, number: int, step: int, values: dict[str, Any]) -> None:
        trial = self.ledger.trials[number]
        # A trial that began again from its checkpoint may report a step twice.
        if trial.reports and step <= trial.reports[-1][0]:
            trial.reports = [(earlier, given) for earlier, given in trial.reports if earlier != step]
        trial.reports.append((step, values))
        if self.storage is not None:
            self.storage.report(number, step, values)
        self.tell("report", trial)

    def finish(self, trial: Trial, result: Result, seconds: float) -> None:
        trial.seconds, trial.elapsed = seconds, self.elapsed
        duplicates = self.ledger.finish(trial, result)
        self.counts[result.status] += 1
        if self.storage is not None:
            self.storage.finish(trial)
        self.tidy(trial)
        self.tell("finished", trial)
        for duplicate in duplicates:
            self.finish(duplicate, result, 0.0)

    def tidy(self, trial: Trial) -> None:
        """Keep the best term on disk, and no checkpoint of a trial that is over."""
        study, run = self.study, self.study._run
        objective = study.objectives[0]
        better = best_trial([*([study._best] if study._best else []), trial], objective)
        improved, study._best = better is not study._best, better
        if run is None:
            return
        if trial.source is None:
            CheckpointFile(run.path / "trials" / f"{trial.number:05d}" / "checkpoint.pt", None, None).remove()
        if improved:
            run.save_best(study._text(trial.term))

    def tell(self, happened: str, trial: Trial) -> None:
        if self.progress is None:
            return
        self.progress(
            Progress(
                happened,
                trial,
                self.counts[DONE],
                self.counts[FAILED],
                self.budget.trials,
                self.elapsed,
                self.study._best,
            )
        )


def as_objectives(given: Mapping[str, str] | Sequence[Objective] | None) -> tuple[Objective, ...]:
    """Return objectives from `{name: direction}`; to maximise `score` without any."""
    if not given:
        return (Objective(),)
    if isinstance(given, Mapping):
        return tuple(Objective(name, direction) for name, direction in given.items())
    return tuple(given)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as a storage gives them back, so that those asked for compare with those kept."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(settings))
    except (TypeError, ValueError) as error:
        raise RequestError(f"a strategy's settings must be plain numbers, texts, lists and maps: {error}") from error
    return plain


def _refuse_other(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raise where a study is continued with settings other than it began with."""
    changed = [
        f"{name} was {kept.get(name)!r}, is {asked.get(name)!r}"
        for name in sorted({*kept, *asked})
        if kept.get(name) != asked.get(name)
    ]
    if changed:
        raise RequestError(f"this study began with other settings ({'; '.join(changed)}); begin another one for these")


def _hopeless(trials: Sequence[Trial]) -> str:
    failed = [trial for trial in trials if trial.result is not None]
    if not failed:
        return "no trial has finished"
    reason = failed[0].result.reason if failed[0].result is not None else ""
    return f"none of the {len(failed)} trials finished; trial {failed[0].number} failed: {reason}"


__all__ = ["RUNNING", "Progress", "Study", "as_objectives"]
