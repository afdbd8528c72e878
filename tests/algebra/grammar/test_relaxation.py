"""Grammars as open terms and open terms as grammars: names, sharing, limits."""

from __future__ import annotations

import math

import pytest

import eclose
from eclose.algebra.errors import LimitError
from eclose.algebra.grammar import Grammar
from eclose.algebra.terms import nodes


def names(term) -> list[str]:
    return [node.get("name") for node in nodes(term) if node.name in ("choice", "pick")]


def test_a_choice_is_named_by_its_position():
    grammar = Grammar.parse("Net -> Residual(Op, id, Op)\nOp -> conv(kernel={1, 3}) | id")
    relaxed = grammar.relaxed()
    assert names(relaxed) == ["Net/0", "Net/2"]
    assert relaxed is eclose.parse(
        'Residual(choice(conv1x1, conv, id, name="Net/0"), id, choice(conv1x1, conv, id, name="Net/2"))'
    )
    assert Grammar.of_term(relaxed).count() == grammar.count() == 9


def test_what_a_shared_rule_stands_for_is_one_subterm_with_its_own_names():
    grammar = Grammar.parse(
        "Net -> Sequential(Motif, down, Motif)\nshared Motif -> Residual(Op, id, Op)\nOp -> conv | id"
    )
    grammar_text = grammar.source.text.replace("down", "resBlock")
    grammar = Grammar.parse(grammar_text)
    relaxed = grammar.relaxed()
    assert relaxed.children[0] is relaxed.children[2]
    assert set(names(relaxed)) == {"Motif/0", "Motif/2"}
    assert Grammar.of_term(relaxed).count() == grammar.count() == 4


def test_a_pick_stays_a_pick():
    grammar = Grammar.parse(
        "Net -> dag_cell(pick(on(Op, src=0), on(Op, src=0), k=1), node(on(Op, src=1)))\nOp -> conv | id"
    )
    assert "pick" in {node.name for node in nodes(grammar.relaxed())}
    darts = eclose.space("darts")
    assert Grammar.of_term(darts.relaxed()).count() == darts.count()


def test_every_space_that_is_small_enough_relaxes_to_its_own_count():
    from eclose.spaces import SPACES

    relaxed = []
    for entry in SPACES:
        space = eclose.space(entry.name)
        try:
            term = space.relaxed(limit=20_000)
        except LimitError as error:
            assert "nodes" in str(error)
            continue
        free = [line for line in space.grammar.source.text.splitlines() if not line.startswith("constrain")]
        assert Grammar.of_term(term).count() == Grammar.parse("\n".join(free)).count(), entry.name
        relaxed.append(entry.name)
    assert {"nasbench201", "darts", "s1", "s2", "s3", "s4", "tiny", "layer-choice", "activation"} <= set(relaxed)


def test_a_relaxation_beyond_the_limit_is_refused_with_its_size():
    hierarchical = eclose.space("hierarchical-nb201").grammar
    with pytest.raises(LimitError, match=r"has [\d,]+ nodes, more than the limit of 1,000"):
        hierarchical.relaxed(limit=1_000)


def test_a_term_with_choices_is_a_grammar():
    term = eclose.parse('Residual(choice(conv, id, name="a"), choice(conv, id), choice(conv, id, name="a"))')
    grammar = Grammar.of_term(term)
    assert grammar.count() == 4  # the two named choices are one decision
    for found in grammar.enumerate():
        assert found.children[0] is found.children[2]
    free = Grammar.of_term(eclose.parse("Residual(choice(conv, id), choice(conv, id), choice(conv, id))"))
    assert free.count() == 8
    cell = eclose.parse("darts_cell(pick(on(conv, src=0), on(id, src=1), k=1), node(on(conv, src=2)))")
    assert Grammar.of_term(cell).count() == 2
    assert Grammar.of_term(eclose.parse("conv")).count() == 1


def test_a_whole_supernet_is_a_grammar_whose_cells_agree():
    darts = eclose.space("darts")
    supernet = darts.supernet()
    assert Grammar.of_term(supernet).count() == darts.count()
    cells = eclose.space("nasbench201")
    assert Grammar.of_term(cells.supernet()).count() == cells.count()
    term = Grammar.of_term(cells.supernet()).sample(0)
    used = {node for node in nodes(term) if node.name == "Cell"}
    assert len(used) == 1
    assert used.pop() in cells


def test_derivations_say_which_rule_made_what():
    grammar = Grammar.parse(
        "Net -> Sequential(Block, Block)\nBlock -> Residual(Op, id, Op) | Op\nOp -> conv | id\n"
        "level block: Block\nlevel op: Op"
    )
    term = eclose.parse("Sequential(Residual(conv, id, id), conv)")
    derivation = grammar.derivation(term)
    assert [(step.rule, step.text, step.position) for step in derivation.steps()] == [
        ("Net", "Sequential(Block, Block)", ()),
        ("Block", "Residual(Op, id, Op)", (0,)),
        ("Op", "conv", (0, 0)),
        ("Op", "id", (0, 2)),
        ("Block", "Op", (1,)),
        ("Op", "conv", (1,)),
    ]
    assert derivation.levels() == {"block": [(0,), (1,)], "op": [(0, 0), (0, 2), (1,)]}
    ambiguous = Grammar.parse("Net -> A | B\nA -> conv | id\nB -> id | relu\nlevel a: A\nlevel b: B")
    assert ambiguous.count() == 3
    assert ambiguous.count(of="derivations") == 4
    assert ambiguous.derivation(eclose.parse("id")).levels()["a"] == [()]  # the first in rule order


def test_every_site_can_be_mutated():
    grammar = Grammar.parse(
        "Net -> Diamond(A, B, A, Pair)\nA -> conv(kernel={1, 3, 5})\nB -> id | relu\nPair -> Residual(A, B, A)"
    )
    term = grammar.sample(1)
    reached = set()
    for seed in range(3_000):
        changed = grammar.mutate(term, seed)
        for position in ((0,), (1,), (2,), (3, 0), (3, 1), (3, 2)):
            mine, theirs = term, changed
            for index in position:
                mine, theirs = mine.children[index], theirs.children[index]
            if mine is not theirs:
                reached.add(position)
    assert reached == {(0,), (1,), (2,), (3, 0), (3, 1), (3, 2)}


def test_a_mutation_of_a_shared_rule_changes_all_its_places():
    grammar = Grammar.parse("Net -> Sequential(M, relu, M, M)\nshared M -> conv(kernel={1, 3, 5, 7}) | id")
    for seed in range(50):
        changed = grammar.mutate(grammar.sample(seed), seed)
        assert changed.children[0] is changed.children[2] is changed.children[3]


def test_neighbours_of_a_benchmark_cell_differ_on_one_edge():
    cells = eclose.space("nasbench201")
    term = cells.sample(3)
    near = list(cells.neighbours(term))
    assert len(near) == 6 * 4
    assert all(sum(a is not b for a, b in zip(term.children, n.children, strict=True)) == 1 for n in near)


def test_deep_terms_are_read_back_and_numbered():
    grammar = Grammar.parse("A -> conv | UnaryTopo(A) | Repeat(A, n=2)")
    term = eclose.parse("conv")
    for _ in range(100_000):
        term = eclose.algebra.terms.Term("UnaryTopo", (term,))
    assert term in grammar
    assert len(str(term)) > 100_000
    bounded = Grammar.parse("A -> conv | UnaryTopo(A)\nconstrain depth(400)")
    assert bounded.count() == 400
    assert {bounded.rank(bounded.unrank(number)) for number in (0, 7, 399)} == {0, 7, 399}


def test_a_grammar_survives_pickling_and_draws_the_same():
    import pickle

    grammar = eclose.space("tiny").grammar
    again = pickle.loads(pickle.dumps(grammar))
    assert [again.sample(seed) for seed in range(20)] == [grammar.sample(seed) for seed in range(20)]
    assert math.log10(again.count()) == math.log10(grammar.count())
