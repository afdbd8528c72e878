"""Random search: the baseline that every other strategy has to beat."""

from __future__ import annotations

from random import Random as Generator
from typing import Any

from eclose.algebra.terms import Term
from eclose.strategies import NamedStrategy
from eclose.study.protocols import Sampler
from eclose.study.results import Objective, Result


class Random:
    """Draws every proposal anew, whatever the results were.

    Args:
        space: what is searched.
        objective: not used.
    """

    name = "random"

    def __init__(self, space: Sampler, objective: Objective | None = None):
        self.settings: dict[str, Any] = {}
        self._space = space

    def ask(self, number: int, rng: Generator) -> Term:
        """Draw a term."""
        return self._space.sample(rng)

    def tell(self, number: int, term: Term, result: Result) -> None:
        """Learn nothing."""


RANDOM = NamedStrategy(
    name="random",
    build=Random,
    explanation="""
Draws every term from the grammar by its rules' weights and constraints; nothing is learnt from results.
Proposals are independent of each other, so any number of workers loses nothing.
""",
    source="Li and Talwalkar 2019, Random Search and Reproducibility for Neural Architecture Search",
)

__all__ = ["RANDOM", "Random"]
