"""The diagram of a wiring as a box: columns of vertices with lines between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from eclose.meanings.drawing.boxes import Box, lettered
from eclose.meanings.drawing.diagram import Diagram, Vertex
from eclose.meanings.drawing.layered import Spot, place
from eclose.meanings.drawing.picture import Picture, text_width

BETWEEN = 26.0  # columns
CLIMB = 0.10  # more room between columns where lines climb far
WIDEST = 90.0


def wired(diagram: Diagram, parts: Sequence[Box]) -> Box:
    """Return the box of a diagram.

    Args:
        diagram: the vertices and lines.
        parts: the boxes of its parts by their number.
    """
    leaving = [0] * len(diagram.vertices)
    for start, _ in diagram.lines:
        leaving[start] += 1
    boxes = [
        parts[vertex.part] if vertex.form == "part" else _point(vertex, leaving[index])
        for index, vertex in enumerate(diagram.vertices)
    ]
    spots = [Spot(box.width, box.height, box.enter, box.leave) for box in boxes]
    late = [vertex.form == "part" for vertex in diagram.vertices]
    columns, routes = place(spots, diagram.lines, late, diagram.output)
    highest = min(spot.y for spot in spots)
    height = max(spot.y + spot.height for spot in spots) - highest
    lefts, widths, x = [], [], 0.0
    for index, column in enumerate(columns):
        widths.append(max((spots[number].width for number in column), default=0.0))
        lefts.append(x)
        climbs = [
            abs(spots[number].y + spots[number].leave - spots[other].y - spots[other].enter)
            for number in column
            for other in spots[number].after
        ]
        x += widths[-1] + min(WIDEST, BETWEEN + CLIMB * max(climbs, default=0.0)) * (index + 1 < len(columns))

    def left(number: int) -> float:
        spot = spots[number]
        return lefts[spot.column] + (widths[spot.column] - spot.width) / 2

    def draw(picture: Picture, x: float, y: float) -> None:
        for route in routes:
            _line(picture, route, x, y - highest)
        for number, box in enumerate(boxes):
            box.draw(picture, x + left(number), y + spots[number].y - highest)
        first = diagram.inputs[0]
        if len(diagram.inputs) == 1 and left(first) > 0:
            at = y + spots[first].y + spots[first].enter - highest
            picture.wire(x, at, x + left(first), at)
        last = diagram.output
        end = left(last) + spots[last].width
        at = y + spots[last].y + spots[last].leave - highest
        picture.wire(x + end, at, x + total, at)

    def _line(picture: Picture, route: list[int], x: float, y: float) -> None:
        for one, other in pairwise(route):
            start, end = spots[one], spots[other]
            beyond = x + lefts[start.column] + widths[start.column]  # a line climbs only between columns
            before = x + lefts[end.column]
            here, there = y + start.y + start.leave, y + end.y + end.enter
            arrives = x + left(other) if not end.passage else before
            departs = x + left(one) + start.width if not start.passage else x + lefts[start.column]
            if departs < beyond:
                picture.wire(departs, here, beyond, here)
            picture.wire(beyond, here, before, there)
            if before < arrives:
                picture.wire(before, there, arrives, there)
            if not end.passage and diagram.vertices[other].form != "out":
                picture.head(arrives, there)

    total = x
    enter = spots[diagram.inputs[0]] if len(diagram.inputs) == 1 else None
    last = spots[diagram.output]
    return Box(
        total,
        height,
        enter.y + enter.enter - highest if enter else height / 2,
        last.y + last.leave - highest,
        draw,
        enter is not None,
    )


def _point(vertex: Vertex, leaving: int) -> Box:
    """Return the box of a vertex that is no part."""
    if vertex.form == "merge":
        return lettered(vertex.text, [], "node", "")
    if vertex.form == "out" or (vertex.form == "input" and not vertex.text):
        return _dot(3.0 if leaving > 1 else 0.0)
    radius = max(9.0, text_width(vertex.text, 11) / 2 + 5)

    def draw(picture: Picture, x: float, y: float) -> None:
        picture.circle(x + radius, y + radius, radius, "node")
        picture.text(x + radius, y + radius + 4, vertex.text)

    return Box(2 * radius, 2 * radius, radius, radius, draw)


def _dot(radius: float) -> Box:
    def draw(picture: Picture, x: float, y: float) -> None:
        if radius:
            picture.circle(x + radius, y + radius, radius, "dot")

    return Box(2 * radius, 2 * radius, radius, radius, draw)


__all__ = ["wired"]
