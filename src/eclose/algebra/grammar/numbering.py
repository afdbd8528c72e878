"""Numbers for terms: every term of a finite grammar has one, from 0, and the number gives the term back.

The order is that of the automaton: state by state, way by way, child by child. Numbers are exact integers of any size.
"""

from __future__ import annotations

from eclose.algebra.errors import LimitError
from eclose.algebra.grammar.automaton import Automaton, Prefix, State
from eclose.algebra.grammar.parsing import Use
from eclose.algebra.grammar.weighing import Assembly, Weights
from eclose.algebra.terms import Term, intern


class Numbering:
    """The numbers of the terms that an automaton's weights count."""

    def __init__(self, weights: Weights):
        self.weights = weights
        self.assemblies: list[tuple[Assembly, int]] = weights.assemblies()
        self.total = sum(weight for _, weight in self.assemblies)

    # From a number to its term

    def unrank(self, number: int) -> Term:
        """Return the term with a number."""
        if isinstance(number, bool) or not isinstance(number, int):
            raise LimitError(f"a term's number is a whole number, not {number!r}")
        if not 0 <= number < self.total:
            last = self.total - 1
            shown = str(last) if last.bit_length() < 200 else f"about 2^{last.bit_length() - 1}"
            raise LimitError(f"there is no term with this number; they go from 0 to {shown}")
        assembly, number = self._assembly(number)
        definitions: dict[int, Term] = {}
        for reference, state in reversed(assembly.parts):
            number, own = divmod(number, self.weights.weigh(state))
            definitions[reference] = self._term(state, own, definitions)
        return self._term(assembly.root, number, definitions)

    def _assembly(self, number: int) -> tuple[Assembly, int]:
        """Return the assembly that a number falls into, and the number within it."""
        for assembly, weight in self.assemblies:
            if number < weight:
                return assembly, number
            number -= weight
        raise AssertionError("the number was checked against the total")

    def _term(self, state: State, number: int, definitions: dict[int, Term]) -> Term:
        """Return the term with a number among those of a state."""
        done: list[Term] = []
        stack: list[tuple[State, int] | Prefix] = [(state, number)]
        while stack:
            item = stack.pop()
            if isinstance(item, Prefix):
                if item.symbol is not None:
                    count = item.arity
                    children = tuple(done[len(done) - count :])
                    del done[len(done) - count :]
                    done.append(intern(item.symbol.name, children, item.symbol.attributes))
                continue
            state, number = item
            if state.reference is not None:
                done.append(definitions[state.reference])
                continue
            for prefix, way in state.ways:
                weight = self.weights.weight(way)
                size = weight * self.weights.read.get(prefix, 0)
                if number < size:
                    break
                number -= size
            stack.append(prefix)
            stack += self._children(prefix, number // weight)
        return done[0]

    def _children(self, prefix: Prefix, number: int) -> list[tuple[State, int]]:
        """Return the children's states and numbers, the last child first."""
        found = []
        read, weigh = self.weights.read, self.weights.of
        while prefix.position:
            for before, child in prefix.ways:
                size = read.get(before, 0) * weigh.get(child, 0)
                if number < size:
                    break
                number -= size
            number, own = divmod(number, weigh[child])
            found.append((child, own))
            prefix = before
        return found

    # From a term to its number

    def rank(self, root: Use, definitions: dict[int, Use]) -> int:
        """Return the number of the term with a derivation.

        Args:
            root: the derivation of the outermost part.
            definitions: those of the shared parts, by stand-in.
        """
        places: dict[Use, tuple[State, int]] = {}
        by_reference: dict[int, tuple[State, int]] = {}
        for reference in reversed(self.weights.automaton.productions.order):
            if reference in definitions:
                by_reference[reference] = self._place(definitions[reference], by_reference, places)
        state, own = self._place(root, by_reference, places)
        offset = 0
        for assembly, weight in self.assemblies:
            parts = dict(assembly.parts)
            if assembly.root is state and all(parts[key] is by_reference[key][0] for key in parts):
                break
            offset += weight
        number = own
        for reference, part in assembly.parts:
            number = number * self.weights.weigh(part) + by_reference[reference][1]
        return offset + number

    def _place(
        self, root: Use, by_reference: dict[int, tuple[State, int]], places: dict[Use, tuple[State, int]]
    ) -> tuple[State, int]:
        """Return the state of a derivation's term and its number there."""
        automaton = self.weights.automaton
        for use in root.distinct(places.__contains__):
            if use.production is None:
                quality = by_reference[use.left][0].quality
                places[use] = (automaton.reference_state(use.left, quality), 0)
            elif use.production.symbol is None:
                places[use] = places[use.children[0]]
            else:
                places[use] = self._applied(automaton, use, [places[child] for child in use.children])
        return places[root]

    def _applied(self, automaton: Automaton, use: Use, children: list[tuple[State, int]]) -> tuple[State, int]:
        read, weigh = self.weights.read, self.weights.of
        assert use.production is not None
        prefix = automaton.beginnings[use.production.symbol]
        number = 0
        for child, own in children:
            longer = prefix.next[child]
            assert longer is not None
            offset = 0
            for before, state in longer.ways:
                if before is prefix and state is child:
                    break
                offset += read.get(before, 0) * weigh.get(state, 0)
            number = offset + number * self.weights.weigh(child) + own
            prefix = longer
        end = prefix.end
        assert end is not None
        for way, _ in end.ways:
            if way is prefix:
                break
            number += read.get(way, 0)
        return end, number


__all__ = ["Numbering"]
