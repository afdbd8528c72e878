"""Counts that the literature or an independent recurrence gives."""

from __future__ import annotations

import math
import time
from itertools import product

import pytest

from eclose.algebra.grammar import Grammar
from eclose.algebra.terms import fold
from eclose.spaces import space

CELL_EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))


def log10(number: int) -> float:
    return math.log10(number >> max(0, number.bit_length() - 60)) + max(0, number.bit_length() - 60) * math.log10(2)


def cells_with_a_path(operations: int) -> int:
    """Return the number of NAS-Bench-201 cells with a path from source to sink, edge by edge."""
    total = 0
    for mask in product((0, 1), repeat=6):
        reached = {0}
        for (tail, head), there in zip(CELL_EDGES, mask, strict=True):
            if there and tail in reached:
                reached.add(head)
        total += operations ** sum(mask) * (3 in reached)
    return total


def macro_structures(cell: int) -> int:
    """Return the number of macro structures of hierarchical NAS-Bench-201, by hand."""
    layers = cell**2 + 2 * cell**3
    down = cell + cell**2 + cell
    no_halving = layers**2 * cell + layers**3 * cell + layers**2 * cell**2
    one_halving = layers**2 * down + layers**3 * down + layers**2 * down**2
    return 2 * one_halving**2 * no_halving + one_halving**2 * no_halving**2


def test_nasbench201_cells():
    cells = "C -> Cell(Op, Op, Op, Op, Op, Op)\nOp -> zero | id | conv1x1 | conv3x3 | avg_pool"
    assert Grammar.parse(cells).count() == 5**6 == 15_625
    assert Grammar.parse(cells + "\nconstrain Cell connected").count() == cells_with_a_path(4) == 15_284


def test_macro_structures_of_the_hierarchical_space():
    from eclose.spaces.hierarchical import VARIABLE_MACRO

    assert Grammar.parse(VARIABLE_MACRO + "CELL -> conv").count() == macro_structures(1) == 75_549_915


@pytest.mark.parametrize(
    ("connected", "of", "operations", "published"),
    [
        (False, "derivations", 57, 446.0928),
        (True, "derivations", 57, 446.0925),
        (False, "terms", 30, 375.8469),
        (True, "terms", 30, 375.8449),
    ],
)
def test_the_whole_hierarchical_space(connected, of, operations, published):
    from eclose.spaces.hierarchical import grammar

    text = grammar("variable", "multi", "multi", connected=connected)
    begun = time.perf_counter()
    count = Grammar.parse(text).count(of)
    assert time.perf_counter() - begun < 10  # a hang, not a benchmark: that is benchmarks/language.py
    cell = cells_with_a_path(operations - 1) if connected else operations**6
    assert count == macro_structures(cell)
    assert round(log10(count), 4) == published


def test_activation_functions():
    first = 10 * 25 * 25 + 25
    second = 10 * first * first + first
    assert space("activation").count() == second == 393_762_525
    assert space("activation-3").count() == 10 * second * second + second == 1_550_489_261_337_518_775


def test_darts_cells_by_pick():
    one = math.prod(math.comb(inputs, 2) * 7**2 for inputs in (2, 3, 4, 5))
    assert one == 1_037_664_180
    assert space("darts").count() == one**2


def test_cells_that_must_hold_a_feature_operation():
    # Each of four nodes keeps two of its edges, one of them at least of the first seven operations, and adds one of
    # eleven operations: without the condition 180 * 11^12, with it 180 * (105 * 11)^4.
    nodes = ", ".join(
        f"Sequential(pick({', '.join(f'on(Op, src={source})' for source in range(inputs))}, k=2), Op)"
        for inputs in (2, 3, 4, 5)
    )
    operations = [f"conv(kernel={kernel})" for kernel in range(1, 8)] + [f"max_pool(kernel={k})" for k in (2, 3, 4, 5)]
    text = f"Net -> darts_cell({nodes})\nOp -> {' | '.join(operations)}"

    def features(operator, attributes, children):
        if operator == "conv":
            return "feature"
        if operator == "on":
            return children[0]
        if operator == "node":
            return "feature" if "feature" in children else None
        return "other"

    assert Grammar.parse(text).count() == 180 * 11**12
    constrained = Grammar.parse(text + "\nconstrain features", folds={"features": features})
    assert constrained.count() == 180 * (105 * 11) ** 4


def test_a_number_of_halvings_as_a_constraint():
    text = """
    S -> Residual2(A, A, A) | Diamond(O, O, O, A)
    A -> Linear2(O, O) | O
    O -> conv | id | factorized_reduce | max_pool(stride=4)
    """
    wirings = {"Residual": ((0, 2), (1,)), "Diamond": ((0, 2), (1, 3)), "Sequential": ((0, 1),)}
    own = {"conv": 0, "id": 0, "factorized_reduce": 1, "max_pool": 2}

    def on_paths(node, children):
        """The halvings of all paths, path by path."""
        if not children:
            return {own[node.name]}
        return {sum(ends) for path in wirings[node.name] for ends in product(*(children[i] for i in path))}

    terms = list(Grammar.parse(text).enumerate())
    assert len(terms) == 20**3 + 4**3 * 20
    for halvings in range(5):
        wanted = [term for term in terms if fold(term, on_paths) == {halvings}]
        grammar = Grammar.parse(text + f"constrain halvings({halvings})")
        assert wanted
        assert grammar.count() == len(wanted)
        assert sorted(grammar.enumerate()) == sorted(wanted)
