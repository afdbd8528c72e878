"""What is lost from the mixture to the network that is derived from it."""

from __future__ import annotations

from eclose.report.charts import Series, chart
from eclose.report.markup import Markup, element, joined
from eclose.report.record import Record
from eclose.report.search_record import diagnosis, points


def gap(record: Record) -> Markup | None:
    """Return the section, or nothing for a run whose gap nobody has measured."""
    found = diagnosis(record, "gap")
    rows = [] if found is None else found.get("rows", [])
    if not rows:
        return None
    scores = [
        Series("mixture", points(rows, "supernet")),
        Series("one operation an edge", points(rows, "discrete")),
        Series("kept edges", points(rows, "derived")),
    ]
    losses = [Series("measured", points(rows, "loss_gap")), Series("by curvature", points(rows, "sharpness"))]
    charts = [
        chart([one for one in scores if one.points], x="epoch", y="score", title="scores by epoch", whole=True),
        chart([one for one in losses if one.points], x="epoch", y="rise of the loss", whole=True,
              title="rise of the loss by epoch"),
    ]  # fmt: skip
    said = (
        "The same supernet weights, evaluated as a mixture and as the architecture derived from it, each with its own "
        "batch-norm statistics. By curvature the loss of one batch should rise by half of (b - a)' H (b - a), from the "
        "weights a to their one-hot form b."
    )
    return joined([element("div", *charts, class_="charts"), element("p", said, class_="soft")])
