"""The network that a collapsed search finds: a skip connection wherever a space offers one.

It is a baseline. Searches by gradient are known to drift there, so what they find has to be better than this, and it
costs nothing to say. It knows the grammar alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eclose.algebra.errors import LimitError, RequestError
from eclose.algebra.grammar.rules import CHOICE, PICK
from eclose.algebra.grammar.selecting import selected, sites
from eclose.algebra.terms import Term
from eclose.spaces._space import Space

SKIPS = frozenset({"id", "factorized_reduce"})  # a skip with a stride of 2 is a factorised reduction


def skip_only(space: Space) -> Term:
    """Return the term of a space in which every decision is a skip connection where one is offered.

    Of a decision without one the first alternative is taken; of a pick those children that lead to a skip come first.
    A space that offers no skip, or in which that term is forbidden, is refused with the reason.

    Args:
        space: what is searched.
    """
    try:
        term = space.relaxed()
        decisions = sites(term)
    except (LimitError, RequestError) as error:
        raise RequestError(f"{space.name} cannot be written as one term with choices: {error}") from error
    choices: dict[str, int] = {}
    picks: dict[str, Sequence[int]] = {}
    for name, site in decisions.items():
        places = range(len(site.alternatives))
        if site.kind == CHOICE:
            choices[name] = next((place for place in places if site.alternatives[place].name in SKIPS), 0)
        elif site.kind == PICK:
            first = sorted(places, key=lambda place: (not _leads_to_skip(site.alternatives[place]), place))
            picks[name] = tuple(sorted(first[: site.keep]))
    found = selected(term, choices, picks)
    if not _takes_skip(term, choices, picks):
        raise RequestError(f"no decision of {space.name} offers a skip connection")
    if found not in space:
        raise RequestError(f"{space.name} does not allow a skip connection everywhere")
    return found


def _leads_to_skip(term: Term) -> bool:
    """Return whether an alternative of a pick is a skip, or a choice that offers one, perhaps on an edge."""
    while len(term.children) == 1:
        term = term.children[0]
    return term.name in SKIPS or (term.name == CHOICE and any(child.name in SKIPS for child in term.children))


def _takes_skip(term: Term, choices: Mapping[str, int], picks: Mapping[str, Sequence[int]]) -> bool:
    """Return whether one of the decisions that the selected term depends on takes a skip."""
    stack, seen = [term], {term}
    while stack:
        node = stack.pop()
        below = list(node.children)
        if node.name == CHOICE:
            below = [node.children[choices[str(node.get("name"))]]]
            if below[0].name in SKIPS:
                return True
        elif node.name == PICK:
            below = [node.children[place] for place in picks[str(node.get("name"))]]
        stack += [child for child in below if child not in seen]
        seen.update(below)
    return False


__all__ = ["SKIPS", "skip_only"]
