"""Counts of distinct terms, and whether they are exact where rules are shared.

With shared rules the automaton of terms counts *sketches*: terms in which a shared part is a leaf of its own, together
with what each such part stands for. Two sketches may give one term. They never do if, even with every place of a
shared rule derived on its own, there are as many sketches as terms.
"""

from __future__ import annotations

from dataclasses import replace

from eclose.algebra.errors import LimitError
from eclose.algebra.grammar.automaton import State, TermAutomaton
from eclose.algebra.grammar.constraints import Constraints
from eclose.algebra.grammar.productions import Production, Productions
from eclose.algebra.grammar.weighing import Weights


def of_terms(productions: Productions, constraints: Constraints) -> Weights:
    """Return the weights by which every distinct term (or sketch) counts once."""
    return Weights(TermAutomaton(productions, constraints), lambda way: 1, 1)


def tells_terms_apart(productions: Productions, constraints: Constraints) -> bool:
    """Return whether no term has two sketches, as far as counting can show it."""
    if not productions.references:
        return True
    try:
        return _as_many_sketches_as_terms(productions, constraints)
    except LimitError:
        return False  # too many to count when every place is derived on its own


def _as_many_sketches_as_terms(productions: Productions, constraints: Constraints) -> bool:
    untied = replace(productions, of=[[replace(p, guard=None) for p in group] for group in productions.of])
    automaton = TermAutomaton(untied, constraints)

    def leaf(state: State) -> int:
        rule = untied.references[state.reference] if state.reference is not None else -1
        options = (other for other in automaton.of[rule] if other.quality == state.quality)
        return sum(weights.weigh(other) for other in options)

    weights = Weights(automaton, lambda way: 1, 1, leaf)
    for reference in reversed(untied.order):  # parts used by others are weighed before them
        for state in automaton.of[reference]:
            if state.reference == reference:
                weights.weigh(state)
    sketches = _accepted(weights)
    alone = replace(
        untied,
        of=[
            group
            if left not in untied.references
            else [Production(left, None, (untied.references[left],), 1.0, 1, None, 0, 0)]
            for left, group in enumerate(untied.of)
        ],
        references={},
        order=[],
    )
    return sketches == _accepted(Weights(TermAutomaton(alone, constraints), lambda way: 1, 1))


def _accepted(weights: Weights) -> int:
    automaton = weights.automaton
    return sum(
        weights.weigh(state)
        for state in automaton.of[automaton.productions.start]
        if automaton.constraints.accepts(state.quality)
    )
