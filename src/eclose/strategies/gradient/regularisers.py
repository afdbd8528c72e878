"""Regularisers: terms that are added to the loss which moves the alphas."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor

from eclose.algebra.errors import RequestError
from eclose.meanings.cost import program_cost
from eclose.meanings.program import Program
from eclose.strategies.gradient.mixtures.rule import MixtureRule
from eclose.strategies.gradient.mixtures.soft import concentration
from eclose.strategies.gradient.recipe import Recipe

Regulariser: TypeAlias = Callable[[Mapping[str, Tensor]], Tensor]
"""Alphas to a term of the loss."""


def dirichlet_kl(alphas: Mapping[str, Tensor]) -> Tensor:
    """Return the sum of KL(Dir(c) || Dir(1)), c = elu(alpha) + 1, DrNAS's anchor as a divergence.

    KL = ln Gamma(c0) - sum ln Gamma(c_k) - ln Gamma(K) + sum (c_k - 1) (psi(c_k) - psi(c0)), c0 = sum c_k.
    """
    total = torch.zeros((), device=next(iter(alphas.values())).device)
    for alpha in alphas.values():
        c = concentration(alpha)
        whole = c.sum()
        total = (
            total
            + torch.lgamma(whole)
            - torch.lgamma(c).sum()
            - math.lgamma(c.numel())
            + ((c - 1.0) * (torch.digamma(c) - torch.digamma(whole))).sum()
        )
    return total


def negative_entropy(thetas: Mapping[str, Tensor]) -> Tensor:
    """Return sum theta log(theta K): 0 for equal weights, log K for a decision, which it therefore holds back."""
    terms = [torch.special.xlogy(theta, theta * theta.numel()).sum() for theta in thetas.values()]
    return torch.stack(terms).sum()


def alternative_costs(program: Program) -> dict[str, list[float]]:
    """Return for every choice the multiply-adds of each alternative, over all its places, inner choices' apart."""
    layers = program_cost(program).layers
    found = {name: [0.0] * site.alternatives for name, site in program.choices.items()}
    for step, layer in zip(program.steps, layers, strict=True):
        if step.guard >= 0:
            guard = program.guards[step.guard]
            found[guard.choice][guard.alternative] += layer.multiply_adds
    return found


class ExpectedCost:
    """log sum_e sum_o theta_e[o] cost(o): SNAS's resource term in its pathwise form."""

    def __init__(self, rule: MixtureRule, program: Program):
        costs = alternative_costs(program)
        self.rule = rule
        self.costs = {name: torch.tensor(costs[name]) for name in rule.names}
        if not any(float(cost.sum()) for cost in self.costs.values()):
            raise RequestError(
                "no alternative of this space costs anything, so regulariser='cost' has no costs to weigh"
            )

    def __call__(self, alphas: Mapping[str, Tensor]) -> Tensor:
        """Return the logarithm of the expected multiply-adds."""
        thetas = self.rule.expected(alphas)
        for name, theta in thetas.items():
            if self.costs[name].device != theta.device:
                self.costs[name] = self.costs[name].to(theta.device)
        return torch.log(torch.stack([(theta * self.costs[name]).sum() for name, theta in thetas.items()]).sum())


def _kept(alpha: Tensor, rule: MixtureRule, name: str) -> Tensor:
    """Return the alphas of the alternatives that take part."""
    kept = rule.allowed[name]
    return alpha if len(kept) == alpha.numel() else alpha[list(kept)]


def regulariser(recipe: Recipe, rule: MixtureRule, program: Program) -> Regulariser | None:
    """Return the regulariser of a recipe with its factor, or None."""
    weight = recipe.regulariser_weight
    if recipe.regulariser == "none" or not weight:
        return None
    if recipe.regulariser == "dirichlet-kl":
        return lambda alphas: weight * dirichlet_kl({name: _kept(alphas[name], rule, name) for name in rule.names})
    if recipe.regulariser == "entropy":
        return lambda alphas: weight * negative_entropy(rule.expected(alphas))
    cost = ExpectedCost(rule, program)
    return lambda alphas: weight * cost(alphas)


__all__ = ["ExpectedCost", "Regulariser", "alternative_costs", "dirichlet_kl", "negative_entropy", "regulariser"]
