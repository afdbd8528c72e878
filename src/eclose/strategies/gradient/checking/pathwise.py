"""Pathwise estimators: the loss is a smooth function of alphas and noise, so differences give its derivative.

Every evaluation has the same noise (the same seed), so what is compared is the derivative of one function.
"""

from __future__ import annotations

import torch

from eclose.strategies.gradient.checking.bench import Bench
from eclose.strategies.gradient.checking.entries import Entry, close

KIND = "pathwise"
METHOD = "the loss in each alpha: autograd against central differences in float64 with the same noise"
STEP = 1e-6
TOLERANCE = 1e-5  # of the largest difference; rounding is near 1e-9 / loss


def difference(bench: Bench, name: str, index: int, step: float = STEP) -> float:
    """Return the derivative of the loss in one alpha by central differences."""
    alpha = bench.alphas[name]
    before = float(alpha.detach()[index])
    try:
        with torch.no_grad():
            alpha[index] = before + step
            above = bench.loss()
            alpha[index] = before - step
            below = bench.loss()
    finally:
        with torch.no_grad():
            alpha[index] = before
    return (above - below) / (2.0 * step)


def pathwise(bench: Bench) -> list[Entry]:
    """Compare the gradient of the loss with its differences."""
    found = bench.gradient()
    references = {(name, index): difference(bench, name, index) for name, index in bench.chosen}
    scale = max(map(abs, references.values()), default=0.0)
    return [
        close("dL/dalpha", name, bench.label(name, index), float(found[name][index]), reference, TOLERANCE, scale)
        for (name, index), reference in references.items()
    ]


__all__ = ["KIND", "METHOD", "difference", "pathwise"]
