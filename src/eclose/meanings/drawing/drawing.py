"""A term as a picture: its parts put together from the inside out, with a panel for what repeats."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from eclose.algebra.errors import RequestError
from eclose.algebra.registry import Registry, default_registry
from eclose.algebra.terms import Term
from eclose.meanings.drawing import boxes
from eclose.meanings.drawing.boxes import Box
from eclose.meanings.drawing.diagram import Diagrams
from eclose.meanings.drawing.kinds import labelled
from eclose.meanings.drawing.parts import Part, Plan
from eclose.meanings.drawing.picture import Picture, number, safe, style
from eclose.meanings.drawing.wired import wired

MARGIN = 16.0
UNJOINED = ("apart", "list", "stack")  # styles in which no line leads from the frame to what is inside


def draw(term: Term, file: str | Path | None = None, registry: Registry | None = None) -> str:
    """Return a drawing of a term as SVG text, and write it to a file where one is given.

    What comes in enters at the left. Operations are boxes coloured by kind, sums are circles, wirings are frames,
    decisions are dashed stacks. A subterm that repeats is drawn once, as a panel with a name; beyond
    `parts.LIMIT` parts the innermost ones are folded.

    Args:
        term: a normalised term of any size or depth.
        file: replaced as a whole, or not at all.
        registry: the operators; those that ship and those a user registered without.
    """
    registry = registry if registry is not None else default_registry()
    plan = Plan(term, registry)
    maker = _Maker(plan, registry)
    whole = maker.whole()
    picture = Picture()
    picture.rectangle(0, 0, whole.width + 2 * MARGIN, whole.height + 2 * MARGIN, "card", radius=10)
    whole.draw(picture, MARGIN, MARGIN)
    width, height = number(whole.width + 2 * MARGIN), number(whole.height + 2 * MARGIN)
    text = "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="term-drawing" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" style="max-width:100%;height:auto" role="img">',
            f"<title>{safe(boxes.title_of(term, registry))}</title>",
            f"<style>{style()}</style>",
            *picture.elements,
            "</svg>\n",
        ]
    )
    if file is not None:
        replace_file(Path(file), text)
    return text


def replace_file(path: Path, text: str) -> None:
    """Replace a file as a whole: written beside, then renamed."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


class _Maker:
    """Turns parts into boxes; frames are at most `parts.FRAMES` deep, so recursion is safe here."""

    def __init__(self, plan: Plan, registry: Registry):
        self.plan, self.registry = plan, registry
        self.diagrams = Diagrams(plan)

    def whole(self) -> Box:
        """Return the root with the panels below it."""
        root = self.box(self.plan.root, boxes.WIDTH)
        main = boxes.in_a_row([_end(), root, _end()]) if self.plan.root.style != "apart" else root
        panels = [self.panel(panel.name, panel.part) for panel in self.plan.panels]
        if not panels:
            return main
        below = boxes.rows(panels, max(boxes.WIDTH, main.width))

        def paint(picture: Picture, x: float, y: float) -> None:
            main.draw(picture, x, y)
            below.draw(picture, x, y + main.height + 28)

        return Box(max(main.width, below.width), main.height + 28 + below.height, 0, 0, paint)

    def panel(self, name: str, part: Part) -> Box:
        """Return a panel: its name and what it stands for."""
        inside = self.inside(part, boxes.WIDTH - 2 * boxes.PADDING)
        caption, title = f"{name} = {self.caption(part)}", boxes.title_of(part.term, self.registry)
        return boxes.framed(inside, caption, title, kind=self.kind(part), joined=part.style not in UNJOINED)

    def box(self, part: Part, room: float, number: str = "") -> Box:
        """Return the box of a part, wirings in their frames.

        Args:
            part: what is drawn.
            room: how wide a chain inside may be.
            number: what stands before the caption.
        """
        if part.style in ("chain", "operation", "reference", "fold"):
            return self.inside(part, room)
        if part.style == "wrap" and part.children[0].style == "reference":
            return boxes.around(part, self.registry)
        inside, title = self.inside(part, room - 2 * boxes.PADDING), boxes.title_of(part.term, self.registry)
        joined = part.style not in UNJOINED
        return boxes.framed(inside, number + self.caption(part), title, kind=self.kind(part), joined=joined)

    def kind(self, part: Part) -> str:
        """Return the class of a wiring's frame: a decision is dashed."""
        return "frame open" if part.style == "stack" else "frame"

    def caption(self, part: Part) -> str:
        """Return what a frame is called."""
        name, _ = labelled(part.term, self.registry)
        settings = boxes.settings_of(part.term, self.registry)
        more = [f"and {part.hidden:,} more"] if part.hidden and part.style not in ("chain", "fold") else []
        return boxes.cut(" ".join([name, *settings, *more]), 60)

    def inside(self, part: Part, room: float) -> Box:
        """Return what stands inside the frame of a part."""
        if part.style == "operation":
            return boxes.operation(part, self.registry)
        if part.style == "reference":
            return boxes.reference(part, self.registry)
        if part.style == "fold":
            return boxes.fold(part, self.registry)
        room = max(boxes.LEAST, room)
        if part.style == "apart":
            numbered = enumerate(part.children, start=1)
            return boxes.rows([self.box(child, room, f"{index}: ") for index, child in numbered], room)
        if part.style == "graph":
            diagram = self.diagrams.of(part)
            if diagram is not None:
                columns = _longest(self.registry.operator(part.term.name).edges)
                return wired(diagram, [self.box(child, room / columns - 60) for child in part.children])
            part.style = "list"
        children = [self.box(child, room) for child in part.children]
        if part.style == "chain":
            return boxes.chain(children, room)
        if part.style == "wrap":
            return children[0]
        return boxes.stack(children) if part.style == "stack" else boxes.rows(children, room)


def _longest(edges: Sequence[tuple[int, int]]) -> int:
    """Return how many children stand one after the other in a wiring given by its edges, at most."""
    before: dict[int, int] = {}
    for start, end in sorted(edges, key=lambda edge: edge[1]):
        before[end] = max(before.get(end, 0), before.get(start, 0) + 1)
    return max(before.values(), default=1)


def _end() -> Box:
    """Return the dot at which a whole drawing begins or ends."""

    def paint(picture: Picture, x: float, y: float) -> None:
        picture.circle(x + 4, y + 4, 4, "dot")

    return Box(8, 8, 4, 4, paint)


__all__ = ["draw"]
