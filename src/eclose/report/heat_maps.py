"""Heat maps with contours as SVG: a number over two axes in bands of one colour. Knows numbers, not runs.

Between the points of the grid values are interpolated, so that the edges of bands are contours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from eclose.report.charts import labels, spoken
from eclose.report.markup import Markup, element, joined, safe

SIDE, LEFT, TOP, BOTTOM = 336, 62, 34, 46
BAR, RIGHT = 16, 96
WIDTH, HEIGHT = LEFT + SIDE + RIGHT, TOP + SIDE + BOTTOM
FINE = 84  # squares along a side; SIDE is a multiple of it and of the bands, so that no seams show
BANDS = 12
FAINTEST, STRONGEST = 0.04, 0.96

Rows = Sequence[Sequence[float | None]]


def heat_map(axis: Sequence[float], rows: Rows, *, x: str, y: str, title: str, colour: str = "var(--accent)") -> Markup:
    """Return a heat map of `rows[i][j]`, the value at `x = axis[i]`, `y = axis[j]`; the middle is marked.

    Args:
        axis: ascending.
        rows: values; what is not finite stays empty.
        x: the horizontal axis' label.
        y: the vertical axis' label.
        title: what is shown, above the map.
        colour: of the largest values.
    """
    known = [value for row in rows for value in row if value is not None and math.isfinite(value)]
    if not known or len(axis) < 2:
        return element("p", f"There is nothing to draw for {title} yet.", class_="soft")
    low, high = min(known), max(known)
    square = SIDE // FINE
    said = title if low < high else f"{title}, the same everywhere"
    parts: list[Markup] = [Markup(f'<text class="label" x="{LEFT}" y="18">{safe(said)}</text>')]
    for line in range(FINE):
        down = TOP + line * square
        across = (FINE - 0.5 - line) / FINE  # the largest y on top
        bands = [_band(_between(rows, (column + 0.5) / FINE, across), low, high) for column in range(FINE)]
        begin = 0
        for band, run in groupby(bands):
            width = len(list(run))
            if band is not None:
                parts.append(_patch(LEFT + begin * square, down, width * square, square, band, colour))
            begin += width
    parts += [_frame(axis), _bar(low, high, colour), _centre(axis)]
    parts.append(
        Markup(f'<text class="label" x="{LEFT + SIDE / 2}" y="{HEIGHT - 8}" text-anchor="middle">{safe(x)}</text>')
    )
    parts.append(
        Markup(
            f'<text class="label" transform="translate(14 {TOP + SIDE / 2}) rotate(-90)" text-anchor="middle">'
            f"{safe(y)}</text>"
        )
    )
    name = f"{title}: from {spoken(low)} to {spoken(high)}"
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{safe(name)}">{joined(parts)}</svg>'
    )


def _between(rows: Rows, across: float, up: float) -> float:
    """Return the value at a place of the unit square, linear between the four points around it; nan beside a gap."""
    last = len(rows) - 1
    x, y = across * last, up * last
    i, j = min(int(x), last - 1), min(int(y), last - 1)
    fx, fy = x - i, y - j
    total = 0.0
    for a, b, weight in ((i, j, (1 - fx) * (1 - fy)), (i + 1, j, fx * (1 - fy)), (i, j + 1, (1 - fx) * fy),
                         (i + 1, j + 1, fx * fy)):  # fmt: skip
        value = rows[a][b]
        total += weight * (math.nan if value is None else value)
    return total


def _band(value: float, low: float, high: float) -> int | None:
    if not math.isfinite(value):
        return None
    return min(int((value - low) / (high - low) * BANDS), BANDS - 1) if high > low else 0


def _patch(across: float, down: float, width: float, height: float, band: int, colour: str) -> Markup:
    opacity = FAINTEST + (STRONGEST - FAINTEST) * band / (BANDS - 1)
    return Markup(
        f'<rect x="{across:.1f}" y="{down:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" '
        f'fill-opacity="{opacity:.2f}" shape-rendering="crispEdges"/>'
    )


def _frame(axis: Sequence[float]) -> Markup:
    bottom = TOP + SIDE
    parts = [
        Markup(f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="var(--line)"/>'),
    ]
    for share, value in ((0.0, axis[0]), (0.5, (axis[0] + axis[-1]) / 2), (1.0, axis[-1])):
        parts.append(
            Markup(f'<text x="{LEFT + share * SIDE}" y="{bottom + 18}" text-anchor="middle">{spoken(value)}</text>')
        )
        parts.append(
            Markup(f'<text x="{LEFT - 8}" y="{bottom - share * SIDE + 4}" text-anchor="end">{spoken(value)}</text>')
        )
    return joined(parts)


def _centre(axis: Sequence[float]) -> Markup:
    across, down = LEFT + SIDE / 2, TOP + SIDE / 2
    return Markup(
        f'<path d="M{across - 6} {down}h12M{across} {down - 6}v12" stroke="var(--ink)" stroke-width="1.6">'
        f"<title>the alphas of the search</title></path>"
    )


def _bar(low: float, high: float, colour: str) -> Markup:
    """Return the scale: the bands with the values between them, or the value that there is everywhere."""
    if low == high:
        return Markup(f'<text x="{LEFT + SIDE + 14}" y="{TOP + SIDE // 2}">{spoken(low)}</text>')
    left, step = LEFT + SIDE + 18, SIDE // BANDS
    parts = [_patch(left, TOP + SIDE - (band + 1) * step, BAR, step, band, colour) for band in range(BANDS)]
    parts.append(Markup(f'<rect x="{left}" y="{TOP}" width="{BAR}" height="{SIDE}" fill="none" stroke="var(--line)"/>'))
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    for share, label in zip(shares, labels([low + share * (high - low) for share in shares]), strict=True):
        up = TOP + SIDE - share * SIDE
        parts.append(Markup(f'<text x="{left + BAR + 6}" y="{up + 4:.1f}">{label}</text>'))
    return joined(parts)


__all__ = ["heat_map"]
