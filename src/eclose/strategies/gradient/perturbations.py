"""Perturbations: which architecture the weights see instead of the present one (Chen and Hsieh 2020, SmoothDARTS).

A perturbation changes the weights of choices within a ball; the alphas themselves are not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.mixtures.annealed import Annealed
from eclose.strategies.gradient.recipe import Recipe
from eclose.train.callbacks import Callback
from eclose.train.schedules import Linear

Weights: TypeAlias = Mapping[str, MixtureWeights]
Loss: TypeAlias = Callable[[Weights], Tensor]


class Perturbation:
    """A change of the weights within a radius that grows over the search.

    Args:
        names: the choices whose weights are changed.
        recipe: radius and steps.
    """

    def __init__(self, names: Sequence[str], recipe: Recipe):
        self.names, self.recipe = tuple(names), recipe
        self.radius = Annealed(Linear(recipe.radius, recipe.radius_end), recipe.radius)

    def callbacks(self) -> Sequence[Callback]:
        """The growth of the radius."""
        return (self.radius,)

    def __call__(self, weights: Weights, model: nn.Module, loss: Loss) -> dict[str, MixtureWeights]:
        """Return the weights that the step of the network's weights sees.

        Args:
            weights: the present ones.
            model: the network, for its mode.
            loss: the training loss of the batch as a function of weights.
        """
        raise NotImplementedError

    def given(self, weights: Weights) -> dict[str, Tensor]:
        """Return the values that are perturbed."""
        return {name: _values(weights[name]) for name in self.names}


def _values(weights: MixtureWeights) -> Tensor:
    assert weights.values is not None  # a recipe with a perturbation has a soft mixture
    return weights.values.detach()


def with_values(weights: Weights, values: Mapping[str, Tensor]) -> dict[str, MixtureWeights]:
    """Return weights with some values replaced."""
    return {name: replace(given, values=values[name]) if name in values else given for name, given in weights.items()}


def on_simplex(values: Tensor, before: Tensor) -> Tensor:
    """Return values cut to [0, 1] and divided by their sum; a row of zeros becomes the old winner's one-hot row."""
    cut = values.clamp(0.0, 1.0)
    total = cut.sum(-1, keepdim=True)
    winner = torch.zeros_like(before).scatter_(-1, before.argmax(-1, keepdim=True), 1.0)
    return torch.where(total > 0, cut / total.clamp_min(1e-12), winner)


class Uniform(Perturbation):
    """theta = clip(softmax(alpha) + U(-radius, radius)), SDARTS-RS."""

    def __call__(self, weights: Weights, model: nn.Module, loss: Loss) -> dict[str, MixtureWeights]:
        """Draw a point of the ball."""
        found = {}
        for name, theta in self.given(weights).items():
            noise = (2.0 * torch.rand_like(theta) - 1.0) * self.radius.like(theta)
            found[name] = on_simplex(theta + noise, theta)
        return with_values(weights, found)


class Adversarial(Perturbation):
    """The worst point of the L-infinity ball that projected gradient ascent finds, SDARTS-ADV.

    A random start, steps of 2 radius / steps along the sign of the gradient, back into the ball after each. The network
    is in evaluation mode meanwhile. Where the attack has lowered the loss the weights stay as they are.
    """

    def __call__(self, weights: Weights, model: nn.Module, loss: Loss) -> dict[str, MixtureWeights]:
        """Climb the training loss."""
        given = self.given(weights)
        names, steps = list(given), self.recipe.attack_steps
        training = model.training
        model.eval()
        try:
            with torch.no_grad():
                before = loss(with_values(weights, given))
            moved = {
                name: theta + (2.0 * torch.rand_like(theta) - 1.0) * self.radius.like(theta)
                for name, theta in given.items()
            }
            for _ in range(steps):
                leaves = {name: value.detach().requires_grad_() for name, value in moved.items()}
                gradients = torch.autograd.grad(loss(with_values(weights, leaves)), [leaves[name] for name in names],
                                                allow_unused=True)  # fmt: skip
                for name, gradient in zip(names, gradients, strict=True):
                    radius = self.radius.like(given[name])
                    ascent = torch.zeros_like(given[name]) if gradient is None else gradient.sign()
                    step = leaves[name].detach() + 2.0 * radius / steps * ascent
                    moved[name] = torch.maximum(torch.minimum(step, given[name] + radius), given[name] - radius)
            moved = {name: on_simplex(value, given[name]) for name, value in moved.items()}
            with torch.no_grad():
                after = loss(with_values(weights, moved))
            worse = after >= before
            return with_values(weights, {name: torch.where(worse, moved[name], given[name]) for name in names})
        finally:
            model.train(training)


PERTURBATIONS: dict[str, Any] = {"uniform": Uniform, "adversarial": Adversarial}


def perturbation(names: Sequence[str], recipe: Recipe) -> Perturbation | None:
    """Return the perturbation of a recipe, or None."""
    kind = PERTURBATIONS.get(recipe.perturbation)
    return None if kind is None else kind(names, recipe)


__all__ = ["PERTURBATIONS", "Adversarial", "Perturbation", "Uniform", "on_simplex", "perturbation", "with_values"]
