"""`motifs`: the cells that a space's skeleton puts in place, as one term.

It has no network of its own: `space.network(term)` gives the whole network.
"""

from __future__ import annotations

from eclose.algebra.declarations import Operator

OPERATORS: tuple[Operator, ...] = (
    Operator(
        "motifs",
        "the cells of a space, in the order in which its skeleton names them (e.g. normal, reduction)",
        children=(1, None),
        inputs=None,
        meanings={"graph": "eclose.meanings.graph.wirings:motifs"},
    ),
)
