"""The decisions that lead to a term: what `Grammar.decide` would have to be answered to give it.

A strategy that learns from decisions is told terms, in another process perhaps than the one that proposed them, so the
decisions are read back from the term.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from eclose.algebra.grammar import Grammar
from eclose.algebra.terms import Term


class Decision(NamedTuple):
    """One answer.

    Attributes:
        name: of the question, as `Grammar.decide` puts it.
        answer: which one.
        answers: how many there are.
    """

    name: str
    answer: int
    answers: int


def decisions(grammar: Grammar, term: Term) -> list[Decision]:
    """Return the decisions that lead to a term of a grammar, in the order in which they are asked for.

    Where several derivations lead to it, they are those of the first one in rule order.
    """
    derivation = grammar.derivation(term)
    productions, definitions = derivation._productions, derivation._definitions
    found: dict[str, Decision] = {}
    defined: set[int] = set()
    stack: list[tuple[Any, str]] = [(derivation._root, productions.names[productions.start])]
    while stack:
        use, path = stack.pop()
        if use.left in productions.references:
            if use.left not in defined:
                defined.add(use.left)
                stack.append((definitions[use.left], productions.names[productions.references[use.left]] or path))
            continue
        group = productions.of[use.left]
        letter = ""
        if len(group) > 1:
            index = group.index(use.production)
            guard = group[0].guard
            name = path if guard is None else guard[0]
            found.setdefault(name, Decision(name, index, len(group)))
            letter = f"{index}."
        stack += [(use.children[place], f"{path}/{letter}{place}") for place in reversed(range(len(use.children)))]
    return list(found.values())


__all__ = ["Decision", "decisions"]
