"""How a search is driven, by the kind of its strategy: a study of trials, or the training of a supernet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from eclose._api import dry_runs
from eclose._api.handle import Best
from eclose._api.search_request import Parts
from eclose.algebra.errors import RequestError, ShapeError
from eclose.algebra.reading import parse
from eclose.runs import Run
from eclose.strategies import make

Watch: TypeAlias = Callable[[str, Any], None]
"""Told what happens: `("trial", study.Progress)`, `("epoch", (epoch, epochs, figures))`, `("phase", text)`,
`("selection", (done, total, text))`."""

Searched: TypeAlias = tuple[Best, list[dict[str, Any]]]
"""The best of a search and its history as plain data."""


def black_box(parts: Parts, run: Run | None, watch: Watch | None) -> Searched:
    """Search by proposals and trials."""
    from eclose.study.executors import InProcess
    from eclose.study.results import Objective
    from eclose.study.study import Study
    from eclose.study.workers import WorkerProcesses

    request = parts.request
    objective = Objective(*next(iter(request.objectives.items())))
    executor: Any = InProcess()
    if request.workers > 1 or request.memory_limit or request.time_limit:
        executor = WorkerProcesses(
            request.workers,
            memory_limit=request.memory_limit and request.memory_limit * 2**20,
            time_limit=request.time_limit,
            imports=request.code,
        )
    study = Study(
        parts.space,
        parts.evaluator,
        make(request.strategy, parts.space, objective, **request.settings),
        seed=request.seed,
        run=run,
        storage=request.storage,
        executor=executor,
        lag=request.lag,
        asynchronous=request.asynchronous,
        duplicates=request.duplicates,
        objectives=request.objectives,
    )
    study.run(request.budget, None if watch is None else lambda happened: watch("trial", happened))
    measured = dict(study.best.result.objectives if study.best.result else {})
    return Best(study.best.term, measured, objective.name), study.history


def gradient(parts: Parts, run: Run | None, watch: Watch | None) -> Searched:
    """Search by training a supernet."""
    from eclose.strategies.gradient.recipe import Recipe
    from eclose.strategies.gradient.search import GradientSearch
    from eclose.strategies.gradient.watching import history_of

    request = parts.request
    ended = run.of_kind("search-end") if run is not None else []
    if run is not None and ended:
        best = Best(parse(ended[-1]["term"]), {"score": ended[-1]["score"]}, "score", ended[-1]["reason"])
        return best, history_of(run)
    search = GradientSearch(
        parts.space, parts.task, Recipe(**request.settings), seed=request.seed, device=request.device, run=run,
        watch=watch,
    )  # fmt: skip
    found = search.search()
    if run is not None:
        for note in found.notes:
            run.say(note)
        run.append(
            "search-end", durable=True, reason=found.reason, epochs=found.epochs, term=str(found.term),
            score=found.score, seconds=found.seconds,
        )  # fmt: skip
        run.save_best(str(found.term))
    return Best(found.term, {"score": found.score}, "score", found.reason), search.history


def refuse_gradient_misfits(parts: Parts) -> None:
    """Raise where a space has no supernet for a task; nothing is trained yet."""
    from eclose.strategies.gradient.recipe import Recipe
    from eclose.strategies.gradient.search import GradientSearch

    request = parts.request
    search = GradientSearch(parts.space, parts.task, Recipe(**request.settings), seed=request.seed,
                            device=request.device)  # fmt: skip
    try:
        for number in range(len(search.stages)):
            made = search.made(number)
            loop = search.loop(made, number)
            if number == 0:
                search.refuse_undefined(made, loop)
    except ShapeError as error:
        raise RequestError(f"the supernet of {parts.space.name} does not fit {parts.task.name}: {error}") from error


DRIVERS: dict[str, Callable[[Parts, Run | None, Watch | None], Searched]] = {
    "black-box": black_box,
    "gradient": gradient,
}

DRY_RUNS: dict[str, Callable[[Parts], dry_runs.Taken]] = {
    "black-box": dry_runs.trials,
    "gradient": dry_runs.supernet,
}

__all__ = ["DRIVERS", "DRY_RUNS", "Searched", "Watch", "refuse_gradient_misfits"]
