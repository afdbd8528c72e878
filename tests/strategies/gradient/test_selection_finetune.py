"""The selection by fine-tuning: what is fixed, tuned, measured and put back."""

from __future__ import annotations

import math

import pytest
import torch

import eclose as ec
from eclose.spaces import Space
from eclose.strategies.gradient.selection import finetune as module
from eclose.strategies.gradient.selection import select
from support.small_supernets import context_of, planted

NODES = """
Net -> Sequential(conv(channels=4), dag_cell(on(Op, src=0), Node), head)
Node -> pick(on(Op, src=0), on(Op, src=1), on(id, src=0), k=2)
Op -> conv | avg_pool
"""


def state_of(context):
    return {name: tensor.clone() for name, tensor in context.supernet.net.state_dict().items()}


def test_it_finds_the_operation_that_carries_the_signal():
    found = select("finetune", planted())
    assert set(found.decisions.values()) == {(2,)}
    assert found.score > 45


def test_every_alternative_begins_with_the_same_supernet_and_it_is_put_back(monkeypatch):
    context = planted(settings={"epochs": 2})
    before = state_of(context)
    begun = []
    original = module.tuning

    def watched(context, rule, **settings):
        state = context.supernet.net.state_dict()
        assert all(torch.equal(before[key], state[key]) for key in before)
        loop = original(context, rule, **settings)
        assert loop.epochs == 2
        begun.append((dict(rule.decided), loop))
        return loop

    monkeypatch.setattr(module, "tuning", watched)
    found = select("finetune", context)
    after = context.supernet.net.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert len(begun) == 9
    order = [step["choice"] for step in found.steps]
    for number, (decided, loop) in enumerate(begun):
        assert loop.position.epoch == 2
        name = order[number // 3]
        fixed = {done: found.decisions[done] for done in order[: number // 3]}
        assert decided == {**fixed, name: (number % 3,)}


def test_edges_of_a_node_are_removed_one_after_the_other():
    space = Space.from_grammar(NODES, name="nodes")
    context = context_of(space, subset=150, step="none")
    told = []
    context.watch = lambda kind, what: told.append(what)
    found = select("finetune", context)
    assert found.term in space
    (pick,) = [name for name, site in context.supernet.sites.items() if site.kind == "pick"]
    (step,) = [step for step in found.steps if step["choice"] == pick]
    removed = max(range(3), key=lambda index: step["scores"][index])
    assert found.decisions[pick] == tuple(index for index in range(3) if index != removed)
    assert [(done, total) for done, total, _ in told] == [(number + 1, len(told)) for number in range(len(told))]
    assert math.isfinite(found.score)


def test_too_much_of_it_is_refused_unless_a_limit_says_so():
    settings = {"channels": 4, "cells": 1, "subset": 100}
    with pytest.raises(ec.RequestError, match=r"30 alternatives fine-tuned for 7 each are 210 epochs.*limit=210"):
        select("finetune", context_of("nasbench201", **settings, settings={"epochs": 7}))
    with pytest.raises(ec.RequestError, match="more than limit=29"):
        select("finetune", context_of("nasbench201", **settings, settings={"limit": 29}))
    assert select("finetune", context_of("nasbench201", **settings, settings={"limit": 30, "batches": 1})).term


def test_killed_and_resumed_it_gives_the_bits_of_the_undisturbed_one(tmp_path):
    def context(state=None):
        return context_of("nasbench201", subset=100, channels=4, cells=1, state=state)

    wanted = select("finetune", context())
    for stop in (3, 17):
        disturbed = context(tmp_path / "state.pt")

        def watch(kind, what, stop=stop):
            if what[0] == stop:
                raise KeyboardInterrupt

        disturbed.watch = watch
        with pytest.raises(KeyboardInterrupt):
            select("finetune", disturbed)
    resumed = context(tmp_path / "state.pt")
    tuned = []
    original = module.tuning
    module.tuning = lambda *given, **settings: tuned.append(1) or original(*given, **settings)
    try:
        found = select("finetune", resumed)
    finally:
        module.tuning = original
    assert (found.term, found.score, found.steps) == (wanted.term, wanted.score, wanted.steps)
    assert len(tuned) == 30 - 17
