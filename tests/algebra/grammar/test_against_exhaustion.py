"""Random small grammars against everything they derive, found by exhaustion."""

from __future__ import annotations

import warnings
from random import Random

import pytest

from eclose.algebra.errors import EcloseWarning, GrammarError
from eclose.algebra.grammar import Grammar
from support.random_grammars import random_grammar, summary
from support.statistics import fits

KINDS = {
    "plain": {},
    "constrained": {"constrained": True},
    "shared": {"shared": True},
    "shared and constrained": {"shared": True, "constrained": True},
    "named": {"named": True},
    "everything": {"shared": True, "constrained": True, "named": True},
}
LARGEST = 3_000


def small_grammars(kind: str, number: int):
    """Yield random grammars that are valid, with their exhaustive summaries."""
    made = seed = 0
    while made < number:
        rng = Random(f"{kind} {seed}")
        seed += 1
        text = random_grammar(rng, **KINDS[kind])
        try:
            grammar = Grammar.parse(text)
        except GrammarError:
            continue  # unused rules or twice the same alternative; other tests look at those messages
        free = Grammar.parse(text.partition("constrain")[0])
        if free.count("derivations") > LARGEST or not grammar.count("derivations"):
            continue
        made += 1
        yield grammar, *summary(grammar), rng


@pytest.mark.parametrize("kind", KINDS)
def test_counts_equal_what_exhaustion_finds(kind):
    overlapping = 0
    for grammar, counts, _, _ in small_grammars(kind, 60):
        assert grammar.count("derivations") == counts.total(), grammar
        if grammar.counts_exactly:
            assert grammar.count() == len(counts), grammar
        else:
            overlapping += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", EcloseWarning)
                assert grammar.count() > len(counts), grammar
        assert sorted(grammar.enumerate()) == sorted(counts), grammar
    assert overlapping < 40  # an exact count is the rule


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_has_a_term_and_every_term_its_number(kind):
    for grammar, counts, _, _ in small_grammars(kind, 40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EcloseWarning)
            total = grammar.count()
        terms = [grammar.unrank(number) for number in range(total)]
        assert set(terms) == set(counts)
        for number, term in enumerate(terms):
            assert grammar.unrank(grammar.rank(term)) is term
            if grammar.counts_exactly:
                assert grammar.rank(term) == number


@pytest.mark.parametrize("kind", KINDS)
def test_membership_is_what_exhaustion_says(kind):
    grammars = list(small_grammars(kind, 25))
    pool = {term for _, counts, _, _ in grammars for term in list(counts)[:40]}
    for grammar, counts, _, _ in grammars:
        for term in pool:
            assert (term in grammar) == (term in counts)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_probabilities_that_the_weights_promise(kind):
    for grammar, counts, shares, rng in small_grammars(kind, 12):
        total = counts.total()
        assert fits((grammar.sample(rng) for _ in range(2_000)), shares), grammar
        uniform = {term: count / total for term, count in counts.items()}
        assert fits((grammar.sample_uniform(rng) for _ in range(2_000)), uniform), grammar


@pytest.mark.parametrize("kind", KINDS)
def test_variation_stays_in_the_grammar_and_changes_something(kind):
    for grammar, counts, _, rng in small_grammars(kind, 40):
        terms = sorted(counts)
        for _ in range(15):
            first, second = rng.choice(terms), rng.choice(terms)
            changed = grammar.mutate(first, rng)
            assert changed in counts
            assert (changed is not first) == (len(counts) > 1), grammar
            assert set(grammar.crossover(first, second, rng)) <= set(counts)
            assert grammar.self_crossover(first, rng, mode="swap") in counts
            assert grammar.self_crossover(first, rng, mode="copy") in counts
            near = list(grammar.neighbours(first))
            assert len(set(near)) == len(near)
            assert first not in near
            assert set(near) <= set(counts)


def test_mutation_reaches_every_term_of_a_grammar_in_the_end():
    for kind in KINDS:
        for grammar, counts, _, rng in small_grammars(kind, 6):
            if len(counts) > 60:
                continue
            seen, term = set(), min(counts)
            for _ in range(60 * len(counts)):
                term = grammar.mutate(term, rng)
                seen.add(term)
            if len(counts) > 1:
                assert seen == set(counts), grammar


@pytest.mark.parametrize("kind", ["plain", "shared"])
def test_the_relaxation_has_the_terms_of_the_grammar(kind):
    for grammar, counts, _, _ in small_grammars(kind, 30):
        relaxed = grammar.relaxed()
        again = Grammar.of_term(relaxed)
        assert set(again.enumerate()) == set(counts), (grammar, relaxed)


@pytest.mark.parametrize("kind", KINDS)
def test_decisions_lead_to_exactly_the_terms_of_the_grammar(kind):
    for grammar, counts, _, rng in small_grammars(kind, 25):
        answers_of: dict[str, list[str]] = {}

        def choose(name, answers, answers_of=answers_of, rng=rng):
            assert answers_of.setdefault(name, answers) == answers
            assert len(set(answers)) == len(answers)
            return rng.randrange(len(answers))

        found = {grammar.decide(choose) for _ in range(40 * len(counts) if len(counts) < 40 else 200)}
        assert found - {None} <= set(counts)
        if len(counts) < 6:
            assert found - {None} == set(counts)
