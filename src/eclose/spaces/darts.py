"""The DARTS space: a normal and a reduction cell of four nodes with two operations each (Liu et al., 2019).

Derived cells never hold `none`; it takes part in the original search only. Whether it is there is therefore a space of
its own: `darts` has seven operations, `darts-with-none` eight.
"""

from __future__ import annotations

from eclose.algebra.terms import Term
from eclose.spaces._darts_network import CELLS, EVALUATION, IMAGENET, SEARCH, network, relaxed
from eclose.spaces._space import Space

OPERATIONS = (
    "max_pool_3x3",
    "avg_pool_3x3",
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "dil_conv_3x3",
    "dil_conv_5x5",
)

GRAMMAR = """
Cells     -> motifs(Normal, Reduction)
Normal    -> Cell
Reduction -> Cell
Cell      -> darts_cell(Node2, Node3, Node4, Node5)    # nodes 0 and 1 are the outputs of the two cells before
Node2     -> pick(on(Op, src=0), on(Op, src=1), k=2)
Node3     -> pick(on(Op, src=0), on(Op, src=1), on(Op, src=2), k=2)
Node4     -> pick(on(Op, src=0), on(Op, src=1), on(Op, src=2), on(Op, src=3), k=2)
Node5     -> pick(on(Op, src=0), on(Op, src=1), on(Op, src=2), on(Op, src=3), on(Op, src=4), k=2)
Op        -> max_pool_3x3 | avg_pool_3x3 | skip_connect
           | sep_conv_3x3 | sep_conv_5x5 | dil_conv_3x3 | dil_conv_5x5
level cell: Cell
level op: Op
"""

GRAMMAR_WITH_NONE = GRAMMAR.replace("Op        -> ", "Op        -> none | ")


def relaxed_darts() -> Term:
    """Return both cells with seven operations on every edge."""
    return relaxed(lambda node, source: OPERATIONS, lambda node, source: OPERATIONS)


def relaxed_darts_with_none() -> Term:
    """Return both cells with eight operations on every edge, `none` first."""
    operations = ("none", *OPERATIONS)
    return relaxed(lambda node, source: operations, lambda node, source: operations)


SIZES = {"search": SEARCH, "evaluation": EVALUATION, "imagenet": IMAGENET}

DARTS = Space(
    "darts",
    "two cells of four nodes, seven operations on an edge",
    GRAMMAR,
    skeleton=network,
    sizes=SIZES,
    cells=CELLS,
    relaxed=relaxed_darts,
)

DARTS_WITH_NONE = Space(
    "darts-with-none",
    "the DARTS space with `none` as an eighth operation",
    GRAMMAR_WITH_NONE,
    skeleton=network,
    sizes=SIZES,
    cells=CELLS,
    relaxed=relaxed_darts_with_none,
)

__all__ = ["DARTS", "DARTS_WITH_NONE", "GRAMMAR", "GRAMMAR_WITH_NONE", "OPERATIONS"]
