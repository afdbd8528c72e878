"""Spaces whose grammar has constraints that choices know nothing of."""

from __future__ import annotations

from itertools import product

import pytest
import torch

import eclose as ec
from eclose.algebra.errors import RequestError
from eclose.strategies.gradient.recipe import Recipe
from eclose.strategies.gradient.selection.magnitude import decided_within
from eclose.strategies.gradient.supernet import supernet

GRAMMAR = """
Net -> Sequential(stem(channels=4), Residual(Op, Op, Op), head)
Op  -> conv | zero | avg_pool
constrain Residual connected
"""


def made():
    task = ec.task("digits:subset=100")
    return supernet(ec.Space.from_grammar(GRAMMAR, name="connected"), task, Recipe())


def test_the_selected_term_is_the_heaviest_that_keeps_the_constraint():
    net = made()
    generator = torch.Generator().manual_seed(0)
    repaired = 0
    for _ in range(60):
        scores = {name: torch.rand(3, generator=generator).tolist() for name in net.choices}
        found = decided_within(net, scores)
        assert net.term(found) in net.space
        allowed = [
            sum(scores[name][index] for name, index in zip(net.choices, indices, strict=True))
            for indices in product(range(3), repeat=3)
            if net.term({name: (index,) for name, index in zip(net.choices, indices, strict=True)}) in net.space
        ]
        assert sum(scores[name][kept[0]] for name, kept in found.items()) == pytest.approx(max(allowed))
        repaired += any(scores[name][kept[0]] < max(scores[name]) for name, kept in found.items())
    assert repaired > 5


def test_a_search_returns_a_term_of_such_a_space():
    for strategy in ("darts", "rs-ws", "drnas"):
        found = ec.search(ec.Space.from_grammar(GRAMMAR, name="connected"), ec.task("digits:subset=100"), strategy,
                          epochs=1, batch_size=40, samples=20, retrain=0)  # fmt: skip
        assert found.best.term in ec.Grammar.parse(GRAMMAR)


def test_a_pick_of_bare_edges_has_weights_of_its_own():
    space = ec.Space.from_grammar(
        "Net -> Sequential(stem(channels=4), dag_cell(pick(on(conv, src=0), on(avg_pool, src=0), on(id, src=0), k=1)), "
        "head)",
        name="bare",
    )
    run = ec.search(space, ec.task("digits:subset=100"), "darts", epochs=1, batch_size=40, retrain=0)
    assert run.best.term in space
    net = supernet(space, ec.task("digits:subset=100"), Recipe())
    assert len(net.weighted) == 1


def test_a_constraint_that_nothing_keeps_is_said():
    net = made()
    with pytest.raises(RequestError, match="cannot have 4 operations with parameters"):
        decided_within(net, {name: [1.0, 0.5, 0.1] for name in net.choices}, least_features=4,
                       features=dict.fromkeys(net.choices, (0,)))  # fmt: skip
