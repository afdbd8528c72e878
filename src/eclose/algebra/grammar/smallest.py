"""The smallest term of every nonterminal, one for each state that the constraints can tell apart."""

from __future__ import annotations

from collections.abc import Iterator

from eclose.algebra.grammar.automaton import Prefix, State
from eclose.algebra.grammar.weighing import Weights
from eclose.algebra.terms import Term, intern


class Smallest:
    """Finds smallest terms; those that need a shared part contain its smallest term."""

    def __init__(self, weights: Weights):
        self.automaton = weights.automaton
        self._of_state: dict[State, Term] | None = None

    def of(self, nonterminal: int) -> list[Term]:
        """Return the smallest term of each state of a nonterminal, smallest first."""
        if self._of_state is None:
            self._of_state = self._found()
        rule = self.automaton.productions.references.get(nonterminal, nonterminal)
        terms = {self._of_state[state] for state in self.automaton.of[rule] if state in self._of_state}
        return sorted(terms)

    def _found(self) -> dict[State, Term]:
        """Return a smallest term for each state, improving until nothing gets smaller."""
        found: dict[State, Term] = {}
        children: dict[Prefix, tuple[Term, ...]] = {}
        changed = True
        while changed:
            changed = False
            for prefix in self.automaton.prefixes:  # a prefix comes after the shorter ones that lead to it
                if not prefix.position:
                    children[prefix] = ()
                for before, child in prefix.ways:
                    if before in children and child in found:
                        read = (*children[before], found[child])
                        if prefix not in children or _size(read) < _size(children[prefix]):
                            children[prefix] = read
            for state in self.automaton.states:
                for term in self._candidates(state, found, children):
                    if state not in found or term.size < found[state].size:
                        found[state] = term
                        changed = True
        return found

    def _candidates(
        self, state: State, found: dict[State, Term], children: dict[Prefix, tuple[Term, ...]]
    ) -> Iterator[Term]:
        if state.reference is not None:
            rule = self.automaton.productions.references[state.reference]
            for other in self.automaton.of[rule]:
                if other in found and other.quality == state.quality:
                    yield found[other]
        for prefix, _ in state.ways:
            if prefix in children:
                read, symbol = children[prefix], prefix.symbol
                yield read[0] if symbol is None else intern(symbol.name, read, symbol.attributes)


def _size(terms: tuple[Term, ...]) -> int:
    return sum(term.size for term in terms)
