"""Operation strength on scores that are written down."""

from __future__ import annotations

import pytest

from eclose.algebra.errors import RequestError
from eclose.diagnose.strength import strength

SCORES = {"agrees": [50.0, 60.0, 70.0], "contradicts": [70.0, 60.0, 50.0], "half": [60.0, 50.0, 70.0], "flat": [1, 1]}
WEIGHTS = {"agrees": [0.1, 0.3, 0.6], "contradicts": [0.1, 0.3, 0.6], "half": [0.1, 0.3, 0.6], "flat": [0.9, 0.1]}


def score(choice: str, index: int) -> float:
    return SCORES[choice][index]


def test_tau_of_each_choice_and_their_mean():
    found = strength(score, WEIGHTS)
    assert {name: choice.tau for name, choice in found.choices.items()} == {
        "agrees": 1.0,
        "contradicts": -1.0,
        "half": pytest.approx(1 / 3),  # two of three pairs agree
        "flat": None,
    }
    assert found.tau == pytest.approx((1 - 1 + 1 / 3) / 3)  # the flat one has no say
    assert found.choices["half"].scores == [60.0, 50.0, 70.0]
    assert found.choices["half"].weights == [0.1, 0.3, 0.6]


def test_some_choices_only_with_progress():
    asked, seen = [], []

    def asking(choice: str, index: int) -> float:
        asked.append((choice, index))
        return score(choice, index)

    found = strength(asking, WEIGHTS, choices=["flat", "agrees"], watch=lambda done, total: seen.append((done, total)))
    assert asked == [("flat", 0), ("flat", 1), ("agrees", 0), ("agrees", 1), ("agrees", 2)]
    assert seen == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]
    assert list(found.choices) == ["flat", "agrees"]
    assert found.tau == 1.0


def test_without_a_tau_there_is_no_mean():
    assert strength(score, WEIGHTS, choices=["flat"]).tau is None
    assert strength(score, {}).tau is None


def test_an_unknown_choice_is_refused_before_anything_is_scored():
    asked = []
    with pytest.raises(RequestError, match="did you mean 'agrees'"):
        strength(lambda choice, index: asked.append(1) or 0.0, WEIGHTS, choices=["half", "agres"])
    assert not asked
