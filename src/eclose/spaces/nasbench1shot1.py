"""NAS-Bench-1Shot1: three subspaces of NAS-Bench-101 that a supernet can hold (Zela et al., 2020).

A cell has four or five blocks; block j adds up a fixed number of earlier values (each block sees the cell's input
through a 1x1 convolution of its own) and applies one operation. The output adds the projected input, where it is
picked, to the picked blocks, each in its own part of the channels.
"""

from __future__ import annotations

from functools import partial

from eclose.algebra.terms import Term
from eclose.spaces._space import Space
from eclose.spaces._terms import term
from eclose.spaces.nasbench101 import edge, output_edge

OPERATIONS = ("maxpool3x3", "conv3x3_bn_relu", "conv1x1_bn_relu")

GRAMMAR_1 = """
Cell   -> dag_cell(Block1, Block2, Block3, Block4, Output)
Block1 -> Sequential(on(Input, src=0), Op)
Block2 -> Sequential(pick(on(Input, src=0), on(id, src=1), k=2), Op)
Block3 -> Sequential(pick(on(Input, src=0), on(id, src=1), on(id, src=2), k=2), Op)
Block4 -> Sequential(pick(on(Input, src=0), on(id, src=1), on(id, src=2), on(id, src=3), k=2), Op)
Output -> pick(on(Wide, src=0), on(slot(index=0, count=4), src=1), on(slot(index=1, count=4), src=2),
               on(slot(index=2, count=4), src=3), on(slot(index=3, count=4), src=4), k=2)
Input  -> conv1x1_bn_relu
Wide   -> Parallel(Input, Input, Input, Input, merge="concat")
Op     -> maxpool3x3 | conv3x3_bn_relu | conv1x1_bn_relu
level cell: Cell
level op: Op
"""

GRAMMAR_2 = """
Cell   -> dag_cell(Block1, Block2, Block3, Block4, Output)
Block1 -> Sequential(on(Input, src=0), Op)
Block2 -> Sequential(pick(on(Input, src=0), on(id, src=1), k=1), Op)
Block3 -> Sequential(pick(on(Input, src=0), on(id, src=1), on(id, src=2), k=2), Op)
Block4 -> Sequential(pick(on(Input, src=0), on(id, src=1), on(id, src=2), on(id, src=3), k=2), Op)
Output -> pick(on(Wide, src=0), on(slot(index=0, count=4), src=1), on(slot(index=1, count=4), src=2),
               on(slot(index=2, count=4), src=3), on(slot(index=3, count=4), src=4), k=3)
Input  -> conv1x1_bn_relu
Wide   -> Parallel(Input, Input, Input, Input, merge="concat")
Op     -> maxpool3x3 | conv3x3_bn_relu | conv1x1_bn_relu
level cell: Cell
level op: Op
"""

GRAMMAR_3 = """
Cell   -> dag_cell(Block1, Block2, Block3, Block4, Block5, Output)
Block1 -> Sequential(on(Input, src=0), Op)
Block2 -> Sequential(pick(on(Input, src=0), on(id, src=1), k=1), Op)
Block3 -> Sequential(pick(on(Input, src=0), on(id, src=1), on(id, src=2), k=1), Op)
Block4 -> Sequential(pick(on(Input, src=0), on(id, src=1), on(id, src=2), on(id, src=3), k=2), Op)
Block5 -> Sequential(pick(on(Input, src=0), on(id, src=1), on(id, src=2), on(id, src=3), on(id, src=4), k=2), Op)
Output -> pick(on(Wide, src=0), on(slot(index=0, count=5), src=1), on(slot(index=1, count=5), src=2),
               on(slot(index=2, count=5), src=3), on(slot(index=3, count=5), src=4),
               on(slot(index=4, count=5), src=5), k=2)
Input  -> conv1x1_bn_relu
Wide   -> Parallel(Input, Input, Input, Input, Input, merge="concat")
Op     -> maxpool3x3 | conv3x3_bn_relu | conv1x1_bn_relu
level cell: Cell
level op: Op
"""

PARENTS = {1: (1, 2, 2, 2, 2), 2: (1, 1, 2, 2, 3), 3: (1, 1, 1, 2, 2, 2)}
"""How many values each block adds up, then how many the output does."""

BEST = {
    1: (0.049278855, 0.054487169),
    2: (0.051582515, 0.057592154),
    3: (0.048477590, 0.053385437),
}
"""Validation and test error of the best cell of each space, against which regret is reported."""


def network(cell: Term, *, cells: int = 9, channels: int = 16) -> Term:
    """Return a row of equal cells, with a pooling in front of each third after the first.

    Args:
        cell: the cell that stands at every place.
        cells: how many cells.
        channels: of a block in the first third; doubled with every pooling.
    """
    row = [term("stem", channels=channels)]
    for number in range(cells):
        if number in (cells // 3, 2 * cells // 3):
            channels *= 2
            row.append(term("max_pool", kernel=2, stride=2, padding=1))
        row.append(term("Given", cell, channels=channels))
    return term("Sequential", *row, term("head"))


def relaxed(number: int) -> Term:
    """Return a space's cell with choices `op/1`, ... and picks `input/2`, ... and `output`."""
    *parents, last = PARENTS[number]
    operations = [term(name) for name in OPERATIONS]
    children = []
    for block, keep in enumerate(parents, 1):
        arriving = [edge(source) for source in range(block)]
        if block == 1:
            first = arriving[0]
        elif len(arriving) == keep:
            first = term("pick", *arriving, k=keep, name=f"input/{block}")
        else:
            first = term("pick", *arriving, k=keep, name=f"input/{block}", logits=True)
        children.append(term("Sequential", first, term("choice", *operations, name=f"op/{block}")))
    outputs = [output_edge(source, len(parents)) for source in range(len(parents) + 1)]
    children.append(term("pick", *outputs, k=last, name="output", logits=True))
    return term("dag_cell", *children)


SIZES = {"search": {"cells": 9, "channels": 16}, "evaluation": {"cells": 9, "channels": 128}}

NASBENCH1SHOT1_1 = Space(
    "nasbench1shot1-1",
    "a NAS-Bench-101 cell of four blocks with 1, 2, 2, 2 parents, output of 2",
    GRAMMAR_1,
    skeleton=network,
    sizes=SIZES,
    relaxed=partial(relaxed, 1),
)
NASBENCH1SHOT1_2 = Space(
    "nasbench1shot1-2",
    "a NAS-Bench-101 cell of four blocks with 1, 1, 2, 2 parents, output of 3",
    GRAMMAR_2,
    skeleton=network,
    sizes=SIZES,
    relaxed=partial(relaxed, 2),
)
NASBENCH1SHOT1_3 = Space(
    "nasbench1shot1-3",
    "a NAS-Bench-101 cell of five blocks with 1, 1, 1, 2, 2 parents, output of 2",
    GRAMMAR_3,
    skeleton=network,
    sizes=SIZES,
    relaxed=partial(relaxed, 3),
)

__all__ = [
    "BEST",
    "NASBENCH1SHOT1_1",
    "NASBENCH1SHOT1_2",
    "NASBENCH1SHOT1_3",
    "PARENTS",
    "network",
    "relaxed",
]
