"""Loss and score in the surroundings of the alphas."""

from __future__ import annotations

from eclose.report.heat_maps import heat_map
from eclose.report.markup import Markup, element, joined
from eclose.report.record import Record
from eclose.report.search_record import diagnosis


def landscape(record: Record) -> Markup | None:
    """Return the section, or nothing for a run without a landscape."""
    found = diagnosis(record, "landscape")
    if found is None:
        return None
    maps = [
        heat_map(
            found["axis"], found[key], x="first direction", y="second direction", title=title, colour=colour,
        )
        for key, title, colour in (
            ("loss", "validation loss", "var(--second)"), ("score", "validation score", "var(--accent)")
        )
        if found.get(key)
    ]  # fmt: skip
    where = "weights of the mixture" if found.get("space") == "theta" else "alphas"
    said = (
        f"After epoch {found['epoch']}, with fixed weights: the {where} moved along two random directions, in units of "
        "their own length. A network derived from a flat place loses little; one derived from a steep place much."
    )
    return joined([element("div", *maps, class_="charts"), element("p", said, class_="soft")])
