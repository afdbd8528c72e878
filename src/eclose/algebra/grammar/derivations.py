"""A derivation as a person reads it: which rule made which part of a term, and at which level of hierarchy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eclose.algebra.grammar.parsing import Use
from eclose.algebra.grammar.productions import Productions
from eclose.algebra.grammar.rules import Source
from eclose.algebra.terms import OCCURRENCE_LIMIT, Term, refuse_beyond


@dataclass(frozen=True)
class Step:
    """One use of a rule.

    Attributes:
        rule: the nonterminal.
        alternative: its number among the rule's alternatives.
        text: the alternative as written.
        position: of the derived subterm in the whole term, as a path of child numbers.
        term: the derived subterm.
        levels: the levels of hierarchy that the rule belongs to.
    """

    rule: str
    alternative: int
    text: str
    position: tuple[int, ...]
    term: Term
    levels: tuple[str, ...]


class Derivation:
    """How the rules of a grammar derive one term."""

    def __init__(self, source: Source, productions: Productions, root: Use, definitions: dict[int, Use]):
        self.term = root.term
        self._source, self._productions, self._root, self._definitions = source, productions, root, definitions
        self._levels: dict[str, tuple[str, ...]] = {}
        for level, members in source.levels.items():
            for name, _ in members:
                self._levels[name] = (*self._levels.get(name, ()), level)

    def steps(self) -> Iterator[Step]:
        """Yield every use of a rule, outer ones first; what a shared rule stands for is gone through at every place."""
        refuse_beyond(self.term, OCCURRENCE_LIMIT)
        stack: list[tuple[Use, tuple[int, ...]]] = [(self._root, ())]
        while stack:
            use, position = stack.pop()
            if use.left in self._definitions:
                stack.append((self._definitions[use.left], position))
                continue
            name = self._productions.names[use.left]
            if name and use.production is not None:
                alternative = self._source.rules[name].alternatives[use.production.alternative]
                yield Step(
                    name, use.production.alternative, alternative.text, position, use.term, self._levels.get(name, ())
                )
            unit = use.production is not None and use.production.symbol is None
            for index in range(len(use.children) - 1, -1, -1):
                stack.append((use.children[index], position if unit else (*position, index)))

    def levels(self) -> dict[str, list[tuple[int, ...]]]:
        """Return the positions of the subterms at each level of hierarchy."""
        found: dict[str, list[tuple[int, ...]]] = {level: [] for level in self._source.levels}
        for step in self.steps():
            for level in step.levels:
                found[level].append(step.position)
        return found

    def __str__(self) -> str:
        return "\n".join(f"{'  ' * len(step.position)}{step.rule} -> {step.text}" for step in self.steps())


__all__ = ["Derivation", "Step"]
