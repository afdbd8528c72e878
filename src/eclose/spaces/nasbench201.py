"""NAS-Bench-201: one cell of six edges with five operations each (Dong and Yang, 2020)."""

from __future__ import annotations

from typing import Any

from eclose.algebra.terms import Term
from eclose.spaces._space import Space
from eclose.spaces._terms import term
from eclose.spaces.nasbench_strings import EDGES, OPERATIONS

GRAMMAR = """
CELL -> Cell(OPS, OPS, OPS, OPS, OPS, OPS)    # edges 0-1, 0-2, 1-2, 0-3, 1-3, 2-3
OPS  -> none | skip_connect | nor_conv_1x1 | nor_conv_3x3 | avg_pool_3x3
level cell: CELL
level op: OPS
"""


def network(cell: Term, *, cells: int = 5, channels: int = 16, affine: bool = True, bias: bool = False) -> Term:
    """Return three stages of equal cells with two residual blocks between them.

    Args:
        cell: the cell that stands at every place.
        cells: how many cells a stage has.
        channels: of the first stage; doubled by each residual block.
        affine: whether the cells' normalisations have scale and shift (not so in the benchmark's supernets).
        bias: whether the cells' convolutions add a bias (so in the benchmark's supernets).
    """
    context: dict[str, Any] = {}
    if not affine:
        context["affine"] = False
    if bias:
        context["conv_bias"] = True
    stage = term("Repeat", term("Given", cell, **context) if context else cell, n=cells)
    return term(
        "Sequential",
        term("stem", channels=channels),
        stage,
        term("resBlock"),
        stage,
        term("resBlock"),
        stage,
        term("head", norm=True),
    )


def relaxed() -> Term:
    """Return the cell with a choice on every edge, named by node and source, e.g. `cell/2_1`."""
    operations = [term(name) for name in OPERATIONS]
    return term("Cell", *(term("choice", *operations, name=f"cell/{end}_{start}") for start, end in EDGES))


NASBENCH201 = Space(
    "nasbench201",
    "one cell of six edges, five operations each",
    GRAMMAR,
    skeleton=network,
    relaxed=relaxed,
    supernet={"affine": False, "bias": True},
)

__all__ = ["GRAMMAR", "NASBENCH201", "network", "relaxed"]
