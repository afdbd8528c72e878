"""What moves the alphas: a torch optimiser by the name that a recipe gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from eclose.strategies.gradient.recipe import Recipe
from eclose.train.groups import SGD, Adam, OptimiserFactory

FLOOR = 1e-5  # as GAEA's reference keeps every weight above


class ExponentiatedGradient(torch.optim.Optimizer):
    """theta <- theta * exp(-rate * grad), raised to a floor and divided by the sum (Li et al. 2021, GAEA).

    Args:
        parameters: points of the simplex.
        rate: a number or, on a GPU, a scalar tensor.
        floor: the smallest weight.
    """

    captures = True

    def __init__(self, parameters: Iterable[Tensor], rate: float | Tensor, floor: float = FLOOR):
        super().__init__(parameters, {"lr": rate, "floor": floor})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Take a step; entries of weight 0 were dropped from the search and stay 0."""
        for group in self.param_groups:
            for theta in group["params"]:
                if theta.grad is None:
                    continue
                # A factor that all entries share goes with the division: the smallest exponent is 0.
                open_ = theta > 0
                lowest = torch.where(open_, theta.grad, torch.inf).min()
                gradient = torch.where(open_, theta.grad - lowest, 0.0)
                moved = theta * torch.exp(-group["lr"] * gradient)
                moved = torch.where(open_, moved.clamp_min(group["floor"]), moved)
                theta.copy_(moved / moved.sum())


def architecture_optimiser(recipe: Recipe) -> OptimiserFactory | Callable[..., torch.optim.Optimizer]:
    """Return what makes the optimiser of the alphas."""
    if recipe.architecture_optimiser == "adam":
        betas = (recipe.architecture_beta1, recipe.architecture_beta2)
        return Adam(betas=betas, weight_decay=recipe.architecture_decay)
    if recipe.architecture_optimiser == "sgd":
        return SGD(momentum=0.0, weight_decay=recipe.architecture_decay)
    return ExponentiatedGradient


__all__ = ["FLOOR", "ExponentiatedGradient", "architecture_optimiser"]
