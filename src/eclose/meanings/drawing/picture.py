"""SVG text from shapes: rectangles, circles, lines and labels, escaped and styled for light and dark.

Labels are set in a fixed-width face, so that their width is known without a font.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

CHARACTER = 0.615  # width of a character over its size in the fixed-width faces of all systems
FACE = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'

# kind: light fill, light line, dark fill, dark line
COLOURS: dict[str, tuple[str, str, str, str]] = {
    "convolution": ("#dcebf7", "#2f6f9f", "#1d3a4f", "#6fb1de"),
    "pooling": ("#def1e0", "#3b8549", "#1f3f29", "#78c288"),
    "identity": ("#f4f3ef", "#85827a", "#2c2f36", "#9aa1ad"),
    "zero": ("#fbfaf8", "#b3b0a8", "#1c1f25", "#5f6672"),
    "function": ("#f8ecd3", "#a97b1c", "#453718", "#dcb356"),
    "attention": ("#eae2f6", "#6b4fa0", "#352a4d", "#b29be0"),
    "resolution": ("#fbe3d6", "#b75521", "#4a2c1b", "#f0985c"),
    "end": ("#e3e6ea", "#4c5564", "#323843", "#b4bdca"),
    "random": ("#f8dfe6", "#a83a5c", "#47222f", "#e585a3"),
    "other": ("#ece9e2", "#6d6858", "#35332c", "#c0b99f"),
    "reference": ("#ffffff", "#0f6e84", "#1c1f25", "#58b7cd"),
    "fold": ("#ffffff", "#85827a", "#1c1f25", "#9aa1ad"),
    "node": ("#ffffff", "#3a3f48", "#1c1f25", "#c9ccd2"),
}

SCOPE = ".term-drawing"
CARD = ("#ffffff", "#1c1f25")
INK = ("#22252b", "#e6e6e3")
SOFT = ("#6a707c", "#9aa1ad")
LINE = ("#565c66", "#aab0ba")
FRAME = ("#c4c0b6", "#4a505b")


def style() -> str:
    """Return the style sheet; every rule is bound to drawings, since one may stand inside a page."""

    def rules(dark: bool) -> str:
        light = not dark
        ink, soft, line, frame, card = (pair[0 if light else 1] for pair in (INK, SOFT, LINE, FRAME, CARD))
        lines = [
            f"{SCOPE} .card{{fill:{card}}}",
            f"{SCOPE} text{{fill:{ink}}}",
            f"{SCOPE} .soft{{fill:{soft}}}",
            f"{SCOPE} .wire{{stroke:{line}}}",
            f"{SCOPE} .head,{SCOPE} .dot{{fill:{line}}}",
            f"{SCOPE} .frame{{stroke:{frame}}}",
        ]
        for kind, colours in COLOURS.items():
            fill, stroke = colours[:2] if light else colours[2:]
            lines.append(f"{SCOPE} .{kind}{{fill:{fill};stroke:{stroke}}}")
        return "".join(lines)

    base = (
        f"{SCOPE} text{{font-family:{FACE};font-size:12px;text-anchor:middle;stroke:none}}"
        f"{SCOPE} .soft{{font-size:10px}}{SCOPE} .caption{{text-anchor:start;font-size:11px}}"
        f"{SCOPE} .wire{{fill:none;stroke-width:1.3}}{SCOPE} .frame{{fill:none;stroke-width:1.2}}"
        f"{SCOPE} .zero,{SCOPE} .fold,{SCOPE} .open{{stroke-dasharray:4 3}}{SCOPE} .reference{{stroke-width:1.8}}"
    )
    return f"{base}{rules(False)}@media (prefers-color-scheme:dark){{{rules(True)}}}"


def number(value: float) -> str:
    """Return a coordinate, short."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value else "0"


def safe(text: str) -> str:
    """Return a text for XML: escaped, without characters that XML does not know."""
    return escape("".join(c if c in "\n\t" or (c >= " " and not "\ud800" <= c <= "\udfff") else "?" for c in text))


def text_width(text: str, size: float = 12.0) -> float:
    """Return the width of a label."""
    return len(text) * size * CHARACTER


class Picture:
    """Collects the elements of a drawing."""

    def __init__(self) -> None:
        self.elements: list[str] = []

    def rectangle(
        self, x: float, y: float, width: float, height: float, kind: str, title: str = "", radius: float = 6
    ) -> None:
        """Draw a rounded box; the title is shown where the pointer rests."""
        inside = f"<title>{safe(title)}</title></rect>" if title else "</rect>"
        self.elements.append(
            f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
            f'rx="{number(radius)}">{inside}'
        )

    def circle(self, x: float, y: float, radius: float, kind: str) -> None:
        """Draw a circle."""
        self.elements.append(f'<circle class="{kind}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>')

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        """Write a label; `y` is its base line. The pointer looks through it at what is behind."""
        named = f' class="{kind}"' if kind else ""
        self.elements.append(f'<text{named} x="{number(x)}" y="{number(y)}" pointer-events="none">{safe(text)}</text>')

    def line(self, path: str) -> None:
        """Draw a line along a path."""
        self.elements.append(f'<path class="wire" d="{path}"/>')

    def head(self, x: float, y: float) -> None:
        """Draw an arrow's head that points right and ends here."""
        self.elements.append(f'<path class="head" d="M{number(x)} {number(y)}l-7 -3.5v7z"/>')

    def wire(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Draw a line from left to right, curved where it climbs."""
        if abs(y - to_y) < 0.05:
            self.line(f"M{number(x)} {number(y)}H{number(to_x)}")
            return
        middle = (x + to_x) / 2
        ends = f"{number(middle)} {number(y)} {number(middle)} {number(to_y)} {number(to_x)} {number(to_y)}"
        self.line(f"M{number(x)} {number(y)}C{ends}")


__all__ = ["COLOURS", "Picture", "number", "safe", "style", "text_width"]
