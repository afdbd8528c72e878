"""What was asked, on what machine, and what had to be recovered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from eclose.report.markup import Markup, element, facts, joined, safe
from eclose.report.record import Record


def settings(record: Record) -> Markup | None:
    """Return the request as resolved, and the grammar."""
    parts = [facts(_flat(record.request))]
    if record.run.grammar:
        parts.append(
            element("details", element("summary", "the grammar that was searched"), element("pre", record.run.grammar))
        )
    return joined(parts)


def environment(record: Record) -> Markup | None:
    """Return versions, threads and processor."""
    return facts(_flat(record.run.environment))


def notes(record: Record) -> Markup | None:
    """Return what had to be recovered, if anything."""
    if not record.run.notes:
        return None
    return element("ul", *(element("li", note) for note in record.run.notes))


def _breakable(name: str) -> Markup:
    """Return a name that a narrow column may break after a dot or an underscore."""
    return Markup(safe(name).replace("_", "_<wbr>").replace(".", ".<wbr>"))


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif value is not None and value != "" and value != []:
            yield _breakable(name), value if isinstance(value, str) else json.dumps(value)
