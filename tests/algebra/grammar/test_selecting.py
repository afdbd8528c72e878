"""Decisions applied to a relaxed term."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest

import eclose as ec
from eclose.algebra.errors import RequestError
from eclose.algebra.grammar.selecting import selected, sites


def every_selection(relaxed):
    found = sites(relaxed)
    choices = [name for name in found if found[name].kind == "choice"]
    picks = [name for name in found if found[name].kind == "pick"]
    for taken in product(*(range(len(found[name].alternatives)) for name in choices)):
        for kept in product(*(combinations(range(len(found[n].alternatives)), found[n].keep) for n in picks)):
            yield selected(relaxed, dict(zip(choices, taken, strict=True)), dict(zip(picks, kept, strict=True)))


def test_all_selections_of_a_relaxed_grammar_are_its_terms():
    space = ec.Grammar.parse("""
        Net -> Sequential(stem, A, B, head)
        A -> conv(kernel={1, 3}) | Parallel(O, O)
        B -> dag_cell(pick(on(O, src=0), on(id, src=0), on(conv(kernel=5), src=0), k=2))
        O -> id | avg_pool
    """)
    found = set(every_selection(space.relaxed()))
    assert found == set(space.enumerate())
    assert len(found) == space.count()


def test_nasbench201_has_as_many_selections_as_terms():
    space = ec.space("nasbench201")
    assert len(set(every_selection(space.relaxed()))) == 15_625


@pytest.mark.parametrize("name", ["darts", "s1", "s3", "nasbench1shot1-2", "tiny", "layer-choice"])
def test_random_selections_are_in_the_space(name):
    space, rng = ec.space(name), Random(0)
    relaxed = space.relaxed()
    for _ in range(20):
        choices, picks = {}, {}
        for site in sites(relaxed).values():
            if site.kind == "choice":
                choices[site.name] = rng.randrange(len(site.alternatives))
            else:
                picks[site.name] = rng.sample(range(len(site.alternatives)), site.keep)
        assert selected(relaxed, choices, picks) in space


def test_what_stands_inside_another_alternative_need_not_be_decided():
    term = ec.parse('choice(id, Sequential(choice(conv, avg_pool, name="inner"), id), name="outer")')
    assert str(selected(term, {"outer": 0})) == "id"
    with pytest.raises(RequestError, match="nothing was decided about 'inner'"):
        selected(term, {"outer": 1})


def test_wrong_decisions_are_refused():
    relaxed = ec.space("darts").relaxed()
    with pytest.raises(RequestError, match=r"there is no decision 'normal/9_0'.*did you mean"):
        selected(relaxed, {"normal/9_0": 0})
    with pytest.raises(RequestError, match="takes one of its alternatives 0 to 6"):
        selected(relaxed, {"normal/2_0": 7})
    with pytest.raises(RequestError, match="keeps 2 of its alternatives"):
        selected(relaxed, {}, {"normal/3": (0,)})
    with pytest.raises(RequestError, match="has no name"):
        sites(ec.parse("choice(conv, id)"))
