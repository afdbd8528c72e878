"""From weights to decisions: which alternatives a selection by magnitude keeps, and how constraints change that.

A choice keeps its largest weight. A pick keeps its strongest edges: an edge is as strong as the largest weight of the
operation on it, times the weight that the edge has itself (Liu et al. 2019; Xu et al. 2020). `none` on the edge of a
pick takes part in the search only. Ties go to the first alternative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from torch import Tensor

from eclose.algebra.errors import RequestError
from eclose.strategies.gradient.supernet import Site

Decisions: TypeAlias = dict[str, tuple[int, ...]]
Scores: TypeAlias = Mapping[str, Sequence[float]]


def as_scores(thetas: Mapping[str, Tensor]) -> dict[str, list[float]]:
    """Return weights as plain numbers."""
    return {name: theta.detach().tolist() for name, theta in thetas.items()}


def decide(
    sites: Mapping[str, Site],
    scores: Scores,
    *,
    fixed: Mapping[str, tuple[int, ...]] | None = None,
    most_skips: int = -1,
    least_features: int = 0,
    features: Mapping[str, Sequence[int]] | None = None,
) -> Decisions:
    """Return what each decision keeps.

    Args:
        sites: the decisions of a supernet.
        scores: a number for each alternative of each decision that has weights.
        fixed: what was decided already.
        most_skips: skip connections that a cell may have at most; negative for any number. The weakest give way to
            the best other operation on their edge, and edges are compared anew.
        least_features: operations with parameters that a cell must have at least. The cheapest change makes room.
        features: for each choice the alternatives with parameters.
    """
    barred: dict[str, set[int]] = {}
    found = _decided(sites, scores, dict(fixed or {}), barred)
    while most_skips >= 0:
        over = _most_over(sites, found, most_skips)
        if over is None:
            break
        free = [
            name
            for name in over
            if name not in (fixed or {})
            and set(sites[name].selectable) - barred.get(name, set()) - set(sites[name].skips)
        ]
        if not free:
            raise RequestError(
                f"at most {most_skips} skip connections cannot be had: {', '.join(map(repr, over))} have "
                "nothing else to offer or are decided already"
            )
        weakest = min(free, key=lambda name: _score(sites[name], scores, found[name][0]))
        barred.setdefault(weakest, set()).update(sites[weakest].skips)
        found = _decided(sites, scores, dict(fixed or {}), barred)
    if least_features:
        found = _with_features(sites, scores, found, dict(fixed or {}), barred, least_features, features or {})
    return found


def _decided(sites: Mapping[str, Site], scores: Scores, fixed: Decisions, barred: Mapping[str, set[int]]) -> Decisions:
    found: Decisions = {}
    strength: dict[str, float] = {}
    for name, site in sites.items():
        if site.kind != "choice":
            continue
        if name in fixed:
            found[name] = fixed[name]
            strength[name] = _score(site, scores, fixed[name][0])
            continue
        open_ = [index for index in site.selectable if index not in barred.get(name, ())]
        best = max(open_, key=lambda index: (_score(site, scores, index), -index))
        found[name], strength[name] = (best,), _score(site, scores, best)
    for name, site in sites.items():
        if site.kind != "pick":
            continue
        found[name] = fixed[name] if name in fixed else strongest(site, edge_strengths(site, scores, strength))
    return found


def _score(site: Site, scores: Scores, index: int) -> float:
    """Return the score of an alternative; a decision that stands nowhere in the network has none and counts as 1."""
    return scores[site.name][index] if site.name in scores else 1.0


def edge_strengths(site: Site, scores: Scores, strength: Mapping[str, float]) -> list[float]:
    """Return how strong each edge of a pick is."""
    found = []
    for index, names in enumerate(site.edges):
        inner = sum(strength[name] for name in names) / len(names) if names else 1.0
        found.append(inner * (scores[site.name][index] if site.weighted and site.name in scores else 1.0))
    return found


def strongest(site: Site, strengths: Sequence[float]) -> tuple[int, ...]:
    """Return the edges that a pick keeps."""
    order = sorted(range(site.count), key=lambda index: (-strengths[index], index))
    return tuple(sorted(order[: site.keep]))


def cell_of(name: str) -> str:
    """Return the cell that a decision belongs to: what its name begins with."""
    return name.partition("/")[0]


def kept_choices(sites: Mapping[str, Site], decisions: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Return the choices that are part of the selected architecture: those on edges that are kept."""
    lost = {
        inner
        for name, site in sites.items()
        if site.kind == "pick" and name in decisions
        for index, names in enumerate(site.edges)
        if index not in decisions[name]
        for inner in names
    }
    return [name for name, site in sites.items() if site.kind == "choice" and name in decisions and name not in lost]


def skips_of(sites: Mapping[str, Site], decisions: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the number of skip connections in each cell of a selected architecture."""
    found: dict[str, int] = {}
    for name in kept_choices(sites, decisions):
        cell = cell_of(name)
        found[cell] = found.get(cell, 0) + (decisions[name][0] in sites[name].skips)
    return found


def _most_over(sites: Mapping[str, Site], found: Decisions, most: int) -> list[str] | None:
    """Return the skip connections of a cell that has too many, or None."""
    for cell, count in skips_of(sites, found).items():
        if count > most:
            return [
                name
                for name in kept_choices(sites, found)
                if cell_of(name) == cell and found[name][0] in sites[name].skips
            ]
    return None


def _with_features(
    sites: Mapping[str, Site],
    scores: Scores,
    found: Decisions,
    fixed: Decisions,
    barred: dict[str, set[int]],
    least: int,
    features: Mapping[str, Sequence[int]],
) -> Decisions:
    """Return decisions in which every cell has at least so many operations with parameters."""
    for cell in dict.fromkeys(cell_of(name) for name in sites):
        while True:
            kept = [name for name in kept_choices(sites, found) if cell_of(name) == cell]
            lacking = [name for name in kept if found[name][0] not in features.get(name, ())]
            if len(kept) - len(lacking) >= least:
                break
            losses = {}
            for name in lacking:
                offered = [i for i in sites[name].selectable if i in features.get(name, ())
                           and i not in barred.get(name, ())]  # fmt: skip
                if offered and name not in fixed:
                    site = sites[name]
                    best = max(offered, key=lambda index: (_score(site, scores, index), -index))
                    losses[name] = (_score(site, scores, found[name][0]) - _score(site, scores, best), best)
            if not losses:
                raise RequestError(f"the cell {cell!r} cannot have {least} operations with parameters")
            cheapest = min(losses, key=lambda name: losses[name][0])
            found = {**found, cheapest: (losses[cheapest][1],)}
    return found


__all__ = [
    "Decisions",
    "as_scores",
    "cell_of",
    "decide",
    "edge_strengths",
    "kept_choices",
    "skips_of",
    "strongest",
]
