"""The order of a study: which trial is proposed when, and what the strategy has seen by then.

Proposal n sees exactly the results of the trials up to n - lag, told in order of their number; so the history is one
and the same for any number of workers and however their trials interleave. Nothing here knows files or processes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from random import Random

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.terms import Term
from eclose.runs.errors import RunError
from eclose.study.protocols import Strategy
from eclose.study.results import DONE, Objective, Result, Trial
from eclose.study.seeds import derived_seed

POLICIES = ("reject", "reuse", "allow")
PATIENCE = 50  # proposals in a row that repeat an earlier term, before the repetition is accepted
HOPELESS = 10  # failures from the very first trial on, before the study gives up


class Ledger:
    """The trials of a study in order, and the strategy that proposes them.

    Args:
        strategy: proposes and learns.
        seed: the study's seed.
        lag: proposal n sees the results of trials up to n - lag.
        objectives: what results are judged by, the first being the strategy's.
        duplicates: a proposal that repeats an earlier trial's network is asked for again (`reject`), takes over that
            trial's result (`reuse`), or is evaluated like any other (`allow`). Where asking again does not help, as in
            a space that is used up, `reject` reuses.
        key: says which terms are the same network; the term itself without.
        asynchronous: tell results as they come in instead of by number.

    Attributes:
        trials: in order of their number.
        simulated: the sum of the `seconds` of the results told so far.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        seed: int,
        lag: int = 1,
        objectives: Sequence[Objective] = (Objective(),),
        duplicates: str = "allow",
        key: Callable[[Term], Hashable] | None = None,
        asynchronous: bool = False,
    ):
        if lag < 1:
            raise RequestError(f"lag must be at least 1, not {lag}: no proposal can see its own result")
        if duplicates not in POLICIES:
            hint = did_you_mean(duplicates, POLICIES)
            raise RequestError(
                f"duplicates are to {', '.join(POLICIES[:-1])} or {POLICIES[-1]}, not {duplicates!r}{hint}"
            )
        self.trials: list[Trial] = []
        self.simulated = 0.0
        self.objectives = tuple(objectives)
        self._strategy = strategy
        self._seed = seed
        self._lag = lag
        self._duplicates = duplicates
        self._key = key
        self._asynchronous = asynchronous
        self._rng = Random()
        self._first: dict[Hashable, int] = {}  # key -> the first trial with it
        self._waiting: dict[int, list[Trial]] = {}  # trial -> those that take over its result
        self._told = 0
        self._done = 0
        self._finished: list[Trial] = []  # in order of finishing

    def restore(self, trials: Sequence[Trial]) -> None:
        """Take over the trials of an earlier session."""
        for trial in trials:
            self._enter(trial)
        self._finished = sorted((trial for trial in self.trials if trial.result is not None), key=lambda t: t.order)
        for order, trial in enumerate(self._finished):
            trial.order = order

    def ready(self) -> bool:
        """Tell the strategy all that the next proposal may see; False while some of that is still running."""
        if self._asynchronous:
            for trial in self._finished[self._told :]:
                self._tell(trial)
            return True
        visible = len(self.trials) - self._lag + 1
        while self._told < visible:
            trial = self.trials[self._told]
            if trial.result is None:
                return False
            self._tell(trial)
        return True

    def _tell(self, trial: Trial) -> None:
        result: Result = trial.result  # type: ignore[assignment]  # only finished trials are told
        self._strategy.tell(trial.number, trial.term, result)
        self.simulated += result.objectives.get("seconds", 0.0)
        self._told += 1
        if result.status == DONE:
            self._done += 1
        elif self._done == 0 and self._told >= HOPELESS:
            raise RunError(f"none of the first {self._told} trials finished; trial {trial.number}: {result.reason}")

    def propose(self) -> Trial:
        """Return the next trial; call `ready` first. One with a `source` needs no evaluation."""
        number = len(self.trials)
        rng = self._rng
        rng.seed(derived_seed(self._seed, number, "propose"))
        term = self._strategy.ask(number, rng)
        source = None
        if self._duplicates != "allow":
            source = self._first.get(self._key_of(term))
            if self._duplicates == "reject":
                for _ in range(PATIENCE):
                    if source is None:
                        break
                    term = self._strategy.ask(number, rng)
                    source = self._first.get(self._key_of(term))
        trial = Trial(number, term, derived_seed(self._seed, number, "evaluate"), source)
        self._enter(trial)
        return trial

    def _enter(self, trial: Trial) -> None:
        self.trials.append(trial)
        if self._duplicates != "allow":
            self._first.setdefault(self._key_of(trial.term), trial.number)

    def _key_of(self, term: Term) -> Hashable:
        return term if self._key is None else self._key(term)

    def takes_over(self, trial: Trial) -> Trial | None:
        """Return the finished trial whose result a duplicate takes over; one not finished yet will hand it on."""
        if trial.source is None:
            return None
        source = self.trials[trial.source]
        if source.result is not None:
            return source
        self._waiting.setdefault(trial.source, []).append(trial)
        return None

    def finish(self, trial: Trial, result: Result) -> list[Trial]:
        """Enter a result; return the duplicates that were waiting for it, which are to be finished with it."""
        trial.result = result
        trial.order = len(self._finished)
        self._finished.append(trial)
        return self._waiting.pop(trial.number, []) if self._waiting else []
