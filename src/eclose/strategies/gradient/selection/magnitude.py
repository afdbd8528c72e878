"""Selection by magnitude: the largest weights (Liu et al. 2019)."""

from __future__ import annotations

import heapq
from contextlib import suppress
from typing import Any

from eclose.algebra.errors import RequestError
from eclose.meanings.program import Program
from eclose.meanings.program.layers import LAYERS
from eclose.strategies.gradient.decisions import Decisions, Scores, as_scores, decide
from eclose.strategies.gradient.selection.context import Context, Selection
from eclose.strategies.gradient.supernet import Supernet

MOST_TRIED = 5_000


def magnitude(context: Context) -> Selection:
    """Return the architecture of the largest weights, with the recipe's constraints."""
    net, recipe = context.supernet, context.recipe
    decisions = decided_within(
        net,
        as_scores(context.thetas()),
        most_skips=recipe.most_skips,
        least_features=recipe.least_features,
        features=with_parameters(net.net.program) if recipe.least_features else None,
    )
    return Selection(net.term(decisions), decisions, context.discrete(decisions)["score"])


def decided_within(net: Supernet, scores: Scores, **constraints: Any) -> Decisions:
    """Return the decisions of the largest weights whose term the space has.

    A grammar may have constraints that choices know nothing of. Then alternatives are tried in the order of the weight
    that is given up, summed over the choices that change.
    """
    given: dict[str, Any] = {**constraints}
    picks = dict(given.pop("fixed", None) or {})
    best = decide(net.sites, scores, fixed=picks, **given)
    if net.term(best) in net.space:
        return best
    names = [name for name in net.choices if name in scores and name not in picks]
    ranked = {name: sorted(net.sites[name].selectable, key=lambda index: -scores[name][index]) for name in names}
    losses = {name: [scores[name][order[0]] - scores[name][index] for index in order] for name, order in ranked.items()}
    waiting: list[tuple[float, tuple[int, ...], int]] = [(0.0, (0,) * len(names), 0)]
    for _ in range(MOST_TRIED):
        if not waiting:
            break
        loss, ranks, last = heapq.heappop(waiting)
        fixed = {name: (ranked[name][rank],) for name, rank in zip(names, ranks, strict=True)}
        with suppress(RequestError):
            found = decide(net.sites, scores, fixed={**picks, **fixed}, **given)
            if net.term(found) in net.space:
                return found
        for place in range(last, len(names)):
            order = losses[names[place]]
            if ranks[place] + 1 < len(order):
                more = loss + order[ranks[place] + 1] - order[ranks[place]]
                heapq.heappush(waiting, (more, (*ranks[:place], ranks[place] + 1, *ranks[place + 1 :]), place))
    raise RequestError(
        f"none of the {MOST_TRIED:,} architectures of the largest weights keeps the constraints of {net.space.name}; "
        "selection=sampled draws among those that do"
    )


def with_parameters(program: Program) -> dict[str, tuple[int, ...]]:
    """Return for each choice the alternatives that have parameters."""
    found: dict[str, set[int]] = {name: set() for name in program.choices}
    for step in program.steps:
        if step.guard < 0:
            continue
        shapes = [program.shape(index) for index in step.inputs]
        if LAYERS[step.layer].parameters(step.settings, shapes):
            guard = program.guards[step.guard]
            found[guard.choice].add(guard.alternative)
    return {name: tuple(sorted(indices)) for name, indices in found.items()}


__all__ = ["decided_within", "magnitude", "with_parameters"]
