"""How the architecture took shape: weights of operations, entropy, skips, the derived term at a few epochs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from eclose.algebra.errors import EcloseError
from eclose.algebra.reading import parse
from eclose.meanings.drawing import draw
from eclose.report.charts import Series, chart
from eclose.report.markup import Markup, element, joined
from eclose.report.panels import Mark, Panel, palette, panels
from eclose.report.record import Record
from eclose.report.search_record import architectures, choices_of

MOST_EPOCHS = 200  # of the lines; more are thinned evenly


def architecture(record: Record) -> Markup | None:
    """Return the section, or nothing for a run that relaxed nothing."""
    seen = architectures(record)
    if not seen:
        return None
    return joined([_summary(seen), _weights(choices_of(record), seen)])


def derived(record: Record) -> Markup | None:
    """Return the derived architecture at a few epochs where it differs, or nothing for a run that derived none."""
    seen = architectures(record)
    if not seen:
        return None
    epochs = list(seen)
    changes = sum(seen[a]["term"] != seen[b]["term"] for a, b in pairwise(epochs))
    times = "did not change" if not changes else "changed once" if changes == 1 else f"changed {changes} times"
    said = f"The architecture of the largest weights {times} in {len(epochs)} epochs."
    parts = [element("p", said, class_="soft")]
    chosen = [epochs[0], epochs[len(epochs) // 3], epochs[2 * len(epochs) // 3], epochs[-1]]
    before = None
    pictures = []
    for epoch in dict.fromkeys(chosen):
        term = str(seen[epoch]["term"])
        if term != before:
            pictures.append(element("div", element("h3", f"After epoch {epoch}"), _drawn(term)))
            before = term
    return joined([*parts, element("div", *pictures, class_="charts")])


def _drawn(term: str) -> Markup:
    try:
        return element("div", Markup(draw(parse(term))), class_="drawing")
    except EcloseError as error:  # an operator of the user's own that is not registered here
        return joined([element("p", f"It cannot be drawn here: {error}", class_="soft"), element("pre", term)])


def _summary(seen: dict[int, dict[str, Any]]) -> Markup:
    def line(name: str, values: dict[int, Any], form: str = "line") -> Series:
        points = [(float(epoch), float(value)) for epoch, value in values.items() if value is not None]
        return Series(name, points, form)

    skips = {epoch: event.get("skips", {}) for epoch, event in seen.items()}
    edges = max((int(found.get("edges", 0)) for found in skips.values()), default=0)
    entropy = line("entropy", {epoch: event.get("entropy") for epoch, event in seen.items()})
    derived = line("derived", {epoch: found.get("derived") for epoch, found in skips.items()})
    dominant = line("largest weight", {epoch: found.get("dominant") for epoch, found in skips.items()}, "points")
    margins = line("margin", {epoch: found.get("margin") for epoch, found in skips.items()})
    charts = [
        chart([entropy], x="epoch", y="entropy, 1 for undecided", title="mean entropy of the weights", whole=True,
              within=(0.0, 1.0)),
        chart([derived, dominant], x="epoch", y=f"skips on {edges} edges", whole=True, counts=True,
              title="skips in the derived architecture, and edges on which they have the largest weight"),
    ]  # fmt: skip
    if margins.points:
        charts.append(
            chart([margins], x="epoch", y="weight of skips above others", title="margin of skips", whole=True)
        )
    said = (
        "Derived: skips in the architecture of the largest weights. Largest weight: edges on which a skip has it. A "
        "large weight on skips is no evidence that they are good: the better the weights of a supernet, the more its "
        "mixtures favour them."
    )
    return joined([element("div", *charts, class_="charts"), element("p", said, class_="soft")])


def _weights(choices: dict[str, dict[str, Any]], seen: dict[int, dict[str, Any]]) -> Markup:
    epochs = list(seen)
    if len(epochs) > MOST_EPOCHS:
        last = len(epochs) - 1
        epochs = [epochs[round(index * last / (MOST_EPOCHS - 1))] for index in range(MOST_EPOCHS)]
    names = list(seen[epochs[-1]].get("weights", {}))
    picks = [name for name in names if choices.get(name, {}).get("kind") == "pick"]
    parts = []
    for heading, some in (
        ("Weight of each operation", [name for name in names if name not in picks]),
        ("Weight of each edge", picks),
    ):
        if some:
            parts += [element("h3", heading), _panels(some, choices, seen, epochs)]
    return joined(parts)


def _panels(
    names: list[str], choices: dict[str, dict[str, Any]], seen: dict[int, dict[str, Any]], epochs: list[int]
) -> Markup:
    made, skips, zeros, labels = [], set(), set(), []
    for name in names:
        choice = choices.get(name, {})
        lines = [seen[epoch].get("weights", {}).get(name, ()) for epoch in epochs]
        count = max(map(len, lines), default=0)
        spoken = labels_of(choice, count)
        skips |= {spoken[index] for index in choice.get("skip", ()) if index < count}
        zeros |= {spoken[index] for index in choice.get("zero", ()) if index < count}
        labels += spoken
        marks = [
            Mark(
                spoken[index],
                [
                    (float(epoch), float(line[index]))
                    for epoch, line in zip(epochs, lines, strict=True)
                    if index < len(line)
                ],
                f"{spoken[index]}: {lines[-1][index]:.3g}" if index < len(lines[-1]) else spoken[index],
            )
            for index in range(count)
        ]
        made.append(Panel(name, marks))
    colours = palette(labels, tuple(skips), tuple(zeros))
    return panels(made, colours, x="epoch", y="weight")


def labels_of(choice: dict[str, Any], count: int) -> list[str]:
    """Return what the alternatives of a decision are called: those of a pick are its edges."""
    if choice.get("kind") == "pick":
        return [f"edge {index}" for index in range(count)]
    given = [str(label) for label in choice.get("labels", ())][:count]
    given += [f"alternative {index}" for index in range(len(given), count)]
    twice = {label for label in given if given.count(label) > 1}
    return [f"{label} ({index})" if label in twice else label for index, label in enumerate(given)]
