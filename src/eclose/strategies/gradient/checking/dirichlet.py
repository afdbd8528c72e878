"""The Dirichlet mixture: its gradient is one of an expectation, so its mean over draws is compared.

The expectation of the supernet's loss itself has no closed form. That of its second-order Taylor expansion around the
mean weights has one, by the moments of the Dirichlet distribution, and it is a smooth function of the same weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eclose.operations.mixture import MixtureWeights
from eclose.strategies.gradient.checking.bench import Bench, seeded
from eclose.strategies.gradient.checking.entries import Entry, close, mean

KIND = "pathwise, of an expectation (Dirichlet)"
METHOD = (
    "the mean of the pathwise gradient over draws against central differences of the exact expectation, for the "
    "second-order expansion of the loss in each checked choice's weights (within 4 standard errors); for the loss "
    "itself, one draw's gradient against differences of the loss in the weights times the draw's derivative"
)
STEP = 1e-6
CHAIN = 1e-5
MOST_CHOICES = 3  # each takes a Hessian
MOMENTS = 1e-7  # what a central difference of the closed form is good for


def dirichlet(bench: Bench) -> list[Entry]:
    """Compare means of the gradient with the expectation's, and the loss's gradient with the chain rule."""
    return [*_expectations(bench), *_chain(bench)]


def _expectations(bench: Bench) -> list[Entry]:
    names = list(dict.fromkeys(name for name, _ in bench.chosen))[:MOST_CHOICES]
    entries = [(name, index) for name in names for index in bench.rule.allowed[name]][: bench.entries]
    centres = {name: _mean(bench.alphas[name].detach()[list(bench.rule.allowed[name])]) for name in bench.rule.names}
    slopes, curvatures = {}, {}
    for name in names:
        slopes[name], curvatures[name] = _expansion(bench, name, centres)
    drawn: dict[str, list[Tensor]] = {name: [] for name in names}
    with bench.seeded():
        for _ in range(bench.samples):
            weights = bench.rule(bench.alphas, "architecture")
            total = torch.zeros((), dtype=torch.float64)
            for name in names:
                values = weights[name].values
                assert values is not None
                away = values[list(bench.rule.allowed[name])] - centres[name]
                total = total + slopes[name] @ away + 0.5 * away @ curvatures[name] @ away
            gradients = torch.autograd.grad(total, [bench.alphas[name] for name in names])
            for name, gradient in zip(names, gradients, strict=True):
                drawn[name].append(gradient)
    rows = []
    for name, index in entries:
        kept = bench.rule.allowed[name]
        alpha = bench.alphas[name].detach()[list(kept)]
        moved = torch.zeros_like(alpha)
        moved[kept.index(index)] = STEP
        above, below = (
            _expected(alpha + sign * moved, centres[name], slopes[name], curvatures[name]) for sign in (1.0, -1.0)
        )
        reference = float(above - below) / (2.0 * STEP)
        draws = torch.stack([gradient[index] for gradient in drawn[name]]).tolist()
        rows.append(mean("dE[expansion]/dalpha", name, bench.label(name, index), draws, reference, MOMENTS))
    return rows


def _concentration(alpha: Tensor) -> Tensor:
    return torch.where(alpha > 0, alpha + 1.0, alpha.exp())  # elu(alpha) + 1, written out


def _mean(alpha: Tensor) -> Tensor:
    c = _concentration(alpha)
    return c / c.sum()


def _expected(alpha: Tensor, centre: Tensor, slope: Tensor, curvature: Tensor) -> Tensor:
    """Return E[g (theta - m) + (theta - m) H (theta - m) / 2] for theta ~ Dir(c).

    E theta_i theta_j = c_i (c_j + [i = j]) / (c0 (c0 + 1)), c0 = sum c.
    """
    c = _concentration(alpha)
    whole = c.sum()
    first = c / whole
    second = (torch.outer(c, c) + torch.diag(c)) / (whole * (whole + 1.0))
    about = second - torch.outer(first, centre) - torch.outer(centre, first) + torch.outer(centre, centre)
    return slope @ (first - centre) + 0.5 * (curvature * about).sum()


def _expansion(bench: Bench, name: str, centres: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return gradient and Hessian of the loss in the kept weights of one choice, all choices at their means."""
    objective, batch = bench.objective, bench.batch
    kept = list(bench.rule.allowed[name])

    def loss(values: Tensor) -> Tensor:
        weights = {}
        for other in bench.rule.present():
            if other not in centres:
                weights[other] = MixtureWeights(None)
                continue
            given = values if other == name else centres[other]
            indices = torch.tensor(bench.rule.allowed[other])
            weights[other] = MixtureWeights(given.new_zeros(bench.sites[other].count).scatter(0, indices, given))
        return objective.under(bench.net, batch, weights).loss

    centre = centres[name].clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss(centre), centre, create_graph=True)
    rows = [torch.autograd.grad(part, centre, retain_graph=True)[0] for part in slope]
    curvature = torch.stack(rows)
    assert curvature.shape == (len(kept), len(kept))
    return slope.detach(), curvature


def _chain(bench: Bench) -> list[Entry]:
    """Compare one draw's gradient of the loss with dL/dtheta by differences times dtheta/dalpha."""
    name = bench.chosen[0][0]
    found = bench.gradient()
    with bench.seeded():
        weights = bench.rule(bench.alphas, "architecture")
    theta = weights[name].values
    assert theta is not None
    slopes = torch.zeros_like(theta)
    for index in bench.rule.allowed[name]:
        losses = []
        for sign in (1.0, -1.0):
            moved = theta.detach().clone()
            moved[index] += sign * STEP
            with seeded(bench.seed), torch.no_grad():
                changed = {**weights, name: MixtureWeights(moved, weights[name].selected)}
                losses.append(float(bench.objective.under(bench.net, bench.batch, changed).loss))
        slopes[index] = (losses[0] - losses[1]) / (2.0 * STEP)
    (reference,) = torch.autograd.grad(theta, bench.alphas[name], slopes)
    regulariser = bench.objective.regulariser
    if regulariser is not None:
        reference = reference + torch.autograd.grad(regulariser(bench.alphas), bench.alphas[name])[0]
    scale = float(reference.abs().max())
    return [
        close("dL/dalpha, one draw", name, bench.label(name, index), float(found[name][index]), float(reference[index]),
              CHAIN, scale)
        for index in bench.rule.allowed[name]
    ]  # fmt: skip


__all__ = ["KIND", "METHOD", "dirichlet"]
