"""Variation of terms: a site of a derivation gets another subterm, and the whole stays in the grammar.

A site is any place of a derivation where its nonterminal could have been derived otherwise. What a shared rule stands
for is one place, however often it is used. Candidates for a site differ in the constraints' state of the new subterm;
the whole is checked for each state drawn, so a result always obeys every constraint.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any

from eclose.algebra.errors import RequestError
from eclose.algebra.grammar.automaton import Automaton, State
from eclose.algebra.grammar.drawing import Drawer
from eclose.algebra.grammar.parsing import Parser, Use
from eclose.algebra.grammar.productions import Production
from eclose.algebra.grammar.smallest import Smallest
from eclose.algebra.grammar.weighing import Weights, completions
from eclose.algebra.terms import Term, distinct, intern

TRIES = 60  # draws of a subterm of one state before another state is tried
MOST_FILLINGS = 64  # combinations of new children tried where a production is changed

Path = tuple[int, ...]
Site = tuple[int | None, Path]  # the shared part (None: the outermost part) and the path from its root
Readings = tuple[Use, dict[int, Use]]


class Variation:
    """Mutation, crossover and neighbours of the terms of one grammar."""

    def __init__(self, parser: Parser, prior: Weights):
        self.parser, self.prior = parser, prior
        self.drawer, self.smallest = Drawer(prior), Smallest(prior)
        self.automaton: Automaton = prior.automaton
        self.productions = parser.productions
        self._variable: dict[int, bool] = {}

    # Operations

    def mutate(self, read: Readings, rng: random.Random) -> Term | None:
        """Return the term with a new subterm at a site drawn evenly; None where nothing can be changed."""
        sites = _Sites(read, self._can_vary)
        for site in sites.drawn(rng):
            found = self._redrawn(read, site, sites.at(site), rng)
            if found is not None:
                return found
        return None

    def crossover(self, first: Readings, second: Readings, rng: random.Random) -> tuple[Term, Term] | None:
        """Return both terms with subterms of one nonterminal exchanged; None where no exchange changes anything."""
        ours, theirs = _Sites(first, self._can_vary), _Sites(second, self._can_vary)
        by_left: dict[int, list[Site]] = {}
        for site in theirs.all():
            by_left.setdefault(theirs.at(site).left, []).append(site)
        for site in ours.drawn(rng):
            mine = ours.at(site)
            others = list(by_left.get(mine.left, ()))
            rng.shuffle(others)
            for other in others[:TRIES]:
                yours = theirs.at(other)
                if yours.term is mine.term:
                    continue
                one, two = self._with(first, {site: yours.term}), self._with(second, {other: mine.term})
                if one is not None and two is not None:
                    return one, two
        return None

    def self_crossover(self, read: Readings, rng: random.Random, copy: bool) -> Term | None:
        """Return the term with two subterms of one nonterminal exchanged, or one copied over the other."""
        sites = _Sites(read, self._can_vary)
        for site in sites.drawn(rng):
            use = sites.at(site)
            others = [other for other in sites.all() if sites.at(other).left == use.left and _apart(site, other)]
            rng.shuffle(others)
            for other in others[:TRIES]:
                if sites.at(other).term is use.term:
                    continue
                changes = {site: sites.at(other).term}
                if not copy:
                    changes[other] = use.term
                found = self._with(read, changes)
                if found is not None and found is not self._whole(read):
                    return found
        return None

    def neighbours(self, read: Readings) -> Iterator[Term]:
        """Yield the terms in which one site uses another production; children that fit both are kept."""
        sites = _Sites(read, self._can_vary)
        seen = {self._whole(read)}
        for site in sites.all():
            use = sites.at(site)
            for production in self.productions.of[use.left]:
                if production is use.production:
                    continue
                for subterm in self._fillings(use, production, read):
                    found = self._with(read, {site: subterm})
                    if found is not None:
                        if found not in seen:
                            seen.add(found)
                            yield found
                        break

    # One site

    def _can_vary(self, use: Use) -> bool:
        """Return whether a nonterminal derives more than one term."""
        found = self._variable.get(use.left)
        if found is None:
            rows = self.productions.of[use.left]
            found = use.production is not None and bool(rows) and self._derives_two(use.left)
            self._variable[use.left] = found
        return found

    def _derives_two(self, nonterminal: int) -> bool:
        seen, stack = {nonterminal}, [nonterminal]
        while stack:
            group = self.productions.of[stack.pop()]
            if len(group) > 1:
                return True
            for production in group:
                for child in production.children:
                    if child not in seen and child not in self.productions.references:
                        seen.add(child)
                        stack.append(child)
        return False

    def _redrawn(self, read: Readings, site: Site, use: Use, rng: random.Random) -> Term | None:
        settled = self._settled(read, site)
        states = [state for state in self.automaton.of[use.left] if self.prior.weigh(state) > 0]
        before = self._whole(read)
        while states:
            weights = [self.prior.weigh(state) for state in states]
            state = states.pop(rng.choices(range(len(states)), weights)[0])
            for _ in range(TRIES):
                drawn = self._draw(state, settled, rng)
                if drawn is None:
                    break
                if drawn is use.term:
                    continue
                found = self._with(read, {site: drawn})
                if found is None and not self.productions.references:
                    break  # acceptance depends on the state alone
                if found is not None and found is not before:
                    return found
        return None

    def _draw(self, state: State, settled: Mapping[int, Term], rng: random.Random) -> Term | None:
        """Return a term of a state in which shared parts are those that are settled, and new ones are drawn."""
        given = frozenset((reference, self._quality(term)) for reference, term in settled.items())
        parts = next(completions(self.automaton, next(iter(state.families.values())), given), None)
        if parts is None:
            return None
        for _, part in parts:
            self.prior.weigh(part)
        return self.drawer.part(state, self.drawer.parts(parts, settled, rng), rng)

    def _quality(self, term: Term) -> Any:
        quality: dict[Term, Any] = {}
        for node in distinct(term):
            symbol = self.parser.symbols.of_term(node)
            quality[node] = self.parser.constraints.state(symbol, [quality[child] for child in node.children])
        return quality[term]

    def _settled(self, read: Readings, site: Site) -> dict[int, Term]:
        """Return the shared parts whose terms stay what they are when a site is changed."""
        order = self.productions.order
        below = order[order.index(site[0]) + 1 :] if site[0] is not None else order
        return {reference: read[1][reference].term for reference in below if reference in read[1]}

    def _fillings(self, use: Use, production: Production, read: Readings) -> Iterator[Term]:
        """Yield subterms made by another production, smallest first where a child has to be new."""
        left_over = list(use.children)
        options: list[list[Term]] = []
        for nonterminal in production.children:
            kept = next((child for child in left_over if child.left == nonterminal), None)
            if kept is not None:
                left_over.remove(kept)
                options.append([kept.term])
            elif nonterminal in read[1]:
                options.append([read[1][nonterminal].term])
            else:
                options.append(self.smallest.of(nonterminal))
        for children in islice(product(*options), MOST_FILLINGS):
            if production.symbol is None:
                yield children[0]
            else:
                yield intern(production.symbol.name, children, production.symbol.attributes)

    # Putting a term together again

    def _whole(self, read: Readings) -> Term:
        return read[0].term

    def _with(self, read: Readings, changes: Mapping[Site, Term]) -> Term | None:
        """Return the whole term with new subterms at some sites, or None where it leaves the grammar."""
        root, definitions = read
        terms: dict[int, Term] = {}
        for reference in reversed(self.productions.order):
            if reference in definitions:
                own = {path: term for (part, path), term in changes.items() if part == reference}
                terms[reference] = _rebuilt(definitions[reference], own, terms)
        whole = _rebuilt(root, {path: term for (part, path), term in changes.items() if part is None}, terms)
        if self.productions.references or self.productions.selections:
            return whole if self.parser.read(whole) is not None else None
        return whole if self.parser.accepts(whole) else None


class _Sites:
    """The sites of a derivation, numbered without being listed: a derivation may share its parts many times over."""

    def __init__(self, read: Readings, can_vary: Any):
        self.roots: list[tuple[int | None, Use]] = [(None, read[0]), *read[1].items()]
        self.by_part = dict(self.roots)
        self.can_vary = can_vary
        self.counts: dict[Use, int] = {}
        for _, root in self.roots:
            for use in root.distinct(self.counts.__contains__):
                self.counts[use] = can_vary(use) + sum(self.counts[child] for child in use.children)
        self.total = sum(self.counts[root] for _, root in self.roots)

    def number(self, number: int) -> Site:
        """Return a site by its number."""
        part, use, number = self._part(number)
        path = list[int]()
        while True:
            if self.can_vary(use):
                if number == 0:
                    return part, tuple(path)
                number -= 1
            index = 0
            while number >= self.counts[use.children[index]]:
                number -= self.counts[use.children[index]]
                index += 1
            path.append(index)
            use = use.children[index]

    def _part(self, number: int) -> tuple[int | None, Use, int]:
        for part, root in self.roots:
            if number < self.counts[root]:
                return part, root, number
            number -= self.counts[root]
        raise AssertionError("the number was checked against the total")

    def at(self, site: Site) -> Use:
        """Return the use at a site."""
        use = self.by_part[site[0]]
        for index in site[1]:
            use = use.children[index]
        return use

    def all(self) -> Iterator[Site]:
        """Yield every site."""
        if self.total > 1_000_000:
            raise RequestError(f"this term has {self.total:,} sites; its neighbours cannot be listed")
        return (self.number(number) for number in range(self.total))

    def drawn(self, rng: random.Random) -> Iterator[Site]:
        """Yield sites, drawn evenly and each at most once."""
        if self.total > 5_000:
            tried: set[int] = set()
            while len(tried) < 5_000:
                number = rng.randrange(self.total)
                if number not in tried:
                    tried.add(number)
                    yield self.number(number)
            return
        numbers = list(range(self.total))
        while numbers:
            place = rng.randrange(len(numbers))
            numbers[place], numbers[-1] = numbers[-1], numbers[place]
            yield self.number(numbers.pop())


def _rebuilt(root: Use, changes: Mapping[Path, Term], terms: Mapping[int, Term]) -> Term:
    """Return the term of a derivation with new subterms at some paths and new terms for shared parts."""
    plain: dict[Use, Term] = {}

    def unchanged(top: Use) -> Term:
        for use in top.distinct(plain.__contains__):
            if use.production is None:
                plain[use] = terms[use.left]
            elif use.production.symbol is None:
                plain[use] = plain[use.children[0]]
            else:
                symbol = use.production.symbol
                plain[use] = intern(symbol.name, tuple(plain[child] for child in use.children), symbol.attributes)
        return plain[top]

    # Only the spines above changed paths are new; everything else is built once for each distinct use.
    done: dict[Path, Term] = dict(changes)
    above = sorted({path[:length] for path in changes for length in range(len(path))}, key=len, reverse=True)
    for path in above:
        use = root
        for index in path:
            use = use.children[index]
        children = tuple(
            done[(*path, index)] if (*path, index) in done else unchanged(child)
            for index, child in enumerate(use.children)
        )
        assert use.production is not None
        symbol = use.production.symbol
        done[path] = children[0] if symbol is None else intern(symbol.name, children, symbol.attributes)
    return done[()] if () in done else unchanged(root)


def _apart(first: Site, second: Site) -> bool:
    """Return whether neither of two sites contains the other."""
    if first[0] != second[0]:
        return True
    shorter = min(len(first[1]), len(second[1]))
    return first[1][:shorter] != second[1][:shorter]
