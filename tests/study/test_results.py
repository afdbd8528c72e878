"""Whatever an evaluator returns is a result or a failed one; budgets, the best trial and the front."""

from types import SimpleNamespace

import numpy
import pytest
import torch

import eclose as ec
from eclose.study.budget import Budget, as_budget
from eclose.study.results import DONE, FAILED, Objective, Result, Trial, as_result, best_trial, failed, front

TERM = ec.parse("conv")
SCORE = (Objective(),)


@pytest.mark.parametrize(
    "value",
    [0.5, numpy.float64(0.5), torch.tensor(0.5), {"score": numpy.float32(0.5)}, Result(DONE, {"score": 0.5})],
    ids=["number", "numpy", "tensor", "mapping", "result"],
)
def test_numbers_of_any_library_become_plain_ones(value):
    result = as_result(value, SCORE)
    assert result == Result(DONE, {"score": 0.5}) and type(result.objectives["score"]) is float


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "score is nan"),
        ({"score": 1.0, "seconds": float("inf")}, "seconds is inf"),
        ({"score": -float("inf")}, "score is -inf"),
        ({"accuracy": 1.0}, "lacks the objective 'score' (it has: accuracy)"),
        ({}, "lacks the objective 'score' (it has: none)"),
        (None, "the evaluator returned NoneType"),
        ("good", "the evaluator returned str"),
        ({"score": "0.5"}, "score is str, not a number"),
        (Result(DONE, {"score": None}), "score is NoneType, not a number"),
        ({"score": torch.ones(2)}, "score is Tensor, not a number"),
        (SimpleNamespace(status="fine", objectives={"score": 1.0}), "status is 'fine'"),
    ],
)
def test_anything_else_is_a_failed_result_with_its_reason(value, reason):
    result = as_result(value, SCORE)
    assert result.status == FAILED and reason in result.reason


def test_a_failed_result_keeps_its_finite_numbers():
    result = as_result(Result(FAILED, {"score": float("nan"), "seconds": 3.0}, "diverged"), SCORE)
    assert result == Result(FAILED, {"seconds": 3.0}, "diverged")


def trials(*values):
    return [Trial(n, TERM, 0, result=as_result(value, (Objective("a"),))) for n, value in enumerate(values)]


def test_the_best_trial_is_the_earliest_of_equals_in_its_direction():
    some = [*trials({"a": 1}, {"a": 3}, {"a": 3}, {"a": 2}), Trial(4, TERM, 0, result=failed("no")), Trial(5, TERM, 0)]
    assert best_trial(some, Objective("a")).number == 1
    assert best_trial(some, Objective("a", "minimise")).number == 0
    assert best_trial(some[4:], Objective("a")) is None


def test_the_front_holds_what_nothing_beats():
    some = trials({"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 3, "b": 3}, {"a": 3, "b": 4}, {"a": 0, "b": 0.5})
    wanted = (Objective("a"), Objective("b", "minimise"))
    assert [trial.number for trial in front(some, wanted)] == [0, 1, 2, 4]


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        (40, Budget(trials=40)),
        ("40", Budget(trials=40)),
        ("90s", Budget(seconds=90)),
        ("1.5h", Budget(seconds=5400)),
        (" 2 d ", Budget(seconds=172_800)),
    ],
)
def test_budgets_are_read(text, budget):
    assert as_budget(text) == budget


def test_a_time_is_simulated_where_the_evaluator_says_so():
    assert as_budget("20000s", simulated=True) == Budget(simulated=20000)


@pytest.mark.parametrize("text", ["", "ten", "1.5", "-3", 0, -1, True, None, "0s", "5 weeks"])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(ec.RequestError, match="budget"):
        as_budget(text)


def test_an_objective_has_a_direction():
    with pytest.raises(ec.RequestError, match="did you mean 'maximise'"):
        Objective("score", "maximize")
