"""Drawing terms from a weighted automaton: exactly in proportion to the weights, from the caller's generator.

A state with few terms draws from a table of them; one with few combinations of its children's states from a table of
those; any other goes from the last child to the first. Nothing here knows what the weights mean.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from eclose.algebra.errors import LimitError
from eclose.algebra.grammar.automaton import Prefix, State
from eclose.algebra.grammar.productions import Symbol
from eclose.algebra.grammar.weighing import Assembly, Number, Weights
from eclose.algebra.terms import Term, intern

LARGEST_TABLE = 512
MOST_NODES = 1_000_000

Row = tuple[Symbol | None, tuple[State, ...]]


class Drawer:
    """Draws terms by an automaton's weights."""

    def __init__(self, weights: Weights):
        self.weights = weights
        self._whole: tuple[list[Assembly], list[Number]] | None = None
        self._terms: dict[State, tuple[list[Term], list[Number]] | None] = {}
        self._rows: dict[State, tuple[list[Row], list[Number]] | None] = {}

    def whole(self, rng: random.Random) -> Term:
        """Return a whole term."""
        if self._whole is None:
            weighed = self.weights.assemblies()
            self._whole = [assembly for assembly, _ in weighed], list(accumulate(weight for _, weight in weighed))
        assemblies, bounds = self._whole
        if not assemblies:
            raise LimitError("there is no term to draw: the constraints of this grammar refuse every one")
        assembly = assemblies[_place(bounds, rng)]
        return self.part(assembly.root, self.parts(assembly.parts, {}, rng), rng)

    def parts(
        self, parts: Sequence[tuple[int, State]], settled: Mapping[int, Term], rng: random.Random
    ) -> dict[int, Term]:
        """Return a term for each shared part, in addition to those that are settled."""
        definitions = dict(settled)
        for reference, state in reversed(parts):
            definitions[reference] = self.part(state, definitions, rng)
        return definitions

    def part(self, root: State, definitions: Mapping[int, Term], rng: random.Random) -> Term:
        """Return a term of a state; shared parts are taken from the definitions."""
        return self._built(root, definitions, lambda state: self._row(state, rng), rng)

    def _built(
        self,
        root: State,
        definitions: Mapping[int, Term],
        row: Callable[[State], Row],
        rng: random.Random,
    ) -> Term:
        done: list[Term] = []
        stack: list[State | Symbol] = [root]
        made = 0
        while stack:
            item = stack.pop()
            if isinstance(item, Symbol):
                count = item.arity
                if count:
                    children = tuple(done[-count:])
                    del done[-count:]
                    done.append(intern(item.name, children, item.attributes))
                else:
                    done.append(intern(item.name, (), item.attributes))
                made += 1
                if made > MOST_NODES:
                    raise LimitError(
                        f"a draw grew beyond {MOST_NODES:,} nodes; bound the recursion, for example with "
                        "`constrain depth(8)` or `constrain size(200)`"
                    )
            elif item.reference is not None:
                done.append(definitions[item.reference])
            else:
                table = self._terms[item] if item in self._terms else self._table(item)
                if table is not None:
                    done.append(table[0][_place(table[1], rng)])
                    continue
                symbol, children_states = row(item)
                if symbol is not None:
                    stack.append(symbol)
                stack.extend(reversed(children_states))
        return done[0]

    def _row(self, state: State, rng: random.Random) -> Row:
        """Draw an operator and the states of its children."""
        rows = self._rows[state] if state in self._rows else self._rows_of(state)
        if rows is not None:
            return rows[0][_place(rows[1], rng)]
        read, weigh = self.weights.read, self.weights.weigh
        ways = [(prefix, self.weights.weight(way) * read[prefix]) for prefix, way in state.ways]
        prefix = complete = ways[_place(list(accumulate(weight for _, weight in ways)), rng)][0]
        children: list[State] = []
        while prefix.position:
            bounds = list(accumulate(read[before] * weigh(child) for before, child in prefix.ways))
            prefix, child = prefix.ways[_place(bounds, rng)]
            children.append(child)
        return complete.symbol, tuple(reversed(children))

    def _rows_of(self, state: State) -> tuple[list[Row], list[Number]] | None:
        """Return every operator and combination of children's states with cumulated weights, or None for too many."""
        rows: list[Row] = []
        weights: list[Number] = []
        for complete, way in state.ways:
            if self.weights.read.get(complete, 0) == 0:
                continue
            combined = self._combined(complete)
            if combined is None or len(rows) + len(combined) > LARGEST_TABLE:
                self._rows[state] = None
                return None
            for children, weight in combined:
                rows.append((complete.symbol, children))
                weights.append(self.weights.weight(way) * weight)
        self._rows[state] = rows, list(accumulate(weights))
        return self._rows[state]

    def _combined(self, prefix: Prefix) -> list[tuple[tuple[State, ...], Number]] | None:
        found: list[tuple[tuple[State, ...], Number]] = [((), self.weights.one)]
        level: dict[Prefix, list[tuple[tuple[State, ...], Number]]] = {prefix: found}
        for _ in range(prefix.position):
            longer: dict[Prefix, list[tuple[tuple[State, ...], Number]]] = {}
            total = 0
            for reached, tails in level.items():
                for before, child in reached.ways:
                    weight = self.weights.weigh(child)
                    longer.setdefault(before, []).extend(((child, *tail), weight * other) for tail, other in tails)
                    total += len(tails)
            if total > LARGEST_TABLE:
                return None
            level = longer
        return [pair for pairs in level.values() for pair in pairs]

    def _table(self, root: State) -> tuple[list[Term], list[Number]] | None:
        """Return the terms of a state with cumulated weights, or None where they are too many or not known alone."""
        stack = [(root, False)]
        while stack:
            state, ready = stack.pop()
            if state in self._terms and not ready:
                continue
            rows = None
            if state.reference is None and not self.weights.recursive:
                rows = self._rows[state] if state in self._rows else self._rows_of(state)
            if rows is None:
                self._terms[state] = None
                continue
            needed = [child for _, children in rows[0] for child in children if child not in self._terms]
            if needed and not ready:
                stack.append((state, True))
                stack += [(child, False) for child in needed]
                continue
            self._terms[state] = self._listed(rows)
        return self._terms[root]

    def _listed(self, rows: tuple[list[Row], list[Number]]) -> tuple[list[Term], list[Number]] | None:
        terms: list[Term] = []
        weights: list[Number] = []
        for (symbol, children), row_weight in zip(rows[0], _singly(rows[1]), strict=True):
            combined: list[tuple[tuple[Term, ...], Number]] = [((), self.weights.one)]
            for child in children:
                table = self._terms[child]
                if table is None or len(combined) * len(table[0]) > LARGEST_TABLE:
                    return None
                combined = [
                    ((*before, term), weight * own)
                    for before, weight in combined
                    for term, own in zip(table[0], _singly(table[1]), strict=True)
                ]
            # A row weighs its production's factor times what its children weigh together.
            together = sum((weight for _, weight in combined), self.weights.one - self.weights.one)
            for parts, weight in combined:
                terms.append(parts[0] if symbol is None else intern(symbol.name, parts, symbol.attributes))
                whole = row_weight * weight
                weights.append(whole // together if isinstance(whole, int) else whole / together)
            if len(terms) > LARGEST_TABLE:
                return None
        return terms, list(accumulate(weights))


def _place(bounds: Sequence[Number], rng: random.Random) -> int:
    """Draw a place in proportion to cumulated weights; nothing is drawn where there is no choice."""
    if len(bounds) == 1:
        return 0
    last = bounds[-1]
    if isinstance(last, int):
        return bisect_right(bounds, rng.randrange(last))
    return min(bisect_right(bounds, rng.random() * last), len(bounds) - 1)


def _singly(bounds: Sequence[Number]) -> list[Number]:
    return [bound - before for bound, before in zip(bounds, [bounds[0] - bounds[0], *bounds], strict=False)]
