"""Figures of mixture weights, worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from eclose.algebra.errors import RequestError
from eclose.diagnose.weights import dominant, entropies, entropy, margin, mean_entropy


def test_entropy_is_one_where_nothing_and_zero_where_all_is_decided():
    for count in (2, 3, 8):
        assert entropy([1 / count] * count) == pytest.approx(1.0, abs=1e-12)
        assert entropy([0.0] * (count - 1) + [1.0]) == 0.0
    assert entropy([1.0]) == 0.0
    assert entropy([0.0, 0.0]) == 0.0


def test_entropy_against_torch():
    theta = torch.randn(7, generator=torch.Generator().manual_seed(0), dtype=torch.float64).softmax(0)
    expected = float(torch.distributions.Categorical(probs=theta).entropy()) / math.log(7)
    assert entropy(theta) == pytest.approx(expected, rel=1e-12)
    assert entropy((3 * theta).tolist()) == pytest.approx(expected, rel=1e-12)  # proportions alone


def test_entropies_by_choice_and_their_mean():
    weights = {"a": [0.5, 0.5], "b": torch.tensor([1.0, 0.0, 0.0]), "c": [0.5, 0.5, 0.0, 0.0]}
    assert entropies(weights) == {"a": 1.0, "b": 0.0, "c": 0.5}
    assert mean_entropy(weights) == 0.5
    assert mean_entropy({}) == 0.0


def test_dominant_counts_the_choices_that_an_alternative_leads():
    weights = {
        "skip leads": [0.2, 0.5, 0.3],
        "skip does not": [0.6, 0.3, 0.1],
        "no skip here": [0.9, 0.1],
        "second skip leads": [0.1, 0.2, 0.7],
        "tied, skip later": [0.4, 0.4, 0.2],
    }
    skips = {"skip leads": [1], "skip does not": [1], "second skip leads": [0, 2], "tied, skip later": [1]}
    assert dominant(weights, skips) == 2
    assert dominant(weights, {"tied, skip later": [0]}) == 1
    assert dominant(weights, {}) == 0


def test_margin_is_the_mean_over_choices_with_both():
    weights = {"a": [0.7, 0.3], "b": torch.tensor([0.125, 0.5, 0.25, 0.125]), "c": [0.4, 0.6]}
    skips = {"a": [0], "b": [0], "c": []}
    convolutions = {"a": [1], "b": [1, 2], "c": [0, 1]}
    # (0.7 - 0.3 + 0.125 - 0.375) / 2
    assert margin(weights, skips, convolutions) == pytest.approx(0.075)
    assert margin(weights, {}, convolutions) is None
    assert margin({"even": [0.2] * 5}, {"even": [0]}, {"even": [1, 2, 3]}) == pytest.approx(0.0)


def test_what_is_no_weight_is_refused():
    with pytest.raises(RequestError, match="not below zero"):
        entropy([0.5, -0.1])
    with pytest.raises(RequestError, match="empty"):
        entropy([])
    with pytest.raises(RequestError, match="no weights of choice 'b'"):
        dominant({"a": [1.0]}, {"b": [0]})
    with pytest.raises(RequestError, match="alternatives 0 to 1, not 2"):
        margin({"a": [0.5, 0.5]}, {"a": [2]}, {"a": [0]})
