"""What is wrong with a grammar is said with its place and with what would be right."""

from __future__ import annotations

import pytest

from eclose.algebra.errors import EcloseError, GrammarError, LimitError, RequestError
from eclose.algebra.grammar import Grammar

CASES = [
    ("", 1, 1, "a grammar needs a rule"),
    ("A ->", 1, 5, "the end of the text in an alternative of A"),
    ("A -> conv | conv", 1, 13, "has this alternative already"),
    ("A -> covn", 1, 6, "did you mean 'conv'?"),
    ("A -> Sequential(B, conv)\nB -> C\nC -> B", 3, 6, "B -> C -> B is a cycle"),
    ("A -> A", 1, 6, "A -> A is a cycle"),
    ("A -> Sequential(A, conv)", 1, 1, "A never ends"),
    ("A -> conv\nB -> id", 2, 1, "B is used by no rule that A reaches"),
    ("A -> Residual(conv, id)", 1, 6, "Residual takes 3 children, not 2"),
    ("A -> conv(kernl=3)", 1, 11, "did you mean 'kernel'?"),
    ('A -> conv(kernel="x")', 1, 11, "kernel must be a whole number"),
    ("start X\nA -> conv", 1, 7, "the start 'X' has no rule"),
    ("A -> Residual(conv, id, head)", 1, 6, "it may give logits where feature is needed"),
    ("A -> Sequential(B, conv)\nB -> conv | head", 1, 6, "Sequential cannot take B as child 1"),
    ("A -> conv [0]", 1, 12, "a weight is a number"),
    ("A -> pick(conv, id, k=3)", 1, 6, "give k between 1 and 2"),
    (
        "N -> Parallel(B, B)\nshared B -> Sequential(C, C)\nshared C -> conv | Residual(B, id, B)",
        2,
        8,
        "reaches itself",
    ),
    ("A -> conv\nconstrain Cell connected", 2, 16, "which no rule uses"),
    ("A -> Cell(B, B, B, B, B, B)\nB -> id\nconstrain Cel connected", 3, 15, "did you mean 'Cell'?"),
    ("A -> conv\nconstrain halvings(x)", 2, 11, "a whole number n"),
    ("A -> conv\nconstrain foo", 2, 11, "unknown constraint 'foo'"),
    ("A -> Residual(conv, id, conv)\nconstrain Residual distinct(src)", 2, 20, "has an attribute 'src'"),
    ("A -> conv\nlevel x: B", 2, 10, "which has no rule"),
    ("A -> conv\nfoo", 2, 1, "begins no line of a grammar"),
    ("A -> conv\nB -> A(id)", 2, 6, "write A without parentheses"),
    ("A -> conv(kernel={1, 1})", 1, 18, "written twice"),
    ("A -> conv(kernel={1, 3}", 1, 24, "which begins in line 1"),
    ("A -> Sequential(choice(), id)", 1, 17, "choice needs at least one alternative"),
    ('A -> Parallel(choice(conv, id, name="a"), choice(id, relu, conv, name="a"))', 1, 43, "stands for a choice of 2"),
    ("A -> Repeat(conv)", 1, 6, "Repeat needs n="),
    ("A -> conv('x')", 1, 11, "double quotes"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), CASES)
def test_an_error_points_at_its_place(text, line, column, message):
    with pytest.raises(GrammarError) as raised:
        Grammar.parse(text)
    assert (raised.value.line, raised.value.column) == (line, column), raised.value
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"line {line}, column {column}: ")


def test_infinite_grammars_say_how_to_bound_them():
    grammar = Grammar.parse("A -> conv | Sequential(A, A)")
    with pytest.raises(LimitError, match=r"A reaches itself.*constrain depth\(8\)"):
        grammar.count()
    with pytest.raises(LimitError, match="infinitely many"):
        grammar.relaxed()
    assert grammar.sample(0) in grammar
    # Full binary trees of depth d or less over one leaf: t(d) = 1 + t(d - 1)^2.
    bounded = Grammar.parse("A -> conv | Sequential(A, A)\nconstrain depth(5)")
    assert bounded.count() == 1 + (1 + (1 + (1 + 1**2) ** 2) ** 2) ** 2 == 677
    # With n leaves there are Catalan(n - 1) of them; size 9 allows up to five leaves.
    assert Grammar.parse("A -> conv | Sequential(A, A)\nconstrain size(9)").count() == 1 + 1 + 2 + 5 + 14


def test_what_cannot_be_counted_says_so():
    grammar = Grammar.parse("A -> conv | id | relu", where=lambda term: term.name != "id")
    with pytest.raises(RequestError, match="cannot be counted"):
        grammar.count()
    assert {grammar.sample(seed).name for seed in range(50)} == {"conv", "relu"}
    assert {term.name for term in grammar.enumerate()} == {"conv", "relu"}
    hopeless = Grammar.parse("A -> conv | id", where=lambda term: False)
    with pytest.raises(LimitError, match="refused"):
        hopeless.sample(0)


def test_a_term_outside_the_grammar_is_refused_by_every_operation():
    import eclose

    grammar = Grammar.parse("A -> conv | id | relu")
    stranger = eclose.parse("avg_pool")
    assert stranger not in grammar
    with pytest.raises(RequestError, match="not its text"):
        _ = "avg_pool" in grammar
    for operation in (grammar.rank, grammar.derivation, lambda term: grammar.mutate(term, 0)):
        with pytest.raises(GrammarError, match="is no term of this grammar"):
            operation(stranger)
    with pytest.raises(LimitError, match="from 0 to 2"):
        grammar.unrank(3)
    with pytest.raises(EcloseError, match="derivations"):
        grammar.count(of="derivation")


def test_a_constraint_that_nothing_meets_leaves_no_term():
    grammar = Grammar.parse("A -> Cell(B, B, B, B, B, B)\nB -> zero\nconstrain Cell connected")
    assert grammar.count() == 0
    with pytest.raises(LimitError, match="no term"):
        grammar.sample(0)
    with pytest.raises(LimitError, match="no term"):
        grammar.sample_uniform(0)


def test_a_fold_must_give_states_that_can_be_compared():
    with pytest.raises(GrammarError, match="compared and hashed"):
        Grammar.parse("A -> conv\nconstrain mine", folds={"mine": lambda *_: []}).count()
    with pytest.raises(RequestError, match="constrain mine"):
        Grammar.parse("A -> conv", folds={"mine": lambda *_: 0})
