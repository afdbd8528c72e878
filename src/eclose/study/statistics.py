"""What a handful of numbers allow one to say: means with intervals, differences in pairs, many tests at once.

Pure arithmetic over lists of numbers; it knows neither searches nor networks. Samples are small here (a search is
dear), so intervals are Student's and the test of a difference is exact wherever that is affordable.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95
EXACT = 14  # so many differences have 16,384 patterns of signs, which are all looked at
DRAWS = 20_000  # patterns that are drawn where there are more
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Summary:
    """A sample in a few numbers.

    Attributes:
        count: how many values there are.
        mean: their mean; NaN without any.
        deviation: their standard deviation (n - 1 in the denominator); None for fewer than two.
        interval: the interval that holds the true mean with 95 % confidence; None for fewer than two values.
    """

    count: int
    mean: float
    deviation: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Paired:
    """How two samples differ that belong together value by value.

    Attributes:
        differences: first minus second, pair by pair.
        summary: of the differences.
        p: the two-sided p of the sign-flip test; None without differences.
        exact: whether all patterns of signs were looked at.
        smallest: the smallest p that so many pairs can give.
    """

    differences: tuple[float, ...]
    summary: Summary
    p: float | None
    exact: bool
    smallest: float | None


def summary(values: Sequence[float], level: float = LEVEL) -> Summary:
    """Return a sample in a few numbers; the interval is Student's, mean +- t s / sqrt(n).

    Args:
        values: the sample.
        level: the confidence of the interval.
    """
    count = len(values)
    if count == 0:
        return Summary(0, math.nan, None, None)
    mean = math.fsum(values) / count
    spread = deviation(values)
    if spread is None:
        return Summary(count, mean, None, None)
    half = student_quantile((1 + level) / 2, count - 1) * spread / math.sqrt(count)
    return Summary(count, mean, spread, (mean - half, mean + half))


def deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation of a sample with n - 1 in the denominator, or None for fewer than two values."""
    return pooled_deviation([values])


def pooled_deviation(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation within groups that have means of their own, or None where no group has two values.

    sqrt(sum over groups of the squared distances from the group's mean / sum over groups of (n - 1)).
    """
    freedom = sum(len(group) - 1 for group in groups if group)
    if freedom < 1:
        return None
    squares = []
    for group in groups:
        if len(group) > 1:
            mean = math.fsum(group) / len(group)
            squares += [(value - mean) ** 2 for value in group]
    return math.sqrt(math.fsum(squares) / freedom)


def paired(first: Sequence[float], second: Sequence[float], *, level: float = LEVEL, seed: int = 0) -> Paired:
    """Return how two samples differ whose values belong together one by one.

    Args:
        first: a sample.
        second: as many values, each the partner of the one at its place.
        level: the confidence of the interval.
        seed: of the drawn patterns of signs, where there are too many to look at all.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} values cannot be paired with {len(second)}")
    differences = tuple(one - other for one, other in zip(first, second, strict=True))
    count = len(differences)
    exact = count <= EXACT
    if not count:
        return Paired(differences, summary(differences, level), None, True, None)
    smallest = min(1.0, 2.0 ** (1 - count)) if exact else 1 / (DRAWS + 1)
    return Paired(differences, summary(differences, level), sign_flip_p(differences, seed=seed), exact, smallest)


def sign_flip_p(differences: Sequence[float], *, seed: int = 0) -> float:
    """Return the two-sided p of the hypothesis that differences are as likely to be positive as negative.

    Under it every pattern of signs is equally likely. The p is the share of patterns whose sum is at least as far from
    zero as that observed (Fisher 1935). Up to 14 differences all patterns are looked at; of more, patterns are drawn,
    and the observed one counts as one of them, so that the p is never zero (Phipson and Smyth 2010).

    Args:
        differences: at least one.
        seed: of the drawn patterns.
    """
    sizes = [abs(value) for value in differences]
    whole = math.fsum(sizes)
    reached = abs(math.fsum(differences)) - 1e-12 * whole  # equal sums must count although they are rounded
    if len(sizes) <= EXACT:
        sums = [0.0]
        for size in sizes:
            sums = [before + size for before in sums] + [before - size for before in sums]
        return sum(abs(value) >= reached for value in sums) / len(sums)
    rng = random.Random(seed)
    further = 0
    for _ in range(DRAWS):
        signs = rng.getrandbits(len(sizes))
        positive = math.fsum(size for place, size in enumerate(sizes) if signs >> place & 1)
        further += abs(2 * positive - whole) >= reached
    return (further + 1) / (DRAWS + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values corrected for being several (Holm 1979), in the order given.

    The smallest of m is multiplied by m, the next by m - 1, ...; none becomes smaller than one before it.
    """
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    corrected = [0.0] * len(ps)
    floor = 0.0
    for rank, place in enumerate(order):
        floor = max(floor, min(1.0, (len(ps) - rank) * ps[place]))
        corrected[place] = floor
    return corrected


def student_quantile(probability: float, freedom: float) -> float:
    """Return the value below which Student's t stays with a probability.

    Args:
        probability: above 0 and below 1.
        freedom: degrees of freedom, above 0.
    """
    if not 0 < probability < 1 or not freedom > 0:
        raise ValueError(f"no quantile of t at {probability} with {freedom} degrees of freedom")
    if probability < 0.5:
        return -student_quantile(1 - probability, freedom)
    low, high = 0.0, 1.0
    while student_distribution(high, freedom) < probability:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if student_distribution(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return high


def student_distribution(value: float, freedom: float) -> float:
    """Return the probability that Student's t is at most `value`: 1 - I_x(f / 2, 1 / 2) / 2 with x = f / (f + t^2)."""
    tail = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + value * value)) / 2
    return 1 - tail if value >= 0 else tail


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz's algorithm)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    ) / a  # fmt: skip
    tiny = 1e-300
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = fraction
        for step in (even, odd):
            d = 1 / _away_from_zero(1 + step * d, tiny)
            c = _away_from_zero(1 + step / c, tiny)
            fraction *= c * d
        if abs(fraction - before) < 1e-15 * abs(fraction):
            break
    return front * fraction


def _away_from_zero(value: float, least: float) -> float:
    return value if abs(value) > least else least


__all__ = [
    "DRAWS",
    "EXACT",
    "LEVEL",
    "SIGNIFICANT",
    "Paired",
    "Summary",
    "deviation",
    "holm",
    "incomplete_beta",
    "paired",
    "pooled_deviation",
    "sign_flip_p",
    "student_distribution",
    "student_quantile",
    "summary",
]
