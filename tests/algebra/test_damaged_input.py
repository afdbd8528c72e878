"""Damaged terms and grammars: only the library's own errors, each with its place, and no hang."""

from __future__ import annotations

import time
from random import Random

import pytest

import eclose
from eclose.algebra.errors import EcloseError, LimitError
from eclose.algebra.grammar import Grammar
from eclose.algebra.grammar.rules import CHOICE, PICK
from eclose.algebra.terms import Term, distinct, nodes
from eclose.spaces import SPACES
from support.damage import damaged, nested, noise, tower
from support.random_grammars import random_grammar

LONGEST = 20.0  # seconds for one text: a hang, not a benchmark


def texts(count: int, seed: str, valid: list[str]):
    rng = Random(seed)
    for number in range(count):
        if number % 500 == 499:
            yield tower(rng)
        elif number % 100 == 99:
            yield nested(rng)
        elif number % 10 == 9:
            yield noise(rng)
        else:
            yield damaged(rng.choice(valid), rng)


def valid_terms() -> list[str]:
    rng = Random("terms")
    found = []
    for entry in SPACES:
        space = eclose.space(entry.name)
        sampled = (str(space.sample(rng)) for _ in range(4))
        found += [text for text in sampled if len(text) < 1_500]
    return [*found, "let b = Residual(conv(kernel=3), id, conv(kernel=(3, 5)))\nSequential(b, b, b, b, head)"]


def valid_grammars() -> list[str]:
    rng = Random("grammars")
    texts = [random_grammar(rng, shared=True, constrained=True, named=True) for _ in range(60)]
    return texts + [text for entry in SPACES if len(text := eclose.space(entry.name).grammar.source.text) < 900]


def try_term(text: str) -> bool:
    try:
        term = eclose.parse(text)
    except EcloseError as error:
        check(error)
        return False
    assert eclose.parse(str(term)) is term
    assert isinstance(term.digest, int)
    return True


def try_grammar(text: str) -> bool:
    try:
        grammar = Grammar.parse(text)
    except EcloseError as error:
        check(error)
        return False
    if any(len(alternative.nodes) > 60 for rule in grammar.source.rules.values() for alternative in rule.alternatives):
        return True
    try:
        term = grammar.sample(0)
        assert term.size > 10_000 or term in grammar
    except LimitError as error:
        check(error)
    return True


def check(error: EcloseError) -> None:
    message = str(error)
    assert message
    assert len(message) < 2_000
    assert "Traceback" not in message
    if isinstance(error, eclose.TermError) and not isinstance(error, LimitError):
        assert error.line is not None, message
        assert error.column is not None, message
        assert error.line >= 1
        assert error.column >= 1


def run(count: int, seed: str) -> None:
    for kind, attempt, valid in (("term", try_term, valid_terms()), ("grammar", try_grammar, valid_grammars())):
        accepted = 0
        for text in texts(count // 2, f"{seed} {kind}", valid):
            begun = time.perf_counter()
            accepted += attempt(text)
            assert time.perf_counter() - begun < LONGEST, text[:2_000]
        assert 0 < accepted < count // 2  # some survive their damage; a test in which none did would test little


def test_twenty_thousand_damaged_texts():
    run(20_000, "short")


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_a_million_damaged_texts():
    run(1_000_000, "long")


def bomb() -> Term:
    term = eclose.parse("conv")
    for _ in range(64):
        term = Term("Parallel", (term, term, term))
    return term


def test_a_tower_of_lets_costs_what_its_distinct_nodes_cost():
    begun = time.perf_counter()
    term = bomb()
    assert len(list(distinct(term))) == 65
    assert term.size == sum(3**level for level in range(65))
    assert eclose.parse(str(term)) is term
    assert term == bomb()
    assert term > term.children[0]
    assert hash(term) == term.digest
    grammar = Grammar.of_term(term)
    assert grammar.count() == 1
    assert term in grammar
    with pytest.raises(LimitError, match="occurrences"):
        list(nodes(term))
    with pytest.raises(LimitError):
        eclose.build(term, input=(3, 8, 8), classes=2)
    assert time.perf_counter() - begun < 5


def test_choices_in_a_tower_are_counted_without_walking_it():
    choice = eclose.parse("choice(conv, id)")
    term = choice
    for _ in range(64):
        term = Term("Parallel", (term, term, term))
    # Unnamed choices are decided at every one of the 3^64 places.
    with pytest.raises(LimitError, match="no number that large"):
        Grammar.of_term(term).count()
    named = eclose.parse('choice(conv, id, name="a")')
    for _ in range(64):
        named = Term("Parallel", (named, named, named))
    assert Grammar.of_term(named).count() == 2
    assert {node.name for term in Grammar.of_term(named).enumerate() for node in distinct(term)}.isdisjoint(
        {CHOICE, PICK}
    )
