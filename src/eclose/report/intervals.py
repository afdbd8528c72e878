"""A chart of samples side by side: a dot for every value, the mean and its interval. Knows numbers, not searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eclose.report.charts import spoken, ticks
from eclose.report.markup import Markup, element, joined, safe

WIDTH, ROW, TOP, BOTTOM, RIGHT = 720, 46, 14, 46, 18
LETTER = 7.0  # pixels that a letter of a name takes


@dataclass(frozen=True)
class Sample:
    """Values to draw in one row.

    Attributes:
        name: of the row.
        values: the dots.
        titles: what each dot says when it is pointed at.
        mean: drawn as a bar across the row, None for none.
        interval: drawn as a line, None for none.
        frames: whether the axis has to reach its values; one that lies far outside is shown as an arrow otherwise.
    """

    name: str
    values: Sequence[float]
    titles: Sequence[str] = ()
    mean: float | None = None
    interval: tuple[float, float] | None = None
    frames: bool = True


def intervals(samples: Sequence[Sample], *, x: str, title: str) -> Markup:
    """Return the chart.

    Args:
        samples: one row each; values that are not finite are left out.
        x: the axis' label.
        title: what the chart shows, for those who cannot see it.
    """
    numbers = [value for sample in samples if sample.frames for value in _numbers(sample)]
    others = [value for sample in samples if not sample.frames for value in _numbers(sample)]
    if not numbers:
        numbers, others = others, []
    if not numbers:
        return element("p", "There is nothing to draw yet.", class_="soft")
    low, high = min(numbers), max(numbers)
    span = high - low or abs(low) * 0.1 or 1.0
    near = [value for value in others if low - span <= value <= high + span]
    low, high = min(low, *near, low), max(high, *near, high)
    room = (high - low) * 0.04 or span
    low, high = low - room, high + room
    left = min(220.0, max(len(sample.name) for sample in samples) * LETTER + 20)
    bottom = TOP + ROW * len(samples)

    def place(value: float) -> float:
        return round(left + (value - low) / (high - low) * (WIDTH - RIGHT - left), 1)

    parts: list[Markup] = []
    for value in ticks(low, high, 6):
        across = place(value)
        parts.append(Markup(f'<line class="grid" x1="{across}" x2="{across}" y1="{TOP}" y2="{bottom}"/>'))
        parts.append(Markup(f'<text x="{across}" y="{bottom + 18}" text-anchor="middle">{spoken(value)}</text>'))
    parts.append(Markup(f'<line class="axis" x1="{left}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'))
    for number, sample in enumerate(samples):
        y = TOP + ROW * number + ROW / 2
        parts.append(
            Markup(f'<text class="label" x="{left - 12}" y="{y + 4}" text-anchor="end">{safe(sample.name)}</text>')
        )
        outside = [value for value in _numbers(sample) if not low <= value <= high]
        if outside:
            parts.append(_arrow(outside[0], y, left if outside[0] < low else WIDTH - RIGHT, outside[0] < low))
        else:
            parts += _row(sample, y, place)
    middle = (left + WIDTH - RIGHT) / 2
    parts.append(Markup(f'<text class="label" x="{middle}" y="{bottom + 38}" text-anchor="middle">{safe(x)}</text>'))
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {bottom + BOTTOM}" role="img" aria-label="{safe(title)}">'
        f"{joined(parts)}</svg>"
    )


def _numbers(sample: Sample) -> list[float]:
    ends = sample.interval or ()
    every = [*sample.values, *ends, *([] if sample.mean is None else [sample.mean])]
    return [value for value in every if math.isfinite(value)]


def _arrow(value: float, y: float, edge: float, low: bool) -> Markup:
    """Return an arrow to a value that lies outside the axis, with its number."""
    away, anchor = (1, "start") if low else (-1, "end")
    return Markup(
        f'<path d="M{edge + 34 * away} {y}H{edge + 8 * away}m{6 * away} -5l{-6 * away} 5l{6 * away} 5" fill="none" '
        f'stroke="var(--accent)" stroke-width="2"/>'
        f'<text x="{edge + 42 * away}" y="{y + 4}" text-anchor="{anchor}">{value:.5g}</text>'
    )


def _row(sample: Sample, y: float, place) -> list[Markup]:  # type: ignore[no-untyped-def]
    """Return a row: the interval and the mean above, the dots below them."""
    parts: list[Markup] = []
    above, below = y - 6, y + 9
    if sample.interval is not None:
        begin, end = (place(value) for value in sample.interval)
        parts.append(
            Markup(
                f'<path d="M{begin} {above - 4}v8M{begin} {above}H{end}M{end} {above - 4}v8" fill="none" '
                f'stroke="var(--accent)" stroke-width="2"><title>95 % interval of the mean: '
                f"{sample.interval[0]:.6g} to {sample.interval[1]:.6g}</title></path>"
            )
        )
    if sample.mean is not None and math.isfinite(sample.mean):
        across = place(sample.mean)
        parts.append(
            Markup(
                f'<path d="M{across} {above - 7}l5 7l-5 7l-5 -7z" fill="var(--accent)">'
                f"<title>mean {sample.mean:.6g}</title></path>"
            )
        )
    titles = list(sample.titles) or [""] * len(sample.values)
    for value, title in zip(sample.values, titles, strict=True):
        if math.isfinite(value):
            parts.append(
                Markup(
                    f'<circle cx="{place(value)}" cy="{below}" r="4" fill="var(--second)" fill-opacity=".55">'
                    f"<title>{safe(title or f'{value:.6g}')}</title></circle>"
                )
            )
    return parts


__all__ = ["Sample", "intervals"]
