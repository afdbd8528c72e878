"""HTML as text: everything that comes from outside is escaped here, once, and nothing is escaped elsewhere.

A `Markup` is text that is safe to stand in a page; any other value becomes one by escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def safe(value: Any) -> Markup:
    """Return a value as HTML: itself where it is markup, escaped otherwise."""
    return value if isinstance(value, Markup) else Markup(escape(str(value), quote=True))


def element(name: str, *content: Any, **attributes: Any) -> Markup:
    """Return `<name attributes>content</name>`; `class_` and `data_x` stand for `class` and `data-x`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def joined(parts: Iterable[Any], between: str = "") -> Markup:
    """Return parts one after the other."""
    return Markup(between.join(safe(part) for part in parts))


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], *, numeric: Sequence[int] = ()) -> Markup:
    """Return a table whose numeric columns are aligned to the right and can be sorted by a click on their head."""
    head = joined(element("th", text, class_="number" if i in numeric else None) for i, text in enumerate(heads))
    body = joined(
        element(
            "tr",
            *(element("td", cell, class_="number" if i in numeric else None) for i, cell in enumerate(row)),
        )
        for row in rows
    )
    inner = element("table", element("thead", element("tr", head)), element("tbody", body), class_="sortable")
    return element("div", inner, class_="scroll")


def facts(pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Return names with their values, as a list of definitions."""
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in pairs))


__all__ = ["Markup", "element", "facts", "joined", "safe", "table"]
