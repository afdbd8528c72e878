"""Which step moves what: alphas in theirs, weights in theirs, each by its own optimiser."""

from __future__ import annotations

import pytest
import torch

from eclose.strategies import STRATEGIES
from eclose.strategies.gradient.named import recipe_of
from eclose.strategies.gradient.steps import ALPHAS, WEIGHTS, Moved, Unrolled
from support.small_supernets import search_of

SIZE = {"channels": 4, "cells": 1, "batch_size": 50, "crop": 0, "flip": False}
GRADIENT = [entry.name for entry in STRATEGIES if STRATEGIES.get(entry.name).kind == "gradient"]
BILEVEL = [name for name in GRADIENT if STRATEGIES.get(name).settings["step"] in ("first-order", "second-order")]
SINGLE = [name for name in GRADIENT if STRATEGIES.get(name).settings["step"] == "single-level"]
WEIGHTS_ALONE = [name for name in GRADIENT if STRATEGIES.get(name).settings["step"] == "none"]


def test_every_strategy_is_of_one_of_three_kinds():
    assert set(BILEVEL) | set(SINGLE) | set(WEIGHTS_ALONE) == set(GRADIENT)
    assert SINGLE == ["dsnas", "snas", "supernet-sgd"]
    assert WEIGHTS_ALONE == ["enas", "rs-ws"]


def made_of(name: str, **settings):
    recipe = recipe_of(STRATEGIES.get(name), "nasbench201", {"frozen": 0, **SIZE, **settings})
    search = search_of("nasbench201", **recipe.plain())
    made = search.made(0)
    made.rule.initialise(made.supernet.alphas, torch.Generator().manual_seed(0))
    return made, search.loop(made, 0)


def recorded(made, loop):
    """Take one step and return for each part `(its name, whether alphas moved, whether weights moved)`."""
    net = made.supernet.net.train()
    alphas = list(made.supernet.alphas.values())
    weights = loop.groups[WEIGHTS].tensors
    batches = loop.batches()
    found = []
    for part in loop.step.active(loop.position):
        before = [t.detach().clone() for t in alphas], [t.detach().clone() for t in weights]
        part(loop, batches)
        moved = [any(not torch.equal(t, old) for t, old in zip(group, kept, strict=True))
                 for group, kept in zip((alphas, weights), before, strict=True)]  # fmt: skip
        found.append((part.name, *moved))
    assert net.training
    return found


@pytest.mark.parametrize("name", BILEVEL)
def test_a_bilevel_search_moves_alphas_and_weights_apart(name):
    made, loop = made_of(name)
    assert recorded(made, loop) == [("valid", True, False), ("train", False, True)]


@pytest.mark.parametrize("name", SINGLE)
def test_a_single_level_search_moves_both_on_the_training_loss(name):
    made, loop = made_of(name)
    assert recorded(made, loop) == [("train", True, True)]


@pytest.mark.parametrize("name", WEIGHTS_ALONE)
def test_a_search_without_alphas_moves_weights_alone(name):
    made, loop = made_of(name)
    assert recorded(made, loop) == [("train", False, True)]
    assert ALPHAS not in loop.groups


@pytest.mark.parametrize("name", [*BILEVEL, *SINGLE])
def test_each_group_has_its_own_optimiser(name):
    made, loop = made_of(name)
    alphas, weights = loop.groups[ALPHAS], loop.groups[WEIGHTS]
    assert {id(t) for t in alphas.tensors} == {id(t) for t in made.supernet.alphas.values()}
    assert {id(t) for t in alphas.tensors}.isdisjoint({id(t) for t in weights.tensors})
    assert isinstance(weights.running, torch.optim.SGD)
    kind = "ExponentiatedGradient" if name.startswith("gaea") else "Adam"
    assert type(alphas.running).__name__ == kind
    recipe = recipe_of(STRATEGIES.get(name), "nasbench201")
    assert alphas.rate == recipe.architecture_rate
    assert alphas.clip is None
    assert weights.clip == recipe.clip


def test_a_first_order_step_is_adams_by_hand():
    made, loop = made_of("darts")
    above = loop.step.parts[0]
    batch = loop.batches()["valid"]
    before = {name: alpha.detach().clone() for name, alpha in made.supernet.alphas.items()}
    made.supernet.net.train()
    loss = above.objective(made.supernet.net, batch).loss
    gradients = torch.autograd.grad(loss, list(made.supernet.alphas.values()))
    above(loop, {"valid": batch})
    for (name, alpha), gradient in zip(made.supernet.alphas.items(), gradients, strict=True):
        decayed = gradient + 1e-3 * before[name]
        # The first step of Adam is rate * g / (|g| + epsilon), whatever the betas are.
        expected = before[name] - 3e-4 * decayed / (decayed.abs() + 1e-8)
        assert torch.allclose(alpha.detach(), expected, atol=1e-7)


def test_weights_first_is_the_other_order():
    made, loop = made_of("darts", order="weights-first")
    assert recorded(made, loop) == [("train", False, True), ("valid", True, False)]


def test_frozen_alphas_rest_and_then_move():
    made, loop = made_of("darts", frozen=1)
    assert recorded(made, loop) == [("train", False, True)]
    from eclose.train.schedules import Position

    later = Position(1, 0, loop.epochs, loop.position.steps)
    assert [part.name for part in loop.step.active(later)] == ["valid", "train"]


def test_frozen_alphas_of_a_single_level_rest_too():
    made, loop = made_of("supernet-sgd", frozen=1)
    assert recorded(made, loop) == [("train", False, True)]


@pytest.mark.parametrize("name", ["darts", "darts-2nd"])
def test_the_alphas_part_is_of_the_right_kind(name):
    _, loop = made_of(name)
    assert isinstance(loop.step.parts[0], Unrolled if name == "darts-2nd" else Moved)


def test_a_pairs_probability_survives_the_optimisers_step():
    """The whole step of ProxylessNAS: the others' probabilities are what they were."""
    made, loop = made_of("proxyless")
    alphas = made.supernet.alphas
    for _ in range(3):
        before = {name: torch.softmax(alpha.detach(), 0) for name, alpha in alphas.items()}
        batches, drawn = loop.batches(), {}
        original = made.rule.updated

        def kept(given, drawn=drawn, original=original):
            drawn.update({name: list(pair) for name, (pair, _) in made.rule._pairs.items()})
            original(given)

        made.rule.updated = kept
        loop.step.parts[0](loop, batches)
        made.rule.updated = original
        for name, alpha in alphas.items():
            after = torch.softmax(alpha.detach(), 0)
            others = [index for index in range(5) if index not in drawn[name]]
            assert torch.allclose(after[others], before[name][others], atol=1e-6)


def test_a_pairs_probability_survives_an_optimiser_with_momentum():
    made, loop = made_of("proxyless", architecture_beta1=0.5, architecture_rate=0.1)
    alphas = made.supernet.alphas
    for _ in range(4):
        before = {name: alpha.detach().clone() for name, alpha in alphas.items()}
        pairs: dict[str, list[int]] = {}
        original = made.rule.updated

        def kept(given, pairs=pairs, original=original):
            pairs.update({name: list(pair) for name, (pair, _) in made.rule._pairs.items()})
            original(given)

        made.rule.updated = kept
        loop.step.parts[0](loop, loop.batches())
        made.rule.updated = original
        for name, alpha in alphas.items():
            was, now = torch.softmax(before[name], 0), torch.softmax(alpha.detach(), 0)
            assert float(now[pairs[name]].sum()) == pytest.approx(float(was[pairs[name]].sum()), abs=1e-5)
