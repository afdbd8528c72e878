"""Small multiples: many little charts of the same kind, on common axes, with one legend. Knows numbers, not runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eclose.report.charts import labels
from eclose.report.markup import Markup, element, joined, safe

WIDTH, HEIGHT = 180, 128
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 22, 20
ROOM = 5  # between the axes and what is drawn
MOST = 36  # panels that are shown at once; the rest is folded away

# Middle tones, which stand out on a light and on a dark ground.
SKIP, ZERO = "#e8832a", "#8a8f98"
COLOURS = ("#3b82b8", "#4ca56b", "#9a6fb8", "#d1495b", "#35a7a1", "#b08a3e", "#6675d6", "#c06aa0", "#7c9a3d", "#8d6e63")


@dataclass(frozen=True)
class Mark:
    """One line of a panel, or one point.

    Attributes:
        name: in the legend; marks of one name have one colour in all panels.
        points: `(x, y)`.
        title: what it says when it is pointed at.
    """

    name: str
    points: Sequence[tuple[float, float]]
    title: str = ""


@dataclass(frozen=True)
class Panel:
    """One of many charts."""

    name: str
    marks: Sequence[Mark]


def palette(names: Sequence[str], skips: Sequence[str] = (), zeros: Sequence[str] = ()) -> dict[str, str]:
    """Return a colour for each name: skips are orange, zeros are grey, whatever else there is."""
    others = [name for name in dict.fromkeys(names) if name not in skips and name not in zeros]
    found = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(others)}
    return {name: SKIP if name in skips else ZERO if name in zeros else found[name] for name in dict.fromkeys(names)}


def panels(given: Sequence[Panel], colours: dict[str, str], *, x: str, y: str) -> Markup:
    """Return small multiples: a line for each mark with several points, a dot for each with one.

    Args:
        given: the charts, which share their axes.
        colours: by the names of marks.
        x: the horizontal axis' label, said once.
        y: the vertical axis' label, said once.
    """
    numbers = [point for panel in given for mark in panel.marks for point in mark.points if _finite(point)]
    if not numbers:
        return element("p", f"There is nothing to draw for {y} yet.", class_="soft")
    across, up = _range([a for a, _ in numbers]), _range([b for _, b in numbers])
    drawn = [_panel(panel, colours, across, up) for panel in given]
    parts = [
        element("p", f"{y} against {x}; all panels have the same axes.", class_="soft"),
        _legend({name: colour for name, colour in colours.items() if _used(given, name)}),
        element("div", *drawn[:MOST], class_="panels"),
    ]
    if len(drawn) > MOST:
        rest = element("div", *drawn[MOST:], class_="panels")
        parts.append(element("details", element("summary", f"{len(drawn) - MOST} more"), rest))
    return joined(parts)


def _panel(panel: Panel, colours: dict[str, str], across: tuple[float, float], up: tuple[float, float]) -> Markup:
    def place(x: float, y: float) -> tuple[float, float]:
        along = LEFT + ROOM + (x - across[0]) / (across[1] - across[0]) * (WIDTH - LEFT - RIGHT - 2 * ROOM)
        down = HEIGHT - BOTTOM - ROOM - (y - up[0]) / (up[1] - up[0]) * (HEIGHT - TOP - BOTTOM - 2 * ROOM)
        return round(along, 1), round(down, 1)

    bottom = HEIGHT - BOTTOM
    (lowest, highest), (first, last) = labels(up, 7), labels(across, 7)
    parts = [
        Markup(f'<text class="label" x="2" y="13">{safe(panel.name)}</text>'),
        Markup(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{TOP}" y2="{TOP}"/>'),
        Markup(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'),
        Markup(f'<text x="{LEFT - 5}" y="{TOP + 9}" text-anchor="end">{highest}</text>'),
        Markup(f'<text x="{LEFT - 5}" y="{bottom - 1}" text-anchor="end">{lowest}</text>'),
        Markup(f'<text x="{LEFT}" y="{HEIGHT - 5}">{first}</text>'),
        Markup(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">{last}</text>'),
    ]
    for mark in panel.marks:
        places = [place(*point) for point in mark.points if _finite(point)]
        colour = colours.get(mark.name, ZERO)
        title = element("title", mark.title or mark.name)
        if len(places) == 1:
            parts.append(
                Markup(f'<circle cx="{places[0][0]}" cy="{places[0][1]}" r="4" fill="{colour}">{title}</circle>')
            )
        elif places:
            path = "M" + "L".join(f"{a} {b}" for a, b in places)
            parts.append(Markup(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8">{title}</path>'))
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{safe(panel.name)}">'
        f"{joined(parts)}</svg>"
    )


def _legend(colours: dict[str, str]) -> Markup:
    return element(
        "p",
        *(
            element("span", element("i", style=f"background:{colour}"), name, class_="key")
            for name, colour in colours.items()
        ),
    )


def _used(given: Sequence[Panel], name: str) -> bool:
    return any(mark.name == name for panel in given for mark in panel.marks)


def _finite(point: tuple[float, float]) -> bool:
    return math.isfinite(point[0]) and math.isfinite(point[1])


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if low < high:
        return low, high
    room = abs(low) * 0.1 or 1.0
    return low - room, high + room


__all__ = ["Mark", "Panel", "palette", "panels"]
