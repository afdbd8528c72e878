"""From a relaxed term to one of its terms, by the names of its decisions; and what those decisions are.

A relaxed term has a `choice` or `pick` at every decision that was left open. Nothing here knows how decisions are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eclose.algebra.errors import RequestError, did_you_mean
from eclose.algebra.grammar.rules import CHOICE, PICK
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.terms import Term, distinct


@dataclass(frozen=True)
class Site:
    """One decision of a relaxed term.

    Attributes:
        name: of the decision; equal names are one decision at all their places.
        kind: `"choice"` or `"pick"`.
        alternatives: the children it decides between.
        keep: how many of them are kept.
    """

    name: str
    kind: str
    alternatives: tuple[Term, ...]
    keep: int = 1


def sites(term: Term) -> dict[str, Site]:
    """Return the named decisions of a relaxed term, inner ones before those they stand in."""
    found: dict[str, Site] = {}
    for node in distinct(term):
        if node.name not in (CHOICE, PICK):
            continue
        name = node.get("name")
        if name is None:
            raise RequestError(
                f"a {node.name} of this term has no name, so nothing can be decided about it; space.relaxed() names all"
            )
        site = Site(str(name), node.name, node.children, int(node.get("k", 1)))
        other = found.setdefault(site.name, site)
        if (other.kind, len(other.alternatives), other.keep) != (site.kind, len(site.alternatives), site.keep):
            raise RequestError(f"the name {name!r} stands for decisions of different forms in this term")
    return found


def selected(
    term: Term,
    choices: Mapping[str, int],
    picks: Mapping[str, Sequence[int]] | None = None,
    registry: Registry | None = None,
) -> Term:
    """Return the term that decisions make of a relaxed one.

    Args:
        term: with named choices and picks.
        choices: the alternative that each choice takes. Those inside alternatives that are not taken may be left out.
        picks: the children that each pick keeps; one that must keep all of its children may be left out.
        registry: the operators; those that ship and those a user registered without.
    """
    registry = registry if registry is not None else default_registry()
    picks = picks or {}
    known = sites(term)
    for name in (*choices, *picks):
        if name not in known:
            raise RequestError(f"there is no decision {name!r} here{did_you_mean(name, known)}")
    results: dict[int, Term | None] = {}  # None where a decision inside is missing
    missing: dict[int, str] = {}
    for node in distinct(term):
        kept = _kept(node, choices, picks)
        if kept is None:
            results[id(node)] = None
            missing[id(node)] = str(node.get("name"))
            continue
        children: list[Term] = []
        for index in kept:
            child = node.children[index]
            found = results[id(child)]
            if found is None:
                missing[id(node)] = missing[id(child)]
                break
            children.append(found)
        if id(node) in missing:
            results[id(node)] = None
        elif node.name == CHOICE:
            results[id(node)] = children[0]
        elif node.name == PICK:
            results[id(node)] = registry.normal("node", tuple(children), {})
        else:
            results[id(node)] = node.replace(children=tuple(children))
    result = results[id(term)]
    if result is None:
        raise RequestError(f"nothing was decided about {missing[id(term)]!r}")
    return result


def _kept(node: Term, choices: Mapping[str, int], picks: Mapping[str, Sequence[int]]) -> Sequence[int] | None:
    """Return the children of a node that stay, in their order; None where nothing was decided about it."""
    count = len(node.children)
    if node.name not in (CHOICE, PICK):
        return range(count)
    name = str(node.get("name"))
    keep = 1 if node.name == CHOICE else int(node.get("k", 1))
    given: Sequence[int] | None
    if node.name == CHOICE:
        given = (choices[name],) if name in choices else (0,) if count == 1 else None
    else:
        given = picks.get(name, range(count) if keep == count else None)
    if given is None:
        return None
    kept = sorted(set(given))
    if len(kept) != keep or len(given) != keep or kept[0] < 0 or kept[-1] >= count:
        what = "takes one" if node.name == CHOICE else f"keeps {keep}"
        raise RequestError(f"{name!r} {what} of its alternatives 0 to {count - 1}, not {list(given)}")
    return kept


__all__ = ["Site", "selected", "sites"]
