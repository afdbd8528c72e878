"""Terms as text: children first, then attributes by name; `let` lines for what repeats.

The text of a term is as long as its distinct subterms, not its occurrences: a subterm of `LET_SIZE` nodes or more that
stands at several places is written once, in a line `let x1 = ...`, and named after that.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count

from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.terms import Attributes, Term, Value, distinct

LET_SIZE = 8

Label = Callable[[Term], tuple[str, Attributes]]


def term_text(term: Term, registry: Registry | None = None) -> str:
    """Return the text of a term, with the literature's names where one matches exactly."""
    registry = default_registry() if registry is None else registry

    def label(node: Term) -> tuple[str, Attributes]:
        return registry.alias_of(node) or (node.name, node.attributes)

    return _text(term, label, taken=registry.__contains__)


def exact_text(term: Term) -> str:
    """Return a text that `read_exact` turns back into this very term, whatever operators are known."""
    return _text(term, lambda node: (node.name, node.attributes), taken=lambda name: False)


def value_text(value: Value) -> str:
    """Return an attribute's value as it is written in a term."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple):
        return "(" + ", ".join(map(value_text, value)) + ("," if len(value) == 1 else "") + ")"
    return repr(value)


def _text(term: Term, label: Label, taken: Callable[[str], bool]) -> str:
    used = {node.name for node in distinct(term)}
    fresh = (name for name in (f"x{number}" for number in count(1)) if name not in used and not taken(name))
    names: dict[Term, str] = {}
    lines = []
    for node in _repeated(term):
        written = _written(node, label, names)
        names[node] = next(fresh)
        lines.append(f"let {names[node]} = {written}")
    return "\n".join([*lines, _written(term, label, names)])


def _repeated(term: Term) -> list[Term]:
    """Return the subterms worth a name, children before parents."""
    uses: dict[Term, int] = {}
    order = list(distinct(term))
    for node in order:
        for child in node.children:
            if child.size >= LET_SIZE:
                uses[child] = uses.get(child, 0) + 1
    return [node for node in order if uses.get(node, 0) > 1]


def _written(term: Term, label: Label, names: dict[Term, str]) -> str:
    """Return the text of one term, in which named subterms stand by their names."""
    pieces: list[str] = []
    leaves: dict[Term, str] = {}
    stack: list[Term | str] = [term]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        named = names.get(item) or leaves.get(item)
        if named is not None:
            pieces.append(named)
            continue
        name, attributes = label(item)
        settings = [f"{key}={value_text(value)}" for key, value in attributes]
        if not item.children:
            leaves[item] = f"{name}({', '.join(settings)})" if settings else name
            pieces.append(leaves[item])
            continue
        pieces.append(name + "(")
        stack.append("".join(f", {setting}" for setting in settings) + ")")
        for child in reversed(item.children[1:]):
            stack.append(child)
            stack.append(", ")
        stack.append(item.children[0])
    return "".join(pieces)


__all__ = ["exact_text", "term_text", "value_text"]
