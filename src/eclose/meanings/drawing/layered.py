"""Where the vertices of a diagram stand: columns from left to right, few crossings, straight lines.

The layered method of Sugiyama: a column for each vertex, places held free for lines that pass a column, orders by
medians of neighbours, and positions that are the nearest to those of the neighbours that the order allows. Nothing
here knows what a vertex is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

SWEEPS = 12
GAP = 14.0  # between neighbours in a column
STRAIGHT = 8.0  # how much more a line that passes through pulls


@dataclass
class Spot:
    """A vertex or a place that a line passes.

    Attributes:
        width: of the vertex, 0 of a passage.
        height: likewise.
        enter: how far below its top lines arrive; `leave`, how far they depart.
        column: its number.
        y: its top, once placed.
    """

    width: float
    height: float
    enter: float
    leave: float
    column: int = 0
    y: float = 0.0
    passage: bool = False
    line: list[int] = field(default_factory=list)  # of a passage, all passages of its line
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)


def place(
    spots: list[Spot], lines: Sequence[tuple[int, int]], late: Sequence[bool], last: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Give every spot its column and its place in it; return the columns and the route of every line.

    Args:
        spots: the vertices in topological order; passages are appended.
        lines: `(from, to)` pairs, `from < to`.
        late: whether a vertex stands as near to what follows as it can (operations), or to what comes before.
        last: the vertex that stands in the last column.
    """
    _columns(spots, lines, late, last)
    routes = [_route(spots, start, end) for start, end in lines]
    columns: list[list[int]] = [[] for _ in range(1 + max(spot.column for spot in spots))]
    for number, spot in enumerate(spots):
        columns[spot.column].append(number)
    for route in routes:
        for one, other in pairwise(route):
            spots[one].after.append(other)
            spots[other].before.append(one)
    _order(spots, columns)
    _heights(spots, columns)
    return columns, routes


def _columns(spots: list[Spot], lines: Sequence[tuple[int, int]], late: Sequence[bool], last: int) -> None:
    for start, end in sorted(lines, key=lambda line: line[1]):
        spots[end].column = max(spots[end].column, spots[start].column + 1)
    follows: list[list[int]] = [[] for _ in spots]
    for start, end in lines:
        follows[start].append(end)
    spots[last].column = max(spot.column for spot in spots) if len(spots) > 1 else 0
    for number in range(len(spots) - 1, -1, -1):
        if late[number] and follows[number]:
            spots[number].column = min(spots[end].column for end in follows[number]) - 1


def _route(spots: list[Spot], start: int, end: int) -> list[int]:
    route = [start]
    for column in range(spots[start].column + 1, spots[end].column):
        spots.append(Spot(0.0, 4.0, 2.0, 2.0, column, passage=True))
        route.append(len(spots) - 1)
    for number in route[1:]:
        spots[number].line = route[1:]
    return [*route, end]


def _order(spots: list[Spot], columns: list[list[int]]) -> None:
    """Order every column by the medians of neighbours; the best order that was met stays."""
    best, fewest = [list(column) for column in columns], _crossings(spots, columns)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            position = _positions(columns)
            rank = {}
            for number in column:
                near = spots[number].before if forward else spots[number].after
                places = sorted(position[other] for other in near)
                rank[number] = sum(places) / len(places) if places else position[number]
            column.sort(key=rank.__getitem__)
        found = _crossings(spots, columns)
        if found < fewest:
            best, fewest = [list(column) for column in columns], found
    for column, order in zip(columns, best, strict=True):
        column[:] = order


def _positions(columns: list[list[int]]) -> dict[int, int]:
    return {number: index for column in columns for index, number in enumerate(column)}


def _crossings(spots: list[Spot], columns: list[list[int]]) -> int:
    position = _positions(columns)
    total = 0
    for column in columns:
        ends: list[int] = []
        for number in column:
            new = sorted(position[other] for other in spots[number].after)
            total += sum(1 for end in new for other in ends if other > end)
            ends += new
    return total


def _heights(spots: list[Spot], columns: list[list[int]]) -> None:
    """Move every column to where its neighbours would have it, as far as its order and sizes allow."""
    for column in columns:
        y = 0.0
        for number in column:
            spots[number].y = y
            y += spots[number].height + GAP
        for number in column:
            spots[number].y -= y / 2
    for sweep in range(4 * SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wishes, weights = [], []
            for number in column:
                spot = spots[number]
                before, after = [spots[n] for n in spot.before], [spots[n] for n in spot.after]
                pulls = [(other.y + other.leave - spot.enter, _pull(other, spot)) for other in before]
                pulls += [(other.y + other.enter - spot.leave, _pull(spot, other)) for other in after]
                if spot.passage:  # a long line moves as one
                    pulls.append((sum(spots[other].y for other in spot.line) / len(spot.line), STRAIGHT * 2))
                weight = sum(pull for _, pull in pulls)
                wishes.append(sum(y * pull for y, pull in pulls) / weight if weight else spot.y)
                weights.append(STRAIGHT if spot.passage else 1.0)
            for number, y in zip(column, nearest(wishes, weights, [spots[n].height for n in column]), strict=True):
                spots[number].y = y


def _pull(one: Spot, other: Spot) -> float:
    """Return how strongly two neighbours want a straight line: most where neither has another line to bend."""
    if len(one.after) == 1 and len(other.before) == 1:
        return STRAIGHT * 2
    return STRAIGHT if one.passage or other.passage else 1.0


def nearest(wishes: Sequence[float], weights: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Return the tops nearest to the wishes (weighted least squares) that keep the order and do not overlap."""
    offsets, offset = [], 0.0
    for height in heights:
        offsets.append(offset)
        offset += height + GAP
    blocks: list[list[float]] = []  # value, weight, count: neighbours that touch move as one
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        blocks.append([wish - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value, heavy, number = blocks.pop()
            other = blocks[-1]
            other[0] = (other[0] * other[1] + value * heavy) / (other[1] + heavy)
            other[1] += heavy
            other[2] += number
    values = [block[0] for block in blocks for _ in range(int(block[2]))]
    return [value + offset for value, offset in zip(values, offsets, strict=True)]


__all__ = ["Spot", "nearest", "place"]
