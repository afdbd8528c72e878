"""The objective of either level: a task's loss of the network under the weights that the mixture gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.mixtures.rule import Level, MixtureRule
from eclose.strategies.gradient.perturbations import Perturbation
from eclose.strategies.gradient.regularisers import Regulariser
from eclose.strategies.gradient.supernet import Weighted
from eclose.train.data import Batch
from eclose.train.steps import Objective, Outcome


@dataclass(frozen=True)
class Mixed:
    """A loss under a mixture.

    Args:
        plain: the loss of a model called without weights.
        rule: alphas to weights.
        level: whose step it is.
        fixed: whether the alphas are constants of it, as they are in a step of the network's weights alone.
        perturbation: what the weights see instead, or None.
        regulariser: a term of the alphas that is added, or None.
    """

    plain: Objective
    rule: MixtureRule
    level: Level
    fixed: bool = False
    perturbation: Perturbation | None = None
    regulariser: Regulariser | None = None

    def __call__(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return the loss of a batch."""
        alphas = alphas_of(model, self.rule)
        if self.fixed:
            alphas = {name: alpha.detach() for name, alpha in alphas.items()}
        weights = self.rule(alphas, self.level)
        if self.perturbation is not None:
            weights = self.perturbation(weights, model, lambda given: self.under(model, batch, given).loss)
        outcome = self.under(model, batch, weights)
        if self.regulariser is None:
            return outcome
        return Outcome(outcome.loss + self.regulariser(alphas), outcome.outputs)

    def under(self, model: nn.Module, batch: Batch, weights: Mapping[str, MixtureWeights]) -> Outcome:
        """Return the loss under given weights."""
        view: Any = Weighted(model, weights)
        return self.plain(view, batch)


def alphas_of(model: nn.Module, rule: MixtureRule) -> dict[str, Tensor]:
    """Return the alphas that a mixture reads."""
    return {name: model.alphas[name] for name in rule.names}  # type: ignore[index]


__all__ = ["Mixed", "alphas_of"]
