"""Reading a term back: by which rules a grammar derives it.

Every distinct subterm is read once, from the leaves up: which nonterminals derive it, and under which bindings (which
term each shared rule stands for, which alternative each named selection takes). Nothing here counts or draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from eclose.algebra.errors import LimitError
from eclose.algebra.grammar.constraints import Constraints
from eclose.algebra.grammar.productions import Production, Productions, Symbol, Symbols
from eclose.algebra.terms import Term, distinct

MOST_READINGS = 20_000  # of one subterm

Reading = frozenset[tuple[Any, Any]]  # (stand-in, term) and (selection's name, alternative) pairs
NOTHING: Reading = frozenset()


class Use:
    """One use of a production in a derivation.

    Attributes:
        left: the nonterminal.
        production: what it was replaced by; None for a stand-in of a shared rule, and for a part put in as it is.
        children: the uses below.
        term: what is derived, shared parts written out.
        reading: what it assumes of shared rules and named selections.
    """

    __slots__ = ("children", "left", "production", "reading", "term")

    def __init__(
        self,
        left: int,
        production: Production | None,
        children: tuple[Use, ...],
        term: Term,
        reading: Reading = NOTHING,
    ):
        self.left, self.production, self.children, self.term, self.reading = left, production, children, term, reading

    def distinct(self, known: Callable[[Use], bool] = lambda use: False) -> Iterator[Use]:
        """Yield every distinct use once, children before parents."""
        seen: set[Use] = set()
        stack: list[tuple[Use, bool]] = [(self, False)]
        while stack:
            use, done = stack.pop()
            if done:
                yield use
            elif use not in seen and not known(use):
                seen.add(use)
                stack.append((use, True))
                stack += [(child, False) for child in reversed(use.children)]


class Parser:
    """Reads terms back by the productions of a grammar."""

    def __init__(self, productions: Productions, constraints: Constraints, symbols: Symbols):
        self.productions, self.constraints, self.symbols = productions, constraints, symbols
        # Productions are found by their operator and the nonterminal of their first child; both keep rule order.
        self._by_symbol: dict[Symbol, list[Production]] = {}
        self._by_first: dict[tuple[Symbol, int], list[Production]] = {}
        self._order = {production: number for number, production in enumerate(productions)}
        self._units: dict[int, list[Production]] = {}
        self._stand_ins: dict[int, list[int]] = {}
        for production in productions:
            if production.symbol is None:
                self._units.setdefault(production.children[0], []).append(production)
            else:
                self._by_symbol.setdefault(production.symbol, []).append(production)
                if production.children:
                    self._by_first.setdefault((production.symbol, production.children[0]), []).append(production)
        for reference, rule in productions.references.items():
            self._stand_ins.setdefault(rule, []).append(reference)

    def read(self, term: Term) -> tuple[Use, dict[int, Use]] | None:
        """Return the first derivation of a term in rule order, and those of the shared parts it uses; None for none."""
        found: dict[Term, dict[tuple[int, Reading], Use]] = {}
        quality: dict[Term, Any] = {}
        for node in distinct(term):
            if any(child not in found for child in node.children):
                continue
            symbol = self._symbol(node)
            if symbol is None or symbol not in self._by_symbol:
                continue
            state = self.constraints.state(symbol, [quality[child] for child in node.children])
            if state is None:
                continue
            uses = self._uses(node, symbol, found)
            if uses:
                found[node], quality[node] = uses, state
        if term not in found or not self.constraints.accepts(quality[term]):
            return None
        for (left, reading), use in found[term].items():
            if left == self.productions.start:
                return use, self._definitions(reading, found)
        return None

    def accepts(self, term: Term) -> bool:
        """Return whether a term that the rules generate passes the constraints."""
        if not self.constraints.folds:
            return True
        quality: dict[Term, Any] = {}
        for node in distinct(term):
            symbol = self._symbol(node)
            state = None if symbol is None else self.constraints.state(symbol, [quality[c] for c in node.children])
            if state is None:
                return False
            quality[node] = state
        return self.constraints.accepts(quality[term])

    def _symbol(self, node: Term) -> Symbol | None:
        return self.symbols.of_term(node) if node.name in self.symbols.registry else None

    def _uses(
        self, node: Term, symbol: Symbol, found: dict[Term, dict[tuple[int, Reading], Use]]
    ) -> dict[tuple[int, Reading], Use]:
        """Return the uses that derive a node, by nonterminal and reading."""
        uses: dict[tuple[int, Reading], Use] = {}
        agenda: list[Use] = []

        def add(left: int, production: Production | None, children: tuple[Use, ...], reading: Reading) -> None:
            key = (left, reading)
            if key not in uses:
                use = uses[key] = Use(left, production, children, node, reading)
                agenda.append(use)
                if len(uses) > MOST_READINGS:
                    raise LimitError(
                        f"a part of this term can be derived in more than {MOST_READINGS:,} ways that differ in what "
                        "they assume of shared rules; make the shared rules tell themselves apart"
                    )

        for production in self._candidates(node, symbol, found):
            options = [
                [use for (left, _), use in found[child].items() if left == wanted]
                for child, wanted in zip(node.children, production.children, strict=True)
            ]
            if not all(options):
                continue
            for children in product(*options):
                reading = self._joined(production, children)
                if reading is not None:
                    add(production.left, production, children, reading)
        while agenda:
            use = agenda.pop(0)
            for unit in self._units.get(use.left, ()):
                reading = self._joined(unit, (use,))
                if reading is not None:
                    add(unit.left, unit, (use,), reading)
            for reference in self._stand_ins.get(use.left, ()):
                bound = joined(use.reading, frozenset({(reference, node)}))
                if bound is not None:
                    add(reference, None, (), bound)
        return uses

    def _candidates(
        self, node: Term, symbol: Symbol, found: dict[Term, dict[tuple[int, Reading], Use]]
    ) -> list[Production]:
        """Return the productions that may derive a node, in rule order."""
        if not node.children:
            return self._by_symbol[symbol]
        firsts = dict.fromkeys(left for left, _ in found[node.children[0]])
        fitting = [production for left in firsts for production in self._by_first.get((symbol, left), ())]
        return sorted(fitting, key=self._order.__getitem__)

    def _joined(self, production: Production, children: tuple[Use, ...]) -> Reading | None:
        reading: Reading | None = NOTHING if production.guard is None else frozenset({production.guard})
        for child in children:
            assert reading is not None
            reading = joined(reading, child.reading)
            if reading is None:
                return None
        return reading

    def _definitions(self, reading: Reading, found: dict[Term, dict[tuple[int, Reading], Use]]) -> dict[int, Use]:
        """Return how each shared part that a reading speaks of is derived."""
        definitions = {}
        bound = {key: value for key, value in reading if isinstance(value, Term)}
        for reference in self.productions.order:
            if reference in bound:
                rule = self.productions.references[reference]
                definitions[reference] = next(
                    use
                    for (left, assumed), use in found[bound[reference]].items()
                    if left == rule and assumed <= reading
                )
        return definitions


def joined(first: Reading, second: Reading) -> Reading | None:
    """Return what both readings say, or None where they contradict each other."""
    if not first or first == second:
        return second
    if not second:
        return first
    both = first | second
    return both if len({key for key, _ in both}) == len(both) else None
