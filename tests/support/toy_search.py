"""A tiny search for tests of studies: a strategy that learns, evaluators that pickle, and a driver to be killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from random import Random

import eclose as ec
from eclose.runs import Run
from eclose.study.results import Objective
from eclose.study.study import Study

SPACE = "nasbench201"


class Climb:
    """Mutates the best term so far, every fourth time draws anew."""

    name = "climb"

    def __init__(self, space):
        self.settings = {"fresh": 4}
        self.space, self.best, self.merit = space, None, None
        self.told = []

    def ask(self, number: int, rng: Random):
        if self.best is None or number % 4 == 0:
            return self.space.sample(rng)
        return self.space.mutate(self.best, rng)

    def tell(self, number, term, result):
        self.told.append(number)
        merit = Objective().merit(result)
        if merit is not None and (self.merit is None or merit > self.merit):
            self.best, self.merit = term, merit


class Fixed:
    """Proposes given terms, the last again and again."""

    name = "fixed"

    def __init__(self, terms):
        self.settings = {}
        self.terms = list(terms)

    def ask(self, number, rng):
        return self.terms[min(number, len(self.terms) - 1)]

    def tell(self, number, term, result):
        pass


def score(term, seed, report=None) -> float:
    """Return a number that only the term and the seed decide."""
    return Random(f"{term}/{seed % 97}").random() + str(term).count("conv") / 10


@dataclass(frozen=True)
class Toy:
    """An evaluator that reports, fails at some terms and sleeps an uneven while."""

    pause: float = 0.0

    def __call__(self, term, seed, report=None):
        value = score(term, seed)
        if self.pause:
            time.sleep(self.pause * (seed % 5) / 4)
        if report is not None:
            report(1, score=value / 2)
        if seed % 6 == 0:
            raise ValueError(f"cannot build a net for seed {seed}\nsecond line")
        return {"score": value, "size": str(term).count("(")}


@dataclass(frozen=True)
class Faulty:
    """An evaluator whose trials end badly in the way that is asked for, where the seed is odd."""

    how: str

    def __call__(self, term, seed, report=None):
        if seed % 2 == 0:
            return 1.0
        if self.how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "exit":
            os._exit(7)
        if self.how == "system exit":
            sys.exit(3)
        if self.how == "memory":
            hoard = [bytearray(b"x" * 2**20) for _ in range(400)]
            time.sleep(5)
            return len(hoard)
        if self.how == "time":
            time.sleep(60)
        return {"nan": float("nan"), "inf": float("inf"), "text": "good", "nothing": None}[self.how]


def always_failing(term, seed, report=None):
    raise RuntimeError("no data")


def history(trials: int, **settings) -> list[dict]:
    """Return the history of an undisturbed search in memory."""
    study = toy_study(**settings)
    study.run(trials)
    return study.history


def toy_study(**settings) -> Study:
    """Return a toy study."""
    space = ec.space(SPACE)
    settings = {"seed": 5, "lag": 3, **settings}
    return Study(space, settings.pop("evaluate", Toy()), settings.pop("strategy", None) or Climb(space), **settings)


def drive(folder: str, trials: int, **settings) -> None:
    """Begin or resume a search in a run folder, as a process of its own; says every finished trial."""
    warnings.simplefilter("ignore", ec.EcloseWarning)
    path = Path(folder)
    run = Run.resume(path) if (path / "events.jsonl").exists() and _begun(path) else Run.create(path, {})
    pause = settings.pop("pause", 0.0)
    with run:
        study = toy_study(run=run, evaluate=Toy(pause), **settings)
        study.run(trials, lambda progress: print(progress.happened, progress.trial.number, flush=True))


def _begun(path: Path) -> bool:
    return (path / "events.jsonl").read_bytes().count(b"\n") > 0


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    drive(arguments.pop("folder"), arguments.pop("trials"), **arguments)
