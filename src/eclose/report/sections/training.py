"""The training that the run did itself, epoch by epoch."""

from __future__ import annotations

from eclose.report.charts import Series, chart
from eclose.report.markup import Markup, element
from eclose.report.record import Record


def training(record: Record) -> Markup | None:
    """Return the section, or nothing for a run without epochs of its own."""
    epochs = [event for event in record.epochs if event.get("phase", "final") == "final"]
    if not epochs:
        return None
    charts = []
    for quantity in ("loss", "score"):
        series = []
        for part in ("train", "valid", "test"):
            points = [
                (float(event["epoch"]) + 1, float(event["values"][f"{part}_{quantity}"]))
                for event in epochs
                if f"{part}_{quantity}" in event["values"]
            ]
            if points:
                series.append(Series(part, points))
        if series:
            charts.append(chart(series, x="epoch", y=quantity, title=f"{quantity} by epoch", whole=True))
    return element("div", *charts, class_="charts") if charts else None
