"""Terms: identity, order, digests, walks - deep and widely shared ones included."""

import copy
import pickle
import subprocess
import sys
from itertools import pairwise

import pytest

from eclose.algebra.errors import LimitError, TermError
from eclose.algebra.printing import exact_text, term_text
from eclose.algebra.reading import parse, read_exact
from eclose.algebra.terms import (
    Term,
    compare,
    distinct,
    fold,
    nodes,
    occurrences,
    subterm,
    with_subterm,
)


def chain(depth: int) -> Term:
    term = Term("conv")
    for _ in range(depth - 1):
        term = Term("Sequential", (term,))
    return term


def bomb(levels: int = 64) -> Term:
    term = Term("conv")
    for _ in range(levels):
        term = Term("Residual", (term, term, term))
    return term


def test_equal_terms_are_one_object():
    assert Term("conv", (), {"b": 1, "a": 2}) is Term("conv", (), (("a", 2), ("b", 1)))
    assert copy.deepcopy(Term("conv")) is Term("conv") is copy.copy(Term("conv"))


def test_types_of_values_count():
    variants = [Term("f", (), {"a": value}) for value in (1, 1.0, True, "1", (1,), (1.0,), (True,))]
    assert len(set(variants)) == len({variant.digest for variant in variants}) == 7
    assert Term("f", (), {"a": -0.0}) is Term("f", (), {"a": 0.0})
    texts = [exact_text(variant) for variant in variants]
    assert [read_exact(text) for text in texts] == variants


def test_a_term_is_immutable_and_checks_its_names():
    with pytest.raises(AttributeError, match="immutable"):
        Term("conv").name = "id"
    with pytest.raises(TermError, match="finite"):
        Term("f", (), {"a": float("nan")})
    with pytest.raises(TermError, match="an int, float, bool"):
        Term("f", (), {"a": {}})
    with pytest.raises(TermError, match="cannot be a name"):
        Term("conv(")


def test_order_is_total_and_begins_with_size():
    some = [
        parse(text) for text in ("conv", "conv(kernel=5)", "id", "Residual(conv, id, conv)", "Residual(id, id, conv)")
    ]
    for a in some:
        for b in some:
            assert compare(a, b) == -compare(b, a)
            assert (compare(a, b) == 0) == (a is b)
    ordered = sorted(some)
    assert [term.size for term in ordered] == sorted(term.size for term in some)
    assert all(a <= b and not b < a for a, b in pairwise(ordered))


def test_digests_are_the_same_in_another_process():
    text = "Sequential(Residual(conv(kernel=5), id, conv), sep_conv_3x3)"
    program = f"import eclose; print(eclose.parse({text!r}).digest)"
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "77"}
    )
    assert int(other.stdout) == parse(text).digest


def test_walks_over_occurrences():
    term = parse("Residual(conv, id, Sequential(conv, id))")
    found = list(occurrences(term))
    assert [position for position, _ in found] == [(), (0,), (1,), (2,), (2, 0), (2, 1)]
    assert [node for _, node in found] == list(nodes(term))
    for position, node in found:
        assert subterm(term, position) is node
        assert with_subterm(term, position, node) is term
    assert with_subterm(term, (2, 1), Term("zero")) is parse("Residual(conv, id, Sequential(conv, zero))")
    assert fold(term, lambda node, below: 1 + sum(below)) == term.size == 6


def test_a_term_100_000_deep():
    term = chain(100_000)
    assert (term.depth, term.size) == (100_000, 100_000)
    text = str(term)
    assert parse(text) is term
    assert pickle.loads(pickle.dumps(term)) is term
    assert isinstance(term.digest, int)
    assert compare(term, with_subterm(term, (0,) * 99_999, Term("id"))) != 0
    assert sum(1 for _ in nodes(term)) == 100_000
    del term


def test_a_let_bomb_is_handled_by_its_distinct_nodes():
    term = bomb()
    assert term.size == (3**65 - 1) // 2  # 3^64 of them are leaves
    assert sum(1 for _ in distinct(term)) == 65
    assert len(term_text(term)) < 5_000
    assert parse(str(term)) is term
    assert pickle.loads(pickle.dumps(term)) is term
    assert term == bomb()
    assert compare(term, bomb(63)) == 1
    for walk in (occurrences, nodes):
        with pytest.raises(LimitError, match="occurrences of nodes, more than the limit"):
            next(iter(walk(term)))


def test_a_tower_of_lets_beyond_all_measure_is_refused():
    with pytest.raises(LimitError, match="2\\^4096"):
        bomb(4_000)


def test_terms_can_be_made_by_many_threads():
    import threading

    made: list[list[Term]] = [[] for _ in range(8)]

    def work(into: list[Term]) -> None:
        for index in range(2_000):
            into.append(Term("Residual", (Term("conv", (), {"kernel": index}), Term("id"), Term("conv"))))

    threads = [threading.Thread(target=work, args=(into,)) for into in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(a is b for other in made[1:] for a, b in zip(made[0], other, strict=True))
