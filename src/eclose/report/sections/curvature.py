"""The curvature of the validation loss in the alphas, by epoch."""

from __future__ import annotations

from eclose.report.charts import Series, chart
from eclose.report.markup import Markup, element, joined
from eclose.report.record import Record
from eclose.report.search_record import architectures, diagnosis, points


def curvature(record: Record) -> Markup | None:
    """Return the section, or nothing for a run whose Hessian nobody has measured."""
    during = [
        {"epoch": epoch, **event["hessian"]} for epoch, event in architectures(record).items() if "hessian" in event
    ]
    after = diagnosis(record, "hessian")
    rows = [] if after is None else after.get("rows", [])
    if not during and not rows:
        return None
    charts = []
    apart = any(row.get("norm") != row.get("largest") for row in (*during, *rows))
    for key, name in (("largest", "largest eigenvalue"), ("trace", "trace"), ("norm", "spectral norm")):
        if key == "norm" and not apart:
            continue
        series = [Series("diagnosed", points(rows, key), "points" if during else "line")]
        if during:
            series = [Series("in the search", points(during, key)), *series]
        charts.append(
            chart([one for one in series if one.points], x="epoch", y=name, title=f"{name} by epoch", whole=True)
        )
    said = "Of the Hessian of the validation loss in the alphas. Where its largest eigenvalue begins to rise steeply, "
    said += "what is derived from the mixture begins to lose."
    if after is not None and after.get("batch"):
        said += f" Diagnosed on one batch of {after['batch']} items."
    return joined([element("div", *charts, class_="charts"), element("p", said, class_="soft")])
