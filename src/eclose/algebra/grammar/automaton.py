"""Automata over a grammar's terms: all the states a subterm can be in, and every way to get there.

There are two, built by one closure. In `DerivationAutomaton` a state says by which nonterminal a term was derived, so
the ways into it are derivations. In `TermAutomaton` a state says by which nonterminals it can be derived (the subset
construction), so every term has exactly one way into exactly one state: it counts terms.

Operators read their children one after the other: a `Prefix` has read some of them. A shared part appears as a leaf of
its own, and what a term assumes about such parts (and about named selections) travels with its state as a *binding*.
Weights, counts and draws are not known here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from eclose.algebra.errors import LimitError
from eclose.algebra.grammar.constraints import Constraints
from eclose.algebra.grammar.productions import Production, Productions, Symbol

MOST_STATES = 400_000

Binding = frozenset[tuple[int, Any]]  # (shared stand-in, its constraint state) and (selection, its alternative) pairs
Family = frozenset[Binding]
NOTHING: Binding = frozenset()


class State:
    """What is known of a finished term.

    Attributes:
        quality: its state under the constraints.
        families: by nonterminal that derives the term, the bindings under which it does.
        reference: the stand-in of a shared part, for the leaf that stands for it.
        ways: the complete prefixes that end here, each with the production where there is one.
    """

    __slots__ = ("families", "number", "quality", "reference", "ways")

    def __init__(self, number: int, quality: tuple[Any, ...], families: dict[int, Family]):
        self.number, self.quality, self.families = number, quality, families
        self.reference: int | None = None
        self.ways: list[tuple[Prefix, Production | None]] = []


class Prefix:
    """An operator that has read some of its children.

    Attributes:
        symbol: the operator, or None for a unit production.
        known: what the constraints remember.
        alive: the productions that can still apply, each with its binding.
        ways: the shorter prefixes and next children that lead here; one empty way where no child is read yet.
        next: the prefix after one more child of a state, or None.
        end: the state of the whole, where all children are read.
    """

    __slots__ = ("alive", "arity", "end", "known", "next", "number", "position", "symbol", "ways")

    def __init__(self, number: int, symbol: Symbol | None, arity: int, position: int, known: Any, alive: Any):
        self.number, self.symbol, self.arity, self.position = number, symbol, arity, position
        self.known, self.alive = known, alive
        self.ways: list[tuple[Prefix, State]] = []
        self.next: dict[State, Prefix | None] = {}
        self.end: State | None = None


class Automaton(ABC):
    """What both automata have in common: the closure over states and prefixes.

    Attributes:
        productions: the grammar's.
        constraints: the folds that every term passes.
        states: all states, in a reproducible order.
        of: the states of each nonterminal.
        beginnings: the prefixes that have read nothing, by symbol or production.
    """

    def __init__(self, productions: Productions, constraints: Constraints):
        self.productions, self.constraints = productions, constraints
        self.states: list[State] = []
        self.of: list[list[State]] = [[] for _ in productions.names]
        self.beginnings: dict[Any, Prefix] = {}
        self._prefixes: dict[Hashable, Prefix] = {}
        self._known: dict[Hashable, State] = {}
        self._waiting: list[list[Prefix]] = [[] for _ in productions.names]
        self._agenda: list[Prefix | State] = []
        self._selections = {name: -1 - index for index, name in enumerate(productions.selections)}
        self._stand_ins: dict[int, list[int]] = {}
        for reference, rule in productions.references.items():
            self._stand_ins.setdefault(rule, []).append(reference)
        self._close()

    @property
    def prefixes(self) -> list[Prefix]:
        """All prefixes, each after the shorter ones that lead to it."""
        return list(self._prefixes.values())

    def reference_state(self, reference: int, quality: tuple[Any, ...]) -> State:
        """Return the leaf that stands for a shared part with a state under the constraints."""
        return next(state for state in self.of[reference] if state.reference == reference and state.quality == quality)

    # The closure

    def _close(self) -> None:
        for key, symbol, arity, alive in self._first():
            known = () if symbol is None else self.constraints.begin(symbol)
            self.beginnings[key] = self._prefix(symbol, arity, 0, known, alive)
        while self._agenda:
            item = self._agenda.pop()
            if isinstance(item, State):
                for nonterminal in item.families:
                    for prefix in self._waiting[nonterminal]:
                        self._join(prefix, item)
            elif item.position == item.arity:
                self._finish(item)
            else:
                expected = sorted({production.children[item.position] for production, _ in item.alive})
                for nonterminal in expected:
                    self._waiting[nonterminal].append(item)
                for nonterminal in expected:
                    for state in self.of[nonterminal]:
                        self._join(item, state)

    def _join(self, prefix: Prefix, state: State) -> None:
        if state in prefix.next:
            return
        prefix.next[state] = None
        alive = self._after(prefix, state)
        if not alive:
            return
        known = prefix.known
        if prefix.symbol is None:
            known = state.quality
        else:
            known = self.constraints.step(prefix.symbol, known, prefix.position, state.quality)
            if known is None:
                return
        longer = self._prefix(prefix.symbol, prefix.arity, prefix.position + 1, known, alive)
        longer.ways.append((prefix, state))
        prefix.next[state] = longer

    def _finish(self, prefix: Prefix) -> None:
        quality = prefix.known
        if prefix.symbol is not None:
            quality = self.constraints.finish(prefix.symbol, quality)
            if quality is None:
                return
        for derived, production in self._ends(prefix):
            state = self._state(quality, derived)
            state.ways.append((prefix, production))
            prefix.end = state

    def _prefix(self, symbol: Symbol | None, arity: int, position: int, known: Any, alive: Any) -> Prefix:
        key = (None if symbol is None else id(symbol), arity, position, known, alive)
        found = self._prefixes.get(key)
        if found is None:
            found = Prefix(len(self._prefixes), symbol, arity, position, known, alive)
            self._prefixes[key] = found
            self._agenda.append(found)
            self._refuse_many()
        return found

    def _state(self, quality: tuple[Any, ...], derived: frozenset[tuple[int, Binding]]) -> State:
        key = (quality, derived)
        found = self._known.get(key)
        if found is None:
            families: dict[int, set[Binding]] = {}
            for nonterminal, binding in derived:
                families.setdefault(nonterminal, set()).add(binding)
            ordered = {nonterminal: frozenset(families[nonterminal]) for nonterminal in sorted(families)}
            found = self._known[key] = State(len(self.states), quality, ordered)
            self.states.append(found)
            self._agenda.append(found)
            for nonterminal in ordered:
                self.of[nonterminal].append(found)
            self._refuse_many()
            for nonterminal in ordered:
                for reference in self._stand_ins.get(nonterminal, ()):
                    self._stand_in(reference, quality)
        return found

    def _stand_in(self, reference: int, quality: tuple[Any, ...]) -> None:
        """Make the leaf that stands for a shared part whose term has a state."""
        binding: Binding = frozenset({(reference, quality)})
        for derived in self._leaf(reference, binding):
            state = self._state(quality, derived)
            if reference in state.families and len(state.families[reference]) == 1:
                state.reference = reference

    def _refuse_many(self) -> None:
        if len(self._prefixes) + len(self.states) > MOST_STATES:
            raise LimitError(
                f"this grammar with its constraints needs more than {MOST_STATES:,} states to be counted or drawn; "
                "constrain it with smaller numbers, or name fewer selections that must agree"
            )

    def _guarded(self, production: Production, binding: Binding) -> Binding | None:
        """Return the binding together with the selection that a production makes, or None where they contradict."""
        if production.guard is None:
            return binding
        name, alternative = production.guard
        return merged(binding, frozenset({(self._selections[name], alternative)}))

    # What the two differ in

    @abstractmethod
    def _first(self) -> Iterator[tuple[Any, Symbol | None, int, Any]]:
        """Yield the prefixes that have read nothing: their keys, symbols, arities and live productions."""

    @abstractmethod
    def _after(self, prefix: Prefix, state: State) -> Any:
        """Return what is still alive after one more child; nothing where no production goes on."""

    @abstractmethod
    def _ends(self, prefix: Prefix) -> Iterable[tuple[frozenset[tuple[int, Binding]], Production | None]]:
        """Yield what a complete prefix derives, each with the production where there is one."""

    @abstractmethod
    def _leaf(self, reference: int, binding: Binding) -> Iterable[frozenset[tuple[int, Binding]]]:
        """Return what the stand-in of a shared part derives."""


class DerivationAutomaton(Automaton):
    """A state is one nonterminal with one binding; the ways into it are its derivations."""

    def _first(self) -> Iterator[tuple[Any, Symbol | None, int, Any]]:
        for production in self.productions:
            binding = self._guarded(production, NOTHING)
            yield production, production.symbol, len(production.children), ((production, binding),)

    def _after(self, prefix: Prefix, state: State) -> Any:
        ((production, binding),) = prefix.alive
        (found,) = state.families[production.children[prefix.position]]
        both = merged(binding, found)
        return None if both is None else ((production, both),)

    def _ends(self, prefix: Prefix) -> Iterable[tuple[frozenset[tuple[int, Binding]], Production | None]]:
        ((production, binding),) = prefix.alive
        yield frozenset({(production.left, binding)}), production

    def _leaf(self, reference: int, binding: Binding) -> Iterable[frozenset[tuple[int, Binding]]]:
        yield frozenset({(reference, binding)})


class TermAutomaton(Automaton):
    """A state is the set of all nonterminals that derive a term, with all their bindings."""

    def _first(self) -> Iterator[tuple[Any, Symbol | None, int, Any]]:
        by_symbol: dict[Symbol, list[tuple[Production, Binding]]] = {}
        self._units: dict[int, list[Production]] = {}
        for production in self.productions:
            if production.symbol is None:
                self._units.setdefault(production.children[0], []).append(production)
                continue
            binding = self._guarded(production, NOTHING)
            assert binding is not None
            by_symbol.setdefault(production.symbol, []).append((production, binding))
        for symbol, alive in by_symbol.items():
            yield symbol, symbol, symbol.arity, frozenset(alive)

    def _after(self, prefix: Prefix, state: State) -> Any:
        found = set()
        for production, binding in prefix.alive:
            for other in state.families.get(production.children[prefix.position], ()):
                both = merged(binding, other)
                if both is not None:
                    found.add((production, both))
        return frozenset(found)

    def _ends(self, prefix: Prefix) -> Iterable[tuple[frozenset[tuple[int, Binding]], Production | None]]:
        yield self._with_units({(production.left, binding) for production, binding in prefix.alive}), None

    def _leaf(self, reference: int, binding: Binding) -> Iterable[frozenset[tuple[int, Binding]]]:
        yield self._with_units({(reference, binding)})

    def _with_units(self, found: set[tuple[int, Binding]]) -> frozenset[tuple[int, Binding]]:
        stack = list(found)
        while stack:
            nonterminal, binding = stack.pop()
            for production in self._units.get(nonterminal, ()):
                guarded = self._guarded(production, binding)
                if guarded is not None and (production.left, guarded) not in found:
                    found.add((production.left, guarded))
                    stack.append((production.left, guarded))
        return frozenset(found)


def merged(first: Binding, second: Binding) -> Binding | None:
    """Return what both bindings say, or None where they contradict each other."""
    if not first or first == second:
        return second
    if not second:
        return first
    both = first | second
    return both if len({variable for variable, _ in both}) == len(both) else None
