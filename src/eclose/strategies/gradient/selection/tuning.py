"""Training a supernet of which some decisions are made: the search's own steps, on the mixture without noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from eclose.operations.groups import weights as weights_of
from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.decisions import Decisions
from eclose.strategies.gradient.mixtures import MixtureRule
from eclose.strategies.gradient.optimisers import architecture_optimiser
from eclose.strategies.gradient.regularisers import regulariser
from eclose.strategies.gradient.selection.context import Context
from eclose.strategies.gradient.steps import ALPHAS, WEIGHTS, step_of
from eclose.train.callbacks import Callback
from eclose.train.groups import SGD, Group
from eclose.train.loop import Loop
from eclose.train.schedules import Constant, Cosine

SLOWER = 10.0  # the tuning's learning rate is the search's divided by this (Wang et al. 2021)
RATE_END = 0.001


class PartlyDecided(MixtureRule):
    """The expected weights of a mixture, with what is decided one-hot.

    Attributes:
        decided: what each decision keeps that is made; edges of a pick add up.
    """

    def __init__(self, rule: MixtureRule):
        super().__init__(rule.sites, rule.recipe)
        self.rule, self.allowed = rule, rule.allowed
        self.trained = rule.trained
        self.decided: Decisions = {}
        self._constant: dict[str, Tensor] | None = None

    def expected(self, alphas: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights of the mixture that was searched with; those that nothing trains are made once."""
        if self.trained:
            return self.rule.expected(alphas)
        if self._constant is None:
            self._constant = self.rule.expected(alphas)
        return self._constant

    def mixed(self, thetas: Mapping[str, Tensor]) -> dict[str, MixtureWeights]:
        """Return the weights of a pass."""
        found = super().mixed(thetas)
        return found | {name: MixtureWeights(None, kept) for name, kept in self.decided.items() if name in found}

    def updated(self, alphas: Mapping[str, nn.Parameter]) -> None:
        """Bring alphas back into their domain."""
        self.rule.updated(alphas)

    def weights(self, alphas: Mapping[str, Tensor]) -> dict[str, MixtureWeights]:
        """Return the weights of a pass that is measured."""
        with torch.no_grad():
            return self.mixed(self.expected({name: alpha.detach() for name, alpha in alphas.items()}))


def tuning(
    context: Context,
    rule: PartlyDecided,
    *,
    epochs: int,
    rate: float,
    train_alphas: bool,
    seed: int,
    rests_from: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> Loop:
    """Return the loop that tunes a supernet with new optimisers.

    Args:
        context: the supernet, its data and the recipe of its search.
        rule: what is decided.
        epochs: of the tuning.
        rate: of the weights at its start; 0 for a tenth of the search's. It falls to 0.001 by a cosine.
        train_alphas: whether alphas go on moving as the recipe says.
        seed: of the model's randomness.
        rests_from: the epoch from which on alphas rest, or None.
        callbacks: what happens around epochs.
    """
    recipe, net = context.recipe, context.supernet.net
    if not train_alphas:
        recipe = replace(recipe, step="none", regulariser="none")
    net.drop_path_rate = 0.0
    pauses = () if rests_from is None else ((rests_from, epochs),)
    steps = step_of(recipe, context.plain, rule, regulariser=regulariser(recipe, rule, net.program), pauses=pauses)
    start = rate or recipe.rate / SLOWER
    slope = Cosine(start, min(RATE_END, recipe.rate_end, start))
    optimiser = SGD(recipe.momentum, recipe.nesterov, recipe.weight_decay)
    groups = [Group(WEIGHTS, weights_of(net), optimiser, slope, clip=recipe.clip or None)]
    if any(ALPHAS in getattr(part, "groups", (ALPHAS,)) for part in steps.parts):
        moved = Constant(recipe.architecture_rate)
        groups.append(Group(ALPHAS, context.supernet.alphas, architecture_optimiser(recipe), moved))
    return Loop(
        net, steps, groups, context.feeds, epochs=epochs, seed=seed, precision=recipe.precision,
        measure=context.task.metric.measure, callbacks=callbacks, capture="off" if recipe.capture == "off" else "auto",
    )  # fmt: skip


__all__ = ["PartlyDecided", "tuning"]
