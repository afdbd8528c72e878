"""Regularised evolution: a population in which age, not merit, decides who leaves (Real et al., 2019)."""

from __future__ import annotations

from collections import deque
from random import Random as Generator
from typing import Any

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.terms import Term
from eclose.strategies import NamedStrategy
from eclose.strategies.blackbox.decisions import decisions
from eclose.study.results import Objective, Result

MUTATIONS = ("redraw", "decision")
TRIES = 50  # mutants in a row that change more than one decision, before such a one is taken


class Evolution:
    """Proposes mutants of the winner of a small tournament; each result replaces the oldest member.

    Args:
        space: what is searched; it samples, mutates and, where asked for, crosses over.
        objective: what a tournament is won by.
        population: how many of the latest results are remembered. As many random terms come first.
        tournament: how many members, drawn with replacement, a parent is the best of.
        crossover: the probability that a proposal exchanges parts of two parents instead of mutating one.
        mutation: `"redraw"` derives one part of the parent anew, which may be all of it; `"decision"` changes a single
            decision, with what depends on it.
    """

    name = "evolution"

    def __init__(
        self,
        space: Any,
        objective: Objective | None = None,
        *,
        population: int = 50,
        tournament: int = 10,
        crossover: float = 0.0,
        mutation: str = "redraw",
    ):
        for setting, value in (("population", population), ("tournament", tournament)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise RequestError(f"evolution needs a {setting} of at least one, not {value!r}")
        if not isinstance(crossover, int | float) or not 0 <= crossover <= 1:
            raise RequestError(f"the probability of a crossover is from 0 to 1, not {crossover!r}")
        if mutation not in MUTATIONS:
            hint = did_you_mean(str(mutation), MUTATIONS)
            raise RequestError(f"a mutation is a redraw or a decision, not {mutation!r}{hint}")
        self.settings: dict[str, Any] = {
            "population": population,
            "tournament": tournament,
            "crossover": crossover,
            "mutation": mutation,
        }
        self._space, self._objective = space, objective or Objective()
        self._population, self._tournament, self._crossover = population, tournament, crossover
        self._single = mutation == "decision"
        self._members: deque[tuple[float, Term]] = deque(maxlen=population)
        self._failures = 0

    def ask(self, number: int, rng: Generator) -> Term:
        """Propose a random term while the population is being filled, then a child of it."""
        # Failures do not join the population, so as many more random terms are drawn for it.
        if number - self._failures < self._population or not self._members:
            drawn: Term = self._space.sample(rng)
            return drawn
        parent = self._parent(rng)
        if self._crossover and rng.random() < self._crossover:
            other = self._parent(rng)
            children: tuple[Term, Term] = self._space.crossover(parent, other, rng)
            new = [child for child in children if child is not parent and child is not other]
            if new:
                return new[rng.randrange(len(new))]
        return self._mutant(parent, rng)

    def _mutant(self, parent: Term, rng: Generator) -> Term:
        mutant: Term = self._space.mutate(parent, rng)
        if not self._single:
            return mutant
        grammar = getattr(self._space, "grammar", self._space)
        before = {decision.name: decision.answer for decision in decisions(grammar, parent)}
        for _ in range(TRIES):
            # Decisions that come up in one of the two alone depend on the one that was changed.
            after = decisions(grammar, mutant)
            if sum(before.get(name, answer) != answer for name, answer, _ in after) == 1:
                break
            mutant = self._space.mutate(parent, rng)
        return mutant

    def _parent(self, rng: Generator) -> Term:
        """Return the best of a few members, the first drawn of equals."""
        members, count = self._members, len(self._members)
        best, winner = members[rng.randrange(count)]
        for _ in range(self._tournament - 1):
            merit, term = members[rng.randrange(count)]
            if merit > best:
                best, winner = merit, term
        return winner

    def tell(self, number: int, term: Term, result: Result) -> None:
        """Take a result into the population, which the oldest member leaves."""
        merit = self._objective.merit(result)
        if merit is None:
            self._failures += 1
        else:
            self._members.append((merit, term))


EVOLUTION = NamedStrategy(
    name="evolution",
    build=Evolution,
    settings={"population": 50, "tournament": 10, "crossover": 0.0, "mutation": "redraw"},
    explanation="""
Keeps the latest results as a population. Each proposal is a mutant of the best of a few members drawn at random
(tournament), and its result replaces the oldest member, however good that was. `crossover` is the probability of
exchanging parts of two parents instead. mutation="redraw" derives any one part anew, also all of it; "decision" changes
a single decision. For NAS-Bench-201 its authors take population=10, tournament=3 and change one edge ("decision").
""",
    source="Real et al. 2019, Regularized Evolution for Image Classifier Architecture Search",
)

__all__ = ["EVOLUTION", "Evolution"]
