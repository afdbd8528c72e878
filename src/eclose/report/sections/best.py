"""The best architecture: its drawing and its text."""

from __future__ import annotations

from eclose.algebra.errors import EcloseError
from eclose.algebra.reading import parse
from eclose.meanings.drawing import draw
from eclose.report.markup import Markup, element, joined
from eclose.report.record import Record


def best(record: Record) -> Markup | None:
    """Return the section, or nothing before there is a best term."""
    text = record.run.best_term or (record.best.term if record.best else None)
    if text is None:
        return None
    try:
        picture = element("div", Markup(draw(parse(text))), class_="drawing")
    except EcloseError as error:  # an operator of the user's own that is not registered here
        picture = element("p", f"It cannot be drawn here: {error}", class_="soft")
    return joined([picture, element("pre", text)])
