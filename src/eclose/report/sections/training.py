"""The trainings that the run did itself, epoch by epoch: of the supernet, and of the best network at the end."""

from __future__ import annotations

from collections.abc import Mapping

from eclose.report.charts import Series, chart
from eclose.report.markup import Markup, element, joined
from eclose.report.record import Record
from eclose.report.search_record import search_epochs


def supernet(record: Record) -> Markup | None:
    """Return the section of a search by gradient, or nothing for a run without a supernet."""
    charts = _charts(search_epochs(record))
    said = [
        f"After epoch {event['from']} the search went back to epoch {event['to']} and on with a weight decay of "
        f"{event['weight_decay']:g}: {event['reason']}."
        for event in record.run.of_kind("return")
    ]
    said += [
        f"It was stopped: {event['reason']}. The architecture is that of epoch {event['epochs']}."
        for event in record.run.of_kind("search-end")
        if event["reason"]
    ]
    if charts is None or not said:
        return charts
    return joined([charts, *(element("p", text) for text in said)])


def training(record: Record) -> Markup | None:
    """Return the section of the best network, or nothing for a run without epochs of its own."""
    final = [event for event in record.epochs if event.get("phase", "final") == "final"]
    return _charts({event["epoch"] + 1: event["values"] for event in final})


def _charts(epochs: Mapping[int, Mapping[str, float]]) -> Markup | None:
    """Return loss and score by epoch, with a line for each part of the data."""
    charts = []
    for quantity in ("loss", "score"):
        series = []
        for part in ("train", "valid", "test"):
            points = [
                (float(epoch), float(values[f"{part}_{quantity}"]))
                for epoch, values in epochs.items()
                if f"{part}_{quantity}" in values
            ]
            if points:
                series.append(Series(part, points))
        if series:
            charts.append(chart(series, x="epoch", y=quantity, title=f"{quantity} by epoch", whole=True))
    return element("div", *charts, class_="charts") if charts else None
