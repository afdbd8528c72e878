"""Selection by magnitude: the largest weights (Liu et al. 2019)."""

from __future__ import annotations

from eclose.meanings.program import Program
from eclose.meanings.program.layers import LAYERS
from eclose.strategies.gradient.decisions import as_scores, decide
from eclose.strategies.gradient.selection.context import Context, Selection


def magnitude(context: Context) -> Selection:
    """Return the architecture of the largest weights, with the recipe's constraints."""
    net, recipe = context.supernet, context.recipe
    decisions = decide(
        net.sites,
        as_scores(context.thetas()),
        most_skips=recipe.most_skips,
        least_features=recipe.least_features,
        features=with_parameters(net.net.program) if recipe.least_features else None,
    )
    return Selection(net.term(decisions), decisions, context.discrete(decisions)["score"])


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


__all__ = ["magnitude", "with_parameters"]
