"""What a search will take, said before it begins."""

from __future__ import annotations

import re

import pytest

from eclose.strategies.gradient import dry_run as module
from eclose.strategies.gradient.dry_run import dry_run, supernet_cost
from eclose.train.dry_run import ROOM
from support.small_supernets import search_of

SIZE = {"channels": 4, "cells": 1}


def test_memory_is_that_of_all_alternatives_at_the_batch_size():
    search = search_of("nasbench201", subset=120, epochs=3, **SIZE)
    found = dry_run(search)
    made = search.made(0)
    spent = supernet_cost(made)
    assert found.predicted == 50 * spent.training_memory + 3 * 4 * spent.parameters
    weights = [p for name, p in made.supernet.net.named_parameters() if not name.startswith("alphas.")]
    assert found.parameters == sum(p.numel() for p in weights)
    assert found.measured is None  # on a CPU nobody counts
    assert found.fits
    assert (found.steps, found.epochs, found.batch_size) == (2, 3, 50)
    assert found.total_seconds == pytest.approx(found.seconds * 6)
    assert dry_run(search_of("nasbench201", subset=120, partial=4, **SIZE)).predicted < found.predicted


@pytest.mark.parametrize(
    "recipe",
    [
        {"mixture": "hard-gumbel", "temperature": 10.0},
        {"mixture": "controller", "step": "none"},
        {"step": "second-order"},
        {"perturbation": "adversarial", "attack_steps": 2},
        {"frozen": 1, "epochs": 2},
        {"mixture": "dirichlet", "stages": "1:4:0 1:2:3", "epochs": 2},
    ],
    ids=lambda recipe: next(iter(recipe.values())),
)
def test_steps_of_every_kind_are_measured(recipe):
    found = dry_run(search_of("nasbench201", subset=60, **SIZE, **recipe))
    assert found.fits
    assert found.seconds > 0
    assert found.stages == (2 if "stages" in recipe else 1)


def test_of_several_stages_the_largest_is_measured():
    search = search_of("nasbench201", subset=60, mixture="dirichlet", stages="1:4:0 1:2:3", epochs=2, **SIZE)
    first, second = (supernet_cost(search.made(number)) for number in range(2))
    assert second.training_memory > first.training_memory
    assert dry_run(search).predicted == second.memory(50, training=True)


def test_the_advice_about_the_batch_size_holds(monkeypatch):
    search = search_of("nasbench201", subset=60, **SIZE)
    needed = dry_run(search).predicted
    free = needed // 2
    monkeypatch.setattr(module, "available_bytes", lambda device: free)
    found = dry_run(search)
    assert not found.fits
    advised = int(re.match(r"use batch_size=(\d+)", found.advice)[1])
    spent = supernet_cost(search.made(0))
    assert spent.memory(advised, training=True) <= ROOM * free < spent.memory(advised + 1, training=True)
    assert "fewer channels=" in found.advice
    assert "partial=4" in found.advice


def test_weights_that_do_not_fit_are_said(monkeypatch):
    monkeypatch.setattr(module, "available_bytes", lambda device: 10_000)
    found = dry_run(search_of("nasbench201", subset=60, partial=2, **SIZE))
    assert found.advice.startswith("weights and data alone need")
    assert "partial=4" not in found.advice  # it has partial channels already
