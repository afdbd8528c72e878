"""Estimators that are no derivative of anything, each against its printed formula with every alternative evaluated.

Differences of a loss would say nothing about them: a hard choice does not change with a small change of alpha.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eclose.strategies.gradient.checking.bench import Bench, seeded
from eclose.strategies.gradient.checking.entries import Entry, close

SAME = 1e-9  # of the largest entry: the same numbers in another order

STRAIGHT_KIND = "straight-through (biased)"
STRAIGHT_METHOD = (
    "against dL/dtheta_w dp_w/dalpha, w = argmax p, p = softmax((log softmax(alpha) + G) / tau), with the same noise, "
    "the Jacobian of p written out and every alternative evaluated; with leak=true plus the sum of dL/dout times dp_k "
    "of the others"
)
PAIR_KIND = "binary gates of two paths (biased)"
PAIR_METHOD = (
    "against sum_k dL/dg_k p_k ([k = i] - p_i) over the same pair, p renormalised over it and dL/dg_k = <dL/dout, "
    "o_k(x)> with every alternative evaluated"
)
PROXIMAL_KIND = "proximal: taken at the one-hot point (biased)"
PROXIMAL_METHOD = (
    "against dL/dtheta of the largest alpha at the one-hot point, 0 elsewhere, every alternative evaluated"
)


def straight_through(bench: Bench) -> list[Entry]:
    """Compare the gradient of a hard Gumbel mixture with its formula."""
    temperature = bench.recipe.temperature
    soft = {}
    with bench.seeded():
        by_count: dict[int, list[str]] = {}
        for name in bench.rule.names:
            by_count.setdefault(bench.sites[name].count, []).append(name)
        for count, names in by_count.items():  # the noise is drawn as one matrix for each number of alternatives
            uniform = torch.rand(len(names), count, dtype=torch.float64)
            for name, row in zip(names, uniform, strict=True):
                logits = torch.log_softmax(bench.alphas[name].detach(), -1) - torch.log(-torch.log(row))
                soft[name] = torch.softmax(logits / temperature, -1)
    choices = _choices(bench)
    hard = {name: _one_hot(soft[name], int(soft[name].argmax())) for name in choices}
    slopes, sums = _evaluated(bench, hard)
    gradients = {}
    for name in choices:
        winner = int(soft[name].argmax())
        seen = _one_hot(soft[name], winner) * slopes[name]
        if bench.recipe.leak:
            seen = seen + sums[name] * (1.0 - _one_hot(soft[name], winner))
        gradients[name] = _through_softmax(soft[name], seen) / temperature
    return _compared(bench, "straight-through", gradients, slopes)


def two_paths(bench: Bench) -> list[Entry]:
    """Compare the gradient of a pair of paths with its formula."""
    with bench.seeded():
        drawn = bench.rule(bench.alphas, "architecture")
    pairs = {}
    for name in _choices(bench):
        selected, values = drawn[name].selected, drawn[name].values
        assert selected is not None and values is not None and len(selected) == 2
        pairs[name] = (selected, int(values.detach().argmax()))
    hard = {name: _one_hot(bench.alphas[name].detach(), active) for name, (_, active) in pairs.items()}
    slopes, _ = _evaluated(bench, hard)
    gradients = {}
    for name, (pair, _) in pairs.items():
        where = list(pair)
        chances = torch.softmax(bench.alphas[name].detach()[where], -1)
        gradients[name] = torch.zeros_like(slopes[name])
        gradients[name][where] = _through_softmax(chances, slopes[name][where])
    return _compared(bench, "pair of gates", gradients, slopes)


def proximal(bench: Bench) -> list[Entry]:
    """Compare the gradient of a proximal step with its formula."""
    hard = {name: _one_hot(alpha.detach(), int(alpha.argmax())) for name, alpha in bench.alphas.items()
            if name in _choices(bench)}  # fmt: skip
    slopes, _ = _evaluated(bench, hard)
    return _compared(bench, "at the one-hot point", {name: hard[name] * slopes[name] for name in hard}, slopes)


def _choices(bench: Bench) -> list[str]:
    return [name for name in bench.rule.names if bench.sites[name].kind == "choice"]


def _one_hot(like: Tensor, index: int) -> Tensor:
    found = torch.zeros_like(like)
    found[index] = 1.0
    return found


def _through_softmax(chances: Tensor, upstream: Tensor) -> Tensor:
    """Return sum_k u_k p_k ([k = i] - p_i)."""
    jacobian = torch.diag(chances) - torch.outer(chances, chances)
    return jacobian @ upstream


def _evaluated(bench: Bench, hard: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return dL/dtheta and the sums of dL/dout with every alternative evaluated; edges with weights stay mixed."""
    edges = {name: torch.softmax(alpha.detach(), -1) for name, alpha in bench.alphas.items() if name not in hard}
    with seeded(bench.seed):
        _, slopes, sums = bench.by_hand({**hard, **edges})
    return slopes, sums


def _compared(bench: Bench, quantity: str, gradients: dict[str, Tensor], slopes: dict[str, Tensor]) -> list[Entry]:
    found = bench.gradient()
    for name, slope in slopes.items():
        if name not in gradients:
            gradients[name] = _through_softmax(torch.softmax(bench.alphas[name].detach(), -1), slope)
    regulariser = bench.objective.regulariser
    if regulariser is not None:
        extra = torch.autograd.grad(regulariser(bench.alphas), list(bench.alphas.values()), allow_unused=True)
        for name, gradient in zip(bench.alphas, extra, strict=True):
            gradients[name] = gradients[name] if gradient is None else gradients[name] + gradient
    scale = max(float(gradient.abs().max()) for gradient in gradients.values())
    decided = [name for name in gradients if bool(gradients[name].any())]
    return [
        close(quantity, name, bench.label(name, index), float(found[name][index]), float(gradients[name][index]), SAME,
              scale)
        for name, index in _shown(bench, decided)
    ]  # fmt: skip


def _shown(bench: Bench, decided: list[str]) -> list[tuple[str, int]]:
    """Return the entries that are compared: whole choices, so that what is 0 is looked at as well as what is not."""
    names = list(dict.fromkeys([*(name for name, _ in bench.chosen), *decided]))
    every = [(name, index) for name in names for index in range(bench.sites[name].count)]
    return every[: max(bench.entries, 1)]


__all__ = [
    "PAIR_KIND", "PAIR_METHOD", "PROXIMAL_KIND", "PROXIMAL_METHOD", "STRAIGHT_KIND", "STRAIGHT_METHOD", "proximal",
    "straight_through", "two_paths",
]  # fmt: skip
