"""Whether the weight of an operation says how strong it is (Wang et al. 2021, DARTS-PT).

An operation's strength is the held score of the supernet with this operation alone on its edge, everything else mixed.
"""

from __future__ import annotations

import torch

from eclose.diagnose.strength import ChoiceStrength, strength
from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.selection.context import Context


def choice_strength(context: Context, name: str, *, batches: int | None = 5) -> tuple[list[int], ChoiceStrength]:
    """Return the alternatives of a choice that take part, with their weights, held scores and the tau of both.

    Args:
        context: a supernet.
        name: of a choice that stands in the network.
        batches: batches of held data; None for all.
    """
    kept = list(context.rule.allowed.get(name, range(context.supernet.sites[name].count)))
    theta = context.thetas()[name].tolist()
    sign = 1.0 if context.task.metric.direction == "maximise" else -1.0

    def score(_: str, index: int) -> float:
        return sign * context.score(with_fixed(context, name, kept[index]), batches)["score"]

    found = strength(score, {name: [theta[index] for index in kept]}).choices[name]
    return kept, ChoiceStrength(found.weights, [sign * value for value in found.scores], found.tau)


def with_fixed(context: Context, name: str, alternative: int) -> dict[str, MixtureWeights]:
    """Return the mixture's weights with one choice decided.

    `none` keeps its neighbours with the weight 0, so that an edge may carry zeros even where it is the only way.
    """
    thetas = context.thetas()
    mixed = context.rule.mixed(thetas)
    if alternative in context.supernet.sites[name].zeros:
        alone = torch.zeros_like(thetas[name])
        alone[alternative] = 1.0
        return {**mixed, name: MixtureWeights(alone)}
    return {**mixed, name: MixtureWeights(None, (alternative,))}


__all__ = ["choice_strength", "with_fixed"]
