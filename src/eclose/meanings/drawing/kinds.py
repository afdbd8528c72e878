"""What an operator looks like, from the facts that it declares; no operator is named here."""

from __future__ import annotations

from eclose.algebra.declarations import Operator
from eclose.algebra.registry import Registry
from eclose.algebra.terms import Term

KINDS = ("convolution", "pooling", "identity", "zero", "function", "attention", "resolution", "end", "random", "other")

FUNCTIONS = frozenset({"unary", "binary", "activation", "norm"})
RESOLUTIONS = frozenset({"halving", "doubling", "quartering"})


def kind_of(operator: Operator) -> str:
    """Return the kind of a primitive, one of `KINDS`; it decides the colour."""
    attributes, tags = operator.attributes, operator.tags
    for name in ("zero", "identity", "random"):
        if name in tags:
            return name
    if operator.role is not None or operator.result in ("logits", "map"):
        return "end"
    if operator.result in ("attention", "kernel") or "heads" in attributes:
        return "attention"
    if "kernel" in attributes:  # a window with channels of its own has weights, one without only looks
        return "convolution" if "channels" in attributes else "pooling"
    if RESOLUTIONS & tags:
        return "resolution"
    return "function" if FUNCTIONS & tags else "other"


def style_of(operator: Operator) -> str:
    """Return how a wiring is drawn.

    `chain`: one child after the other; `wrap`: a frame around one child; `stack`: alternatives; `apart`: children that
    are not connected; `graph`: as its graph says; `list`: children in a frame, where nothing says how they connect.
    """
    if "series" in operator.tags and operator.inputs is None and operator.result == "child":
        return "chain"
    if operator.children == (1, 1) and operator.result == "child" and "src" not in operator.attributes:
        return "wrap"
    if operator.result == "children" and "name" in operator.attributes:
        return "stack"
    if operator.edges:
        return "graph"
    if "graph" not in operator.meanings:
        return "list"
    return "graph" if "program" in operator.meanings else "apart"


def labelled(term: Term, registry: Registry) -> tuple[str, tuple[tuple[str, object], ...]]:
    """Return a term's name, by its literature alias where one matches, and the attributes still to be written."""
    return registry.alias_of(term) or (registry.operator(term.name).name, term.attributes)


__all__ = ["KINDS", "kind_of", "labelled", "style_of"]
