"""A term by asking: every decision that a grammar leaves open is put to a caller, one after the other.

The questions have stable names and fixed answers, so any optimiser of categorical parameters can walk a small grammar.
"""

from __future__ import annotations

from collections.abc import Callable

from eclose.algebra.errors import LimitError
from eclose.algebra.grammar.productions import Production, Productions
from eclose.algebra.printing import value_text
from eclose.algebra.terms import Term, intern

MOST_DECISIONS = 10_000

Chooser = Callable[[str, list[str]], int]


def decided(productions: Productions, chooser: Chooser) -> Term:
    """Return the term that a chooser decides.

    Args:
        productions: as simplified.
        chooser: `chooser(name, answers) -> index`; equal names always have equal answers. The name is the path of rules
            and positions that leads to the decision, so decisions that depend on others have names of their own.
    """
    definitions: dict[int, Term] = {}
    decisions = 0

    def ask(name: str, left: int) -> Production:
        nonlocal decisions
        group = productions.of[left]
        if len(group) == 1:
            return group[0]
        decisions += 1
        if decisions > MOST_DECISIONS:
            raise LimitError(f"more than {MOST_DECISIONS:,} decisions; this grammar is too large to be asked through")
        guard = group[0].guard
        if guard is not None:
            name = guard[0]
        index = selected[name] if guard is not None and name in selected else chooser(name, _answers(group))
        if guard is not None:
            selected[name] = index
        return group[index]

    selected: dict[str, int] = {}

    def build(root: int, path: str) -> Term:
        done: list[Term] = []
        stack: list[tuple[int, str] | Production] = [(root, path)]
        while stack:
            item = stack.pop()
            if isinstance(item, Production):
                assert item.symbol is not None
                children = tuple(done[len(done) - item.symbol.arity :])
                del done[len(done) - item.symbol.arity :]
                done.append(intern(item.symbol.name, children, item.symbol.attributes))
                continue
            left, path = item
            if left in productions.references:
                if left not in definitions:
                    rule = productions.references[left]
                    definitions[left] = build(rule, productions.names[rule] or path)
                done.append(definitions[left])
                continue
            production = ask(path, left)
            if production.symbol is not None:
                stack.append(production)
            places = [f"{path}/{_letter(productions, production)}{index}" for index in range(len(production.children))]
            stack += list(zip(reversed(production.children), reversed(places), strict=True))
        return done[0]

    return build(productions.start, productions.names[productions.start])


def _letter(productions: Productions, production: Production) -> str:
    """Return what tells the children of one production from those of another in a path."""
    group = productions.of[production.left]
    return "" if len(group) == 1 else f"{group.index(production)}."


def _answers(group: list[Production]) -> list[str]:
    """Return a text for each production of a nonterminal, all different."""
    answers: list[str] = []
    for index, production in enumerate(group):
        if production.symbol is None:
            text = f"#{index}"
        else:
            settings = [f"{key}={value_text(value)}" for key, value in production.symbol.attributes]
            text = production.symbol.name + (f"({', '.join(settings)})" if settings else "")
        answers.append(text if text not in answers else f"{text} #{index}")
    return answers
