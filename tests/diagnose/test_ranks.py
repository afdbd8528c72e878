"""Rank correlations against their definitions, pair by pair."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from eclose.algebra.errors import RequestError
from eclose.diagnose.ranks import kendall, regret, spearman


def sign(number: float) -> int:
    return (number > 0) - (number < 0)


def kendall_by_pairs(first, second) -> float | None:
    difference = untied_first = untied_second = 0
    for (a, b), (c, d) in itertools.combinations(zip(first, second, strict=True), 2):
        difference += sign(a - c) * sign(b - d)
        untied_first += a != c
        untied_second += b != d
    product = untied_first * untied_second
    return difference / math.sqrt(product) if product else None


def spearman_by_counting(first, second) -> float | None:
    def ranks(values):
        return [sum(o < v for o in values) + (sum(o == v for o in values) + 1) / 2 for v in values]

    if len(first) < 2 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def cases():
    drawn = random.Random(0)
    for size in (0, 1, 2, 3, 5, 8, 17, 40):
        for levels in (1, 2, 3, 7, 1000):  # few levels: many ties
            for _ in range(4):
                yield (
                    [drawn.randrange(levels) / 8 - 1 for _ in range(size)],
                    [drawn.randrange(levels) * 1.5 for _ in range(size)],
                )


@pytest.mark.parametrize("ours, definition", [(kendall, kendall_by_pairs), (spearman, spearman_by_counting)])
def test_both_correlations_are_their_definitions(ours, definition):
    answers = set()
    for first, second in cases():
        expected = definition(first, second)
        found = ours(first, second)
        assert found == (None if expected is None else pytest.approx(expected, abs=1e-12)), (first, second)
        answers.add(expected is None)
    assert answers == {True, False}


def test_ends_of_the_scale():
    rising = np.arange(1000.0)
    for correlation in (kendall, spearman):
        assert correlation(rising, np.exp(rising / 100)) == 1.0
        assert correlation(rising, -rising) == -1.0
        assert correlation(rising, np.ones(1000)) is None
        assert correlation([], []) is None


def test_published_examples():
    """Those of SciPy's documentation."""
    assert kendall([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]) == pytest.approx(-0.47140452079103173, rel=1e-14)
    assert spearman([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]) == pytest.approx(0.8207826816681233, rel=1e-14)


def test_as_many_pairs_as_a_table_has():
    """Kendall's tau of two normal variables with correlation r tends to 2/pi arcsin r."""
    drawn = np.random.default_rng(0)
    first, noise = drawn.standard_normal((2, 20_000))
    r = 0.6
    second = r * first + math.sqrt(1 - r * r) * noise
    assert kendall(first, second) == pytest.approx(2 / math.pi * math.asin(r), abs=0.015)
    assert spearman(first, second) == pytest.approx(6 / math.pi * math.asin(r / 2), abs=0.02)


def test_regret_is_the_best_missed():
    predicted, true = [0.9, 0.1, 0.8, 0.7, 0.8], [70.0, 95.0, 80.0, 90.0, 99.0]
    assert regret(predicted, true, 1) == 29.0
    assert regret(predicted, true, 2) == 19.0  # of the two equal predictions, the earlier
    assert regret(predicted, true, 3) == 0.0
    assert regret(predicted, true, 100) == 0.0
    assert regret(true, true) == 0.0
    for first, second in cases():
        for k in (1, 3):
            if first:
                order = sorted(range(len(first)), key=lambda index: (-first[index], index))
                assert regret(first, second, k) == max(second) - max(second[index] for index in order[:k])


def test_what_has_no_ranks_is_refused():
    with pytest.raises(RequestError, match="equally long"):
        kendall([1.0, 2.0], [1.0])
    with pytest.raises(RequestError, match="nan"):
        spearman([1.0, float("nan")], [1.0, 2.0])
    with pytest.raises(RequestError, match="one or more, not 0"):
        regret([1.0], [1.0], 0)
    with pytest.raises(RequestError, match="at least one pair"):
        regret([], [])
