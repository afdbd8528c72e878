"""When which decision is made: the order of a selection that decides one edge after the other. Knows no network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from eclose.algebra.errors import RequestError
from eclose.strategies.gradient.supernet import Site

TOGETHER = ""  # the cell of decisions whose names have no cell in front


@dataclass(frozen=True)
class Projection:
    """The decisions of one moment: at most one of each cell, in the order of the cells.

    Attributes:
        epoch: finished epochs of the tuning at that moment.
        names: of the decisions.
    """

    epoch: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class Schedule:
    """All projections and the epochs of tuning around them.

    Attributes:
        projections: in order; those of choices come before those of picks.
        epochs: of the tuning.
        choices: how many of the projections are of choices.
    """

    projections: tuple[Projection, ...]
    epochs: int
    choices: int

    @property
    def decisions(self) -> int:
        """How many decisions are made."""
        return sum(len(projection.names) for projection in self.projections)

    @property
    def settled(self) -> int:
        """The epoch from which on every choice is decided."""
        return self.projections[self.choices - 1].epoch if self.choices else 0


def schedule(sites: Mapping[str, Site], *, interval: int = 5, topology: bool | None = None, seed: int = 0) -> Schedule:
    """Return the schedule of the perturbation-based selection (Wang et al. 2021).

    Every `interval` epochs each cell decides one random choice, then, when all of them are decided, one random pick
    that keeps fewer edges than it has. With picks the last projection is followed by one more epoch, so 14 choices and
    3 picks take 5 (14 + 3 - 1) + 1 = 81 epochs; without, the last projection is the end: 6 choices take 5 (6 - 1) = 25.

    Args:
        sites: the decisions of a supernet.
        interval: epochs between two projections.
        topology: whether picks are decided; where there are any, without.
        seed: of the order.
    """
    if interval < 1:
        raise RequestError(f"interval is at least 1 epoch, not {interval!r}")
    choices = [name for name, site in sites.items() if site.kind == "choice" and site.present]
    picks = open_picks(sites)
    if topology and not picks:
        raise RequestError(
            "topology=True asks to choose between edges, but every node of this space keeps all its edges; leave it out"
        )
    if topology is False:
        picks = []
    cells: dict[str, list[str]] = {}
    for name in choices:
        cells.setdefault(_cell(name), []).append(name)
    nodes: dict[str, list[str]] = {}
    for name in picks:
        nodes.setdefault(_cell(name) if _cell(name) in cells else TOGETHER, []).append(name)
    rounds = [*_rounds(cells, seed, "choices"), *_rounds(nodes, seed, "picks")]
    projections = tuple(Projection(interval * number, names) for number, names in enumerate(rounds))
    epochs = interval * max(0, len(rounds) - 1) + bool(picks)
    return Schedule(projections, epochs, len(_rounds(cells, seed, "choices")))


def open_picks(sites: Mapping[str, Site]) -> list[str]:
    """Return the picks of which a selection keeps fewer edges than there are."""
    return [
        name
        for name, site in sites.items()
        if site.kind == "pick" and site.decided and site.present and site.keep < site.count
    ]


def _cell(name: str) -> str:
    cell, slash, _ = name.partition("/")
    return cell if slash else TOGETHER


def _rounds(cells: Mapping[str, list[str]], seed: int, label: str) -> list[tuple[str, ...]]:
    """Return for each round one decision of each cell that has any left."""
    orders = []
    for cell, names in cells.items():
        order = list(names)
        Random(f"{seed} {label} {cell}").shuffle(order)
        orders.append(order)
    longest = max(map(len, orders), default=0)
    return [tuple(order[number] for order in orders if number < len(order)) for number in range(longest)]


__all__ = ["Projection", "Schedule", "open_picks", "schedule"]
