"""Productions: a grammar as a tree automaton.

Every nested pattern becomes a nonterminal of its own, so that each production is one operator applied to nonterminals,
or one nonterminal in place of another (a unit production). Inline alternatives - `choice`, `pick`, `kernel={1, 3}` -
become productions too. Nothing here knows constraints, counting or drawing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from eclose.algebra.declarations import Operator
from eclose.algebra.errors import GrammarError, TermError, did_you_mean
from eclose.algebra.grammar.rules import APPLY, CHOICE, PICK, PICKED, RULE, Alternative, Node, Rule, Source
from eclose.algebra.registry import Registry
from eclose.algebra.terms import Attributes, Term, Value, tagged
from eclose.algebra.tokens import located

MOST_ALTERNATIVES = 20_000  # of one pattern: attribute values multiply, and so do the selections of a pick


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """An operator with its attributes and number of children: what one node of a term says.

    Attributes:
        name: the operator.
        attributes: those that the term sets.
        arity: the number of children.
        operator: its declaration.
        values: every attribute that has a value, defaults included.
    """

    name: str
    attributes: Attributes
    arity: int
    operator: Operator
    values: Mapping[str, Value]


class Symbols:
    """The symbols of one registry, each made once."""

    def __init__(self, registry: Registry):
        self.registry = registry
        self._known: dict[tuple[Any, ...], Symbol] = {}

    def of(self, name: str, attributes: Attributes, arity: int) -> Symbol:
        """Return the one symbol with these parts, which are in normal form."""
        key: tuple[Any, ...] = (name, arity)
        if attributes:
            key = (name, arity, *[(label, tagged(value)) for label, value in attributes])
        found = self._known.get(key)
        if found is None:
            operator = self.registry.operator(name)
            defaults = {key: a.default for key, a in operator.attributes.items() if a.default is not None}
            found = Symbol(name, attributes, arity, operator, {**defaults, **dict(attributes)})
            self._known[key] = found
        return found

    def of_term(self, term: Term) -> Symbol:
        """Return the symbol of a term's root."""
        return self.of(term.name, term.attributes, len(term.children))


@dataclass(frozen=True, slots=True, eq=False)
class Production:
    """`left -> symbol(children)`, or without a symbol `left -> children[0]`.

    Attributes:
        left: the nonterminal.
        symbol: the operator's symbol, or None for a unit production.
        children: nonterminals.
        share: its part of the nonterminal's prior probability.
        multiplicity: how many derivations it stands for.
        guard: the named selection that it is one alternative of.
        alternative: the position of the alternative in its rule.
        offset: where it stands in the grammar's text.
    """

    left: int
    symbol: Symbol | None
    children: tuple[int, ...]
    share: float
    multiplicity: int
    guard: tuple[str, int] | None
    alternative: int
    offset: int


@dataclass(eq=False)
class Productions:
    """All productions of a grammar.

    Attributes:
        names: nonterminals that have a rule, by number; the others (`""`) stand for places inside a pattern.
        of: the productions of each nonterminal, in rule order.
        start: the nonterminal that generates the language.
        references: a stand-in for each shared nonterminal, wherever it is used, and the nonterminal.
        order: the shared nonterminals, each before those that its rule uses.
        selections: how many alternatives each named selection has that occurs more than once in a derivation.
    """

    names: list[str] = field(default_factory=list)
    of: list[list[Production]] = field(default_factory=list)
    start: int = 0
    references: dict[int, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    selections: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Production]:
        for productions in self.of:
            yield from productions

    def add_nonterminal(self, name: str = "") -> int:
        """Return the number of a new nonterminal."""
        self.names.append(name)
        self.of.append([])
        return len(self.names) - 1


def compiled(source: Source, symbols: Symbols) -> Productions:
    """Return the productions of a grammar, its operators and attributes being checked.

    Every shared nonterminal has a stand-in here and every named selection is tied; `sharing.simplified` removes what
    cannot matter.
    """
    return _Compiler(source, symbols).compile()


class _Compiler:
    def __init__(self, source: Source, symbols: Symbols):
        self.source, self.symbols, self.registry = source, symbols, symbols.registry
        self.result = Productions()
        self.rules: dict[str, int] = {}
        self.used_as: dict[str, int] = {}
        self.places: dict[tuple[Any, ...], int] = {}
        self.forms: dict[str, tuple[str, int, int]] = {}

    def compile(self) -> Productions:
        result = self.result
        for name in self.source.rules:
            self.rules[name] = self.used_as[name] = result.add_nonterminal(name)
        for name, rule in self.source.rules.items():
            if rule.shared and name != self.source.start[0]:
                self.used_as[name] = result.add_nonterminal()
                result.references[self.used_as[name]] = self.rules[name]
        start, offset = self.source.start
        if start not in self.rules:
            hint = did_you_mean(start, self.rules)
            raise located(GrammarError, f"the start {start!r} has no rule{hint}", self.source.text, offset, start)
        result.start = self.rules[start]
        for rule in self.source.rules.values():
            self._rule(rule)
        return result

    def _rule(self, rule: Rule) -> None:
        left = self.rules[rule.name]
        total = math.fsum(alternative.weight for alternative in rule.alternatives)
        written: dict[tuple[Any, ...], int] = {}
        for index, alternative in enumerate(rule.alternatives):
            share = alternative.weight / total
            multiplicity = alternative.weight if isinstance(alternative.weight, int) else 1
            inner = self._inner(alternative, index)
            root = alternative.nodes[-1]
            children = tuple(inner[child] for child in root.children)
            meant: tuple[Any, ...]
            if root.kind == APPLY:
                found = self._symbols(root)
                meant = (tuple(map(id, found)), children)
                for symbol in found:
                    result = (left, symbol, children, share / len(found), multiplicity, None, index, alternative.offset)
                    self.result.of[left].append(Production(*result))
            else:
                child = self.used_as[root.name] if root.kind == RULE else self._inline(root, children, index)
                meant = (child,)
                self.result.of[left].append(
                    Production(left, None, (child,), share, multiplicity, None, index, alternative.offset)
                )
            if meant in written:
                line = self.source.text.count("\n", 0, written[meant]) + 1
                raise located(
                    GrammarError,
                    f"{rule.name} has this alternative already, in line {line}; "
                    f"to make it more probable give it a weight: {alternative.text} [2]",
                    self.source.text,
                    alternative.offset,
                    alternative.text,
                )
            written[meant] = alternative.offset

    def _inner(self, alternative: Alternative, index: int) -> list[int]:
        """Return the nonterminal of each node of a pattern below its root."""
        numbers: list[int] = []
        for node in alternative.nodes[:-1]:
            children = tuple(numbers[child] for child in node.children)
            if node.kind == RULE:
                numbers.append(self.used_as[node.name])
            elif node.kind == APPLY:
                numbers.append(self._place(node, children, index))
            else:
                numbers.append(self._inline(node, children, index))
        return numbers

    def _place(self, node: Node, children: tuple[int, ...], index: int) -> int:
        found = self._symbols(node)
        key = (APPLY, tuple(map(id, found)), children)
        if key not in self.places:
            left = self.places[key] = self.result.add_nonterminal()
            self.result.of[left] = [
                Production(left, symbol, children, 1 / len(found), 1, None, index, node.offset) for symbol in found
            ]
        return self.places[key]

    def _inline(self, node: Node, children: tuple[int, ...], index: int) -> int:
        """Return the nonterminal of a `choice` or `pick`."""
        name = node.get("name")
        keep = node.get("k")
        key = (node.kind, name, keep, children)
        if key in self.places:
            return self.places[key]
        left = self.places[key] = self.result.add_nonterminal()
        if node.kind == CHOICE:
            made: list[tuple[Symbol | None, tuple[int, ...]]] = [(None, (child,)) for child in children]
        else:
            assert isinstance(keep, int)
            self._refuse_many(node, math.comb(len(children), keep))
            symbol = self._picked(node, keep)
            made = [(symbol, kept) for kept in combinations(children, keep)]
        if isinstance(name, str):
            self._tie(node, name, (node.kind, len(children), keep if isinstance(keep, int) else 1))
        for number, (symbol_or_none, kept) in enumerate(made):
            guard = (name, number) if isinstance(name, str) else None
            self.result.of[left].append(
                Production(left, symbol_or_none, kept, 1 / len(made), 1, guard, index, node.offset)
            )
        return left

    def _tie(self, node: Node, name: str, form: tuple[str, int, int]) -> None:
        """Check that the occurrences of one name decide the same thing."""
        before = self.forms.setdefault(name, form)
        if before != form:
            kind, count, keep = before
            one = f"{kind} of {count}" if kind == CHOICE else f"{kind} of {keep} out of {count}"
            other = f"{form[0]} of {form[1]}" if form[0] == CHOICE else f"{form[0]} of {form[2]} out of {form[1]}"
            raise self._located(node, f"the name {name!r} stands for a {one} elsewhere and for a {other} here")
        self.result.selections[name] = math.comb(form[1], form[2])

    def _symbols(self, node: Node) -> list[Symbol]:
        """Return the symbols of an applied operator, one for each combination of its attributes' alternatives."""
        self._refuse_many(node, math.prod(len(values) for _, values in node.attributes))
        found = []
        for values in product(*(values for _, values in node.attributes)):
            given = {key: value for (key, _), value in zip(node.attributes, values, strict=True)}
            try:
                operator, attributes = self.registry.applied(node.name, len(node.children), given)
            except TermError as error:
                raise self._blamed(node, error) from None
            found.append(self.symbols.of(operator.name, attributes, len(node.children)))
        if len({id(symbol) for symbol in found}) < len(found):
            raise self._located(node, f"two alternatives of the attributes of {node.name} mean the same")
        return found

    def _picked(self, node: Node, keep: int) -> Symbol:
        try:
            operator, attributes = self.registry.applied(PICKED, keep, {})
        except TermError as error:
            raise self._blamed(node, error) from None
        return self.symbols.of(operator.name, attributes, keep)

    def _refuse_many(self, node: Node, count: int) -> None:
        if count > MOST_ALTERNATIVES:
            raise self._located(
                node, f"{node.name} has {count} inline alternatives here, more than the limit of {MOST_ALTERNATIVES:,}"
            )

    def _blamed(self, node: Node, error: TermError) -> GrammarError:
        message = str(error)
        if node.name not in self.registry:
            if node.name in self.rules:
                message = f"{node.name} is a nonterminal: write {node.name} without parentheses"
            else:
                known = {*self.rules, *self.registry.names()} if not node.children else {*self.registry.names()}
                message = (
                    f"unknown name {node.name!r}{did_you_mean(node.name, known)}; it is no operator and has no rule"
                )
        offset = node.places.get(error.text, node.offset)
        return located(GrammarError, message, self.source.text, offset, error.text or node.name)

    def _located(self, node: Node, message: str) -> GrammarError:
        return located(GrammarError, message, self.source.text, node.offset, node.name)


__all__ = ["PICK", "Production", "Productions", "Symbol", "Symbols", "compiled"]
