"""Terms a hundred thousand levels deep, in every meaning: no walk over a term may recurse."""

from __future__ import annotations

import pickle
from functools import cache
from xml.etree import ElementTree

import pytest
import torch

import eclose
from eclose.algebra.errors import EcloseError
from eclose.algebra.grammar import Grammar
from eclose.algebra.reading import parse
from eclose.algebra.registry import default_registry
from eclose.algebra.shapes import Classes
from eclose.algebra.terms import Term, compare, distinct, fold, nodes
from eclose.meanings.drawing import draw, text_drawing
from eclose.meanings.graph import term_graph
from eclose.meanings.program import compile_term
from eclose.meanings.torch.build import build, build_net

DEPTH = 100_000
REGISTRY = default_registry()


@cache
def leaf(name: str) -> Term:
    return REGISTRY.normal(name, (), {})


@cache
def nested(last: str = "tanh") -> Term:
    """Return `Sequential(Sequential(..., relu), relu)`; the innermost child is `last`."""
    term = leaf(last)
    for _ in range(DEPTH - 1):
        term = REGISTRY.normal("Sequential", (term, leaf("relu")), {})
    return term


@cache
def nested_residuals(depth: int) -> Term:
    """Return residuals in the second layer of residuals; nothing comes through the skips."""
    term = leaf("id")
    for _ in range(depth - 1):
        term = REGISTRY.normal("Residual", (leaf("id"), leaf("zero"), term), {})
    return term


def test_it_is_built_printed_parsed_pickled_hashed_and_compared():
    term = nested()
    assert (term.depth, term.size) == (DEPTH, 2 * DEPTH - 1)
    text = str(term)
    assert parse(text) is term
    assert pickle.loads(pickle.dumps(term)) is term
    other = nested("sigmoid")
    assert term != other and hash(term) != hash(other) and term.digest != other.digest
    assert compare(term, other) == -compare(other, term) != 0
    assert sorted([other, term]) == sorted([term, other])
    assert sum(1 for _ in nodes(term)) == term.size and sum(1 for _ in distinct(term)) == DEPTH + 1
    assert fold(term, lambda node, below: 1 + max(below, default=0)) == DEPTH
    assert REGISTRY.types(term) == {"feature"}


def test_attributes_of_every_level_survive_text():
    term = leaf("conv")
    for level in range(5_000):
        term = REGISTRY.normal("Given", (term,), {"channels": level % 7 + 1})
    assert parse(str(term)) is term
    assert pickle.loads(pickle.dumps(term)) is term


def test_it_is_costed_and_drawn():
    found = eclose.cost(nested(), input=(2, 4), classes=3)
    assert found.parameters == eclose.cost(leaf("tanh"), input=(2, 4), classes=3).parameters
    assert len(list(ElementTree.fromstring(draw(nested())).iter())) < 5_000
    assert text_drawing(nested())


@pytest.mark.slow
def test_it_is_a_graph():
    graph = term_graph(nested())
    assert len(graph.edges) == DEPTH


def test_it_runs_as_a_network():
    x = torch.randn(2, 1, 3)
    net = build(nested(), input=(1, 3))
    assert len(net.program.steps) == DEPTH
    with torch.no_grad():
        torch.testing.assert_close(net(x), x.tanh().relu())


@pytest.mark.parametrize("depth", [10_000, pytest.param(DEPTH, marks=pytest.mark.slow)])
def test_residuals_inside_residuals_are_drawn_and_run(depth):
    term = nested_residuals(depth)
    assert len(list(ElementTree.fromstring(draw(term)).iter())) < 5_000
    program = compile_term(term, (1, 3), registry=REGISTRY)
    x = torch.randn(2, 1, 3)
    assert torch.equal(build_net(program)(x), x)


@pytest.mark.parametrize("depth", [2_000, pytest.param(DEPTH, marks=pytest.mark.slow)])
def test_gradients_come_back_through_all_layers(depth):
    term = REGISTRY.normal("Repeat", (leaf("mconst"),), {"n": depth})
    net = build(term, input=(1, 2), output=Classes(2)).double()
    x = torch.randn(3, 1, 2, dtype=torch.float64)
    net(x).sum().backward()
    betas = [parameter for name, parameter in net.named_parameters() if name.endswith("beta")]
    assert len(betas) == depth
    # Every beta is 1, so each has the same gradient.
    assert all(beta.grad is not None and torch.equal(beta.grad, betas[0].grad) for beta in betas)


def test_deep_nesting_in_grammars():
    body = "relu"
    for _ in range(1_100):
        body = f"Sequential({body}, tanh)"
    grammar = Grammar.parse(f"start Net\nNet -> {body} | relu")
    assert grammar.count() == 2
    deep = parse(body)
    assert deep in grammar and leaf("tanh") not in grammar
    assert {grammar.unrank(0), grammar.unrank(1)} == {deep, leaf("relu")}


def test_a_chain_of_many_rules():
    rules = "\n".join(f"R{i} -> Sequential(R{i + 1}, relu)" for i in range(600))
    grammar = Grammar.parse(f"start R0\n{rules}\nR600 -> relu | tanh")
    assert grammar.count() == 2
    term = grammar.sample(1)
    assert term.depth == 601 and term in grammar


@pytest.mark.parametrize("closed", [0, pytest.param(DEPTH - 1, marks=pytest.mark.slow)])
def test_broken_deep_texts_are_errors_with_a_place(closed):
    with pytest.raises(EcloseError, match="line 1, column"):
        parse("Sequential(" * DEPTH + "relu" + ")" * closed)
