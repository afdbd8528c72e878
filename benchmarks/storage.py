"""What keeping a study costs a trial: the run's own log, its Optuna mirror, SQLite, at growing numbers of trials."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from benchmarks._measure import record

import eclose as ec
from eclose.runs import Run
from eclose.study.mirrors import journal_of
from eclose.study.optuna_adapter import OptunaStorage
from eclose.study.protocols import Storage
from eclose.study.results import DONE, Result, Trial
from eclose.study.storage import RunStorage
from eclose.study.study import Study

COUNTS = (100, 1_000, 10_000)
SQLITE_COUNTS = (100, 1_000)  # about 10 ms a trial: ten thousand would take minutes and say nothing new
ENDS = 10  # the first and the last tenth of the trials are compared
SETTINGS = {"seed": 0, "objectives": {"score": "maximise"}}


class Drawn:
    """Random search, which costs next to nothing itself."""

    name = "drawn"

    def __init__(self, terms: list[ec.Term]):
        self.settings: dict[str, Any] = {}
        self.terms = terms

    def ask(self, number: int, rng: Random) -> ec.Term:
        """Return one of the terms."""
        return self.terms[number % len(self.terms)]

    def tell(self, number: int, term: ec.Term, result: Result) -> None:
        """Learn nothing."""


def measured(storage: Storage, terms: list[ec.Term], count: int) -> dict[str, float]:
    """Return milliseconds a trial, over all and over the first and the last tenth."""
    storage.begin(dict(SETTINGS))
    times = []
    for number in range(count):
        trial = Trial(number, terms[number % len(terms)], number)
        start = time.perf_counter()
        storage.propose(trial)
        storage.report(number, 1, {"score": 0.25})
        trial.result, trial.order = Result(DONE, {"score": number / count, "parameters": 1.5e6}), number
        storage.finish(trial)
        times.append(time.perf_counter() - start)
    window = count // ENDS
    return {
        "milliseconds": 1e3 * statistics.mean(times),
        "first": 1e3 * statistics.median(times[:window]),
        "last": 1e3 * statistics.median(times[-window:]),
    }


def storages(folder: Path) -> dict[str, tuple[Callable[[str], Storage], tuple[int, ...]]]:
    """Return how each storage is made in a new place, and at which numbers of trials it is measured."""

    def log(name: str) -> Storage:
        return RunStorage(Run.create(folder / f"log-{name}", {}))

    def mirror(name: str) -> Storage:
        return journal_of(Run.create(folder / f"mirror-{name}", {}))[0]

    def journal(name: str) -> Storage:
        return OptunaStorage.at(f"journal://{folder}/{name}.log", name)

    def sqlite(name: str) -> Storage:
        return OptunaStorage.at(f"sqlite:///{folder}/{name}.db", name)

    return {
        "log": (log, COUNTS),
        "mirror": (mirror, COUNTS),
        "journal": (journal, COUNTS),
        "sqlite": (sqlite, SQLITE_COUNTS),
    }


def whole_study(folder: Path, terms: list[ec.Term], count: int) -> float:
    """Return milliseconds a trial of a whole study in a run folder, with its mirror."""
    with Run.create(folder / "study", {}) as run:
        study = Study(ec.space("nasbench201"), _one, Drawn(terms), run=run, duplicates="allow")
        start = time.perf_counter()
        study.run(count)
        return 1e3 * (time.perf_counter() - start) / count


def _one(term: ec.Term, seed: int, report: Any = None) -> float:
    return (seed % 997) / 997


def run(out: Path | None = None) -> None:
    """Measure, print, record."""
    space, rng = ec.space("nasbench201"), Random(0)
    terms = [space.sample(rng) for _ in range(500)]
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, (made, counts) in storages(folder).items():
            for count in counts:
                found = measured(made(str(count)), terms, count)
                figures[f"{name}_{count}"] = found
                print(
                    f"{name}, {count:,} trials: {found['milliseconds']:.3f} ms a trial with one report "
                    f"(median {found['first']:.3f} at first, {found['last']:.3f} at last)"
                )
        figures["study_1000"] = whole_study(folder, terms, 1_000)
    flat = figures["mirror_10000"]["last"] / figures["mirror_10000"]["first"]
    figures["mirror_last_over_first"] = flat
    print(f"a whole study with log and mirror: {figures['study_1000']:.3f} ms a trial")
    print(f"mirror at 10,000 trials: last over first {flat:.2f}; goals: at most 2 ms a trial, flat (below 1.5)")
    print("sqlite is measured up to 1,000 trials only: it waits for the disk about five times a trial")
    record(out, figures)
