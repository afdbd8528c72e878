"""Charts as SVG: points, lines and steps over two axes, in the page's colours. Knows numbers, not runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from eclose.report.markup import Markup, element, joined, safe

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 30, 46
MOST_POINTS = 4000  # of one series; more are thinned, the first, last and extreme ones kept
COLOURS = ("var(--accent)", "var(--second)", "var(--third)", "var(--soft)")


@dataclass(frozen=True)
class Series:
    """Numbers to draw.

    Attributes:
        name: in the legend.
        points: `(x, y)`; those that are not finite are left out.
        form: `"points"`, `"line"` or `"steps"`.
        titles: what each point says when it is pointed at.
    """

    name: str
    points: Sequence[tuple[float, float]]
    form: str = "line"
    titles: Sequence[str] = ()


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about `count` round numbers from low to high."""
    if not low < high:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def spoken(value: float) -> str:
    """Return a number as a tick's label."""
    if value == 0:
        return "0"
    size = abs(value)
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.4g}{unit}"
    return f"{value:.4g}" if size >= 1e-3 else f"{value:.1e}"


def labels(values: Sequence[float], longest: int = 10) -> list[str]:
    """Return numbers as labels of one axis, with the digits that tell them apart where there is room.

    Args:
        values: ascending.
        longest: letters of a label at most.
    """
    found = [spoken(value) for value in values]
    gaps = [abs(b - a) for a, b in pairwise(values) if a != b]
    if len(set(found)) == len(set(values)) or not gaps:
        return found
    digits = max(1 - math.floor(math.log10(1.001 * min(gaps))), 0)
    written = [f"{value:.{digits}f}" for value in values]
    return written if max(map(len, written)) <= longest else found


def chart(
    series: Sequence[Series],
    *,
    x: str,
    y: str,
    title: str = "",
    whole: bool = False,
    counts: bool = False,
    within: tuple[float, float] | None = None,
) -> Markup:
    """Return a chart.

    Args:
        series: what to draw; empty ones are left out.
        x: the horizontal axis' label.
        y: the vertical axis' label.
        title: what the chart shows, for those who cannot see it.
        whole: whether the horizontal axis counts something and has whole ticks only.
        counts: whether the vertical axis does.
        within: the vertical axis' ends, where they are not those of what is drawn.
    """
    kept = [(one, _finite(one)) for one in series]
    kept = [(one, points) for one, points in kept if points]
    if not kept:
        return element("p", f"There is nothing to draw for {y} yet.", class_="soft")
    (left, right), (low, high) = (
        _range([p[0] for _, ps in kept for p in ps]),
        _range([p[1] for _, ps in kept for p in ps], 0.06),
    )

    low, high = within or (low, high)

    def place(px: float, py: float) -> tuple[float, float]:
        across = LEFT + (px - left) / (right - left) * (WIDTH - LEFT - RIGHT)
        up = HEIGHT - BOTTOM - (py - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
        return round(across, 1), round(up, 1)

    parts: list[Markup] = []
    upwards = [value for value in ticks(low, high) if not counts or value == int(value)]
    for value, label in zip(upwards, labels(upwards, 7), strict=True):
        _, up = place(left, value)
        parts.append(Markup(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up}" y2="{up}"/>'))
        parts.append(Markup(f'<text x="{LEFT - 8}" y="{up + 4}" text-anchor="end">{label}</text>'))
    along = [value for value in ticks(left, right) if not whole or value == int(value)]
    for value, label in zip(along, labels(along, 7), strict=True):
        across, _ = place(value, low)
        parts.append(Markup(f'<text x="{across}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label}</text>'))
    parts.append(
        Markup(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>')
    )
    for index, (one, points) in enumerate(kept):
        parts.append(_drawn(one, points, COLOURS[index % len(COLOURS)], place))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(Markup(f'<text class="label" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{safe(x)}</text>'))
    parts.append(Markup(f'<text class="label" x="{LEFT - 50}" y="16">{safe(y)}</text>'))
    parts.append(_legend([one.name for one, _ in kept]))
    name = title or f"{y} against {x}"
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{safe(name)}">{joined(parts)}</svg>'
    )


def _finite(series: Series) -> list[tuple[float, float, str]]:
    titles = list(series.titles) or [""] * len(series.points)
    points = [
        (float(x), float(y), title)
        for (x, y), title in zip(series.points, titles, strict=True)
        if math.isfinite(x) and math.isfinite(y)
    ]
    if len(points) <= MOST_POINTS:
        return points
    # One bucket after another keeps its lowest and highest point, so that no extreme is lost.
    size = math.ceil(2 * len(points) / MOST_POINTS)
    kept = {0, len(points) - 1}
    for begin in range(0, len(points), size):
        bucket = range(begin, min(begin + size, len(points)))
        kept.add(min(bucket, key=lambda i: points[i][1]))
        kept.add(max(bucket, key=lambda i: points[i][1]))
    return [points[i] for i in sorted(kept)]


def _range(values: Sequence[float], margin: float = 0.02) -> tuple[float, float]:
    low, high = min(values), max(values)
    if low == high:
        room = abs(low) * 0.1 or 1.0
        return low - room, high + room
    room = (high - low) * margin
    return low - room, high + room


def _drawn(series: Series, points: list[tuple[float, float, str]], colour: str, place) -> Markup:  # type: ignore[no-untyped-def]
    if series.form == "points":
        return joined(
            Markup(
                f'<circle cx="{place(x, y)[0]}" cy="{place(x, y)[1]}" r="3.4" fill="{colour}" fill-opacity=".55">'
                f"<title>{safe(title or f'{spoken(x)}, {spoken(y)}')}</title></circle>"
            )
            for x, y, title in points
        )
    path: list[str] = []
    before = None
    for x, y, _ in points:
        across, up = place(x, y)
        if series.form == "steps" and before is not None:
            path.append(f"L{across} {before}")
        path.append(f"{'L' if path else 'M'}{across} {up}")
        before = up
    dot = ""
    if len(points) == 1:
        across, up = place(points[0][0], points[0][1])
        dot = f'<circle cx="{across}" cy="{up}" r="3.4" fill="{colour}"/>'
    line = f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>'
    return Markup(line + dot)


def _legend(names: Sequence[str]) -> Markup:
    if len(names) < 2:
        return Markup("")
    parts = []
    across = float(WIDTH - RIGHT)
    for index in range(len(names) - 1, -1, -1):
        across -= 7.0 * len(names[index]) + 24
        colour = COLOURS[index % len(COLOURS)]
        parts.append(Markup(f'<rect x="{across}" y="8" width="10" height="10" rx="2" fill="{colour}"/>'))
        parts.append(Markup(f'<text x="{across + 15}" y="17">{safe(names[index])}</text>'))
    return joined(parts)


__all__ = ["Series", "chart", "labels", "spoken", "ticks"]
