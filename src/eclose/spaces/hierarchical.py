"""Hierarchical NAS-Bench-201: macro structure, cells, operations and convolution blocks in one grammar.

Schrodi et al. (2023). A variant is named `<macro>_<cells>_<convblock>`: the macro structure is `fixed` (the one of
NAS-Bench-201) or `variable`; the cells are one shared cell (`1`) or derived at every place anew (`multi`); a
convolution is that of NAS-Bench-201 (`none`) or a block of activation, convolution and normalisation of its own
(`multi`). `fixed_1_none` is NAS-Bench-201, `variable_multi_multi` the whole space.
"""

from __future__ import annotations

from eclose.algebra.terms import Term
from eclose.spaces._space import Space
from eclose.spaces._terms import term

# D2, D1, D0 halve the resolution two, one and no times on every path.
FIXED_MACRO = """
D2   -> Linear3(D1, D1, D0)
D1   -> Linear3(C, C, DOWN)
D0   -> Linear3(C, C, CELL)
DOWN -> Linear2(CELL, resBlock)
C    -> Linear2(CELL, CELL)
"""

VARIABLE_MACRO = """
D2   -> Linear3(D1, D1, D0) | Linear3(D0, D1, D1) | Linear4(D1, D1, D0, D0)
D1   -> Linear3(C, C, DOWN) | Linear4(C, C, C, DOWN) | Residual3(C, C, DOWN, DOWN)
D0   -> Linear3(C, C, CELL) | Linear4(C, C, C, CELL) | Residual3(C, C, CELL, CELL)
DOWN -> Linear2(CELL, resBlock) | Linear3(CELL, CELL, resBlock) | Residual2(CELL, resBlock, resBlock)
C    -> Linear2(CELL, CELL) | Linear3(CELL, CELL, CELL) | Residual2(CELL, CELL, CELL)
"""

INDEPENDENT_CELLS = """
CELL -> Cell(OPS, OPS, OPS, OPS, OPS, OPS)
"""

SHARED_CELL = """
shared CELL -> Cell(OPS, OPS, OPS, OPS, OPS, OPS)    # drawn once: every place has the same cell
"""

BENCHMARK_OPERATIONS = """
OPS  -> id | zero | conv3x3 | conv1x1 | avg_pool
"""

CONVOLUTION_BLOCKS = """
OPS  -> id | zero | Linear1(CONVBLOCK) [2] | avg_pool    # some convolution in two of five draws
CONVBLOCK -> Linear3(ACT, CONV, NORM)
ACT  -> relu | hardswish | mish
CONV -> conv3x3o | conv1x1o | dconv3x3o
NORM -> batch | instance | layer
"""

LEVELS = """
level macro: D2, D1, D0
level stage: C, DOWN
level cell: CELL
level op: OPS
"""

MACROS = {"fixed": FIXED_MACRO, "variable": VARIABLE_MACRO}
CELLS = {"1": SHARED_CELL, "multi": INDEPENDENT_CELLS}
BLOCKS = {"none": BENCHMARK_OPERATIONS, "multi": CONVOLUTION_BLOCKS}
VARIANTS = tuple(f"{macro}_{cells}_{block}" for macro in MACROS for cells in CELLS for block in BLOCKS)


def grammar(macro: str, cells: str, block: str, connected: bool = True) -> str:
    """Return the grammar of a variant.

    Args:
        macro: `"fixed"` or `"variable"`.
        cells: `"1"` or `"multi"`.
        block: `"none"` or `"multi"`.
        connected: whether every cell must keep a path from its input to its output.
    """
    levels = LEVELS + ("level convblock: CONVBLOCK\n" if block == "multi" else "")
    constraint = "constrain Cell connected\n" if connected else ""
    return MACROS[macro] + CELLS[cells] + BLOCKS[block] + levels + constraint


def network(macro: Term, *, channels: int = 16) -> Term:
    """Return the macro structure between NAS-Bench-201's stem and head.

    Args:
        macro: a term of the space.
        channels: of the first stage; doubled where the resolution is halved.
    """
    return term("Sequential", term("stem", channels=channels), macro, term("head", norm=True))


def _variant(name: str, variant: str, description: str) -> Space:
    macro, cells, block = variant.split("_")
    # The fixed variants with one cell hold NAS-Bench-201, which knows cells without a path as well.
    connected = variant != "fixed_1_none"
    return Space(name, description, grammar(macro, cells, block, connected), skeleton=network)


def _described(variant: str) -> str:
    macro, cells, block = variant.split("_")
    return (
        f"{macro} macro structure, {'one shared cell' if cells == '1' else 'cells of their own'}, "
        f"{'the convolutions of NAS-Bench-201' if block == 'none' else 'convolution blocks'}"
    )


HIERARCHICAL: dict[str, Space] = {
    "hierarchical-nb201": _variant(
        "hierarchical-nb201", "variable_multi_multi", "macro structure, cells, operations and convolution blocks"
    ),
    **{
        f"hierarchical-nb201-{variant}": _variant(f"hierarchical-nb201-{variant}", variant, _described(variant))
        for variant in VARIANTS
    },
}
"""The whole space and its eight variants by name."""

__all__ = ["HIERARCHICAL", "VARIANTS", "grammar", "network"]
