"""What a gradient search, its diagnoses and its selections left in a run's folder, read for the sections of a report.

Draws nothing. Epochs are counted from 1 here: epoch 10 is what was there after ten epochs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from eclose.report.record import Record

NUMBER = (int, float)


def choices_of(record: Record) -> dict[str, dict[str, Any]]:
    """Return the decisions of the supernet by name: kind, labels, which are skips and which zeros."""
    events = record.run.of_kind("supernet")
    return dict(events[-1].get("choices", {})) if events else {}


def architectures(record: Record) -> dict[int, dict[str, Any]]:
    """Return what the architecture was after each epoch; of an epoch that was searched twice, the second time."""
    found = {event["epoch"] + 1: event for event in record.run.of_kind("architecture")}
    return dict(sorted(found.items()))


def search_epochs(record: Record) -> dict[int, dict[str, float]]:
    """Return losses and scores of each epoch of the search."""
    found = {event["epoch"] + 1: event["values"] for event in record.epochs if event.get("phase") == "search"}
    return dict(sorted(found.items()))


def diagnosis(record: Record, kind: str) -> dict[str, Any] | None:
    """Return a diagnosis of the run, or None where there is none that can be read."""
    return _read(record.run.path / "diagnosis" / f"{kind}.json", kind)


def selections(record: Record) -> list[dict[str, Any]]:
    """Return the selections that were made of the run's checkpoints, by the names of their files."""
    folder = record.run.path / "selections"
    found = (_read(path, "selection") for path in sorted(folder.glob("*.json")))
    return [entry for entry in found if entry is not None]


def points(rows: list[dict[str, Any]], key: str) -> list[tuple[float, float]]:
    """Return a quantity of rows by epoch, without the rows that lack it."""
    return [(float(row["epoch"]), float(row[key])) for row in rows if isinstance(row.get(key), NUMBER)]


def _read(path: Path, kind: str) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        if isinstance(found, Mapping) and found.get("kind") == kind:
            return dict(found)
    return None


__all__ = ["architectures", "choices_of", "diagnosis", "points", "search_epochs", "selections"]
