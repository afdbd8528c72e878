"""Cells in the manner of NAS-Bench-101 as graphs."""

from __future__ import annotations

from eclose.meanings.graph.builder import Meaning, Site, Value


def dag_cell(site: Site, x: Value) -> Meaning:
    """Node after node on the input and all nodes before; the value of the last."""
    states: list[Value] = [x]
    for index in range(len(site.term.children)):
        states.append((yield site.child(index, *states)))
    return states[-1]
