"""What a grammar must promise before it is used: every rule is of use, ends, and gives well-typed terms.

Errors point at the line and column of what is wrong.
"""

from __future__ import annotations

from typing import NoReturn

from eclose.algebra.errors import GrammarError, did_you_mean
from eclose.algebra.grammar.productions import Production, Productions
from eclose.algebra.grammar.rules import Source
from eclose.algebra.grammar.sharing import children_first, refuse_cycles
from eclose.algebra.tokens import located

Bundle = frozenset[str]


def validate(source: Source, productions: Productions) -> None:
    """Raise where a grammar cannot keep what it promises."""
    _levels(source)
    _unit_cycles(source, productions)
    _unproductive(source, productions)
    _unreachable(source, productions)
    refuse_cycles(source, productions)
    _types(source, productions)


def _levels(source: Source) -> None:
    for level, members in source.levels.items():
        for name, offset in members:
            if name not in source.rules:
                hint = did_you_mean(name, source.rules)
                message = f"the level {level!r} names {name!r}, which has no rule{hint}"
                raise located(GrammarError, message, source.text, offset, name)


def _unit_cycles(source: Source, productions: Productions) -> None:
    """Refuse a nonterminal that stands for itself: A -> B, B -> A."""
    targets: dict[int, list[tuple[int, Production]]] = {}
    for production in productions:
        if production.symbol is None:
            child = production.children[0]
            targets.setdefault(production.left, []).append((productions.references.get(child, child), production))
    done: set[int] = set()
    for first in targets:
        path: list[int] = []
        stack: list[tuple[int, Production | None, bool]] = [(first, None, False)]
        while stack:
            nonterminal, via, left = stack.pop()
            if left:
                path.pop()
                done.add(nonterminal)
            elif nonterminal in path:
                assert via is not None
                cycle = [productions.names[number] or "choice" for number in path[path.index(nonterminal) :]]
                message = (
                    f"{' -> '.join([*cycle, cycle[0]])} is a cycle: the rule stands for itself without an operator"
                )
                raise located(GrammarError, message, source.text, via.offset, cycle[0])
            elif nonterminal not in done:
                path.append(nonterminal)
                stack.append((nonterminal, production, True))
                stack += [(target, unit, False) for target, unit in targets.get(nonterminal, ())]


def _unproductive(source: Source, productions: Productions) -> None:
    productive: set[int] = set()
    order = children_first(productions)
    grown = True
    while grown:
        grown = False
        for left in order:
            if left in productive:
                continue
            if left in productions.references:
                ends = productions.references[left] in productive
            else:
                ends = any(productive.issuperset(production.children) for production in productions.of[left])
            if ends:
                productive.add(left)
                grown = True
    for name, rule_text in source.rules.items():
        if productions.names.index(name) not in productive:
            message = (
                f"{name} never ends: each of its alternatives needs {name} or another rule that never ends; "
                "add an alternative without them"
            )
            raise located(GrammarError, message, source.text, rule_text.offset, name)


def _unreachable(source: Source, productions: Productions) -> None:
    seen, stack = {productions.start}, [productions.start]
    while stack:
        nonterminal = stack.pop()
        rule = productions.references.get(nonterminal)
        below = [child for production in productions.of[nonterminal] for child in production.children]
        for child in below if rule is None else [*below, rule]:
            if child not in seen:
                seen.add(child)
                stack.append(child)
    start = source.start[0]
    for name, rule_text in source.rules.items():
        if productions.names.index(name) not in seen:
            message = f"{name} is used by no rule that {start} reaches; use it, remove it, or write `start {name}`"
            raise located(GrammarError, message, source.text, rule_text.offset, name)


def _types(source: Source, productions: Productions) -> None:
    """Refuse an operator one of whose children may have a type that it does not take."""
    bundles: list[set[Bundle]] = [set() for _ in productions.names]
    order = children_first(productions)
    grown = True
    while grown:
        grown = False
        for left in order:
            found = set(bundles[productions.references[left]]) if left in productions.references else set()
            for production in productions.of[left]:
                found |= _results(production, bundles)
            if not found <= bundles[left]:
                bundles[left] |= found
                grown = True
    for production in productions:
        if production.symbol is None:
            continue
        for index, child in enumerate(production.children):
            accepted = production.symbol.operator.accepted(index, production.symbol.arity)
            for bundle in sorted(bundles[child], key=sorted):
                if not bundle <= accepted:
                    _refuse(source, productions, production, index, bundle - accepted, accepted)


def _results(production: Production, bundles: list[set[Bundle]]) -> set[Bundle]:
    """Return the types that a production's terms may give, as far as those of its children are known."""
    children = [bundles[child] for child in production.children]
    if not all(children):
        return set()
    if production.symbol is None:
        return set(children[0])
    result = production.symbol.operator.result
    if result == "child":
        return set(children[-1])
    if result == "children":
        unions: set[Bundle] = {frozenset()}
        for options in children:
            unions = {union | option for union in unions for option in options}
        return unions
    return {frozenset({result})}


def _refuse(
    source: Source, productions: Productions, production: Production, index: int, wrong: Bundle, right: Bundle
) -> NoReturn:
    assert production.symbol is not None
    name = production.symbol.name
    child = productions.names[productions.references.get(production.children[index], production.children[index])]
    message = (
        f"{name} cannot take {child or 'what stands here'} as child {index + 1}: "
        f"it may give {' and '.join(sorted(wrong))} where {' or '.join(sorted(right))} is needed"
    )
    raise located(GrammarError, message, source.text, production.offset, name)
