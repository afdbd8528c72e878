"""Settings do what they say everywhere, and those that can mean nothing are named."""

from __future__ import annotations

import pytest
import torch

import eclose as ec
from eclose.algebra.errors import EcloseWarning, RequestError
from eclose.cli.searching import read_settings
from eclose.strategies import STRATEGIES
from eclose.strategies.gradient.named import recipe_of
from eclose.strategies.gradient.recipe import Recipe

SMALL = {"channels": 4, "cells": 1, "batch_size": 50, "retrain": 0, "checkpoint_every": 1}
DIGITS = "digits:subset=100"


def search(strategy, **settings):
    return ec.search("nasbench201", ec.task(DIGITS), strategy, **{**SMALL, "epochs": 1, **settings})


def test_a_selection_begins_with_the_checkpoint_of_the_searchs_own_term(tmp_path):
    run = search("darts-es", epochs=18, guard_limit=1e-4, out=tmp_path / "run")
    assert run.stopped.startswith("the dominant eigenvalue")
    again = ec.select(run)
    assert (again.epoch, again.term) == (11, run.best.term)
    page = run.report().read_text()
    assert "It was stopped: the dominant eigenvalue" in page


def test_a_selection_is_made_anew_when_its_checkpoint_has_changed(tmp_path):
    first = search("darts", seed=0, epochs=2, out=tmp_path / "first")
    second = search("darts", seed=1, epochs=2, out=tmp_path / "second")
    before = ec.select(first, epoch=1)
    assert ec.select(first, epoch=1).seconds == before.seconds  # taken from the file
    checkpoint = "checkpoints/epoch-0001.pt"
    (tmp_path / "first" / checkpoint).write_bytes((tmp_path / "second" / checkpoint).read_bytes())
    after = ec.select(first, epoch=1)
    assert after.score == ec.select(second, epoch=1).score
    assert after.seconds != before.seconds


@pytest.mark.parametrize("strategy", ["rs-ws", "enas"])
def test_sampled_selections_keep_the_limits(strategy):
    settings = (
        {"samples": 60, "controller_steps": 1, "controller_samples": 1} if strategy == "enas" else {"samples": 60}
    )
    run = search(strategy, most_skips=1, least_features=2, **settings)
    names = [child.name for child in run.best.term.children]
    assert names.count("id") <= 1
    assert names.count("conv") >= 2
    with pytest.raises(RequestError, match="within its limits"):
        search(strategy, least_features=6, **{**settings, "samples": 1})


def test_the_log_derives_terms_within_the_limits(tmp_path):
    run = search("darts", epochs=2, most_skips=0, out=tmp_path / "run")
    from eclose.runs import Run

    for event in Run.open(tmp_path / "run").of_kind("architecture"):
        assert "id" not in [child.name for child in ec.parse(event["term"]).children]
    assert "id" not in [child.name for child in run.best.term.children]


def test_a_first_stage_has_all_operations():
    with pytest.raises(RequestError, match="a first stage has all operations"):
        search("drnas", epochs=2, stages="1:2:2 1:2:2")


def test_pruned_simplex_weights_are_on_the_simplex(tmp_path):
    run = search("gaea", epochs=2, stages="1:2:0 1:2:2", frozen=5, without_none=False, out=tmp_path / "run")
    from eclose.runs import Run

    last = Run.open(run.path).of_kind("architecture")[-1]["weights"]
    for values in last.values():
        assert sum(values) == pytest.approx(1.0, abs=1e-5)
        assert sum(value > 0 for value in values) == 2


def test_none_may_be_left_out(tmp_path):
    run = search("gaea", epochs=2, out=tmp_path / "run")
    from eclose.runs import Run

    assert recipe_of(STRATEGIES.get("gaea"), "nasbench201").without_none
    for event in Run.open(run.path).of_kind("architecture"):
        assert all(values[0] == 0.0 and sum(values) == pytest.approx(1.0, abs=1e-5)
                   for values in event["weights"].values())  # fmt: skip
    with pytest.raises(RequestError, match="without_none=true goes with the mixtures"):
        search("gdas", without_none=True)


def test_settings_that_mean_nothing_are_named(tmp_path):
    with pytest.warns(EcloseWarning, match="radius= is not used: there is no perturbation"):
        search("darts", radius=0.2, out=tmp_path / "run")
    for strategy in STRATEGIES:
        if STRATEGIES.get(strategy.name).kind == "gradient":
            assert recipe_of(STRATEGIES.get(strategy.name), "darts").unused() == {}, strategy.name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"momentum": 5.0}, "momentum must be at least 0 and below 1"),
        ({"architecture_beta1": 1.5}, "architecture_beta1 must be"),
        ({"nesterov": True, "momentum": 0.0}, "nesterov=true needs a momentum"),
    ],
)
def test_numbers_that_no_optimiser_takes_are_refused(settings, message):
    with pytest.raises(RequestError, match=message):
        Recipe().with_settings(settings)


def test_a_supernet_without_a_finite_loss_is_refused_before_it_is_trained(tmp_path):
    with pytest.raises(RequestError, match="no finite loss to begin with"):
        ec.search("activation", ec.task(DIGITS), "darts", epochs=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_weight_decay_of_a_return_reaches_the_second_order_step():
    from eclose.strategies.gradient.search import GradientSearch

    recipe = recipe_of(STRATEGIES.get("darts-2nd"), "nasbench201", {"channels": 4, "cells": 1})
    search = GradientSearch(ec.space("nasbench201"), ec.task(DIGITS), recipe)
    gradients = []
    for decay in (3e-4, 3e-1):
        search.returns = [{"weight_decay": decay}]
        made = search.made(0)
        made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(0))
        loop = search.loop(made, 0)
        loop.model.train()
        torch.manual_seed(0)
        loop.step.parts[0](loop, {name: loop.feeds[name].batch(0, 0) for name in ("train", "valid")})
        gradients.append(torch.cat([alpha.grad for alpha in made.supernet.alphas.values()]))
    assert not torch.allclose(gradients[0], gradients[1], rtol=1e-3)


def test_settings_of_strategies_with_a_hyphen_can_be_set():
    assert read_settings(["pc-darts.weight-decay=0.1", "batch-size=3"]) == {
        "pc-darts.weight_decay": 0.1,
        "batch_size": 3,
    }
