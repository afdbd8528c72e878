"""The selection by perturbation: what is measured, what is kept, what is tuned in between."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import eclose as ec
from eclose.operations.mixture import Mixture
from eclose.strategies.gradient.selection import select
from eclose.strategies.gradient.selection.measuring import Measurement
from eclose.strategies.gradient.selection.perturbation import without
from eclose.strategies.gradient.selection.tuning import PartlyDecided, tuning
from eclose.train.schedules import Position
from support.small_supernets import context_of, planted, scripted

NB201 = {"channels": 4, "cells": 1}


def same(first, second) -> bool:
    """Whether two selections are equal to the last bit."""
    return (first.term, first.decisions, first.score, first.steps) == (
        second.term, second.decisions, second.score, second.steps,
    )  # fmt: skip


def state_of(context):
    return {name: tensor.clone() for name, tensor in context.supernet.net.state_dict().items()}


# What it finds


def test_it_finds_the_operation_that_carries_the_signal_though_the_weights_say_otherwise():
    by_weight = select("magnitude", planted())
    assert list(by_weight.decisions.values()) == [(0,)] * 3  # zero
    assert by_weight.score < 20
    found = select("perturbation", planted(settings={"interval": 1}))
    assert list(found.decisions.values()) == [(2,)] * 3  # conv
    assert found.score > 45
    assert str(found.term).count("conv") == 4


def test_by_the_loss_it_finds_the_same():
    found = select("perturbation", planted(settings={"interval": 1, "criterion": "loss"}))
    assert set(found.decisions.values()) == {(2,)}
    assert all(step["scores"][2] == max(step["scores"]) for step in found.steps)


def test_tuning_alone_does_not_find_it():
    found = select("perturbation", planted(settings={"interval": 1, "choose": "magnitude"}))
    assert set(found.decisions.values()) == {(0,)}


# What is measured


def test_an_operation_is_taken_out_without_changing_the_weight_of_the_others():
    context = planted()
    net = context.supernet.net
    (name, *_) = context.supernet.choices
    weights = PartlyDecided(context.rule).weights(context.supernet.alphas)
    alpha = np.array([1.0, -4.0, 0.0])
    theta = np.exp(alpha) / np.exp(alpha).sum()
    seen = []
    hooks = [
        module.register_forward_hook(lambda module, given, result: seen.append((given, result)))
        for module in net.modules()
        if isinstance(module, Mixture)
    ]
    context.score({**weights, name: without(weights[name], 2)}, batches=1)
    for hook in hooks:
        hook.remove()
    assert len(seen) == 3
    for (inputs, given), result in seen:
        taken = float(given.values[2]) == 0.0
        assert inputs[0] is None  # zero
        wanted = theta[1] * inputs[1].double() + (0.0 if taken else theta[2]) * inputs[2].double()
        assert torch.allclose(result.double(), wanted, atol=1e-5)
    assert sum(float(given.values[2]) == 0.0 for (_, given), _ in seen) == 1
    assert torch.equal(weights[name].values, torch.softmax(torch.tensor(alpha).float(), -1))  # left as they were


def test_measuring_leaves_the_supernet_as_it_is():
    context = planted()
    before = state_of(context)
    measure = Measurement(context, "score", 0)
    first = measure(PartlyDecided(context.rule).weights(context.supernet.alphas))
    assert measure(PartlyDecided(context.rule).weights(context.supernet.alphas)) == first
    after = context.supernet.net.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)


def test_the_darts_cells_take_120_measurements_each():
    base = context_of("darts", subset=100, channels=4, cells=3, step="none")
    seen = []

    def script(weights):
        choices = {name: weights[name].values for name in base.supernet.choices}
        taken = [name for name, values in choices.items() if values is not None and 0.0 in values.tolist()]
        seen.append((taken, sum(values is None for values in choices.values())))
        return {"score": 50.0, "loss": 1.0}

    context = scripted(dataclasses.replace(base, settings={"interval": 1, "batches": 1}), script)
    found = select("perturbation", context)
    for cell in ("normal", "reduction"):
        own = [step for step in found.steps if step["choice"].startswith(cell)]
        operations = [step for step in own if base.supernet.sites[step["choice"]].kind == "choice"]
        assert sum(len(step["scores"]) for step in operations) == 14 * 7
        assert sum(score is not None for step in own for score in step["scores"]) == 98 + 22 == 120
    assert context.calls == 240 + 1  # and the selected architecture
    # A choice at a time is looked at, the reduction cell's with the normal cell's already decided.
    for number, (taken, decided) in enumerate(seen[: 2 * 98]):
        assert decided == number // 7
        assert [name.partition("/")[0] for name in taken] == [("normal", "reduction")[decided % 2]]
    # Ties: the first operation is kept, and of the edges the first ones go.
    assert all(found.decisions[name] == (0,) for name, site in base.supernet.choices.items())
    assert found.decisions["normal/5"] == (3, 4)
    assert found.decisions["reduction/3"] == (1, 2)
    assert found.decisions["normal/2"] == (0, 1)


def by_alternative(weights):
    """Score and loss by which alternative of an edge is missing; whole mixtures lose nothing."""
    missing = [
        index
        for mixture in weights.values()
        if mixture.values is not None
        for index, value in enumerate(mixture.values.tolist())
        if value == 0.0
    ]
    lost = {0: 3.0, 1: 7.0, 2: 5.0, 3: 1.0, 4: 7.0}
    total = sum(lost[index] for index in missing)
    return {"score": 50.0 - total, "loss": 1.0 + total}


@pytest.mark.parametrize(
    ("criterion", "direction", "kept"),
    [("score", "maximise", 1), ("loss", "maximise", 1), ("score", "minimise", 3), ("loss", "minimise", 1)],
)
def test_what_is_missed_most_is_kept_by_either_criterion(criterion, direction, kept):
    """The lowest score is worst, the highest where it is minimised, the highest loss always; ties: the first."""
    base = context_of("nasbench201", subset=100, **NB201, step="none")
    metric = SimpleNamespace(direction=direction, measure=base.task.metric.measure)
    context = scripted(
        dataclasses.replace(
            base, settings={"interval": 1, "criterion": criterion}, task=SimpleNamespace(metric=metric)
        ),
        by_alternative,
    )
    found = select("perturbation", context)
    assert set(found.decisions.values()) == {(kept,)}
    assert len(found.steps) == 6


def test_a_measurement_that_is_no_number_is_the_worst():
    base = context_of("nasbench201", subset=100, **NB201, step="none")

    def script(weights):
        gone = [m.values for m in weights.values() if m.values is not None and float(m.values[4]) == 0.0]
        return {"score": math.nan if gone else 10.0, "loss": 1.0}

    found = select("perturbation", scripted(dataclasses.replace(base, settings={"interval": 1}), script))
    assert set(found.decisions.values()) == {(4,)}
    assert all(step["scores"][4] is None and step["scores"][0] == 10.0 for step in found.steps)


def test_an_edge_is_removed_whose_removal_leaves_the_best_score():
    base = context_of("darts", subset=100, channels=4, cells=3, step="none")
    loved = {"normal/5": (1, 3), "reduction/4": (0, 2)}

    def script(weights):
        lost = sum(10.0 for name, edges in loved.items() for edge in edges if not weights[name].needs(edge))
        return {"score": 90.0 - lost, "loss": lost}

    context = scripted(dataclasses.replace(base, settings={"interval": 1}), script)
    found = select("perturbation", context)
    assert {name: found.decisions[name] for name in loved} == loved
    removals = [step["epoch"] for step in found.steps if step["choice"] == "normal/5"]
    assert len(removals) == 3
    assert len(set(removals)) == 1  # no tuning between the removals of a node


def test_none_is_never_kept_on_the_edge_of_a_node_but_is_part_of_the_mixture():
    base = context_of("darts-with-none", subset=100, channels=4, cells=3, step="none")
    context = scripted(dataclasses.replace(base, settings={"interval": 1}), lambda _: {"score": 5.0, "loss": 1.0})
    found = select("perturbation", context)
    for name, site in base.supernet.choices.items():
        assert site.zeros
        assert found.decisions[name][0] not in site.zeros
        scores = next(step["scores"] for step in found.steps if step["choice"] == name)
        assert [index for index, score in enumerate(scores) if score is None] == list(site.zeros)


# What is tuned


def test_the_learning_rate_falls_from_a_tenth_of_the_search_to_a_thousandth():
    def rates(**recipe):
        context = context_of("nasbench201", subset=100, **NB201, **recipe)
        loop = tuning(context, PartlyDecided(context.rule), epochs=25, rate=0.0, train_alphas=True, seed=0)
        return [loop.groups["weights"].schedule(Position(epoch, 0, 25, 1)) for epoch in (0, 12.5, 25)]

    assert rates() == pytest.approx([0.0025, 0.00175, 0.001])
    assert rates(rate_end=0.0) == pytest.approx([0.0025, 0.00125, 0.0])
    assert rates(rate=0.005) == pytest.approx([0.0005] * 3)


def test_alphas_rest_once_every_operation_is_decided():
    context = context_of("nasbench201", subset=100, **NB201)
    loop = tuning(
        context, PartlyDecided(context.rule), epochs=5, rate=0.0, train_alphas=True, seed=0, rests_from=3
    )  # fmt: skip
    feeds = [[part.feeds for part in loop.step.active(Position(epoch, 0, 5, 1))] for epoch in range(5)]
    assert feeds == [[("valid",), ("train",)]] * 3 + [[("train",)]] * 2


def test_of_a_decided_edge_nothing_else_is_evaluated():
    context = planted()
    rule = PartlyDecided(context.rule)
    first, _, third = context.supernet.choices
    rule.decided = {first: (2,), third: (2,)}
    evaluated = []
    for module in context.supernet.net.modules():
        if isinstance(module, Mixture):
            module.register_forward_hook(
                lambda module, given, result: evaluated.append([value is not None for value in given[0]])
            )
    context.score(rule.weights(context.supernet.alphas), batches=1)
    assert evaluated == [[False, False, True], [False, True, True], [False, False, True]]  # zero is never computed


@pytest.mark.parametrize("train_alphas", [True, False])
def test_alphas_of_undecided_edges_train_only_where_they_may(train_alphas):
    context = context_of("nasbench201", subset=100, **NB201, settings={"interval": 1, "train_alphas": train_alphas})
    before = {name: alpha.detach().clone() for name, alpha in context.supernet.alphas.items()}
    weights = {name: p.detach().clone() for name, p in context.supernet.net.layers.named_parameters()}
    select("perturbation", context)
    moved = [not torch.equal(before[name], alpha) for name, alpha in context.supernet.alphas.items()]
    assert any(moved) is train_alphas
    assert any(not torch.equal(weights[name], p) for name, p in context.supernet.net.layers.named_parameters())


def test_alphas_that_a_search_never_moved_stay(tmp_path):
    context = context_of("nasbench201", subset=100, **NB201, step="none", settings={"interval": 1})
    before = {name: alpha.detach().clone() for name, alpha in context.supernet.alphas.items()}
    select("perturbation", context)
    assert all(torch.equal(before[name], alpha) for name, alpha in context.supernet.alphas.items())


@pytest.mark.parametrize(
    "recipe",
    [
        {"mixture": "gumbel", "step": "single-level"},
        {"mixture": "hard-gumbel"},
        {"mixture": "sampled", "step": "single-level"},
        {"mixture": "dirichlet", "regulariser": "dirichlet-kl", "regulariser_weight": 0.1},
        {"mixture": "simplex", "architecture_optimiser": "exponentiated"},
        {"mixture": "proximal"},
        {"mixture": "two-path"},
        {"mixture": "uniform-path"},
        {"mixture": "controller"},
        {"step": "second-order"},
        {"partial": 2, "edge_normalisation": True},
    ],
    ids=lambda recipe: "-".join(map(str, recipe.values())),
)
def test_it_works_for_every_mixture(recipe):
    context = context_of("nasbench201", subset=100, **NB201, **recipe, settings={"interval": 1, "batches": 1})
    found = select("perturbation", context)
    assert found.term in context.supernet.space
    assert len(found.steps) == 6
    assert math.isfinite(found.score)


def test_constraints_are_kept():
    base = context_of("nasbench201", subset=100, **NB201, step="none", most_skips=2)
    skip = base.supernet.sites["cell/1_0"].skips[0]

    def script(weights):
        lost = 0.0
        for number, (_, mixture) in enumerate(sorted(weights.items())):
            if mixture.values is not None and float(mixture.values[skip]) == 0.0:
                lost += 10.0 + number  # the later an edge, the more it needs its skip connection
            if mixture.values is not None and float(mixture.values[3]) == 0.0:
                lost += 5.0
        return {"score": 90.0 - lost, "loss": lost}

    context = scripted(dataclasses.replace(base, settings={"interval": 1}), script)
    found = select("perturbation", context)
    kept = [found.decisions[name][0] for name in sorted(found.decisions)]
    assert kept == [3, 3, 3, 3, skip, skip]


# Kills and mistakes


def small(state=None, **settings):
    return context_of("nasbench201", subset=150, **NB201, settings={"interval": 2, **settings}, state=state)


def interrupted(context, decisions):
    """Let a selection be stopped in the middle of telling about a decision."""

    def watch(kind, what):
        if what[0] == decisions:
            raise KeyboardInterrupt

    context.watch = watch
    with pytest.raises(KeyboardInterrupt):
        select("perturbation", context)


def test_killed_and_resumed_it_gives_the_bits_of_the_undisturbed_one(tmp_path):
    undisturbed = small()
    wanted = select("perturbation", undisturbed)
    for decisions in (2, 4, 6):
        interrupted(small(tmp_path / "state.pt"), decisions)
    assert (tmp_path / "state.pt").exists()
    told = []
    context = small(tmp_path / "state.pt")
    context.watch = lambda kind, what: told.append(what)
    found = select("perturbation", context)
    assert same(found, wanted)
    assert [done for done, total, text in told] == [6]  # it did not begin again
    left, right = undisturbed.supernet.net.state_dict(), context.supernet.net.state_dict()
    assert all(torch.equal(left[key], right[key]) for key in left)
    # One that came to its end is not done again, whatever happens next.
    again = small(tmp_path / "state.pt")
    again.watch = lambda kind, what: pytest.fail("it was done again")
    assert same(select("perturbation", again), wanted)


def test_the_state_of_another_selection_is_left_out(tmp_path):
    interrupted(small(tmp_path / "state.pt"), 4)
    other = small(tmp_path / "state.pt", criterion="loss")
    assert same(select("perturbation", other), select("perturbation", small(criterion="loss")))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"intervall": 2}, "did you mean 'interval'"),
        ({"interval": 0}, "interval is at least 1"),
        ({"interval": 2.5}, "whole number"),
        ({"criterion": "accuracy"}, "'score' or 'loss'"),
        ({"choose": "magnitud"}, "did you mean 'magnitude'"),
        ({"topology": True}, "keeps all its edges"),
        ({"topology": 1}, "true or false"),
        ({"tuning_rate": -1.0}, "tuning_rate is at least 0"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    context = context_of("nasbench201", subset=100, **NB201, settings=settings)
    with pytest.raises(ec.RequestError, match=message):
        select("perturbation", context)
