"""The rules of a grammar as data: what a grammar's text says, before anything is made of it.

A pattern, the right-hand side of an alternative, is kept flat: its nodes stand in one tuple, children before parents,
so no walk over it is recursive. Nothing here knows operators, constraints or counting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eclose.algebra.terms import Value

CHOICE = "choice"  # one of its children
PICK = "pick"  # k of its children, in their order
PICKED = "node"  # what a pick leaves: the sum of the children that were kept
ZERO = "zero"  # an edge whose child is this one is absent

APPLY, RULE = "apply", "rule"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One node of a pattern.

    Attributes:
        kind: `"apply"` (an operator), `"rule"` (a nonterminal), `"choice"` or `"pick"`.
        name: as written.
        children: places of the children among the nodes of the pattern.
        attributes: the values of each attribute; several are inline alternatives.
        offset: where it begins in the grammar's text.
        places: where each attribute begins.
    """

    kind: str
    name: str
    children: tuple[int, ...] = ()
    attributes: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    offset: int = 0
    places: Mapping[str, int] = field(default_factory=dict)

    def get(self, key: str) -> Value | None:
        """Return the first value of an attribute."""
        for name, values in self.attributes:
            if name == key:
                return values[0]
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """One right-hand side of a rule: its pattern (the root is the last node), prior weight and text."""

    nodes: tuple[Node, ...]
    weight: int | float
    text: str
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A nonterminal with its alternatives; a shared one is drawn once a derivation."""

    name: str
    alternatives: tuple[Alternative, ...]
    shared: bool
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A `constrain` line.

    Attributes:
        kind: `"connected"`, `"distinct"`, `"halvings"`, `"depth"`, `"size"` or the name of a fold given from Python.
        operator: the operator it speaks of, as written, or an empty text.
        argument: the attribute or number in its parentheses.
        offset: where it begins.
    """

    kind: str
    operator: str = ""
    argument: str | int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A grammar as written.

    Attributes:
        text: the whole text.
        start: the nonterminal that generates the language, and where it is named.
        rules: by nonterminal, in the order of the text.
        levels: by name, the nonterminals of a level of hierarchy.
        constraints: in the order of the text.
    """

    text: str
    start: tuple[str, int]
    rules: Mapping[str, Rule]
    levels: Mapping[str, tuple[tuple[str, int], ...]]
    constraints: tuple[Constraint, ...]
