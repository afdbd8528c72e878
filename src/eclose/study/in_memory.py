"""A study in memory and in this process: nothing between the strategy and the evaluator but the order of trials.

The overhead is a few microseconds a trial, so that hundreds of simulated searches on a table take seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence

from eclose.algebra.terms import Term
from eclose.study.budget import Budget, as_budget
from eclose.study.executors import guarded, limit_threads
from eclose.study.ledger import Ledger
from eclose.study.protocols import Evaluator, Strategy
from eclose.study.results import Objective, Trial


def run_in_memory(
    strategy: Strategy,
    evaluate: Evaluator,
    budget: Budget | int | str,
    seed: int = 0,
    *,
    lag: int = 1,
    duplicates: str = "allow",
    key: Callable[[Term], Hashable] | None = None,
    objectives: Sequence[Objective] = (Objective(),),
) -> list[Trial]:
    """Search and return the trials in order.

    Args:
        strategy: a fresh one.
        evaluate: called as `evaluate(term, seed)`.
        budget: trials, or seconds; a time is simulated where the evaluator says `simulated`.
        seed: the study's seed.
        lag: proposal n sees the results of trials up to n - lag.
        duplicates: `reject`, `reuse` or `allow`.
        key: says which terms are the same network.
        objectives: what results are judged by, the first being the strategy's.
    """
    ledger = Ledger(strategy, seed=seed, lag=lag, objectives=objectives, duplicates=duplicates, key=key)
    advance(ledger, evaluate, as_budget(budget, getattr(evaluate, "simulated", False)))
    return ledger.trials


def advance(ledger: Ledger, evaluate: Evaluator, budget: Budget, elapsed: float = 0.0) -> None:
    """Propose and evaluate, one after another, until the budget is spent.

    Args:
        ledger: the study's order; all its trials are finished.
        evaluate: called as `evaluate(term, seed)`.
        budget: when to stop.
        elapsed: seconds that earlier sessions took.
    """
    began = time.monotonic() - elapsed
    objectives, trials = ledger.objectives, ledger.trials
    now = elapsed
    threads = limit_threads(1)  # as in worker processes, so that both give the same bits
    try:
        while ledger.ready() and budget.allows(len(trials), now, ledger.simulated):
            trial = ledger.propose()
            source = ledger.takes_over(trial)
            if source is not None and source.result is not None:
                ledger.finish(trial, source.result)
            else:
                ledger.finish(trial, guarded(evaluate, trial.term, trial.seed, None, objectives))
            before, now = now, time.monotonic() - began
            trial.seconds, trial.elapsed = now - before, now
    finally:
        limit_threads(threads)
