"""Intervals and tests against published tables, brute force and identities."""

import math
import random
import statistics
from itertools import product

import pytest

from eclose.study.statistics import (
    DRAWS,
    deviation,
    holm,
    incomplete_beta,
    paired,
    pooled_deviation,
    sign_flip_p,
    student_distribution,
    student_quantile,
    summary,
)

# Upper quantiles of Student's t as tables print them (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
TABLE = {
    (0.90, 1): 3.078, (0.95, 1): 6.314, (0.975, 1): 12.706, (0.99, 1): 31.821, (0.995, 1): 63.657,
    (0.975, 2): 4.303, (0.975, 3): 3.182, (0.975, 4): 2.776, (0.95, 5): 2.015, (0.975, 5): 2.571,
    (0.99, 5): 3.365, (0.975, 9): 2.262, (0.975, 10): 2.228, (0.95, 20): 1.725, (0.975, 30): 2.042,
    (0.995, 30): 2.750, (0.975, 100): 1.984,
}  # fmt: skip


@pytest.mark.parametrize(("place", "printed"), TABLE.items(), ids=str)
def test_quantiles_are_those_that_tables_print(place, printed):
    assert student_quantile(*place) == pytest.approx(printed, abs=5.01e-4)


def test_quantiles_where_there_is_a_formula():
    for probability in (0.6, 0.9, 0.975, 0.999):
        one = math.tan(math.pi * (probability - 0.5))  # t with 1 degree of freedom is Cauchy's
        spread = 2 * probability - 1
        two = spread * math.sqrt(2 / (1 - spread**2))
        assert student_quantile(probability, 1) == pytest.approx(one, rel=1e-10)
        assert student_quantile(probability, 2) == pytest.approx(two, rel=1e-10)
        assert student_quantile(1 - probability, 2) == pytest.approx(-two, rel=1e-10)
        normal = statistics.NormalDist().inv_cdf(probability)
        assert student_quantile(probability, 1e7) == pytest.approx(normal, abs=1e-5)
    assert student_quantile(0.975, 4) == pytest.approx(2.7764451051977987, abs=1e-10)


@pytest.mark.parametrize("freedom", [1, 3, 4, 7, 19])
def test_the_distribution_is_the_integral_of_the_density(freedom):
    scale = math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)
    steps = 20_000
    for value in (0.3, 1.0, 2.5):
        points = [scale * (1 + (value * i / steps) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps + 1)]
        integral = value / steps * (sum(points) - (points[0] + points[-1]) / 2)
        assert student_distribution(value, freedom) == pytest.approx(0.5 + integral, abs=1e-8)
        assert student_distribution(-value, freedom) == pytest.approx(0.5 - integral, abs=1e-8)


def test_the_incomplete_beta_function_of_whole_numbers_is_a_binomial_tail():
    for a, b in ((1, 1), (2, 5), (7, 3), (30, 20)):
        for x in (0.0, 0.01, 0.3, 0.5, 0.77, 1.0):
            n = a + b - 1
            tail = sum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
            assert incomplete_beta(a, b, x) == pytest.approx(tail, abs=1e-12)


def test_a_summary_of_known_numbers():
    # Student's own example (1908): the additional hours of sleep of ten patients by the second drug, less the first.
    sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    found = summary(sleep)
    assert found.mean == pytest.approx(1.58)
    assert found.deviation == pytest.approx(1.2299955, abs=1e-6)
    assert found.interval == pytest.approx((0.7001142, 2.4598858), abs=1e-6)
    assert paired(sleep, [0.0] * 10).p == pytest.approx(4 / 1024)


def test_too_few_numbers_have_no_interval():
    assert summary([3.0]).interval is None
    assert deviation([3.0]) is None
    assert math.isnan(summary([]).mean)
    assert paired([], []).p is None
    with pytest.raises(ValueError, match="cannot be paired"):
        paired([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="no quantile"):
        student_quantile(1.0, 3)


def test_intervals_hold_the_mean_as_often_as_they_say():
    rng = random.Random(0)
    held = 0
    for _ in range(2000):
        low, high = summary([rng.gauss(5.0, 2.0) for _ in range(4)]).interval
        held += low <= 5.0 <= high
    assert 0.935 < held / 2000 < 0.965  # three standard errors around 0.95


def test_the_deviation_within_groups():
    assert pooled_deviation([[1.0, 2.0, 4.0]]) == pytest.approx(statistics.stdev([1.0, 2.0, 4.0]))
    # Two groups of two: the root of the mean of their variances, whatever their means.
    assert pooled_deviation([[0.0, 2.0], [100.0, 104.0]]) == pytest.approx(math.sqrt((2 + 8) / 2))
    assert pooled_deviation([[0.0, 2.0], [7.0]]) == pytest.approx(math.sqrt(2))
    assert pooled_deviation([[1.0], [2.0], []]) is None


def brute_force(differences):
    observed = abs(sum(differences))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    return sum(value >= observed - 1e-9 for value in sums) / len(sums)


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_the_sign_flip_test_against_all_patterns(count):
    rng = random.Random(count)
    for _ in range(20):
        differences = [rng.choice([rng.gauss(0.4, 1), 0.0, 0.1, 0.2, 0.3]) for _ in range(count)]
        assert sign_flip_p(differences) == pytest.approx(brute_force(differences))


def test_extremes_of_the_sign_flip_test():
    assert sign_flip_p([1.0, 2.0, 3.0, 4.0, 5.0]) == 2 / 32
    assert paired([1.0] * 5, [0.0] * 5).smallest == 2 / 32
    assert sign_flip_p([0.0, 0.0]) == 1.0
    assert sign_flip_p([0.1, 0.2, -0.3]) == 1.0  # a sum that is zero but for rounding


def test_fisher_s_own_example():
    # Darwin's maize (Fisher 1935, section 21): of 32,768 patterns 863 have a sum as large, on either side 1,726.
    differences = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert brute_force(differences) == pytest.approx(1726 / 32768)
    drawn = paired(differences, [0] * 15)
    assert not drawn.exact
    error = math.sqrt(0.0527 * 0.9473 / DRAWS)
    assert drawn.p == pytest.approx(1726 / 32768, abs=4 * error)
    assert drawn == paired(differences, [0] * 15)
    assert drawn.p != paired(differences, [0] * 15, seed=1).p


def test_a_test_of_nothing_is_rarely_significant():
    rng = random.Random(1)
    significant = sum(sign_flip_p([rng.gauss(0, 1) for _ in range(7)]) <= 0.05 for _ in range(2000))
    assert significant / 2000 < 0.065


def test_holm_s_correction():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []
    rng = random.Random(3)
    ps = [rng.random() ** 3 for _ in range(8)]
    for level in (0.01, 0.05, 0.3, 0.9):  # the step-down procedure as it is defined
        rejected, left = set(), sorted(range(8), key=lambda i: ps[i])
        while left and ps[left[0]] <= level / len(left):
            rejected.add(left.pop(0))
        assert {i for i, p in enumerate(holm(ps)) if p <= level} == rejected
