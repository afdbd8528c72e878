"""The architectures that were selected from the run's checkpoints."""

from __future__ import annotations

from eclose.report.markup import Markup, element, table
from eclose.report.record import Record, duration, grouped
from eclose.report.search_record import selections as made


def selections(record: Record) -> Markup | None:
    """Return the section, or nothing for a run of which nothing was selected afterwards."""
    found = made(record)
    if not found:
        return None
    rows = [
        [
            entry.get("by", ""),
            entry.get("epoch", ""),
            "" if entry.get("score") is None else grouped(entry["score"]),
            duration(float(entry.get("seconds") or 0.0)),
            element("code", entry.get("term", "")),
        ]
        for entry in found
    ]
    return table(["by", "epoch", "score in the supernet", "took", "term"], rows, numeric=range(1, 4))
