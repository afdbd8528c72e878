"""Checks of gradients: is what moves a strategy's alphas what its paper says it is?

One file a family of estimators, since "right" means something else for each: a derivative, a derivative of an
expectation, a mean over paths, or no more than a printed formula. Nothing here trains anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eclose.algebra.errors import RequestError
from eclose.spaces import Space
from eclose.strategies import STRATEGIES
from eclose.strategies.gradient.checking import biased, controlled, dirichlet, pathwise, scored, unrolled
from eclose.strategies.gradient.checking.bench import Bench, bench
from eclose.strategies.gradient.checking.entries import Checked, Entry
from eclose.strategies.gradient.named import recipe_of
from eclose.strategies.gradient.recipe import Recipe

NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Family:
    """How the estimators of a family are checked."""

    kind: str
    method: str
    check: Callable[[Bench], list[Entry]]


PATHWISE = Family(pathwise.KIND, pathwise.METHOD, pathwise.pathwise)
UNROLLED = Family(unrolled.KIND, unrolled.METHOD, unrolled.unrolled)
FAMILIES: dict[str, Family | None] = {
    "softmax": PATHWISE,
    "simplex": PATHWISE,
    "gumbel": PATHWISE,
    "dirichlet": Family(dirichlet.KIND, dirichlet.METHOD, dirichlet.dirichlet),
    "sampled": Family(scored.KIND, scored.METHOD, scored.scored),
    "controller": Family(controlled.KIND, controlled.METHOD, controlled.controlled),
    "hard-gumbel": Family(biased.STRAIGHT_KIND, biased.STRAIGHT_METHOD, biased.straight_through),
    "two-path": Family(biased.PAIR_KIND, biased.PAIR_METHOD, biased.two_paths),
    "proximal": Family(biased.PROXIMAL_KIND, biased.PROXIMAL_METHOD, biased.proximal),
    "uniform-path": None,
}
"""For each mixture how its gradient is checked; None where it has no gradient."""


def family_of(recipe: Recipe) -> Family | None:
    """Return how the gradient of a recipe's alphas is checked, or None where they have none."""
    if recipe.mixture == "controller":
        return FAMILIES["controller"]
    if recipe.step == "none":
        return None
    return UNROLLED if recipe.step == "second-order" else FAMILIES[recipe.mixture]


def check_gradients(
    strategy: str,
    space: Space,
    *,
    seed: int = 0,
    entries: int = 12,
    samples: int = 1000,
    settings: Mapping[str, Any] | None = None,
) -> Checked:
    """Check the gradient of a strategy's alphas on a small supernet of a space.

    Args:
        strategy: a name from `STRATEGIES`, of the gradient kind.
        space: whose supernet it is.
        seed: of weights, alphas, data and draws.
        entries: alphas that are checked.
        samples: draws of which a mean is taken.
        settings: of the strategy, where they differ from its own.
    """
    named = STRATEGIES.get(strategy)
    if named.kind != "gradient":
        raise RequestError(f"strategy {named.name!r} is a {named.kind} search: it has no supernet and no gradients")
    for name, value in (("entries", entries), ("samples", samples)):
        if value < 2:
            raise RequestError(f"{name} must be at least 2, not {value}")
    recipe = recipe_of(named, space.name, settings)
    family = family_of(recipe)
    if family is None:
        why = (
            f"mixture={recipe.mixture!r} draws its paths evenly" if recipe.mixture == "uniform-path"
            else f"step={recipe.step!r} moves no alphas"
        )  # fmt: skip
        return Checked(
            named.name, space.name, NOT_APPLICABLE, f"{why}; there is no gradient of alphas to check", "none"
        )
    parts = bench(space, recipe, seed=seed, entries=entries, samples=samples)
    if not math.isfinite(parts.loss() if parts.part is not None else 0.0):
        raise RequestError(
            f"the supernet of {space.name} has no finite loss on random data before any training: an alternative gives "
            "values that are no numbers, and so does every mixture with it"
        )
    found = family.check(parts)
    return Checked(named.name, space.name, family.kind, family.method, parts.size, tuple(found), tuple(parts.notes))


__all__ = ["FAMILIES", "NOT_APPLICABLE", "Checked", "Entry", "Family", "check_gradients", "family_of"]
