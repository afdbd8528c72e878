"""A term as lines of text for a terminal: an outline in which whatever fits on a line stands on one."""

from __future__ import annotations

from eclose.algebra.printing import term_text
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.terms import Term
from eclose.meanings.drawing.boxes import settings_of
from eclose.meanings.drawing.kinds import labelled
from eclose.meanings.drawing.parts import Part, Plan, count_text

SHORT = 200  # nodes of a subterm that may stand on one line
LINE = 60  # characters of such a line


def text_drawing(term: Term, width: int = 100, registry: Registry | None = None) -> str:
    """Return a compact outline of a term.

    What repeats is written once under a name; edges of a wiring say `from→to`, edges of a cell `← source`. Beyond
    `parts.LIMIT` parts the innermost ones are folded. No line is longer than `width`.

    Args:
        term: a normalised term of any size or depth.
        width: columns.
        registry: the operators; those that ship and those a user registered without.
    """
    registry = registry if registry is not None else default_registry()
    plan = Plan(term, registry)
    outline = _Outline(plan, registry, max(8, width))
    lines = outline.lines(plan.root, "")
    for panel in plan.panels:
        lines += ["", *outline.lines(panel.part, f"{panel.name} = ")]
    return "\n".join(cut(line, max(1, width)) for line in lines)


def cut(line: str, width: int) -> str:
    """Return a line that fits."""
    return line if len(line) <= width else line[: width - 1] + "…"


class _Outline:
    """Writes parts as lines."""

    def __init__(self, plan: Plan, registry: Registry, width: int):
        self.plan, self.registry, self.width = plan, registry, width

    def lines(self, part: Part, lead: str) -> list[str]:
        """Return a part and what is inside; `lead` comes before its name."""
        whole = self.on_one_line(part)
        if whole is not None and (not part.children or len(whole) <= min(self.width - len(lead), LINE)):
            return [lead + whole]
        lines = [f"{lead}{self.label(part)}"]
        for index, (child, note) in enumerate(zip(part.children, self.notes(part), strict=True)):
            last = index == len(part.children) - 1
            found = self.lines(child, note)
            lines.append(("└─ " if last else "├─ ") + found[0])
            lines += [("   " if last else "│  ") + line for line in found[1:]]
        return lines

    def label(self, part: Part) -> str:
        """Return a part's name with its attributes."""
        if part.style == "fold":
            return f"… {count_text(part.hidden)} {'node' if part.hidden == 1 else 'nodes'}"
        settings = settings_of(part.term, self.registry)
        if part.style == "reference":
            return " ".join([f"{part.term.name} {part.name}" if settings else part.name, *settings])
        name, _ = labelled(part.term, self.registry)
        if part.style == "operation":
            return f"{name}({', '.join(settings)})" if settings else name
        more = [f"(and {part.hidden:,} more)"] if part.hidden and part.style != "chain" else []
        return " ".join([name, *settings, *more])

    def on_one_line(self, part: Part) -> str | None:
        """Return the whole part as a short text: a chain with arrows, anything else as a term; None if it has none."""
        if not part.children:
            return self.label(part)
        if part.style == "chain":
            links = [self.on_one_line(child) for child in part.children]
            return " → ".join(link for link in links if link) if all(links) else None
        if part.term.size > SHORT or any(child.style in ("reference", "fold") for child in inside(part)):
            return None
        text = term_text(part.term, self.registry)
        return text if len(text) <= LINE and "\n" not in text else None

    def notes(self, part: Part) -> list[str]:
        """Return for each part inside where it stands: its edge, or the node of a cell and its source."""
        operator = self.registry.operator(part.term.name)
        if operator.edges and part.style == "graph" and len(operator.edges) == len(part.children):
            return [f"{start}→{end}: " for start, end in operator.edges]
        free = self.plan.free
        if part.style != "graph" or not any(free[child] for child in part.term.children):
            return ["" for _ in part.children]
        notes: list[str] = []
        for index, child in enumerate(part.term.children):
            number = "" if operator.inputs is None else str(operator.inputs + index)
            merge = " ".join([child.name, *settings_of(child, self.registry)]) if child.attributes else ""
            for source in self.sources(child):
                edge = f"{source}→{number}" if source is not None else number
                notes.append(f"{edge} ({merge}): " if merge and free[child] else f"{edge}: " if edge else "")
                merge = ""  # said once a node
        return notes[: len(part.children)]

    def sources(self, child: Term) -> list[int | None]:
        """Return for each operation of a cell's node the input it is applied to, None where it takes no input."""
        found: list[int | None] = []
        stack: list[tuple[Term, int | None]] = [(child, None)]
        while stack:
            node, source = stack.pop()
            source = node.get("src", source)
            if self.plan.free[node] and node.children:
                stack.extend((inner, source) for inner in reversed(node.children))
            else:
                found.append(source)
        return found


def inside(part: Part) -> list[Part]:
    """Return all parts below a part."""
    found = list(part.children)
    for child in found:  # grows while it is walked
        found.extend(child.children)
    return found


__all__ = ["text_drawing"]
