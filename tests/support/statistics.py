"""Goodness of fit of drawn samples."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from math import sqrt
from statistics import NormalDist


def fits(draws: Iterable[Hashable], expected: Mapping[Hashable, float], level: float = 1e-4) -> bool:
    """Return whether draws are compatible with probabilities, by Pearson's chi-square test at a level.

    The quantile is Wilson and Hilferty's; outcomes expected fewer than five times are pooled.
    """
    counts: dict[Hashable, int] = {}
    for draw in draws:
        if draw not in expected:
            return False
        counts[draw] = counts.get(draw, 0) + 1
    total = sum(counts.values())
    cells, rare = [], [0.0, 0.0]
    for outcome, probability in expected.items():
        cell = (counts.get(outcome, 0), probability * total)
        if cell[1] < 5:
            rare = [rare[0] + cell[0], rare[1] + cell[1]]
        else:
            cells.append(cell)
    if rare[1] >= 5:
        cells.append((rare[0], rare[1]))
    freedom = len(cells) - 1
    if freedom < 1:
        return True
    statistic = sum((seen - wanted) ** 2 / wanted for seen, wanted in cells)
    z = NormalDist().inv_cdf(1 - level)
    quantile = freedom * (1 - 2 / (9 * freedom) + z * sqrt(2 / (9 * freedom))) ** 3
    return statistic <= quantile
