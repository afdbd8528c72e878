"""Scores by shared weights against those of a table."""

from __future__ import annotations

from eclose.report.charts import Series, chart
from eclose.report.markup import Markup, element, facts, joined
from eclose.report.record import Record, grouped
from eclose.report.search_record import diagnosis


def correlation(record: Record) -> Markup | None:
    """Return the section, or nothing for a run whose ranks nobody has compared."""
    found = diagnosis(record, "correlation")
    if found is None or not found.get("points"):
        return None
    titles = [
        f"{term}: {_number(shared)} shared, {_number(true)} in the table"
        for term, (shared, true) in zip(found.get("terms") or [""] * len(found["points"]), found["points"], strict=True)
    ]
    pairs = [(float(shared), float(true)) for shared, true in found["points"]]
    picture = chart(
        [Series("architecture", pairs, "points", titles)],
        x="score with the supernet's weights", y=f"test score in {found['table']}",
        title="scores with shared weights against a table",
    )  # fmt: skip
    said = [("Kendall's tau", _number(found.get("tau"))), ("Spearman's rho", _number(found.get("spearman")))]
    for count, value in found.get("regret", {}).items():
        said.append((f"regret, best {count}" if count != "1" else "regret, the best", _number(value)))
    said += [("architectures", str(len(pairs))), ("epoch", str(found["epoch"]))]
    return joined([element("div", picture, facts(said), class_="charts")])


def _number(value: float | None) -> str:
    return "none" if value is None else grouped(value)
