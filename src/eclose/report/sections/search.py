"""How a search went: scores against trials, what was gained when, what the objectives cost each other."""

from __future__ import annotations

import math

from eclose.report.charts import Series, chart
from eclose.report.markup import Markup, element
from eclose.report.record import Record, TrialRecord

SCALES = ("parameters", "multiply_adds", "seconds", "latency", "energy")


def progress(record: Record) -> Markup | None:
    """Return the section, or nothing for a run without trials."""
    done = [trial for trial in record.trials if trial.status == "done" and math.isfinite(record.merit(trial))]
    if not done:
        return None
    name = record.objective
    titles = [f"trial {trial.number}: {name} {trial.objectives[name]:.5g}" for trial in done]
    dots = [(float(trial.number), trial.objectives[name]) for trial in done]
    best = _best_so_far(record, done)
    charts = [
        chart(
            [Series("trial", dots, "points", titles), Series("best so far", best, "steps")],
            x="trial",
            y=name,
            title=f"{name} of each trial and the best so far",
            whole=True,
        )
    ]
    for scale in SCALES:
        values = [trial.objectives.get(scale, math.nan) for trial in done]
        if scale != name and len({value for value in values if math.isfinite(value)}) > 1:
            pairs = [(value, trial.objectives[name]) for value, trial in zip(values, done, strict=True)]
            charts.append(
                chart(
                    [Series("trial", pairs, "points", titles)],
                    x=scale.replace("_", "-"),
                    y=name,
                    title=f"{name} against {scale}",
                )
            )
    return element("div", *charts, class_="charts")


def _best_so_far(record: Record, done: list[TrialRecord]) -> list[tuple[float, float]]:
    best, points = -math.inf, []
    for trial in done:
        if record.merit(trial) > best:
            best = record.merit(trial)
            points.append((float(trial.number), trial.objectives[record.objective]))
    if points:
        points.append((float(record.trials[-1].number), points[-1][1]))
    return points
