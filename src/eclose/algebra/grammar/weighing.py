"""Weights of an automaton's states: exact counts, or probabilities, and the whole terms that they add up to.

A state weighs the sum over the ways into it of the products of what its children weigh. A whole term is an `Assembly`:
a state for its outermost part and one for each shared part that it uses. Nothing here draws or numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from eclose.algebra.errors import LimitError
from eclose.algebra.grammar.automaton import (
    NOTHING,
    Automaton,
    Binding,
    Family,
    Prefix,
    State,
    merged,
)
from eclose.algebra.grammar.productions import Production

MOST_ASSEMBLIES = 200_000
MOST_BITS = 1_000_000  # of a count
ROUNDS = 10_000  # of adding up the probabilities of a recursive grammar

Number: TypeAlias = Any  # a whole number for counts, a float for probabilities


@dataclass(frozen=True, eq=False)
class Assembly:
    """A way to put a whole term together.

    Attributes:
        root: the state of the outermost part.
        parts: the shared parts it uses, each before those that it uses itself, with their states.
    """

    root: State
    parts: tuple[tuple[int, State], ...]


class Weights:
    """What each state of an automaton weighs.

    Args:
        automaton: whose states are weighed.
        weight: what a way into a state weighs; None as production stands for ways of a `TermAutomaton`.
        one: the unit, `1` or `1.0`, which decides how numbers are added.
        leaf: what a stand-in for a shared part weighs, one by default.
    """

    def __init__(
        self,
        automaton: Automaton,
        weight: Callable[[Production | None], Number],
        one: Number,
        leaf: Callable[[State], Number] | None = None,
    ):
        self.automaton, self.weight, self.one = automaton, weight, one
        self.leaf = leaf if leaf is not None else (lambda state: one)
        self.of: dict[State, Number] = {}
        self.read: dict[Prefix, Number] = {}
        self.recursive = False

    def weigh(self, state: State) -> Number:
        """Return a state's weight; what it needs is weighed first, children before parents."""
        found = self.of.get(state)
        if found is None:
            order, recursive = _order(state, self.of)
            self.recursive |= recursive
            if recursive and isinstance(self.one, int):
                raise LimitError(
                    f"this grammar is recursive and has infinitely many terms{_culprit(self.automaton, state)}; "
                    "bound it, for example with a line `constrain depth(8)` or `constrain size(40)`"
                )
            self._round(order)
            if recursive:
                self._settle(order)
            found = self.of[state]
        return found

    def _round(self, order: list[State | Prefix]) -> float:
        """Weigh everything once, in order; return by how much a weight has changed at most."""
        change = 0.0
        for item in order:
            if isinstance(item, Prefix):
                if item.position == 0:
                    self.read[item] = self.one
                else:
                    zero = self.one - self.one
                    total = zero
                    for before, child in item.ways:
                        total += self._times(self.read.get(before, zero), self.of.get(child, zero))
                    self.read[item] = total
                continue
            if item.reference is not None:
                total = self.leaf(item)
            else:
                zero = self.one - self.one
                total = sum((self.weight(way) * self.read.get(prefix, zero) for prefix, way in item.ways), zero)
            if isinstance(total, float):
                change = max(change, abs(total - self.of.get(item, 0.0)))
            self.of[item] = total
        return change

    def _times(self, first: Number, second: Number) -> Number:
        if isinstance(first, int) and first.bit_length() + int(second).bit_length() > MOST_BITS:
            raise LimitError(f"this grammar has more than 2^{MOST_BITS:,} terms; no number that large is computed")
        return first * second

    def _settle(self, order: list[State | Prefix]) -> None:
        for _ in range(ROUNDS):
            if self._round(order) < 1e-12:
                return

    # Whole terms

    def assemblies(self) -> list[tuple[Assembly, Number]]:
        """Return every way to put a whole term together, with its weight."""
        automaton = self.automaton
        found = []
        for state in automaton.of[automaton.productions.start]:
            if automaton.constraints.accepts(state.quality):
                family = state.families[automaton.productions.start]
                for parts in completions(automaton, family):
                    weight = self.weigh(state)
                    for _, part in parts:
                        weight *= self.weigh(part)
                    found.append((Assembly(state, parts), weight))
                    if len(found) > MOST_ASSEMBLIES:
                        raise LimitError(
                            f"the shared rules of this grammar combine in more than {MOST_ASSEMBLIES:,} ways"
                        )
        return found


def completions(
    automaton: Automaton, family: Family, given: Binding = NOTHING
) -> Iterator[tuple[tuple[int, State], ...]]:
    """Yield the states of the shared parts that bindings ask for, in every combination that fits together.

    Args:
        automaton: of the grammar.
        family: the bindings of the part they are used in; at least one of them must remain possible.
        given: what is settled already; parts settled there are not asked for again.
    """
    settled = dict(given)
    start = frozenset(both for binding in family if (both := merged(binding, given)) is not None)
    stack: list[tuple[int, Family, tuple[tuple[int, State], ...]]] = [(0, start, ())]
    order = automaton.productions.order
    while stack:
        index, bindings, parts = stack.pop()
        if not bindings:
            continue
        if index == len(order):
            yield parts
            continue
        reference = order[index]
        asked = {dict(binding).get(reference) for binding in bindings}
        if reference in settled or asked == {None}:
            stack.append((index + 1, bindings, parts))
            continue
        rule = automaton.productions.references[reference]
        options = [state for state in automaton.of[rule] if state.quality in asked]
        for state in reversed(options):
            narrowed = set()
            for binding in bindings:
                if dict(binding).get(reference) in (None, state.quality):
                    rest = frozenset(pair for pair in binding if pair[0] != reference)
                    for other in state.families[rule]:
                        both = merged(rest, other)
                        if both is not None:
                            narrowed.add(both)
            stack.append((index + 1, frozenset(narrowed), (*parts, (reference, state))))


def _order(root: State, known: dict[State, Number]) -> tuple[list[State | Prefix], bool]:
    """Return everything that a state's weight depends on, children first, and whether there is a cycle in it."""
    order: list[State | Prefix] = []
    open_now: set[State | Prefix] = set()
    done: set[State | Prefix] = set()
    cyclic = False
    stack: list[tuple[State | Prefix, bool]] = [(root, False)]
    while stack:
        item, leaving = stack.pop()
        if leaving:
            open_now.discard(item)
            done.add(item)
            order.append(item)
            continue
        if item in done:
            continue
        if item in open_now:
            cyclic = True
            continue
        open_now.add(item)
        stack.append((item, True))
        if isinstance(item, Prefix):
            for before, child in reversed(item.ways):
                stack += [(needed, False) for needed in (child, before) if needed not in done and needed not in known]
        elif item.reference is None:
            stack += [(prefix, False) for prefix, _ in reversed(item.ways) if prefix not in done]
    return order, cyclic


def _culprit(automaton: Automaton, root: State) -> str:
    """Return the name of a rule that reaches itself, for a message."""
    productions = automaton.productions
    for number, name in enumerate(productions.names):
        if not name:
            continue
        seen: set[int] = set()
        stack = [number]
        while stack:
            for production in productions.of[stack.pop()]:
                for child in production.children:
                    child = productions.references.get(child, child)
                    if child == number:
                        return f" ({name} reaches itself)"
                    if child not in seen:
                        seen.add(child)
                        stack.append(child)
    return ""


__all__ = ["Assembly", "Weights", "completions"]
