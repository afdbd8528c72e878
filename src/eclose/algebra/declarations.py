"""Declarations: what an operator is, in plain data.

A declaration names the operator's meanings as `"module:function"` texts that are imported on first use, so declaring
an operator imports nothing. This module knows nothing of any particular operator.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eclose.algebra.errors import TermError
from eclose.algebra.terms import Value, plain

TYPES = ("feature", "attention", "kernel", "tokens", "logits", "map")
SIGNAL = frozenset({"feature", "tokens", "map"})  # what may flow on into another layer
ANYTHING = frozenset(TYPES)
KINDS = ("int", "float", "bool", "string", "size")


@dataclass(frozen=True)
class Attribute:
    """One attribute of an operator.

    Attributes:
        kind: `int`, `float`, `bool`, `string`, or `size` (an int for every axis or a tuple with one for each).
        default: the value left out when printing; None means that the surroundings decide (inherited), and a term
            that leaves the attribute out has no value for it.
        required: a term must give it.
        minimum: the smallest number allowed.
        among: the only strings allowed.
    """

    kind: str
    default: Value | None = None
    required: bool = False
    minimum: float | None = None
    among: tuple[str, ...] = ()
    description: str = ""

    def checked(self, value: Value) -> Value:
        """Return the value as the declared kind, or raise with what would be right."""
        if self.kind == "float" and type(value) is int:
            value = float(value)
        if self.kind == "int" and type(value) is float and value.is_integer():
            value = int(value)
        expected: Any = {"int": int, "float": float, "bool": bool, "string": str, "size": (int, tuple)}[self.kind]
        if not isinstance(value, expected) or (isinstance(value, bool) and self.kind != "bool"):
            raise TermError(f"must be {_spoken(self.kind)}, not {_shown(value)}")
        numbers = value if isinstance(value, tuple) else (value,)
        if self.kind == "size" and not (numbers and all(type(number) is int for number in numbers)):
            raise TermError(f"must be {_spoken(self.kind)}, not {_shown(value)}")
        if self.minimum is not None and any(number < self.minimum for number in numbers):  # type: ignore[operator]
            raise TermError(f"must be at least {self.minimum:g}, not {_shown(value)}")
        if self.among and value not in self.among:
            raise TermError(f"must be one of {', '.join(map(repr, self.among))}, not {_shown(value)}")
        return plain(value)


def _spoken(kind: str) -> str:
    return {
        "int": "a whole number",
        "float": "a number",
        "bool": "true or false",
        "string": "a quoted string",
        "size": "a whole number or a tuple of whole numbers such as (3, 5)",
    }[kind]


def _shown(value: Value) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


@dataclass(frozen=True)
class Operator:
    """The declaration of one operator.

    Attributes:
        name: what a term calls it.
        description: one line for people.
        children: `(least, most)` number of children; `most` None means any number.
        inputs: the number of values it is applied to; None means as many as its surroundings offer (`node`, `on`).
        result: the type of its value, or `"child"`: the type of its last child (`Sequential`), or `"children"`: the
            union of its children's types (`choice`, `node`), which is a bundle where they differ.
        accepts: the types allowed for each child, the last entry standing for all further children; an entry is
            compared with every type of a child's bundle.
        accepts_last: the types allowed for the last child where that differs (`Sequential` may end in a head).
        role: `"stem"`, `"head"` or None.
        attributes: by name.
        edges: for a wiring that is a small two-terminal graph, the `(from, to)` pair of each child; node 0 is the
            source and the largest node is the sink.
        aliases: literature names for this operator with some attributes fixed, e.g. `sep_conv_3x3 = {"kernel": 3}`;
            a term that matches one exactly is printed by it.
        spellings: like `aliases`, but only read, never printed (`nor_conv_3x3` for a plain `conv`).
        synonyms: other names for the same operator (`Linear` for `Sequential`).
        counted: synonyms that promise a number of children (`Linear3`: three).
        meanings: `meaning name -> "module:function"`.
        tags: facts that tools look up (`"shape-keeping"`, `"random"`, ...).
    """

    name: str
    description: str
    children: tuple[int, int | None] = (0, 0)
    inputs: int | None = 1
    result: str = "feature"
    accepts: tuple[frozenset[str], ...] = (SIGNAL,)
    accepts_last: frozenset[str] | None = None
    role: str | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    edges: tuple[tuple[int, int], ...] = ()
    aliases: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    spellings: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    synonyms: tuple[str, ...] = ()
    counted: Mapping[str, int] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()

    @property
    def is_wiring(self) -> bool:
        """Whether it connects children (a primitive has none)."""
        return self.children[1] is None or self.children[1] > 0

    def accepted(self, index: int, count: int) -> frozenset[str]:
        """Return the types allowed for child `index` of `count`."""
        if self.accepts_last is not None and index == count - 1:
            return self.accepts_last
        return self.accepts[min(index, len(self.accepts) - 1)]

    def meaning(self, kind: str) -> Any:
        """Import and return one meaning of this operator."""
        reference = self.meanings.get(kind)
        if reference is None:
            known = ", ".join(sorted(self.meanings)) or "none"
            raise TermError(f"operator {self.name!r} has no {kind!r} meaning (it has: {known})")
        return resolve(reference)


def resolve(reference: str) -> Any:
    """Import what a `"module:name"` text names."""
    module, _, name = reference.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
