# ruff: noqa: D102 - the methods of a fold are explained once, by `Fold`
"""Constraints: finite-state folds over terms that run wherever a grammar counts, draws or reads.

A fold gives every subterm a state, computed from its operator and the states of its children, or rejects it. To keep
many-armed operators cheap a fold takes the children one after the other (`begin`, `step` per child, `finish`), so what
is remembered between two children is as small as the fold can make it. Nothing here knows rules or derivations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

from eclose.algebra.errors import GrammarError, did_you_mean
from eclose.algebra.grammar.productions import Productions, Symbol
from eclose.algebra.grammar.rules import Constraint, Source
from eclose.algebra.registry import Registry
from eclose.algebra.terms import Value, tagged
from eclose.algebra.tokens import located

State = Hashable  # None stands for "rejected" and is no state
UserFold = Callable[[str, Mapping[str, Value], tuple[Any, ...]], Hashable]

ABSENT = "absent"
DEEPEST = 64  # halvings on a path that anybody can mean


class Fold(Protocol):
    """A bottom-up automaton over terms; `None` from any method rejects the term."""

    def begin(self, symbol: Symbol) -> State:
        """Return what is known before the first child."""

    def step(self, symbol: Symbol, partial: Any, index: int, child: Any) -> State | None:
        """Return what is known after child `index`, whose state is given."""

    def finish(self, symbol: Symbol, partial: Any) -> State | None:
        """Return the state of the whole."""

    def accepts(self, state: Any) -> bool:
        """Return whether a whole term may have this state."""


class _Everything:
    """What the folds that ship have in common: every state is good for a whole term."""

    def accepts(self, state: Any) -> bool:
        return True


class Connected(_Everything):
    """The named operators keep a path of present children from source to sink; `zero` is an absent child."""

    def __init__(self, operators: frozenset[str]):
        self.operators = operators

    def begin(self, symbol: Symbol) -> int:
        return 0

    def step(self, symbol: Symbol, partial: int, index: int, child: bool) -> int:
        if symbol.operator.edges:
            return partial | child << index
        return partial + child  # how many are present is enough

    def finish(self, symbol: Symbol, partial: int) -> bool | None:
        present = self._present(symbol, partial)
        return None if not present and symbol.name in self.operators else present

    def _present(self, symbol: Symbol, partial: int) -> bool:
        operator = symbol.operator
        if not symbol.arity:
            return "zero" not in operator.tags
        if not operator.edges:
            return partial == symbol.arity if "series" in operator.tags else partial > 0
        reached = {0}
        for index, (tail, head) in sorted(enumerate(operator.edges), key=lambda item: item[1]):
            if partial >> index & 1 and tail in reached:
                reached.add(head)
        return max(head for _, head in operator.edges) in reached


class Distinct(_Everything):
    """The children of an operator differ in an attribute; children without it are free."""

    def __init__(self, operator: str, attribute: str):
        self.operator, self.attribute = operator, attribute

    def begin(self, symbol: Symbol) -> frozenset[Any]:
        return frozenset()

    def step(self, symbol: Symbol, partial: frozenset[Any], index: int, child: Any) -> frozenset[Any] | None:
        if symbol.name != self.operator or child == ABSENT:
            return partial
        return None if child in partial else partial | {child}

    def finish(self, symbol: Symbol, partial: frozenset[Any]) -> State:
        value = symbol.values.get(self.attribute)
        return ABSENT if value is None else tagged(value)


class Halvings:
    """Every path from input to output halves the resolution the same number of times, `count` times in all.

    The state is that number. An absent edge (`zero`) lies on no path.
    """

    def __init__(self, count: int, doubles: bool):
        self.count = count
        self.most = DEEPEST if doubles else count  # what has been halved too often can be doubled again

    def begin(self, symbol: Symbol) -> State:
        return ()

    def step(self, symbol: Symbol, partial: Any, index: int, child: Any) -> State | None:
        operator = symbol.operator
        if operator.edges:
            return (*partial, child)
        if "series" in operator.tags:
            if ABSENT in (partial, child):
                return ABSENT
            total = (partial or 0) + child
            return total if abs(total) <= self.most else None
        if partial == () or partial == ABSENT:
            return child  # type: ignore[no-any-return]
        return partial if child in (partial, ABSENT) else None

    def finish(self, symbol: Symbol, partial: Any) -> State | None:
        operator = symbol.operator
        if not symbol.arity:
            return ABSENT if "zero" in operator.tags else self._own(symbol)
        found = self._through(symbol, partial) if operator.edges else partial
        if found is None or found == ABSENT:
            return found  # type: ignore[no-any-return]
        times: Any = symbol.values.get("n", 1) if "repeats" in operator.tags else 1
        total = found * times + self._stride(symbol)
        return total if abs(total) <= self.most else None

    def _through(self, symbol: Symbol, states: tuple[Any, ...]) -> int | str | None:
        level = {0: 0}
        edges = symbol.operator.edges
        for (tail, head), state in sorted(zip(edges, states, strict=True), key=lambda item: item[0]):
            if state == ABSENT or tail not in level:
                continue
            if level.setdefault(head, level[tail] + state) != level[tail] + state:
                return None
        return level.get(max(head for _, head in edges), ABSENT)

    def _own(self, symbol: Symbol) -> int | None:
        tags = symbol.operator.tags
        own = ("halving" in tags) + 2 * ("quartering" in tags) - ("doubling" in tags)
        total = own or self._stride(symbol)
        return total if abs(total) <= self.most else None

    @staticmethod
    def _stride(symbol: Symbol) -> int:
        stride = symbol.values.get("stride", 1)
        if symbol.operator.role == "head":
            return 0
        largest = max(stride) if isinstance(stride, tuple) else stride
        return round(math.log2(largest))  # type: ignore[arg-type]

    def accepts(self, state: Any) -> bool:
        return bool(state == self.count)


class Depth(_Everything):
    """No path to a leaf has more than `most` nodes."""

    def __init__(self, most: int):
        self.most = most

    def begin(self, symbol: Symbol) -> int:
        return 0

    def step(self, symbol: Symbol, partial: int, index: int, child: int) -> int | None:
        deepest = max(partial, child)
        return deepest if deepest < self.most else None

    def finish(self, symbol: Symbol, partial: int) -> int | None:
        return partial + 1


class Size(_Everything):
    """A term has at most `most` nodes."""

    def __init__(self, most: int):
        self.most = most

    def begin(self, symbol: Symbol) -> int:
        return 1

    def step(self, symbol: Symbol, partial: int, index: int, child: int) -> int | None:
        return partial + child if partial + child <= self.most else None

    def finish(self, symbol: Symbol, partial: int) -> int | None:
        return partial if partial <= self.most else None


class Given(_Everything):
    """A user's fold `state(operator, attributes, child_states) -> state`, or None to reject."""

    def __init__(self, function: UserFold):
        self.function = function

    def begin(self, symbol: Symbol) -> tuple[Any, ...]:
        return ()

    def step(self, symbol: Symbol, partial: tuple[Any, ...], index: int, child: Any) -> tuple[Any, ...]:
        return (*partial, child)

    def finish(self, symbol: Symbol, partial: tuple[Any, ...]) -> State | None:
        state = self.function(symbol.name, symbol.values, partial)
        try:
            hash(state)
        except TypeError:
            raise GrammarError(
                f"a constraint gives a state that can be compared and hashed (a number, text or tuple), "
                f"not {type(state).__name__}"
            ) from None
        return state


class Constraints:
    """All folds of a grammar as one; its states are tuples with one state for each fold."""

    def __init__(self, folds: Sequence[Fold]):
        self.folds = tuple(folds)

    def begin(self, symbol: Symbol) -> tuple[Any, ...]:
        """Return what is known before the first child."""
        return tuple(fold.begin(symbol) for fold in self.folds)

    def step(self, symbol: Symbol, partial: tuple[Any, ...], index: int, child: tuple[Any, ...]) -> Any:
        """Return what is known after child `index`, or None."""
        found = []
        for fold, before, state in zip(self.folds, partial, child, strict=True):
            after = fold.step(symbol, before, index, state)
            if after is None:
                return None
            found.append(after)
        return tuple(found)

    def finish(self, symbol: Symbol, partial: tuple[Any, ...]) -> Any:
        """Return the state of the whole, or None."""
        found = []
        for fold, before in zip(self.folds, partial, strict=True):
            after = fold.finish(symbol, before)
            if after is None:
                return None
            found.append(after)
        return tuple(found)

    def state(self, symbol: Symbol, children: Sequence[tuple[Any, ...]]) -> Any:
        """Return the state of an operator applied to children with these states, or None."""
        partial = self.begin(symbol)
        for index, child in enumerate(children):
            partial = self.step(symbol, partial, index, child)
            if partial is None:
                return None
        return self.finish(symbol, partial)

    def accepts(self, state: tuple[Any, ...]) -> bool:
        """Return whether a whole term may have this state."""
        return all(fold.accepts(found) for fold, found in zip(self.folds, state, strict=True))


def constraints_of(
    source: Source, productions: Productions, registry: Registry, folds: Mapping[str, UserFold]
) -> Constraints:
    """Return what the `constrain` lines of a grammar ask for."""
    found: list[Fold] = []
    connected: set[str] = set()
    symbols = [production.symbol for production in productions if production.symbol is not None]
    for line in source.constraints:
        operator = _operator(line, source, registry, symbols)
        if line.kind == "connected":
            connected.add(operator)
        elif line.kind == "distinct":
            found.append(Distinct(operator, str(line.argument)))
        elif line.kind == "halvings":
            doubles = any("doubling" in symbol.operator.tags for symbol in symbols)
            found.append(Halvings(int(line.argument or 0), doubles))
        elif line.kind in ("depth", "size"):
            assert isinstance(line.argument, int)
            found.append(Depth(line.argument) if line.kind == "depth" else Size(line.argument))
        elif line.kind in folds and line.argument is None:
            found.append(Given(folds[line.kind]))
        else:
            known = ("connected", "distinct", "halvings", "depth", "size", *folds)
            hint = did_you_mean(line.kind, known)
            raise located(
                GrammarError,
                f"unknown constraint {line.kind!r}{hint} (known: {', '.join(known)}; give others from Python, "
                f"as in folds={{{line.kind!r}: function}})",
                source.text,
                line.offset,
                line.kind,
            )
    if connected:
        found.insert(0, Connected(frozenset(connected)))
    return Constraints(found)


def _operator(line: Constraint, source: Source, registry: Registry, symbols: Sequence[Symbol]) -> str:
    """Return the operator that a line speaks of; the grammar must use it, or the line would do nothing."""
    if not line.operator:
        return ""
    used = {symbol.name for symbol in symbols}
    if line.operator not in registry:
        hint = did_you_mean(line.operator, registry.names())
        message = f"the constraint speaks of an unknown operator {line.operator!r}{hint}"
    elif registry.meant(line.operator).operator.name not in used:
        message = f"the constraint speaks of {line.operator!r}, which no rule uses{did_you_mean(line.operator, used)}"
    else:
        operator = registry.meant(line.operator).operator
        attributes = {key for symbol in symbols for key in symbol.operator.attributes}
        if line.kind != "distinct" or line.argument in attributes:
            return operator.name
        hint = did_you_mean(str(line.argument), attributes)
        message = f"no operator of this grammar has an attribute {line.argument!r}{hint}"
    raise located(GrammarError, message, source.text, line.offset, line.operator)
