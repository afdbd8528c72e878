"""Parts as boxes on paper: each has a size, a height at which a line enters and leaves, and a way to be drawn.

Boxes are put together from the inside out: chains in rows, wirings as layered graphs in frames, decisions as stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eclose.algebra.printing import term_text, value_text
from eclose.algebra.registry import Registry
from eclose.algebra.terms import Term
from eclose.meanings.drawing.kinds import kind_of, labelled
from eclose.meanings.drawing.parts import Part, count_text
from eclose.meanings.drawing.picture import Picture, number, text_width

PADDING = 12.0
CAPTION = 18.0
STEP = 24.0  # between the links of a chain
LONGEST = 26  # characters of a line in a box
TITLE_NODES = 200  # of a subterm whose text is written out where the pointer rests
WIDTH = 1100.0
LEAST = 400.0  # width of a chain, however deep inside

Draw = Callable[[Picture, float, float], None]


@dataclass
class Box:
    """Something drawn, by its size.

    Attributes:
        enter: how far below its top a line arrives at its left side.
        leave: how far below its top a line departs from its right side.
        draw: draws it with its left top corner at a point.
    """

    width: float
    height: float
    enter: float
    leave: float
    draw: Draw
    led_in: bool = True  # whether one line leads in; a cell of several inputs shows them by their numbers


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text that fits on a line."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def title_of(term: Term, registry: Registry) -> str:
    """Return the text of a subterm; of a large one its size."""
    if term.size > TITLE_NODES:
        return f"{term.name}(...) of {count_text(term.size)} nodes"
    return term_text(term, registry)


def settings_of(term: Term, registry: Registry) -> list[str]:
    """Return a term's attributes as `key=value` texts, those left out that its alias says."""
    return [f"{key}={value_text(value)}" for key, value in labelled(term, registry)[1]]  # type: ignore[arg-type]


def filled(words: Sequence[str], longest: int = LONGEST) -> list[str]:
    """Return words as lines, each as long as fits."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= longest:
            lines[-1] += " " + word
        else:
            lines.append(cut(word, longest))
    return lines


def operation(part: Part, registry: Registry) -> Box:
    """Return the box of an operation: its name, below it its attributes."""
    name, _ = labelled(part.term, registry)
    kind = kind_of(registry.operator(part.term.name))
    lines = filled(settings_of(part.term, registry))
    return lettered(cut(name), lines, kind, title_of(part.term, registry))


def reference(part: Part, registry: Registry) -> Box:
    """Return the box that stands for a panel; a decision between a panel's alternatives says its own name."""
    lines = filled(settings_of(part.term, registry))
    called = f"{part.term.name} {part.name}" if lines else part.name
    return lettered(called, lines, "reference", title_of(part.term, registry))


def fold(part: Part, registry: Registry) -> Box:
    """Return the box of what is not drawn."""
    text = f"… {count_text(part.hidden)} {'node' if part.hidden == 1 else 'nodes'}"
    return lettered(text, [], "fold", title_of(part.term, registry))


def around(part: Part, registry: Registry) -> Box:
    """Return the box of a wiring around one reference: the panel's name, below it what the wiring says."""
    inner = part.children[0]
    lines = filled([*settings_of(inner.term, registry), part.term.name, *settings_of(part.term, registry)])
    return lettered(inner.name, lines, "reference", title_of(part.term, registry))


def lettered(name: str, lines: Sequence[str], kind: str, title: str) -> Box:
    """Return a box with a name and smaller lines below it."""
    width = max(30.0, text_width(name) + 16, *(text_width(line, 10) + 16 for line in lines))
    height = 26.0 + 13 * len(lines)

    def draw(picture: Picture, x: float, y: float) -> None:
        picture.rectangle(x, y, width, height, kind, title)
        picture.text(x + width / 2, y + 17, name)
        for index, line in enumerate(lines):
            picture.text(x + width / 2, y + 30 + 13 * index, line, "soft")

    return Box(width, height, height / 2, height / 2, draw)


def chain(links: Sequence[Box], available: float) -> Box:
    """Return boxes one after the other, in as many rows as are needed."""
    rows: list[list[Box]] = [[]]
    used = 0.0
    for link in links:
        if rows[-1] and used + STEP + link.width > available:
            rows.append([])
            used = 0.0
        used += (STEP if rows[-1] else 0.0) + link.width
        rows[-1].append(link)
    if len(rows) == 1:
        return in_a_row(rows[0])
    drawn = [in_a_row(row) for row in rows]
    margin = 16.0
    indents = [0.0, *(margin for _ in drawn[1:])]
    width = max(indent + row.width for indent, row in zip(indents, drawn, strict=True)) + margin
    tops, y = [], 0.0
    for row in drawn:
        tops.append(y)
        y += row.height + 30.0

    def draw(picture: Picture, x: float, y: float) -> None:
        for index, (row, top, indent) in enumerate(zip(drawn, tops, indents, strict=True)):
            row.draw(picture, x + indent, y + top)
            end = x + indent + row.width
            if index:
                picture.head(x + indent, y + top + row.enter)
            if index + 1 < len(drawn):
                turn = y + tops[index + 1] - 15
                start = number(end), number(y + top + row.leave), number(end + 8)
                below = number(y + tops[index + 1] + drawn[index + 1].enter)
                picture.line(
                    f"M{start[0]} {start[1]}H{start[2]}V{number(turn)}H{number(x + 4)}V{below}H{number(x + margin)}"
                )
            else:
                picture.wire(end, y + top + row.leave, x + width, y + top + row.leave)

    return Box(width, y - 30.0, drawn[0].enter, tops[-1] + drawn[-1].leave, draw, drawn[0].led_in)


def in_a_row(links: Sequence[Box]) -> Box:
    """Return boxes in one row, each with its entry at the height where the one before is left."""
    tops, top = [], 0.0
    for index, link in enumerate(links):
        top += (links[index - 1].leave if index else link.enter) - link.enter
        tops.append(top)
    highest = min(tops)
    tops = [top - highest for top in tops]
    height = max(top + link.height for top, link in zip(tops, links, strict=True))
    width = sum(link.width for link in links) + STEP * (len(links) - 1)

    def draw(picture: Picture, x: float, y: float) -> None:
        for index, (link, top) in enumerate(zip(links, tops, strict=True)):
            link.draw(picture, x, y + top)
            x += link.width
            if index + 1 < len(links):
                picture.wire(x, y + top + link.leave, x + STEP - 2, y + top + link.leave)
                picture.head(x + STEP, y + top + link.leave)
            x += STEP

    return Box(width, height, tops[0] + links[0].enter, tops[-1] + links[-1].leave, draw, links[0].led_in)


def stack(boxes: Sequence[Box]) -> Box:
    """Return alternatives below each other, left-aligned; what goes in reaches any one of them."""
    gap = 5.0
    width = max(box.width for box in boxes)
    height = sum(box.height for box in boxes) + gap * (len(boxes) - 1)

    def draw(picture: Picture, x: float, y: float) -> None:
        for box in boxes:
            box.draw(picture, x + (width - box.width) / 2, y)
            y += box.height + gap

    return Box(width, height, height / 2, height / 2, draw)


def rows(boxes: Sequence[Box], available: float, gap: float = 20.0) -> Box:
    """Return boxes that have nothing to do with each other: beside each other where there is room, else below."""
    places: list[tuple[Box, float, float]] = []
    x = y = tallest = widest = 0.0
    for box in boxes:
        if x and x + box.width > available:
            x, y, tallest = 0.0, y + tallest + gap, 0.0
        places.append((box, x, y))
        x += box.width + gap
        tallest = max(tallest, box.height)
        widest = max(widest, x - gap)
    height = y + tallest

    def draw(picture: Picture, x: float, y: float) -> None:
        for box, left, top in places:
            box.draw(picture, x + left, y + top)

    return Box(widest, height, height / 2, height / 2, draw)


def framed(box: Box, caption: str, title: str, *, kind: str = "frame", joined: bool = True) -> Box:
    """Return a box in a rounded frame with a caption.

    Args:
        joined: whether lines lead from the frame to the box inside.
    """
    width = max(box.width, text_width(caption, 11)) + 2 * PADDING
    height = box.height + 2 * PADDING + CAPTION
    top = PADDING + CAPTION

    def draw(picture: Picture, x: float, y: float) -> None:
        picture.rectangle(x, y, width, height, kind, title, 9)
        picture.text(x + PADDING, y + CAPTION, caption, "soft caption")
        left = x + (width - box.width) / 2
        if joined and box.led_in:
            picture.wire(x, y + top + box.enter, left, y + top + box.enter)
        if joined:
            picture.wire(left + box.width, y + top + box.leave, x + width, y + top + box.leave)
        box.draw(picture, left, y + top)

    return Box(width, height, top + box.enter, top + box.leave, draw)


__all__ = ["Box", "around", "chain", "cut", "fold", "framed", "in_a_row", "operation", "reference", "rows", "stack"]
