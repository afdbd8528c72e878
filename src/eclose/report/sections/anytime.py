"""What a table says of the derived architecture of every epoch."""

from __future__ import annotations

from eclose.report.charts import Series, chart
from eclose.report.markup import Markup, element, facts
from eclose.report.record import Record
from eclose.report.search_record import diagnosis, points


def anytime(record: Record) -> Markup | None:
    """Return the section, or nothing for a run whose architectures nobody has looked up."""
    found = diagnosis(record, "anytime")
    rows = [] if found is None else found.get("rows", [])
    if found is None or not rows:
        return None
    picture = chart(
        [Series("derived", points(rows, "score"), "steps")],
        x="epoch", y=f"test score in {found['table']}", title="table score of the derived architecture by epoch",
        whole=True,
    )  # fmt: skip
    best = max(rows, key=lambda row: row["score"])
    said = [
        ("at the end", f"{rows[-1]['score']:.2f}"),
        ("at its best", f"{best['score']:.2f}, after epoch {best['epoch']}"),
        ("lost since", f"{best['score'] - rows[-1]['score']:.2f}"),
    ]
    remark = "What the architecture derived after each epoch scores when it is trained by itself. Collapses show late."
    beside = element("div", facts(said), element("p", remark, class_="soft"))
    return element("div", picture, beside, class_="charts")
