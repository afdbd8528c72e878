"""The best network beside others trained the same way, where the run has such rows."""

from __future__ import annotations

from eclose.report.markup import Markup, element, joined, table
from eclose.report.record import Record, grouped


def comparison(record: Record) -> Markup | None:
    """Return the section, or nothing for a run that compared nothing."""
    events = record.run.of_kind("comparison")
    if not events:
        return None
    event = events[-1]
    columns = event["columns"]
    rows = [[grouped(cell) if isinstance(cell, int | float) else cell for cell in row] for row in event["rows"]]
    parts = [table(columns, rows, numeric=range(1, len(columns)))]
    if event.get("remark"):
        parts.append(element("p", event["remark"], class_="soft"))
    return joined(parts)
