"""What mixture weights say: how decided they are, and whether skips win.

Weights come by choice: name -> one number for each alternative, none below zero. They are divided by their sum where
only their proportion matters, since not every relaxation makes them sum to one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from eclose.algebra.errors import RequestError

if TYPE_CHECKING:
    from torch import Tensor

Weights: TypeAlias = "Mapping[str, Sequence[float] | Tensor]"
Indices: TypeAlias = Mapping[str, Sequence[int]]


def entropy(weights: Sequence[float] | Tensor) -> float:
    """Return the entropy of one choice's weights over the largest possible, log K: 0 is decided, 1 is uniform.

    A choice of one alternative, and one whose weights are all zero, have nothing to decide: 0.
    """
    values = _numbers(weights)
    total = math.fsum(values)
    if len(values) < 2 or total == 0:
        return 0.0
    shares = [value / total for value in values]
    bits = -math.fsum(share * math.log(share) for share in shares if share > 0)
    return min(max(bits / math.log(len(values)), 0.0), 1.0)  # rounding may leave the interval


def entropies(weights: Weights) -> dict[str, float]:
    """Return the normalised entropy of each choice."""
    return {name: entropy(values) for name, values in weights.items()}


def mean_entropy(weights: Weights) -> float:
    """Return the mean over the choices of their normalised entropies; 0 where there is no choice."""
    found = list(entropies(weights).values())
    return math.fsum(found) / len(found) if found else 0.0


def dominant(weights: Weights, indices: Indices) -> int:
    """Return on how many choices the largest weight belongs to one of the given alternatives.

    Of equal weights the first counts, as where an architecture is derived.

    Args:
        weights: by choice.
        indices: the alternatives by choice, such as the skips; a choice that is not named has none.
    """
    _known(weights, indices)
    count = 0
    for name, chosen in indices.items():
        values = _numbers(weights[name])
        count += values.index(max(values)) in set(chosen)
    return count


def margin(weights: Weights, skips: Indices, convolutions: Indices) -> float | None:
    """Return the mean of theta_skip - theta_conv over the choices that have both, or None where none has.

    On a choice with several of a kind, theta is their mean weight, so that a uniform mixture has no margin.

    Args:
        weights: by choice.
        skips: the alternatives that are skips, by choice.
        convolutions: the alternatives that are convolutions, by choice.
    """
    _known(weights, skips)
    _known(weights, convolutions)
    margins = []
    for name, values in weights.items():
        numbers = _numbers(values)
        first = [numbers[index] for index in skips.get(name, ())]
        second = [numbers[index] for index in convolutions.get(name, ())]
        if first and second:
            margins.append(math.fsum(first) / len(first) - math.fsum(second) / len(second))
    return math.fsum(margins) / len(margins) if margins else None


def _numbers(weights: Any) -> list[float]:
    values = [float(value) for value in (weights.tolist() if hasattr(weights, "tolist") else weights)]
    if not values:
        raise RequestError("a choice has at least one alternative; these weights are empty")
    if not all(math.isfinite(value) and value >= 0 for value in values):
        raise RequestError(f"mixture weights are finite and not below zero, not {values}")
    return values


def _known(weights: Weights, indices: Indices) -> None:
    for name, chosen in indices.items():
        if name not in weights:
            raise RequestError(f"there are no weights of choice {name!r}")
        count = len(weights[name])
        for index in chosen:
            if not 0 <= index < count:
                raise RequestError(f"choice {name!r} has alternatives 0 to {count - 1}, not {index}")


__all__ = ["Indices", "Weights", "dominant", "entropies", "entropy", "margin", "mean_entropy"]
