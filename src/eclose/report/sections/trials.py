"""The table of trials."""

from __future__ import annotations

from eclose.report.markup import Markup, element, joined, table
from eclose.report.record import Record, TrialRecord, grouped

MOST_ROWS = 500
SHOWN = 25


def trials(record: Record) -> Markup | None:
    """Return the section, or nothing for a run without trials; of very many the best are listed."""
    if not record.trials:
        return None
    ordered = sorted(record.trials, key=lambda trial: (-record.merit(trial), trial.number))
    kept = ordered[:MOST_ROWS]
    names = [name for name in _objectives(record) if any(name in trial.objectives for trial in kept)]
    heads = ["trial", *(name.replace("_", "-") for name in names), "took", "term"]
    numeric = range(0, len(names) + 2)
    tables = [table(heads, [_row(trial, names) for trial in kept[:SHOWN]], numeric=numeric)]
    if len(kept) > SHOWN:
        rest = table(heads, [_row(trial, names) for trial in kept[SHOWN:]], numeric=numeric)
        tables.append(element("details", element("summary", f"{len(kept) - SHOWN} more"), rest))
    if len(ordered) > MOST_ROWS:
        tables.append(
            element("p", f"The best {MOST_ROWS} of {len(ordered):,} trials; events.jsonl has them all.", class_="soft")
        )
    return joined(tables)


def _objectives(record: Record) -> list[str]:
    names = list(record.directions) or ["score"]
    for trial in record.trials:
        names.extend(name for name in trial.objectives if name not in names)
    return names


def _row(trial: TrialRecord, names: list[str]) -> list[object]:
    cells: list[object] = [trial.number]
    for position, name in enumerate(names):
        if name in trial.objectives:
            cells.append(grouped(trial.objectives[name]))
        else:
            cells.append(element("span", trial.status, class_="bad") if position == 0 else "")
    took = f"as {trial.source}" if trial.source is not None else f"{trial.seconds:.1f} s"
    what = joined([element("code", trial.term), element("div", trial.reason, class_="bad") if trial.reason else ""])
    return [*cells, took, what]
