"""The network around DARTS cells, shared by the spaces over the same cell graph.

Stem, a row of cells of which those at one third and two thirds of the depth halve the resolution and double the
channels, head (Liu, Simonyan, Yang, 2019). Nothing here knows which operations a space offers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eclose.algebra.shapes import Classes, Input, Output, Tokens
from eclose.algebra.terms import Term
from eclose.spaces._terms import term

NODES = (2, 3, 4, 5)  # the intermediate nodes; 0 and 1 are the cell's inputs
CELLS = ("normal", "reduction")
AUXILIARY = "auxiliary"  # the name of the side output

SEARCH: Mapping[str, Any] = {"cells": 8, "channels": 16, "affine": False, "pool_norm": True}
EVALUATION: Mapping[str, Any] = {"cells": 20, "channels": 36, "auxiliary": True}
IMAGENET: Mapping[str, Any] = {"cells": 14, "channels": 48, "auxiliary": True, "imagenet": True}


def network(
    motifs: Term,
    *,
    cells: int = 20,
    channels: int = 36,
    affine: bool = True,
    pool_norm: bool = False,
    auxiliary: bool = False,
    imagenet: bool = False,
    input: Input = (3, 32, 32),
    output: Output | None = None,
) -> Term:
    """Return the network with normal and reduction cells in place.

    Args:
        motifs: `motifs(normal, reduction)`.
        cells: how many cells.
        channels: of the first cells; doubled at every reduction.
        affine: whether the cells' normalisations have scale and shift (not so in a search).
        pool_norm: whether a normalisation follows every pooling (so in a search).
        auxiliary: whether a network for classes has the side output `auxiliary` behind the second reduction, where
            the map is large enough for it.
        imagenet: whether the stems divide the resolution by eight first.
        input: what the network is fed.
        output: what it gives; the side output gives classes only.
    """
    normal, reduction = motifs.children
    side_output = auxiliary and isinstance(output, Classes | None) and _fits(input, imagenet)
    if imagenet:
        row = [term("imagenet_stem0", channels=channels), term("imagenet_stem1", channels=channels)]
    else:
        row = [term("stem", channels=3 * channels), term("id")]
    for number in range(cells):
        halves = number in (cells // 3, 2 * cells // 3)
        if halves:
            channels *= 2
        context: dict[str, Any] = {"channels": channels}
        if halves:
            context["stride"] = 2
        if not affine:
            context["affine"] = False
        if pool_norm:
            context["pool_norm"] = True
        cell = term("Given", reduction if halves else normal, **context)
        if side_output and number == 2 * cells // 3:
            side = term("auxiliary_head_imagenet" if imagenet else "auxiliary_head")
            cell = term("Sequential", cell, term("tap", side, name=AUXILIARY))
        row.append(cell)
    return term("Sequential", term("Cells", *row), term("head"))


def _fits(input: Input, imagenet: bool) -> bool:
    """Return whether the auxiliary head's windows fit into the map behind the second reduction."""
    if isinstance(input, Tokens) or len(input) < 2:
        return False
    size, stride = min(input[1:]), 2 if imagenet else 3
    for _ in range(5 if imagenet else 2):
        size = -(-size // 2)
    return (size - 5) // stride + 1 >= 2


Offer = Callable[[int, int], Sequence[str]]  # (node, source) -> the operations on that edge


def relaxed_cell(kind: str, offer: Offer) -> Term:
    """Return the cell with all its edges, each a choice named by its place, e.g. `normal/2_0` for node 2 from 0.

    What a node keeps is named too: every occurrence of the cell keeps the same edges.
    """
    nodes = []
    for node in NODES:
        edges = []
        for source in range(node):
            operations = [term(name) for name in offer(node, source)]
            edges.append(term("on", term("choice", *operations, name=f"{kind}/{node}_{source}"), src=source))
        nodes.append(term("pick", *edges, k=2, name=f"{kind}/{node}"))
    return term("darts_cell", *nodes)


def relaxed(normal: Offer, reduction: Offer) -> Term:
    """Return both cells with everything open."""
    return term("motifs", relaxed_cell("normal", normal), relaxed_cell("reduction", reduction))


__all__ = ["AUXILIARY", "CELLS", "EVALUATION", "IMAGENET", "NODES", "SEARCH", "network", "relaxed", "relaxed_cell"]
