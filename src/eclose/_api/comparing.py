"""Compare strategies: searches with several seeds each, every network found judged alike, and what that allows to say.

Every search is a run in a folder of its own, so a comparison that was interrupted goes on where it was.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from eclose._api.compare_request import SKIP_ONLY, Plan, opened, requested
from eclose._api.comparison import Comparison, Found, Row
from eclose._api.search import Watch, evaluate, resume, search
from eclose._api.search_request import OWN
from eclose.algebra.errors import EcloseError, RequestError, ShapeError
from eclose.algebra.reading import parse
from eclose.runs import Run, write_text

FAILED = "failed.json"


@dataclass(frozen=True)
class Piece:
    """A search or a training that is about to begin, for those who watch.

    Attributes:
        kind: `"search"` or `"training"`.
        number: of this one, from 1; pieces that were done before are counted.
        of: how many there are.
        name: what it is about.
        left: seconds that this and the remaining pieces of the kind will take, None while nothing is known of it.
    """

    kind: str
    number: int
    of: int
    name: str
    left: float | None


def compare(
    space: Any,
    task: Any,
    strategies: str | Iterable[str],
    *,
    out: str | Path,
    seeds: int | Sequence[int] = 5,
    retrain_seeds: int | Sequence[int] | None = None,
    protocol: str | None = None,
    search_protocol: str | None = None,
    final: Mapping[str, Any] | None = None,
    table: Any = None,
    per_strategy: Mapping[str, Mapping[str, Any]] | None = None,
    device: str | None = None,
    data: str | Path | None = None,
    watch: Watch | None = None,
    code: Sequence[str] = (),
    **settings: Any,
) -> Comparison:
    """Search with every strategy and every seed, judge what was found, and compare.

    Random search and the skip-only network are added as baselines. Called again for the same folder, it goes on where
    it was; what is done is not repeated.

    Args:
        space: a space or its name, a grammar or its text.
        task: a task or its name.
        strategies: the strategies' names.
        out: the comparison's folder: new, empty, or begun with the same request.
        seeds: of the searches, a list or how many.
        retrain_seeds: of the trainings of each network found, a list or how many; one without.
        protocol: how networks that were found are trained; `"quick"` without.
        search_protocol: how a search trains its candidates; `"quick"` without.
        final: settings of the protocol, `{"epochs": 100}`.
        table: look the networks up in this table instead of training them, `"tabular:cifar10@200"`.
        per_strategy: settings of one strategy's searches, `{"evolution": {"population": 10}}`.
        device: where networks are trained.
        data: the folder of the data sets.
        watch: told what happens: `("piece", Piece)`, and whatever the searches and trainings tell.
        code: modules of yours that were imported.
        settings: of the searches, each for all strategies that have it: `budget=`, `epochs=`, `population=`, ...
    """
    plan = requested(
        space,
        task,
        strategies,
        seeds=seeds,
        retrain_seeds=retrain_seeds,
        protocol=protocol,
        search_protocol=search_protocol,
        final=final or {},
        table=table,
        per_strategy=per_strategy or {},
        device=device,
        data=data,
        code=code,
        settings=settings,
    )
    folder = opened(out, plan.request)
    rows = _searched(plan, folder, watch)
    part = "test"
    if plan.table is not None:
        _look_up(plan, rows)
    else:
        part = _trained(plan, folder, rows, watch)
    comparison = Comparison(folder, plan.request.plain(), plan.metric, part, rows, plan.notes)
    from eclose.report.comparison_page import comparison_page

    plain = comparison.plain()
    write_text(folder / "comparison.json", json.dumps(plain, indent=2) + "\n")
    write_text(folder / "comparison.html", comparison_page(plain))
    return comparison


class _Pieces:
    """Counts the pieces of one kind and guesses how long the rest will take."""

    def __init__(self, kind: str, groups: Sequence[str], done: int, watch: Watch | None):
        self.kind, self.left, self.done, self.watch = kind, list(groups), done, watch
        self.of = done + len(groups)
        self.spent: dict[str, list[float]] = {}

    def do(self, name: str, work: Callable[[], Any]) -> Any:
        """Do the next piece."""
        if self.watch is not None:
            self.watch("piece", Piece(self.kind, self.done + 1, self.of, name, self._guess()))
        began = time.monotonic()
        result = work()
        self.spent.setdefault(self.left.pop(0), []).append(time.monotonic() - began)
        self.done += 1
        return result

    def _guess(self) -> float | None:
        """Return the mean time of each group so far, summed over the rest; an unknown one is as all are."""
        known = [seconds for spent in self.spent.values() for seconds in spent]
        if not known:
            return None
        return sum(sum(spent) / len(spent) for spent in (self.spent.get(group, known) for group in self.left))


def _searched(plan: Plan, folder: Path, watch: Watch | None) -> list[Row]:
    """Do the searches that are not done yet, seed by seed, and return what was found."""
    places = {
        (name, seed): folder / name / f"seed-{seed}" for seed in plan.request.seeds for name in plan.searched
    }  # the strategies take turns, so what is there after an interruption can be compared
    open_ones = [key for key, path in places.items() if not _over(path)]
    pieces = _Pieces("search", [name for name, _ in open_ones], len(places) - len(open_ones), watch)
    for name, seed in open_ones:
        path = places[name, seed]
        pieces.do(f"{name}, seed {seed}", partial(_search, plan, path, name, seed, watch))
    rows = []
    for name in plan.request.strategies:
        found = [_found(plan, places[name, seed], seed) for seed in plan.request.seeds] if name != SKIP_ONLY else []
        if name == SKIP_ONLY:
            found = [Found(None, str(plan.skip_only))]
        rows.append(Row(name, found, plan.metric["direction"]))
    return rows


def _search(plan: Plan, path: Path, name: str, seed: int, watch: Watch | None) -> None:
    """Begin a search or go on with it; one that fails by itself is kept as failed."""
    space, task = plan.given
    request = plan.request
    try:
        if (path / "events.jsonl").exists() and Run.open(path).events:
            resume(path, task=task if request.task == OWN else None, watch=watch, code=request.code)
        else:
            asked = request.strategies[name]
            search(space, task, name, out=path, seed=seed, watch=watch, code=request.code, **asked)
    except EcloseError as error:
        if not _its_own_fault(error):
            raise
        write_text(path / FAILED, json.dumps({"failed": str(error)}) + "\n")


def _its_own_fault(error: EcloseError) -> bool:
    """Return whether the work itself failed, rather than the disk or the request."""
    return getattr(error, "exit_status", 2) == 1 and not isinstance(error.__cause__, OSError)


def _over(path: Path) -> bool:
    """Return whether a search came to an end, good or bad."""
    if (path / FAILED).exists():
        return True
    with suppress(EcloseError):
        return bool(Run.open(path).of_kind("end"))
    return False


def _found(plan: Plan, path: Path, seed: int) -> Found:
    """Return the outcome that a search's folder holds."""
    from eclose.report.record import Record

    failed = _read(path / FAILED)
    run = Run.open(path)
    record = Record(run)
    done = [trial for trial in record.trials if trial.status == "done"]
    seconds: float | None = max((trial.elapsed for trial in record.trials), default=None)
    if getattr(plan.task, "tabular", False):
        seconds = sum(trial.objectives.get("seconds", 0.0) for trial in done)
    found = Found(seed, trials=len(record.trials) or None, seconds=seconds)
    if failed is not None:
        found.failed = str(failed["failed"])
        return found
    if run.best_term is None:
        raise RequestError(f"{path} has lost its best.term; remove the folder to search again")
    found.term = run.best_term
    if record.best is not None:
        found.score = record.best.objectives.get(record.objective)
    for event in run.of_kind("search-end"):  # of a search without trials
        found.score, found.seconds = event.get("score"), event.get("seconds")
    return found


def _look_up(plan: Plan, rows: Sequence[Row]) -> None:
    """Judge networks by a table."""
    for row in rows:
        for found in row.searches:
            if found.term is not None:
                values = plan.table.final(parse(found.term))
                found.trainings = [{"seed": None, "score": values["test"], "validation": values["validation"]}]


def _trained(plan: Plan, folder: Path, rows: Sequence[Row], watch: Watch | None) -> str:
    """Train every network with every retrain seed, equal ones once, and return the part they were judged on."""
    wanted: list[tuple[Found, int, Path]] = []
    for row in rows:
        for found in row.searches:
            if found.term is not None:
                home = folder / row.strategy / (f"seed-{found.seed}" if row.searched else "")
                wanted += [(found, seed, home / f"retrain-{seed}.json") for seed in plan.request.retrain_seeds]
    known: dict[tuple[str | None, int], dict[str, Any]] = {}
    for found, seed, path in wanted:
        kept = _read(path)
        if kept is not None and kept.get("term") == found.term:
            known[found.term, seed] = kept
    open_ones = {(found.term, seed) for found, seed, _ in wanted} - set(known)
    pieces = _Pieces("training", ["training"] * len(open_ones), len(known), watch)
    for found, seed, path in wanted:
        key = (found.term, seed)
        where = str(path.parent.relative_to(folder))
        if key not in known:
            name = f"network of {where}, retrain seed {seed}"
            known[key] = pieces.do(name, partial(_judged, plan, str(found.term), seed, watch))
            known[key]["trained_for"] = where
        if not path.exists() or _read(path) != known[key]:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(known[key], indent=2) + "\n")
        kept = known[key]
        found.trainings.append(
            {"seed": seed, **{name: kept[name] for name in ("score", "failed", "seconds") if name in kept}}
        )
        found.costs = {name: kept[name] for name in ("parameters", "multiply_adds") if name in kept}
    parts = {kept["part"] for kept in known.values() if "part" in kept}
    return parts.pop() if parts else "test"


def _judged(plan: Plan, term: str, seed: int, watch: Watch | None) -> dict[str, Any]:
    """Train a network once; a training that fails by itself is a result too."""
    import torch

    from eclose._api.networks import cost
    from eclose.study.executors import limit_threads

    protocol = {key: value for key, value in (plan.request.protocol or {}).items() if key != "name"}
    name = (plan.request.protocol or {})["name"]
    before = limit_threads(1)  # as in a search: the bits depend on it
    try:
        result = evaluate(
            parse(term),
            plan.task,
            name,
            space=plan.space,
            seed=seed,
            device=plan.request.device,
            watch=watch,
            **protocol,
        )
    except (EcloseError, torch.OutOfMemoryError) as error:
        if isinstance(error, EcloseError) and not (_its_own_fault(error) or isinstance(error, ShapeError)):
            raise
        return {"term": term, "seed": seed, "failed": str(error)}
    finally:
        limit_threads(before)
    result["multiply_adds"] = cost(
        term, space=plan.space, task=plan.task, size=_size(plan, name, protocol)
    ).multiply_adds
    if not abs(result["score"]) < float("inf"):
        return {"term": term, "seed": seed, "failed": f"the score is {result['score']}"}
    return result


def _size(plan: Plan, name: str, overrides: Mapping[str, Any]) -> str:
    from eclose.train.protocols import protocol

    size = protocol(name, **overrides).size
    return size if size in plan.space.sizes else "search"


def _read(path: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        return found if isinstance(found, dict) else None
    return None


__all__ = ["Piece", "compare"]
