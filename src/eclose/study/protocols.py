"""What a study needs from a space, a strategy, an evaluator and a storage - no more than these methods."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Protocol

from eclose.algebra.terms import Term
from eclose.study.results import Result, Trial


class Sampler(Protocol):
    """A space or a grammar as a black-box strategy sees it."""

    def sample(self, rng: Random) -> Term:
        """Draw a term."""
        ...

    def mutate(self, term: Term, rng: Random) -> Term:
        """Return a neighbour of a term."""
        ...


class Strategy(Protocol):
    """Proposes terms and learns from results; a pure function of its settings and the tells in order.

    Attributes:
        name: what the catalogue calls it.
        settings: its settings as resolved, plain data.
    """

    name: str
    settings: Mapping[str, Any]

    def ask(self, number: int, rng: Random) -> Term:
        """Propose a term; all randomness comes from `rng`, and nothing is remembered."""
        ...

    def tell(self, number: int, term: Term, result: Result) -> None:
        """Learn what a proposal gave."""
        ...


class Reporter(Protocol):
    """What an evaluator is handed to report intermediate values.

    Attributes:
        folder: where it may keep a checkpoint, or None.
    """

    folder: Path | None

    def __call__(self, step: int, **values: float) -> None:
        """Report values after a step."""
        ...


class Evaluator(Protocol):
    """Evaluates a term: the objectives of a trial."""

    def __call__(self, term: Term, seed: int, report: Reporter | None = None) -> Any:
        """Return a `Result`, a mapping of objectives, or one number."""
        ...


class Storage(Protocol):
    """Where a study is kept: four calls."""

    def begin(self, settings: dict[str, Any]) -> tuple[dict[str, Any], list[Trial]]:
        """Open the study; return the settings it began with (these, where it is new) and the trials so far."""
        ...

    def propose(self, trial: Trial) -> None:
        """Record a proposal."""
        ...

    def report(self, number: int, step: int, values: Mapping[str, Any]) -> None:
        """Record an intermediate report of a trial."""
        ...

    def finish(self, trial: Trial) -> None:
        """Record the result of a trial."""
        ...
