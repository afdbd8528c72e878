"""Whether two scores put the same things in the same order: Kendall's tau, Spearman's rho, regret.

Each takes two sequences of numbers of equal length, such as supernet scores and those of a table; larger is better. A
correlation with something constant, or of fewer than two pairs, is not defined: None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eclose.algebra.errors import RequestError

Scores: TypeAlias = Sequence[float] | NDArray[Any]


def kendall(first: Scores, second: Scores) -> float | None:
    """Return Kendall's tau-b, which allows for ties, in O(n log n) (Knight, 1966).

    (concordant - discordant pairs) / sqrt(pairs not tied in first * pairs not tied in second).
    """
    a, b = _pairs(first, second)
    a, b = _dense_ranks(a), _dense_ranks(b)
    order = np.lexsort((b, a))  # by a, then by b: pairs tied in a are then no inversions of b
    a, b = a[order], b[order]
    pairs = len(a) * (len(a) - 1) // 2
    tied_a, tied_b = _tied(a), _tied(b)
    tied_both = _tied(a * (len(b) + 1) + b)
    loose = (pairs - tied_a) * (pairs - tied_b)
    if not loose:
        return None
    difference = pairs - tied_a - tied_b + tied_both - 2 * _inversions(b)
    return difference / math.sqrt(loose)


def spearman(first: Scores, second: Scores) -> float | None:
    """Return Spearman's rho: Pearson's correlation of the ranks, where what is tied shares its mean rank."""
    a, b = _pairs(first, second)
    if len(a) < 2:
        return None
    a, b = _mean_ranks(a), _mean_ranks(b)
    a, b = a - a.mean(), b - b.mean()
    spread = math.sqrt(float(a @ a) * float(b @ b))
    return min(max(float(a @ b) / spread, -1.0), 1.0) if spread else None


def regret(predicted: Scores, true: Scores, k: int = 1) -> float:
    """Return how much worse than the best is the best of the k with the highest predicted scores.

    Of equal predictions the earlier are taken.

    Args:
        predicted: what the k are chosen by.
        true: what counts.
        k: how many are looked at; all of them where there are fewer.
    """
    a, b = _pairs(predicted, true)
    if not len(a):
        raise RequestError("a regret needs at least one pair of scores")
    if k < 1:
        raise RequestError(f"a regret looks at one or more, not {k}")
    chosen = np.argsort(-a, kind="stable")[:k]
    return float(b.max() - b[chosen].max())


def _pairs(first: Scores, second: Scores) -> tuple[NDArray[Any], NDArray[Any]]:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise RequestError(f"ranks are compared of two equally long lists, not of shapes {a.shape} and {b.shape}")
    if np.isnan(a).any() or np.isnan(b).any():
        raise RequestError("some of the scores are not numbers (nan); they have no rank")
    return a, b


def _dense_ranks(values: NDArray[Any]) -> NDArray[Any]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _mean_ranks(values: NDArray[Any]) -> NDArray[Any]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def _tied(values: NDArray[Any]) -> int:
    """Count the pairs of equal values."""
    counts = np.unique(values, return_counts=True)[1].astype(np.int64)
    return int((counts * (counts - 1) // 2).sum())


def _inversions(values: NDArray[Any]) -> int:
    """Count the pairs whose larger value comes first; the values are whole numbers from 0.

    Two values are ordered by the highest bit in which they differ. So, bit by bit from the highest, among those that
    agree in the bits above and still stand in the order given: count the ones before each zero.
    """
    total = 0
    for shift in reversed(range(int(values.max(initial=0)).bit_length())):
        ones = (values >> shift) & 1
        before = np.concatenate([[0], np.cumsum(ones)])
        above = values >> (shift + 1)
        begins = np.searchsorted(above, above, side="left")
        total += int(((before[:-1] - before[begins]) * (1 - ones)).sum())
        values = values[np.argsort(values >> shift, kind="stable")]
    return total


__all__ = ["Scores", "kendall", "regret", "spearman"]
